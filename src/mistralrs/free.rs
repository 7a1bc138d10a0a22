//! Draws without a grammar of ours: from all tokens, or from those that the engine's own constraint leaves.
//!
//! The engine first draws by its processors and then asks its constraint. If that refuses the token, the
//! engine draws again from the row that the constraint leaves. Both draws at a position have the same noise,
//! so the second is the draw under a mask; the first is forgotten.

use std::sync::{Mutex, OnceLock, PoisonError};

use mistralrs_candle::Tensor;
use mistralrs_core::CustomLogitsProcessor;

use super::{RequestWatch, row};
use domino::{
    decode::Sampler,
    vocab::{TokenSet, Vocabulary},
};

/// Draws the tokens of a request of any mistral.rs engine without a grammar of ours, as domino's own decoder
/// draws them: by seed and position. Of the engine's sampling only the penalties are left.
///
/// One for each request. It never fails a step: where something goes wrong it ends the text and keeps the
/// error in its [`watch`](Self::watch). A step costs a copy of the row.
pub struct FreeLogitsProcessor {
    sampler: Sampler,
    /// Position of the first token, for the noise.
    first: usize,
    /// Length of the engine's context before the first token.
    before: OnceLock<usize>,
    all: Mutex<TokenSet>,
    vocabulary: Vocabulary,
    watch: RequestWatch,
}

impl FreeLogitsProcessor {
    /// A processor for one request. `first` is the position of the text's first token: the number of tokens
    /// of the prompt, for the texts of domino's own runner.
    #[must_use]
    pub fn new(sampler: Sampler, first: usize, vocabulary: &Vocabulary) -> Self {
        Self {
            sampler,
            first,
            before: OnceLock::new(),
            all: Mutex::new(TokenSet::empty(0)),
            vocabulary: vocabulary.clone(),
            watch: RequestWatch::default(),
        }
    }

    /// The caller's view of it.
    #[must_use]
    pub fn watch(&self) -> RequestWatch {
        self.watch.clone()
    }
}

impl std::fmt::Debug for FreeLogitsProcessor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FreeLogitsProcessor").field("sampler", &self.sampler).finish_non_exhaustive()
    }
}

impl CustomLogitsProcessor for FreeLogitsProcessor {
    fn apply(&self, logits: &Tensor, context: &[u32]) -> mistralrs_candle::Result<Tensor> {
        let row = row::read(logits)?;
        if self.watch.is_over() {
            return row::end(&self.vocabulary, row.len());
        }
        let place = context.len() - self.before.get_or_init(|| context.len());
        let again = self.watch.take_back(place);
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if all.size() != row.len() {
            *all = row::all(row.len());
        }
        match self.sampler.draw(&row, &all, self.first + place) {
            Ok(token) => {
                self.watch.count(|stats| {
                    stats.interventions += usize::from(again);
                    if !again {
                        stats.passes += 1;
                        stats.draws += 1;
                        stats.own_draws += 1;
                    }
                });
                self.watch.drawn(token, self.vocabulary.is_end_of_text(token));
                row::only(token, row.len())
            }
            Err(error) => {
                self.watch.fail(error.into());
                row::end(&self.vocabulary, row.len())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use mistralrs_candle::Device;

    use super::*;
    use domino::{decode::Sampling, ids::TokenId};

    fn vocabulary() -> Vocabulary {
        let tokens = (0..).zip(["a", "b", "c"]);
        let builder =
            tokens.fold(Vocabulary::builder(), |builder, (id, text)| builder.token(TokenId::new(id), text));
        builder.end_of_text(TokenId::new(3)).build().unwrap()
    }

    fn row(numbers: [f32; 4]) -> Tensor {
        Tensor::from_slice(&numbers, 4, &Device::Cpu).unwrap()
    }

    const NONE: f32 = f32::NEG_INFINITY;

    /// The first draw at a position is forgotten where the engine asks again, also if it was end of text.
    #[test]
    fn a_refused_draw_is_made_again() {
        let free = FreeLogitsProcessor::new(Sampler::new(Sampling::greedy(), 0), 7, &vocabulary());
        let watch = free.watch();
        let tokens = || watch.tokens().iter().map(|token| token.raw()).collect::<Vec<u32>>();
        let prompt = [9, 9];
        free.apply(&row([1.0, 2.0, 0.0, 5.0]), &prompt).unwrap();
        assert!(watch.has_ended() && tokens().is_empty());
        free.apply(&row([1.0, 2.0, 0.0, NONE]), &prompt).unwrap();
        assert!(!watch.has_ended());
        assert_eq!(tokens(), [1]);
        free.apply(&row([3.0, 2.0, 0.0, 0.0]), &[9, 9, 1]).unwrap();
        assert_eq!(tokens(), [1, 0]);
        free.apply(&row([NONE, 2.0, 4.0, 0.0]), &[9, 9, 1]).unwrap();
        assert_eq!(tokens(), [1, 2]);
        let stats = watch.stats();
        assert_eq!((stats.passes, stats.draws, stats.interventions, stats.tokens), (2, 2, 2, 2));
    }

    /// The second draw has the noise of the first: it is the draw under a mask.
    #[test]
    fn both_draws_at_a_position_have_the_same_noise() {
        let sampling = Sampling::with_temperature(1.0).unwrap();
        for seed in 0..50 {
            let free = FreeLogitsProcessor::new(Sampler::new(sampling, seed), 7, &vocabulary());
            free.apply(&row([1.0; 4]), &[9]).unwrap();
            free.apply(&row([1.0, NONE, 1.0, NONE]), &[9]).unwrap();
            let mut allowed = TokenSet::empty(4);
            [0, 2].into_iter().for_each(|token| allowed.insert(TokenId::new(token)));
            let masked = Sampler::new(sampling, seed).draw(&[1.0; 4], &allowed, 7).unwrap();
            assert_eq!(free.watch().tokens(), [masked]);
        }
    }
}

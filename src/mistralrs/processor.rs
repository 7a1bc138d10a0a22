//! The processor that masks, for any engine of mistral.rs without changes to it.

use std::{
    fmt,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use mistralrs_candle::Tensor;
use mistralrs_core::CustomLogitsProcessor;

use super::{context::ContextFollower, error::RequestError, row, watch::RequestWatch};
use domino::{
    Constraint,
    decode::{Masking, Sampler},
    ids::TokenId,
    vocab::{TokenSet, Vocabulary},
};

/// Makes a request of any mistral.rs engine write a text of a grammar. All tokens that cannot follow get
/// probability zero before the engine applies its temperature and cuts and draws. Once the text is complete
/// and nothing can follow, only end of text is left; also where only white space can follow, unless the
/// constraint is to [keep it](Constraint::trailing_space).
///
/// Each request needs its own processor, which tracks its text. With several choices (`n_choices`) each of
/// them is a text of the grammar, at the cost of reading its tokens again at every step.
///
/// On the CPU let one request run at a time: mistral.rs 0.8.1 computes those of equal length as one batch
/// there, and gets them wrong, whether they are constrained or not.
///
/// It never fails a step. If something goes wrong, such as a budget that is used up, it ends the text and
/// keeps the error in its [`watch`](Self::watch).
///
/// A step costs a copy of the row and a mask. The mask is a lookup where the same place in the grammar was
/// met before.
pub struct GrammarLogitsProcessor {
    place: Mutex<ContextFollower>,
    vocabulary: Vocabulary,
    draws: Option<DrawSettings>,
    watch: RequestWatch,
}

/// Settings of draws that are not left to the engine.
#[derive(Debug)]
struct DrawSettings {
    sampler: Sampler,
    first: usize,
    masking: Masking,
}

/// Draws from all tokens at `position`, if masks come after that and the draw may follow: it is then the draw
/// under the mask too. `None`: the mask decides. `all` holds the tokens of the row.
pub(super) fn own_draw(
    (masking, sampler): (Masking, &Sampler),
    row: &[f32],
    all: &TokenSet,
    position: usize,
    constraint: &mut Constraint,
) -> Result<Option<TokenId>, RequestError> {
    if masking != Masking::Opportunistic || sampler.sampling().cuts() || constraint.end().is_some() {
        return Ok(None);
    }
    let token = sampler.draw(row, all, position)?;
    Ok(constraint.allows(token)?.then_some(token))
}

impl GrammarLogitsProcessor {
    /// Makes a processor for one request, whose text begins where `constraint` is. The constraint must have
    /// been compiled for the [vocabulary](super::vocabulary()) of the engine.
    #[must_use]
    pub fn new(constraint: Constraint) -> Self {
        Self {
            vocabulary: constraint.vocabulary().clone(),
            place: Mutex::new(ContextFollower::new(constraint)),
            draws: None,
            watch: RequestWatch::default(),
        }
    }

    /// Draws by itself: the engine's draws depend on its other draws, these on the seed alone, so the same
    /// seed gives the same text again. `first` is the position of the text's first token: the number of
    /// tokens of the prompt, for the texts of domino's own runner. Of the engine's sampling only the
    /// penalties are left.
    #[must_use]
    pub fn draw_by(self, sampler: Sampler, first: usize) -> Self {
        Self { draws: Some(DrawSettings { sampler, first, masking: Masking::default() }), ..self }
    }

    /// Sets when masks are made for draws [by itself](Self::draw_by). The engine's pass is over by then, so
    /// [`Masking::Ahead`] is like [`Masking::Always`]; with [`Masking::Opportunistic`] there is a mask only
    /// where the draw from all tokens may not follow. The text is the same. Without effect on draws of the
    /// engine, which need the mask first.
    #[must_use]
    pub fn masking(mut self, masking: Masking) -> Self {
        if let Some(draws) = &mut self.draws {
            draws.masking = masking;
        }
        self
    }

    /// The caller's view of the request.
    #[must_use]
    pub fn watch(&self) -> RequestWatch {
        self.watch.clone()
    }

    fn masked(&self, row: &mut [f32], context: &[u32]) -> Result<Option<TokenId>, RequestError> {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = Instant::now();
        place.follow(context)?;
        let length = place.len();
        if let Some(DrawSettings { sampler, first, masking }) = &self.draws {
            let (how, all) = ((*masking, sampler), row::all(row.len()));
            if let Some(token) = own_draw(how, row, &all, first + length, place.constraint())? {
                self.count(length, 0, begun.elapsed());
                self.watch.drawn(token, self.vocabulary.is_end_of_text(token));
                return Ok(Some(token));
            }
        }
        let ended = place.constraint().end().is_some();
        let end = ended.then(|| end_of_text(&self.vocabulary));
        let allowed = match &end {
            Some(end) => end,
            None => place.constraint().mask()?,
        };
        self.count(length, 1, begun.elapsed());
        match &self.draws {
            Some(DrawSettings { sampler, first, .. }) => {
                let token = sampler.draw(row, allowed, first + length)?;
                self.watch.drawn(token, self.vocabulary.is_end_of_text(token));
                Ok(Some(token))
            }
            None => {
                row::mask(row, allowed)?;
                Ok(None)
            }
        }
    }
}

impl GrammarLogitsProcessor {
    /// Counts the work of a step after `length` tokens.
    fn count(&self, length: usize, masks: usize, time: Duration) {
        self.watch.count(|stats| {
            stats.tokens = stats.tokens.max(length);
            stats.passes += 1;
            stats.masks += masks;
            stats.draws += 1;
            stats.mask_time += time;
        });
    }
}

/// The tokens that end a text.
pub(super) fn end_of_text(vocabulary: &Vocabulary) -> TokenSet {
    let mut end = vocabulary.empty_set();
    vocabulary.end_of_text().iter().for_each(|&token| end.insert(token));
    end
}

impl CustomLogitsProcessor for GrammarLogitsProcessor {
    fn apply(&self, logits: &Tensor, context: &[u32]) -> mistralrs_candle::Result<Tensor> {
        let mut row = row::read(logits)?;
        let size = row.len();
        if self.watch.is_over() {
            return row::end(&self.vocabulary, size);
        }
        match self.masked(&mut row, context) {
            Ok(None) => row::write(row),
            Ok(Some(token)) => row::only(token, size),
            Err(error) => {
                self.watch.fail(error);
                row::end(&self.vocabulary, size)
            }
        }
    }
}

impl fmt::Debug for GrammarLogitsProcessor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrammarLogitsProcessor")
            .field("draws", &self.draws)
            .field("watch", &self.watch)
            .finish_non_exhaustive()
    }
}

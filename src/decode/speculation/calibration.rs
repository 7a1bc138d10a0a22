//! Measures the cost of passes before the first draft.

use std::time::Duration;

use super::super::{error::DecodeError, stats::timed};
use crate::{
    ids::TokenId,
    model::{BatchInput, BatchModel, Logits, Model, Rows},
    proposer::Pass,
    vocab::TokenSet,
};

/// Measures `passes` over `token`: each twice, or once if passes are long. Calls `noted` with the seconds.
/// The cache is empty afterwards.
pub(in crate::decode) fn calibrate<M: Model>(
    model: &mut M,
    token: TokenId,
    passes: Vec<Pass>,
    mut noted: impl FnMut(Pass, f64),
) -> Result<(), DecodeError> {
    /// Number of tokens in the cache meanwhile.
    const BEFORE: usize = 32;
    const LONG: Duration = Duration::from_millis(30);
    model.truncate(0).map_err(DecodeError::model)?;
    let before = BEFORE.min(model.context() / 2).max(1);
    model.forward(&vec![token; before], Rows::Last).map_err(DecodeError::model)?;
    let nothing = TokenSet::empty(model.vocabulary_size());
    for pass in passes {
        let tokens = pass.tokens;
        if before + tokens > model.context() {
            continue;
        }
        let sets = vec![nothing.clone(); tokens];
        let rows = if pass.whole == 0 { Rows::Among(&sets) } else { Rows::All };
        let mut best = Duration::MAX;
        for _ in 0..2 {
            let mut took = Duration::ZERO;
            timed(&mut took, || model.forward(&vec![token; tokens], rows)).map_err(DecodeError::model)?;
            model.truncate(before).map_err(DecodeError::model)?;
            best = best.min(took);
            if took > LONG {
                break;
            }
        }
        noted(pass, best.as_secs_f64());
    }
    model.truncate(0).map_err(DecodeError::model)
}

/// One place of a model with several sequences.
pub(in crate::decode) struct ModelSlot<'a, B> {
    pub(in crate::decode) model: &'a mut B,
    pub(in crate::decode) place: usize,
}

impl<B: BatchModel> Model for ModelSlot<'_, B> {
    type Error = B::Error;

    fn position(&self) -> usize {
        self.model.position(self.place)
    }

    fn context(&self) -> usize {
        self.model.context()
    }

    fn vocabulary_size(&self) -> usize {
        self.model.vocabulary_size()
    }

    fn forward(&mut self, tokens: &[TokenId], rows: Rows<'_>) -> Result<Logits, B::Error> {
        let all = self.model.forward(&[BatchInput { sequence: self.place, tokens, rows }])?;
        Ok(all.into_iter().next().unwrap_or_else(|| Logits::new(Vec::new(), self.vocabulary_size())))
    }

    fn truncate(&mut self, position: usize) -> Result<(), B::Error> {
        self.model.truncate(self.place, position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{OneByOne, ScriptedModel};

    /// With a small context there are fewer tokens in the cache meanwhile, and passes without room are left
    /// out.
    #[test]
    fn measured_passes_fit_into_the_context() {
        let all = [1, 2, 12, 13, 20, 30];
        for (context, fitting) in [(24, 3), (40, 5), (4096, 6)] {
            let model = ScriptedModel::new(10, context, 1);
            let mut batch = OneByOne::new(vec![model.clone(), model]);
            let mut place = ModelSlot { model: &mut batch, place: 1 };
            let passes = all.map(Pass::whole).to_vec();
            let mut noted = Vec::new();
            calibrate(&mut place, TokenId::new(3), passes, |pass, seconds| {
                assert!(seconds.is_finite());
                noted.push(pass.tokens);
            })
            .unwrap();
            assert_eq!((&noted[..], place.position()), (&all[..fitting], 0), "{context}");
        }
    }

    #[test]
    fn a_slot_has_the_position_of_its_sequence() {
        let mut batch = OneByOne::new(vec![ScriptedModel::new(10, 64, 1), ScriptedModel::new(10, 64, 1)]);
        let mut place = ModelSlot { model: &mut batch, place: 1 };
        place.forward(&[TokenId::new(1); 3], Rows::Last).unwrap();
        assert_eq!((place.position(), place.context(), place.vocabulary_size()), (3, 64, 10));
        assert_eq!((batch.position(0), batch.position(1)), (0, 3));
    }
}

//! Templates, as Guidance has them (paper, appendix A): text that is fixed goes in without a draw, tokenised
//! by itself, and only the holes between are drawn.
//!
//! The fixed text is what the grammar forces. White space that the grammar leaves free is either fixed as
//! well, as it was before in the text, or a hole. What is fixed costs no pass; but its tokens end where it
//! does, and not where the model's would, which is what bends the model.

use super::{Method, MethodError, Outcome, Stage, chosen};
use crate::{
    constraint::Constraint,
    decode::{
        DecodeError, DecodeStats, Sampler,
        single::{Choice, Choose, Text},
        timed,
    },
    ids::TokenId,
    model::Model,
    proposer::{ForcedText, Site},
    vocab::{Tokenizer, Vocabulary},
};

/// Inserts fixed text.
#[derive(Debug)]
pub(super) struct Templates {
    forced: ForcedText,
    tokenizer: Tokenizer,
    vocabulary: Vocabulary,
}

impl Templates {
    /// `flexible`: white space that the grammar leaves free is drawn.
    pub(super) fn new(tokenizer: &Tokenizer, vocabulary: &Vocabulary, flexible: bool) -> Self {
        let forced = ForcedText::new(tokenizer.clone(), vocabulary.clone());
        let forced = if flexible { forced } else { forced.with_spellings() };
        Self { forced, tokenizer: tokenizer.clone(), vocabulary: vocabulary.clone() }
    }
}

impl Choose for Templates {
    fn choose(
        &mut self,
        row: &[f32],
        text: &Text,
        sampler: &Sampler,
        constraint: &mut Constraint,
        stats: &mut DecodeStats,
    ) -> Result<Choice, DecodeError> {
        let position = text.position();
        stats.masks += 1;
        let mask = timed(&mut stats.mask_time, || constraint.mask())?;
        let drawn = sampler.draw(row, mask, position);
        drawn.map(Choice::Token).map_err(|error| DecodeError::draw(error, position))
    }

    fn fixed(&mut self, constraint: &Constraint, text: &Text) -> Vec<TokenId> {
        let mut sequence = text.sequence.clone();
        let site = Site::new(Some(constraint), &mut sequence, 0.0, &|_, _| 0.0);
        let fixed = self.forced.text(&site);
        if fixed.is_empty() {
            return Vec::new();
        }
        self.tokenizer.alone(&self.vocabulary, &fixed).unwrap_or_default()
    }
}

impl<M: Model> Method<M> for Templates {
    fn generate(&mut self, stage: &mut Stage<'_, M>, prompt: &[TokenId]) -> Result<Outcome, MethodError> {
        chosen(stage, prompt, self)
    }
}

//! Templates, as Guidance has them (paper, appendix A): fixed text goes in without a draw, tokenised by
//! itself, and only the holes between are drawn.
//!
//! The fixed text is what the grammar forces. White space that the grammar leaves free is either fixed as
//! well, as it was before in the text, or a hole. Fixed text costs no pass; but its tokens end where it does,
//! and not where the model's would, which is what biases the model.
//!
//! Token healing, which Guidance has, removes some of the bias: the last token of the fixed text before a
//! hole does not go in, and a token that begins with it is drawn in its place. Borders before fixed text are
//! not healed, nor is the one between prompt and text.

use std::borrow::Cow;

use super::{Method, MethodError, Outcome, Stage, chosen};
use crate::{
    Constraint,
    decode::{
        DecodeError, DecodeStats, Sampler,
        single::{Choose, SingleText, TokenChoice},
        timed,
    },
    ids::TokenId,
    model::Model,
    proposer::{ForcedText, Site},
    vocab::{TokenSet, Tokenizer, Vocabulary},
};

/// Greatest number of bytes of fixed text that are looked ahead if free white space is drawn.
const AHEAD: usize = 128;

/// Inserts fixed text.
#[derive(Debug)]
pub(super) struct Templates {
    /// Finds fixed text with its white space; `None` if free white space is drawn.
    forced: Option<ForcedText>,
    tokenizer: Tokenizer,
    vocabulary: Vocabulary,
    /// Are borders healed?
    healed: bool,
    /// The text that the next token begins with: it was taken back from the fixed text.
    border: Vec<u8>,
}

impl Templates {
    /// Creates the method. `flexible`: free white space is drawn; `healed`: tokens are healed at borders.
    pub(super) fn new(tokenizer: &Tokenizer, vocabulary: &Vocabulary, flexible: bool, healed: bool) -> Self {
        let forced = (!flexible).then(|| ForcedText::new(tokenizer.clone(), vocabulary.clone()));
        let (tokenizer, vocabulary) = (tokenizer.clone(), vocabulary.clone());
        Self { forced, tokenizer, vocabulary, healed, border: Vec::new() }
    }

    /// Returns the tokens of a mask that begin with the text at the border; all of them if none does.
    fn healing(&self, mask: &TokenSet) -> TokenSet {
        let mut begin = TokenSet::empty(mask.size());
        let begins =
            |token: &TokenId| self.vocabulary.bytes(*token).is_some_and(|all| all.starts_with(&self.border));
        mask.iter().filter(begins).for_each(|token| begin.insert(token));
        if begin.iter().next().is_some() { begin } else { mask.clone() }
    }
}

/// Can nothing come behind `text`?
fn ends(constraint: &Constraint, text: &[u8]) -> bool {
    let mut behind = constraint.fork();
    behind.advance_bytes(text) == Ok(text.len()) && behind.is_complete() && !behind.can_go_on()
}

impl Choose for Templates {
    fn choose(
        &mut self,
        row: &[f32],
        text: &SingleText,
        sampler: &Sampler,
        constraint: &mut Constraint,
        stats: &mut DecodeStats,
    ) -> Result<TokenChoice, DecodeError> {
        let position = text.position();
        stats.masks += 1;
        let mask = timed(&mut stats.mask_time, || {
            let mask = constraint.mask()?;
            Ok::<_, DecodeError>(match &self.border[..] {
                [] => Cow::Borrowed(mask),
                _ => Cow::Owned(self.healing(mask)),
            })
        })?;
        let drawn = sampler.draw(row, &mask, position);
        self.border.clear();
        drawn.map(TokenChoice::Token).map_err(|error| DecodeError::draw(error, position))
    }

    fn fixed(&mut self, constraint: &Constraint, text: &SingleText) -> Vec<TokenId> {
        if !self.border.is_empty() {
            return Vec::new();
        }
        let mut sequence = text.sequence.clone();
        let site = Site::new(Some(constraint), &mut sequence, 0.0, &|_, _| 0.0);
        let fixed = match &self.forced {
            Some(forced) => forced.text(&site),
            None => site.forced_bytes(AHEAD),
        };
        if fixed.is_empty() {
            return Vec::new();
        }
        let mut tokens = self.tokenizer.alone(&self.vocabulary, &fixed).unwrap_or_default();
        if self.healed
            && !ends(constraint, &fixed)
            && let Some(last) = tokens.pop()
        {
            self.border = self.vocabulary.bytes(last).unwrap_or_default().to_vec();
        }
        tokens
    }
}

impl<M: Model> Method<M> for Templates {
    fn generate(&mut self, stage: &mut Stage<'_, M>, prompt: &[TokenId]) -> Result<Outcome, MethodError> {
        self.border.clear();
        chosen(stage, prompt, self)
    }
}

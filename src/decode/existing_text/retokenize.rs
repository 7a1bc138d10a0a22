//! Model-based retokenisation (paper, algorithm 3): cuts a text into tokens as the model itself would.

use super::super::{
    decoder::Decoder,
    error::{DecodeError, DecodeErrorKind},
    sampling::{sampler::Sampler, settings::Sampling},
};
use crate::{
    ids::TokenId,
    model::{Model, Rows},
};

impl<M: Model> Decoder<M> {
    /// Returns the tokens of `text` that the model would choose greedily behind `prompt` if it had to write
    /// just this text: at each step the likeliest of the tokens that the rest of the text begins with, ties
    /// by lower id. As it is greedy, the tokenizer's own tokens can be likelier as a whole;
    /// [`replay`](Self::replay) tells how likely either is. The decoder's constraint and options do not
    /// matter.
    ///
    /// One pass a token, which computes only the logits that count.
    ///
    /// # Errors
    /// If the prompt is empty, it does not fit in the context with the text's tokens, no token of the
    /// vocabulary begins what is left, or a pass fails.
    pub fn retokenize(&mut self, prompt: &[TokenId], text: &[u8]) -> Result<Vec<TokenId>, DecodeError> {
        let context = self.model.context();
        DecodeError::check_prompt(prompt.len(), context)?;
        let sampler = Sampler::new(Sampling::greedy(), 0);
        self.model.truncate(0).map_err(DecodeError::model)?;
        let (mut tokens, mut rest, mut pending) = (Vec::new(), text, prompt.to_vec());
        while !rest.is_empty() {
            let position = prompt.len() + tokens.len();
            if position > context {
                return Err(DecodeErrorKind::TextTooLong { context }.into());
            }
            let sets = [self.vocabulary.prefixes_of(rest)];
            let rows = self.model.forward(&pending, Rows::Among(&sets)).map_err(DecodeError::model)?;
            let row = rows.last().unwrap_or_default();
            let token = sampler.draw(row, &sets[0], position);
            let token = token.map_err(|error| DecodeError::draw(error, position))?;
            let bytes = self.vocabulary.bytes(token).map_or(0, <[u8]>::len);
            rest = rest.get(bytes..).unwrap_or_default();
            pending.clear();
            pending.push(token);
            tokens.push(token);
        }
        Ok(tokens)
    }
}

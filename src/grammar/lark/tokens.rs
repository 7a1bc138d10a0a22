//! Tokens of the model in rules: `<name>`, and tokens by number.

use crate::{
    grammar::{source::Span, token_numbers},
    ids::ExprId,
};

use super::translate::{LarkResult, LarkTranslator};

impl LarkTranslator<'_, '_, '_> {
    /// Translates `<name>`, `<[12]>` and the like.
    pub(super) fn token_of_model(&mut self, written: &str, span: Span) -> LarkResult<ExprId> {
        let source = self.source();
        let made = if token_numbers::begins(written) {
            let picked = token_numbers::read(written, source, span)?;
            self.builder.picked(picked, source, span)
        } else {
            self.builder.special_at(written, source, span)
        };
        made.map_err(|limit| self.limit(limit, span))
    }
}

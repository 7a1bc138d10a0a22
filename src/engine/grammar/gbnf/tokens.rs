//! llama.cpp's token references: `<think>` by its text, `<[1000]>` by its number, and `!` before either for
//! any other token.

use super::{
    Actions, Failure,
    lexer::{Lexer, Token},
};
use crate::{
    grammar::{errors::GrammarError, source::Span, token_numbers},
    ids::ExprId,
    special::Picked,
};

const FORMS: &str = "a token is written `<think>` or `<[1000]>`, any other one `!<think>` or `!<[1000]>`; \
    text is written in double quotes";

/// A reference to tokens.
#[derive(Debug, Clone)]
pub(super) enum Reference<'t> {
    /// The token of this text.
    Text(&'t str),
    /// One of these tokens.
    Picked(Picked),
}

impl<'t> Lexer<'t> {
    /// Reads a reference, which begins here with a `<` or a `!`.
    pub(super) fn token_reference(&mut self) -> Result<Token<'t>, GrammarError> {
        let start = self.at;
        let except = self.eat("!");
        let rest = self.rest();
        let line = &rest[..rest.find(['\n', '\r']).unwrap_or(rest.len())];
        if !line.starts_with('<') {
            return Err(self.no_reference(start, "`!` stands before a token"));
        }
        let Some(end) = line.find('>') else {
            self.at += 1;
            return Err(self.no_reference(start, "a token without a `>` at its end"));
        };
        let (from, written) = (self.at, &line[..=end]);
        self.at += written.len();
        let reference = if token_numbers::begins(written) {
            let picked = token_numbers::read(written, self.source(), self.here(from))?;
            Reference::Picked(if except { picked.negated() } else { picked })
        } else if except {
            Reference::Picked(Picked::all_but(written))
        } else {
            Reference::Text(written)
        };
        Ok(Token::Reference(Box::new(reference)))
    }

    fn no_reference(&self, start: usize, message: &str) -> GrammarError {
        GrammarError::syntax(message).at(self.source(), self.here(start), "").with_hint(FORMS)
    }
}

impl<'t> Actions<'t> {
    /// Translates a reference to tokens.
    pub(super) fn token(
        &mut self,
        start: u32,
        reference: &Reference<'t>,
        end: u32,
    ) -> Result<ExprId, Failure<'t>> {
        let (source, span) = (self.source, Span::new(start, end));
        let made = match reference {
            Reference::Text(text) => self.builder.token_of_text(text, source, span),
            Reference::Picked(picked) => self.builder.picked(picked.clone(), source, span),
        };
        made.map_err(|limit| self.limit(limit, span))
    }
}

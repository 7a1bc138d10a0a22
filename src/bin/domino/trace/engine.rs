//! Domino as an engine to walk with.

use domino::{CompiledGrammar, Constraint, StepError, TokenId};

use super::walk::{Digest, Engine};

/// A compiled grammar.
#[derive(Debug)]
pub(crate) struct Compiled {
    grammar: CompiledGrammar,
}

impl Compiled {
    pub(crate) fn new(grammar: CompiledGrammar) -> Self {
        Self { grammar }
    }
}

impl Engine for Compiled {
    type Request = Constraint;
    type Error = StepError;

    fn start(&self) -> Result<Constraint, StepError> {
        Ok(self.grammar.constraint())
    }

    fn mask(&self, request: &mut Constraint) -> Result<(), StepError> {
        request.mask().map(|_| ())
    }

    fn holds(&self, request: &mut Constraint, token: TokenId) -> Result<bool, StepError> {
        Ok(request.mask()?.contains(token))
    }

    fn digest(&self, request: &mut Constraint) -> Result<Digest, StepError> {
        let vocabulary = self.grammar.vocabulary();
        Ok(Digest::new(request.mask()?.iter(), vocabulary.size(), |token| vocabulary.is_end_of_text(token)))
    }

    fn allows(&self, request: &mut Constraint, token: TokenId) -> Result<bool, StepError> {
        request.allows(token)
    }

    fn commit(&self, request: &mut Constraint, token: TokenId) -> Result<(), StepError> {
        request.advance(token)
    }
}

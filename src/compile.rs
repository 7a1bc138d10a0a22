//! The pipeline, called in order: grammar -> lowered grammar -> scanner -> compiled grammar.

use crate::{
    constraint::Constraint,
    grammar::Grammar,
    limits::{LimitExceeded, Limits},
    vocab::Vocabulary,
};

/// How many terminals past the current one a token may reach (paper, 3.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Lookahead {
    /// At most this many: fewer tokens allowed than the language has, never more.
    Terminals(u32),
    /// Any number: the mask is exact (minimally invasive).
    #[default]
    Unbounded,
}

/// Compiles grammars for one vocabulary.
#[derive(Debug, Clone)]
pub struct Compiler {}

impl Compiler {
    /// A compiler with default limits and unbounded lookahead.
    #[must_use]
    pub fn new(_vocabulary: Vocabulary) -> Self {
        unimplemented!()
    }
    /// Sets the lookahead `k`.
    #[must_use]
    pub fn lookahead(self, _lookahead: Lookahead) -> Self {
        unimplemented!()
    }
    /// Sets the budgets.
    #[must_use]
    pub fn limits(self, _limits: Limits) -> Self {
        unimplemented!()
    }
    /// Compiles.
    /// # Errors
    /// stub
    pub fn compile(&self, _grammar: &Grammar) -> Result<CompiledGrammar, CompileError> {
        unimplemented!()
    }
}

/// A grammar ready to constrain. Cloning is cheap; `Send + Sync`.
#[derive(Debug, Clone)]
pub struct CompiledGrammar {}

impl CompiledGrammar {
    /// A fresh session at the start of a text.
    #[must_use]
    pub fn constraint(&self) -> Constraint {
        unimplemented!()
    }
}

/// Kinds of [`CompileError`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompileErrorKind {
    /// The grammar has no sentence at all, such as `root ::= root`.
    EmptyLanguage,
    /// A budget is used up.
    Limit(LimitExceeded),
}

/// A grammar that cannot be compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CompileError {
    kind: CompileErrorKind,
    message: String,
}

impl CompileError {
    /// What is wrong.
    #[must_use]
    pub fn kind(&self) -> &CompileErrorKind {
        &self.kind
    }
}

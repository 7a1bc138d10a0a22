//! Grammar IR -> terminals and a reduced context-free grammar.
//!
//! The passes, and what holds after each:
//! 1. [`recursion`]: no rule begins or ends with itself; such recursion has become repetition.
//! 2. [`regular`]: it is known which expressions are regular, and how large.
//! 3. [`emit`]: regular expressions within the budget have become terminals, none of which matches the
//!    empty string; the rest has become productions, with repetition as left recursion.
//! 4. [`reduce`]: every symbol derives some text and occurs in some sentence, so "may follow" means
//!    "a sentence follows".

mod cfg;
mod emit;
mod recursion;
mod reduce;
mod regular;
mod work;

pub(crate) use cfg::{Cfg, Dot, NonterminalId, Slot};

use crate::{
    compile::{CompileError, CompileErrorKind},
    grammar::Grammar,
    limits::Limits,
    scanner::Scanner,
};

/// A grammar as the parser and the scanner need it.
#[derive(Debug)]
pub(crate) struct Lowered {
    /// The productions.
    pub(crate) cfg: Cfg,
    /// The terminals' automata.
    pub(crate) scanner: Scanner,
    /// How each terminal is written, for display.
    pub(crate) terminal_names: Vec<String>,
}

/// Runs the passes. Roughly linear in the grammar, apart from determinisation, which is bounded by `limits`.
pub(crate) fn lower(grammar: &Grammar, limits: &Limits) -> Result<Lowered, CompileError> {
    let mut work = work::WorkGrammar::from_ir(grammar, limits)?;
    let order = work.rules_callees_first();
    recursion::to_repetition(&mut work, &order, limits)?;
    let regular = regular::analyse(&work, &order);
    let emitted = emit::emit(&work, &regular, limits)?;
    let (cfg, dfas, terminal_names) =
        reduce::reduce(emitted).ok_or_else(|| CompileError::new(CompileErrorKind::EmptyLanguage))?;
    let scanner = Scanner::new(dfas).ok_or_else(|| {
        CompileError::limit(crate::limits::LimitExceeded::new("scanner states", u32::MAX as usize))
    })?;
    Ok(Lowered { cfg, scanner, terminal_names })
}

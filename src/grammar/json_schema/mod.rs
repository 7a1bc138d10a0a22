//! JSON Schema -> grammar IR, exactly.
//!
//! The passes, and what holds after each:
//! 1. `document`: the text is JSON, as an arena that knows order, numbers as written, and places.
//! 2. `resolve`, `dialect`: where references lead and which keywords mean something.
//! 3. `translate`: a schema is a formula over keywords and other schemas.
//! 4. `algebra`: a formula is a union of shapes by type, one level at a time.
//! 5. `emit`: each set of values that is met is a rule of the grammar.
//!
//! The promise: every text of the grammar is a valid instance, and every valid value has a spelling in the
//! grammar. What cannot be had exactly is an error, or is listed in [`SchemaGrammar::relaxed`] where the
//! options allow it.

mod address;
mod algebra;
pub(super) mod arguments;
mod dfa;
mod dialect;
mod emit;
#[cfg(test)]
mod engine_tests;
mod error;
pub mod leaf;
mod memo;
pub mod numbers;
mod options;
mod places;
#[cfg(test)]
mod probe;
mod resolve;
pub mod strings;
mod translate;

pub use emit::Outline;
pub use error::{Relaxed, SchemaError, SchemaErrorKind};
pub use leaf::Escapes;
use leaf::{LeafError, Spelling};
use numbers::{Decimal, Integers, NumberSet};
pub use options::{Draft, DuplicateKeys, Format, Order, SchemaOptions, WhiteSpace};
pub use places::SchemaPlaces;
use strings::StringSet;

use hashbrown::HashMap;
use rayon::prelude::*;

use self::{
    algebra::{Algebra, FormulaId},
    document::{Documents, NodeId},
    error::Checked,
    resolve::Resolver,
};
use super::{Grammar, GrammarError, Pattern, document};
use crate::limits::{Budget, LimitExceeded, Limits};

/// A schema as a grammar, and what of the schema is not in it.
#[derive(Debug, Clone)]
pub struct SchemaGrammar {
    /// The texts of all valid values.
    pub grammar: Grammar,
    /// What is allowed beyond the schema; empty unless [`SchemaOptions::lenient`] is set.
    pub relaxed: Vec<Relaxed>,
    /// Keywords and formats that were met and restrict nothing, in alphabetical order.
    pub ignored: Vec<String>,
}

/// Reads a schema with the default options, as one notation of many.
pub(super) fn parse_grammar(text: &str, limits: &Limits) -> Result<Grammar, GrammarError> {
    Ok(parse(&SchemaOptions::default(), text, limits)?.grammar)
}

fn parse(options: &SchemaOptions, text: &str, limits: &Limits) -> Result<SchemaGrammar, SchemaError> {
    parse_beside(&mut WrittenKeys::new(), options, text, limits)
}

/// Keys as they are written, which schemas that are read one after the other have in common.
type WrittenKeys = HashMap<(Box<str>, Spelling), Pattern>;

/// Reads schemas, on all cores: a list of functions has many, with mostly the same keys.
pub(super) fn parse_all(
    options: &SchemaOptions,
    texts: &[&str],
    limits: &Limits,
) -> Vec<Result<SchemaGrammar, SchemaError>> {
    let share = texts.len().div_ceil(2 * rayon::current_num_threads()).max(1);
    let read = texts.par_chunks(share).flat_map_iter(|texts| {
        let mut written = WrittenKeys::new();
        texts.iter().map(move |text| parse_beside(&mut written, options, text, limits))
    });
    read.collect()
}

fn parse_beside(
    written: &mut WrittenKeys,
    options: &SchemaOptions,
    text: &str,
    limits: &Limits,
) -> Result<SchemaGrammar, SchemaError> {
    let emit = |algebra: &mut Algebra<'_>, start| emit::emit(algebra, start, written, limits);
    let (grammar, algebra) = with_algebra(options, text, limits, emit)?;
    let documents = &algebra.resolver.documents;
    let relaxed = algebra.relaxed.iter().map(|problem| problem.relaxed(documents)).collect();
    Ok(SchemaGrammar { grammar, relaxed, ignored: algebra.ignored.into_iter().collect() })
}

/// Reads a schema, and does something with the set of its values.
fn with_algebra<'o, T>(
    options: &'o SchemaOptions,
    text: &str,
    limits: &Limits,
    work: impl FnOnce(&mut Algebra<'o>, FormulaId) -> Checked<T>,
) -> Result<(T, Algebra<'o>), SchemaError> {
    let mut documents = Documents::default();
    let mut roots = vec![(String::new(), read(&mut documents, text, limits)?)];
    for (address, text) in &options.documents {
        roots.push((address.clone(), read(&mut documents, text, limits)?));
    }
    let mut resolver = Resolver::new(documents, &roots, options);
    let root = roots[0].1;
    let scope = resolver.enter(Resolver::NOTHING, root);
    let mut algebra = Algebra::new(resolver, options);
    let done = algebra.formula_of(root, scope).and_then(|_| {
        let start = algebra.schema(root, scope);
        work(&mut algebra, start)
    });
    match done {
        Ok(done) => Ok((done, algebra)),
        Err(problem) => Err(problem.finish(&algebra.resolver.documents)),
    }
}

/// The sets of values of a schema, up to `most`, and whether these are all.
fn outline(
    options: &SchemaOptions,
    text: &str,
    limits: &Limits,
    most: usize,
) -> Result<(Vec<Outline>, bool), SchemaError> {
    Ok(with_algebra(options, text, limits, |algebra, start| emit::outline(algebra, start, most))?.0)
}

/// Reads one document.
fn read(documents: &mut Documents, text: &str, limits: &Limits) -> Result<NodeId, SchemaError> {
    if text.len() > limits.grammar_bytes {
        let limit = LimitExceeded::new(Budget::GrammarBytes, "bytes of schema text", limits.grammar_bytes);
        return Err(SchemaError::of_text(GrammarError::limit(limit)));
    }
    documents.read(text).map_err(|wrong| SchemaError::of_text(wrong.shown(text)))
}

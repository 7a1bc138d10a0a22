//! JSON Schema -> grammar IR, exactly.
//!
//! The passes, and what holds after each:
//! 1. `document`: the text is JSON, as an arena that keeps order, numbers as written, and places.
//! 2. `resolve`, `dialect`: references have targets, and keywords have meanings.
//! 3. `translate`: a schema is a formula over keywords and other schemas.
//! 4. `algebra`: a formula is a union of shapes by type, one level at a time.
//! 5. `emit`: each set of values that is met is a rule of the grammar.
//!
//! The promise: every text of the grammar is a valid instance, and every valid value has a spelling in the
//! grammar. What cannot be had exactly is an error, or is listed in [`SchemaGrammar::relaxed`] if the options
//! allow that.

pub mod leaf;
mod numbers;
mod strings;

mod algebra;
pub(super) mod arguments;
mod automata;
#[cfg(test)]
mod counts_tests;
mod dfa;
mod dialect;
mod emit;
#[cfg(test)]
mod engine_tests;
mod error;
mod keywords;
mod options;
#[cfg(test)]
mod probe;
mod report;
mod resolve;
mod survey;
mod translate;

use hashbrown::HashMap;

use self::{
    algebra::{Algebra, Automata, FormulaId},
    document::{Documents, NodeId, Value},
    error::Checked,
    leaf::{LeafError, ValueSpelling, ValueStyle},
    numbers::{Decimal, Integers, NumberSet},
    resolve::Resolver,
    strings::StringSet,
};
use super::{Grammar, GrammarError, Pattern, document, source::Span};
use crate::{
    cores,
    limits::{Budget, LimitExceeded, Limits},
};

pub(super) use self::report::{key_span, keyword_warnings};
#[cfg(test)]
pub(crate) use self::strings::pattern_as_spelled;
pub use self::{
    automata::AutomataCache,
    emit::Outline,
    error::{Relaxed, SchemaError, SchemaErrorKind},
    leaf::{Escapes, Numbers},
    options::{Draft, DuplicateKeys, Format, Order, SchemaOptions, WhiteSpace},
    report::{KeywordReport, KeywordStatus, SchemaReport},
};

/// A schema as a grammar, and the parts of the schema that are not in it.
#[derive(Debug, Clone)]
pub struct SchemaGrammar {
    /// The grammar of the texts of all valid values.
    pub grammar: Grammar,
    /// The keywords of which more is allowed than they say; empty unless [`SchemaOptions::lenient`] is set.
    pub relaxed: Vec<Relaxed>,
    /// Keywords and formats that were met and restrict nothing, in alphabetical order. Unknown ones are also
    /// among the grammar's [warnings](Grammar::warnings); [`SchemaOptions::report`] lists all.
    pub ignored: Vec<String>,
    /// JSON pointers of the schemas of objects that list members and do not say whether there are others, so
    /// that a model may write any: those that [`SchemaOptions::closed`] closes, in the order of the text.
    /// Schemas of other documents are left out.
    pub open_objects: Vec<String>,
}

fn parse(
    options: &SchemaOptions,
    text: &str,
    limits: &Limits,
    automata: &AutomataCache,
) -> Result<SchemaGrammar, SchemaError> {
    parse_beside(&mut WrittenKeys::new(), options, text, limits, automata)
}

/// The patterns of keys, shared by schemas that are read one after the other.
type WrittenKeys = HashMap<(Box<str>, ValueSpelling), Pattern>;

/// Reads schemas on all cores. A list of functions has many, mostly with the same keys.
pub(super) fn parse_all(
    options: &SchemaOptions,
    texts: &[&str],
    limits: &Limits,
    automata: &AutomataCache,
) -> Vec<Result<SchemaGrammar, SchemaError>> {
    let share = texts.len().div_ceil(2 * cores::count()).max(1);
    let read = cores::map_large(texts.chunks(share).collect(), |texts| {
        let mut written = WrittenKeys::new();
        let read = texts.iter().map(|text| parse_beside(&mut written, options, text, limits, automata));
        read.collect::<Vec<_>>()
    });
    read.into_iter().flatten().collect()
}

fn parse_beside(
    written: &mut WrittenKeys,
    options: &SchemaOptions,
    text: &str,
    limits: &Limits,
    automata: &AutomataCache,
) -> Result<SchemaGrammar, SchemaError> {
    let emit = |algebra: &mut Algebra<'_>, start| emit::emit(algebra, start, written, limits);
    let ((grammar, mut open), algebra) = with_algebra(options, text, limits, automata, emit)?;
    let (documents, names) = (&algebra.resolver.documents, algebra.resolver.names());
    let relaxed = algebra.relaxed.iter().map(|problem| problem.relaxed(documents, &names)).collect();
    open.sort_unstable_by_key(|node| documents.span(*node).start);
    open.dedup();
    let open_objects = open.into_iter().map(|node| documents.pointer(node)).collect();
    Ok(SchemaGrammar { grammar, relaxed, ignored: algebra.ignored.into_iter().collect(), open_objects })
}

/// Reads a schema, and applies `work` to the set of its values.
fn with_algebra<'o, T>(
    options: &'o SchemaOptions,
    text: &str,
    limits: &Limits,
    automata: &'o AutomataCache,
    work: impl FnOnce(&mut Algebra<'o>, FormulaId) -> Checked<T>,
) -> Result<(T, Algebra<'o>), SchemaError> {
    match attempt(options, text, limits, automata, work)? {
        (Ok(done), algebra, _) => Ok((done, algebra)),
        (Err(problem), algebra, _) => {
            Err(problem.finish(&algebra.resolver.documents, &algebra.resolver.names()))
        }
    }
}

/// The result of work on a schema, the algebra after it, and the schema's root.
type Attempt<'o, T> = (Checked<T>, Algebra<'o>, NodeId);

/// Works like [`with_algebra`], but returns problems of the schema together with the algebra.
///
/// # Errors
/// If a text is not JSON, or the work was cancelled.
fn attempt<'o, T>(
    options: &'o SchemaOptions,
    text: &str,
    limits: &Limits,
    automata: &'o AutomataCache,
    work: impl FnOnce(&mut Algebra<'o>, FormulaId) -> Checked<T>,
) -> Result<Attempt<'o, T>, SchemaError> {
    let look = || limits.look().map_err(|limit| SchemaError::of_text(GrammarError::cancelled(limit)));
    look()?;
    let mut documents = Documents::default();
    let mut roots = vec![(String::new(), read(&mut documents, text, limits)?)];
    for (address, text) in &options.documents {
        let root = read(&mut documents, text, limits).map_err(|error| error.in_document(address))?;
        roots.push((address.clone(), root));
    }
    let mut resolver = Resolver::new(documents, &roots, options);
    let root = roots[0].1;
    let scope = resolver.enter(Resolver::NOTHING, root);
    let mut algebra = Algebra::new(resolver, options, Automata::new(automata, limits));
    let done = algebra.resolver.one_of_each_anchor(root);
    let done = done.and_then(|()| algebra.formula_of(root, scope)).and_then(|_| {
        let start = algebra.schema(root, scope);
        work(&mut algebra, start)
    });
    // Whatever came of work that was cut off.
    look()?;
    Ok((done, algebra, root))
}

/// The sets of values of a schema, up to `most`; true if these are all.
fn outline(
    options: &SchemaOptions,
    text: &str,
    limits: &Limits,
    most: usize,
) -> Result<(Vec<Outline>, bool), SchemaError> {
    let automata = AutomataCache::of_one_call();
    Ok(with_algebra(options, text, limits, &automata, |algebra, start| emit::outline(algebra, start, most))?
        .0)
}

/// Reads one document.
fn read(documents: &mut Documents, text: &str, limits: &Limits) -> Result<NodeId, SchemaError> {
    if text.len() > limits.grammar_bytes {
        let limit = LimitExceeded::new(Budget::GrammarBytes, "bytes of schema text", limits.grammar_bytes);
        return Err(SchemaError::of_text(GrammarError::limit(limit)));
    }
    documents.read(text).map_err(|wrong| SchemaError::of_text(wrong.shown(text)))
}

/// The schemas of a text by their places.
#[derive(Debug)]
pub struct SchemaPlaces {
    documents: Documents,
    objects: HashMap<Span, NodeId>,
}

impl SchemaPlaces {
    /// Reads a text. `None` if it is not JSON. Linear.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let mut documents = Documents::default();
        documents.read(text).ok()?;
        let objects = documents.objects().map(|node| (documents.span(node), node)).collect();
        Some(Self { documents, objects })
    }

    /// The JSON pointer, as a URI fragment, of the schema that is the span of a rule of its grammar. `None`
    /// for rules of another document, and for those not made of one schema alone.
    #[must_use]
    pub fn pointer(&self, span: Span) -> Option<String> {
        self.objects.get(&span).map(|&node| self.documents.pointer(node))
    }

    /// The keywords of the schema at a span, in the order of the text.
    #[must_use]
    pub fn keywords(&self, span: Span) -> Vec<&str> {
        match self.objects.get(&span).map(|&node| self.documents.value(node)) {
            Some(Value::Object(members)) => members.iter().map(|(key, _)| &**key).collect(),
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Grammar, Limits, Syntax};

    #[test]
    fn rules_are_traced_to_the_pointers_of_their_schemas() {
        let text = r#"{"properties": {"a/b": {"type": "string", "pattern": "^a+$"}}, "type": "object"}"#;
        let grammar = Grammar::parse(Syntax::JsonSchema, text, &Limits::default()).unwrap();
        let places = SchemaPlaces::read(text).unwrap();
        let spans: Vec<_> = grammar.rules().map(|rule| grammar.rule_span(rule)).collect();
        let pointers: Vec<_> = spans.iter().filter_map(|&span| places.pointer(span)).collect();
        assert!(pointers.contains(&"#/properties/a~1b".to_owned()), "{pointers:?}");
        let span = *spans.iter().find(|&&span| places.pointer(span).is_some_and(|p| p.len() > 1)).unwrap();
        assert_eq!(places.keywords(span), ["type", "pattern"]);
        assert_eq!(places.pointer(Span::new(3, 4)), None);
        assert!(SchemaPlaces::read("{").is_none());
    }
}

//! What a grammar keeps of its schema: a report of every keyword, and warnings of those that are dropped.

use std::fmt;

use hashbrown::HashSet;

use super::{
    AutomataCache, SchemaError, SchemaErrorKind, WrittenKeys,
    algebra::Algebra,
    attempt,
    document::{Documents, NodeId},
    emit,
    error::Problem,
    options::SchemaOptions,
    resolve::Resolver,
    survey::{Fate, Met, survey},
    translate::Site,
};
use crate::{
    grammar::{
        GrammarBuilder, GrammarWarning, GrammarWarningKind,
        error::MOST_SHOWN,
        source::{Source, Span},
    },
    limits::Limits,
};

/// What becomes of a keyword of a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum KeywordStatus {
    /// What the keyword says holds of every text. `$id`, `$anchor`, `$defs` and the like, by which other
    /// keywords find schemas, are followed too.
    Enforced,
    /// The keyword restricts nothing: it is a remark, or says nothing where it stands.
    Annotation,
    /// No draft and no common vocabulary knows the keyword. It restricts nothing, and is warned of.
    Unknown,
    /// More is allowed than the keyword says, because [`SchemaOptions::lenient`] is set.
    Relaxed,
    /// The keyword cannot be followed, so the schema is refused.
    Refused,
}

impl KeywordStatus {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Enforced, Self::Annotation, Self::Unknown, Self::Relaxed, Self::Refused];

    /// Its name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Enforced => "enforced",
            Self::Annotation => "annotation",
            Self::Unknown => "unknown",
            Self::Relaxed => "relaxed",
            Self::Refused => "refused",
        }
    }
}

impl fmt::Display for KeywordStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A keyword of a schema and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeywordReport {
    /// The JSON pointer of the keyword, as a URI fragment: `#/properties/a/minLength`. In another document
    /// than the schema's own, after the address of that.
    pub pointer: String,
    /// The keyword.
    pub keyword: String,
    /// What becomes of it.
    pub status: KeywordStatus,
    /// Why, where the status alone does not say so.
    pub note: Option<String>,
}

/// What a grammar keeps of its schema.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SchemaReport {
    /// Every keyword of the schema and of the schemas that it refers to, in the order of the text.
    pub keywords: Vec<KeywordReport>,
    /// Why there is no grammar, if there is none. Where no single keyword is to blame, such as for a schema
    /// without any value, none is [refused](KeywordStatus::Refused).
    pub error: Option<SchemaError>,
}

impl SchemaReport {
    /// How many keywords have the status.
    #[must_use]
    pub fn count(&self, status: KeywordStatus) -> usize {
        self.keywords.iter().filter(|keyword| keyword.status == status).count()
    }
}

/// Makes the report of a schema.
pub(super) fn report(
    options: &SchemaOptions,
    text: &str,
    limits: &Limits,
) -> Result<SchemaReport, SchemaError> {
    // What cannot be had exactly is all met by going on where it is met first.
    let automata = AutomataCache::new();
    let lenient = options.clone().with_lenient(true);
    let mut written = WrittenKeys::new();
    let emit = |algebra: &mut Algebra<'_>, start| emit::emit(algebra, start, &mut written, limits);
    let (done, mut algebra, root) = attempt(&lenient, text, limits, &automata, emit)?;
    let met = survey(&algebra.resolver, root, options);
    let mut problems = std::mem::take(&mut algebra.relaxed);
    let status = match &done {
        Ok(_) if options.lenient => KeywordStatus::Relaxed,
        _ => KeywordStatus::Refused,
    };
    let error = match done {
        Ok(_) if options.lenient || problems.is_empty() => None,
        Ok(_) => super::parse(options, text, limits, &automata).err(),
        Err(problem) => {
            if problem.kind != SchemaErrorKind::Limit {
                problems.extend(more_problems(&mut algebra, &met));
            }
            problems.push((*problem).clone());
            Some(problem.finish(&algebra.resolver.documents))
        }
    };
    let documents = &algebra.resolver.documents;
    let keywords = met.iter().map(|one| {
        let blamed = |problem: &&Problem| problem.node == one.node && problem.keyword == Some(&*one.keyword);
        let (status, note) = match problems.iter().find(blamed) {
            Some(problem) => (status, Some(problem.reason.clone())),
            None => plain_status(&one.fate),
        };
        let pointer = pointer(&algebra, documents, one);
        KeywordReport { pointer, keyword: one.keyword.to_string(), status, note }
    });
    Ok(SchemaReport { keywords: keywords.collect(), error })
}

fn plain_status(fate: &Fate) -> (KeywordStatus, Option<String>) {
    match fate {
        Fate::Followed => (KeywordStatus::Enforced, None),
        Fate::Remark(why) => (KeywordStatus::Annotation, why.as_ref().map(ToString::to_string)),
        Fate::Lost(why, hint) => (KeywordStatus::Annotation, Some(format!("{why}: {hint}"))),
        Fate::Unknown(hint) => (KeywordStatus::Unknown, Some(hint.clone())),
    }
}

/// What is wrong with keywords by themselves, in a schema that cannot be used anyway.
fn more_problems(algebra: &mut Algebra<'_>, met: &[Met]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for one in met.iter().filter(|one| one.fate == Fate::Followed) {
        let dialect = algebra.resolver.dialect(one.node);
        let scope = algebra.resolver.enter(Resolver::NOTHING, one.node);
        let site = Site { node: one.node, scope, dialect };
        algebra.stand_at(one.node);
        let alone = algebra.keywords(site, &|keyword| *keyword == *one.keyword);
        if let Err(problem) = alone.and_then(|formula| algebra.expand(formula)) {
            problems.push(*problem);
        }
    }
    problems.append(&mut algebra.relaxed);
    problems
}

fn pointer(algebra: &Algebra<'_>, documents: &Documents, one: &Met) -> String {
    let inside = documents.pointer(one.value);
    match documents.document(one.value) {
        0 => inside,
        other => format!("{}{inside}", algebra.resolver.address_of_document(other)),
    }
}

/// A keyword that restricts nothing although somebody may expect that it does.
#[derive(Debug, Clone)]
struct Dropped {
    kind: GrammarWarningKind,
    message: String,
    hint: String,
    value: NodeId,
}

/// One warning for each keyword that is dropped for some reason, at its first place.
pub(super) fn warnings(resolver: &Resolver, root: NodeId, options: &SchemaOptions) -> Vec<GrammarWarning> {
    let mut told = HashSet::new();
    let mut warnings: Vec<GrammarWarning> = Vec::new();
    let documents = &resolver.documents;
    for Met { keyword, value, fate, .. } in survey(resolver, root, options) {
        let dropped = match fate {
            Fate::Unknown(hint) => Dropped {
                kind: GrammarWarningKind::UnknownKeyword,
                message: format!("{} is no keyword of any draft: it restricts nothing", quoted(&keyword)),
                hint,
                value,
            },
            Fate::Lost(why, hint) => Dropped {
                kind: GrammarWarningKind::WithoutEffect,
                message: format!("{} restricts nothing here: {why}", quoted(&keyword)),
                hint: hint.to_owned(),
                value,
            },
            _ => continue,
        };
        // Other documents are told of where they are the schema.
        if documents.document(dropped.value) == 0 && told.insert(dropped.message.clone()) {
            warnings.push(dropped.shown(documents));
        }
    }
    bounded(warnings)
}

/// The warnings of a schema's keywords alone, as its grammar has them; none where the text is not JSON.
pub(in crate::grammar) fn keyword_warnings(options: &SchemaOptions, text: &str) -> Vec<GrammarWarning> {
    let mut documents = Documents::default();
    let Ok(root) = documents.read(text) else { return Vec::new() };
    let resolver = Resolver::new(documents, &[(String::new(), root)], options);
    warnings(&resolver, root, options)
}

/// As many warnings as are shown of a grammar; the last says how many more there are.
fn bounded(mut warnings: Vec<GrammarWarning>) -> Vec<GrammarWarning> {
    let more = warnings.len().saturating_sub(MOST_SHOWN);
    warnings.truncate(MOST_SHOWN);
    match warnings.pop() {
        Some(last) if more > 0 => warnings.push(last.with_more(more)),
        Some(last) => warnings.push(last),
        None => {}
    }
    warnings
}

impl Dropped {
    fn shown(self, documents: &Documents) -> GrammarWarning {
        let text = documents.text(documents.document(self.value));
        let span = key_span(text, documents.span(self.value));
        GrammarWarning::new(self.kind, self.message, Source::new(text), span, self.hint)
    }
}

fn quoted(keyword: &str) -> String {
    crate::grammar::error::quoted(keyword)
}

/// Where the key of a member stands whose value is at `value`.
fn key_span(text: &str, value: Span) -> Span {
    let before = text.get(..value.range().start).unwrap_or_default();
    let key = before.trim_end().strip_suffix(':').map(str::trim_end).and_then(|key| key.strip_suffix('"'));
    // A key with escapes may have a quote inside.
    match key.and_then(|key| Some((key.rfind('"')?, key))) {
        Some((begin, key)) if !key[begin..].contains('\\') && !key[..begin].ends_with('\\') => {
            Span::from_range(begin..key.len() + 1)
        }
        _ => value,
    }
}

impl Algebra<'_> {
    /// What writes the grammar of the schema at `root`, with the warnings of the schema's keywords.
    pub(super) fn builder(&self, limits: &Limits) -> GrammarBuilder {
        let mut builder = GrammarBuilder::new(limits);
        builder.warn(warnings(&self.resolver, self.resolver.root(), self.options));
        builder
    }
}

//! Reports of what a grammar keeps of its schema: the status of every keyword, and warnings of dropped ones.

use std::fmt;

use hashbrown::{HashMap, HashSet};

use super::{
    AutomataCache, SchemaError, SchemaErrorKind, WrittenKeys,
    algebra::{Algebra, MOST_WORK},
    attempt,
    document::{Documents, NodeId, Value},
    emit,
    error::PendingError,
    keywords,
    options::SchemaOptions,
    resolve::Resolver,
    survey::{Fate, Met, survey},
    translate::SchemaSite,
};
use crate::{
    grammar::{
        GrammarBuilder, GrammarWarning, GrammarWarningKind,
        errors::{MOST_SHOWN, quoted},
        source::{Source, Span},
    },
    limits::Limits,
};

/// The status of a keyword of a schema: what becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum KeywordStatus {
    /// The grammar enforces the keyword. `$id`, `$anchor`, `$defs` and the like, by which other keywords find
    /// schemas, are followed too.
    Enforced,
    /// The keyword restricts nothing: it is a remark, or has no effect in its place.
    Annotation,
    /// The keyword is in no draft and no common vocabulary. It restricts nothing, and a warning says so.
    Unknown,
    /// The grammar allows more than the keyword says, because [`SchemaOptions::lenient`] is set.
    Relaxed,
    /// The keyword cannot be enforced, so the schema is refused.
    Refused,
}

impl KeywordStatus {
    /// All statuses.
    pub const ALL: [Self; 5] =
        [Self::Enforced, Self::Annotation, Self::Unknown, Self::Relaxed, Self::Refused];

    /// The name of the status in JSON.
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

/// A keyword of a schema, and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeywordReport {
    /// The JSON pointer of the keyword, as a URI fragment: `#/properties/a/minLength`. In another document
    /// than the schema's own, it stands behind that document's address.
    pub pointer: String,
    /// The keyword.
    pub keyword: String,
    /// The status of the keyword.
    pub status: KeywordStatus,
    /// The reason, if the status alone does not say it.
    pub note: Option<String>,
}

/// A report of what a grammar keeps of its schema.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SchemaReport {
    /// Every keyword of the schema and of the schemas that it refers to, in the order of the text.
    pub keywords: Vec<KeywordReport>,
    /// The error, if there is no grammar. If no single keyword is to blame, such as for a schema without any
    /// value, none is [refused](KeywordStatus::Refused).
    pub error: Option<SchemaError>,
    /// The work of putting the schema's alternatives together, in parts looked at: products, sets that meet,
    /// alternatives and states. A schema is refused past [`MOST_WORK`](Self::MOST_WORK).
    pub work: usize,
}

impl SchemaReport {
    /// The limit on [`work`](Self::work).
    pub const MOST_WORK: usize = MOST_WORK;

    /// The number of keywords with this status.
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
    let automata = AutomataCache::new();
    let mut written = WrittenKeys::new();
    let mut emit = |algebra: &mut Algebra<'_>, start| emit::emit(algebra, start, &mut written, limits);
    let (done, mut algebra, root) = attempt(options, text, limits, &automata, &mut emit)?;
    let Err(first) = done else {
        let met = survey(&algebra.resolver, root, options);
        let problems = std::mem::take(&mut algebra.relaxed);
        let problems = taken_along(&algebra, &met, problems);
        return Ok(SchemaReport {
            keywords: listed(&algebra, &met, problems, KeywordStatus::Relaxed),
            error: None,
            work: algebra.work(),
        });
    };
    let (error, work) =
        (first.clone().finish(&algebra.resolver.documents, &algebra.resolver.names()), algebra.work());
    // A lenient second run goes on behind the first problem, so it meets all of them. Nodes keep their
    // numbers.
    let lenient = options.clone().with_lenient(true);
    let (done, mut algebra, root) = attempt(&lenient, text, limits, &automata, &mut emit)?;
    let met = survey(&algebra.resolver, root, options);
    let mut problems = std::mem::take(&mut algebra.relaxed);
    if let Err(problem) = done {
        if problem.kind != SchemaErrorKind::Limit {
            problems.extend(more_problems(&mut algebra, &met));
        }
        problems.push(*problem);
    }
    problems.push(*first);
    let keywords = listed(&algebra, &met, problems, KeywordStatus::Refused);
    Ok(SchemaReport { keywords, error: Some(error), work })
}

/// The relaxed keywords, with those that are lost together with another one: `additionalProperties` beside a
/// pattern that cannot be had, since nobody knows which keys are additional; all of `propertyNames`, which is
/// complemented as a whole; and all keywords around a combination that was too large, which may have lost any
/// part.
fn taken_along(algebra: &Algebra<'_>, met: &[Met], mut problems: Vec<PendingError>) -> Vec<PendingError> {
    let documents = &algebra.resolver.documents;
    let around = |node| std::iter::successors(Some(node), |&inner| documents.parent(inner));
    let names: HashSet<NodeId> =
        met.iter().filter(|one| &*one.keyword == "propertyNames").map(|one| one.value).collect();
    let in_names = |node| around(node).find(|outer| names.contains(outer));
    let whole = problems.iter().find(|problem| problem.keyword.is_none()).cloned();
    let patterns: HashSet<NodeId> = problems
        .iter()
        .filter(|problem| problem.keyword == Some("patternProperties"))
        .map(|problem| problem.node)
        .collect();
    let lost: HashSet<NodeId> = problems.iter().filter_map(|problem| in_names(problem.node)).collect();
    let Some(first) = problems.first().cloned() else { return problems };
    for one in met.iter().filter(|one| one.fate == Fate::Followed) {
        let Some(keyword) = known(&one.keyword) else { continue };
        let refers = |node| documents.member(node, "$ref").is_some();
        let reason = match (&whole, keyword) {
            (Some(problem), _) => problem.reason.clone(),
            (None, "additionalProperties") if patterns.contains(&one.node) => {
                "which keys are additional is not known without all patterns".to_owned()
            }
            (None, "propertyNames") if refers(one.value) => "what it refers to may not be exact".to_owned(),
            _ if in_names(one.value).is_some_and(|names| lost.contains(&names)) => {
                "another keyword for names cannot be had exactly".to_owned()
            }
            _ => continue,
        };
        problems.push(PendingError { reason, node: one.node, keyword: Some(keyword), ..first.clone() });
    }
    problems
}

/// The keyword as a static string, if it is in the table.
fn known(keyword: &str) -> Option<&'static str> {
    keywords::ASSERTING.iter().chain(keywords::NAMING).copied().find(|name| *name == keyword)
}

/// The reports of all keywords met; those with a problem get `status`.
fn listed(
    algebra: &Algebra<'_>,
    met: &[Met],
    problems: Vec<PendingError>,
    status: KeywordStatus,
) -> Vec<KeywordReport> {
    let (documents, names) = (&algebra.resolver.documents, algebra.resolver.names());
    let mut blamed: HashMap<(NodeId, Option<&'static str>), String> = HashMap::new();
    for problem in problems {
        blamed.entry((problem.node, problem.keyword)).or_insert(problem.reason);
    }
    let keyword = |one: &Met| {
        let own = known(&one.keyword).and_then(|name| blamed.get(&(one.node, Some(name))));
        // The value of the keyword is no schema, so a problem there is the keyword's.
        let under = || blamed.get(&(one.value, None)).filter(|_| !is_object(documents, one.value));
        let (status, note) = match own.or_else(under) {
            Some(reason) => (status, Some(reason.clone())),
            None => plain_status(documents, one),
        };
        KeywordReport {
            pointer: names.pointer(documents, one.value),
            keyword: one.keyword.to_string(),
            status,
            note,
        }
    };
    met.iter().map(keyword).collect()
}

fn is_object(documents: &Documents, node: NodeId) -> bool {
    matches!(documents.value(node), Value::Object(_))
}

fn plain_status(documents: &Documents, one: &Met) -> (KeywordStatus, Option<String>) {
    match &one.fate {
        Fate::Followed => (KeywordStatus::Enforced, None),
        Fate::Remark(why) => (KeywordStatus::Annotation, why.as_ref().map(ToString::to_string)),
        Fate::Lost(why, hint) => (KeywordStatus::Annotation, Some(format!("{why}: {hint}"))),
        Fate::Unknown => (KeywordStatus::Unknown, Some(keywords::advice(documents, &one.keyword, one.value))),
    }
}

/// The problems of keywords by themselves, in a schema that cannot be used anyway.
fn more_problems(algebra: &mut Algebra<'_>, met: &[Met]) -> Vec<PendingError> {
    let mut problems = Vec::new();
    for one in met.iter().filter(|one| one.fate == Fate::Followed) {
        let dialect = algebra.resolver.dialect(one.node);
        let scope = algebra.resolver.enter(Resolver::NOTHING, one.node);
        let site = SchemaSite { node: one.node, scope, dialect };
        algebra.stand_at(one.node);
        let alone = algebra.keywords(site, &|keyword| *keyword == *one.keyword);
        if let Err(problem) = alone.and_then(|formula| algebra.expand(formula)) {
            problems.push(*problem);
        }
    }
    problems.append(&mut algebra.relaxed);
    problems
}

/// The warnings: one for each keyword that is dropped for one reason, at its first place.
pub(super) fn warnings(resolver: &Resolver, root: NodeId, options: &SchemaOptions) -> Vec<GrammarWarning> {
    let met = survey(resolver, root, options);
    let mut told = HashSet::new();
    let dropped = met.iter().filter(|one| {
        let is_dropped = matches!(one.fate, Fate::Unknown | Fate::Lost(..));
        is_dropped && told.insert((&one.keyword, &one.fate))
    });
    let dropped: Vec<&Met> = dropped.collect();
    let more = dropped.len().saturating_sub(MOST_SHOWN);
    let mut warnings: Vec<GrammarWarning> =
        dropped.into_iter().take(MOST_SHOWN).filter_map(|one| warning(resolver, one)).collect();
    if let Some(last) = warnings.pop() {
        warnings.push(if more > 0 { last.with_more(more) } else { last });
    }
    warnings
}

/// The warning of a keyword that restricts nothing although somebody may expect that it does.
fn warning(resolver: &Resolver, one: &Met) -> Option<GrammarWarning> {
    let documents = &resolver.documents;
    let keyword = quoted(&one.keyword);
    let (kind, message, hint) = match &one.fate {
        Fate::Unknown => (
            GrammarWarningKind::UnknownKeyword,
            format!("{keyword} is no keyword of any draft: it restricts nothing"),
            keywords::advice(documents, &one.keyword, one.value),
        ),
        Fate::Lost(why, hint) => (
            GrammarWarningKind::WithoutEffect,
            format!("{keyword} restricts nothing here: {why}"),
            (*hint).to_owned(),
        ),
        Fate::Followed | Fate::Remark(_) => return None,
    };
    let document = documents.document(one.value);
    let text = documents.text(document);
    let span = key_span(text, documents.span(one.value));
    let warning = GrammarWarning::new(kind, message, Source::new(text), span, hint);
    Some(warning.in_document(resolver.name_of_document(document)))
}

/// The warnings about a schema's keywords alone, as its grammar has them; none if the text is not JSON.
pub(in crate::grammar) fn keyword_warnings(options: &SchemaOptions, text: &str) -> Vec<GrammarWarning> {
    let mut documents = Documents::default();
    let Ok(root) = documents.read(text) else { return Vec::new() };
    let resolver = Resolver::new(documents, &[(String::new(), root)], options);
    warnings(&resolver, root, options)
}

/// The span of the key of a member whose value is at `value`.
pub(in crate::grammar) fn key_span(text: &str, value: Span) -> Span {
    let before = text.get(..value.range().start).unwrap_or_default();
    let key = before.trim_end().strip_suffix(':').map(str::trim_end).and_then(|key| key.strip_suffix('"'));
    // A key with escapes may contain a quote.
    match key.and_then(|key| Some((key.rfind('"')?, key))) {
        Some((begin, key)) if !key[begin..].contains('\\') && !key[..begin].ends_with('\\') => {
            Span::from_range(begin..key.len() + 1)
        }
        _ => value,
    }
}

impl Algebra<'_> {
    /// A builder for the grammar of a schema, which holds the warnings about the schema's keywords.
    pub(super) fn builder(&self, limits: &Limits) -> GrammarBuilder {
        let mut builder = GrammarBuilder::new(limits);
        builder.warn(warnings(&self.resolver, self.resolver.root(), self.options));
        builder
    }
}

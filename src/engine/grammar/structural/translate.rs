//! Writes the syntax tree of structural tags as grammar IR.

use hashbrown::HashMap;

use crate::{
    grammar::{
        AnyOrder, Grammar, GrammarBuilder, GrammarError, GrammarWarning, GrammarWarningKind, Pattern, Syntax,
        document::Documents,
        errors::{MOST_SHOWN, quoted},
        ir::embed,
        json_schema::{AutomataCache, SchemaError, SchemaGrammar, SchemaOptions, parse_all},
        regex,
        source::{Source, Span},
    },
    ids::ExprId,
    limits::{LimitExceeded, Limits},
};

use super::{Dispatch, Following, FormatKind, JsonForm, Tag, TagFormat, free::Stops, reader::Structure};

pub(super) type TagResult<T> = Result<T, GrammarError>;

/// Writes a structure that was read from `text` as a grammar.
pub(super) fn translate(
    text: &str,
    read: &Structure,
    options: &SchemaOptions,
    limits: &Limits,
    automata: &AutomataCache,
) -> TagResult<Grammar> {
    let mut translator = TagTranslator {
        text,
        documents: &read.documents,
        options,
        limits,
        automata,
        builder: GrammarBuilder::new(limits),
        warnings: Vec::new(),
        parts: 0,
        free: HashMap::new(),
        schemas: schemas(text, &read.format, options, limits, automata),
    };
    let whole = Span::from_range(0..text.len());
    translator.builder.declare(ROOT);
    let body = translator.format(&read.format)?;
    let TagTranslator { mut builder, warnings, .. } = translator;
    // The name is defined only once.
    let _ = builder.define(ROOT, body, whole);
    builder.warn(warnings);
    builder.finish(ROOT).map_err(|_| GrammarError::syntax("the grammar has no start"))
}

/// The start rule. Rules of grammars inside have a number and a point before their names.
const ROOT: &str = "root";

pub(super) struct TagTranslator<'t, 'l> {
    text: &'t str,
    pub(super) documents: &'t Documents,
    /// The options by which schemas are read.
    pub(super) options: &'l SchemaOptions,
    pub(super) limits: &'l Limits,
    pub(super) automata: &'l AutomataCache,
    builder: GrammarBuilder,
    warnings: Vec<GrammarWarning>,
    /// The number of grammars and schemas inside, by which they are named.
    parts: usize,
    /// The schemas, by their texts, read by all threads beforehand.
    schemas: ReadSchemas<'t>,
    /// Free text, by the strings that it does not hold and its greatest number of characters.
    pub(super) free: HashMap<(Vec<String>, Option<u32>), ExprId>,
}

impl<'t> TagTranslator<'t, '_> {
    /// Translates a format by itself. Formats are nested at most as deep as their JSON, which bounds the
    /// recursion.
    pub(super) fn format(&mut self, format: &TagFormat) -> TagResult<ExprId> {
        let span = format.span;
        match &format.kind {
            FormatKind::Text(text) => self.text(text, span),
            FormatKind::Special(name) => {
                self.builder.special(name, span).map_err(|limit| self.limit(limit, span))
            }
            FormatKind::Schema(schema, form) => {
                let text = self.text;
                self.schema(&text[schema.range()], *form, *schema)
            }
            FormatKind::Parameters(schema, form, marks) => self.parameters(*schema, *form, marks),
            FormatKind::Free { excluded, most_chars } => {
                let excluded = strs(excluded);
                self.without(
                    Stops { wanted: &[], excluded: &excluded, of_tag: false, most_chars: *most_chars },
                    span,
                )
            }
            FormatKind::Grammar { text, syntax, is_escaped } => {
                self.grammar(text, *syntax, *is_escaped, span)
            }
            FormatKind::Regex(text) => {
                let read = regex::leaf(text, "", self.limits);
                let (pattern, warnings) = read.map_err(|error| self.within(error, span))?;
                let room = MOST_SHOWN.saturating_sub(self.warnings.len());
                let source = self.source();
                self.warnings.extend(warnings.into_iter().take(room).map(|one| one.moved(source, |_| span)));
                self.pattern(pattern, span)
            }
            FormatKind::Sequence(parts) => {
                let parts = parts.iter().map(|part| self.format(part)).collect::<TagResult<_>>()?;
                self.sequence(parts, span)
            }
            FormatKind::Choice(parts) => {
                let parts = parts.iter().map(|part| self.format(part)).collect::<TagResult<_>>()?;
                self.choice(parts, span)
            }
            FormatKind::Tag(tag) => self.tag(tag, span),
            FormatKind::Dispatch(dispatch) => self.dispatch(dispatch, &[], span),
            FormatKind::Separated { tags, separator, some, once } => {
                let tags = tags.iter().map(|tag| self.tag(tag, span)).collect::<TagResult<_>>()?;
                let tag = self.choice(tags, span)?;
                let mut all = vec![tag];
                if !once {
                    let separator = self.text(separator, span)?;
                    let more = self.sequence(vec![separator, tag], span)?;
                    all.push(self.repeat(more, 0, None, span)?);
                }
                let all = self.sequence(all, span)?;
                self.repeat(all, u32::from(*some), Some(1), span)
            }
            FormatKind::Repeat { part, min, max } => {
                let part = self.format(part)?;
                self.repeat(part, *min, *max, span)
            }
        }
    }

    fn grammar(&mut self, text: &str, syntax: Syntax, is_escaped: bool, span: Span) -> TagResult<ExprId> {
        let read = Grammar::parse_by(syntax, text, self.options, self.limits, self.automata);
        let mut grammar = read.map_err(|error| self.within(error, span))?;
        if is_escaped {
            grammar = grammar.escaped().ok_or_else(|| {
                let message = "a terminal of this grammar cannot be escaped as JSON wants it";
                let error = self.wrong(message.to_owned(), span);
                error.with_hint("terminals of expressions and texts can, those of automata cannot")
            })?;
        }
        self.embedded(&grammar, span)
    }

    fn tag(&mut self, tag: &Tag, span: Span) -> TagResult<ExprId> {
        let begin = self.text(&tag.begin, span)?;
        let content = self.closed(&tag.content, &strs(&tag.ends))?;
        self.sequence(vec![begin, content], span)
    }

    /// A content and one of its ends. Free text at the end of the content goes up to the first of them.
    fn closed(&mut self, content: &TagFormat, ends: &[&str]) -> TagResult<ExprId> {
        let span = content.span;
        if ends == [""] {
            return self.format(content);
        }
        // With an empty end, a content may end anywhere.
        let open = ends.iter().any(|end| end.is_empty());
        match &content.kind {
            FormatKind::Free { excluded, most_chars } if !open => {
                let nothing = self.sequence(Vec::new(), span)?;
                let excluded = strs(excluded);
                let stops =
                    Stops { wanted: ends, excluded: &excluded, of_tag: true, most_chars: *most_chars };
                self.until(stops, &vec![nothing; ends.len()], span)
            }
            FormatKind::Dispatch(dispatch) if !open => self.dispatch(dispatch, ends, span),
            FormatKind::Sequence(parts) if !parts.is_empty() => {
                let last = parts.len() - 1;
                let mut made =
                    parts[..last].iter().map(|part| self.format(part)).collect::<TagResult<Vec<_>>>()?;
                made.push(self.closed(&parts[last], ends)?);
                self.sequence(made, span)
            }
            FormatKind::Choice(parts) => {
                let parts = parts.iter().map(|part| self.closed(part, ends)).collect::<TagResult<_>>()?;
                self.choice(parts, span)
            }
            _ => {
                let content = self.format(content)?;
                let ends = self.one_of_texts(ends, span)?;
                self.sequence(vec![content, ends], span)
            }
        }
    }

    /// Free text with tags in it, up to the first of `ends` in free text, or to the end of the text.
    fn dispatch(&mut self, dispatch: &Dispatch, ends: &[&str], span: Span) -> TagResult<ExprId> {
        let Dispatch { triggers, excluded, some, once } = dispatch;
        let texts: Vec<&str> = triggers.iter().map(|trigger| trigger.text.as_str()).collect();
        if let Some(text) = texts.iter().find(|text| excluded.iter().any(|excluded| excluded == *text)) {
            return Err(self.wrong(format!("the trigger {} is excluded", quoted(text)), span));
        }
        let mut follows = Vec::with_capacity(triggers.len());
        for trigger in triggers {
            let ways = trigger.follows.iter().map(|following| match following {
                Following::Tag(tag) => self.tag(tag, span),
                Following::Format(format) => self.format(format),
            });
            let ways = ways.collect::<TagResult<_>>()?;
            follows.push(self.choice(ways, span)?);
        }
        // Free text up to a trigger, and what follows the trigger.
        let not_in_tags = [&strs(excluded), ends].concat();
        let stops = Stops { wanted: &texts, excluded: &not_in_tags, of_tag: false, most_chars: None };
        let to_tag = self.until(stops, &follows, span)?;
        // Free text without a trigger, up to an end.
        let not_at_end = [strs(excluded), texts.clone()].concat();
        let stops = Stops { wanted: ends, excluded: &not_at_end, of_tag: true, most_chars: None };
        let to_end = if ends.is_empty() {
            self.without(stops, span)?
        } else {
            let nothing = self.sequence(Vec::new(), span)?;
            self.until(stops, &vec![nothing; ends.len()], span)?
        };
        let mut first = None;
        if *some {
            let tags = texts.iter().zip(&follows).map(|(text, &follows)| {
                let text = self.text(text, span)?;
                self.sequence(vec![text, follows], span)
            });
            let tags = tags.collect::<TagResult<_>>()?;
            first = Some(self.choice(tags, span)?);
        }
        if *once {
            let tag = first.unwrap_or(to_tag);
            let ends = if ends.is_empty() { &[""] } else { ends };
            let ends = self.one_of_texts(ends, span)?;
            let with_tag = self.sequence(vec![tag, ends], span)?;
            return if *some { Ok(with_tag) } else { self.choice(vec![with_tag, to_end], span) };
        }
        let tags = self.repeat(to_tag, 0, None, span)?;
        self.sequence(first.into_iter().chain([tags, to_end]).collect(), span)
    }

    /// JSON of a schema that stands at `span`. Objects that do not say otherwise have no further members, as
    /// in XGrammar.
    fn schema(&mut self, text: &'t str, form: JsonForm, span: Span) -> TagResult<ExprId> {
        let read = match self.schemas.remove(&(text, form)) {
            Some(read) => read,
            None => form.options(self.options).parse_with(text, self.limits, self.automata),
        };
        let schema = read.map_err(|error| self.of_schema(error, text, span))?;
        self.warn_of_keywords(schema.grammar.warnings(), text, span);
        if schema.grammar.distinct_keys().is_some() {
            self.warn_of_repeated(span);
        }
        self.embedded(&schema.grammar, span)
    }

    /// Passes on the warnings of a schema that stands at `span`.
    pub(super) fn warn_of_keywords(&mut self, warnings: &[GrammarWarning], text: &str, span: Span) {
        let is_part = self.text.get(span.range()) == Some(text);
        let place = |inner: Span| if is_part { inner.shifted(span.start) } else { span };
        for warning in warnings {
            let warning = warning.clone().moved(self.source(), place);
            // Functions of one list have the same words in their schemas.
            let told = self.warnings.iter().any(|told| told.message() == warning.message());
            if !told && self.warnings.len() < MOST_SHOWN {
                self.warnings.push(warning);
            }
        }
    }

    /// The error of a schema that stands at `span`.
    pub(super) fn of_schema(&self, error: SchemaError, text: &str, span: Span) -> GrammarError {
        let source = self.source();
        let error = GrammarError::from(error);
        let is_part = self.text.get(span.range()) == Some(text);
        let moved = error.moved(source, |inner| if is_part { inner.shifted(span.start) } else { span });
        if moved.places().is_empty() { moved.at(source, span, "") } else { moved }
    }

    /// Warns that keys may repeat in objects that the schema at `span` allows.
    pub(super) fn warn_of_repeated(&mut self, span: Span) {
        self.warn(
            GrammarWarningKind::DuplicateKeys,
            "objects of this schema may have a key twice that the schema does not list",
            span,
            "set `additionalProperties` to false, or use the schema as a grammar by itself",
        );
    }

    /// Warns that some strings of the schema at `span` have no text.
    pub(super) fn warn_of_long(&mut self, span: Span) {
        self.warn(
            GrammarWarningKind::LongStrings,
            "a bound on the length of a string between tags is too large to be counted: longer strings than \
             can be are left out",
            span,
            "lengths up to some 100,000 are counted, less where a pattern has many states",
        );
    }

    fn warn(&mut self, kind: GrammarWarningKind, message: &str, span: Span, hint: &str) {
        if self.warnings.len() < MOST_SHOWN {
            self.warnings.push(GrammarWarning::new(kind, message, self.source(), span, hint));
        }
    }

    pub(super) fn embedded(&mut self, grammar: &Grammar, span: Span) -> TagResult<ExprId> {
        self.parts += 1;
        let prefix = format!("{}.", self.parts);
        let name = embed(&mut self.builder, grammar, &prefix, span.start);
        let name = name.map_err(|limit| self.limit(limit, span))?;
        self.builder.rule_ref(&name, span).map_err(|limit| self.limit(limit, span))
    }

    pub(super) fn text(&mut self, text: &str, span: Span) -> TagResult<ExprId> {
        self.pattern(Pattern::literal(text.as_bytes()), span)
    }

    pub(super) fn one_of_texts(&mut self, texts: &[&str], span: Span) -> TagResult<ExprId> {
        let texts = texts.iter().map(|text| self.text(text, span)).collect::<TagResult<_>>()?;
        self.choice(texts, span)
    }

    pub(super) fn pattern(&mut self, pattern: Pattern, span: Span) -> TagResult<ExprId> {
        self.builder.pattern(pattern, span).map_err(|limit| self.limit(limit, span))
    }

    pub(super) fn sequence(&mut self, parts: Vec<ExprId>, span: Span) -> TagResult<ExprId> {
        self.builder.sequence(parts, span).map_err(|limit| self.limit(limit, span))
    }

    pub(super) fn choice(&mut self, parts: Vec<ExprId>, span: Span) -> TagResult<ExprId> {
        self.builder.alternatives(parts, span).map_err(|limit| self.limit(limit, span))
    }

    pub(super) fn list(&mut self, parts: AnyOrder, span: Span) -> TagResult<ExprId> {
        self.builder.any_order(parts, span).map_err(|limit| self.limit(limit, span))
    }

    pub(super) fn repeat(
        &mut self,
        part: ExprId,
        min: u32,
        max: Option<u32>,
        span: Span,
    ) -> TagResult<ExprId> {
        self.builder.repeat(part, min, max, span).map_err(|limit| self.limit(limit, span))
    }

    fn source(&self) -> Source<'t> {
        Source::new(self.text)
    }

    /// Moves an error of a text within a string of the JSON, whose places are not those of the JSON.
    fn within(&self, error: GrammarError, span: Span) -> GrammarError {
        let moved = error.moved(self.source(), |_| span);
        if moved.places().is_empty() { moved.at(self.source(), span, "") } else { moved }
    }

    /// The error of a budget that is used up at `span`.
    pub(super) fn limit(&self, limit: LimitExceeded, span: Span) -> GrammarError {
        GrammarError::limit(limit).at(self.source(), span, "")
    }

    fn wrong(&self, message: String, span: Span) -> GrammarError {
        GrammarError::syntax(message).at(self.source(), span, "")
    }

    pub(super) fn unsupported(&self, message: String, span: Span) -> GrammarError {
        GrammarError::unsupported(message).at(self.source(), span, "")
    }
}

/// The options for schemas in tags: objects have no further members, as in XGrammar, unless they or the
/// options say otherwise.
pub(in crate::grammar) fn options(schemas: &SchemaOptions) -> SchemaOptions {
    schemas.clone().of_types().with_lenient(false).of_part(true)
}

/// Schemas by their texts and forms.
type ReadSchemas<'t> = HashMap<(&'t str, JsonForm), Result<SchemaGrammar, SchemaError>>;

/// Reads all schemas on all cores: many functions have many schemas, and reading them is most of the work.
fn schemas<'t>(
    text: &'t str,
    format: &TagFormat,
    options: &SchemaOptions,
    limits: &Limits,
    automata: &AutomataCache,
) -> ReadSchemas<'t> {
    let mut forms: HashMap<JsonForm, Vec<&str>> = HashMap::new();
    let mut open = vec![format];
    while let Some(format) = open.pop() {
        match &format.kind {
            FormatKind::Schema(span, form) => forms.entry(*form).or_default().push(&text[span.range()]),
            FormatKind::Sequence(parts) | FormatKind::Choice(parts) => open.extend(parts),
            FormatKind::Repeat { part, .. } => open.push(part),
            FormatKind::Tag(tag) => open.push(&tag.content),
            FormatKind::Separated { tags, .. } => open.extend(tags.iter().map(|tag| &tag.content)),
            FormatKind::Dispatch(Dispatch { triggers, .. }) => {
                open.extend(triggers.iter().flat_map(|trigger| &trigger.follows).map(
                    |follows| match follows {
                        Following::Tag(tag) => &tag.content,
                        Following::Format(format) => format,
                    },
                ));
            }
            FormatKind::Text(_)
            | FormatKind::Special(_)
            | FormatKind::Parameters(..)
            | FormatKind::Free { .. }
            | FormatKind::Grammar { .. }
            | FormatKind::Regex(_) => {}
        }
    }
    let mut all = HashMap::new();
    for (form, texts) in forms {
        let read = parse_all(&form.options(options), &texts, limits, automata);
        all.extend(texts.into_iter().map(|text| (text, form)).zip(read));
    }
    all
}

fn strs(strings: &[String]) -> Vec<&str> {
    strings.iter().map(String::as_str).collect()
}

//! Parses JSON into the tree of [formats](super::TagFormat). Each error has line, column and JSON pointer.

use crate::grammar::{
    GrammarError, Syntax,
    document::{Documents, NodeId, Value},
    errors::{quoted, quoted_list},
    json_schema::{arguments::ArgumentMarks, leaf::ValueStyle},
    source::Source,
    suggest::nearest,
};

use super::{Dispatch, Following, FormatKind, JsonForm, Tag, TagFormat, Trigger, value_style};

pub(super) type ReadResult<T> = Result<T, GrammarError>;

/// A text that was read: the JSON, and the format that it describes.
pub(super) struct Structure {
    pub(super) documents: Documents,
    pub(super) format: TagFormat,
}

/// Reads a text.
pub(super) fn read(text: &str) -> ReadResult<Structure> {
    let mut documents = Documents::default();
    let root = documents.read(text).map_err(|wrong| wrong.shown(text))?;
    let format = TagReader { text, documents: &documents }.whole(root)?;
    Ok(Structure { documents, format })
}

pub(super) struct TagReader<'t, 'd> {
    text: &'t str,
    pub(super) documents: &'d Documents,
}

impl TagReader<'_, '_> {
    /// Reads the current form, or the first one, which has `structures`.
    fn whole(&self, root: NodeId) -> ReadResult<TagFormat> {
        // XGrammar's type has a default.
        if self.documents.member(root, "type").is_some() {
            let kind = self.string(root, "type")?;
            if kind != "structural_tag" {
                let message =
                    format!("the type of structural tags is `structural_tag`, not {}", quoted(&kind));
                return Err(self.wrong(root, message));
            }
        }
        if self.documents.member(root, "structures").is_none() {
            self.only(root, &["format"])?;
            return self.format(self.needed(root, "format")?);
        }
        self.only(root, &["structures", "triggers"])?;
        let tags = self.list(root, "structures")?;
        let tags = tags.iter().map(|&node| {
            self.only(node, &["begin", "schema", "end"])?;
            let schema = self.needed(node, "schema")?;
            let span = self.documents.span(schema);
            let content = TagFormat { kind: FormatKind::Schema(span, JsonForm::default()), span };
            Ok((node, self.tag_of(node, content)?))
        });
        let tags = tags.collect::<ReadResult<Vec<_>>>()?;
        let triggers = self.triggers(root, tags)?;
        let dispatch = Dispatch { triggers, excluded: Vec::new(), some: false, once: false };
        Ok(TagFormat { kind: FormatKind::Dispatch(dispatch), span: self.documents.span(root) })
    }

    pub(super) fn format(&self, node: NodeId) -> ReadResult<TagFormat> {
        let kind = self.string(node, "type")?;
        let content = |key: &str| self.format(self.needed(node, key)?);
        let list = |list: &[_]| list.iter().map(|&part| self.format(part)).collect::<ReadResult<Vec<_>>>();
        let contents = |key: &str| list(self.list(node, key)?);
        let repeat = |min, max| -> ReadResult<FormatKind> {
            self.only(node, &["content"])?;
            Ok(FormatKind::Repeat { part: Box::new(content("content")?), min, max })
        };
        let kind = match kind.as_str() {
            "const_string" => {
                self.only(node, &["value"])?;
                FormatKind::Text(self.string(node, "value")?)
            }
            "json_schema" => self.schema(node)?,
            "qwen_xml_parameter" => {
                self.only(node, &["json_schema"])?;
                self.styled(node, "qwen_xml", JsonForm::default())?
            }
            "any_text" => self.any_text(node)?,
            "grammar" => self.grammar(node)?,
            "regex" => {
                self.only(node, &["pattern"])?;
                FormatKind::Regex(self.string(node, "pattern")?)
            }
            "sequence" => {
                self.only(node, &["elements"])?;
                FormatKind::Sequence(contents("elements")?)
            }
            "or" => {
                self.only(node, &["elements"])?;
                FormatKind::Choice(contents("elements")?)
            }
            "tag" => self.any_tag(node)?,
            "token" => {
                self.only(node, &["token"])?;
                FormatKind::Special(self.special(node, "token")?)
            }
            "token_triggered_tags" => self.token_tags(node)?,
            "token_dispatch" => self.token_rules(node)?,
            "triggered_tags" => {
                self.only(node, &["triggers", "tags", "at_least_one", "stop_after_first", "excludes"])?;
                FormatKind::Dispatch(Dispatch {
                    triggers: self.triggers(node, self.tags(node)?)?,
                    excluded: self.strings(node, "excludes")?,
                    some: self.flag(node, "at_least_one", false)?,
                    once: self.flag(node, "stop_after_first", false)?,
                })
            }
            "dispatch" => {
                self.only(node, &["rules", "loop", "excludes"])?;
                FormatKind::Dispatch(Dispatch {
                    triggers: self.rules(node)?,
                    excluded: self.strings(node, "excludes")?,
                    some: false,
                    once: !self.flag(node, "loop", true)?,
                })
            }
            "tags_with_separator" => {
                self.only(node, &["tags", "separator", "at_least_one", "stop_after_first"])?;
                FormatKind::Separated {
                    tags: self.tags(node)?.into_iter().map(|(_, tag)| tag).collect(),
                    separator: self.string(node, "separator")?,
                    some: self.flag(node, "at_least_one", false)?,
                    once: self.flag(node, "stop_after_first", false)?,
                }
            }
            "optional" => repeat(0, Some(1))?,
            "star" => repeat(0, None)?,
            "plus" => repeat(1, None)?,
            "repeat" => self.repeat(node)?,
            name if OF_TOKENS.contains(&name) => {
                let message = format!("{} is about tokens, and grammars here are about texts", quoted(name));
                return Err(self.unsupported(node, message));
            }
            name => {
                let hint = nearest(name, KNOWN.iter().copied()).map(|near| format!("did you mean `{near}`?"));
                let error = self.wrong(node, format!("there is no format {}", quoted(name)));
                return Err(error.with_hint(
                    hint.unwrap_or_else(|| format!("formats: {}", quoted_list(KNOWN.iter().copied()))),
                ));
            }
        };
        Ok(TagFormat { kind, span: self.documents.span(node) })
    }

    /// A grammar. The notation and the style are not XGrammar's.
    fn grammar(&self, node: NodeId) -> ReadResult<FormatKind> {
        self.only(node, &["grammar", "syntax", "style"])?;
        let is_there = |node: &NodeId| !matches!(self.documents.value(*node), Value::Null);
        let named = |key: &str| {
            self.documents.member(node, key).filter(is_there).map(|value| self.text_at(value)).transpose()
        };
        let (syntax, style) = (named("syntax")?, named("style")?);
        let syntax = match syntax.as_deref() {
            None | Some("ebnf") => Syntax::Ebnf,
            Some("gbnf") => Syntax::Gbnf,
            Some("lark") => Syntax::Lark,
            Some("regex") => Syntax::Regex,
            Some(other) => {
                let error = self.wrong(node, format!("no notation {}", quoted(other)));
                return Err(error.with_hint("notations here: ebnf, gbnf, lark and regex"));
            }
        };
        let is_escaped = match style.as_deref() {
            None => false,
            Some("json_string") => true,
            Some(other) => {
                return Err(self.unsupported(node, format!("the style {} is not supported", quoted(other))));
            }
        };
        Ok(FormatKind::Grammar { text: self.string(node, "grammar")?, syntax, is_escaped })
    }

    fn any_text(&self, node: NodeId) -> ReadResult<FormatKind> {
        self.only(node, &["excludes", "max_chars", "max_tokens"])?;
        if self.number(node, "max_tokens")?.is_some() {
            let place = self.needed(node, "max_tokens")?;
            let error =
                self.unsupported(place, "`max_tokens` counts tokens, and grammars here are about texts");
            return Err(error.with_hint("`max_chars` bounds the characters of free text"));
        }
        let most_chars = self.number(node, "max_chars")?;
        Ok(FormatKind::Free { excluded: self.strings(node, "excludes")?, most_chars })
    }

    fn schema(&self, node: NodeId) -> ReadResult<FormatKind> {
        self.only(node, &["json_schema", "style", "any_order", "max_whitespace_cnt", "excludes"])?;
        if !self.strings(node, "excludes")?.is_empty() {
            let place = self.needed(node, "excludes")?;
            let error = self.unsupported(place, "`excludes` beside a schema is not supported");
            return Err(error.with_hint("a `pattern` in the schema says what a string may not hold"));
        }
        let most_space = match self.number(node, "max_whitespace_cnt")? {
            Some(most) => Some(u8::try_from(most).map_err(|_| {
                let error = self.unsupported(node, "`max_whitespace_cnt` of more than 255 is not supported");
                error.with_hint("white space is bounded without it: see `--whitespace`")
            })?),
            None => None,
        };
        let any_order = self.flag(node, "any_order", false)?;
        let form = JsonForm { any_order, most_space, style: ValueStyle::Json };
        match self.documents.member(node, "style") {
            Some(style) => self.styled(node, &self.text_at(style)?, form),
            None => self.styled(node, "json", form),
        }
    }

    /// JSON of a schema, or arguments of another style.
    fn styled(&self, node: NodeId, style: &str, form: JsonForm) -> ReadResult<FormatKind> {
        let schema = self.needed(node, "json_schema")?;
        match (ArgumentMarks::named(style), value_style(style)) {
            (Some(marks), _) => Ok(FormatKind::Parameters(schema, form, marks)),
            (None, Some(style)) => {
                Ok(FormatKind::Schema(self.documents.span(schema), JsonForm { style, ..form }))
            }
            (None, None) => {
                Err(self.unsupported(node, format!("the style {} is not supported", quoted(style))))
            }
        }
    }

    fn repeat(&self, node: NodeId) -> ReadResult<FormatKind> {
        self.only(node, &["content", "min", "max"])?;
        let max = match self.documents.member(node, "max").map(|max| self.documents.value(max)) {
            Some(Value::Number(text)) if **text == *"-1" => None,
            _ => Some(self.number(node, "max")?.ok_or_else(|| self.missing(node, "max"))?),
        };
        let min = self.number(node, "min")?.ok_or_else(|| self.missing(node, "min"))?;
        if max.is_some_and(|max| max < min) {
            return Err(self.wrong(node, format!("at least {min} times and at most {}", max.unwrap_or(0))));
        }
        Ok(FormatKind::Repeat { part: Box::new(self.format(self.needed(node, "content")?)?), min, max })
    }

    fn tags(&self, node: NodeId) -> ReadResult<Vec<(NodeId, Tag)>> {
        let tags = self.list(node, "tags")?;
        if tags.is_empty() {
            return Err(self.wrong(node, "there are no tags"));
        }
        tags.iter().map(|&tag| Ok((tag, self.tag(tag)?))).collect()
    }

    pub(super) fn tag(&self, node: NodeId) -> ReadResult<Tag> {
        if let Some(kind) = self.documents.member(node, "type").and_then(|kind| self.documents.string(kind))
            && kind != "tag"
        {
            return Err(self.wrong(node, format!("a tag must stand here, not {}", quoted(kind))));
        }
        self.only(node, &["begin", "content", "end"])?;
        self.tag_of(node, self.format(self.needed(node, "content")?)?)
    }

    fn tag_of(&self, node: NodeId, content: TagFormat) -> ReadResult<Tag> {
        Ok(Tag { begin: self.string(node, "begin")?, content, ends: self.ends(node)? })
    }

    /// The texts that end a tag; at least one.
    pub(super) fn ends(&self, node: NodeId) -> ReadResult<Vec<String>> {
        let end = self.needed(node, "end")?;
        let ends = match self.documents.value(end) {
            Value::Array(_) => self.strings(node, "end")?,
            _ => vec![self.string(node, "end")?],
        };
        if ends.is_empty() {
            return Err(self.wrong(end, "a tag that never ends"));
        }
        Ok(ends)
    }

    /// Triggers with their tags: each tag belongs to one trigger, with which it begins.
    fn triggers(&self, node: NodeId, tags: Vec<(NodeId, Tag)>) -> ReadResult<Vec<Trigger>> {
        let triggers = self.strings(node, "triggers")?;
        let place = self.needed(node, "triggers")?;
        let mut found: Vec<Trigger> = Vec::new();
        for text in triggers {
            self.check_trigger(place, &text, &found)?;
            found.push(Trigger { text, follows: Vec::new() });
        }
        for (node, mut tag) in tags {
            let mut fitting = found.iter_mut().filter(|trigger| tag.begin.starts_with(&trigger.text));
            let Some(trigger) = fitting.next() else {
                return Err(self.wrong(node, format!("no trigger begins the tag {}", quoted(&tag.begin))));
            };
            if let Some(other) = fitting.next() {
                return Err(self.wrong(
                    node,
                    format!(
                        "the tag {} begins with {} and {}",
                        quoted(&tag.begin),
                        quoted(&trigger.text),
                        quoted(&other.text)
                    ),
                ));
            }
            tag.begin.drain(..trigger.text.len());
            trigger.follows.push(Following::Tag(tag));
        }
        match found.iter().find(|trigger| trigger.follows.is_empty()) {
            Some(trigger) => {
                let error = self.wrong(place, format!("no tag begins with {}", quoted(&trigger.text)));
                Err(error.with_hint("a string that free text may not hold belongs into `excludes`"))
            }
            None => Ok(found),
        }
    }

    fn rules(&self, node: NodeId) -> ReadResult<Vec<Trigger>> {
        let mut found: Vec<Trigger> = Vec::new();
        for &rule in self.list(node, "rules")? {
            let Value::Array(parts) = self.documents.value(rule) else {
                return Err(self.wrong(rule, "a rule is a list of a text and a format"));
            };
            let &[text, format] = parts.as_slice() else {
                return Err(self.wrong(rule, "a rule is a list of a text and a format"));
            };
            let trigger = self.text_at(text)?;
            self.check_trigger(text, &trigger, &found)?;
            found.push(Trigger { text: trigger, follows: vec![Following::Format(self.format(format)?)] });
        }
        Ok(found)
    }

    fn check_trigger(&self, node: NodeId, text: &str, before: &[Trigger]) -> ReadResult<()> {
        if text.is_empty() {
            return Err(self.wrong(node, "a trigger without a character"));
        }
        if before.iter().any(|other| other.text == text) {
            return Err(self.wrong(node, format!("the trigger {} comes twice", quoted(text))));
        }
        Ok(())
    }

    /// Checks that there are no members but `type` and these.
    pub(super) fn only(&self, node: NodeId, known: &[&str]) -> ReadResult<()> {
        let Value::Object(members) = self.documents.value(node) else { return Ok(()) };
        for (key, value) in members {
            if &**key != "type" && !known.contains(&&**key) {
                let error = self.unsupported(*value, format!("{} is not known here", quoted(key)));
                return Err(error.with_hint(format!("known: {}", quoted_list(known.iter().copied()))));
            }
        }
        Ok(())
    }

    pub(super) fn needed(&self, node: NodeId, key: &str) -> ReadResult<NodeId> {
        if !matches!(self.documents.value(node), Value::Object(_)) {
            return Err(self.wrong(node, "an object must stand here"));
        }
        self.documents.member(node, key).ok_or_else(|| self.missing(node, key))
    }

    pub(super) fn string(&self, node: NodeId, key: &str) -> ReadResult<String> {
        self.text_at(self.needed(node, key)?)
    }

    pub(super) fn text_at(&self, node: NodeId) -> ReadResult<String> {
        let text = self.documents.string(node);
        text.map(str::to_owned).ok_or_else(|| self.wrong(node, "a string must stand here"))
    }

    pub(super) fn list(&self, node: NodeId, key: &str) -> ReadResult<&[NodeId]> {
        let list = self.needed(node, key)?;
        match self.documents.value(list) {
            Value::Array(items) => Ok(items),
            _ => Err(self.wrong(list, "a list must stand here")),
        }
    }

    /// The texts in a member, of at least one character each; none if there is no such member.
    pub(super) fn strings(&self, node: NodeId, key: &str) -> ReadResult<Vec<String>> {
        if self.documents.member(node, key).is_none() {
            return Ok(Vec::new());
        }
        self.list(node, key)?.iter().map(|&item| self.text_at(item)).collect()
    }

    pub(super) fn flag(&self, node: NodeId, key: &str, default: bool) -> ReadResult<bool> {
        match self.documents.member(node, key) {
            None => Ok(default),
            Some(value) => match self.documents.value(value) {
                Value::Bool(flag) => Ok(*flag),
                _ => Err(self.wrong(value, "true or false must stand here")),
            },
        }
    }

    /// The number in a member; none if there is no such member, or null.
    fn number(&self, node: NodeId, key: &str) -> ReadResult<Option<u32>> {
        let Some(value) = self.documents.member(node, key) else { return Ok(None) };
        let number = match self.documents.value(value) {
            Value::Null => return Ok(None),
            Value::Number(text) => text.parse().ok(),
            _ => None,
        };
        number.map(Some).ok_or_else(|| self.wrong(value, "a whole number must stand here"))
    }

    fn missing(&self, node: NodeId, key: &str) -> GrammarError {
        self.wrong(node, format!("{} is missing", quoted(key)))
    }

    pub(super) fn wrong(&self, node: NodeId, message: impl Into<String>) -> GrammarError {
        self.place(GrammarError::syntax(message), node)
    }

    pub(super) fn unsupported(&self, node: NodeId, message: impl Into<String>) -> GrammarError {
        self.place(GrammarError::unsupported(message), node)
    }

    fn place(&self, error: GrammarError, node: NodeId) -> GrammarError {
        let pointer = self.documents.pointer(node);
        error.at(Source::new(self.text), self.documents.span(node), pointer)
    }
}

/// The formats that can be read.
const KNOWN: [&str; 19] = [
    "const_string",
    "json_schema",
    "qwen_xml_parameter",
    "any_text",
    "grammar",
    "regex",
    "sequence",
    "or",
    "tag",
    "triggered_tags",
    "dispatch",
    "tags_with_separator",
    "optional",
    "star",
    "plus",
    "repeat",
    "token",
    "token_triggered_tags",
    "token_dispatch",
];

/// The formats of XGrammar that a grammar of texts cannot express.
const OF_TOKENS: [&str; 2] = ["exclude_token", "any_tokens"];

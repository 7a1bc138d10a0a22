//! Formats of special tokens in structural tags. A special token stands for itself and is no text, so free
//! text beside it is as exact as elsewhere.

use crate::grammar::{
    document::{NodeId, Value},
    errors::quoted,
};

use super::{
    FormatKind, Tag, TagFormat,
    reader::{ReadResult, TagReader},
};

impl TagReader<'_, '_> {
    /// Reads a tag whose begin and end may be special tokens.
    pub(super) fn any_tag(&self, node: NodeId) -> ReadResult<FormatKind> {
        let (begin, end) = (self.needed(node, "begin")?, self.needed(node, "end")?);
        let is_special = |node| matches!(self.documents.value(node), Value::Object(_));
        let (begins, ends) = (is_special(begin), is_special(end));
        if !begins && !ends {
            return Ok(FormatKind::Tag(Box::new(self.tag(node)?)));
        }
        self.only(node, &["begin", "content", "end"])?;
        let mut parts = vec![self.edge(begin)?];
        let content = self.format(self.needed(node, "content")?)?;
        if ends {
            // Free text holds no special token, so it needs no other end.
            parts.extend([content, self.edge(end)?]);
        } else {
            let tag = Tag { begin: String::new(), content, ends: self.ends(node)? };
            parts.push(TagFormat { kind: FormatKind::Tag(Box::new(tag)), span: self.documents.span(node) });
        }
        Ok(FormatKind::Sequence(parts))
    }

    /// Reads a begin or an end: a text, or a special token.
    fn edge(&self, node: NodeId) -> ReadResult<TagFormat> {
        if !matches!(self.documents.value(node), Value::Object(_)) {
            return Ok(TagFormat {
                kind: FormatKind::Text(self.text_at(node)?),
                span: self.documents.span(node),
            });
        }
        // XGrammar's type has a default here.
        if let Some(kind) = self.documents.member(node, "type").and_then(|kind| self.documents.string(kind))
            && kind != "token"
        {
            return Err(self.wrong(node, format!("a text or a token must stand here, not {}", quoted(kind))));
        }
        self.only(node, &["token"])?;
        Ok(TagFormat {
            kind: FormatKind::Special(self.special(node, "token")?),
            span: self.documents.span(node),
        })
    }

    /// Reads free text in which special tokens begin tags.
    pub(super) fn token_tags(&self, node: NodeId) -> ReadResult<FormatKind> {
        let known = ["trigger_tokens", "tags", "exclude_tokens", "at_least_one", "stop_after_first"];
        self.only(node, &known)?;
        let mut triggers = Vec::new();
        for &token in self.list(node, "trigger_tokens")? {
            triggers.push((token, self.special_at(token)?));
        }
        let mut tags = Vec::new();
        for &tag in self.list(node, "tags")? {
            let begin = self.needed(tag, "begin")?;
            let FormatKind::Special(name) = self.edge(begin)?.kind else {
                return Err(self.wrong(begin, "these tags begin with tokens"));
            };
            if !triggers.iter().any(|(_, trigger)| *trigger == name) {
                return Err(self.wrong(begin, format!("{} is no trigger", quoted(&name))));
            }
            tags.push((name, TagFormat { kind: self.any_tag(tag)?, span: self.documents.span(tag) }));
        }
        for (token, trigger) in &triggers {
            if !tags.iter().any(|(name, _)| name == trigger) {
                return Err(self.wrong(*token, format!("no tag begins with {}", quoted(trigger))));
            }
        }
        let tags = tags.into_iter().map(|(_, tag)| tag).collect();
        let some = self.flag(node, "at_least_one", false)?;
        let once = self.flag(node, "stop_after_first", false)?;
        self.among_free_text(node, tags, some, once)
    }

    /// Reads free text in which special tokens are followed by formats.
    pub(super) fn token_rules(&self, node: NodeId) -> ReadResult<FormatKind> {
        self.only(node, &["rules", "loop", "exclude_tokens"])?;
        let mut ways = Vec::new();
        for &rule in self.list(node, "rules")? {
            let Value::Array(parts) = self.documents.value(rule) else {
                return Err(self.wrong(rule, "a rule is a list of a token and a format"));
            };
            let &[token, format] = parts.as_slice() else {
                return Err(self.wrong(rule, "a rule is a list of a token and a format"));
            };
            let (span, special) = (self.documents.span(token), FormatKind::Special(self.special_at(token)?));
            let parts = vec![TagFormat { kind: special, span }, self.format(format)?];
            ways.push(TagFormat { kind: FormatKind::Sequence(parts), span: self.documents.span(rule) });
        }
        let once = !self.flag(node, "loop", true)?;
        self.among_free_text(node, ways, false, once)
    }

    /// Puts such parts into free text: at least one, the first at the beginning (`some`), or at most one, at
    /// the end (`once`). Free text holds no special token, so it needs no stops.
    fn among_free_text(
        &self,
        node: NodeId,
        ways: Vec<TagFormat>,
        some: bool,
        once: bool,
    ) -> ReadResult<FormatKind> {
        let span = self.documents.span(node);
        let format = |kind| TagFormat { kind, span };
        // Free text holds no special token in any case; a token that is text must not be spelled there
        // either.
        let excluded = self.strings(node, "exclude_tokens")?;
        let free = || format(FormatKind::Free { excluded: excluded.clone(), most_chars: None });
        let way = format(FormatKind::Choice(ways));
        let repeat = |part, min, max| format(FormatKind::Repeat { part: Box::new(part), min, max });
        Ok(match (some, once) {
            (true, true) => way.kind,
            // There is free text between two parts, and after the last.
            (true, false) => repeat(format(FormatKind::Sequence(vec![way, free()])), 1, None).kind,
            (false, true) => FormatKind::Sequence(vec![free(), repeat(way, 0, Some(1))]),
            (false, false) => {
                let more = format(FormatKind::Sequence(vec![way, free()]));
                FormatKind::Sequence(vec![free(), repeat(more, 0, None)])
            }
        })
    }

    pub(super) fn special(&self, node: NodeId, key: &str) -> ReadResult<String> {
        self.special_at(self.needed(node, key)?)
    }

    /// The name of a special token. Numbers are refused: they belong to one vocabulary, and a grammar is for
    /// any.
    fn special_at(&self, node: NodeId) -> ReadResult<String> {
        if matches!(self.documents.value(node), Value::Number(_)) {
            let error = self.unsupported(node, "a token by its number");
            return Err(error.with_hint("give its name, as in \"<|python_tag|>\""));
        }
        let name = self.text_at(node)?;
        if name.is_empty() { Err(self.wrong(node, "a token without a name")) } else { Ok(name) }
    }
}

//! Admission: the subset of Jinja that is let in, and templates rewritten so that their work can be bounded.
//!
//! minijinja counts instructions, but one instruction can double a text, and a chain of operators is parsed
//! and dropped by recursion. So chains are short. Constructs that could make a value of any size by
//! themselves (`*`), or pass one on unseen (`with`, `call`, recursive loops), are refused. Each value that
//! outlives its expression, because it is assigned, looped over or given to a macro, goes through the filter
//! [`HELD`], which measures it. Long text between tags becomes an expression, so that it counts as output
//! inside of captures too. Rewriting keeps lines, so that errors name those of the template.
//!
//! For that a template is split into text, expressions, statements and comments, and a tag into tokens. Tags
//! end where they end for minijinja's lexer: outside of strings and brackets.

use std::ops::Range;

use super::error::{ChatError, ChatErrorKind};

/// The filter that measures a value. A template that names it itself is only measured once more.
pub(super) const HELD: &str = "held_value";
/// The filter that measures a value that becomes an attribute of a namespace, which must not hold namespaces.
pub(super) const HELD_INSIDE: &str = "held_attribute";

/// Limit on the bytes of a template.
pub(super) const TEMPLATE_BYTES: usize = 256 << 10;
/// Limit on the tokens of a tag: operators nest as deep as that.
const TAG_TOKENS: usize = 1_000;
/// Limit on the operators of a tag that can make a longer value from shorter ones.
const TAG_JOINS: usize = 64;
/// Limit on the `elif`s of a template: they nest.
const ELIFS: usize = 256;
/// Length of text between tags, in bytes, above which it becomes an expression.
const PLAIN_TEXT: usize = 64;
/// Limit on the bytes of white space in a row between tags.
const BLANKS: usize = 1_024;

/// Statements that are let in.
const STATEMENTS: &str = "\
    for endfor if elif else endif set endset macro endmacro break continue filter endfilter generation \
    endgeneration";

/// Rewrites a template for minijinja.
///
/// # Errors
/// If it is too long or not well-formed, or uses constructs that are not let in.
pub(super) fn admit(source: &str) -> Result<String, ChatError> {
    if source.len() > TEMPLATE_BYTES {
        let message = format!("the chat template has {} bytes, more than {TEMPLATE_BYTES}", source.len());
        return Err(ChatError::new(ChatErrorKind::Limit, message));
    }
    let pieces = pieces(source)?;
    let out = String::with_capacity(source.len() * 2);
    let mut writer = AdmissionWriter { source, out, elifs: 0, captures: Vec::new() };
    for piece in &pieces {
        match piece {
            TemplatePiece::Text(range) => writer.text(&source[range.clone()])?,
            TemplatePiece::Comment(range) => writer.out.push_str(&source[range.clone()]),
            TemplatePiece::Tag(tag) => writer.tag(tag)?,
        }
    }
    Ok(writer.out)
}

struct AdmissionWriter<'s> {
    source: &'s str,
    out: String,
    elifs: usize,
    /// The names that open `set` blocks assign to; empty for a `set` without a block.
    captures: Vec<String>,
}

impl AdmissionWriter<'_> {
    /// Writes text between tags; white space at its ends stays outside, where tags may strip it.
    fn text(&mut self, text: &str) -> Result<(), ChatError> {
        let blanks = text.split(|c: char| !c.is_whitespace()).map(str::len).max().unwrap_or(0);
        if blanks > BLANKS {
            let line = lines(&self.out) + 1;
            let message = format!("{blanks} bytes of white space in a row are more than {BLANKS}");
            return Err(ChatError::syntax(line, message));
        }
        let inner = text.trim();
        if inner.len() <= PLAIN_TEXT {
            self.out.push_str(text);
            return Ok(());
        }
        let start = text.len() - text.trim_start().len();
        self.out.push_str(&text[..start]);
        self.out.push_str("{{ '");
        for c in inner.chars() {
            if matches!(c, '\\' | '\'') {
                self.out.push('\\');
            }
            self.out.push(c);
        }
        self.out.push_str("' }}");
        self.out.push_str(&text[start + inner.len()..]);
        Ok(())
    }

    fn tag(&mut self, tag: &TemplateTag) -> Result<(), ChatError> {
        self.check(tag)?;
        let name = tag.tokens.first().filter(|token| tag.is_statement && token.kind == TokenKind::Name);
        match name.map(|name| self.word(name)) {
            None if tag.is_statement => Err(ChatError::syntax(tag.line, "a statement has no name")),
            None => {
                self.out.push_str(&self.source[tag.range.clone()]);
                Ok(())
            }
            Some(name) => self.statement(tag, name.to_owned().as_str()),
        }
    }

    fn word(&self, token: &TagToken) -> &str {
        &self.source[token.range.clone()]
    }

    /// Refuses constructs that cannot be bounded.
    fn check(&self, tag: &TemplateTag) -> Result<(), ChatError> {
        let wrong = |message: String| ChatError::syntax(tag.line, message);
        if tag.tokens.len() > TAG_TOKENS {
            return Err(wrong(format!("a tag of {} tokens is longer than {TAG_TOKENS}", tag.tokens.len())));
        }
        let mut joins = 0;
        for token in tag.tokens.iter().filter(|token| token.kind == TokenKind::Sign) {
            match self.word(token) {
                sign @ ("*" | "**") => {
                    return Err(wrong(format!("`{sign}` is not supported in chat templates")).with_hint(
                        "it could make a text of any length; write the product out, or use a loop",
                    ));
                }
                "~" | "+" => joins += 1,
                _ => {}
            }
        }
        if joins > TAG_JOINS {
            return Err(wrong(format!("{joins} joins in one tag are more than {TAG_JOINS}")));
        }
        Ok(())
    }

    fn statement(&mut self, tag: &TemplateTag, name: &str) -> Result<(), ChatError> {
        if !STATEMENTS.split(' ').any(|known| known == name) {
            return Err(ChatError::syntax(tag.line, format!("`{name}` is not supported in chat templates"))
                .with_hint("statements are for, if, set, macro, filter, break and continue"));
        }
        self.elifs += usize::from(name == "elif");
        if self.elifs > ELIFS {
            return Err(ChatError::syntax(tag.line, format!("more than {ELIFS} `elif`")));
        }
        let body = tag.range.start..tag.close;
        let (source, close) = (self.source, &self.source[tag.close..tag.range.end]);
        match name {
            // These mark text for training, and change none.
            "generation" | "endgeneration" => {
                let first = &tag.tokens[0].range;
                self.out.push_str(&source[body.start..first.start]);
                self.out.push_str(if name == "generation" { "if true" } else { "endif" });
                self.out.push_str(&source[first.end..tag.range.end]);
            }
            "set" => match self.sign(tag, "=") {
                Some(at) => {
                    let is_attribute = tag.tokens[..at].iter().any(|token| self.word(token) == ".");
                    let filter = if is_attribute { HELD_INSIDE } else { HELD };
                    self.hold(tag, tag.tokens[at].range.end, tag.close, filter);
                }
                None => {
                    let end = self.sign(tag, "|").map_or(tag.close, |at| tag.tokens[at].range.start);
                    let start = tag.tokens[0].range.end.min(end);
                    self.captures.push(source[start..end].to_owned());
                    self.out.push_str(&source[tag.range.clone()]);
                }
            },
            "endset" => {
                self.out.push_str(&source[tag.range.clone()]);
                if let Some(name) = self.captures.pop() {
                    self.out.push_str(&format!("{{% set {name} = ({name})|{HELD} {close}"));
                }
            }
            "for" => self.loop_over(tag)?,
            "macro" => {
                self.out.push_str(&source[tag.range.clone()]);
                for parameter in self.parameters(tag) {
                    self.out.push_str(&format!("{{% set {parameter} = ({parameter})|{HELD} {close}"));
                }
            }
            _ => self.out.push_str(&source[tag.range.clone()]),
        }
        Ok(())
    }

    /// The position of the first such sign outside of brackets.
    fn sign(&self, tag: &TemplateTag, sign: &str) -> Option<usize> {
        tag.tokens.iter().position(|token| token.depth == 0 && self.word(token) == sign)
    }

    fn loop_over(&mut self, tag: &TemplateTag) -> Result<(), ChatError> {
        let outside = |word: &str| {
            let is_it = |token: &&TagToken| {
                token.depth == 0 && token.kind == TokenKind::Name && self.word(token) == word
            };
            tag.tokens.iter().find(is_it).map(|token| token.range.clone())
        };
        if outside("recursive").is_some() {
            return Err(ChatError::syntax(tag.line, "recursive loops are not supported in chat templates"));
        }
        let Some(start) = outside("in") else {
            return Err(ChatError::syntax(tag.line, "a loop without `in`"));
        };
        let end = outside("if").map_or(tag.close, |range| range.start);
        if end < start.end {
            return Err(ChatError::syntax(tag.line, "a loop whose `if` comes before `in`"));
        }
        self.hold(tag, start.end, end, HELD);
        Ok(())
    }

    /// Writes the tag, with the expression at `start..end` measured.
    fn hold(&mut self, tag: &TemplateTag, start: usize, end: usize, filter: &str) {
        let source = self.source;
        self.out.push_str(&source[tag.range.start..start]);
        self.out.push_str(" (");
        self.out.push_str(&source[start..end]);
        self.out.push_str(")|");
        self.out.push_str(filter);
        self.out.push(' ');
        self.out.push_str(&source[end..tag.range.end]);
    }

    /// The names of a macro's parameters.
    fn parameters(&self, tag: &TemplateTag) -> Vec<String> {
        let pairs = tag.tokens.iter().zip(tag.tokens.iter().skip(1));
        let begins = |before: &TagToken| matches!((self.word(before), before.depth), ("(", 0) | (",", 1));
        let names = pairs.filter(|(before, name)| begins(before) && name.kind == TokenKind::Name);
        names.map(|(_, name)| self.word(name).to_owned()).collect()
    }
}

/// A piece of a template. All ranges are of bytes of the template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TemplatePiece {
    /// Text between tags.
    Text(Range<usize>),
    /// An expression `{{ .. }}` or a statement `{% .. %}`.
    Tag(TemplateTag),
    /// A comment `{# .. #}`.
    Comment(Range<usize>),
}

/// A tag: an expression or a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TemplateTag {
    /// True for `{% .. %}`.
    pub(super) is_statement: bool,
    /// The whole tag.
    pub(super) range: Range<usize>,
    /// The start of its closing mark, with a `-` or `+` if it has one.
    pub(super) close: usize,
    /// The tokens between its marks.
    pub(super) tokens: Vec<TagToken>,
    /// The line of its beginning, from 1.
    pub(super) line: usize,
}

/// A token of a tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TagToken {
    pub(super) kind: TokenKind,
    pub(super) range: Range<usize>,
    /// The number of open brackets around it; an opening bracket is outside of itself.
    pub(super) depth: usize,
}

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// A name or a keyword.
    Name,
    /// A number or a string.
    Literal,
    /// An operator, a bracket or a comma.
    Sign,
}

/// Operators of two characters.
const PAIRS: [&str; 6] = ["//", "**", "==", "!=", ">=", "<="];

/// Splits a template. Linear.
///
/// # Errors
/// If a tag, a string or a bracket is not closed, or if one is closed that is not open.
pub(super) fn pieces(source: &str) -> Result<Vec<TemplatePiece>, ChatError> {
    let mut pieces = Vec::new();
    let (mut at, mut line) = (0, 1);
    while at < source.len() {
        let start = tag_start(source, at);
        if start > at {
            pieces.push(TemplatePiece::Text(at..start));
            line += lines(&source[at..start]);
        }
        if start == source.len() {
            break;
        }
        let piece = tag(source, start, line)?;
        let end = match &piece {
            TemplatePiece::Text(range) | TemplatePiece::Comment(range) => range.end,
            TemplatePiece::Tag(tag) => tag.range.end,
        };
        line += lines(&source[start..end]);
        pieces.push(piece);
        at = end;
    }
    Ok(pieces)
}

/// The number of line feeds in a text.
pub(super) fn lines(text: &str) -> usize {
    text.bytes().filter(|&byte| byte == b'\n').count()
}

/// The start of the next tag from `at` on; the end of the text if there is none.
fn tag_start(source: &str, at: usize) -> usize {
    let bytes = source.as_bytes();
    let is_start = |index: &usize| matches!(bytes.get(*index..index + 2), Some(b"{{" | b"{%" | b"{#"));
    (at..source.len()).find(is_start).unwrap_or(source.len())
}

/// Reads the tag that begins at `start`.
fn tag(source: &str, start: usize, line: usize) -> Result<TemplatePiece, ChatError> {
    let unclosed = |what: &str| ChatError::syntax(line, format!("{what} is not closed"));
    let is_statement = match source.as_bytes().get(start + 1) {
        Some(b'#') => {
            let end = source[start + 2..].find("#}").ok_or_else(|| unclosed("a comment"))?;
            return Ok(TemplatePiece::Comment(start..start + 2 + end + 2));
        }
        Some(b'%') => true,
        _ => false,
    };
    let mark = if is_statement { "%}" } else { "}}" };
    let mut at = start + 2;
    if matches!(source.as_bytes().get(at), Some(b'-' | b'+')) {
        at += 1;
    }
    let (mut tokens, mut depth) = (Vec::new(), 0_usize);
    loop {
        at += source[at..].bytes().take_while(u8::is_ascii_whitespace).count();
        let rest = &source[at..];
        if rest.is_empty() {
            return Err(unclosed("a tag"));
        }
        let sign = usize::from(rest.starts_with(['-', '+']));
        if depth == 0 && rest[sign..].starts_with(mark) {
            let range = start..at + sign + mark.len();
            return Ok(TemplatePiece::Tag(TemplateTag { is_statement, range, close: at, tokens, line }));
        }
        let (kind, length) = token(rest).ok_or_else(|| unclosed("a string"))?;
        if kind == TokenKind::Sign && rest.starts_with([')', ']', '}']) {
            depth = depth
                .checked_sub(1)
                .ok_or_else(|| ChatError::syntax(line, format!("`{}` closes nothing", &rest[..length])))?;
        }
        tokens.push(TagToken { kind, range: at..at + length, depth });
        depth += usize::from(kind == TokenKind::Sign && rest.starts_with(['(', '[', '{']));
        at += length;
    }
}

/// The kind and length of the token that `rest` begins with; `None` for a string without an end.
fn token(rest: &str) -> Option<(TokenKind, usize)> {
    let first = rest.chars().next()?;
    let word =
        |rest: &str| rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
    if first == '"' || first == '\'' {
        let mut escaped = false;
        let end = rest[1..].char_indices().find(|&(_, c)| {
            let is_end = c == first && !escaped;
            escaped = c == '\\' && !escaped;
            is_end
        });
        return end.map(|(end, _)| (TokenKind::Literal, end + 2));
    }
    if first.is_ascii_digit() {
        return Some((TokenKind::Literal, word(rest)));
    }
    if first.is_ascii_alphabetic() || first == '_' {
        return Some((TokenKind::Name, word(rest)));
    }
    let pair = PAIRS.iter().any(|pair| rest.starts_with(pair));
    Some((TokenKind::Sign, if pair { 2 } else { first.len_utf8() }))
}

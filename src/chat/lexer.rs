//! Splits a template into text, expressions, statements and comments, and a tag into tokens.
//!
//! Tags end where they end for minijinja's lexer: outside of strings and brackets.

use std::ops::Range;

use super::error::ChatError;

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

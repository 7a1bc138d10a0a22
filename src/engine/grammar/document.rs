//! JSON texts as an arena of values that keeps what grammars in JSON need: the order of keys, numbers as
//! written, and places.
//!
//! All documents of one schema share an arena, so a node's id determines its document. The reader works with
//! a stack of its own, so deep input costs no call stack. Every value knows its parent, which is enough to
//! write the JSON pointer of any place.

use std::collections::HashSet;

use super::{
    GrammarError,
    source::{BYTE_ORDER_MARK, Source, Span},
};
use crate::ids::{Numbered, saturating_u32};

/// Limit on the nesting of a document; deeper text is refused.
const MOST_NESTING: usize = 512;
/// Number of keys up to which duplicates are found by comparing all pairs.
const FEW_KEYS: usize = 8;

/// The id of a value in the arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(super) struct NodeId(u32);

impl NodeId {
    /// The index of the value in the arena.
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A JSON value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Null,
    Bool(bool),
    /// A number as written.
    Number(Box<str>),
    String(Box<str>),
    Array(Vec<NodeId>),
    /// The members in the order of the text; no key comes twice.
    Object(Vec<(Box<str>, NodeId)>),
}

#[derive(Debug)]
struct DocumentNode {
    value: Value,
    span: Span,
    parent: Option<NodeId>,
    document: u32,
}

/// The reason why a text is not a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NotJson {
    pub(super) message: String,
    pub(super) hint: Option<String>,
    /// The place of the mistake.
    pub(super) span: Span,
}

impl NotJson {
    /// Turns it into an error in the text.
    pub(super) fn shown(self, text: &str) -> GrammarError {
        let shown = GrammarError::syntax(self.message).at(Source::new(text), self.span, "");
        match self.hint {
            Some(hint) => shown.with_hint(hint),
            None => shown,
        }
    }
}

/// An arena of documents and their values.
#[derive(Debug, Default)]
pub(super) struct Documents {
    nodes: Numbered<DocumentNode>,
    texts: Numbered<String>,
}

impl Documents {
    /// Reads a document and returns its root. Linear in the text.
    pub(super) fn read(&mut self, text: &str) -> Result<NodeId, NotJson> {
        let too_many = |_| NotJson { message: "too many texts".into(), hint: None, span: Span::default() };
        let document = self.texts.push(text.to_owned(), "texts").map_err(too_many)?;
        let before = self.nodes.len();
        // RFC 8259, section 8.1: a reader of JSON may ignore a byte order mark.
        let at = if text.as_bytes().starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        let root = DocumentReader { text, at, documents: self, document }.document();
        if root.is_err() {
            self.nodes.truncate(before);
        }
        root
    }

    /// The value of a node.
    pub(super) fn value(&self, node: NodeId) -> &Value {
        &self.nodes[node.index()].value
    }

    /// The place of the node in its text.
    pub(super) fn span(&self, node: NodeId) -> Span {
        self.nodes[node.index()].span
    }

    /// The object or array around the node.
    pub(super) fn parent(&self, node: NodeId) -> Option<NodeId> {
        self.nodes[node.index()].parent
    }

    /// The number of the node's document; the first that was read is 0.
    pub(super) fn document(&self, node: NodeId) -> u32 {
        self.nodes[node.index()].document
    }

    /// The text of a document.
    pub(super) fn text(&self, document: u32) -> &str {
        self.texts.get(document as usize).map_or("", String::as_str)
    }

    /// All objects, in the order in which they begin.
    pub(super) fn objects(&self) -> impl Iterator<Item = NodeId> {
        let nodes = (0..).map(NodeId).zip(&*self.nodes);
        nodes.filter(|(_, node)| matches!(node.value, Value::Object(_))).map(|(id, _)| id)
    }

    /// The value of member `key`, if the node is an object that has one.
    pub(super) fn member(&self, node: NodeId, key: &str) -> Option<NodeId> {
        match self.value(node) {
            Value::Object(members) => {
                members.iter().find(|(name, _)| **name == *key).map(|&(_, value)| value)
            }
            _ => None,
        }
    }

    /// The string, if the node is one.
    pub(super) fn string(&self, node: NodeId) -> Option<&str> {
        if let Value::String(text) = self.value(node) { Some(text) } else { None }
    }

    /// The node below `node` that a JSON pointer (RFC 6901, decoded from its URI form) leads to.
    pub(super) fn at_pointer(&self, node: NodeId, pointer: &str) -> Option<NodeId> {
        let mut here = node;
        for segment in pointer.split('/').skip(1) {
            let segment = segment.replace("~1", "/").replace("~0", "~");
            here = match self.value(here) {
                Value::Object(_) => self.member(here, &segment)?,
                Value::Array(items) => {
                    let plain = segment == "0" || !segment.starts_with(['0', '+', '-']);
                    *items.get(segment.parse::<usize>().ok().filter(|_| plain)?)?
                }
                _ => return None,
            };
        }
        Some(here)
    }

    /// The JSON pointer of a node, as a URI fragment: `#/properties/a`.
    pub(super) fn pointer(&self, node: NodeId) -> String {
        let mut segments = Vec::new();
        let mut here = node;
        while let Some(parent) = self.parent(here) {
            // Values are numbered in the text's order.
            segments.push(match self.value(parent) {
                Value::Object(members) => match members.binary_search_by_key(&here, |&(_, value)| value) {
                    Ok(at) => members[at].0.replace('~', "~0").replace('/', "~1"),
                    Err(_) => String::new(),
                },
                Value::Array(items) => items.binary_search(&here).unwrap_or_default().to_string(),
                _ => String::new(),
            });
            here = parent;
        }
        let mut pointer = String::from("#");
        for segment in segments.iter().rev() {
            pointer.push('/');
            pointer.push_str(segment);
        }
        pointer
    }
}

struct DocumentReader<'t, 'd> {
    text: &'t str,
    at: usize,
    documents: &'d mut Documents,
    document: u32,
}

/// An array or object whose end has not been read.
struct Open {
    node: NodeId,
    /// The key of the member being read; `None` in arrays.
    key: Option<Box<str>>,
    array: Vec<NodeId>,
    object: Vec<(Box<str>, NodeId)>,
    is_object: bool,
}

impl DocumentReader<'_, '_> {
    fn document(mut self) -> Result<NodeId, NotJson> {
        let root = self.value()?;
        self.space();
        if self.at < self.text.len() {
            return Err(self.wrong("the document ends before this"));
        }
        Ok(root)
    }

    /// Reads one value, with all values below it.
    fn value(&mut self) -> Result<NodeId, NotJson> {
        let mut open: Vec<Open> = Vec::new();
        loop {
            self.space();
            let start = self.at;
            let parent = open.last().map(|open| open.node);
            let mut done = match self.peek() {
                Some(byte @ (b'{' | b'[')) => {
                    if open.len() >= MOST_NESTING {
                        return Err(self.wrong(&format!("values are nested more than {MOST_NESTING} deep")));
                    }
                    self.at += 1;
                    let node = self.push(Value::Null, start, parent)?;
                    let is_object = byte == b'{';
                    let mut new = Open { node, key: None, array: Vec::new(), object: Vec::new(), is_object };
                    self.space();
                    if self.peek() == Some(if is_object { b'}' } else { b']' }) {
                        self.at += 1;
                        Some(self.close(new)?)
                    } else {
                        if is_object {
                            new.key = Some(self.key()?);
                        }
                        open.push(new);
                        None
                    }
                }
                _ => {
                    let value = self.scalar()?;
                    Some(self.push(value, start, parent)?)
                }
            };
            // A finished value goes into the innermost open one, which may be finished by it.
            while let Some(node) = done {
                let Some(mut top) = open.pop() else { return Ok(node) };
                match top.key.take() {
                    Some(key) => top.object.push((key, node)),
                    None => top.array.push(node),
                }
                self.space();
                let end = if top.is_object { b'}' } else { b']' };
                match self.peek() {
                    Some(b',') => {
                        self.at += 1;
                        if top.is_object {
                            top.key = Some(self.key()?);
                        }
                        open.push(top);
                        done = None;
                    }
                    Some(byte) if byte == end => {
                        self.at += 1;
                        done = Some(self.close(top)?);
                    }
                    _ => return Err(self.wrong(&format!("`,` or `{}` is missing here", char::from(end)))),
                }
            }
        }
    }

    fn close(&mut self, open: Open) -> Result<NodeId, NotJson> {
        let node = &mut self.documents.nodes[open.node.index()];
        node.span.end = saturating_u32(self.at);
        node.value = if open.is_object {
            if let Some(key) = duplicate(&open.object) {
                let span = node.span;
                return Err(NotJson {
                    message: format!("the key {key:?} comes twice in one object"),
                    hint: Some("readers disagree on which value counts: leave one out".to_owned()),
                    span,
                });
            }
            Value::Object(open.object)
        } else {
            Value::Array(open.array)
        };
        Ok(open.node)
    }

    fn push(&mut self, value: Value, start: usize, parent: Option<NodeId>) -> Result<NodeId, NotJson> {
        let span = Span::from_range(start..self.at);
        let node = DocumentNode { value, span, parent, document: self.document };
        let id = self.documents.nodes.push(node, "values").map_err(|_| self.wrong("too many values"))?;
        Ok(NodeId(id))
    }

    fn key(&mut self) -> Result<Box<str>, NotJson> {
        self.space();
        if self.peek() != Some(b'"') {
            return Err(self.wrong("a key in double quotes must stand here"));
        }
        let key = self.string()?;
        self.space();
        if self.peek() != Some(b':') {
            return Err(self.wrong("`:` is missing here"));
        }
        self.at += 1;
        Ok(key)
    }

    fn scalar(&mut self) -> Result<Value, NotJson> {
        let rest = &self.text[self.at..];
        for (word, value) in
            [("null", Value::Null), ("true", Value::Bool(true)), ("false", Value::Bool(false))]
        {
            if rest.starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        match self.peek() {
            Some(b'"') => self.string().map(Value::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(self.wrong("a value must stand here")),
        }
    }

    fn number(&mut self) -> Result<Value, NotJson> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let leading_zero = self.peek() == Some(b'0');
        let digits = self.digits()?;
        if leading_zero && digits > 1 {
            return Err(self.wrong("a number does not begin with a needless 0"));
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(Value::Number(self.text[start..self.at].into()))
    }

    fn digits(&mut self) -> Result<usize, NotJson> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start {
            return Err(self.wrong("a digit is missing here"));
        }
        Ok(self.at - start)
    }

    fn string(&mut self) -> Result<Box<str>, NotJson> {
        self.at += 1;
        let mut text = String::new();
        loop {
            let rest = &self.text[self.at..];
            let plain = rest.find(|c: char| c == '"' || c == '\\' || c < ' ').unwrap_or(rest.len());
            text.push_str(&rest[..plain]);
            self.at += plain;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text.into());
                }
                Some(b'\\') => text.push(self.escape()?),
                Some(_) => return Err(self.wrong("a control character must be escaped")),
                None => return Err(self.wrong("the string does not end")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, NotJson> {
        let letter = self.text.as_bytes().get(self.at + 1).copied();
        let plain = match letter {
            Some(b'u') => return self.unicode_escape(),
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            _ => return Err(self.wrong("no such escape")),
        };
        self.at += 2;
        Ok(plain)
    }

    fn unicode_escape(&mut self) -> Result<char, NotJson> {
        let unit = |reader: &Self, at: usize| {
            let digits = reader.text.get(at + 2..at + 6)?;
            let escape = reader.text.get(at..at + 2)? == "\\u";
            let hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            u16::from_str_radix(digits, 16).ok().filter(|_| escape && hex)
        };
        let first = unit(self, self.at).ok_or_else(|| self.wrong("four hexadecimal digits are missing"))?;
        let second = unit(self, self.at + 6).filter(|low| (0xDC00..0xE000).contains(low));
        let is_high = (0xD800..0xDC00).contains(&first);
        let units = [first, second.unwrap_or_default()];
        let count = if is_high && second.is_some() { 2 } else { 1 };
        match char::decode_utf16(units[..count].iter().copied()).next() {
            Some(Ok(decoded)) => {
                self.at += 6 * count;
                Ok(decoded)
            }
            _ => Err(self.wrong("half of a surrogate pair stands for no character")),
        }
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn wrong(&self, message: &str) -> NotJson {
        let message = format!("not JSON: {message}");
        NotJson { message, hint: None, span: Span::from_range(self.at..self.at) }
    }
}

/// A key that comes twice, if there is one.
fn duplicate(members: &[(Box<str>, NodeId)]) -> Option<&str> {
    if members.len() <= FEW_KEYS {
        let comes_before = |index: usize| members[..index].iter().any(|(key, _)| *key == members[index].0);
        return (0..members.len()).find(|&index| comes_before(index)).map(|index| &*members[index].0);
    }
    let mut seen = HashSet::new();
    members.iter().find(|(key, _)| !seen.insert(key)).map(|(key, _)| &**key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(Documents, NodeId), NotJson> {
        let mut documents = Documents::default();
        documents.read(text).map(|root| (documents, root))
    }

    #[test]
    fn documents_keep_numbers_order_and_pointers() {
        let (documents, root) =
            read(r#" {"b": [1.50, {"a/b~": null}], "a": "\u0061\ud83d\ude00\n"} "#).unwrap();
        let Value::Object(members) = documents.value(root) else { panic!() };
        let keys: Vec<&str> = members.iter().map(|(key, _)| &**key).collect();
        assert_eq!(keys, ["b", "a"]);
        let number = documents.at_pointer(root, "/b/0").unwrap();
        assert_eq!(*documents.value(number), Value::Number("1.50".into()));
        let null = documents.at_pointer(root, "/b/1/a~1b~0").unwrap();
        assert_eq!(documents.pointer(null), "#/b/1/a~1b~0");
        assert_eq!(documents.string(members[1].1), Some("a\u{1F600}\n"));
        assert_eq!(documents.at_pointer(root, "/b/01"), None);
    }

    #[test]
    fn a_byte_order_mark_before_the_text_is_no_part_of_it() {
        let (documents, root) = read("\u{FEFF}\r\n{\"a\":\r\n1}\r\n").unwrap();
        assert_eq!(documents.span(root), Span::new(5, 14));
        let wrong = read("\u{FEFF}{,").unwrap_err().shown("\u{FEFF}{,");
        assert_eq!(wrong.places()[0].position().to_string(), "1:2");
        for text in ["\u{FEFF}", "\u{FEFF}\u{FEFF}1", " \u{FEFF}1", "[\u{FEFF}1]", "1\u{FEFF}"] {
            assert!(read(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn texts_that_are_not_json_are_refused() {
        for text in [
            "",
            "{",
            "[1,]",
            "{\"a\":1,}",
            "01",
            "1.",
            "-",
            "\"\\x\"",
            "\"\n\"",
            "\"\\ud800\"",
            "nul",
            "1 2",
            "{\"a\":1,\"a\":2}",
            "\"\\u+123\"",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
        assert!(read(&"[".repeat(100_000)).is_err());
        let many: Vec<String> = (0..10).map(|key| format!("\"{key}\":0")).collect();
        assert!(read(&format!("{{{}}}", many.join(","))).is_ok());
        assert!(read(&format!("{{{},\"3\":0}}", many.join(","))).unwrap_err().message.contains("twice"));
    }
}

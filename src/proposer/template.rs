//! Text that a grammar leaves no choice about but for its spelling: the template of a JSON Schema.
//!
//! A byte is strictly forced if it alone may follow. In JSON hardly any is: white space may stand between the
//! parts of a value, and a character of a key may be written as an escape. Writers use escapes only where
//! they must, and white space as before. So a backslash is skipped if one other byte may follow, and white
//! space is guessed to be the last run after the same byte. Both are guesses, like all that proposers say.

use std::collections::HashMap;

use crate::session::Constraint;

/// Bytes after which white space is guessed.
const OPENERS: &[u8] = b"{[,:";

/// Forced text, and whether nothing else could come.
#[derive(Debug, Default)]
pub(super) struct Template {
    pub(super) bytes: Vec<u8>,
    /// Was there no byte at which another spelling was skipped?
    pub(super) strict: bool,
}

/// The white space that a text has used: the last run after each of [`OPENERS`], if any followed it.
struct Habits<'t>(HashMap<u8, &'t [u8]>);

impl<'t> Habits<'t> {
    /// Collects the habits of a text. Linear.
    fn of(text: &'t [u8]) -> Self {
        let mut last = HashMap::new();
        for (at, byte) in text.iter().enumerate().filter(|(_, byte)| OPENERS.contains(byte)) {
            let rest = &text[at + 1..];
            let run = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            if run < rest.len() {
                last.insert(*byte, &rest[..run]);
            }
        }
        Self(last)
    }

    fn after(&self, byte: Option<u8>) -> &'t [u8] {
        byte.and_then(|byte| self.0.get(&byte)).copied().unwrap_or_default()
    }
}

impl Template {
    /// Reads on after `before` from the place of `ahead`, up to about `most` bytes. 256 lookups a byte.
    pub(super) fn read(mut ahead: Constraint, before: &[u8], most: usize) -> Self {
        let habits = Habits::of(before);
        let mut written = before.to_vec();
        let mut strict = true;
        while written.len() < before.len() + most && !ahead.is_complete() {
            let Ok(next) = ahead.next_bytes() else { break };
            let only = without_choice(&next, &written);
            // In a text that is free a blank after a comma is nobody's template.
            let in_template = only.is_some() || written.len() > before.len();
            let run = if in_template && next.len() > 1 { habits.after(written.last().copied()) } else { &[] };
            let mut spaced = run.iter().take_while(|byte| ahead.advance_bytes(&[**byte]) == Ok(1)).count();
            written.extend_from_slice(&run[..spaced]);
            if spaced == 0
                && let Some(byte) = only
                && ahead.advance_bytes(&[byte]) == Ok(1)
            {
                written.push(byte);
                spaced = 1;
            }
            if spaced == 0 {
                break;
            }
            strict &= next.len() == 1;
        }
        Self { bytes: written.split_off(before.len()), strict }
    }

    /// Counts the bytes of `text`, from the place of `ahead` on, that leave no choice but that of their
    /// spelling. `None` if the text leaves the language or a budget is used up. 256 lookups a byte.
    pub(super) fn count(mut ahead: Constraint, text: &[u8]) -> Option<usize> {
        let mut count = 0;
        for (at, &byte) in text.iter().enumerate() {
            if !ahead.is_complete() {
                let next = ahead.next_bytes().ok()?;
                count += usize::from(without_choice(&next, &text[..at]) == Some(byte));
            }
            (ahead.advance_bytes(&[byte]) == Ok(1)).then_some(())?;
        }
        Some(count)
    }
}

/// Returns the only one of these bytes that is more than spelling after `before`.
fn without_choice(next: &[u8], before: &[u8]) -> Option<u8> {
    // In a string a blank is a character, and neither tabs nor line breaks can stand there.
    let between = next.iter().any(|byte| matches!(byte, b'\t' | b'\n' | b'\r')) || indents(before);
    let spelling = |byte: u8| byte == b'\\' || between && byte.is_ascii_whitespace();
    let mut solid = next.iter().copied().filter(|&byte| next.len() == 1 || !spelling(byte));
    solid.next().filter(|_| solid.next().is_none())
}

/// Is the line that a text ends in empty but for blanks? Then a blank after it is indentation.
fn indents(text: &[u8]) -> bool {
    text.iter().rev().find(|byte| **byte != b' ') == Some(&b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Compiler, Grammar, Limits, Syntax, TokenId, Vocabulary};

    const SCHEMA: &str = r#"{
        "type": "object", "required": ["name", "kind"], "additionalProperties": false,
        "properties": {"name": {"type": "string"}, "kind": {"enum": ["apple tree", "apple"]}}
    }"#;

    fn constraint(syntax: Syntax, text: &str) -> Constraint {
        let bytes = (0..=u8::MAX).map(|byte| (TokenId::new(u32::from(byte)), [byte]));
        let vocabulary = bytes.fold(Vocabulary::builder(), |builder, (id, byte)| builder.token(id, byte));
        let vocabulary = vocabulary.end_of_text(TokenId::new(256)).build().unwrap();
        let grammar = Grammar::parse(syntax, text, &Limits::default()).unwrap();
        Compiler::new(vocabulary).compile(&grammar).unwrap().constraint()
    }

    /// Returns the text that follows `text`, which comes after a prompt.
    fn after(constraint: &Constraint, prompt: &str, text: &str) -> (String, bool) {
        let mut here = constraint.fork();
        assert_eq!(here.advance_bytes(text.as_bytes()), Ok(text.len()), "{text}");
        let found = Template::read(here, format!("{prompt}{text}").as_bytes(), 100);
        (String::from_utf8(found.bytes).unwrap(), found.strict)
    }

    #[test]
    fn templates_are_spelled_as_the_text_before_them() {
        let schema = constraint(Syntax::JsonSchema, SCHEMA);
        let loose = |text: &str| (text.to_owned(), false);
        assert_eq!(after(&schema, "", ""), loose("{\"name\":\""));
        assert_eq!(after(&schema, "", "{\"na"), loose("me\":\""));
        assert_eq!(after(&schema, "{\n  \"a\": [1, 2]}", ""), loose("{\n  \"name\": \""));
        // What the text itself does goes before what the prompt did.
        assert_eq!(after(&schema, "[1, {\"a\": 2}]", "{\"name\":\"a\","), loose(" \"kind\":\"apple"));
        assert_eq!(after(&schema, "", "{ \"name\": \"a\","), loose("\"kind\": \"apple"));
        // A text that is free is nobody's template, whatever it has.
        assert_eq!(after(&schema, "a, b", "{\"name\": \"a,").0, "");
        let (_, strict) = after(&constraint(Syntax::Gbnf, "root ::= \"forced\" [a-z]"), "", "");
        assert!(strict);
    }

    #[test]
    fn bytes_without_a_choice_are_counted() {
        let schema = constraint(Syntax::JsonSchema, SCHEMA);
        let count = |text: &str| Template::count(schema.fork(), text.as_bytes());
        // All but the name and its end, and the end of the apple, which may be a tree.
        let text = "{\"name\":\"abc\",\"kind\":\"apple\"}";
        assert_eq!(count(text), Some(text.len() - "abc\"".len() - 1));
        let spaced = text.replace(':', ": ");
        assert_eq!(count(&spaced), count(text), "white space is no template");
        assert_eq!(count("{}"), None);
    }
}

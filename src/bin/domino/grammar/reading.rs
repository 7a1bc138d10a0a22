//! A text that is read through a constraint piece by piece, up to the place where it leaves the language or a
//! budget ends.
//!
//! Pieces go through the constraint in whole characters, so that a place is always the beginning of one. Of
//! the text read, only the end of the present line is kept.

use domino::{Constraint, StepError};
use serde_json::{Map, Value, json};

use crate::{
    grammar::expected::{END, Expected},
    terminal::{describe, excerpt::MarkedLine, failure},
};

/// Limit on the bytes kept of the line that is being read; an excerpt shows fewer.
const LINE_BYTES: usize = 512;
/// Size in bytes of the parts in which a piece is read again to find where a budget was used up.
const SMALL: usize = 64;

/// A text that is being read, up to the present place.
#[derive(Debug)]
pub(crate) struct Reading {
    state: Constraint,
    /// Number of bytes before this place.
    offset: usize,
    /// Number of line feeds before this place.
    lines: usize,
    /// Number of characters before this place in its line.
    characters: usize,
    /// The end of the line up to here, at most [`LINE_BYTES`].
    line: Vec<u8>,
    /// Bytes that begin a character or the name of a special token, of which more may come.
    held: Vec<u8>,
}

/// The place where a text leaves the language.
#[derive(Debug)]
pub(crate) struct Leaving {
    /// Offset in bytes of the first byte that cannot follow.
    pub(crate) offset: usize,
    /// Number of the line, from 1.
    pub(crate) line: usize,
    /// Column in characters, from 1.
    pub(crate) column: usize,
    /// The character that cannot follow; `None` at the end of the text and for bytes that are no character.
    character: Option<char>,
    /// A description of what cannot follow.
    pub(crate) what: String,
    /// True if the text before this place is in the language.
    pub(crate) complete: bool,
    expected: Expected,
    terminals: Vec<String>,
    excerpt: MarkedLine,
}

/// A text for which there is no answer.
#[derive(Debug)]
pub(crate) struct Unanswered {
    /// The place and the budget in one sentence, with advice.
    told: failure::Told,
    line: usize,
    column: usize,
    rules: Vec<String>,
    terminals: Vec<String>,
}

/// A verdict on a text that was read to its end.
#[derive(Debug)]
pub(crate) enum ReadEnd {
    /// The text is in the language.
    Complete,
    /// More must follow, as described.
    Incomplete(Box<Leaving>),
}

/// The result of reading a piece: `None` if all of it can follow, otherwise the place where it cannot.
pub(crate) type Read = Result<Option<Box<Leaving>>, Box<Unanswered>>;

impl Reading {
    /// Begins a text in `state`.
    pub(crate) fn new(state: Constraint) -> Self {
        Self { state, offset: 0, lines: 0, characters: 0, line: Vec::new(), held: Vec::new() }
    }

    /// The state at the present place.
    pub(crate) fn into_state(self) -> Constraint {
        self.state
    }

    /// Reads on. After an answer other than `Ok(None)` nothing more may be read.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Read {
        let mut text = std::mem::take(&mut self.held);
        text.extend_from_slice(piece);
        let held = unfinished(&text).max(unfinished_name(&text, self.state.specials()));
        self.held = text.split_off(text.len() - held);
        self.read(&text)
    }

    /// Reads the bytes that were held back, at the end of the text.
    pub(crate) fn finish(&mut self) -> Read {
        let mut held = std::mem::take(&mut self.held);
        // Held bytes that only begin the name of a special token are plain text now.
        let begun = held.len() - unfinished(&held);
        if let Some(left) = self.read(&held[..begun])? {
            return Ok(Some(left));
        }
        held.drain(..begun);
        let before = (!held.is_empty()).then(|| self.state.clone());
        let (offset, characters) = (self.offset, self.characters);
        let read = self.read(&held)?;
        // The place of a text that ends inside a character is the beginning of that character.
        if let Some(before) = before
            && read.is_none()
            && !self.state.is_complete()
        {
            self.state = before;
            self.line.truncate(self.line.len() - held.len());
            (self.offset, self.characters) = (offset, characters);
            self.held = held;
        }
        Ok(read)
    }

    /// Judges the text after [`finish`](Self::finish).
    pub(crate) fn end(&mut self) -> ReadEnd {
        if self.held.is_empty() && self.state.is_complete() {
            return ReadEnd::Complete;
        }
        let what = match self.held.is_empty() {
            true => "the text ends too early",
            false => "the text ends inside a character",
        };
        let held = std::mem::take(&mut self.held);
        ReadEnd::Incomplete(Box::new(self.leaving(held.len(), &held, held.len(), None, what.to_owned())))
    }

    fn read(&mut self, mut text: &[u8]) -> Read {
        while let Some((start, name)) = self.state.first_special(text) {
            let name = name.to_owned();
            if let Some(left) = self.read_text(&text[..start])? {
                return Ok(Some(left));
            }
            if !self.state.advance_text(name.as_bytes()).map_err(|error| self.unanswered(error))? {
                let what = format!("the special token `{name}` cannot follow");
                return Ok(Some(Box::new(self.leaving(0, &text[start..], name.len(), None, what))));
            }
            self.pass(name.as_bytes());
            text = &text[start + name.len()..];
        }
        self.read_text(text)
    }

    /// Reads text in which no special token is named.
    fn read_text(&mut self, text: &[u8]) -> Read {
        match self.state.advance_bytes(text) {
            Ok(taken) if taken == text.len() => {
                self.pass(text);
                Ok(None)
            }
            Ok(taken) => self.leave(text, taken).map(Some),
            Err(_) => self.read_slowly(text),
        }
    }

    /// Reads a piece in which a budget was used up again, in small parts, to find where. It may succeed now,
    /// since a step keeps what it has computed.
    fn read_slowly(&mut self, mut text: &[u8]) -> Read {
        while !text.is_empty() {
            let part = &text[..text.len().min(SMALL)];
            let part = &part[..part.len() - unfinished(part)];
            // A part with nothing but the beginning of a character is the end of the text.
            let part = if part.is_empty() { text } else { part };
            match self.state.advance_bytes(part) {
                Ok(taken) if taken == part.len() => self.pass(part),
                Ok(taken) => return self.leave(text, taken).map(Some),
                Err(error) => return Err(self.unanswered(error)),
            }
            text = &text[part.len()..];
        }
        Ok(None)
    }

    /// Reads up to the character in which a text leaves the language, whose byte at `taken` cannot follow.
    fn leave(&mut self, text: &[u8], taken: usize) -> Result<Box<Leaving>, Box<Unanswered>> {
        let (start, character) = character_at(text, taken);
        self.state.advance_bytes(&text[..start]).map_err(|error| self.unanswered(error))?;
        self.pass(&text[..start]);
        let what = match character {
            Some(character) => describe::character(character),
            None => describe::byte(text[taken]),
        };
        let marked = character.map_or(1, char::len_utf8);
        let what = format!("{what} cannot follow");
        Ok(Box::new(self.leaving(taken - start, &text[start..], marked, character, what)))
    }

    /// Describes the present place; `inside` is the number of bytes from there to the one that cannot follow.
    fn leaving(
        &mut self,
        inside: usize,
        rest: &[u8],
        marked: usize,
        character: Option<char>,
        what: String,
    ) -> Leaving {
        Leaving {
            offset: self.offset + inside,
            line: self.lines + 1,
            column: self.characters + 1,
            character,
            what,
            complete: self.state.is_complete(),
            expected: Expected::after(&mut self.state),
            terminals: describe::terminals_of(&self.state),
            excerpt: MarkedLine::new(&self.line, self.line.len() < LINE_BYTES, rest, marked),
        }
    }

    fn unanswered(&self, error: StepError) -> Box<Unanswered> {
        let (line, column) = (self.lines + 1, self.characters + 1);
        let mut told = failure::told_in_place(&error, &self.state);
        told.sentence = format!("no answer at {line}:{column}: {}", told.sentence);
        let rules = error.place().map_or_else(Vec::new, |place| place.rules.clone());
        Box::new(Unanswered { told, line, column, rules, terminals: describe::terminals_of(&self.state) })
    }

    /// Counts text that was read.
    fn pass(&mut self, text: &[u8]) {
        self.offset += text.len();
        let begins = |&&byte: &&u8| byte & 0xC0 != 0x80;
        let last = match text.iter().rposition(|&byte| byte == b'\n') {
            Some(at) => {
                self.lines += text.iter().filter(|&&byte| byte == b'\n').count();
                self.characters = 0;
                self.line.clear();
                &text[at + 1..]
            }
            None => text,
        };
        self.characters += last.iter().filter(begins).count();
        self.line.extend_from_slice(&last[last.len().saturating_sub(LINE_BYTES)..]);
        let surplus = self.line.len().saturating_sub(LINE_BYTES);
        self.line.drain(..surplus);
    }
}

/// Number of bytes at the end that begin a character and do not end it.
fn unfinished(text: &[u8]) -> usize {
    let end = &text[text.len().saturating_sub(3)..];
    let tails = (0..end.len()).map(|at| &end[at..]);
    let cut = |tail: &&[u8]| {
        str::from_utf8(tail).is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
    };
    tails.into_iter().find(cut).map_or(0, <[u8]>::len)
}

/// Number of bytes at the end that begin one of these names and do not end it.
fn unfinished_name(text: &[u8], names: &[String]) -> usize {
    let begins = |name: &String| {
        let most = text.len().min(name.len().saturating_sub(1));
        (1..=most).rev().find(|&length| text.ends_with(&name.as_bytes()[..length]))
    };
    names.iter().filter_map(begins).max().unwrap_or(0)
}

/// Finds the beginning of the character to which the byte at `at` belongs, and the character; the place of
/// the byte itself if it is in none.
fn character_at(text: &[u8], at: usize) -> (usize, Option<char>) {
    for start in at.saturating_sub(3)..=at {
        let chunk = text[start..text.len().min(start + 4)].utf8_chunks().next();
        if let Some(character) = chunk.and_then(|chunk| chunk.valid().chars().next())
            && start + character.len_utf8() > at
        {
            return (start, Some(character));
        }
    }
    (at, None)
}

impl Leaving {
    /// Makes the fields of JSON. `offset` counts bytes and points at the first that cannot follow; `line` and
    /// `column` are those of its character.
    pub(crate) fn fields(&self) -> Map<String, Value> {
        let mut fields = Map::new();
        let character = self.character.map(String::from);
        for (name, value) in [
            ("offset", json!(self.offset)),
            ("line", json!(self.line)),
            ("column", json!(self.column)),
            ("character", json!(character)),
            ("expected", json!(self.expected.named)),
            ("more_expected", json!(self.expected.more)),
            ("terminals", json!(self.terminals)),
        ] {
            fields.insert(name.to_owned(), value);
        }
        fields
    }

    /// The lines that people read below the first line.
    pub(crate) fn lines(&self) -> Vec<String> {
        let MarkedLine { line, caret } = &self.excerpt;
        let mut lines = vec![line.clone(), caret.clone()];
        lines.push(format!("could follow: {}", self.expected.line()));
        if !self.terminals.is_empty() {
            lines.push(format!("in the grammar: {}", self.terminals.join(", ")));
        }
        if self.character == Some('\n') && self.expected.named == [END] && self.expected.more == 0 {
            lines.push("hint: `echo` writes a line end behind its text, `printf` does not".to_owned());
        }
        lines
    }
}

impl Unanswered {
    /// Makes the fields of JSON about the place.
    pub(crate) fn fields(&self) -> Map<String, Value> {
        let mut fields = Map::new();
        fields.insert("line".to_owned(), json!(self.line));
        fields.insert("column".to_owned(), json!(self.column));
        fields.insert("rules".to_owned(), json!(self.rules));
        fields.insert("terminals".to_owned(), json!(self.terminals));
        fields
    }

    /// The place and the budget in one sentence, with advice.
    pub(crate) fn told(&self) -> failure::Told {
        self.told.clone()
    }
}

#[cfg(test)]
mod tests;

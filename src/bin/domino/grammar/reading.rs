//! A text that is read through a constraint piece by piece, up to the place where it leaves the language or a
//! budget ends, and what could follow there: characters and classes of them, most telling first.
//!
//! Pieces go through the constraint in whole characters, so that a place is always the beginning of one. Of
//! the text read, only the end of the present line is kept.

use std::ops::RangeInclusive;

use domino::{Constraint, StepError};
use serde_json::{Value, json};

use crate::terminal::describe::{self, MarkedLine};
use crate::terminal::failure;

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
    pub(crate) told: failure::Told,
    line: usize,
    column: usize,
    rules: Vec<String>,
    terminals: Vec<String>,
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

    /// Reads a whole text.
    pub(crate) fn whole(&mut self, text: &[u8]) -> Read {
        match self.push(text)? {
            None => self.finish(),
            left => Ok(left),
        }
    }

    /// Says what is missing after [`finish`](Self::finish); `None` if the text is in the language.
    pub(crate) fn end(&mut self) -> Option<Box<Leaving>> {
        if self.held.is_empty() && self.state.is_complete() {
            return None;
        }
        let what = match self.held.is_empty() {
            true => "the text ends too early",
            false => "the text ends inside a character",
        };
        let held = std::mem::take(&mut self.held);
        Some(Box::new(self.leaving(held.len(), &held, held.len(), None, what.to_owned())))
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
    pub(crate) fn fields(&self) -> Value {
        let Self { offset, line, column, expected, terminals, .. } = self;
        json!({
            "offset": offset, "line": line, "column": column, "character": self.character.map(String::from),
            "expected": expected.named, "more_expected": expected.more, "terminals": terminals,
        })
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
    pub(crate) fn fields(&self) -> Value {
        let Self { line, column, rules, terminals, .. } = self;
        json!({ "line": line, "column": column, "rules": rules, "terminals": terminals })
    }
}

/// Limit on the characters and classes named in a message.
const MOST: usize = 12;
/// Limit on the places of the grammar that are searched for them; a class takes up to a few dozen.
const PLACES: usize = 2048;
/// Limit on the exceptions that are named where nearly everything can follow.
const MOST_EXCEPTIONS: usize = 6;
/// Limit on the characters that such exceptions have together.
const FEW: u32 = 1024;

/// What stands for the end of a text among what could follow.
pub(crate) const END: &str = "the end of the text";

/// The characters and classes that could follow a text.
#[derive(Debug, Default)]
pub(crate) struct Expected {
    /// Characters and classes such as `'a'-'z'`, at most [`MOST`].
    pub(crate) named: Vec<String>,
    /// Number of those that are not named.
    pub(crate) more: usize,
}

impl Expected {
    /// Finds what could follow the text of `state`. If a budget is used up, the names say so: the text is
    /// wrong all the same, and that must be told.
    pub(crate) fn after(state: &mut Constraint) -> Self {
        let mut named: Vec<String> = state.is_complete().then(|| END.to_owned()).into_iter().collect();
        match characters(state) {
            Ok(characters) => named.extend(characters),
            Err(_) => named.push("(not known: a budget is used up)".to_owned()),
        }
        let more = named.len().saturating_sub(MOST);
        named.truncate(MOST);
        Self { named, more }
    }

    /// Joins the names in one line.
    pub(crate) fn line(&self) -> String {
        match (self.named.is_empty(), self.more) {
            (true, _) => "nothing".to_owned(),
            (false, 0) => self.named.join(", "),
            (false, more) => format!("{}, and {more} more", self.named.join(", ")),
        }
    }
}

fn characters(state: &mut Constraint) -> Result<Vec<String>, StepError> {
    let next = state.next_chars(PLACES)?;
    let mut named = name(&next.ranges);
    if !next.complete {
        named.push("more characters that are not ASCII".to_owned());
        return Ok(named);
    }
    // A grammar may be about bytes: add those that could follow and begin no character that could.
    let mut bytes = state.next_bytes()?;
    bytes.retain(|&byte| !begins_one(byte, &next.ranges));
    named.extend(describe::byte_ranges(&bytes));
    Ok(named)
}

/// True if `byte` begins the encoding of a character in `ranges`.
fn begins_one(byte: u8, ranges: &[RangeInclusive<char>]) -> bool {
    let lead = |character: char| character.encode_utf8(&mut [0; 4]).as_bytes()[0];
    // First bytes ascend with characters; those from 0x80 to 0xC1 begin none.
    !(0x80..0xC2).contains(&byte)
        && ranges.iter().any(|range| (lead(*range.start())..=lead(*range.end())).contains(&byte))
}

/// The rank of a name by how telling it is, the most telling first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// A single visible character of ASCII.
    One,
    /// A range of digits or letters of ASCII.
    Class,
    /// A visible character outside ASCII.
    Other,
    /// A range of other characters.
    Range,
    /// White space and characters without a picture.
    Blank,
}

/// Names ascending ranges.
fn name(ranges: &[RangeInclusive<char>]) -> Vec<String> {
    let others = complement(ranges);
    let except = ranked(&others);
    if except.len() <= MOST_EXCEPTIONS && others.iter().map(size).sum::<u32>() <= FEW {
        return vec![match except.split_last() {
            None => "any character".to_owned(),
            Some((only, [])) => format!("any character except {only}"),
            Some((last, others)) => format!("any character except {} and {last}", others.join(", ")),
        }];
    }
    ranked(ranges)
}

fn ranked(ranges: &[RangeInclusive<char>]) -> Vec<String> {
    let mut names: Vec<(Rank, String)> =
        ranges.iter().flat_map(split).flat_map(|range| show(&range)).collect();
    // The sort is stable: names of one rank stay in their order.
    names.sort_by_key(|(rank, _)| *rank);
    names.into_iter().map(|(_, name)| name).collect()
}

/// The ranges of all characters that are in none of these ascending ranges.
fn complement(ranges: &[RangeInclusive<char>]) -> Vec<RangeInclusive<char>> {
    let mut left = Vec::new();
    let mut from = Some('\0');
    for range in ranges {
        if let (Some(from), Some(to)) = (from, before(*range.start()))
            && from <= to
        {
            left.push(from..=to);
        }
        from = after(*range.end());
    }
    left.extend(from.map(|from| from..=char::MAX));
    left
}

/// The character before this one, surrogates left out.
fn before(character: char) -> Option<char> {
    ('\0'..=character).rev().nth(1)
}

fn after(character: char) -> Option<char> {
    (character..=char::MAX).nth(1)
}

fn size(range: &RangeInclusive<char>) -> u32 {
    u32::from(*range.end()) - u32::from(*range.start()) + 1
}

/// Cuts a range into parts that mean something: they end at the borders between kinds of ASCII characters.
fn split(range: &RangeInclusive<char>) -> Vec<RangeInclusive<char>> {
    const BORDERS: [RangeInclusive<char>; 10] = [
        '\0'..='\u{1F}',
        ' '..=' ',
        '!'..='/',
        '0'..='9',
        ':'..='@',
        'A'..='Z',
        '['..='`',
        'a'..='z',
        '{'..='~',
        '\u{7F}'..='\u{7F}',
    ];
    let kinds = BORDERS.into_iter().chain(['\u{80}'..=char::MAX]);
    let part = |kind: RangeInclusive<char>| *range.start().max(kind.start())..=*range.end().min(kind.end());
    kinds.map(part).filter(|part| !part.is_empty()).collect()
}

/// Names a part: two names for two characters, otherwise one.
fn show(part: &RangeInclusive<char>) -> Vec<(Rank, String)> {
    let (start, end) = (*part.start(), *part.end());
    let one = |character: char| {
        let rank = match describe::is_visible(character) {
            true if character.is_ascii() => Rank::One,
            true => Rank::Other,
            false => Rank::Blank,
        };
        (rank, describe::character(character))
    };
    let class = if start.is_ascii_alphanumeric() { Rank::Class } else { Rank::Range };
    let rank = if start.is_ascii_control() { Rank::Blank } else { class };
    match size(part) {
        1 => vec![one(start)],
        2 => vec![one(start), one(end)],
        _ if (start, end) == ('\u{80}', char::MAX) => {
            vec![(rank, "any character that is not ASCII".to_owned())]
        }
        _ => vec![(rank, format!("{}-{}", describe::character(start), describe::character(end)))],
    }
}

#[cfg(test)]
mod expected_tests {
    use super::*;
    use proptest::prelude::*;

    fn of(ranges: &[RangeInclusive<char>]) -> String {
        name(ranges).join(" ")
    }

    #[test]
    fn the_most_telling_characters_come_first() {
        let json =
            ['\t'..='\n', '\r'..='\r', ' '..=' ', '"'..='"', '-'..='-', '0'..='9', '['..='[', 'f'..='f'];
        assert_eq!(of(&json), "'\"' '-' '[' 'f' '0'-'9' '\\t' '\\n' '\\r' ' '");
        assert_eq!(
            of(&['0'..='9', 'A'..='Z', '_'..='_', 'a'..='z', 'é'..='é']),
            "'_' '0'-'9' 'A'-'Z' 'a'-'z' 'é'"
        );
        assert_eq!(of(&['本'..='本']), "'本'");
        assert_eq!(of(&['α'..='ω', '\u{301}'..='\u{301}']), "'α'-'ω' U+0301");
        assert_eq!(of(&['a'..='b', '\u{80}'..=char::MAX]), "'a' 'b' any character that is not ASCII");
        assert_eq!(of(&['+'..=':']), "':' '0'-'9' '+'-'/'");
    }

    #[test]
    fn nearly_all_characters_are_described_by_their_exceptions() {
        assert_eq!(of(&['\0'..=char::MAX]), "any character");
        assert_eq!(of(&['\0'..='!', '#'..='[', ']'..=char::MAX]), "any character except '\"' and '\\'");
        assert_eq!(of(&[' '..=char::MAX]), "any character except U+0000-U+001F");
    }

    #[test]
    fn first_bytes_are_those_of_the_characters_in_the_ranges() {
        let ranges = ['a'..='a', 'é'..='日'];
        let begin: Vec<u8> = (0..=u8::MAX).filter(|&byte| begins_one(byte, &ranges)).collect();
        let mut expected: Vec<u8> = vec![b'a'];
        expected.extend(0xC3..=0xE6);
        assert_eq!(begin, expected);
        let begin: Vec<u8> = (0..=u8::MAX).filter(|&byte| begins_one(byte, &['a'..='é'])).collect();
        assert_eq!(begin, (b'a'..0x80).chain(0xC2..=0xC3).collect::<Vec<u8>>());
    }

    proptest! {
        #[test]
        fn a_complement_has_the_characters_outside_of_the_ranges(
            mut borders in proptest::collection::vec(any::<char>(), 0..6),
        ) {
            borders.sort_unstable();
            borders.dedup();
            let ranges: Vec<_> = borders.chunks_exact(2).map(|pair| pair[0]..=pair[1]).collect();
            let others = complement(&ranges);
            for character in borders.iter().flat_map(|&c| [before(c), Some(c), after(c)]).flatten() {
                let [here, there] =
                    [&ranges, &others].map(|ranges| ranges.iter().any(|range| range.contains(&character)));
                prop_assert_ne!(here, there, "{:?}", character);
            }
        }
    }
}

#[cfg(test)]
mod tests;

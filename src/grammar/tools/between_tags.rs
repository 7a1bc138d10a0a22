//! Arguments between XML tags, read back by their types.
//!
//! A text that reads as JSON of a type that the argument may have is that value; any other text is a string
//! as it stands. The grammar has no text that could be read in both ways.

use std::sync::OnceLock;

use serde::de::IgnoredAny;
use serde_json::Value;

use crate::grammar::{
    json_schema::arguments::{ArgumentTypes, END, NumberTypes, Readings, is_space},
    structural::readings,
};

/// A function whose arguments are read back.
#[derive(Debug)]
pub(super) struct Function {
    /// The schema of its arguments.
    schema: String,
    /// The readings of its arguments, made when it is first called.
    readings: OnceLock<Option<Readings>>,
}

impl Function {
    pub(super) fn new(schema: String) -> Self {
        Self { schema, readings: OnceLock::new() }
    }

    /// The reading of an argument; `None` if the function has no argument of that name.
    pub(super) fn reading(&self, argument: &str) -> Option<ArgumentTypes> {
        self.readings.get_or_init(|| readings(&self.schema)).as_ref()?.of(argument)
    }
}

/// The value at the beginning of `text`, up to its closing tag, as JSON, and the rest behind the tag. `None`
/// if the tag has not come yet, or if more may come (the text is not `whole`) and the tag may be inside of
/// JSON.
pub(super) fn value(text: &str, reading: Option<ArgumentTypes>, whole: bool) -> Option<(String, &str)> {
    // An argument that cannot be a string is JSON, of whatever type.
    let types = reading.filter(|reading| reading.strings);
    if types.is_none_or(|reading| reading.has_others()) {
        let Some(end) = end_of_json(text) else { return if whole { string(text, reading) } else { None } };
        let inside = text[..end].trim_matches(is_space);
        if is_json(inside, types) {
            return Some((inside.to_owned(), &text[end + END.len()..]));
        }
    }
    string(text, reading)
}

/// The string up to the closing tag, and the rest behind it.
fn string(text: &str, reading: Option<ArgumentTypes>) -> Option<(String, &str)> {
    let end = text.find(END)?;
    let inside = &text[..end];
    let string = if reading.is_some_and(|reading| reading.is_listed()) {
        inside.trim_matches(is_space)
    } else {
        let inside = inside.strip_prefix('\n').unwrap_or(inside);
        inside.strip_suffix('\n').unwrap_or(inside)
    };
    Some((Value::from(string).to_string(), &text[end + END.len()..]))
}

/// The place of the closing tag behind JSON: the first one outside of strings.
fn end_of_json(text: &str) -> Option<usize> {
    if !text.trim_start_matches(is_space).starts_with(['"', '[', '{']) {
        return text.find(END);
    }
    let (mut in_string, mut escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'<' if !in_string && text[at..].starts_with(END) => return Some(at),
            _ => {}
        }
    }
    None
}

/// True for JSON of one of the types.
fn is_json(text: &str, types: Option<ArgumentTypes>) -> bool {
    let is_of = |of: fn(&ArgumentTypes) -> bool| types.as_ref().is_none_or(of);
    let allowed = match text.bytes().next() {
        Some(b'"') => return serde_json::from_str::<String>(text).is_ok(),
        Some(b'n') => is_of(|types| types.null),
        Some(b't' | b'f') => is_of(|types| types.boolean),
        Some(b'[') => is_of(|types| types.arrays),
        Some(b'{') => is_of(|types| types.objects),
        Some(b'-' | b'0'..=b'9') => match types.map_or(NumberTypes::All, |types| types.numbers) {
            NumberTypes::None => false,
            NumberTypes::Whole => !has_fraction(text),
            NumberTypes::All => true,
        },
        _ => false,
    };
    allowed && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// True for a number that surely is no integer: it has a digit other than 0 behind its point, and no
/// exponent.
fn has_fraction(number: &str) -> bool {
    let fraction = number.split_once('.').map_or("", |(_, fraction)| fraction);
    !number.contains(['e', 'E']) && fraction.contains(|c: char| c != '0')
}

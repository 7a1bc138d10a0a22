//! The calls in an answer: text in one of the spellings -> functions with arguments.
//!
//! It is made for answers of the grammar, and reads all that the grammar allows; of an answer that was cut
//! off, or is still being written, it reads as much as is there ([`Reader::read`]). A stream is read from its
//! beginning each time it has grown; since calls only grow, the difference to the last result is new.

use std::{
    borrow::Cow,
    sync::{Arc, OnceLock},
};

use hashbrown::HashMap;
use serde::de::IgnoredAny;
use serde_json::{Deserializer, Value};

use super::{Spelling, Tools, is_plain, spelling::CallLayout};
use crate::grammar::{
    json_schema::{
        arguments::{ArgumentMarks, ArgumentTypes, NumberTypes, Readings, is_space},
        leaf::ValueStyle,
    },
    structural::{self, readings},
};

/// An answer in its parts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Answer {
    /// The text for the user.
    pub content: String,
    /// Thoughts among its messages, in Harmony.
    pub reasoning: String,
    /// The functions called, in order.
    pub calls: Vec<Call>,
}

/// A call of a function.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Call {
    /// The name of the function.
    pub name: String,
    /// The arguments, as an object in JSON as the model wrote it; the beginning of one if the answer was cut
    /// off there.
    pub arguments: String,
}

/// A reader of answers in one spelling.
#[derive(Debug, Clone)]
pub struct Reader {
    spelling: Spelling,
    layout: &'static CallLayout,
    /// The functions by their names, if the spelling has strings without quotes.
    functions: Arc<HashMap<String, Function>>,
}

impl Reader {
    /// Makes a reader of answers that call these functions.
    #[must_use]
    pub fn new(spelling: Spelling, tools: &Tools<'_>) -> Self {
        let layout = CallLayout::of(spelling);
        let tools = tools.tools.iter().filter(|_| layout.arguments().is_some());
        let functions = tools.map(|tool| (tool.name.clone(), Function::new(tool.parameters().to_string())));
        Self { spelling, layout, functions: Arc::new(functions.collect()) }
    }

    /// Reads an answer, in which special tokens stand by their names, behind its
    /// [thought](crate::grammar::Thought). While it is still being written (`whole` is false), an end that
    /// may begin a call is left out. Linear.
    #[must_use]
    pub fn read(&self, text: &str, whole: bool) -> Answer {
        let mut answer = Answer::default();
        let mut rest = Rest { text, whole };
        let CallLayout { open, call: [begin, ..], .. } = *self.layout;
        match self.spelling {
            Spelling::Harmony => {
                messages(&mut rest, &mut answer);
                return answer;
            }
            Spelling::Llama => {
                rest.eat(open[0]);
                if !rest.begins(begin) && !rest.is_begin_of(begin) && !rest.is_begin_of(open[0]) {
                    answer.content = rest.all().to_owned();
                }
            }
            _ if !open.is_empty() => self.content(&mut rest, &mut answer, open),
            _ => {}
        }
        while !rest.text.is_empty() {
            if open.is_empty() {
                self.content(&mut rest, &mut answer, &[begin]);
            } else if begin.is_empty() {
                rest.eat(self.layout.separator);
            } else {
                rest.until(&[begin]);
            }
            if !self.call(&mut rest, &mut answer) {
                break;
            }
        }
        answer
    }

    /// Reads free text up to one of the marks, and adds it to the content, without the line feeds between
    /// calls.
    fn content(&self, rest: &mut Rest<'_>, answer: &mut Answer, marks: &[&str]) {
        let (text, found) = rest.until(marks);
        let is_between = !answer.calls.is_empty() && text.trim_matches('\n').is_empty();
        if !is_between {
            let lead = found.map_or("", |_| self.layout.lead);
            answer.content.push_str(text.strip_suffix(lead).unwrap_or(text));
        }
    }

    /// Reads a call behind its beginning. True if it is complete.
    fn call(&self, rest: &mut Rest<'_>, answer: &mut Answer) -> bool {
        let [_, then, end] = self.layout.call;
        let length = rest.text.find(|c| !is_plain(c)).filter(|&length| length > 0);
        let Some((name, behind)) = length.map(|length| rest.text.split_at(length)) else { return false };
        rest.text = behind;
        // Nobody asks for the number of a call.
        let then = then.rsplit('#').next().unwrap_or(then);
        if rest.until(&[then]).1.is_none() {
            return false;
        }
        let (arguments, is_whole) = match self.layout.arguments() {
            Some(marks) => {
                let arguments = self.parameters(rest, name, marks);
                let is_whole = arguments.is_some();
                // An object that may still get members has no text yet.
                (arguments.unwrap_or_default(), is_whole)
            }
            None => {
                let (arguments, is_whole) = match structural::value_style(self.layout.style) {
                    Some(ValueStyle::Delimited(mark)) => rest.styled(mark, ":,{}[]"),
                    Some(ValueStyle::Python) => rest.styled("\"", ":,{}[]=()"),
                    _ => rest.value(),
                };
                (arguments.into_owned(), is_whole && rest.eat(end))
            }
        };
        answer.calls.push(Call { name: name.to_owned(), arguments });
        is_whole
    }

    /// Reads arguments between tags up to the end of the call; `None` if that has not come yet.
    fn parameters(&self, rest: &mut Rest<'_>, function: &str, marks: &ArgumentMarks) -> Option<String> {
        let (function, end) = (self.functions.get(function), self.layout.call[2]);
        let [before_string, before_json] = marks.values;
        let mut arguments: Vec<(&str, String)> = Vec::new();
        while rest.until(&[marks.key, end]).1? == 0 {
            let (name, behind) = rest.text.split_at(rest.text.find(marks.name_end())?);
            rest.text = behind.strip_prefix(marks.named)?;
            if marks.named.ends_with('>') {
                rest.text = rest.text.trim_start_matches(is_space);
            }
            let is_string = rest.eat(before_string);
            if !is_string && !rest.eat(before_json) || !rest.eat(">") {
                return None;
            }
            let told = marks.tell_strings().then_some(is_string);
            let reading = function.and_then(|function| function.reading(name));
            let (value, after) = argument_value(rest, marks, reading, told)?;
            rest.text = after;
            match arguments.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => *known = value,
                None => arguments.push((name, value)),
            }
        }
        let members = arguments.iter().map(|(name, value)| format!("{}:{value}", Value::from(*name)));
        Some(format!("{{{}}}", members.collect::<Vec<_>>().join(",")))
    }
}

/// Reads the messages of Harmony.
fn messages(rest: &mut Rest<'_>, answer: &mut Answer) {
    loop {
        let (header, Some(_)) = rest.until(&["<|message|>"]) else { return };
        let to = header.split("to=functions.").nth(1);
        let name = to.map(|to| to.split(['<', ' ']).next().unwrap_or_default());
        if let Some(name) = name {
            let (arguments, _) = rest.value();
            answer.calls.push(Call { name: name.to_owned(), arguments: arguments.into_owned() });
            return;
        }
        let (text, end) = rest.until(&["<|end|>"]);
        let to = if header.contains("analysis") { &mut answer.reasoning } else { &mut answer.content };
        if !to.is_empty() && !text.is_empty() {
            to.push('\n');
        }
        to.push_str(text);
        if end.is_none() {
            return;
        }
    }
}

/// The part of an answer that has not been read yet.
struct Rest<'t> {
    text: &'t str,
    /// True if the model has ended the answer.
    whole: bool,
}

impl<'t> Rest<'t> {
    fn begins(&self, mark: &str) -> bool {
        self.text.starts_with(mark)
    }

    /// True if the rest may turn out to begin with the mark.
    fn is_begin_of(&self, mark: &str) -> bool {
        !self.whole && self.text.len() < mark.len() && mark.starts_with(self.text)
    }

    fn eat(&mut self, mark: &str) -> bool {
        let found = self.text.strip_prefix(mark);
        self.text = found.unwrap_or(self.text);
        found.is_some()
    }

    fn all(&mut self) -> &'t str {
        std::mem::take(&mut self.text)
    }

    /// Takes the text before the first of the marks, and returns which one it is. Without a mark, takes all
    /// that cannot be the beginning of one.
    fn until(&mut self, marks: &[&str]) -> (&'t str, Option<usize>) {
        let found = marks.iter().enumerate().filter_map(|(which, mark)| Some((self.text.find(mark)?, which)));
        match found.min() {
            Some((at, which)) => {
                let before = &self.text[..at];
                self.text = &self.text[at + marks[which].len()..];
                (before, Some(which))
            }
            None => {
                let text = self.all();
                if self.whole {
                    return (text, None);
                }
                // A line feed before a mark belongs to the mark.
                let begins =
                    |end: &str| marks.iter().any(|mark| mark.starts_with(end.trim_start_matches('\n')));
                let cuts = text.char_indices().map(|(at, _)| at).find(|&at| begins(&text[at..]));
                (&text[..cuts.unwrap_or(text.len())], None)
            }
        }
    }

    /// Takes an object with bare keys, and with the mark at both ends of strings, or as much of it as is
    /// there; `signs` end its words. Returns it as JSON; true if it has ended.
    fn styled(&mut self, mark: &str, signs: &str) -> (Cow<'t, str>, bool) {
        let (mut json, mut depth) = (String::new(), 0_usize);
        while let Some(c) = self.text.chars().next().filter(|_| !self.is_begin_of(mark)) {
            if mark == "\"" && c == '"' {
                json.push_str(&self.value().0);
            } else if self.eat(mark) {
                let (inside, end) = self.until(&[mark]);
                let string = Value::from(inside).to_string();
                json.push_str(if end.is_some() { &string } else { &string[..string.len() - 1] });
            } else if signs.contains(c) || is_space(c) {
                self.text = &self.text[c.len_utf8()..];
                let sign = "()=".find(c).map_or(c, |at| char::from(b"{}:"[at]));
                json.push(sign);
                depth += usize::from("{[".contains(sign));
                depth = depth.saturating_sub(usize::from("}]".contains(sign)));
                if depth == 0 && "}]".contains(sign) {
                    return (json.into(), true);
                }
            } else {
                let end = self.text.find(|c: char| signs.contains(c) || is_space(c));
                let end = end.unwrap_or(self.text.len());
                let (word, behind) = self.text.split_at(end);
                let next = behind.trim_start_matches(is_space);
                if next.is_empty() {
                    // A number may go on, and a word may be a key.
                    break;
                }
                json.push_str(&match word {
                    word if next.starts_with([':', '=']) => Value::from(word).to_string(),
                    "None" => "null".to_owned(),
                    "True" | "False" => word.to_lowercase(),
                    word => word.to_owned(),
                });
                self.text = behind;
            }
        }
        (json.into(), false)
    }

    /// Takes a value of JSON, or as much of it as is there; true if it has ended.
    fn value(&mut self) -> (Cow<'t, str>, bool) {
        let mut values = Deserializer::from_str(self.text).into_iter::<IgnoredAny>();
        let is_whole = matches!(values.next(), Some(Ok(_)));
        let (value, rest) = self.text.split_at(if is_whole { values.byte_offset() } else { self.text.len() });
        self.text = rest;
        (value.trim_start().into(), is_whole)
    }
}

// Arguments between XML tags are read back by their types: a text that reads as JSON of a type that the
// argument may have is that value; any other text is a string as it stands. The grammar has no text that
// could be read in both ways.

/// A function whose arguments are read back.
#[derive(Debug)]
struct Function {
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

/// The value at the beginning of `rest`, up to its closing tag, as JSON, and the text behind the tag. `told`
/// says whether it is a string, where marks say so. `None` if the tag has not come yet, or if more may come
/// and the tag may be inside of JSON.
fn argument_value<'t>(
    rest: &Rest<'t>,
    marks: &ArgumentMarks,
    reading: Option<ArgumentTypes>,
    told: Option<bool>,
) -> Option<(String, &'t str)> {
    // An argument that cannot be a string is JSON, of whatever type.
    let types = reading.filter(|reading| reading.strings && told.is_none());
    let may_be_json = told.map_or(types.is_none_or(|reading| reading.has_others()), |string| !string);
    let end = end_of_json(rest.text, marks.end).filter(|_| may_be_json);
    if may_be_json && end.is_none() && !rest.whole {
        return None;
    }
    let json = end.map(|end| rest.text[..end].trim_matches(is_space)).filter(|json| is_json(json, types));
    let end = end.filter(|_| json.is_some()).or_else(|| rest.text.find(marks.end))?;
    let inside = &rest.text[..end];
    let value = json.map_or_else(
        || {
            let is_listed = reading.is_some_and(|reading| reading.is_listed());
            let string = if is_listed { inside.trim_matches(is_space) } else { marks.string(inside) };
            Value::from(string).to_string()
        },
        str::to_owned,
    );
    Some((value, &rest.text[end + marks.end.len()..]))
}

/// The place of the closing tag behind JSON: the first one outside of strings.
fn end_of_json(text: &str, closing: &str) -> Option<usize> {
    if !text.trim_start_matches(is_space).starts_with(['"', '[', '{']) {
        return text.find(closing);
    }
    let (mut in_string, mut escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'<' if !in_string && text[at..].starts_with(closing) => return Some(at),
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

//! The calls in an answer: text in one of the spellings -> functions with arguments.
//!
//! It is made for answers of the grammar, and reads all that the grammar allows; of an answer that was cut
//! off, or is still being written, it reads as much as is there ([`Reader::read`]). A stream is read from its
//! beginning each time it has grown; since calls only grow, the difference to the last result is new.

use std::sync::{Arc, OnceLock};

use hashbrown::HashMap;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::{Spelling, Tools};
use crate::grammar::{
    json_schema::arguments::{ArgumentTypes, END, NumberTypes, Readings, is_space},
    structural::readings,
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
    /// The functions by their names, if the spelling has strings without quotes.
    functions: Arc<HashMap<String, Function>>,
}

impl Reader {
    /// Makes a reader of answers that call these functions.
    #[must_use]
    pub fn new(spelling: Spelling, tools: &Tools<'_>) -> Self {
        let tools = tools.tools.iter().filter(|_| spelling == Spelling::QwenCoder);
        let functions = tools.map(|tool| (tool.name.clone(), Function::new(tool.parameters().to_string())));
        Self { spelling, functions: Arc::new(functions.collect()) }
    }

    /// Reads an answer, in which special tokens stand by their names, behind its
    /// [thought](crate::grammar::Thought). While it is still being written (`whole` is false), an end that
    /// may begin a call is left out. Linear.
    #[must_use]
    pub fn read(&self, text: &str, whole: bool) -> Answer {
        let mut answer = Answer::default();
        let mut rest = Rest { text, whole };
        if self.spelling == Spelling::Harmony {
            messages(&mut rest, &mut answer);
            return answer;
        }
        match self.spelling {
            Spelling::Hermes => {
                let form = CallForm { begin: "<tool_call>\n{\"name\": \"", then: "\", \"arguments\": " };
                tagged(&mut rest, &mut answer, form, "}\n</tool_call>");
            }
            Spelling::Llama => {
                let form = CallForm { begin: "{\"name\": \"", then: "\", \"parameters\": " };
                rest.eat("<|python_tag|>");
                if rest.is_begin_of("<|python_tag|>") {
                    return answer;
                }
                if rest.begins(form.begin) || rest.is_begin_of(form.begin) {
                    calls(&mut rest, &mut answer, form, "}");
                } else {
                    answer.content = rest.all().to_owned();
                }
            }
            Spelling::Mistral => {
                let form = CallForm { begin: "{\"name\": \"", then: "\", \"arguments\": " };
                let (content, found) = rest.until(&["[TOOL_CALLS]"]);
                content.clone_into(&mut answer.content);
                if found.is_some() {
                    calls(&mut rest, &mut answer, form, "}");
                }
            }
            Spelling::MistralArgs => {
                tagged(&mut rest, &mut answer, CallForm { begin: "[TOOL_CALLS]", then: "[ARGS]" }, "");
            }
            Spelling::DeepSeek => {
                let begin = "<｜tool▁call▁begin｜>function<｜tool▁sep｜>";
                let (content, _) = rest.until(&["<｜tool▁calls▁begin｜>"]);
                content.clone_into(&mut answer.content);
                calls(
                    &mut rest,
                    &mut answer,
                    CallForm { begin, then: "\n```json\n" },
                    "\n```<｜tool▁call▁end｜>",
                );
            }
            Spelling::DeepSeekV31 => {
                let (content, _) = rest.until(&["<｜tool▁calls▁begin｜>"]);
                content.clone_into(&mut answer.content);
                let form = CallForm { begin: "<｜tool▁call▁begin｜>", then: "<｜tool▁sep｜>" };
                calls(&mut rest, &mut answer, form, "<｜tool▁call▁end｜>");
            }
            Spelling::QwenCoder => self.parameters(&mut rest, &mut answer),
            Spelling::Harmony => {}
        }
        answer
    }

    /// Reads calls whose arguments stand between XML tags.
    fn parameters(&self, rest: &mut Rest<'_>, answer: &mut Answer) {
        const BEGIN: &str = "<tool_call>\n<function=";
        loop {
            let (content, found) = rest.until(&[BEGIN]);
            push_content(answer, content, found.is_some());
            let (Some(_), (name, Some(_))) = (found, rest.until(&[">"])) else { return };
            let function = self.functions.get(name);
            let mut arguments: Vec<(&str, String)> = Vec::new();
            let is_whole = loop {
                match rest.until(&["<parameter=", "</function>\n</tool_call>"]).1 {
                    Some(0) => {}
                    end => break end.is_some(),
                }
                let (parameter, Some(_)) = rest.until(&[">"]) else { break false };
                let reading = function.and_then(|function| function.reading(parameter));
                let value = argument_value(rest.text, reading, rest.whole);
                let Some((value, after)) = value else { break false };
                rest.text = after;
                match arguments.iter_mut().find(|(known, _)| *known == parameter) {
                    Some((_, known)) => *known = value,
                    None => arguments.push((parameter, value)),
                }
            };
            // An object that may still get members has no text yet.
            let arguments = if is_whole { object(&arguments) } else { String::new() };
            answer.calls.push(Call { name: name.to_owned(), arguments });
            if !is_whole {
                return;
            }
        }
    }
}

/// The JSON of an object with these members, whose values are JSON.
fn object(members: &[(&str, String)]) -> String {
    let members = members.iter().map(|(name, value)| format!("{}:{value}", Value::from(*name)));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

/// The texts before a function's name, and between its name and its arguments.
#[derive(Clone, Copy)]
struct CallForm {
    begin: &'static str,
    then: &'static str,
}

/// Reads calls within free text.
fn tagged(rest: &mut Rest<'_>, answer: &mut Answer, form: CallForm, end: &str) {
    loop {
        let (content, found) = rest.until(&[form.begin]);
        push_content(answer, content, found.is_some());
        if found.is_none() || !call(rest, answer, form.then) || !rest.eat(end) {
            return;
        }
    }
}

/// Reads calls with nothing but separators between them.
fn calls(rest: &mut Rest<'_>, answer: &mut Answer, form: CallForm, end: &str) {
    while let (_, Some(_)) = rest.until(&[form.begin])
        && call(rest, answer, form.then)
        && rest.eat(end)
    {}
}

/// Reads the name and the arguments of a call. True if the call is complete.
fn call(rest: &mut Rest<'_>, answer: &mut Answer, then: &str) -> bool {
    let (name, Some(_)) = rest.until(&[then]) else { return false };
    let (arguments, is_whole) = rest.value();
    answer.calls.push(Call { name: name.to_owned(), arguments: arguments.to_owned() });
    is_whole
}

/// Reads the messages of Harmony.
fn messages(rest: &mut Rest<'_>, answer: &mut Answer) {
    loop {
        let (header, Some(_)) = rest.until(&["<|message|>"]) else { return };
        let to = header.split("to=functions.").nth(1);
        let name = to.map(|to| to.split(['<', ' ']).next().unwrap_or_default());
        if let Some(name) = name {
            let (arguments, _) = rest.value();
            answer.calls.push(Call { name: name.to_owned(), arguments: arguments.to_owned() });
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

/// Adds free text to the content, without the line feeds between calls.
fn push_content(answer: &mut Answer, text: &str, before_call: bool) {
    let is_between = !answer.calls.is_empty() && text.trim_matches('\n').is_empty();
    if !is_between {
        // A line feed between text and a call belongs to neither.
        let text = if before_call { text.strip_suffix('\n').unwrap_or(text) } else { text };
        answer.content.push_str(text);
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

    /// Takes a value of JSON, or as much of it as is there; true if it has ended.
    fn value(&mut self) -> (&'t str, bool) {
        let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
        for (at, byte) in self.text.bytes().enumerate() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if in_string => escaped = true,
                b'"' => in_string = !in_string,
                _ if in_string => {}
                b'{' | b'[' => depth += 1,
                b'}' | b']' => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        let (value, rest) = self.text.split_at(at + 1);
                        self.text = rest;
                        return (value.trim_start(), true);
                    }
                }
                _ => {}
            }
        }
        (self.all().trim_start(), false)
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

/// The value at the beginning of `text`, up to its closing tag, as JSON, and the rest behind the tag. `None`
/// if the tag has not come yet, or if more may come (the text is not `whole`) and the tag may be inside of
/// JSON.
fn argument_value(text: &str, reading: Option<ArgumentTypes>, whole: bool) -> Option<(String, &str)> {
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

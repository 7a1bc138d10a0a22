//! A row: a line of JSON that asks for a text, or has one; its keys about the drawing of texts, and the
//! columns that it hands on to its answer.

use std::{fmt::Write, num::NonZeroUsize};

use serde_json::{Map, Value};

use crate::flags::drawing::LowOptions;
use crate::rows::keys::{DRAWING, ObjectMembers, RowReader, wrong};
use crate::{files::lines, rows::grammar::RowGrammar, terminal::failure::BadInput};

/// A row as the command reads it.
#[derive(Debug, Default)]
pub(crate) struct Row {
    pub(crate) grammar: RowGrammar,
    /// The text to go on from.
    pub(crate) prompt: Option<String>,
    /// A conversation to go on with, in the model's chat template.
    pub(crate) messages: Option<Vec<Value>>,
    pub(crate) drawing: Drawing,
    pub(crate) text: Option<String>,
    /// The tokens of the text.
    pub(crate) token_ids: Option<Vec<u32>>,
    /// True if the text need only be the beginning of one.
    pub(crate) prefix: Option<bool>,
    /// True if the keywords of the schema are listed.
    pub(crate) report: Option<bool>,
    /// The reason why there is no text.
    error: Option<String>,
}

/// The settings for reading rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowReading {
    pub(crate) reader: RowReader,
    /// True if unknown columns are copied.
    pub(crate) keep: bool,
}

impl RowReading {
    /// Reads line `number` as the columns that its answer repeats, and a row or the error in it.
    pub(crate) fn row(self, line: &[u8], number: usize) -> (Carried, Result<Row, BadInput>) {
        let content = lines::content(line);
        let members = std::str::from_utf8(content)
            .map_err(|_| BadInput::new("not UTF-8"))
            .and_then(ObjectMembers::read);
        let mut members = match members {
            Ok(members) => members,
            Err(error) => {
                return (Carried::line_number(number), Err(error.about(&format!("line {number}"))));
            }
        };
        let mut carried = Carried::take(&mut members, number);
        let row = self.take(members, &mut carried);
        (carried, row.map_err(|error| error.about(&format!("line {number}"))))
    }

    fn take(self, mut members: ObjectMembers<'_>, carried: &mut Carried) -> Result<Row, BadInput> {
        let mut row = Row { grammar: RowGrammar::take(&mut members)?, ..Row::default() };
        match self.reader {
            RowReader::Generate => {
                row.prompt = members.take("prompt")?;
                row.messages = members.take("messages")?;
                if row.prompt.is_some() && row.messages.is_some() {
                    return Err(BadInput::new("a row has a prompt or messages, not both"));
                }
                row.drawing = Drawing::take(&mut members)?;
            }
            RowReader::Check | RowReader::Trace => {
                if let Some(index) = members.take_text("index") {
                    *carried = carried.clone().with_index(index);
                }
                row.text = members.take("text")?;
                row.error = members.take("error")?;
            }
        }
        match self.reader {
            RowReader::Generate => {}
            RowReader::Check => {
                row.prefix = members.take("prefix")?;
                row.report = members.take("report")?;
            }
            RowReader::Trace => row.token_ids = members.take("token_ids")?,
        }
        let columns = self.reader.columns(members, self.keep)?;
        if let (RowReader::Generate, None, None, Some((key, _))) =
            (self.reader, &row.prompt, &row.messages, columns.first())
        {
            // Whoever has columns of their own has what to ask for in one of them.
            let hint = "`prompt` or `messages` say what is asked; `\"prompt\": \"\"` asks for any text";
            return Err(BadInput::new(format!("no prompt beside `{key}`")).hint(hint));
        }
        for (key, text) in columns {
            carried.copy(&key, text);
        }
        Ok(row)
    }
}

impl Row {
    /// The number of texts that it asks for.
    pub(crate) fn texts(&self) -> usize {
        self.drawing.texts.map_or(1, std::num::NonZeroUsize::get)
    }

    /// The text, or the reason why there is none.
    pub(crate) fn text(&self) -> Result<&str, BadInput> {
        match (&self.text, &self.error) {
            (Some(text), _) => Ok(text),
            (None, Some(error)) => Err(BadInput::new(format!("there is no text: {error}"))),
            (None, None) => {
                Err(BadInput::new("there is no text")
                    .hint("a row looks like {\"id\": \"a\", \"text\": \"..\"}"))
            }
        }
    }
}

/// The id of a row, and columns that are copied as they were written.
#[derive(Debug, Clone)]
pub(crate) struct Carried {
    /// The id, in JSON.
    id: String,
    /// Number of the text among several of one row, in JSON.
    index: Option<String>,
    /// Further members, each after a comma.
    more: String,
}

impl Carried {
    /// Takes the columns that every row hands on: `meta`, and its id, which is its line if it has none.
    pub(super) fn take(members: &mut ObjectMembers<'_>, number: usize) -> Self {
        let mut carried = Self::line_number(number);
        if let Some(id) = members.take_text("id") {
            id.clone_into(&mut carried.id);
        }
        if let Some(meta) = members.take_text("meta") {
            carried.copy("meta", meta);
        }
        carried
    }

    /// Names a row that cannot be read by its line.
    fn line_number(number: usize) -> Self {
        Self { id: number.to_string(), index: None, more: String::new() }
    }

    /// Sets the number of the text among several of its row.
    pub(crate) fn with_index(mut self, index: impl ToString) -> Self {
        self.index = Some(index.to_string());
        self
    }

    /// Copies a further column.
    fn copy(&mut self, key: &str, text: &str) {
        // Writing to a string cannot fail.
        let _ = write!(self.more, ",{}:{text}", Value::from(key));
    }

    /// Makes a key that is the same for equal ids, however they are written.
    pub(crate) fn key(&self) -> String {
        let plain = |text: &str| {
            serde_json::from_str(text).map_or_else(|_| text.to_owned(), |value: Value| value.to_string())
        };
        match &self.index {
            Some(index) => format!("{} {}", plain(&self.id), plain(index)),
            None => plain(&self.id),
        }
    }

    /// Names id and index for people.
    pub(crate) fn name(&self) -> String {
        match &self.index {
            Some(index) => format!("id {}, index {index}", self.id),
            None => format!("id {}", self.id),
        }
    }

    /// Writes the line of its answer: these columns, then the members of `answer`.
    pub(crate) fn line(&self, answer: &Value) -> String {
        let index = self.index.as_ref().map_or_else(String::new, |index| format!(",\"index\":{index}"));
        let answer = answer.to_string();
        let members = answer.strip_prefix('{').unwrap_or("}");
        let comma = if members == "}" { "" } else { "," };
        format!("{{\"id\":{}{index}{}{comma}{members}\n", self.id, self.more)
    }
}

/// Reads the key of a line, if it has an id.
pub(crate) fn key_of(members: &mut ObjectMembers<'_>) -> Option<String> {
    if !members.has("id") {
        return None;
    }
    let carried = Carried::take(members, 0);
    Some(match members.take_text("index") {
        Some(index) => carried.with_index(index).key(),
        None => carried.key(),
    })
}

/// Keys under the names of the flags; the flags hold where they are absent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Drawing {
    /// Number of texts of the row, each with a seed of its own.
    pub(crate) texts: Option<NonZeroUsize>,
    /// The other keys.
    changes: Map<String, Value>,
}

impl Drawing {
    /// Takes the keys.
    pub(crate) fn take(members: &mut ObjectMembers<'_>) -> Result<Self, BadInput> {
        let mut drawing = Self { texts: members.take("n")?, changes: Map::new() };
        for key in DRAWING.split(' ') {
            let Some(value) = members.take::<Value>(key)? else { continue };
            // Each is read by itself, so that a mistake is told with its name.
            let one = Map::from_iter([(key.to_owned(), value.clone())]);
            LowOptions::usual()?.changed(&one).map_err(|error| wrong(key, &error))?;
            drawing.changes.insert(key.to_owned(), value);
        }
        Ok(drawing)
    }

    /// Changes the flags by what the row says, for its text number `index`, whose seed is that of the row
    /// plus `index`.
    pub(crate) fn options(&self, flags: &LowOptions, index: usize) -> Result<LowOptions, BadInput> {
        let mut options = match self.changes.is_empty() {
            true => flags.clone(),
            false => flags.changed(&self.changes).map_err(|error| BadInput::new(error.to_string()))?,
        };
        options.seed = options.seed.wrapping_add(u64::try_from(index).unwrap_or_default());
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn answers_carry_the_id_and_members_of_their_row() {
        let mut members =
            ObjectMembers::read(r#"{"id": "\u0061", "meta": {"x": 1.10}, "k\n": [1e400]}"#).unwrap();
        let mut carried = Carried::take(&mut members, 7);
        for (key, text) in members.rest() {
            carried.copy(&key, text);
        }
        let line = carried.clone().with_index(2).line(&json!({ "text": "t" }));
        assert_eq!(
            line,
            "{\"id\":\"\\u0061\",\"index\":2,\"meta\":{\"x\": 1.10},\"k\\n\":[1e400],\"text\":\"t\"}\n"
        );
        assert_eq!((carried.key(), carried.with_index(0).key()), ("\"a\"".into(), "\"a\" 0".into()));
        let carried = Carried::take(&mut ObjectMembers::read(r#"{"id": null, "meta": null}"#).unwrap(), 7);
        assert_eq!((carried.key(), carried.line(&json!({}))), ("7".into(), "{\"id\":7}\n".into()));
    }
}

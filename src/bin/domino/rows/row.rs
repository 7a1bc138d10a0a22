//! A row: a line of JSON that asks for a text, or has one.

use serde_json::Value;

use super::{carried::Carried, grammar::RowGrammar, keys::RowReader, members::ObjectMembers};
use crate::{files::lines, rows::drawing::Drawing, terminal::failure::BadInput};

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

//! Columns that a row hands on to its answer: its id, and the columns that are copied.

use std::fmt::Write;

use serde_json::Value;

use super::members::ObjectMembers;

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
    pub(super) fn line_number(number: usize) -> Self {
        Self { id: number.to_string(), index: None, more: String::new() }
    }

    /// Sets the number of the text among several of its row.
    pub(crate) fn with_index(mut self, index: impl ToString) -> Self {
        self.index = Some(index.to_string());
        self
    }

    /// Copies a further column.
    pub(super) fn copy(&mut self, key: &str, text: &str) {
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

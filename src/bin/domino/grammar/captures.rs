//! Captures of named groups and rules, and the field `captures` of JSON.

use domino::{CaptureError, Captures, Grammar, Limits};
use serde_json::{Map, Value, json};

use crate::terminal::failure::{self, BadInput};

/// A way to capture parts of the texts of a grammar.
#[derive(Debug)]
pub(crate) struct Capturing {
    captures: Captures,
    grammar: Grammar,
}

impl Capturing {
    /// Captures what the grammar called `name` marks itself, and these rules; `None` if that is nothing.
    pub(crate) fn of(name: &str, grammar: Grammar, rules: &[String]) -> Result<Option<Self>, BadInput> {
        Self::within(&grammar, rules, &crate::grammar::budgets::limits())
            .map_err(|error| BadInput::new(format!("{name}: {error}")).hint(error.hint()))
    }

    /// Captures what the grammar marks itself, and these rules, within `limits`; `None` if that is nothing.
    ///
    /// # Errors
    /// If there is no such rule, or the grammar is past the limits.
    pub(crate) fn within(
        grammar: &Grammar,
        rules: &[String],
        limits: &Limits,
    ) -> Result<Option<Self>, CaptureError> {
        let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
        let captures = Captures::new(grammar, &rules, limits)?;
        let any = captures.names().len() > 0;
        Ok(any.then(|| Self { captures, grammar: grammar.clone() }))
    }

    /// Estimates its memory in bytes, that of its grammar included.
    #[cfg(feature = "serve")]
    pub(crate) fn memory(&self) -> usize {
        // The patterns of the grammar are most of both.
        self.captures.memory().saturating_mul(2)
    }

    /// Makes the field `captures` for a text: of an unfinished text, the captures that are decided. Where a
    /// budget is used up the field is null, and the field `captures_error` names the budget.
    pub(crate) fn fields(&self, text: &[u8]) -> Map<String, Value> {
        let spelt = self.grammar.spell(text);
        let found = self.captures.of(&spelt).and_then(|found| match found {
            Some(found) => Ok(found),
            None => self.captures.so_far(&spelt),
        });
        let mut fields = Map::new();
        match found {
            Ok(found) => {
                let one = |capture: &domino::Capture<'_>| {
                    let part = text.get(capture.span.clone()).unwrap_or_default();
                    json!({
                        "name": capture.name, "start": capture.span.start, "end": capture.span.end,
                        "text": String::from_utf8_lossy(part),
                    })
                };
                fields.insert("captures".to_owned(), found.iter().map(one).collect());
            }
            Err(limit) => {
                fields.insert("captures".to_owned(), Value::Null);
                fields.insert("captures_error".to_owned(), failure::told(&limit).line().into());
            }
        }
        fields
    }
}

//! Origins in a JSON Schema: the shapes that its parts became, and the keywords behind automata and warnings.

use domino::grammar::Span;
use domino::grammar::json_schema::{Outline, SchemaPlaces};
use serde_json::{Map, Value};

use crate::{grammar::compiler, grammar::source::GrammarText, terminal::describe};

/// Keywords that make the automata of strings, and of numbers.
const OF_STRINGS: &[&str] = &["pattern", "format", "minLength", "maxLength", "enum", "const"];
const OF_NUMBERS: &[&str] =
    &["multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "enum", "const"];

/// Keywords that make no part of the grammar.
const REMARKS: &[&str] = &["title", "description", "default", "examples", "$comment", "$schema", "$id"];

/// Facts about the schema that a grammar was made of.
pub(super) struct Origins {
    places: SchemaPlaces,
    pub(super) outline: Vec<Outline>,
    /// True if the outline is complete.
    pub(super) whole: bool,
}

/// A place in a schema, with its keywords.
pub(super) struct Origin {
    pointer: String,
    keywords: Vec<String>,
}

impl Origins {
    /// Finds the origins of a schema, with up to `most` sets of values. `None` for other grammars.
    pub(super) fn of(text: &GrammarText, most: usize) -> Option<Self> {
        let (text, options) = text.schema()?;
        let places = SchemaPlaces::read(text)?;
        let (outline, whole) = options.outline(text, &compiler::limits(), most).ok()?;
        Some(Self { places, outline, whole })
    }

    /// Finds the origin of a rule with this name and span.
    pub(super) fn of_rule(&self, name: &str, span: Span) -> Option<Origin> {
        let pointer = self.places.pointer(span)?;
        let all = self.places.keywords(span).into_iter().filter(|keyword| !REMARKS.contains(keyword));
        let all: Vec<String> = all.map(str::to_owned).collect();
        let wanted = match name.split('~').next() {
            Some("strings") => OF_STRINGS,
            Some("numbers") => OF_NUMBERS,
            _ => return Some(Origin { pointer, keywords: all }),
        };
        let some: Vec<String> =
            all.iter().filter(|keyword| wanted.contains(&keyword.as_str())).cloned().collect();
        Some(Origin { pointer, keywords: if some.is_empty() { all } else { some } })
    }
}

impl Origin {
    /// Adds the origin to a JSON object.
    pub(super) fn into(self, object: &mut Map<String, Value>) {
        object.insert("pointer".to_owned(), self.pointer.into());
        object.insert("keywords".to_owned(), self.keywords.into());
    }

    /// Describes the origin for people.
    pub(super) fn words(&self) -> String {
        let keywords = self.keywords.join(", ");
        describe::one_line(&format!("{} ({keywords})", self.pointer))
    }
}

//! Arguments of a function between XML tags, as Qwen3-Coder writes them:
//!
//! ```text
//! <parameter=city>
//! Paris
//! </parameter>
//! <parameter=days>
//! 3
//! </parameter>
//! ```
//!
//! Strings stand there as they are, without quotes and escapes; all else is JSON. Parameters come in the
//! order of the schema, and those that are not required may be left out.

use std::fmt::Write as _;

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange};

use crate::{
    grammar::{
        Pattern,
        document::{NodeId, Value},
        error::quoted,
        source::Span,
    },
    ids::ExprId,
};

use super::{
    free::Stops,
    translate::{Translated, Translator},
};

/// What ends an argument.
const END: &str = "</parameter>";

/// Keywords that a string without quotes may have: they ask nothing of its text.
const SILENT: [&str; 8] =
    ["type", "title", "description", "default", "examples", "deprecated", "enum", "const"];

/// Keywords that the schema of all arguments may have besides: definitions and annotations.
const OF_OBJECTS: [&str; 7] = ["$defs", "definitions", "$schema", "$id", "title", "description", "strict"];

impl Translator<'_, '_> {
    /// The arguments of a schema of an object.
    pub(super) fn parameters(&mut self, schema: NodeId, span: Span) -> Translated<ExprId> {
        self.check(schema, span)?;
        let space = self.space(span)?;
        let mut all = vec![space];
        let required = self.required(schema);
        let properties = self.properties(schema);
        if let Some(name) =
            required.iter().find(|name| properties.iter().all(|(known, _)| **known != ***name))
        {
            return Err(self.unsupported(format!("{} is required, and no property", quoted(name)), span));
        }
        for (name, value) in properties {
            let begin = self.text(&format!("<parameter={name}>"), span)?;
            let argument = self.argument(schema, value)?;
            let one = self.sequence(vec![begin, argument, space], span)?;
            let is_required = required.iter().any(|required| **required == *name);
            all.push(self.repeat(one, u32::from(is_required), Some(1), span)?);
        }
        self.sequence(all, span)
    }

    /// Refuses what says more of an object than its properties.
    fn check(&self, schema: NodeId, span: Span) -> Translated<()> {
        let Value::Object(members) = self.documents.value(schema) else {
            return Err(self.unsupported("arguments need a schema with `properties`".to_owned(), span));
        };
        for (key, node) in members {
            let known = match (&**key, self.documents.value(*node)) {
                ("type", Value::String(kind)) => **kind == *"object",
                ("properties", Value::Object(_)) | ("required", Value::Array(_)) => true,
                ("additionalProperties", Value::Bool(open)) => !open,
                (key, _) => OF_OBJECTS.contains(&key),
            };
            if !known {
                let message =
                    format!("{} of arguments between tags is not supported as it is here", quoted(key));
                return Err(self.unsupported(message, self.documents.span(*node)));
            }
        }
        Ok(())
    }

    fn properties(&self, schema: NodeId) -> Vec<(Box<str>, NodeId)> {
        let properties = self.documents.member(schema, "properties").map(|node| self.documents.value(node));
        match properties {
            Some(Value::Object(members)) => members.clone(),
            _ => Vec::new(),
        }
    }

    fn required(&self, schema: NodeId) -> Vec<String> {
        match self.documents.member(schema, "required").map(|node| self.documents.value(node)) {
            Some(Value::Array(names)) => {
                names.iter().filter_map(|&name| self.documents.string(name)).map(str::to_owned).collect()
            }
            _ => Vec::new(),
        }
    }

    /// An argument and the tag behind it.
    fn argument(&mut self, schema: NodeId, value: NodeId) -> Translated<ExprId> {
        let span = self.documents.span(value);
        let words = self.words(value);
        if (words.is_some() || self.is_string(value))
            && let Value::Object(members) = self.documents.value(value)
            && let Some((key, _)) = members.iter().find(|(key, _)| !SILENT.contains(&&**key))
        {
            let message = format!("{} of a string without quotes is not supported", quoted(key));
            return Err(self.unsupported(message, span));
        }
        if let Some(words) = words {
            let space = self.space(span)?;
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let (words, end) = (self.one_of_texts(&words, span)?, self.text(END, span)?);
            return self.sequence(vec![space, words, space, end], span);
        }
        if self.is_string(value) {
            let nothing = self.sequence(Vec::new(), span)?;
            let stops = Stops { wanted: &[END], excluded: &[], most_chars: None };
            return self.until(stops, &[nothing], span);
        }
        let text = self.with_definitions(schema, value);
        let (space, end) = (self.space(span)?, self.text(END, span)?);
        let json = self.schema(&text, span)?;
        self.sequence(vec![space, json, space, end], span)
    }

    /// The strings that are allowed, if the schema lists them.
    fn words(&self, value: NodeId) -> Option<Vec<String>> {
        let listed = match self.documents.member(value, "const") {
            Some(one) => vec![one],
            None => match self.documents.value(self.documents.member(value, "enum")?) {
                Value::Array(items) => items.clone(),
                _ => return None,
            },
        };
        listed.into_iter().map(|item| self.documents.string(item).map(str::to_owned)).collect()
    }

    /// Is it a string, or anything?
    fn is_string(&self, value: NodeId) -> bool {
        match self.documents.value(value) {
            Value::Object(members) if members.is_empty() => true,
            Value::Object(_) => {
                self.documents.member(value, "type").and_then(|kind| self.documents.string(kind))
                    == Some("string")
            }
            _ => false,
        }
    }

    /// The schema of an argument as a text by itself, with the definitions that the whole one has.
    fn with_definitions(&self, schema: NodeId, value: NodeId) -> String {
        let text = |node: NodeId| {
            let document = self.documents.text(self.documents.document(node));
            document.get(self.documents.span(node).range()).unwrap_or_default()
        };
        let mut whole = String::from("{");
        for key in ["$defs", "definitions"] {
            if let Some(node) = self.documents.member(schema, key) {
                let _ = write!(whole, "\"{key}\": {}, ", text(node));
            }
        }
        if whole.len() == 1 {
            return text(value).to_owned();
        }
        let _ = write!(whole, "\"allOf\": [{}]}}", text(value));
        whole
    }

    /// White space.
    fn space(&mut self, span: Span) -> Translated<ExprId> {
        let ranges = ['\t', '\n', '\r', ' '].map(|c| ClassUnicodeRange::new(c, c));
        let space = Pattern::byte_class(Class::Unicode(ClassUnicode::new(ranges)));
        let space = self.pattern(space, span)?;
        self.repeat(space, 0, None, span)
    }
}

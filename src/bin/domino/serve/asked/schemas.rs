//! JSON Schemas in requests: their text as it was sent, how they are read, what OpenAI's strict mode asks
//! for, and `grammar_options`: options for the schemas of a request, wherever they stand in it.
//!
//! Invariant: an option is either taken by a schema of the request or refused by name.

use std::collections::HashMap;

use domino::Limits;
use domino::grammar::json_schema::{SchemaError, SchemaGrammar, SchemaOptions, SchemaReport};
use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

use super::{super::args::SchemaRules, super::problem::Problem, fields};
use crate::{flags::schema::LowSchema, grammar::compiler, grammar::notation::Notation};

/// Keywords whose value is a schema that values must satisfy, or a list of such.
const ONE_OR_LIST: [&str; 7] =
    ["items", "additionalItems", "additionalProperties", "prefixItems", "allOf", "anyOf", "oneOf"];

/// Keywords whose value is an object of such schemas.
const NAMED: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];

impl SchemaRules {
    /// Reads a schema with options that a request, or the server, chose.
    pub(crate) fn read(
        &self,
        text: &str,
        options: &SchemaOptions,
        limits: &Limits,
    ) -> Result<SchemaGrammar, SchemaError> {
        let mut options = options.clone();
        options.documents.clone_from(&self.documents);
        options.parse_with(text, limits, compiler::automata())
    }

    /// Reports what becomes of the keywords of a schema that is read with `options`.
    pub(crate) fn report(
        &self,
        text: &str,
        options: &SchemaOptions,
        limits: &Limits,
    ) -> Result<SchemaReport, SchemaError> {
        let mut options = options.clone();
        options.documents.clone_from(&self.documents);
        options.report(text, limits)
    }
}

/// The options among the fields of `object`, the field `parent` of the body, whose other fields are `known`.
pub(crate) fn options(
    object: &Map<String, Value>,
    parent: &str,
    known: &[&str],
    defaults: &SchemaOptions,
) -> Result<SchemaOptions, Problem> {
    let names = || LowSchema::NAMES.split(' ');
    fields::of_object(object, parent, &names().chain(known.iter().copied()).collect::<Vec<_>>())?;
    let mut options = defaults.clone();
    for name in names() {
        let Some(value) = object.get(name) else { continue };
        // One at a time, so that a mistake has a name.
        let only = Value::Object(Map::from_iter([(name.to_owned(), value.clone())]));
        let read = LowSchema::deserialize(only).map_err(|error| {
            let param = format!("{parent}.{name}");
            Problem::invalid(&param, format!("`{param}` is {value}: {error}"))
        })?;
        options = read.over(&options);
    }
    Ok(options)
}

/// The text of a schema that is `value` in a body, at `path` of its bytes, as it was sent: there numbers have
/// all their digits, and keys that come twice are seen. A schema may come as a string that holds its text.
pub(crate) fn text_of(value: &Value, body: &[u8], path: &[&str]) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Object(_) | Value::Bool(_) => {
            let mut here: &RawValue = serde_json::from_slice(body).ok()?;
            for key in path {
                here = serde_json::from_str::<HashMap<String, &RawValue>>(here.get()).ok()?.remove(*key)?;
            }
            Some(here.get().to_owned())
        }
        _ => None,
    }
}

/// The schema of a response format, `{"name": .., "schema": .., "strict": ..}`, if OpenAI would take it.
pub(crate) fn of_format(asked: &Value, lenient_strict: bool) -> Result<&Value, Problem> {
    const PARENT: &str = "response_format.json_schema";
    let wrong = |name: &str, message: &str| {
        let param = format!("{PARENT}.{name}");
        Err(Problem::invalid(&param, format!("`{param}` must be {message}")))
    };
    let Some(object) = asked.as_object() else {
        let message = format!("`{PARENT}` must be an object {{\"name\": .., \"schema\": ..}}");
        return Err(Problem::invalid(PARENT, message));
    };
    fields::of_object(object, PARENT, &["name", "description", "schema", "strict"])?;
    for name in ["name", "description"] {
        if object.get(name).is_some_and(|value| !value.is_string() && !value.is_null()) {
            return wrong(name, "a string");
        }
    }
    let schema = match object.get("schema") {
        Some(schema @ (Value::Object(_) | Value::Bool(_))) => schema,
        _ => return wrong("schema", "a JSON Schema"),
    };
    match object.get("strict") {
        None | Some(Value::Null | Value::Bool(false)) => Ok(schema),
        Some(Value::Bool(true)) if lenient_strict => Ok(schema),
        Some(Value::Bool(true)) => strict(schema, &mut "#".to_owned()).map(|()| schema),
        Some(_) => wrong("strict", "true or false"),
    }
}

/// Refuses objects that OpenAI's strict mode refuses: open ones, and those with properties that are not
/// required. Other schemas are taken, also where OpenAI does not know their keywords. The schema stands at
/// `pointer`.
fn strict(schema: &Value, pointer: &mut String) -> Result<(), Problem> {
    let Some(keywords) = schema.as_object() else { return Ok(()) };
    if is_of_objects(keywords) {
        let closed = |name: &str| keywords.get(name) == Some(&Value::Bool(false));
        if !closed("additionalProperties") && !closed("unevaluatedProperties") {
            let message = "`additionalProperties` must be given and be false";
            return Err(refusal(pointer, "additionalProperties", message));
        }
        let required = keywords.get("required").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let properties = keywords.get("properties").and_then(Value::as_object).into_iter().flatten();
        let missing =
            properties.map(|(name, _)| name).find(|name| !required.iter().any(|other| other == *name));
        if let Some(name) = missing {
            let message = format!("`required` must have every property, and {name:?} is missing");
            return Err(refusal(pointer, "required", &message));
        }
    }
    for name in ONE_OR_LIST {
        match keywords.get(name) {
            Some(Value::Array(list)) => {
                let schemas = list.iter().enumerate();
                schemas
                    .map(|(index, schema)| (index.to_string(), schema))
                    .try_for_each(|(index, schema)| below(pointer, &[name, &index], schema))?;
            }
            Some(schema) => below(pointer, &[name], schema)?,
            None => {}
        }
    }
    for name in NAMED {
        for (key, schema) in keywords.get(name).and_then(Value::as_object).into_iter().flatten() {
            below(pointer, &[name, key], schema)?;
        }
    }
    Ok(())
}

/// [`strict`] for a schema further down.
fn below(pointer: &mut String, path: &[&str], schema: &Value) -> Result<(), Problem> {
    let length = pointer.len();
    for part in path {
        pointer.push('/');
        pointer.push_str(&part.replace('~', "~0").replace('/', "~1"));
    }
    strict(schema, pointer)?;
    pointer.truncate(length);
    Ok(())
}

/// Does the schema speak of objects?
fn is_of_objects(keywords: &Map<String, Value>) -> bool {
    match keywords.get("type") {
        Some(Value::Array(types)) => types.iter().any(|kind| kind == "object"),
        Some(kind) => kind == "object",
        None => keywords.contains_key("properties"),
    }
}

fn refusal(pointer: &str, keyword: &str, message: &str) -> Problem {
    let message = format!("response_format: {pointer}: with `strict` {message}");
    let hint = "say \"strict\": false, which is as binding, or start the server with --lenient-strict";
    Problem::bad_request("invalid_json_schema", message)
        .param("response_format")
        .with("pointer", pointer)
        .with("keyword", keyword)
        .with("hint", hint)
}

const FIELD: &str = "grammar_options";

/// Options for the schemas of a request, where these say nothing themselves.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct OptionsAsked {
    /// The server's options, under those of the request.
    options: SchemaOptions,
    /// Names of the options that the request gives.
    given: Vec<&'static str>,
}

impl OptionsAsked {
    /// Takes the options out of a body.
    ///
    /// # Errors
    /// If there is no such option, or no such value of it.
    pub(crate) fn read(body: &mut Map<String, Value>, rules: &SchemaRules) -> Result<Self, Problem> {
        let Some(value) = body.shift_remove(FIELD) else {
            return Ok(Self { options: rules.options.clone(), given: Vec::new() });
        };
        let Value::Object(object) = value else {
            let message = format!("`{FIELD}` must be an object, such as {{\"whitespace\": \"compact\"}}");
            return Err(Problem::invalid(FIELD, message));
        };
        let options = options(&object, FIELD, &[], &rules.options)?;
        let is_given = |name: &&str| object.get(*name).is_some_and(|value| !value.is_null());
        Ok(Self { options, given: LowSchema::NAMES.split(' ').filter(is_given).collect() })
    }

    /// The options for a schema that says nothing itself.
    pub(crate) fn options(&self) -> &SchemaOptions {
        &self.options
    }

    /// Makes these the options of a schema that has them itself.
    pub(crate) fn with(&self, options: SchemaOptions) -> Self {
        Self { options, given: self.given.clone() }
    }

    /// Checks that schemas of a grammar in this notation take what the request gives. `None`: the request
    /// has no schema.
    ///
    /// # Errors
    /// If they do not.
    pub(crate) fn check(&self, notation: Option<Notation>) -> Result<(), Problem> {
        let taken = match notation {
            Some(notation) => notation.schema_flags(),
            None => Some(&[][..]),
        };
        let Some(taken) = taken else { return Ok(()) };
        let taken: Vec<String> =
            taken.iter().map(|flag| flag.trim_start_matches('-').replace('-', "_")).collect();
        let Some(name) = self.given.iter().find(|name| !taken.iter().any(|taken| taken == *name)) else {
            return Ok(());
        };
        if taken.is_empty() {
            let message = format!("`{FIELD}` is for JSON Schemas, and the request has none");
            return Err(Problem::unsupported(FIELD, message).with("hint", "leave it out"));
        }
        let param = format!("{FIELD}.{name}");
        let message = format!("`{param}` is for a JSON Schema that is the whole text");
        let hint = format!("schemas inside of tags, functions and Lark take {} here", taken.join(", "));
        Err(Problem::unsupported(&param, message).with("hint", hint))
    }
}

#[cfg(test)]
mod tests;

//! JSON Schemas in requests: their text as it was sent, how they are read, and what OpenAI's strict mode asks
//! for.

use std::collections::HashMap;

use domino::{
    Limits,
    grammar::json_schema::{SchemaError, SchemaGrammar, SchemaOptions, SchemaReport},
};
use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

use super::{
    super::{args::SchemaRules, problem::Problem},
    fields,
};
use crate::{flags::schema::RowOptions, grammar::compiler};

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
    fields::of_object(object, parent, &[known, &RowOptions::NAMES].concat())?;
    let mut options = defaults.clone();
    for name in RowOptions::NAMES {
        let Some(value) = object.get(name) else { continue };
        // One at a time, so that a mistake has a name.
        let only = Value::Object(Map::from_iter([(name.to_owned(), value.clone())]));
        let read = RowOptions::deserialize(only).map_err(|error| error.to_string());
        options = read.and_then(|row| row.beside(&options)).map_err(|error| {
            let param = format!("{parent}.{name}");
            Problem::invalid(&param, format!("`{param}` is {value}: {error}"))
        })?;
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Pointer and keyword of what strict mode refuses.
    fn refused(schema: Value) -> Option<(String, String)> {
        let asked = json!({ "name": "n", "strict": true, "schema": schema });
        assert!(of_format(&asked, true).is_ok());
        let error = of_format(&asked, false).err()?.to_json()["error"].clone();
        let text = |key: &str| error[key].as_str().unwrap().to_owned();
        assert!(text("message").contains(&format!(" {}: ", text("pointer"))), "{error}");
        Some((text("pointer"), text("keyword")))
    }

    #[test]
    fn strict_mode_asks_for_closed_objects_with_all_their_properties() {
        let closed = json!({
            "type": "object", "properties": { "a": {} }, "required": ["a"], "additionalProperties": false,
        });
        let open = json!({ "type": ["object", "null"] });
        let partial =
            json!({ "properties": { "a": {}, "b": {} }, "required": ["a"], "additionalProperties": false });
        let in_list =
            |schema: &Value| json!({ "type": "array", "items": { "anyOf": [{ "type": "null" }, schema] } });
        let in_definition = |schema: &Value| json!({ "$ref": "#/$defs/a~1b", "$defs": { "a/b": schema } });
        for (schema, wanted) in [
            (json!(true), None),
            (json!({ "type": "string" }), None),
            (closed.clone(), None),
            (in_list(&closed), None),
            (open.clone(), Some(("#", "additionalProperties"))),
            (partial.clone(), Some(("#", "required"))),
            (in_list(&open), Some(("#/items/anyOf/1", "additionalProperties"))),
            (in_definition(&partial), Some(("#/$defs/a~1b", "required"))),
            (json!({ "not": open }), None),
        ] {
            let found = refused(schema.clone());
            let wanted = wanted.map(|(pointer, keyword)| (pointer.to_owned(), keyword.to_owned()));
            assert_eq!(found, wanted, "{schema}");
        }
    }

    #[test]
    fn schemas_that_are_not_strict_may_be_open() {
        let open = json!({ "type": "object" });
        for strict in [json!(false), json!(null)] {
            assert!(of_format(&json!({ "schema": open, "strict": strict }), false).is_ok());
        }
    }
}

//! Explanations in the words of a JSON Schema of why the engine has refused a text.
//!
//! They are made only after a refusal, and printed beside the character that cannot follow, not in its place.
//! Nothing is said where nothing is found wrong: a text may be refused for its white space, for the order of
//! its members, or for a keyword that is not looked at here.

mod begun;
pub(super) mod finding;
mod walk;

use std::cell::Cell;

use domino::grammar::json_schema::{Draft, DuplicateKeys, Format, SchemaOptions};
use serde_json::{Value, json};

use self::begun::{begun, doubled};
use self::finding::SchemaFault;
use self::walk::{References, SchemaWalk};

/// Limit on the faults reported for one text.
const MOST: usize = 8;

/// A function that asks the engine whether an instance (second) is valid by a schema (first), both in JSON.
type AskEngine<'a> = &'a dyn Fn(&str, &str) -> Option<bool>;

/// Finds what is wrong with a text by its schema, as far as that can be told. If the text has `ended` too
/// early, only missing parts are faults.
pub(super) fn explain(
    schema: &str,
    options: &SchemaOptions,
    text: &str,
    ended: bool,
    engine: AskEngine<'_>,
) -> Vec<SchemaFault> {
    let (Ok(schema), Some(begun)) = (serde_json::from_str::<Value>(schema), begun(text)) else {
        return Vec::new();
    };
    // Another dialect may have other keywords.
    let dialect = schema.get("$schema").and_then(Value::as_str);
    if dialect.is_some_and(|dialect| !dialect.contains("json-schema.org/")) {
        return Vec::new();
    }
    let ask = |schema: &Value, instance: &Value| engine(&schema.to_string(), &instance.to_string());
    let draft = draft(&schema, options);
    let walk = SchemaWalk {
        references: References::new(&schema, draft.is_some_and(|draft| draft <= Draft::Draft7)),
        only_digits: draft == Some(Draft::Draft4),
        closed: options.closed == Some(true),
        formats: options.format == Format::Assert,
        engine: &ask,
        steps: Cell::new(0),
        open: &begun.open,
        ended,
    };
    let mut faults = walk.whole(&begun.value).faults;
    if options.duplicate_keys == DuplicateKeys::Refuse
        && let Some((instance, key)) = doubled(text)
    {
        let message = format!("the key `{key}` comes twice");
        faults.insert(0, SchemaFault { message, instance, schema: String::new(), lacks: false });
    }
    if ended {
        // More text can follow what is there, so only missing parts are faults.
        faults.retain(|fault| fault.lacks);
    }
    faults.truncate(MOST);
    faults
}

/// Finds the draft of a schema, if anything names it.
fn draft(schema: &Value, options: &SchemaOptions) -> Option<Draft> {
    let named = schema.get("$schema").and_then(Value::as_str);
    let by_name = |name: &str| match name.trim_end_matches('#').rsplit_once("json-schema.org/")?.1 {
        "draft-04/schema" => Some(Draft::Draft4),
        "draft-06/schema" => Some(Draft::Draft6),
        "draft-07/schema" => Some(Draft::Draft7),
        "draft/2019-09/schema" => Some(Draft::Draft201909),
        _ => Some(Draft::Draft202012),
    };
    named.and_then(by_name).or(options.draft)
}

/// Writes a fault as a line for people.
pub(crate) fn line(fault: &SchemaFault) -> String {
    let SchemaFault { message, instance, schema, .. } = fault;
    let place = if instance.is_empty() { "at the top".to_owned() } else { format!("at {instance}") };
    format!("by the schema: {message}, {place} (#{schema})")
}

/// Lists faults as JSON.
pub(crate) fn list(faults: &[SchemaFault]) -> Value {
    let one = |fault: &SchemaFault| {
        let SchemaFault { message, instance, schema, .. } = fault;
        json!({ "message": message, "instance": instance, "schema": format!("#{schema}") })
    };
    faults.iter().map(one).collect()
}

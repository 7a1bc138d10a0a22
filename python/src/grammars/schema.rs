//! Options for reading a JSON Schema, as keyword arguments, and the report on its keywords.

use domino::grammar::json_schema::{
    Draft, DuplicateKeys, Escapes, Format, Numbers, Order, SchemaOptions, SchemaReport, WhiteSpace,
};
use pyo3::{prelude::*, types::PyDict};
use serde_json::{Map, Value, json};

use crate::{
    failure::{Failure, Outcome},
    json::json_text,
};

/// The names of options, for messages.
const NAMES: [&str; 10] = [
    "draft",
    "format",
    "whitespace",
    "order",
    "duplicate_keys",
    "escapes",
    "numbers",
    "closed",
    "max_depth",
    "lenient",
];

/// Options as JSON of keyword arguments, which a pickle keeps.
///
/// # Errors
/// If there is no such option, or it has no such value.
pub(crate) fn options_json(given: Option<&Bound<'_, PyDict>>) -> Outcome<Value> {
    let mut options = Map::new();
    for (name, value) in given.into_iter().flatten() {
        let name: String = name.extract()?;
        if value.is_none() {
            continue;
        }
        let value = if name == "documents" {
            let documents: Vec<(String, String)> = value
                .cast_into::<PyDict>()
                .map_err(PyErr::from)?
                .iter()
                .map(|(address, text)| Ok((address.extract()?, json_text(&text)?)))
                .collect::<Outcome<_>>()?;
            json!(documents)
        } else if let Ok(flag) = value.extract::<bool>() {
            json!(flag)
        } else if let Ok(number) = value.extract::<u32>() {
            json!(number)
        } else if let Ok(text) = value.extract::<String>() {
            json!(text)
        } else {
            return Err(Failure::Type(format!("the option `{name}` of schemas has a value of a wrong type")));
        };
        options.insert(name, value);
    }
    let options = Value::Object(options);
    read(&options)?;
    Ok(options)
}

/// The options that [`options_json`] wrote down.
///
/// # Errors
/// If there is no such option, or it has no such value.
pub(crate) fn read(json: &Value) -> Outcome<SchemaOptions> {
    let mut options = SchemaOptions::default();
    for (name, value) in json.as_object().into_iter().flatten() {
        options = set(options, name, value)?;
    }
    Ok(options)
}

/// Finds a value by its name in the table of an option.
fn one_of<T: Copy>(name: &str, value: &Value, table: &[(&str, T)]) -> Outcome<T> {
    let wanted = value.as_str();
    let found = table.iter().find(|(known, _)| Some(*known) == wanted).map(|&(_, value)| value);
    found.ok_or_else(|| {
        let known: Vec<&str> = table.iter().map(|&(known, _)| known).collect();
        Failure::Value(format!(
            "the option `{name}` of schemas is {value}; it is one of {}",
            known.join(", ")
        ))
    })
}

fn flag(name: &str, value: &Value) -> Outcome<bool> {
    value
        .as_bool()
        .ok_or_else(|| Failure::Value(format!("the option `{name}` of schemas must be True or False")))
}

fn set(options: SchemaOptions, name: &str, value: &Value) -> Outcome<SchemaOptions> {
    let number = || value.as_u64().and_then(|number| u32::try_from(number).ok());
    Ok(match name {
        "draft" => options.with_draft(one_of(name, value, &Draft::NAMED)?),
        "format" => {
            let table =
                [("bounded", Format::Bounded), ("assert", Format::Assert), ("annotate", Format::Annotate)];
            options.with_format(one_of(name, value, &table)?)
        }
        "whitespace" => options.with_white_space(match number().map(u8::try_from) {
            Some(Ok(blanks)) => WhiteSpace::Pretty(blanks),
            _ => one_of(
                name,
                value,
                &[
                    ("flexible", WhiteSpace::Flexible),
                    ("wide", WhiteSpace::Wide),
                    ("compact", WhiteSpace::Compact),
                    ("any", WhiteSpace::Any),
                ],
            )?,
        }),
        "order" => {
            options.with_order(one_of(name, value, &[("schema", Order::Schema), ("any", Order::Any)])?)
        }
        "duplicate_keys" => {
            let table = [("refuse", DuplicateKeys::Refuse), ("allow", DuplicateKeys::Allow)];
            options.with_duplicate_keys(one_of(name, value, &table)?)
        }
        "escapes" => options.with_escapes(one_of(
            name,
            value,
            &[("minimal", Escapes::Minimal), ("all", Escapes::All)],
        )?),
        "numbers" => {
            options.with_numbers(one_of(name, value, &[("plain", Numbers::Plain), ("any", Numbers::Any)])?)
        }
        "closed" => options.with_closed(flag(name, value)?),
        "lenient" => options.with_lenient(flag(name, value)?),
        "max_depth" => {
            let levels = number().ok_or_else(|| {
                Failure::Value(format!("the option `{name}` of schemas must be a number of levels"))
            })?;
            options.with_max_depth(Some(levels))
        }
        "documents" => {
            let pairs: Vec<(String, String)> = serde_json::from_value(value.clone())
                .map_err(|error| Failure::Value(format!("documents: {error}")))?;
            pairs.into_iter().fold(options, |options, (address, text)| options.with_document(address, text))
        }
        _ => {
            let near = domino::grammar::suggest::did_you_mean(name, NAMES.into_iter().chain(["documents"]));
            let near = near.unwrap_or_else(|| format!("one of {}, documents", NAMES.join(", ")));
            return Err(Failure::Type(format!("there is no option `{name}` of schemas\nhint: {near}")));
        }
    })
}

/// Converts a report to a list of `dict`s.
///
/// # Errors
/// If Python is out of memory.
pub(crate) fn report<'py>(py: Python<'py>, report: &SchemaReport) -> PyResult<Vec<Bound<'py, PyDict>>> {
    report
        .keywords
        .iter()
        .map(|keyword| {
            let row = PyDict::new(py);
            row.set_item("pointer", &keyword.pointer)?;
            row.set_item("keyword", &keyword.keyword)?;
            row.set_item("status", keyword.status.name())?;
            row.set_item("note", keyword.note.as_deref())?;
            Ok(row)
        })
        .collect()
}

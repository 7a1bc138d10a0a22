//! Grammars of the JSON of Rust types, by way of their schemas.
//!
//! `serde_json` reads everything that the grammar allows: integers within their type and written as integers,
//! floats that are finite, and no deeper nesting than its parser takes.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Number, Value};

use super::{
    Grammar, GrammarError,
    json_schema::{Numbers, SchemaError, SchemaOptions},
};
use crate::limits::Limits;

/// Limit on the nesting of arrays and objects in the parser of `serde_json`.
const LEVELS: u32 = 127;

impl Grammar {
    /// The grammar of the JSON of a Rust type, as `serde_json` reads it into the type: compact or indented,
    /// with members in the order of the fields, and no others unless the type says so (`flatten` of a map).
    ///
    /// # Errors
    /// If the schema of the type cannot be had exactly, or allows no value.
    ///
    /// # Examples
    /// ```
    /// use domino::{Grammar, Compiler, TokenId, Vocabulary};
    ///
    /// #[derive(schemars::JsonSchema)]
    /// struct Person {
    ///     name: String,
    ///     age: u8,
    /// }
    ///
    /// let vocabulary = Vocabulary::builder().all_bytes().end_of_text(TokenId::new(256)).build()?;
    /// let compiled = Compiler::new(vocabulary).compile(&Grammar::of::<Person>()?)?;
    /// let mut constraint = compiled.constraint();
    /// let text = br#"{"name": "Ada", "age": 36}"#;
    /// assert_eq!(constraint.advance_bytes(text)?, text.len());
    /// assert!(constraint.is_complete());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of<T: JsonSchema>() -> Result<Self, GrammarError> {
        Ok(Self::of_type::<T>(SchemaOptions::default(), &Limits::default())?)
    }

    /// The grammar of a Rust type with options and limits. Numbers are plain, whatever the options say.
    /// Objects have keys that the type lacks with [`SchemaOptions::with_closed`] of false.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn of_type<T: JsonSchema>(options: SchemaOptions, limits: &Limits) -> Result<Self, SchemaError> {
        let mut schema =
            SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>().to_value();
        bound(&mut schema, 0);
        let levels = options.max_depth.unwrap_or(LEVELS).min(LEVELS);
        let options = options.of_types().with_numbers(Numbers::Plain).with_max_depth(Some(levels));
        Ok(options.parse(&schema.to_string(), limits)?.grammar)
    }
}

/// Adds to a schema the ranges that the names of number types stand for. Schemas of types are no deeper than
/// the types; below 1,000 levels nothing is done.
fn bound(schema: &mut Value, depth: usize) {
    match schema {
        Value::Array(parts) if depth < 1_000 => parts.iter_mut().for_each(|part| bound(part, depth + 1)),
        Value::Object(members) if depth < 1_000 => {
            members.values_mut().for_each(|part| bound(part, depth + 1));
            if let Some((least, most)) = members.get("format").and_then(Value::as_str).and_then(range) {
                at_least(members, least);
                at_most(members, most);
            }
        }
        _ => {}
    }
}

/// The least and greatest value of a number type, by its name in schemas.
fn range(format: &str) -> Option<(Number, Number)> {
    let float = |most: f64| Some((Number::from_f64(-most)?, Number::from_f64(most)?));
    match format {
        "int8" => Some((i8::MIN.into(), i8::MAX.into())),
        "int16" => Some((i16::MIN.into(), i16::MAX.into())),
        "int32" => Some((i32::MIN.into(), i32::MAX.into())),
        "int64" | "int128" => Some((i64::MIN.into(), i64::MAX.into())),
        "int" => Some((isize::MIN.into(), isize::MAX.into())),
        "uint8" => Some((0.into(), u8::MAX.into())),
        "uint16" => Some((0.into(), u16::MAX.into())),
        "uint32" => Some((0.into(), u32::MAX.into())),
        "uint64" | "uint128" => Some((0.into(), u64::MAX.into())),
        "uint" => Some((0.into(), usize::MAX.into())),
        // The text that is written for the greatest one, which is slightly above it and rounded to it.
        "float" => float(3.402_823_5e38),
        "double" => float(f64::MAX),
        _ => None,
    }
}

/// Sets a lower bound, unless there is one: the schemas of types have theirs or narrower ones.
fn at_least(members: &mut Map<String, Value>, least: Number) {
    if !members.contains_key("minimum") && !members.contains_key("exclusiveMinimum") {
        members.insert("minimum".to_owned(), Value::Number(least));
    }
}

fn at_most(members: &mut Map<String, Value>, most: Number) {
    if !members.contains_key("maximum") && !members.contains_key("exclusiveMaximum") {
        members.insert("maximum".to_owned(), Value::Number(most));
    }
}

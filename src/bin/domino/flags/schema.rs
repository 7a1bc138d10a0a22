//! Options for reading JSON Schemas: flags, and the same options in rows of a batch and in requests.

use std::{fs, path::PathBuf, str::FromStr};

use clap::{ArgAction, Args};
use domino::grammar::json_schema::{
    Draft, DuplicateKeys, Escapes, Format, Numbers, Order, SchemaOptions, WhiteSpace,
};
use serde::Deserialize;

use super::{ByName, NamedValue};
use crate::{files, terminal::failure::BadInput};

/// Flags for grammars that are JSON Schemas. But for the documents they are also keys of a row of a batch,
/// and fields of a request to the server, under the same names.
#[derive(Debug, Clone, Default, Args, Deserialize)]
pub(crate) struct LowSchema {
    /// The draft of a schema that names none: 4, 6, 7, 2019-09 or 2020-12. Default: 2020-12, with the older
    /// spellings that it does not have.
    #[arg(long, value_name = "DRAFT", hide_possible_values = true)]
    draft: Option<NamedValue<Draft>>,
    /// Take `format` as a restriction of strings (assert), also within the lengths and the ranges of integers
    /// that systems hold (bounded), or as a remark (annotate). Default: bounded; assert for `check`.
    #[arg(long, value_name = "WHAT")]
    format: Option<NamedValue<Format>>,
    /// White space between the parts of a value: flexible (as people and programs write it), wide (longer
    /// runs, also before commas and colons), compact, pretty:N (N blanks a level) or any. Default: flexible;
    /// any for `check`.
    #[arg(long, value_name = "HOW")]
    whitespace: Option<Spacing>,
    /// The order of an object's members: that of the schema, or any. Default: schema; any for `check`.
    #[arg(long, value_name = "WHICH")]
    order: Option<NamedValue<Order>>,
    /// Refuse or allow an object that has a key twice which the schema does not list. Default: refuse.
    #[arg(long, value_name = "WHETHER")]
    duplicate_keys: Option<NamedValue<DuplicateKeys>>,
    /// Ways to write a character: escapes only where they must be, or all that JSON has. Default: minimal;
    /// all for `check` and `trace`.
    #[arg(long, value_name = "WHICH")]
    escapes: Option<NamedValue<Escapes>>,
    /// Ways to write a number: plain, as typed readers read it (whole numbers in digits, others without
    /// needless zeros, none that 64 bits or an f64 do not hold), or any that JSON has. Default: plain; any
    /// for `check`.
    #[arg(long, value_name = "WHICH")]
    numbers: Option<NamedValue<Numbers>>,
    /// Forbid keys that a schema does not mention, where it says nothing of additional properties. Default:
    /// false; true for functions and structural tags.
    #[arg(
        long, value_name = "WHETHER", num_args = 0..=1, require_equals = true, default_missing_value = "true"
    )]
    closed: Option<bool>,
    /// Levels of nesting that values may have. Default: any number.
    #[arg(long, value_name = "N")]
    max_depth: Option<u32>,
    /// Allow more than the schema where it cannot be enforced exactly, and say where.
    #[arg(long, action = ArgAction::SetTrue)]
    lenient: Option<bool>,
    /// A folder of schemas that references may lead to, by their `$id` or their path in it. Nothing is
    /// fetched.
    #[arg(long, value_name = "DIR")]
    #[serde(skip)]
    documents: Option<PathBuf>,
}

impl ByName for Draft {
    const NAMES: &'static [(&'static str, Self)] = &Self::NAMED;
}

impl ByName for Format {
    const NAMES: &'static [(&'static str, Self)] =
        &[("bounded", Self::Bounded), ("assert", Self::Assert), ("annotate", Self::Annotate)];
}

impl ByName for Order {
    const NAMES: &'static [(&'static str, Self)] = &[("schema", Self::Schema), ("any", Self::Any)];
}

impl ByName for DuplicateKeys {
    const NAMES: &'static [(&'static str, Self)] = &[("refuse", Self::Refuse), ("allow", Self::Allow)];
}

impl ByName for Escapes {
    const NAMES: &'static [(&'static str, Self)] = &[("all", Self::All), ("minimal", Self::Minimal)];
}

impl ByName for Numbers {
    const NAMES: &'static [(&'static str, Self)] = &[("plain", Self::Plain), ("any", Self::Any)];
}

impl LowSchema {
    /// Names the flags that were given.
    pub(crate) fn given(&self) -> Vec<&'static str> {
        let Self { draft, format, whitespace, order, duplicate_keys, .. } = self;
        let Self { escapes, numbers, closed, max_depth, lenient, documents, .. } = self;
        let flags = [
            ("--draft", draft.is_some()),
            ("--format", format.is_some()),
            ("--whitespace", whitespace.is_some()),
            ("--order", order.is_some()),
            ("--duplicate-keys", duplicate_keys.is_some()),
            ("--escapes", escapes.is_some()),
            ("--numbers", numbers.is_some()),
            ("--closed", closed.is_some()),
            ("--max-depth", max_depth.is_some()),
            ("--lenient", *lenient == Some(true)),
            ("--documents", documents.is_some()),
        ];
        flags.into_iter().filter(|(_, given)| *given).map(|(flag, _)| flag).collect()
    }

    /// The names of the fields that are keys of rows too.
    pub(crate) const NAMES: &'static str =
        "draft format whitespace order duplicate_keys escapes numbers closed max_depth lenient";

    /// Reads the flags as options; `defaults` hold where they say nothing.
    pub(crate) fn resolve(&self, defaults: &SchemaOptions) -> Result<SchemaOptions, BadInput> {
        let mut options = self.over(defaults);
        if let Some(folder) = &self.documents {
            options.documents = documents(folder)?;
        }
        Ok(options)
    }

    /// The options that these are, but for documents; `usual` hold where nothing is said.
    pub(crate) fn over(&self, usual: &SchemaOptions) -> SchemaOptions {
        let mut options = usual.clone();
        options.draft = self.draft.map(|draft| draft.0).or(options.draft);
        options.white_space = self.whitespace.map_or(options.white_space, |spacing| spacing.0);
        options.format = self.format.map_or(options.format, |format| format.0);
        options.order = self.order.map_or(options.order, |order| order.0);
        options.duplicate_keys = self.duplicate_keys.map_or(options.duplicate_keys, |keys| keys.0);
        options.escapes = self.escapes.map_or(options.escapes, |escapes| escapes.0);
        options.numbers = self.numbers.map_or(options.numbers, |numbers| numbers.0);
        options.closed = self.closed.or(options.closed);
        options.lenient = self.lenient.unwrap_or(options.lenient);
        options.max_depth = self.max_depth.or(options.max_depth);
        options
    }
}

/// Refuses flags for a grammar that does not take them. `taken` is `None` if there is no grammar, and holds
/// the flags that it takes, or `None` inside if it takes all.
pub(crate) fn refuse_idle(
    given: &[&str],
    taken: Option<Option<&'static [&'static str]>>,
) -> Result<(), BadInput> {
    let taken = match taken {
        Some(None) => return Ok(()),
        Some(Some(taken)) => taken,
        None => &[],
    };
    let Some(flag) = given.iter().find(|flag| !taken.contains(flag)) else { return Ok(()) };
    if taken.is_empty() {
        return Err(BadInput::new("a flag for JSON Schemas was given without one")
            .hint("give --grammar FILE.json, or --syntax json_schema for other endings"));
    }
    Err(BadInput::new(format!("{flag} is for a JSON Schema that is a grammar by itself"))
        .hint(format!("schemas inside of this grammar take {}", listed(taken))))
}

/// Joins names with commas, and with "and" before the last.
fn listed(names: &[&str]) -> String {
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

/// The options for judging texts that others wrote.
pub(crate) fn for_checking() -> SchemaOptions {
    let options = SchemaOptions::default().with_white_space(WhiteSpace::Any).with_format(Format::Assert);
    options.with_order(Order::Any).with_numbers(Numbers::Any).with_escapes(Escapes::All)
}

/// The options for measuring along texts that compare engines: other writers escape as they like.
#[cfg_attr(not(feature = "experiments"), expect(dead_code, reason = "for commands that measure"))]
pub(crate) fn for_comparing() -> SchemaOptions {
    SchemaOptions::default().with_escapes(Escapes::All).with_format(Format::Assert)
}

/// The value of `--whitespace`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
struct Spacing(WhiteSpace);

impl FromStr for Spacing {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let wrong = || "it is flexible, wide, compact, any, or pretty:N with N from 0 to 255".to_owned();
        Ok(Self(match name {
            "flexible" => WhiteSpace::Flexible,
            "wide" => WhiteSpace::Wide,
            "compact" => WhiteSpace::Compact,
            "any" => WhiteSpace::Any,
            _ => {
                let width = name.strip_prefix("pretty:").and_then(|width| width.parse().ok());
                WhiteSpace::Pretty(width.ok_or_else(wrong)?)
            }
        }))
    }
}

impl TryFrom<String> for Spacing {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        name.parse()
    }
}

/// Reads the schemas of a folder and its subfolders, as pairs of address and text.
fn documents(folder: &std::path::Path) -> Result<Vec<(String, String)>, BadInput> {
    let unreadable = |path: &std::path::Path, error: &std::io::Error| {
        BadInput::new(format!("cannot read {}: {error}", path.display()))
    };
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(here) = open.pop() {
        let entries = fs::read_dir(&here).map_err(|error| unreadable(&here, &error))?;
        for entry in entries {
            let path = entry.map_err(|error| unreadable(&here, &error))?.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "json") {
                let text = files::read_text(&path)?;
                let name = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().replace('\\', "/");
                found.push((format!("schema:///{name}"), text));
            }
        }
    }
    found.sort();
    Ok(found)
}

//! Options for reading JSON Schemas: flags, and the same options in rows of a batch.

use std::{fs, path::PathBuf, str::FromStr};

use clap::{Args, ValueEnum};
use domino::grammar::json_schema::{
    Draft, DuplicateKeys, Escapes, Format, Numbers, Order, SchemaOptions, WhiteSpace,
};
use serde::Deserialize;

use crate::{files, terminal::failure::BadInput};

/// Flags for grammars that are JSON Schemas.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct LowSchema {
    /// The draft of a schema that names none: 4, 6, 7, 2019-09 or 2020-12. Default: 2020-12, with the older
    /// spellings that it does not have.
    #[arg(long, value_name = "DRAFT", value_parser = draft)]
    draft: Option<Draft>,
    /// Take `format` as a restriction of strings (assert), also within the lengths and the ranges of integers
    /// that systems hold (bounded), or as a remark (annotate). Default: bounded; assert for `check`.
    #[arg(long, value_name = "WHAT")]
    format: Option<LowFormat>,
    /// White space between the parts of a value: flexible (as people and programs write it), wide (longer
    /// runs, also before commas and colons), compact, pretty:N (N blanks a level) or any. Default: flexible;
    /// any for `check`.
    #[arg(long, value_name = "HOW", value_parser = white_space)]
    whitespace: Option<WhiteSpace>,
    /// The order of an object's members: that of the schema, or any. Default: schema; any for `check`.
    #[arg(long, value_name = "WHICH")]
    order: Option<LowOrder>,
    /// Refuse or allow an object that has a key twice which the schema does not list. Default: refuse.
    #[arg(long, value_name = "WHETHER")]
    duplicate_keys: Option<LowDuplicateKeys>,
    /// Ways to write a character: escapes only where they must be, or all that JSON has. Default: minimal;
    /// all for `check` and `trace`.
    #[arg(long, value_name = "WHICH")]
    escapes: Option<LowEscapes>,
    /// Ways to write a number: plain, as typed readers read it (whole numbers in digits, others without
    /// needless zeros, none that 64 bits or an f64 do not hold), or any that JSON has. Default: plain; any
    /// for `check`.
    #[arg(long, value_name = "WHICH")]
    numbers: Option<LowNumbers>,
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
    #[arg(long)]
    lenient: bool,
    /// A folder of schemas that references may lead to, by their `$id` or their path in it. Nothing is
    /// fetched.
    #[arg(long, value_name = "DIR")]
    documents: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LowFormat {
    Bounded,
    Assert,
    Annotate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LowOrder {
    Schema,
    Any,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LowDuplicateKeys {
    Refuse,
    Allow,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LowEscapes {
    All,
    Minimal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LowNumbers {
    Plain,
    Any,
}

/// The options of one row of a batch, or of a request to the server, under the names of the flags. The flags
/// supply those that are absent.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct RowOptions {
    draft: Option<String>,
    format: Option<LowFormat>,
    whitespace: Option<String>,
    order: Option<LowOrder>,
    duplicate_keys: Option<LowDuplicateKeys>,
    escapes: Option<LowEscapes>,
    numbers: Option<LowNumbers>,
    closed: Option<bool>,
    max_depth: Option<u32>,
    lenient: Option<bool>,
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
            ("--lenient", *lenient),
            ("--documents", documents.is_some()),
        ];
        flags.into_iter().filter(|(_, given)| *given).map(|(flag, _)| flag).collect()
    }

    /// Reads the flags as options; `defaults` hold where they say nothing.
    pub(crate) fn resolve(self, defaults: SchemaOptions) -> Result<SchemaOptions, BadInput> {
        let mut options = defaults;
        options.draft = self.draft.or(options.draft);
        options.white_space = self.whitespace.unwrap_or(options.white_space);
        options.format = self.format.map_or(options.format, LowFormat::meaning);
        options.order = self.order.map_or(options.order, LowOrder::meaning);
        options.duplicate_keys =
            self.duplicate_keys.map_or(options.duplicate_keys, LowDuplicateKeys::meaning);
        options.escapes = self.escapes.map_or(options.escapes, LowEscapes::meaning);
        options.numbers = self.numbers.map_or(options.numbers, LowNumbers::meaning);
        options.closed = self.closed.or(options.closed);
        options.lenient |= self.lenient;
        options.max_depth = self.max_depth.or(options.max_depth);
        if let Some(folder) = self.documents {
            options.documents = documents(&folder)?;
        }
        Ok(options)
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

impl RowOptions {
    /// The names of the fields.
    pub(crate) const NAMES: [&str; 10] = [
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

    /// Reads the row as options; the flags hold where it says nothing.
    pub(crate) fn beside(&self, flags: &SchemaOptions) -> Result<SchemaOptions, String> {
        let mut options = flags.clone();
        if let Some(name) = &self.draft {
            options.draft = Some(draft(name)?);
        }
        if let Some(name) = &self.whitespace {
            options.white_space = white_space(name)?;
        }
        options.format = self.format.map_or(options.format, LowFormat::meaning);
        options.order = self.order.map_or(options.order, LowOrder::meaning);
        options.duplicate_keys =
            self.duplicate_keys.map_or(options.duplicate_keys, LowDuplicateKeys::meaning);
        options.escapes = self.escapes.map_or(options.escapes, LowEscapes::meaning);
        options.numbers = self.numbers.map_or(options.numbers, LowNumbers::meaning);
        options.closed = self.closed.or(options.closed);
        options.lenient = self.lenient.unwrap_or(options.lenient);
        options.max_depth = self.max_depth.or(options.max_depth);
        Ok(options)
    }
}

impl LowFormat {
    fn meaning(self) -> Format {
        match self {
            Self::Bounded => Format::Bounded,
            Self::Assert => Format::Assert,
            Self::Annotate => Format::Annotate,
        }
    }
}

impl LowOrder {
    fn meaning(self) -> Order {
        match self {
            Self::Schema => Order::Schema,
            Self::Any => Order::Any,
        }
    }
}

impl LowDuplicateKeys {
    fn meaning(self) -> DuplicateKeys {
        match self {
            Self::Refuse => DuplicateKeys::Refuse,
            Self::Allow => DuplicateKeys::Allow,
        }
    }
}

impl LowEscapes {
    fn meaning(self) -> Escapes {
        match self {
            Self::All => Escapes::All,
            Self::Minimal => Escapes::Minimal,
        }
    }
}

impl LowNumbers {
    fn meaning(self) -> Numbers {
        match self {
            Self::Plain => Numbers::Plain,
            Self::Any => Numbers::Any,
        }
    }
}

fn draft(name: &str) -> Result<Draft, String> {
    let named = Draft::NAMED.iter().find(|(known, _)| *known == name);
    named.map(|&(_, draft)| draft).ok_or_else(|| "the drafts are 4, 6, 7, 2019-09 and 2020-12".to_owned())
}

fn white_space(name: &str) -> Result<WhiteSpace, String> {
    match name {
        "flexible" => return Ok(WhiteSpace::Flexible),
        "wide" => return Ok(WhiteSpace::Wide),
        "compact" => return Ok(WhiteSpace::Compact),
        "any" => return Ok(WhiteSpace::Any),
        _ => {}
    }
    let width = name.strip_prefix("pretty:").map(u8::from_str);
    match width {
        Some(Ok(width)) => Ok(WhiteSpace::Pretty(width)),
        _ => Err("it is flexible, wide, compact, any, or pretty:N with N from 0 to 255".to_owned()),
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

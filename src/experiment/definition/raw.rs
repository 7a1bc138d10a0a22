//! Definitions as written, in TOML. A single thing may stand for a list of it: `k = 1` means `k = [1]`.

use std::{collections::BTreeMap, fmt, marker::PhantomData};

use serde::de::{self, IntoDeserializer, value};
use serde::{Deserialize, Deserializer};

use super::parts::{Turns, WarmUpPrompts};
use crate::experiment::{error::ExperimentError, row::K};
use crate::grammar::suggest;

/// A definition file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawDefinition {
    pub(super) name: String,
    #[serde(default)]
    pub(super) about: String,
    #[serde(default, deserialize_with = "some_or_one")]
    pub(super) models: Option<Vec<String>>,
    pub(super) draft_model: Option<RawDraft>,
    pub(super) mistralrs_model: Option<String>,
    #[serde(deserialize_with = "list_or_one")]
    pub(super) grammars: Vec<RawTask>,
    #[serde(deserialize_with = "list_or_one")]
    pub(super) methods: Vec<RawMethod>,
    #[serde(default)]
    pub(super) programs: BTreeMap<String, RawProgram>,
    #[serde(default, deserialize_with = "some_or_one")]
    pub(super) k: Option<Vec<K>>,
    #[serde(default, deserialize_with = "some_or_one")]
    pub(super) s: Option<Vec<usize>>,
    #[serde(default, deserialize_with = "some_or_one")]
    pub(super) threshold: Option<Vec<f64>>,
    #[serde(default, deserialize_with = "some_or_one")]
    pub(super) temperatures: Option<Vec<f64>>,
    pub(super) seeds: Option<RawSeeds>,
    pub(super) prompts: Option<RawPrompts>,
    #[serde(default)]
    pub(super) chat: bool,
    pub(super) system: Option<String>,
    pub(super) max_tokens: Option<usize>,
    #[serde(default, deserialize_with = "some_or_one")]
    pub(super) warm_ups: Option<Vec<usize>>,
    pub(super) warm_up_prompts: Option<RawWarmUps>,
    #[serde(default)]
    pub(super) stop: Vec<String>,
    #[serde(default)]
    pub(super) first_value: bool,
    #[serde(default)]
    pub(super) prompts_once: bool,
    pub(super) passes: Option<usize>,
    pub(super) enumerate: Option<usize>,
    #[serde(default)]
    pub(super) retokenize: bool,
    #[serde(default)]
    pub(super) turns: Turns,
    pub(super) quick: Option<RawQuick>,
}

/// The changes that `--quick` makes.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawQuick {
    /// Names of the grammars that stay.
    #[serde(default, deserialize_with = "some_or_one")]
    pub(super) grammars: Option<Vec<String>>,
    #[serde(default, deserialize_with = "some_or_one")]
    pub(super) models: Option<Vec<String>>,
    #[serde(default, deserialize_with = "some_or_one")]
    pub(super) methods: Option<Vec<RawMethod>>,
    #[serde(default, deserialize_with = "some_or_one")]
    pub(super) k: Option<Vec<K>>,
    #[serde(default, deserialize_with = "some_or_one")]
    pub(super) s: Option<Vec<usize>>,
    #[serde(default, deserialize_with = "some_or_one")]
    pub(super) threshold: Option<Vec<f64>>,
    #[serde(default, deserialize_with = "some_or_one")]
    pub(super) temperatures: Option<Vec<f64>>,
    pub(super) seeds: Option<RawSeeds>,
    /// Number of prompts of each grammar that stay, from the first on.
    pub(super) prompts: Option<usize>,
    pub(super) max_tokens: Option<usize>,
    #[serde(default, deserialize_with = "some_or_one")]
    pub(super) warm_ups: Option<Vec<usize>>,
}

/// A method: its name, or a table with settings of its own.
#[derive(Debug)]
pub(super) struct RawMethod {
    pub(super) name: String,
    pub(super) think: Option<usize>,
}

impl MayStandAlone for RawMethod {
    const EXPECTED: &'static str =
        "the name of a method or a table such as { name = \"masks\", think = 64 }, or a list of these";
}

/// A program that is a method.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawProgram {
    pub(super) command: Vec<String>,
    #[serde(default = "yes")]
    pub(super) grammar: bool,
}

fn yes() -> bool {
    true
}

/// A draft model: its name, or a table.
#[derive(Debug)]
pub(super) struct RawDraft {
    pub(super) model: String,
    pub(super) quantize: Option<String>,
    pub(super) kv: Option<String>,
}

/// A grammar: the name of a shipped one, or a table.
#[derive(Debug, Default)]
pub(super) struct RawTask {
    pub(super) name: String,
    pub(super) file: Option<String>,
    pub(super) syntax: Option<RawSyntax>,
    pub(super) tools: Option<String>,
    pub(super) spelling: Option<String>,
    pub(super) also: Vec<String>,
    pub(super) prompts: Option<RawPrompts>,
    pub(super) warm_up_prompts: Option<RawWarmUps>,
    pub(super) answer: Option<String>,
}

impl MayStandAlone for RawTask {
    const EXPECTED: &'static str =
        "the name of a grammar or a table with its name and file, or a list of these";
}

/// A notation, by the names that flags have.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RawSyntax {
    Gbnf,
    Regex,
    Ebnf,
    Lark,
    LarkGreedy,
    JsonSchema,
    StructuralTag,
}

/// Seeds: a list, or the first one and a number.
#[derive(Debug, Clone)]
pub(super) struct RawSeeds(pub(super) Vec<u64>);

/// Prompts: a list, one, or a file.
#[derive(Debug, Clone)]
pub(super) enum RawPrompts {
    Inline(Vec<String>),
    File(RawPromptFile),
}

/// Prompts of warm-ups: the name of a way, or prompts.
#[derive(Debug, Clone)]
pub(super) enum RawWarmUps {
    /// The name of a way to choose them.
    Way(WarmUpPrompts),
    /// Prompts of their own.
    Own(RawPrompts),
}

impl<'de> Deserialize<'de> for RawWarmUps {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> de::Visitor<'de> for Visitor {
            type Value = RawWarmUps;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"apart\", \"measured\", a list of prompts, or { file = \"prompts.jsonl\" }")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<RawWarmUps, E> {
                let name = de::value::StrDeserializer::<E>::new(name);
                WarmUpPrompts::deserialize(name).map(RawWarmUps::Way)
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, seq: A) -> Result<RawWarmUps, A::Error> {
                let list = Deserialize::deserialize(de::value::SeqAccessDeserializer::new(seq))?;
                Ok(RawWarmUps::Own(RawPrompts::Inline(list)))
            }

            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<RawWarmUps, A::Error> {
                let file = RawPromptFile::deserialize(de::value::MapAccessDeserializer::new(map))?;
                Ok(RawWarmUps::Own(RawPrompts::File(file)))
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

/// Prompts in lines of JSON.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawPromptFile {
    pub(super) file: String,
    /// Only lines with this `task` count; by default the grammar's name. Lines without a `task` are for all.
    pub(super) form: Option<String>,
    /// Number of lines used, from the first on.
    pub(super) most: Option<usize>,
}

impl RawDefinition {
    /// Reads a definition; `name` is its name in errors.
    pub(super) fn parse(text: &str, name: &str) -> Result<Self, ExperimentError> {
        toml::from_str(text).map_err(|error| {
            let place = error.span().map(|span| position(text, span.start));
            let place =
                place.map_or_else(|| name.to_owned(), |(line, column)| format!("{name}:{line}:{column}"));
            // What is meant says more than a list of all keys there are.
            let message = error.message().replace('\n', " ");
            let hint = suggest::known_key(&message)
                .unwrap_or_else(|| "docs/speculation-reference.md lists the keys of a definition".to_owned());
            let said = match message.split_once(", expected") {
                Some((said, _)) if message.starts_with("unknown field") => said.to_owned(),
                _ => message,
            };
            ExperimentError::definition(place, said).with_hint(hint)
        })
    }
}

/// Returns line and column of a byte, in characters from 1.
fn position(text: &str, byte: usize) -> (usize, usize) {
    let before = text.get(..byte).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
    (line, column)
}

/// A table or something simpler in its place, with errors that name what is wrong inside.
macro_rules! simple_or_table {
    ($type:ty, $expecting:literal, $($simple:ident => $of:expr),+; $table:ty => $from_table:expr) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;

                impl<'de> de::Visitor<'de> for Visitor {
                    type Value = $type;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expecting)
                    }

                    $(simple_or_table!(@ $simple $type, $of);)+

                    fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<$type, A::Error> {
                        let table = <$table>::deserialize(de::value::MapAccessDeserializer::new(map))?;
                        $from_table(table)
                    }
                }

                deserializer.deserialize_any(Visitor)
            }
        }
    };
    (@ list $type:ty, $from:expr) => {
        fn visit_seq<A: de::SeqAccess<'de>>(self, seq: A) -> Result<$type, A::Error> {
            let list = Deserialize::deserialize(de::value::SeqAccessDeserializer::new(seq))?;
            Ok($from(list))
        }
    };
    (@ text $type:ty, $from:expr) => {
        fn visit_str<E: de::Error>(self, text: &str) -> Result<$type, E> {
            Ok($from(text.to_owned()))
        }
    };
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SeedRange {
    from: u64,
    count: u64,
}

simple_or_table!(
    RawSeeds, "a list of seeds, or { from = 0, count = 20 }",
    list => RawSeeds;
    SeedRange => |SeedRange { from, count }| match from.checked_add(count) {
        Some(end) if count <= 1_000_000 => Ok(RawSeeds((from..end).collect())),
        _ => Err(de::Error::custom("more than a million seeds")),
    }
);

simple_or_table!(
    RawPrompts, "a list of prompts, or { file = \"prompts.jsonl\", form = \"json\" }",
    list => RawPrompts::Inline,
    text => |prompt| RawPrompts::Inline(vec![prompt]);
    RawPromptFile => |file| Ok(RawPrompts::File(file))
);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskTable {
    name: String,
    file: Option<String>,
    syntax: Option<RawSyntax>,
    tools: Option<String>,
    spelling: Option<String>,
    #[serde(default, deserialize_with = "list_or_one")]
    also: Vec<String>,
    prompts: Option<RawPrompts>,
    warm_up_prompts: Option<RawWarmUps>,
    answer: Option<String>,
}

simple_or_table!(
    RawTask, "the name of a grammar that comes with the program, or a table with its name and file",
    text => |name| {
        RawTask { name, ..RawTask::default() }
    };
    TaskTable => |table| {
        let TaskTable { name, file, syntax, tools, spelling, also, prompts, warm_up_prompts, answer } = table;
        Ok(RawTask { name, file, syntax, tools, spelling, also, prompts, warm_up_prompts, answer })
    }
);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MethodTable {
    name: String,
    think: Option<usize>,
}

simple_or_table!(
    RawMethod, "the name of a method, or a table such as { name = \"masks\", think = 64 }",
    text => |name| RawMethod { name, think: None };
    MethodTable => |MethodTable { name, think }| Ok(RawMethod { name, think })
);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DraftTable {
    model: String,
    quantize: Option<String>,
    kv: Option<String>,
}

simple_or_table!(
    RawDraft, "a model, or { model = \"..\", quantize = \"q4_0\", kv = \"f16\" }",
    text => |model| RawDraft { model, quantize: None, kv: None };
    DraftTable => |DraftTable { model, quantize, kv }| Ok(RawDraft { model, quantize, kv })
);

/// A thing that definitions have lists of.
trait MayStandAlone {
    /// The values that may stand in its place, in words.
    const EXPECTED: &'static str;
}

impl MayStandAlone for K {
    const EXPECTED: &'static str = "a number of terminals or \"infinite\", or a list of these";
}

impl MayStandAlone for usize {
    const EXPECTED: &'static str = "a number, or a list of numbers";
}

impl MayStandAlone for f64 {
    const EXPECTED: &'static str = "a number, or a list of numbers";
}

impl MayStandAlone for String {
    const EXPECTED: &'static str = "a name, or a list of names";
}

/// Reads a list, or one thing in its place.
fn list_or_one<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + MayStandAlone,
{
    deserializer.deserialize_any(ListOrOne(PhantomData))
}

/// Reads it from a key that may be left out.
fn some_or_one<'de, D, T>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + MayStandAlone,
{
    list_or_one(deserializer).map(Some)
}

struct ListOrOne<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de> + MayStandAlone> ListOrOne<T> {
    /// Reads the list of one thing. An error says what is wrong by the thing's own type, then what may stand
    /// there.
    fn of_one<E: de::Error>(one: impl IntoDeserializer<'de, value::Error>) -> Result<Vec<T>, E> {
        let one = T::deserialize(one.into_deserializer()).map_err(|error| {
            let said = error.to_string();
            let wrong = said.split_once(", expected ").map_or(&*said, |(wrong, _)| wrong);
            E::custom(format!("{wrong}, expected {}", T::EXPECTED))
        })?;
        Ok(vec![one])
    }
}

impl<'de, T: Deserialize<'de> + MayStandAlone> de::Visitor<'de> for ListOrOne<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_bool<E: de::Error>(self, one: bool) -> Result<Vec<T>, E> {
        Self::of_one(one)
    }

    fn visit_i64<E: de::Error>(self, one: i64) -> Result<Vec<T>, E> {
        Self::of_one(one)
    }

    fn visit_u64<E: de::Error>(self, one: u64) -> Result<Vec<T>, E> {
        Self::of_one(one)
    }

    fn visit_f64<E: de::Error>(self, one: f64) -> Result<Vec<T>, E> {
        Self::of_one(one)
    }

    fn visit_str<E: de::Error>(self, one: &str) -> Result<Vec<T>, E> {
        Self::of_one(one)
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, list: A) -> Result<Vec<T>, A::Error> {
        Deserialize::deserialize(value::SeqAccessDeserializer::new(list))
    }

    fn visit_map<A: de::MapAccess<'de>>(self, one: A) -> Result<Vec<T>, A::Error> {
        T::deserialize(value::MapAccessDeserializer::new(one)).map(|one| vec![one])
    }
}

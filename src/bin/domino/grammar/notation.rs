//! Notations: how grammars are read in them, and which options for JSON Schemas they take.
//!
//! Where a file was misread, its true kind is guessed at for the error message ([`Look`]); nothing is read by
//! that.

use std::path::Path;

use clap::ValueEnum;
use domino::grammar::json_schema::{Relaxed, SchemaGrammar, SchemaOptions, WhiteSpace};
use domino::grammar::{DistinctKeys, suggest};
use domino::{Grammar, GrammarError, Limits, Syntax};
use serde_json::{Map, Value, json};

use crate::{grammar::compiler, terminal::failure::BadInput};

/// The notations, under the names that flags and batches use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub(crate) enum Notation {
    /// llama.cpp's GBNF (`*.gbnf`).
    Gbnf,
    /// GBNF of JSON in which no object has a key twice, which the notation cannot say. For grammars that come
    /// with the program.
    #[value(skip)]
    GbnfOfJson,
    /// One regular expression for the whole text (`*.regex`).
    Regex,
    /// Lark in the dialect of llguidance (`*.lark`).
    Lark,
    /// The same, split into terminals greedily, as llguidance's lexer does.
    #[value(name = "lark_greedy", alias = "lark-greedy")]
    LarkGreedy,
    /// XGrammar's EBNF (`*.ebnf`).
    Ebnf,
    /// JSON Schema (`*.json`).
    #[value(name = "json_schema", alias = "json-schema")]
    JsonSchema,
    /// XGrammar's structural tags: free text with tags in it (`*.tags.json`).
    #[value(name = "structural_tag", alias = "structural-tag")]
    StructuralTag,
}

/// A grammar that was read.
#[derive(Debug)]
pub(crate) struct Parsed {
    /// The grammar.
    pub(crate) grammar: Grammar,
    /// The places where it allows more than its schema.
    pub(crate) relaxed: Vec<Relaxed>,
    /// The schemas of objects that take keys beside those that they list.
    pub(crate) open_objects: Vec<String>,
}

impl From<Grammar> for Parsed {
    fn from(grammar: Grammar) -> Self {
        Self { grammar, relaxed: Vec::new(), open_objects: Vec::new() }
    }
}

impl From<SchemaGrammar> for Parsed {
    fn from(schema: SchemaGrammar) -> Self {
        let SchemaGrammar { grammar, relaxed, open_objects, .. } = schema;
        Self { grammar, relaxed, open_objects }
    }
}

/// Lists as JSON what a grammar allows beyond its schema.
pub(crate) fn relaxed_as_json(relaxed: &[Relaxed]) -> Vec<Value> {
    let one = |relaxed: &Relaxed| {
        let Relaxed { pointer, keyword, why } = relaxed;
        json!({ "pointer": pointer, "keyword": keyword, "why": why })
    };
    relaxed.iter().map(one).collect()
}

impl Notation {
    /// Finds the notation called `name`.
    pub(crate) fn by_name(name: &str) -> Result<Self, BadInput> {
        <Self as ValueEnum>::from_str(name, false).map_err(|_| {
            let known: Vec<_> = Self::value_variants().iter().filter_map(Self::to_possible_value).collect();
            let known: Vec<&str> = known.iter().map(|value| value.get_name()).collect();
            let near = suggest::did_you_mean(name, known.iter().copied());
            BadInput::new(format!("unknown syntax {name:?}"))
                .hint(near.unwrap_or_else(|| format!("the syntaxes are {}", known.join(", "))))
        })
    }

    /// The name that `--syntax` takes.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// The kind of a text in this notation, with an article.
    pub(crate) fn in_words(self) -> &'static str {
        match self {
            Self::Gbnf | Self::GbnfOfJson => "GBNF",
            Self::Regex => "a regular expression",
            Self::Lark | Self::LarkGreedy => "Lark",
            Self::Ebnf => "EBNF",
            Self::JsonSchema => "a JSON Schema",
            Self::StructuralTag => "structural tags",
        }
    }

    /// Guesses the notation of a file by the end of its name.
    pub(super) fn of_file(path: &Path) -> Self {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_ascii_lowercase();
        match name.rsplit_once('.').map_or("", |(_, extension)| extension) {
            "regex" | "re" => Self::Regex,
            "json" if name.ends_with(".tags.json") => Self::StructuralTag,
            "json" | "jsonschema" | "schema" => Self::JsonSchema,
            "lark" => Self::Lark,
            "ebnf" => Self::Ebnf,
            _ => Self::Gbnf,
        }
    }

    /// The library's name of this notation.
    pub(crate) fn syntax(self) -> Syntax {
        match self {
            Self::Gbnf | Self::GbnfOfJson => Syntax::Gbnf,
            Self::Regex => Syntax::Regex,
            Self::Lark => Syntax::Lark,
            Self::LarkGreedy => Syntax::LarkGreedy,
            Self::Ebnf => Syntax::Ebnf,
            Self::JsonSchema => Syntax::JsonSchema,
            Self::StructuralTag => Syntax::StructuralTag,
        }
    }

    /// The options for schemas inside a text of this notation: those of their spelling, if it can have any
    /// inside.
    pub(crate) fn options_inside(self, options: &SchemaOptions) -> SchemaOptions {
        let inside = SchemaOptions::default();
        let leaves = |inside: SchemaOptions| {
            let inside = inside.with_numbers(options.numbers).with_escapes(options.escapes);
            inside.with_format(options.format)
        };
        match self {
            Self::JsonSchema => options.clone(),
            Self::StructuralTag => {
                let mut inside = inside.with_order(options.order).with_white_space(options.white_space);
                inside.closed = options.closed;
                leaves(inside)
            }
            Self::Lark => match options.white_space {
                // For judging: what stands around a schema is for other rules to say.
                WhiteSpace::Any => leaves(inside).with_white_space(WhiteSpace::Wide),
                _ => leaves(inside),
            },
            Self::Gbnf | Self::GbnfOfJson | Self::Regex | Self::LarkGreedy | Self::Ebnf => inside,
        }
    }

    /// The flags for schemas that a grammar in this notation takes; `None` if it takes all.
    pub(crate) fn schema_flags(self) -> Option<&'static [&'static str]> {
        match self {
            Self::JsonSchema => None,
            Self::StructuralTag => {
                Some(&["--order", "--whitespace", "--escapes", "--numbers", "--format", "--closed"])
            }
            Self::Lark => Some(&["--escapes", "--numbers", "--format"]),
            Self::Gbnf | Self::GbnfOfJson | Self::Regex | Self::LarkGreedy | Self::Ebnf => Some(&[]),
        }
    }

    /// Reads a grammar in this notation, a schema with default options.
    pub(crate) fn parse(self, text: &[u8]) -> Result<Grammar, GrammarError> {
        Ok(self.read(text, &SchemaOptions::default(), &compiler::limits())?.grammar)
    }

    /// Reads a grammar in this notation; the options are for schemas.
    pub(crate) fn read(
        self,
        text: &[u8],
        options: &SchemaOptions,
        limits: &Limits,
    ) -> Result<Parsed, GrammarError> {
        let automata = compiler::automata();
        match (self, std::str::from_utf8(text)) {
            (Self::JsonSchema, Ok(text)) => Ok(options.parse_with(text, limits, automata)?.into()),
            (_, Ok(text)) => {
                let options = self.options_inside(options);
                let grammar = Grammar::parse_by(self.syntax(), text, &options, limits, automata)?;
                Ok(self.finished(grammar).into())
            }
            _ => Ok(Grammar::parse_bytes_with(self.syntax(), text, limits, automata)?.into()),
        }
    }

    /// Adds to a grammar what its text cannot say.
    fn finished(self, grammar: Grammar) -> Grammar {
        match self {
            // A key may be a terminal together with what follows, so masks look at all tokens.
            Self::GbnfOfJson => {
                grammar.with_distinct_keys(DistinctKeys { may_run_out: false, are_terminals: false })
            }
            _ => grammar,
        }
    }
}

/// Keywords that tell a JSON Schema. Those that other files have too (`type`, `title`) are left out.
const TELLING: &str = "\
    $schema $ref $defs definitions properties patternProperties additionalProperties required items \
    prefixItems enum const anyOf allOf oneOf not";

/// The values of `type` in a JSON Schema.
const TYPES: [&str; 7] = ["object", "array", "string", "number", "integer", "boolean", "null"];

/// A kind of file that a text looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// A grammar in this notation.
    Grammar(Notation),
    /// A list of functions, as OpenAI's API has it, or MCP.
    Tools,
    /// Functions outside a list: one alone, or the answer of an MCP server.
    LooseTools,
    /// A `response_format` of OpenAI's API with a schema in it.
    ResponseFormat,
    /// A `tokenizer.json`.
    Tokenizer,
    /// A description of an API with schemas in it.
    OpenApi,
}

impl Look {
    /// Guesses the kind of a text, if that is clear. Linear.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let text = text.trim_start_matches('\u{FEFF}').trim();
        if text.starts_with(['{', '[']) {
            return match serde_json::from_str(text) {
                Ok(Value::Array(list)) => Self::of_list(&list),
                Ok(Value::Object(object)) => Self::of_object(&object),
                Ok(_) => None,
                Err(_) => of_broken_json(text),
            };
        }
        of_rules(text).map(Self::Grammar)
    }

    fn of_list(list: &[Value]) -> Option<Self> {
        (!list.is_empty() && list.iter().all(is_tool)).then_some(Self::Tools)
    }

    fn of_object(object: &Map<String, Value>) -> Option<Self> {
        let has = |key: &str| object.contains_key(key);
        let kind = object.get("type").and_then(Value::as_str);
        match kind {
            Some("structural_tag") => return Some(Self::Grammar(Notation::StructuralTag)),
            Some("json_schema") if has("json_schema") => return Some(Self::ResponseFormat),
            _ => {}
        }
        let is_type =
            kind.is_some_and(|kind| TYPES.contains(&kind)) || object.get("type").is_some_and(Value::is_array);
        if is_type || TELLING.split(' ').any(has) {
            return Some(Self::Grammar(Notation::JsonSchema));
        }
        if has("added_tokens") && has("model") {
            return Some(Self::Tokenizer);
        }
        if (has("openapi") || has("swagger")) && (has("paths") || has("components") || has("info")) {
            return Some(Self::OpenApi);
        }
        let list = |object: &Value| Self::of_list(object.get("tools")?.as_array()?);
        if let Some(look) = object.get("tools").and_then(Value::as_array).and_then(|list| Self::of_list(list))
        {
            return Some(look);
        }
        let is_loose = object.get("result").and_then(list).is_some() || is_tool_of(object);
        is_loose.then_some(Self::LooseTools)
    }

    /// True if the text is surely no JSON Schema, although every object can be read as one.
    pub(crate) fn is_no_schema(self) -> bool {
        !matches!(self, Self::Grammar(_))
    }

    /// True if a text in this notation has this look.
    pub(crate) fn is(self, notation: Notation) -> bool {
        let kind = |notation| match notation {
            Notation::LarkGreedy => Notation::Lark,
            Notation::Ebnf => Notation::Gbnf,
            other => other,
        };
        matches!(self, Self::Grammar(looks) if kind(looks) == kind(notation))
    }

    /// Makes the error for the file `name`, which was read in `notation`.
    pub(crate) fn mistaken(self, name: &str, notation: Notation) -> BadInput {
        let (look, read_as) = (self.name(), notation.in_words());
        BadInput::new(format!("{name}: this looks like {look}, and was read as {read_as}"))
            .hint(self.advice())
    }

    /// The name of the kind of file, with an article.
    fn name(self) -> &'static str {
        match self {
            Self::Grammar(notation) => notation.in_words(),
            Self::Tools => "a list of functions (tools)",
            Self::LooseTools => "functions (tools) that stand in no list",
            Self::ResponseFormat => "a `response_format` of OpenAI's API",
            Self::Tokenizer => "a tokenizer",
            Self::OpenApi => "a description of an API",
        }
    }

    /// Advice for whoever gave such a file.
    fn advice(self) -> String {
        match self {
            Self::Grammar(Notation::JsonSchema) => {
                "pass it by `--schema FILE`, or with `--syntax json_schema`".to_owned()
            }
            Self::Grammar(notation) => format!("pass `--syntax {}`", notation.name()),
            Self::Tools => "pass the list by `--tools FILE`, with `--tool-spelling NAME`".to_owned(),
            Self::LooseTools => "write them as a list, `[{..}]`, and pass that by `--tools FILE`, with \
                                 `--tool-spelling NAME`"
                .to_owned(),
            Self::ResponseFormat => "the schema is under `json_schema`, `schema`: pass that".to_owned(),
            Self::Tokenizer => "tokenizers are given by `--tokenizer FILE`".to_owned(),
            Self::OpenApi => {
                "pass one of its schemas: `{\"$ref\": \"api.json#/components/schemas/NAME\"}` as the schema, \
                 and the folder of api.json by `--documents DIR`"
                    .to_owned()
            }
        }
    }
}

/// True if the value is a function that a model may call.
fn is_tool(one: &Value) -> bool {
    one.as_object().is_some_and(is_tool_of)
}

fn is_tool_of(one: &Map<String, Value>) -> bool {
    let named = |function: &Map<String, Value>| function.contains_key("name");
    if let Some(function) = one.get("function").and_then(Value::as_object) {
        return named(function);
    }
    let told = ["parameters", "inputSchema", "input_schema", "description"];
    named(one) && told.into_iter().any(|key| one.contains_key(key))
}

/// Recognises a schema with a mistake in its JSON, such as a comment or a last comma.
fn of_broken_json(text: &str) -> Option<Look> {
    let telling = ["\"$schema\"", "\"properties\"", "\"type\"", "\"anyOf\"", "\"enum\""];
    let is_schema = text.starts_with('{') && telling.into_iter().any(|keyword| text.contains(keyword));
    is_schema.then_some(Look::Grammar(Notation::JsonSchema))
}

/// Recognises a grammar of rules by how the first of them begin.
fn of_rules(text: &str) -> Option<Notation> {
    let code = text.lines().map(str::trim_start).filter(|line| !line.is_empty());
    for line in code.filter(|line| !line.starts_with('#') && !line.starts_with("//")).take(20) {
        let name = line.trim_start_matches(['?', '!']);
        let after = name.trim_start_matches(|c: char| c.is_alphanumeric() || "_-.".contains(c));
        let has_name = after.len() < name.len();
        let after = after.trim_start();
        if has_name && after.starts_with("::=") {
            return Some(Notation::Gbnf);
        }
        let is_keyword =
            ["%import", "%ignore", "%llguidance", "%declare"].into_iter().any(|word| line.starts_with(word));
        if is_keyword || (has_name && after.starts_with(':') && !after.starts_with("::")) {
            return Some(Notation::Lark);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use domino::grammar::json_schema::{Escapes, Format, Numbers, Order};

    use super::*;

    /// An option reaches the schemas inside of a notation if and only if its flag is taken.
    #[test]
    fn options_reach_schemas_whose_flags_are_taken() {
        let usual = SchemaOptions::default();
        let changed = [
            ("--order", usual.clone().with_order(Order::Any)),
            ("--whitespace", usual.clone().with_white_space(WhiteSpace::Compact)),
            ("--escapes", usual.clone().with_escapes(Escapes::All)),
            ("--numbers", usual.clone().with_numbers(Numbers::Any)),
            ("--format", usual.clone().with_format(Format::Annotate)),
            ("--closed", usual.clone().with_closed(true)),
            ("--max-depth", usual.clone().with_max_depth(Some(3))),
        ];
        for notation in [Notation::StructuralTag, Notation::Lark, Notation::Gbnf, Notation::JsonSchema] {
            for (flag, options) in &changed {
                let taken = notation.schema_flags().is_none_or(|flags| flags.contains(flag));
                assert_eq!(notation.options_inside(options) == *options, taken, "{notation:?} {flag}");
                assert_eq!(notation.options_inside(options) != usual, taken, "{notation:?} {flag}");
            }
        }
    }

    #[test]
    fn the_kind_of_a_misread_file_is_guessed_from_its_text() {
        let schema = Look::Grammar(Notation::JsonSchema);
        for (text, want) in [
            ("{\n  \"type\": \"array\"\n}\n", Some(schema)),
            ("\u{FEFF}{\"$schema\": \"https://json-schema.org/draft/2020-12/schema\"}", Some(schema)),
            ("{\"type\": [\"string\", \"null\"]}", Some(schema)),
            ("{\"anyOf\": []}", Some(schema)),
            ("{\"properties\": {\"a\": {}},}", Some(schema)),
            ("{\"type\": \"structural_tag\", \"format\": {}}", Some(Look::Grammar(Notation::StructuralTag))),
            ("[{\"type\": \"function\", \"function\": {\"name\": \"f\"}}]", Some(Look::Tools)),
            ("[{\"name\": \"f\", \"inputSchema\": {}}]", Some(Look::Tools)),
            ("{\"tools\": [{\"name\": \"f\", \"parameters\": {}}]}", Some(Look::Tools)),
            ("{\"type\": \"function\", \"function\": {\"name\": \"f\"}}", Some(Look::LooseTools)),
            ("{\"name\": \"f\", \"parameters\": {\"type\": \"object\"}}", Some(Look::LooseTools)),
            ("{\"name\": \"f\", \"input_schema\": {}}", Some(Look::LooseTools)),
            ("{\"result\": {\"tools\": [{\"name\": \"f\", \"inputSchema\": {}}]}}", Some(Look::LooseTools)),
            ("{\"type\": \"object\", \"name\": \"f\", \"parameters\": {}}", Some(schema)),
            ("{\"type\": \"json_schema\", \"json_schema\": {\"schema\": {}}}", Some(Look::ResponseFormat)),
            ("{\"version\": \"1.0\", \"added_tokens\": [], \"model\": {}}", Some(Look::Tokenizer)),
            ("{\"openapi\": \"3.0.0\", \"info\": {}, \"paths\": {}}", Some(Look::OpenApi)),
            ("# words\nroot ::= \"a\"", Some(Look::Grammar(Notation::Gbnf))),
            ("start: \"a\"", Some(Look::Grammar(Notation::Lark))),
            ("%import common.WORD\nstart: WORD", Some(Look::Grammar(Notation::Lark))),
            ("[a-z]+", None),
            ("[1, 2]", None),
            ("{\"a\": 1}", None),
            ("(?:a)::b", None),
            ("", None),
        ] {
            assert_eq!(Look::of(text), want, "{text}");
        }
        assert!(Look::Grammar(Notation::Gbnf).is(Notation::Ebnf) && !schema.is(Notation::StructuralTag));
    }
}

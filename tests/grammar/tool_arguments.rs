//! Arguments between XML tags: texts that are values, and their values. Where a test names no style, it is
//! that of Qwen3-Coder.

use domino::{
    Grammar, Limits, Syntax,
    grammar::{
        AutomataCache, GrammarWarningKind,
        json_schema::{Numbers, SchemaOptions, WhiteSpace},
        tools::{Calling, Choice, Spelling, Tools, calls::Reader},
    },
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::grammar::tools::{accepts_of, bare_value, python};

/// A function of one argument with this schema.
struct Function {
    spelling: Spelling,
    list: String,
    grammar: Grammar,
    /// A grammar of all arguments as JSON, which decides what is valid.
    valid: Grammar,
    reader: Reader,
}

impl Function {
    fn of(argument: &Value) -> Self {
        Self::with(&Self::parameters(argument))
    }

    fn parameters(argument: &Value) -> Value {
        let defs = json!({
            "text": { "type": "string" }, "none": { "type": "null" }, "big": { "minimum": 5 },
        });
        json!({ "type": "object", "properties": { "a": argument }, "required": ["a"], "$defs": defs })
    }

    fn list(parameters: &Value) -> String {
        json!([{ "type": "function", "function": { "name": "f", "parameters": parameters } }]).to_string()
    }

    fn with(parameters: &Value) -> Self {
        Self::spelled(Spelling::QwenCoder, parameters)
    }

    fn spelled(spelling: Spelling, parameters: &Value) -> Self {
        let list = Self::list(parameters);
        let tools = Tools::parse(&list).unwrap();
        let calling = Calling::new(spelling).choice(Choice::Required);
        let wide = SchemaOptions::default().with_white_space(WhiteSpace::Wide);
        let grammar = tools.grammar_by(&calling, &wide, &Limits::default(), &AutomataCache::new());
        let grammar = grammar.unwrap_or_else(|error| panic!("{parameters}: {error}"));
        let reader = Reader::new(spelling, &tools);
        let options = SchemaOptions::default()
            .with_closed(true)
            .with_white_space(WhiteSpace::Any)
            .with_numbers(Numbers::Any);
        let valid = options.parse(&parameters.to_string(), &Limits::default()).unwrap().grammar;
        Self { spelling, grammar, valid, reader, list }
    }

    /// True for a call with this text between the tags of its argument.
    fn takes(&self, text: &str) -> bool {
        accepts_of(&self.grammar, &self.call(text, true))
    }

    /// Reads the argument's value back.
    fn read(&self, text: &str) -> Value {
        self.read_call(&self.call(text, true))
    }

    fn read_call(&self, call: &str) -> Value {
        let answer = self.reader.read(call, true);
        assert_eq!((answer.calls.len(), answer.content.as_str()), (1, ""), "{}: {call}", self.list);
        let mut value: Value = serde_json::from_str(&answer.calls[0].arguments).unwrap();
        value["a"].take()
    }

    /// A call with this text between the tags of its argument. Some tags say whether it is a string.
    fn call(&self, text: &str, is_string: bool) -> String {
        match self.spelling {
            Spelling::Glm => {
                format!("<tool_call>f<arg_key>a</arg_key><arg_value>{text}</arg_value></tool_call>")
            }
            Spelling::MiniMax => format!(
                "<minimax:tool_call>\n<invoke name=\"f\">\n<parameter name=\"a\">{text}</parameter>\n\
                 </invoke>\n</minimax:tool_call>"
            ),
            Spelling::DeepSeekV32 => format!(
                "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"f\">\n\
                 <｜DSML｜parameter name=\"a\" string=\"{is_string}\">{text}</｜DSML｜parameter>\n\
                 </｜DSML｜invoke>\n</｜DSML｜function_calls>"
            ),
            _ => format!(
                "<tool_call>\n<function=f>\n<parameter=a>{text}</parameter>\n</function>\n</tool_call>"
            ),
        }
    }

    /// True if a call is in the grammar, and its argument is read as this value.
    fn is_read_as(&self, call: &str, value: &Value) -> bool {
        accepts_of(&self.grammar, call) && self.read_call(call) == *value
    }

    fn is_valid(&self, value: &Value) -> bool {
        accepts_of(&self.valid, &json!({ "a": value }).to_string())
    }
}

/// The texts of `arguments.jsonl` on lines of their own: strings that stand for themselves, texts of values,
/// and texts outside of the grammar.
#[test]
fn arguments_of_the_fixture_are_read_as_listed() {
    for line in include_str!("../fixtures/notations/arguments.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let function = Function::of(&case["schema"]);
        let list = |key: &str| case[key].as_array().unwrap().clone();
        let strings = list("strings").into_iter().map(|string| (string.clone(), string));
        let values = list("values").into_iter().map(|pair| (pair[0].clone(), pair[1].clone()));
        for (text, value) in strings.chain(values) {
            let text = format!("\n{}\n", text.as_str().unwrap());
            assert!(function.takes(&text), "{text:?} of {line}");
            assert_eq!(function.read(&text), value, "{text:?} of {line}");
            assert!(function.is_valid(&value), "{value} of {line}");
        }
        for text in list("refused") {
            assert!(!function.takes(&format!("\n{}\n", text.as_str().unwrap())), "{text} of {line}");
        }
        assert!(!function.takes("\nx</parameter>\n"), "{line}");
    }
}

/// One line feed at either end belongs to the tags, and either may be missing.
#[test]
fn line_feeds_at_the_ends_are_the_tags() {
    for schema in [
        json!({ "type": "string", "maxLength": 2 }),
        json!({ "type": "string", "minLength": 1, "maxLength": 40 }),
        json!({ "type": ["string", "null"], "minLength": 1 }),
        json!({ "type": "string", "pattern": "^[a\\n]{1,50}$" }),
    ] {
        let function = Function::of(&schema);
        for (text, string) in [
            ("a", "a"),
            ("\na", "a"),
            ("a\n", "a"),
            ("\na\n", "a"),
            ("\n\na\n", "\na"),
            ("\na\n\n", "a\n"),
            ("\n\n\n", "\n"),
        ] {
            assert!(function.takes(text), "{schema}: {text:?}");
            assert_eq!(function.read(text), string, "{schema}: {text:?}");
        }
        let empty = schema.get("minLength").is_none() && schema.get("pattern").is_none();
        for text in ["", "\n", "\n\n"] {
            assert_eq!(function.takes(text), empty, "{schema}: {text:?}");
        }
    }
}

#[test]
fn lengths_are_exact_up_to_the_ends() {
    for (min, max) in [(0, 31), (0, 33), (3, 65), (200, 280), (1_000, 1_001), (40, 4_000)] {
        let function = Function::of(&json!({ "type": "string", "minLength": min, "maxLength": max }));
        for length in [0, 1, min.max(1) - 1, min, min + 1, max - 1, max, max + 1, max + 12] {
            for sign in ["x", "é", "<", "\n"] {
                let text = sign.repeat(length);
                let fits = (min..=max).contains(&length);
                assert_eq!(function.takes(&format!("\n{text}\n")), fits, "{min}..{max}: {length} {sign:?}");
            }
        }
    }
    let function = Function::of(&json!({ "type": "string", "minLength": 100 }));
    assert!(!function.takes(&"x".repeat(99)) && function.takes(&"x".repeat(100)));
}

/// Strings too long to be counted are left out, with a warning.
#[test]
fn very_long_strings_are_left_out_with_a_warning() {
    let long = |schema: Value| {
        let function = Function::of(&schema);
        let kinds: Vec<_> = function.grammar.warnings().iter().map(|warning| warning.kind()).collect();
        assert!(function.takes(&"x".repeat(3_000)), "{schema}");
        kinds
    };
    assert_eq!(long(json!({ "type": "string", "maxLength": 65_536 })), []);
    let left_out = [GrammarWarningKind::LongStrings];
    assert_eq!(long(json!({ "type": "string", "maxLength": 20_971_520 })), left_out);
    assert_eq!(long(json!({ "type": "string", "minLength": 2_000 })), left_out);
}

/// A schema of all arguments may use any keyword, as long as it is about single arguments.
#[test]
fn schemas_of_all_arguments_may_use_any_keyword() {
    let takes = |function: &Function, arguments: &[(&str, &str)]| {
        let inside: String = arguments
            .iter()
            .map(|(name, text)| format!("<parameter={name}>\n{text}\n</parameter>\n"))
            .collect();
        let call = format!("<tool_call>\n<function=f>\n{inside}</function>\n</tool_call>");
        accepts_of(&function.grammar, &call)
    };
    for none in [json!({ "type": "object" }), json!({})] {
        // A function without a schema of arguments takes any, as in other spellings.
        let function = Function::with(&none);
        assert!(takes(&function, &[]) && takes(&function, &[("x", "1"), ("y", "z")]), "{none}");
    }
    let closed = Function::with(&json!({ "type": "object", "additionalProperties": false }));
    assert!(takes(&closed, &[]) && !takes(&closed, &[("x", "1")]));
    let open = Function::with(&json!({
        "properties": { "a": { "type": "integer" } }, "additionalProperties": { "type": ["string", "null"] },
    }));
    assert!(takes(&open, &[("a", "1"), ("b", "x")]) && !takes(&open, &[("a", "x")]));
    assert_eq!(open.grammar.warnings()[0].kind(), GrammarWarningKind::DuplicateKeys);
    let merged = Function::with(&json!({
        "allOf": [{ "properties": { "a": { "type": "string" } } }, { "$ref": "#/$defs/more" }],
        "$defs": { "more": { "properties": { "b": { "minLength": 2 } }, "required": ["b"] } },
    }));
    assert!(takes(&merged, &[("a", "x"), ("b", "yy")]) && !takes(&merged, &[("a", "x")]));
    // One of two ways, in which `b` is of other types: then 1 is a number in both.
    let ways = Function::with(&json!({ "type": "object", "oneOf": [
        { "properties": { "a": { "const": "n" }, "b": { "type": "integer" } }, "required": ["a", "b"] },
        { "properties": { "a": { "const": "s" }, "b": { "type": "string" } }, "required": ["a", "b"] },
    ] }));
    assert!(takes(&ways, &[("a", "n"), ("b", "1")]) && takes(&ways, &[("a", "s"), ("b", "x")]));
    assert!(!takes(&ways, &[("a", "s"), ("b", "1")]) && takes(&ways, &[("a", "s"), ("b", "\"1\"")]));
    for refused in [
        json!({ "type": "array" }),
        json!({ "properties": { "a": {}, "b": {} }, "minProperties": 1 }),
        json!({ "properties": { "a": { "const": "</parameter>" } }, "required": ["a"] }),
        json!({ "properties": { "a>": {} }, "required": ["a>"] }),
    ] {
        let list = json!([{ "name": "f", "parameters": refused }]).to_string();
        let tools = Tools::parse(&list).unwrap();
        let error = tools.grammar(&Calling::new(Spelling::QwenCoder), &Limits::default()).unwrap_err();
        assert!(error.message().starts_with("function `f`: "), "{error}");
        assert!(error.span().is_some(), "{error}");
    }
}

#[test]
fn calls_are_read_whatever_stands_in_their_arguments() {
    let function = Function::with(&json!({ "type": "object", "properties": {
        "a": { "type": "string" }, "b": { "type": "array" }, "n": { "type": "number" },
    } }));
    let inside = "<parameter=a>\n</function>\n</tool_call>\n<parameter=b>\n1\n</parameter>\n\
                  <parameter=b>\n[\"</parameter>\", \"\\\"\"]\n</parameter>\n\
                  <parameter=n>\n12345678901234.25\n</parameter>\n";
    let call = format!("<tool_call>\n<function=f>\n{inside}</function>\n</tool_call>");
    assert!(accepts_of(&function.grammar, &call));
    let answer = function.reader.read(&call, true);
    assert_eq!(
        answer.calls[0].arguments,
        concat!(
            r#"{"a":"</function>\n</tool_call>\n<parameter=b>\n1","b":["</parameter>", "\""],"#,
            r#""n":12345678901234.25}"#
        ),
    );
    // While it is being written nothing is said that is not so in the end.
    for (at, _) in call.char_indices() {
        let part = function.reader.read(&call[..at], false);
        assert!(part.content.is_empty() && part.calls.len() <= 1, "{:?}", &call[..at]);
        assert!(part.calls.iter().all(|call| call.arguments.is_empty()), "{:?}", &call[..at]);
    }
}

/// Strings that look like something else, and values of all types.
fn values() -> Vec<Value> {
    let strings = [
        "",
        "null",
        "1",
        "1.5",
        "-0",
        "1e5",
        "true",
        "Bern",
        " x ",
        "\nx\n",
        "\n",
        "[1]",
        "[draft",
        "[\"a",
        "[[[",
        "{\"a\": 1}",
        "{}",
        "{",
        "\"q\"",
        "\"q",
        "<b>",
        "a</parameter>b",
        "</param",
        "2024-01-01",
        "ab",
        "auto",
        "é😀",
        "[\"a\"",
        "[\"\\",
        "{\"a\": [1, [2]]}",
        "nul",
        "12",
    ];
    let others = json!([
        null, true, false, 0, 1, 7, -3, 1.5, [], [1], ["a"], ["</parameter>"], [["a"], [[1]]], {}, { "a": 1 },
        { "a": "</parameter>\n" },
    ]);
    let long = ["x".repeat(40), "ab".repeat(200)].map(Value::from);
    strings.map(Value::from).into_iter().chain(others.as_array().unwrap().clone()).chain(long).collect()
}

fn part() -> impl Strategy<Value = Value> {
    let list = prop::sample::subsequence(values(), 1..4).prop_map(|values| json!({ "enum": values }));
    let patterns = vec!["^[a-z]*$", "\\d", "^[^x]+$", "^(.|\\n){1,45}$", "^\\[", "\"", "(ab)$"];
    let patterns = prop::sample::select(patterns);
    prop_oneof![
        3 => Just(json!({ "type": "string" })),
        2 => (0..3_u32, 0..60_u32).prop_map(|(min, more)| json!({
            "type": "string", "minLength": min, "maxLength": min + more,
        })),
        1 => (1..50_u32).prop_map(|min| json!({ "type": "string", "minLength": min })),
        2 => patterns.prop_map(|pattern| json!({ "type": "string", "pattern": pattern })),
        1 => Just(json!({ "type": "string", "format": "date" })),
        2 => list,
        2 => prop::sample::select(vec!["null", "integer", "number", "boolean", "array", "object"])
            .prop_map(|kind| json!({ "type": kind })),
        1 => Just(json!({ "type": "integer", "minimum": 5 })),
        1 => Just(json!({ "type": "array", "items": { "type": "string" } })),
        1 => Just(json!({ "type": "object", "properties": { "a": { "type": "integer" } } })),
        1 => Just(json!({ "$ref": "#/$defs/text" })),
        1 => Just(json!({ "type": ["string", "integer", "null"] })),
        1 => Just(json!({})),
    ]
}

fn schema() -> impl Strategy<Value = Value> {
    let several = prop::collection::vec(part(), 1..4);
    prop_oneof![
        2 => part(),
        3 => several.prop_map(|parts| json!({ "anyOf": parts, "title": "T" })),
        1 => part().prop_map(|part| json!({ "allOf": [part], "description": "D" })),
        1 => part().prop_map(|part| json!({ "not": part })),
    ]
}

fn spelling() -> impl Strategy<Value = Spelling> {
    prop::sample::select(vec![Spelling::QwenCoder, Spelling::Glm, Spelling::MiniMax, Spelling::DeepSeekV32])
}

/// True if an argument of this schema has values, so that there is a grammar of calls.
fn has_values(schema: &Value) -> bool {
    let list = Function::list(&Function::parameters(schema));
    let tools = Tools::parse(&list).unwrap();
    tools.grammar(&Calling::new(Spelling::QwenCoder), &Limits::default()).is_ok()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Each valid value has a spelling that is read back as this value.
    #[test]
    fn valid_values_are_written_and_read_back(schema in schema(), spelling in spelling()) {
        prop_assume!(has_values(&schema));
        let function = Function::spelled(spelling, &Function::parameters(&schema));
        let others = values().into_iter().filter(|value| !value.is_string());
        let mixed = others.into_iter().any(|value| function.is_valid(&value));
        for value in values().into_iter().filter(|value| function.is_valid(value)) {
            // Only Qwen's line feeds belong to the tags.
            let feed = if spelling == Spelling::QwenCoder { "\n" } else { "" };
            let quoted = function.call(&format!("{feed}{value}{feed}"), false);
            let raw = value.as_str().map(|text| function.call(&format!("{feed}{text}{feed}"), true));
            let back = |call: &String| function.is_read_as(call, &value);
            let found = raw.iter().any(back) || (mixed || raw.is_none()) && back(&quoted);
            let closing = value.as_str().is_some_and(|text| text.contains("</parameter>"));
            prop_assert!(found || closing && !mixed, "{} {}: {}", spelling, schema, value);
            // Nothing else reads like these.
            if let Some("Bern" | "ab" | "<b>" | "auto" | "é😀" | "\nx\n" | " x ") = value.as_str() {
                prop_assert!(raw.iter().any(back), "{} {}: {}", spelling, schema, value);
            }
        }
    }

    /// With bare keys and tokens around strings each valid value has one text, and no other value has any.
    #[test]
    fn values_with_bare_keys_are_written_and_read_back(schema in schema(), gemma: bool) {
        prop_assume!(has_values(&schema));
        let (spelling, mark) =
            if gemma { (Spelling::Gemma, "<|\"|>") } else { (Spelling::FunctionGemma, "<escape>") };
        let function = Function::spelled(spelling, &Function::parameters(&schema));
        for value in values() {
            let arguments = bare_value(&json!({ "a": value }), mark);
            let call = match spelling {
                Spelling::Gemma => format!("<|tool_call>call:f{arguments}<tool_call|>"),
                _ => format!("<start_function_call>call:f{arguments}<end_function_call>"),
            };
            let is_in = accepts_of(&function.grammar, &call);
            prop_assert_eq!(is_in, function.is_valid(&value), "{}: {}", schema, call);
            prop_assert_eq!(function.read_call(&call), value, "{}", call);
        }
    }

    /// In Python each valid value has one text here, and no other value has any.
    #[test]
    fn values_in_python_are_written_and_read_back(schema in schema()) {
        prop_assume!(has_values(&schema));
        let function = Function::spelled(Spelling::Lfm2, &Function::parameters(&schema));
        for value in values() {
            let call = python(&[("f", &json!({ "a": value }).to_string())]);
            let is_in = accepts_of(&function.grammar, &call);
            prop_assert_eq!(is_in, function.is_valid(&value), "{}: {}", schema, call);
            prop_assert_eq!(function.read_call(&call), value, "{}", call);
        }
    }

    /// Each text of the grammar is read as a valid value.
    #[test]
    fn texts_are_valid_values(
        schema in schema(),
        spelling in spelling(),
        texts in prop::collection::vec(
            r#"(\n| |x|ab|"|\\|\[|\]|\{|\}|:|,|1|\.5|e1|-|null|true|"a"|</parameter>|</arg_value>|<){0,8}"#,
            1..40,
        ),
    ) {
        prop_assume!(has_values(&schema));
        let function = Function::spelled(spelling, &Function::parameters(&schema));
        let known = values();
        let known = known.iter().map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        for text in texts.into_iter().chain(known) {
            let texts = [format!("\n{text}\n"), text];
            let calls = texts.iter().flat_map(|text| [true, false].map(|told| function.call(text, told)));
            for call in calls {
                if accepts_of(&function.grammar, &call) {
                    let value = function.read_call(&call);
                    prop_assert!(function.is_valid(&value), "{}: {:?} is read as {}", schema, call, value);
                }
            }
        }
    }
}

#[test]
fn calls_in_python_have_names_before_values() {
    // Inner objects are dictionaries, also where they have the schema of all arguments.
    let parameters = json!({
        "type": "object", "additionalProperties": { "type": "integer" }, "required": ["a"],
        "properties": { "a": { "anyOf": [{ "type": "null" }, { "$ref": "#" }] }, "b": { "type": "boolean" } },
    });
    let list = json!([{ "name": "f", "parameters": parameters }]).to_string();
    let tools = Tools::parse(&list).unwrap();
    let grammar = tools.grammar(&Calling::new(Spelling::Lfm2), &Limits::default()).unwrap();
    for (arguments, is_in) in [
        ("a=None", true),
        ("b=True, a=None", true),
        ("a={\"a\": None, \"b\": False}, more=3", true),
        ("a={\"a\": None, \"more\": 3}", true),
        ("a=None, a=None", false),
        ("a=null", false),
        ("a=None, b=true", false),
        ("\"a\"=None", false),
        ("a: None", false),
        ("a={a=None}", false),
        ("a={\"a\"=None}", false),
        ("a=None, x y=3", false),
        ("a=None,", false),
        ("b=True", false),
    ] {
        let text = format!("<|tool_call_start|>[f({arguments})]<|tool_call_end|>");
        assert_eq!(accepts_of(&grammar, &text), is_in, "{text}");
    }
}

#[test]
fn schemas_between_tags_are_those_of_structural_tags() {
    let tag = json!({ "type": "structural_tag", "format": { "type": "qwen_xml_parameter", "json_schema": {
        "type": "object", "properties": { "a": { "type": ["string", "null"], "maxLength": 2 } },
        "required": ["a"],
    } } });
    let grammar = Grammar::parse(Syntax::StructuralTag, &tag.to_string(), &Limits::default()).unwrap();
    for (text, is_in) in [("ab", true), ("null", true), ("abc", false), ("\"abc\"", false), ("\"1\"", true)] {
        assert_eq!(accepts_of(&grammar, &format!("<parameter=a>{text}</parameter>")), is_in, "{text}");
    }
}

//! Requests with functions: what is taken, what is refused, and schemas that are read twice.

use domino::{
    Grammar, Limits, Syntax, grammar::json_schema::SchemaOptions, grammar::json_schema::WhiteSpace,
};

use super::*;
use crate::serve::args::SchemaRules;

fn asked(more: &Value) -> Result<Option<ToolsAsked>, Problem> {
    let mut body = json!({ "tools": [
            { "type": "function", "function": { "name": "add", "parameters": { "type": "object" } } },
            { "type": "function", "function": { "name": "now" } },
        ] });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let bytes = body.to_string();
    let mut body = body.as_object().unwrap().clone();
    let options = OptionsAsked::read(&mut body, &SchemaRules::default())?;
    read(&mut body, bytes.as_bytes(), Endpoint::Chat, Some(Spelling::Hermes), 1_000, &options)
}

fn problem(more: &Value) -> (String, String) {
    let error = asked(more).expect_err(&more.to_string()).to_json()["error"].clone();
    let text = |key: &str| error[key].as_str().unwrap_or_default().to_owned();
    (text("code"), text("param"))
}

#[test]
fn tool_choice_decides_which_calls_the_grammar_has() {
    let tags = |more: Value| asked(&more).unwrap().unwrap().tags().unwrap().0;
    let (auto, one) = (tags(json!({})), json!({ "name": "now" }));
    let calls = |tags: &str, name: &str| tags.contains(&format!(r#"\"{name}\""#));
    assert!(calls(&auto, "add") && calls(&auto, "now") && auto.contains("triggered_tags"));
    assert_eq!(tags(json!({ "tool_choice": "auto", "parallel_tool_calls": true })), auto);
    assert!(tags(json!({ "tool_choice": "required" })).contains("\"at_least_one\":true"));
    assert!(!tags(json!({ "tool_choice": "none" })).contains("arguments"));
    let named = tags(json!({ "tool_choice": { "type": "function", "function": one } }));
    assert!(calls(&named, "now") && !calls(&named, "add"));
    assert!(tags(json!({ "parallel_tool_calls": false })).contains("\"stop_after_first\":true"));
    assert!(asked(&json!({ "tools": [] })).unwrap().is_none());
}

#[test]
fn an_answer_without_calls_is_an_instance_of_its_format() {
    let schema = r#"{"type": "object", "properties": {"x": {"enum": [1]}}, "required": ["x"]}"#;
    let what = GrammarWhat::Text(Notation::JsonSchema, schema.to_owned());
    let format = || Some(GrammarAsked::new(what.clone(), "response_format", &OptionsAsked::default()));
    let tools = |more: Value| together(format(), asked(&more).unwrap()).unwrap();
    let (grammar, called) = tools(json!({}));
    assert!(grammar.is_none());
    let (tags, _) = called.unwrap().tags().unwrap();
    Grammar::parse(Syntax::StructuralTag, &tags, &Limits::default()).unwrap();
    assert!(tags.contains("\"or\"") && tags.contains("\"x\"") && tags.contains("now"), "{tags}");
    assert!(!tags.contains("triggered_tags"), "no free text: {tags}");
    // Where a function must be called there is no such answer.
    let required = tools(json!({ "tool_choice": "required" })).1.unwrap();
    assert!(!required.tags().unwrap().0.contains("\"x\""));
    let (grammar, none) = together(format(), None).unwrap();
    assert!(grammar.is_some() && none.is_none());
}

/// Options reach the schemas of arguments, and mistakes are looked for under them.
#[test]
fn options_of_a_request_reach_the_schemas_of_arguments() {
    let asked = |more: Value| asked(&more).unwrap().unwrap();
    let tags = GrammarWhat::Text(Notation::StructuralTag, "tags".to_owned());
    for (more, options) in [
        (json!({}), SchemaOptions::default()),
        (
            json!({ "grammar_options": { "whitespace": "compact" } }),
            SchemaOptions::default().with_white_space(WhiteSpace::Compact),
        ),
    ] {
        let grammar = asked(more).grammar("tags".to_owned());
        assert_eq!((&grammar.what, grammar.param), (&tags, "tools"));
        assert_eq!(*grammar.options.options(), options);
    }
    // A number that only one of the spellings has.
    let huge = json!([{ "name": "f", "parameters": { "properties": { "x": { "const": 1e300 } } } }]);
    let integer = json!([{ "name": "f", "parameters": { "properties": { "x": { "enum": [1.5, 2] } } } }]);
    for tools in [huge, integer] {
        for numbers in ["plain", "any"] {
            let asked = asked(json!({ "tools": tools, "grammar_options": { "numbers": numbers } }));
            let (tags, _) = asked.tags().unwrap();
            let options = Notation::StructuralTag.options_inside(asked.options.options());
            let read = Notation::StructuralTag.read(tags.as_bytes(), &options, &Limits::default());
            assert_eq!(read.is_err(), asked.mistake(&Limits::default()).is_some(), "{tools} {numbers}");
        }
    }
}

#[test]
fn errors_about_tools_name_their_field() {
    let invalid = |param: &str| ("invalid_value".to_owned(), param.to_owned());
    assert_eq!(problem(&json!({ "tool_choice": "any" })), invalid("tool_choice"));
    let other = json!({ "type": "function", "function": { "name": "sub" } });
    assert_eq!(problem(&json!({ "tool_choice": other })), invalid("tool_choice"));
    assert_eq!(problem(&json!({ "parallel_tool_calls": 1 })), invalid("parallel_tool_calls"));
    let allowed = problem(&json!({ "tool_choice": { "type": "allowed_tools" } }));
    assert_eq!(allowed, ("unsupported".to_owned(), "tool_choice".to_owned()));
    let twice = json!([{ "name": "f" }, { "name": "f" }]);
    assert_eq!(problem(&json!({ "tools": twice })).1, "tools");
    let long = json!([{ "name": "f", "description": "x".repeat(1_000) }]);
    assert_eq!(problem(&json!({ "tools": long })).0, "grammar_too_large");
}

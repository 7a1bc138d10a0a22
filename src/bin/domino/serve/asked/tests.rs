//! Tests of what bodies ask for.

use domino::decode::StopStrings;
use serde_json::json;

use super::*;
use crate::grammar::notation::Notation;
use crate::serve::asked::{grammar::GrammarWhat, schemas::OptionsAsked};

fn asked(what: GrammarWhat, param: &'static str) -> GrammarAsked {
    GrammarAsked::new(what, param, &OptionsAsked::default())
}

fn chat(more: &Value) -> Result<Asked, Problem> {
    let mut body = json!({ "model": "default", "messages": [{ "role": "user", "content": "Hi" }] });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Asked::read(body.to_string().as_bytes(), Endpoint::Chat, 100, &SchemaRules::default(), None)
}

fn problem(more: &Value) -> (String, Value) {
    let object = chat(more).expect_err(&more.to_string()).to_json();
    (object["error"]["code"].as_str().unwrap().to_owned(), object["error"]["param"].clone())
}

#[test]
fn a_grammar_is_read_from_both_of_its_fields() {
    let read = |more| chat(&more).unwrap().grammar;
    assert_eq!(read(json!({})), None);
    assert_eq!(read(json!({ "grammar": null, "response_format": { "type": "text" } })), None);
    assert_eq!(
        read(json!({ "grammar": { "type": "regex", "value": "a+" } })),
        Some(asked(GrammarWhat::Text(Notation::Regex, "a+".to_owned()), "grammar"))
    );
    assert_eq!(
        read(json!({ "grammar": { "type": "named", "value": "c" }, "response_format": { "type": "text" } })),
        Some(asked(GrammarWhat::Named("c".to_owned()), "grammar"))
    );
    assert_eq!(
        read(json!({ "response_format": { "type": "json_object" } })),
        Some(asked(GrammarWhat::JsonObject, "response_format"))
    );
    // As llama.cpp has them.
    assert_eq!(
        read(json!({ "grammar": "root ::= \"a\"" })),
        Some(asked(GrammarWhat::Text(Notation::Gbnf, "root ::= \"a\"".to_owned()), "grammar"))
    );
    assert_eq!(
        read(json!({ "json_schema": { "const": 1 } })),
        Some(asked(GrammarWhat::Text(Notation::JsonSchema, "{\"const\":1}".to_owned()), "json_schema"))
    );
}

#[test]
fn a_refused_request_names_the_field() {
    let unsupported = |param: &str| ("unsupported".to_owned(), json!(param));
    let invalid = |param: &str| ("invalid_value".to_owned(), json!(param));
    let regex = json!({ "type": "regex", "value": "a" });
    for kind in ["llguidance", "klingon"] {
        let refused = problem(&json!({ "grammar": { "type": kind, "value": {} } }));
        assert_eq!(refused, unsupported("grammar"), "{kind}");
    }
    assert_eq!(problem(&json!({ "grammar": 3 })), invalid("grammar"));
    assert_eq!(problem(&json!({ "json_schema": 3 })), invalid("json_schema"));
    assert_eq!(problem(&json!({ "json_schema": {}, "grammar": regex })), invalid("json_schema"));
    assert_eq!(problem(&json!({ "grammar": { "type": "gbnf", "value": 1 } })), invalid("grammar"));
    assert_eq!(problem(&json!({ "response_format": { "type": "xml" } })), unsupported("response_format"));
    let both = json!({ "grammar": regex, "response_format": { "type": "json_object" } });
    assert_eq!(problem(&both), invalid("response_format"));
    let tools = json!({ "grammar": regex, "tools": [{ "type": "function" }] });
    assert_eq!(problem(&tools), unsupported("tools"));
    let unknown = |param: &str| ("unknown_parameter".to_owned(), json!(param));
    assert_eq!(problem(&json!({ "web_search_options": {} })), unsupported("web_search_options"));
    assert_eq!(problem(&json!({ "colour": "red" })), unknown("colour"));
    assert_eq!(problem(&json!({ "stream_options": { "colour": 1 } })), unknown("stream_options.colour"));
    let flags = json!({ "type": "regex", "value": "a", "flags": "i" });
    assert_eq!(problem(&json!({ "grammar": flags })), unknown("grammar.flags"));
    let message = json!({ "role": "user", "content": "a", "image_url": "/etc/hosts" });
    assert_eq!(problem(&json!({ "messages": [message] })), unknown("messages[0].image_url"));
    let long = json!({ "grammar": { "type": "gbnf", "value": "a".repeat(101) } });
    assert_eq!(problem(&long).0, "grammar_too_large");
    for n in [json!(0), json!(17), json!(-1), json!("2")] {
        assert_eq!(problem(&json!({ "n": n })), invalid("n"));
    }
    assert_eq!(problem(&json!({ "best_of": 4 })), unsupported("best_of"));
    assert_eq!(problem(&json!({ "seed": 1.5 })), invalid("seed"));
    assert_eq!(problem(&json!({ "stream": "yes" })), invalid("stream"));
    assert_eq!(problem(&json!({ "max_tokens": 0 })), invalid("max_tokens"));
    assert_eq!(problem(&json!({ "messages": [] })), invalid("messages"));
    let stranger = json!([{ "role": "wizard", "content": "a" }]);
    assert_eq!(problem(&json!({ "messages": stranger })), invalid("messages[0].role"));
    let tool = json!([{ "type": "function", "function": { "name": "f" } }]);
    for choice in [json!("required"), json!({ "type": "function", "function": { "name": "f" } })] {
        let asked = json!({ "tools": tool, "tool_choice": choice });
        assert_eq!(problem(&asked), unsupported("tool_choice"));
    }
    let image = json!([{ "type": "image_url", "image_url": { "url": "/etc/hosts" } }]);
    let image = json!([{ "role": "user", "content": image }]);
    assert_eq!(problem(&json!({ "messages": image })), unsupported("messages"));
    let not_json =
        Asked::read(b"{", Endpoint::Chat, 100, &SchemaRules::default(), None).unwrap_err().to_json();
    assert_eq!(not_json["error"]["code"], "invalid_json");
}

#[test]
fn numbers_out_of_range_name_their_field() {
    for (field, value) in [
        ("temperature", json!(-1)),
        ("temperature", json!("hot")),
        ("top_p", json!(0)),
        ("top_p", json!(1.5)),
        ("min_p", json!(-0.1)),
        ("top_k", json!(1.5)),
        ("top_k", json!(-2)),
        ("presence_penalty", json!(3)),
        ("frequency_penalty", json!(-2.1)),
        ("repetition_penalty", json!(0)),
        ("max_tokens", json!(1.5)),
        ("max_completion_tokens", json!(0)),
        ("top_logprobs", json!(21)),
        ("top_logprobs", json!(2)),
        ("stop", json!(["a", ""])),
        ("stop", json!(vec!["a"; 17])),
        ("stop", json!("a".repeat((16 << 10) + 1))),
        ("stop", json!(["a".repeat(10 << 10), "b".repeat(10 << 10)])),
        ("stop", json!(1)),
        ("finish", json!(1)),
    ] {
        let refused = problem(&json!({ field: value }));
        assert_eq!(refused, ("invalid_value".to_owned(), json!(field)), "{field} {value}");
    }
}

#[test]
fn fields_are_read_and_message_parts_are_joined() {
    let more = json!({
        "n": 2, "seed": -1, "stream": true, "stream_options": { "include_usage": true }, "logprobs": true,
        "top_logprobs": 3, "max_tokens": 5, "max_completion_tokens": 7, "temperature": 0.5, "stop": "z",
        "messages": [{
            "role": "user", "content": [{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }],
        }],
    });
    let asked = chat(&more).unwrap();
    assert_eq!((asked.choices, asked.seed, asked.stream, asked.include.0), (2, Some(u64::MAX), true, true));
    assert_eq!((asked.drawing.most, asked.drawing.options.logprobs), (Some(7), Some(3)));
    assert_eq!(asked.drawing.stops, StopStrings::new(["z"]).unwrap());
    let PromptAsked::Chat(read) = &asked.prompts[0] else { panic!("{:?}", asked.prompts) };
    assert_eq!(read.messages, [json!({ "role": "user", "content": "ab" })]);
    assert_eq!(asked.model.as_deref(), Some("default"));
}

#[test]
fn completions_take_prompts_in_all_their_forms() {
    let read = |body: Value| {
        let text = body.to_string();
        Asked::read(text.as_bytes(), Endpoint::Completions, 100, &SchemaRules::default(), None)
    };
    let text = |text: &str| PromptAsked::Text(text.to_owned());
    let prompts = |prompt: Value| read(json!({ "prompt": prompt })).unwrap().prompts;
    assert_eq!(prompts(json!("a")), [text("a")]);
    assert_eq!(prompts(json!(["a", "b"])), [text("a"), text("b")]);
    assert_eq!(prompts(json!([1, 2])), [PromptAsked::Tokens(vec![1, 2])]);
    assert_eq!(prompts(json!([[1], "b"])), [PromptAsked::Tokens(vec![1]), text("b")]);
    for wrong in
        [json!({}), json!({ "prompt": [] }), json!({ "prompt": [1, "a"] }), json!({ "prompt": [-1] })]
    {
        assert_eq!(read(wrong).unwrap_err().to_json()["error"]["param"], "prompt");
    }
    let grammar = json!({ "type": "regex", "value": "a" });
    let echo = json!({ "prompt": "a", "echo": true, "grammar": grammar });
    assert_eq!(read(echo).unwrap_err().to_json()["error"]["param"], "echo");
    assert!(read(json!({ "prompt": "a", "echo": false, "grammar": grammar })).is_ok());
}

fn read(value: Value) -> Result<CapturesAsked, Problem> {
    CapturesAsked::read(json!({ CAPTURES: value }).as_object_mut().unwrap())
}

#[test]
fn captures_are_a_flag_or_a_list_of_names() {
    assert_eq!(CapturesAsked::read(&mut Map::new()).unwrap(), CapturesAsked::Marked);
    assert_eq!(read(json!(true)).unwrap(), CapturesAsked::Marked);
    assert_eq!(read(json!([])).unwrap(), CapturesAsked::Marked);
    assert_eq!(read(json!(false)).unwrap(), CapturesAsked::Off);
    let rules = CapturesAsked::Rules(vec!["a".to_owned(), "b".to_owned()]);
    assert_eq!(read(json!(["a", "b"])).unwrap(), rules);
    for wrong in [json!("a"), json!(1), json!({}), json!([1]), json!(["a", null]), json!(vec!["a"; 65])] {
        assert_eq!(read(wrong.clone()).unwrap_err().to_json()["error"]["param"], "captures", "{wrong}");
    }
}

#[test]
fn captures_by_name_need_a_grammar_and_no_tools() {
    let rules = CapturesAsked::Rules(vec!["a".to_owned()]);
    assert!(rules.check(true, false).is_ok());
    let code = |asked: &CapturesAsked, constrained, tools| {
        asked.check(constrained, tools).err().map(|problem| problem.to_json()["error"]["code"].clone())
    };
    assert_eq!(code(&rules, false, false), Some(json!("invalid_value")));
    assert_eq!(code(&rules, false, true), Some(json!("unsupported")));
    assert_eq!(code(&CapturesAsked::Marked, false, true), None);
    assert_eq!(code(&CapturesAsked::Off, false, false), None);
}

fn take(body: Value) -> Result<ReachAsked, Problem> {
    ReachAsked::take(&mut body.as_object().unwrap().clone(), true)
}

#[test]
fn masks_are_as_the_request_says_and_else_as_the_server() {
    let usual = Reach { lookahead: Lookahead::Terminals(3), terminals: Terminals::Written };
    let of = |body: Value| take(body).unwrap().reach(usual);
    let reach = |lookahead, terminals| Some(Reach { lookahead, terminals });
    assert_eq!(of(json!({})), None);
    assert_eq!(of(json!({ "lookahead": 3 })), None);
    assert_eq!(of(json!({ "lookahead": 1 })), reach(Lookahead::Terminals(1), Terminals::Written));
    assert_eq!(of(json!({ "lookahead": "infinite" })), reach(Lookahead::Unbounded, Terminals::Written));
    assert_eq!(of(json!({ "terminals": "folded" })), reach(Lookahead::Terminals(3), Terminals::Folded));
    assert_eq!(take(json!({ "mask": "opportunistic" })).unwrap().masking, Some(Masking::Opportunistic));
    assert_eq!(take(json!({})).unwrap().masking, None);
}

#[test]
fn other_values_are_refused_by_name() {
    for (body, param) in [
        (json!({ "lookahead": -1 }), "lookahead"),
        (json!({ "lookahead": "far" }), "lookahead"),
        (json!({ "lookahead": 1.5 }), "lookahead"),
        (json!({ "terminals": "all" }), "terminals"),
        (json!({ "mask": true }), "mask"),
        (json!({ "mask": "late" }), "mask"),
    ] {
        assert_eq!(take(body.clone()).unwrap_err().to_json()["error"]["param"], param, "{body}");
    }
    let free = |body: Value| ReachAsked::take(&mut body.as_object().unwrap().clone(), false);
    assert_eq!(free(json!({ "lookahead": 1 })).unwrap_err().to_json()["error"]["param"], "lookahead");
    assert!(free(json!({ "mask": "always" })).is_ok());
}

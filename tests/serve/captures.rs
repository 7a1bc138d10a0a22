//! Captures in answers: the parts of a text that `check --json` lists, whole and in a stream.

use std::path::Path;

use serde_json::{Value, json};

use super::{Answer, Server, streamed};
use crate::support::program::{domino, last_line};

/// Returns what `domino check --json` lists of a text.
fn by_check(flags: &[&str], text: &str) -> Value {
    let run = domino(&[&["check", "--json", "--prefix"], flags, &["-"]].concat(), text.as_bytes());
    last_line(&run)["captures"].clone()
}

/// The captures of the only text of an answer.
fn of(answer: &Answer) -> (String, Value) {
    assert_eq!(answer.status, 200, "{}", answer.body);
    let choice = answer.json()["choices"][0].clone();
    let text = choice["text"].as_str().or(choice["message"]["content"].as_str()).unwrap().to_owned();
    (text, choice["domino"]["captures"].clone())
}

const PAIR: &str = "root ::= key \"=\" value\nkey ::= [a-z]{1,4}\nvalue ::= [0-9]{1,3}";
const MOVE: &str = r"move (?P<what>[0-9]{1,3}) to (?P<where>[a-c]{1,2})";
const LARK: &str = "start: NUMBER \" \" unit\nunit[capture]: \"kg\" | \"m\"\nNUMBER: /[0-9]{1,2}/\n";

/// Grammars that mark parts, and one whose rules the request names.
fn cases(folder: &Path) -> Vec<(Value, Value, Vec<String>)> {
    let words = |flags: &[&str]| flags.iter().map(|flag| (*flag).to_owned()).collect::<Vec<_>>();
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let tags = json!({ "type": "structural_tag", "format": {
        "type": "tag", "begin": "<a>", "end": "</a>",
        "content": { "type": "regex", "pattern": "(?P<n>[0-9]{1,2})" },
    } });
    let tag_file = file("a.tags.json", &tags.to_string());
    let pair = file("pair.gbnf", PAIR);
    vec![
        (json!({ "type": "regex", "value": MOVE }), Value::Null, words(&["-r", MOVE])),
        (json!({ "type": "lark", "value": LARK }), json!(true), words(&["-g", &file("unit.lark", LARK)])),
        (json!({ "type": "structural_tag", "value": tags }), json!([]), words(&["-g", &tag_file])),
        (
            json!({ "type": "gbnf", "value": PAIR }),
            json!(["key", "value"]),
            words(&["-g", &pair, "--capture", "key", "--capture", "value"]),
        ),
    ]
}

#[test]
fn parts_of_texts_are_listed_as_check_lists_them() {
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    for (grammar, captures, flags) in cases(folder.path()) {
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        for seed in 0..3 {
            let mut body =
                json!({ "grammar": grammar, "captures": captures, "seed": seed, "temperature": 1 });
            let (text, found) = of(&server.complete(&body));
            assert!(found.as_array().is_some_and(|list| !list.is_empty()), "{grammar} {text}: {found}");
            assert_eq!(found, by_check(&flags, &text), "{grammar} {text}");
            // A text that is cut has the captures that its beginning decides.
            body["max_tokens"] = 3.into();
            let (cut, found) = of(&server.complete(&body));
            assert_eq!(found, by_check(&flags, &cut), "{grammar} {cut}");
            body["max_tokens"] = 48.into();
            // In a stream they are in the last event of the text, and in no other.
            body["stream"] = true.into();
            let events = server.complete(&body).events();
            assert_eq!(streamed(&events, 1), [text.as_str()]);
            let told: Vec<&Value> =
                events.iter().map(|event| &event["choices"][0]["domino"]["captures"]).collect();
            let (last, before) = told.split_last().unwrap();
            assert_eq!(**last, by_check(&flags, &text), "{grammar} {text}");
            assert!(before.iter().all(|told| told.is_null()), "{events:?}");
        }
    }
}

#[test]
fn each_text_of_a_chat_has_its_own_captures() {
    let server = Server::start(&[]);
    let body = json!({
        "messages": [{ "role": "user", "content": "Move: " }], "n": 3, "seed": 1, "temperature": 1,
        "grammar": { "type": "regex", "value": MOVE },
    });
    let choices = server.post("/v1/chat/completions", &body).json()["choices"].as_array().unwrap().clone();
    assert_eq!(choices.len(), 3);
    for choice in &choices {
        let text = choice["message"]["content"].as_str().unwrap();
        assert_eq!(choice["domino"]["captures"], by_check(&["-r", MOVE], text), "{choice}");
    }
    let mut stream = body.clone();
    stream["stream"] = true.into();
    stream["stream_options"] = json!({ "include_usage": true });
    let events = server.post("/v1/chat/completions", &stream).events();
    for (index, whole) in choices.iter().enumerate() {
        let mut all = events.iter().flat_map(|event| event["choices"].as_array().unwrap());
        let last = all.rfind(|choice| choice["index"] == index).unwrap();
        assert_eq!((&last["domino"], last["finish_reason"].is_string()), (&whole["domino"], true), "{last}");
    }
}

/// Parts are those of the text that is shown: before a stop string, and with what closes it.
#[test]
fn captures_are_those_of_the_text_that_is_shown() {
    let server = Server::start(&[]);
    let grammar = json!({ "type": "regex", "value": "(?P<a>[0-9]{2}) (?P<b>[0-9]{2})(?P<c>x+)" });
    let (text, found) = of(&server.complete(&json!({ "grammar": grammar, "stop": " " })));
    assert_eq!((text.len(), found.as_array().map(Vec::len)), (2, Some(1)), "{text} {found}");
    assert_eq!((&found[0]["name"], &found[0]["text"]), (&json!("a"), &json!(text)));
    let body = json!({ "grammar": grammar, "finish": true, "max_tokens": 8 });
    let (text, found) = of(&server.complete(&body));
    let c = found.as_array().unwrap().last().unwrap().clone();
    assert_eq!((&c["name"], c["end"].as_u64()), (&json!("c"), u64::try_from(text.len()).ok()), "{found}");
}

#[test]
fn impossible_captures_are_refused_and_absent_ones_left_out() {
    let server = Server::start(&["--tool-spelling", "hermes"]);
    let gbnf = json!({ "type": "gbnf", "value": PAIR });
    for (captures, grammar, code) in [
        (json!(["kye"]), gbnf.clone(), "invalid_value"),
        (json!(["key"]), Value::Null, "invalid_value"),
        (json!("key"), gbnf.clone(), "invalid_value"),
        (json!([1]), gbnf.clone(), "invalid_value"),
        (json!({ "key": true }), gbnf.clone(), "invalid_value"),
    ] {
        let answer = server.complete(&json!({ "captures": captures, "grammar": grammar }));
        let error = answer.error();
        assert_eq!(
            (answer.status, &error["code"], &error["param"]),
            (400, &json!(code), &json!("captures")),
            "{captures}: {error}"
        );
    }
    let near = server.complete(&json!({ "captures": ["kye"], "grammar": gbnf })).error();
    assert!(near["hint"].as_str().unwrap().contains("`key`"), "{near}");
    let tools = json!({
        "messages": [{ "role": "user", "content": "a" }], "captures": ["a"],
        "tools": [{ "type": "function", "function": { "name": "f" } }],
    });
    let answer = server.post("/v1/chat/completions", &tools);
    assert_eq!((answer.status, &answer.error()["param"]), (400, &json!("captures")), "{}", answer.body);
    // Nothing is said where nothing is marked, or nothing is wanted.
    for (captures, grammar) in [
        (Value::Null, json!({ "type": "gbnf", "value": PAIR })),
        (json!(false), json!({ "type": "regex", "value": MOVE })),
        (Value::Null, json!({ "type": "json_schema", "value": { "const": 1 } })),
        (Value::Null, Value::Null),
    ] {
        let body = json!({ "captures": captures, "grammar": grammar, "max_tokens": 2 });
        let answer = server.complete(&body).json();
        assert!(answer["choices"][0].get("domino").is_none(), "{answer}");
    }
}

//! Goldens of transformers' `apply_chat_template`, made by tests/fixtures/chat/make.py.

use std::{collections::BTreeSet, fs, path::Path};

use domino::chat::{ChatError, ChatErrorKind, ChatTemplate, Conversation};
use serde_json::Value;

/// Least number of cases in a file of goldens.
const FEW: usize = 150;

fn fixtures() -> &'static Path {
    Path::new(concat!(env!("DOMINO_ROOT"), "/tests/fixtures/chat"))
}

fn golden() -> Value {
    let text = fs::read_to_string(fixtures().join("golden.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The template of the fixtures with this name.
pub(super) fn template(name: &str) -> String {
    fs::read_to_string(fixtures().join("templates").join(format!("{name}.jinja"))).unwrap()
}

fn rendered(case: &Value, date: u64) -> Result<String, ChatError> {
    let text = |name: &str| case.get(name).and_then(Value::as_str);
    let source = text("template").map_or_else(|| template(text("file").unwrap()), str::to_owned);
    let mut template = ChatTemplate::parse(source)?;
    for (name, token) in [("bos_token", text("bos")), ("eos_token", text("eos"))] {
        template = token.into_iter().fold(template, |template, token| template.with_token(name, token));
    }
    let mut conversation = Conversation::new(case["messages"].as_array().unwrap().clone()).with_date(date);
    if let Some(tools) = case.get("tools").and_then(Value::as_array) {
        conversation = conversation.with_tools(tools);
    }
    if let Some(generation_prompt) = case.get("generation_prompt").and_then(Value::as_bool) {
        conversation = conversation.with_generation_prompt(generation_prompt);
    }
    for (name, value) in case.get("variables").and_then(Value::as_object).into_iter().flatten() {
        conversation = conversation.with_variable(name.as_str(), value.clone());
    }
    template.render(&conversation)
}

#[test]
fn texts_are_those_of_transformers() {
    let golden = golden();
    let (date, cases) = (golden["date"].as_u64().unwrap(), golden["cases"].as_array().unwrap());
    assert!(cases.len() >= FEW, "{} cases", cases.len());
    let mut wrong = Vec::new();
    for case in cases {
        let (ours, theirs) = (rendered(case, date), case.get("text").and_then(Value::as_str));
        if ours.as_deref().ok() != theirs {
            wrong.push(format!("{}: {ours:?}\n    {theirs:?}", case["name"]));
        }
        // A refusal by the template itself is reported in its own words.
        if let (Err(error), Some(said)) = (&ours, case.get("error").and_then(Value::as_str))
            && error.kind() == ChatErrorKind::Refused
        {
            assert!(error.to_string().contains(said) && error.line().is_some(), "{error}: {said}");
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn families_of_templates_are_recognised_by_their_marks() {
    for (name, family, tools) in [
        ("smollm2", "ChatML", false),
        ("qwen2.5", "ChatML", true),
        ("qwen3", "ChatML", true),
        ("llama3", "Llama 3", true),
        ("mistral", "Mistral", true),
        ("gemma", "Gemma", false),
        ("phi", "Phi", false),
        ("deepseek", "DeepSeek", false),
    ] {
        let template = ChatTemplate::parse(template(name)).unwrap();
        let shows = template.shows_tools();
        // Phi's and DeepSeek's look at what messages have under that name.
        assert_eq!((template.family(), shows && name != "phi"), (Some(family), tools), "{name}");
    }
    assert_eq!(ChatTemplate::parse("{{ messages[0].content }}").unwrap().family(), None);
}

/// Goldens of different templates differ, so a renderer that ignores its template would fail.
#[test]
fn goldens_of_different_templates_differ() {
    let golden = golden();
    let of_turns = golden["cases"].as_array().unwrap().iter();
    let of_turns = of_turns.filter(|case| case["name"].as_str().unwrap().ends_with(": turns"));
    let texts: Vec<&str> = of_turns.filter_map(|case| case["text"].as_str()).collect();
    let different: BTreeSet<&str> = texts.iter().copied().collect();
    assert!(texts.len() >= 8 && different.len() >= 7, "{} of {}", different.len(), texts.len());
}

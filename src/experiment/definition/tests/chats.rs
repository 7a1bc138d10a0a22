//! Chat templates, functions and the parts of drafts that are left out, in definitions.

use super::{parse, *};
use crate::grammar::tools::Spelling;

const FUNCTIONS: &str = r#"[{"type": "function", "function": {"name": "find", "parameters": {"type": "object",
    "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": false}}}]"#;

/// A definition with these lines besides, in a folder with functions.
fn with(lines: &str) -> Result<Definition, (String, Option<String>)> {
    let text = format!("name = \"c\"\nmethods = [\"masks\"]\nprompts = [\"A: \"]\n{lines}");
    let folder = super::folder();
    std::fs::write(folder.path().join("tools.json"), FUNCTIONS).unwrap();
    std::fs::write(folder.path().join("none.json"), "{\"name\": 1}").unwrap();
    Definition::parse(&text, "d.toml", folder.path(), false, &shipped)
        .map_err(|error| (error.to_string(), error.hint()))
}

#[test]
fn prompts_are_raw_unless_the_definition_says_chat() {
    let raw = with("grammars = [\"json\"]").unwrap();
    assert!(!raw.chat && raw.system.is_none());
    let json = raw.to_json();
    assert!(json.get("chat").is_none() && json.get("system").is_none(), "records are as they were");
    let chat = with("grammars = [\"json\"]\nchat = true").unwrap();
    let both = with("grammars = [\"json\"]\nchat = true\nsystem = \"Be brief.\"").unwrap();
    let other = with("grammars = [\"json\"]\nchat = true\nsystem = \"Be exact.\"").unwrap();
    assert!(chat.chat && chat.system.is_none() && both.system.as_deref() == Some("Be brief."));
    assert_eq!((&both.to_json()["chat"], &both.to_json()["system"]), (&json!(true), &json!("Be brief.")));
    // None of them goes on with the records of another.
    let hashes: std::collections::HashSet<String> =
        [&raw, &chat, &both, &other].map(Definition::hash).into_iter().collect();
    assert_eq!(hashes.len(), 4);
    let outline = Definition::outline(&both.to_json()).unwrap();
    assert_eq!((outline.chat, outline.system.as_deref()), (true, Some("Be brief.")));
    let off = with("grammars = [\"json\"]\nchat = false").unwrap();
    assert_eq!(off.hash(), raw.hash());
}

#[test]
fn functions_make_a_grammar_of_calls() {
    let tools = "[[grammars]]\nname = \"calls\"\ntools = \"tools.json\"\nspelling = \"hermes\"\n";
    let definition = with(&format!("{tools}answer = \"call\"\n")).err();
    // No prompt has an answer.
    assert!(definition.unwrap().0.contains("answers are"));
    let definition = with(tools).unwrap();
    let task = &definition.tasks[0];
    assert_eq!(task.syntax, Syntax::StructuralTag);
    let functions = task.functions.as_ref().unwrap();
    assert_eq!((functions.spelling, functions.values().len()), (Spelling::Hermes, 1));
    assert_eq!(task.to_json()["functions"][0], "hermes");
    let other = with(&tools.replace("hermes", "llama3")).unwrap();
    assert_ne!(other.hash(), definition.hash());
    let grammar = crate::Grammar::parse(task.syntax, &task.grammar, &crate::Limits::default());
    assert!(grammar.is_ok(), "{grammar:?}");
}

#[test]
fn keys_that_contradict_each_other_are_refused() {
    let calls = "[[grammars]]\nname = \"calls\"\n";
    for (lines, said, hint) in [
        ("grammars = [\"json\"]\nsystem = \"Be brief.\"", "`system` is for chat templates", "chat = true"),
        ("grammars = [\"json\"]\nchat = false\nsystem = \"x\"", "`system` is for chat templates", "chat"),
        (&*format!("{calls}tools = \"tools.json\""), "no `spelling`", "hermes"),
        (&*format!("{calls}tools = \"tools.json\"\nspelling = \"herms\""), "\"herms\"", "hermes"),
        (&*format!("{calls}spelling = \"hermes\""), "no `tools`", "tools ="),
        (
            &*format!("{calls}tools = \"tools.json\"\nspelling = \"hermes\"\nfile = \"digits.regex\""),
            "`tools`, and a `file`",
            "leave one",
        ),
        (
            &*format!("{calls}tools = \"tools.json\"\nspelling = \"hermes\"\nsyntax = \"json_schema\""),
            "`tools`, and a `file`",
            "leave one",
        ),
        ("grammars = [{ name = \"json\", answer = \"call\" }]", "it has no `tools`", "tools ="),
    ] {
        let (error, found) = with(lines).unwrap_err();
        assert!(error.contains(said), "{lines}: {error}");
        assert!(found.as_ref().is_some_and(|found| found.contains(hint)), "{lines}: {found:?}");
    }
    for (file, said) in [("nowhere.json", "nowhere.json"), ("none.json", "calls")] {
        let error = with(&format!("{calls}tools = \"{file}\"\nspelling = \"hermes\"")).unwrap_err().0;
        assert!(error.contains(said), "{error}");
    }
}

/// A record of a method that the program no longer makes is read, with all of its runs.
#[test]
fn records_of_methods_that_have_left_are_read() {
    let text = "name = \"r\"\ngrammars = [\"json\"]\nprompts = [\"A: \", \"B: \"]\ns = [4, 8]\n";
    let (definition, error) = (
        parse(&format!("{text}methods = [\"masks\", \"paper\", \"ours\"]"), false).unwrap(),
        parse(&format!("{text}methods = [\"masks\", \"paper\", \"ours-effort\"]"), false).unwrap_err(),
    );
    assert!(error.0.contains("ours-effort") && error.1.unwrap().contains("has left the program"));
    let mut record = definition.to_json();
    record["methods"] = json!(["masks", "paper", "ours-effort", "paper+effort"]);
    let outline = Definition::outline(&record).unwrap();
    // One prompt is set apart; two methods have two lengths each.
    assert_eq!(outline.runs(), 2 + 2 * 2);
    let keys = Plan::new(outline, None).keys();
    assert_eq!(keys.iter().filter(|key| key.contains("ours-effort")).count(), 1, "{keys:?}");
    record["methods"] = json!(["masks", "ours-nothing"]);
    assert!(Definition::outline(&record).is_none());
}

//! The program with chat templates, on the shipped model with templates beside it.

use std::{fs, path::Path};

use domino::vocab::Tokenizer;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::model::shipped;
use crate::support::program::{Run, domino, last_line};

/// A folder with the shipped model and this template.
fn model(template: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["config.json", "generation_config.json", "model.safetensors", "tokenizer.json"] {
        let (from, to) = (shipped().join(name), folder.path().join(name));
        if fs::hard_link(&from, &to).is_err() {
            fs::copy(&from, &to).unwrap();
        }
    }
    let config = json!({ "bos_token": "<s>", "eos_token": "</s>", "chat_template": template });
    fs::write(folder.path().join("tokenizer_config.json"), config.to_string()).unwrap();
    folder
}

fn run(folder: &Path, arguments: &[&str]) -> Run {
    let folder = folder.to_str().unwrap();
    domino(&[arguments, &["-m", folder, "-n", "2", "-t", "0"]].concat(), b"")
}

fn object(folder: &Path, arguments: &[&str]) -> Value {
    let run = run(folder, &[arguments, &["--json"]].concat());
    assert!(matches!(run.code, Some(0 | 3)), "{:?} {}", run.code, run.stderr);
    last_line(&run)
}

const INSTRUCT: &str =
    "{{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m.content }} [/{{ m.role }}]{% endfor %}";

#[test]
fn a_prompt_goes_through_the_template() {
    let folder = model(INSTRUCT);
    let raw = object(folder.path(), &["generate", "-p", "[user] A question [/user]"]);
    let chat = object(folder.path(), &["generate", "--chat", "-p", "A question"]);
    assert_eq!([&chat["token_ids"], &chat["prompt_tokens"]], [&raw["token_ids"], &raw["prompt_tokens"]]);
    let plain = object(folder.path(), &["generate", "-p", "A question"]);
    assert!(plain["prompt_tokens"].as_u64() < raw["prompt_tokens"].as_u64());
    // The tokenizer adds what begins a text where the template does not write it.
    let without = model(INSTRUCT.trim_start_matches("{{ bos_token }}"));
    let chat = object(without.path(), &["generate", "--chat", "-p", "A question"]);
    assert_eq!([&chat["token_ids"], &chat["prompt_tokens"]], [&raw["token_ids"], &raw["prompt_tokens"]]);
    let system = object(folder.path(), &["generate", "--chat", "--system", "S", "-p", "A question"]);
    let tokenizer = Tokenizer::from_tokenizer_file(shipped()).unwrap();
    let text = "[system] S [/system][user] A question [/user]";
    assert_eq!(system["prompt_tokens"], tokenizer.encode(text, true).unwrap().len());
}

#[test]
fn another_template_is_given_as_a_file() {
    let folder = model(INSTRUCT);
    let file = folder.path().join("own.jinja");
    fs::write(&file, "{{ bos_token }}Q: {{ messages[0].content }}\nA:").unwrap();
    let file = file.to_str().unwrap();
    let chat = object(folder.path(), &["generate", "--chat", "--chat-template", file, "-p", "A question"]);
    let raw = object(folder.path(), &["generate", "-p", "Q: A question\nA:"]);
    assert_eq!([&chat["token_ids"], &chat["prompt_tokens"]], [&raw["token_ids"], &raw["prompt_tokens"]]);
}

#[test]
fn a_raw_prompt_gets_one_hint() {
    let hints = |run: &Run| run.stderr.matches("--chat puts the prompt into it").count();
    let instruct = model(INSTRUCT);
    assert_eq!(hints(&run(instruct.path(), &["generate", "-p", "A"])), 1);
    for quiet in [
        &["generate", "-p", "A", "-q"][..],
        &["generate", "-p", "A", "--json"],
        &["generate", "-p", "A", "--chat"],
        &["generate", "-p", "A</s>"],
    ] {
        assert_eq!(hints(&run(instruct.path(), quiet)), 0, "{quiet:?}");
    }
    // A template that puts nothing around a prompt is none to speak of.
    assert_eq!(hints(&run(&shipped(), &["generate", "-p", "A"])), 0);
    fs::remove_file(instruct.path().join("tokenizer_config.json")).unwrap();
    assert_eq!(hints(&run(instruct.path(), &["generate", "-p", "A"])), 0);
}

#[test]
fn chat_flags_that_do_not_go_together_are_refused() {
    let refusing = "{% if messages[0].role == 'system' %}\n{{ raise_exception('No system!') }}{% endif %}x";
    let folder = model(refusing);
    let plain = model("");
    fs::remove_file(plain.path().join("tokenizer_config.json")).unwrap();
    for (folder, arguments, words) in [
        (
            &folder,
            &["generate", "-p", "A", "--chat", "--system", "S"][..],
            &["No system!", "line 2", "hint"][..],
        ),
        (&plain, &["generate", "-p", "A", "--chat"], &["no chat template", "--chat-template"]),
        (&plain, &["generate", "-p", "A", "--system", "S"], &["--chat"]),
        (&plain, &["generate", "-p", "A", "--chat-template", "x"], &["--chat-template", "--tools", "--chat"]),
        (&plain, &["generate", "-p", "A", "--chat", "--chat-template", "/nothing"], &["/nothing"]),
        (&plain, &["learn", "-g", "json", "--chat", "-o", "x", "--text", "y"], &["--chat", "texts"]),
    ] {
        let run = run(folder.path(), arguments);
        assert_eq!(run.code, Some(2), "{arguments:?} {}", run.stderr);
        for word in words {
            assert!(run.stderr.contains(word), "{arguments:?}: {word} in {}", run.stderr);
        }
    }
}

const TOOLS: &str =
    "{{ bos_token }}{% for t in tools or [] %}{{ t|tojson }}<tool_call>{% endfor %}{{ messages[0].content }}";

#[test]
fn tools_are_shown_and_spelled_as_the_template_says() {
    let folder = model(TOOLS);
    let file = folder.path().join("tools.json");
    fs::write(&file, r#"[{"name": "now", "parameters": {"type": "object", "properties": {}}}]"#).unwrap();
    let tools = file.to_str().unwrap();
    let arguments =
        ["generate", "--tools", tools, "--tool-choice", "required", "-p", "The time: ", "--finish"];
    let chat = object(folder.path(), &[&arguments[..], &["--chat"]].concat());
    let raw = object(folder.path(), &arguments);
    let tokenizer = Tokenizer::from_tokenizer_file(shipped()).unwrap();
    let function = r#"{"name": "now", "parameters": {"type": "object", "properties": {}}}"#;
    let shown = format!(r#"{{"type": "function", "function": {function}}}<tool_call>The time: "#);
    assert_eq!(chat["prompt_tokens"], tokenizer.encode(&shown, true).unwrap().len());
    assert_eq!(raw["prompt_tokens"], tokenizer.encode("The time: ", true).unwrap().len());
    for text in [&chat["text"], &raw["text"]] {
        assert!(text.as_str().unwrap().contains("<tool_call>"), "{text}");
    }
    // A template that shows neither tools nor their spelling.
    let plain = model(INSTRUCT);
    let run = run(plain.path(), &["generate", "--tools", tools, "-p", "A"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("--tool-spelling"), "{}", run.stderr);
    let shown = ["generate", "--tools", tools, "--tool-spelling", "hermes", "-p", "A", "--chat"];
    // The functions are in words then, in the system's message.
    let told = object(plain.path(), &shown)["prompt_tokens"].as_u64().unwrap();
    let bare = object(plain.path(), &["generate", "-p", "A", "--chat"])["prompt_tokens"].as_u64().unwrap();
    assert!(told > bare + 20, "{told} tokens, {bare} without functions");
}

#[test]
fn rows_have_messages() {
    let folder = model(INSTRUCT);
    let file = folder.path().join("rows.jsonl");
    let message = |role: &str, content: &str| json!({ "role": role, "content": content });
    let messages = [message("user", "A"), message("assistant", "B"), message("user", "C")];
    let rows = [
        json!({ "id": "m", "messages": messages }),
        json!({ "id": "p", "prompt": "A" }),
        json!({ "id": "both", "prompt": "A", "messages": [] }),
        json!({ "id": "none", "messages": 3 }),
    ];
    fs::write(&file, rows.map(|row| format!("{row}\n")).concat()).unwrap();
    let answers = |more: &[&str]| -> Vec<Value> {
        let arguments = [&["generate", "--batch", file.to_str().unwrap(), "--parallel", "1"], more].concat();
        let run = run(folder.path(), &arguments);
        run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let of = |answers: &[Value], id: &str| answers.iter().find(|answer| answer["id"] == id).unwrap().clone();
    let (raw, chat) = (answers(&[]), answers(&["--chat"]));
    let messages = object(
        folder.path(),
        &["generate", "-p", "[user] A [/user][assistant] B [/assistant][user] C [/user]"],
    );
    let one = object(folder.path(), &["generate", "-p", "[user] A [/user]"]);
    let plain = object(folder.path(), &["generate", "-p", "A"]);
    for (answers, of_prompt) in [(&raw, &plain), (&chat, &one)] {
        assert_eq!(of(answers, "m")["token_ids"], messages["token_ids"]);
        assert_eq!(of(answers, "m")["prompt_tokens"], messages["prompt_tokens"]);
        assert_eq!(of(answers, "p")["token_ids"], of_prompt["token_ids"]);
        assert_eq!(of(answers, "p")["prompt_tokens"], of_prompt["prompt_tokens"]);
        assert!(of(answers, "both")["error"].as_str().unwrap().contains("not both"));
        assert!(of(answers, "none")["error"].as_str().unwrap().contains("messages"));
    }
}

#[test]
fn other_commands_put_prompts_into_the_template_too() {
    let folder = model(INSTRUCT);
    let chat = object(folder.path(), &["explain", "--chat", "-p", "A"]);
    let raw = object(folder.path(), &["explain", "-p", "[user] A [/user]"]);
    let ids = |object: &Value| -> Vec<Value> {
        object["tokens"].as_array().unwrap().iter().map(|token| token["token_id"].clone()).collect()
    };
    assert_eq!(ids(&chat), ids(&raw));
    let out = folder.path().join("prior");
    let out = out.to_str().unwrap();
    let learnt = |prompt: &[&str]| {
        let run = run(
            folder.path(),
            &[&["learn", "-g", "json", "--runs", "1", "--json", "-o", out], prompt].concat(),
        );
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        fs::read(out).unwrap()
    };
    assert_eq!(learnt(&["--chat", "-p", "A"]), learnt(&["-p", "[user] A [/user]"]));
}

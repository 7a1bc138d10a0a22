//! Chat templates of models, in folders and in GGUF files, and the tokens of their prompts.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use domino::{
    Vocabulary,
    chat::{ChatErrorKind, ChatTemplate, Conversation},
    vocab::Tokenizer,
};

use super::golden::template;

/// The folder of the shipped model.
pub(super) fn shipped() -> PathBuf {
    Path::new(env!("DOMINO_ROOT")).join("models/domino-small")
}

/// A file among the real models, or `None` after saying that it is missing.
fn real(name: &str) -> Option<PathBuf> {
    let file = Path::new(env!("DOMINO_ROOT")).join("experiments/real/models").join(name);
    if file.exists() {
        return Some(file);
    }
    let message = format!("SKIPPED: {} is not there (experiments/real/fetch makes it)\n", file.display());
    io::stderr().write_all(message.as_bytes()).expect("standard error");
    None
}

fn question(template: &ChatTemplate) -> String {
    template.render(&Conversation::of_prompt(None, "Q")).unwrap()
}

#[test]
fn folders_have_templates_in_several_places() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    let read = |tools| ChatTemplate::of_model(folder.path(), tools);
    assert_eq!(read(false), Ok(None));
    write("special_tokens_map.json", r#"{"bos_token": {"content": "<b>"}, "eos_token": "<e>"}"#);
    assert_eq!(read(false), Ok(None));
    write("chat_template.json", r#"{"chat_template": "3{{ bos_token }}"}"#);
    assert_eq!(question(&read(false).unwrap().unwrap()), "3<b>");
    write(
        "tokenizer_config.json",
        r#"{"chat_template": "2{{ bos_token }}{{ eos_token }}", "bos_token": "<s>"}"#,
    );
    assert_eq!(question(&read(false).unwrap().unwrap()), "2<s><e>");
    let several =
        r#"{"chat_template": [{"name": "tool_use", "template": "T"}, {"name": "default", "template": "D"}]}"#;
    write("tokenizer_config.json", several);
    assert_eq!([false, true].map(|tools| question(&read(tools).unwrap().unwrap())), ["D", "T"]);
    write("chat_template.jinja", "1{{ messages[0].content }}{{ bos_token }}\n");
    assert_eq!([false, true].map(|tools| question(&read(tools).unwrap().unwrap())), ["1Q<b>", "1Q<b>"]);
    fs::create_dir(folder.path().join("additional_chat_templates")).unwrap();
    write("additional_chat_templates/tool_use.jinja", "4");
    assert_eq!([false, true].map(|tools| question(&read(tools).unwrap().unwrap())), ["1Q<b>", "4"]);
    write("chat_template.jinja", "a\n{{ b");
    let error = read(false).unwrap_err();
    assert_eq!((error.kind(), error.line()), (ChatErrorKind::Syntax, Some(2)));
    assert!(error.to_string().contains("chat_template.jinja: chat template, line 2"), "{error}");
    write("chat_template.jinja", "a");
    write("tokenizer_config.json", "{");
    assert_eq!(read(false).unwrap_err().kind(), ChatErrorKind::Malformed);
}

#[test]
fn a_template_is_read_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t");
    fs::write(&file, "{{ bos_token }}{{ messages[0].content }}").unwrap();
    let model = shipped();
    let read = |model| ChatTemplate::of_file(&file, model, false);
    assert_eq!(question(&read(None).unwrap()), "Q");
    assert_eq!(question(&read(Some(&*model)).unwrap()), "<s>Q");
    fs::write(&file, r#"{"chat_template": "x{{ bos_token }}", "bos_token": "<b>"}"#).unwrap();
    assert_eq!(question(&read(Some(&*model)).unwrap()), "x<b>");
    fs::write(&file, r#"{"other": 1}"#).unwrap();
    assert_eq!(read(None).unwrap_err().kind(), ChatErrorKind::Malformed);
    fs::remove_file(&file).unwrap();
    assert_eq!(read(None).unwrap_err().kind(), ChatErrorKind::Io);
}

/// The begin-of-text token comes once, whether the template writes it, the tokenizer adds it, or both do.
#[test]
fn the_begin_of_text_token_comes_once() {
    let tokenizer = Tokenizer::from_tokenizer_file(shipped()).unwrap();
    let plain = tokenizer.encode("a question", true).unwrap();
    let begin = plain[0];
    for text in ["a question", "<s>a question", "", "<s>", "<s>[INST] x</s>", "</s>x", " <s>x"] {
        let tokens = tokenizer.encode_written(text).unwrap();
        assert_eq!(tokens[0], begin, "{text}");
        let written = text.starts_with("<s>") || text.starts_with(" <s>");
        let count = tokens.iter().filter(|token| **token == begin).count();
        assert_eq!(count, 1 + usize::from(text.starts_with(' ') && written), "{text}: {tokens:?}");
    }
    assert_eq!(tokenizer.encode_written("a question").unwrap(), plain);
    // A tokenizer that puts nothing before a text.
    let json = include_str!("../fixtures/byte_level.json");
    let tokenizer = Tokenizer::from_tokenizer_json(json).unwrap();
    assert_eq!(tokenizer.encode_written("{\"a\"").unwrap(), tokenizer.encode("{\"a\"", false).unwrap());
}

/// The shipped model's template puts nothing around a prompt but the begin-of-text token.
#[test]
fn the_shipped_model_is_no_instruct_model() {
    let template = ChatTemplate::of_model(shipped(), false).unwrap().unwrap();
    assert_eq!(question(&template), "<s>Q");
    assert_eq!(template.family(), None);
}

#[test]
fn real_models_have_their_templates() {
    for (file, name, family) in [
        ("SmolLM2-135M-Instruct-Q4_1.gguf", "smollm2", "ChatML"),
        ("Qwen2.5-Coder-0.5B-Instruct-q4_k_m.gguf", "qwen2.5", "ChatML"),
    ] {
        let Some(path) = real(file) else { continue };
        let own = ChatTemplate::of_model(&path, false).unwrap().unwrap();
        assert_eq!((own.source(), own.family()), (&*template(name), Some(family)));
        let vocabulary = Vocabulary::from_tokenizer_file(&path).unwrap();
        let tokenizer = Tokenizer::from_tokenizer_file(&path).unwrap();
        let text = own.render(&Conversation::of_prompt(Some("S"), "Q")).unwrap();
        assert_eq!(
            text,
            "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nQ<|im_end|>\n<|im_start|>assistant\n"
        );
        let tokens = tokenizer.encode_written(&text).unwrap();
        let names: Vec<&str> =
            vocabulary.special_tokens().filter(|(id, _)| tokens.contains(id)).map(|(_, name)| name).collect();
        assert_eq!(names, ["<|im_start|>", "<|im_end|>"]);
        let special = tokens.iter().filter(|token| vocabulary.is_special(**token)).count();
        assert_eq!(special, 5, "{tokens:?}");
    }
}

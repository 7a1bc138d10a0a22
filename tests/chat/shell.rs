//! `domino model`, `domino completions` and `domino man`.

use std::fs;

use super::model::shipped;
use crate::support::program::{domino, last_line};

#[test]
fn domino_model_prints_the_facts_of_a_model() {
    let model = shipped();
    let model = model.to_str().unwrap();
    let run = domino(&["model", model], b"");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    for words in
        ["12,913,920", "6 layers", "bf16 100.0%", "32,000 tokens", "<s>", "2,048 tokens", "MiB (q8_0)"]
    {
        assert!(run.stdout.contains(words), "{words} in {}", run.stdout);
    }
    let run = domino(&["model", "-m", model, "--json"], b"");
    let told = last_line(&run);
    // Facts of the configuration, and numbers that follow from it.
    let config = fs::read_to_string(shipped().join("config.json")).unwrap();
    let config: serde_json::Value = serde_json::from_str(&config).unwrap();
    for (ours, theirs) in [
        ("layers", "num_hidden_layers"),
        ("hidden", "hidden_size"),
        ("heads", "num_attention_heads"),
        ("kv_heads", "num_key_value_heads"),
        ("context", "max_position_embeddings"),
    ] {
        assert_eq!(told[ours], config[theirs], "{ours}");
    }
    let number = |name: &str| told[name].as_u64().unwrap();
    let cache = 2 * number("layers") * number("kv_heads") * number("head_dim") * 4 * 1_000;
    assert_eq!(told["memory"]["cache"]["f32"], cache);
    let formats = told["formats"].as_array().unwrap();
    let sum: u64 = formats.iter().map(|format| format["parameters"].as_u64().unwrap()).sum();
    assert_eq!(sum, number("parameters"));
    // All bytes of the file are weights, but for its head.
    let bytes: u64 = formats.iter().map(|format| format["bytes"].as_u64().unwrap()).sum();
    let file = fs::metadata(shipped().join("model.safetensors")).unwrap().len();
    assert!((bytes..bytes + (64 << 10)).contains(&file), "{bytes} of {file}");
    assert_eq!(told["vocabulary"]["end_of_text"], serde_json::json!([2]));
    assert_eq!(told["chat_template"]["family"], serde_json::Value::Null);
}

#[test]
fn domino_model_lists_all_formats_of_a_gguf_file() {
    for name in ["llama_q8_0", "qwen2_q4_k_m", "qwen3_q5_k_m"] {
        let file = format!("{}/tests/fixtures/gguf/{name}.gguf", env!("DOMINO_ROOT"));
        let run = domino(&["model", &file, "--json"], b"");
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let told = last_line(&run);
        let formats = told["formats"].as_array().unwrap();
        let share: f64 = formats.iter().map(|format| format["share"].as_f64().unwrap()).sum();
        assert!((share - 1.0).abs() < 1e-9 && formats.len() > 1, "{formats:?}");
        let quantised = name.rsplit_once("_q").unwrap().1.trim_end_matches("_m");
        assert!(
            formats.iter().any(|format| format["format"] == format!("q{quantised}")),
            "{name}: {formats:?}"
        );
    }
    let run = domino(&["model", "/nothing"], b"");
    assert_eq!(run.code, Some(2));
}

#[test]
fn shells_complete_commands_and_flags() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = domino(&["completions", shell], b"");
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        for word in ["generate", "completions", "chat-template", "max-tokens"] {
            assert!(run.stdout.contains(word), "{shell}: {word}");
        }
    }
    assert_eq!(domino(&["completions", "tcsh"], b"").code, Some(2));
}

#[test]
fn pages_of_all_commands_are_written() {
    let run = domino(&["man"], b"");
    assert!(run.stdout.contains(".TH domino 1"), "{}", run.stdout);
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("man1");
    let run = domino(&["man", "--out", out.to_str().unwrap()], b"");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let commands = domino(&["--help"], b"").stdout;
    let commands = commands.lines().skip_while(|line| !line.starts_with("Commands:")).skip(1);
    let mut found = 0;
    for command in commands.take_while(|line| line.starts_with("  ")) {
        let Some(name) = command.split_whitespace().next().filter(|_| !command.starts_with("   ")) else {
            continue;
        };
        if name != "help" {
            let page = fs::read_to_string(out.join(format!("domino-{name}.1"))).unwrap();
            assert!(page.contains(&format!(".TH domino-{name} 1")), "{name}");
            found += 1;
        }
    }
    assert!(found > 10, "{found}");
    let page = domino(&["man", "generate"], b"").stdout;
    assert_eq!(page, fs::read_to_string(out.join("domino-generate.1")).unwrap());
    assert_eq!(domino(&["man", "nothing"], b"").code, Some(2));
}

//! Servers whose model runs as tensors, as on a card: several texts at once, and those of `domino generate`.
//! `--precision` runs the same code on the CPU.

use serde_json::{Value, json};

use super::{MODEL, PERSON, Server, check, operators::logged, own};
use crate::support::program::{domino, last_line};

#[test]
fn tensors_write_the_texts_of_the_program_at_once() {
    if !own() {
        return;
    }
    let server = Server::start(&["--precision", "f32", "--grammar-speculate=off"]);
    let bodies: Vec<Value> = ["json", "rpg", "c"]
        .iter()
        .flat_map(|name| (1..3).map(move |seed| (name, seed)))
        .map(|(name, seed)| {
            json!({ "grammar": { "type": "named", "value": name }, "seed": seed, "temperature": 0.8,
                "max_tokens": 16 })
        })
        .collect();
    let together: Vec<Vec<String>> = std::thread::scope(|scope| {
        let ask = |body: &Value, texts: usize| {
            let mut body = body.clone();
            body["n"] = texts.into();
            server.texts(&body)
        };
        let asked: Vec<_> = bodies.iter().map(|body| scope.spawn(move || ask(body, 2))).collect();
        asked.into_iter().map(|texts| texts.join().unwrap()).collect()
    });
    for (body, texts) in bodies.iter().zip(&together) {
        let (name, seed) = (body["grammar"]["value"].as_str().unwrap(), body["seed"].as_u64().unwrap());
        for (seed, text) in (seed..).zip(texts) {
            let seed = seed.to_string();
            let flags = ["generate", "-g", name, "-p", PERSON, "--seed", &seed, "-t", "0.8", "-n", "16"];
            let run = domino(&[&flags[..], &["--model", MODEL, "--precision", "f32"]].concat(), b"");
            assert_eq!(run.stdout.trim_end_matches('\n'), text.trim_end_matches('\n'), "{body}");
        }
    }
    assert_eq!(server.get("/health").body, "OK");
    // Passes carried several texts on.
    let page = server.get("/metrics").body;
    let of = |name: &str| {
        let line = page.lines().find(|line| line.starts_with(&format!("domino_batch_size_{name} ")));
        line.unwrap().rsplit(' ').next().unwrap().parse::<f64>().unwrap()
    };
    assert!(of("count") > 0.0 && of("sum") > of("count"), "{page}");
}

#[test]
fn tensors_take_drafts_and_long_prompts() {
    if !own() {
        return;
    }
    let (mut server, log) = logged(&["--precision", "f32", "--s", "4"]);
    // Longer than a chunk of a prompt on the CPU, twice.
    let prompt = "A JSON file describing a person and a house. ".repeat(60);
    for _ in 0..2 {
        let body = json!({
            "prompt": prompt, "max_tokens": 24, "grammar": { "type": "named", "value": "json" },
        });
        let answer = server.complete(&body).json();
        let choice = &answer["choices"][0];
        let (text, whole) = (choice["text"].as_str().unwrap(), choice["finish_reason"] == "stop");
        assert_eq!(check(&["-g", "json"], text, whole).code, Some(0), "{text:?}");
        assert!(answer["usage"]["prompt_tokens"].as_u64() > Some(512), "{answer}");
        assert_eq!(answer["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
    }
    server.signal("-TERM");
    server.child.wait().unwrap();
    let log = log.join().unwrap();
    assert!(log.contains("(cpu in f32)"), "{log}");
}

#[test]
fn devices_that_cannot_be_used_are_told_as_by_generate() {
    for flags in [
        &["--device", "cuda:9999"][..],
        &["--device", "cuda:9999", "--precision", "f16"],
        &["--device", "cuda:9999", "--quantize", "q8_0"],
        &["--device", "cuda:9999", "--kv", "f16"],
    ] {
        let told = |command: &[&str]| {
            let run = domino(&[command, &["--json", "--model", MODEL], flags].concat(), b"");
            (run.code, last_line(&run)["error"].clone())
        };
        let (code, error) = told(&["serve", "--port", "0", "--engine", "domino"]);
        assert_eq!((code, &error), (Some(2), &told(&["generate", "-p", "a"]).1), "{flags:?}");
        assert!(error.is_string(), "{flags:?}");
    }
    for (flags, what) in [
        (["--device", "gpu", "--max-seqs", "1"], "cuda:INDEX"),
        (["--precision", "f8", "--max-seqs", "1"], "bf16"),
        (["--device", "cuda", "--kv-memory", "64"], "--kv-memory"),
    ] {
        let engine = ["serve", "--port", "0", "--model", MODEL, "--engine", "domino"];
        let run = domino(&[&engine[..], &flags].concat(), b"");
        assert!(run.code == Some(2) && run.stderr.contains(what), "{flags:?}: {}", run.stderr);
    }
}

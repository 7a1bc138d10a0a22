//! Tests of what the engine decides: seeds, turns, prefixes of prompts, log-probabilities, ends of texts.

use serde_json::{Value, json};

use super::{MODEL, Server, check, own, streamed};
use crate::support::program::domino;

#[test]
fn a_seed_gives_the_same_text_without_a_grammar_too() {
    let server = Server::start(&[]);
    let text = |seed: u64, stream: bool| {
        let body = json!({ "seed": seed, "temperature": 1, "max_tokens": 24, "stream": stream });
        match stream {
            true => streamed(&server.complete(&body).events(), 1).remove(0),
            false => server.texts(&body).remove(0),
        }
    };
    let texts = [text(1, false), text(2, false), text(3, false)];
    assert!(texts[0] != texts[1] && texts[1] != texts[2], "{texts:?}");
    for (seed, expected) in (1..).zip(&texts) {
        assert_eq!(text(seed, true), *expected);
    }
    let several = json!({ "seed": 1, "temperature": 1, "max_tokens": 24, "n": 3 });
    assert_eq!(server.texts(&several), texts);
}

/// Texts are those of `domino generate`, whatever else the server writes.
#[test]
fn texts_of_the_server_are_those_of_domino_generate() {
    let server = Server::start(&[]);
    let bodies: Vec<Value> = ["json", "rpg", "c"]
        .iter()
        .flat_map(|name| (1..4).map(move |seed| (name, seed)))
        .map(|(name, seed)| {
            json!({ "grammar": { "type": "named", "value": name }, "seed": seed, "temperature": 0.8,
                "max_tokens": 32 })
        })
        .collect();
    let together: Vec<String> = std::thread::scope(|scope| {
        let asked: Vec<_> = bodies.iter().map(|body| scope.spawn(|| server.texts(body).remove(0))).collect();
        asked.into_iter().map(|text| text.join().unwrap()).collect()
    });
    if !own() {
        return;
    }
    for (body, text) in bodies.iter().zip(&together) {
        let (name, seed) = (body["grammar"]["value"].as_str().unwrap(), body["seed"].to_string());
        let flags = ["generate", "-g", name, "-p", super::PERSON, "--seed", &seed, "-t", "0.8", "-n", "32"];
        let run = domino(&[&flags[..], &["--model", MODEL]].concat(), b"");
        assert_eq!(run.stdout.trim_end_matches('\n'), text.trim_end_matches('\n'), "{body}");
    }
}

#[test]
fn a_prompt_that_was_read_is_not_read_again() {
    if !own() {
        return;
    }
    let server = Server::start(&[]);
    let prompt = "A JSON file describing a person and a house and a school and a book. ".repeat(8);
    let cached = |server: &Server, prompt: &str| {
        let answer = server.complete(&json!({ "prompt": prompt, "max_tokens": 4 })).json();
        let usage = &answer["usage"];
        let text = answer["choices"][0]["text"].as_str().unwrap().to_owned();
        let cached = usage["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap();
        (cached, usage["prompt_tokens"].as_u64().unwrap(), text)
    };
    let (first, tokens, text) = cached(&server, &prompt);
    let (second, _, again) = cached(&server, &prompt);
    assert_eq!((first, text), (0, again));
    assert!(second + 16 >= tokens && second < tokens, "{second} of {tokens}");
    assert!(cached(&server, &format!("{prompt} And more: ")).0 >= second);
    let none = Server::start(&["--prefix-cache", "0"]);
    assert_eq!((cached(&none, &prompt).0, cached(&none, &prompt).0), (0, 0));
}

#[test]
fn log_probabilities_are_natural_and_finite() {
    let server = Server::start(&[]);
    let grammar = json!({ "type": "regex", "value": "(ab|cd)[0-9]" });
    if !own() {
        let refused = server.complete(&json!({ "logprobs": 2 }));
        assert_eq!((refused.status, refused.error()["param"].as_str()), (400, Some("logprobs")));
        return;
    }
    for grammar in [Value::Null, grammar] {
        let body = json!({ "logprobs": 3, "max_tokens": 8, "grammar": grammar });
        let answer = server.complete(&body).json();
        let (choice, tokens) = (&answer["choices"][0], answer["usage"]["completion_tokens"].as_u64());
        let logprobs = &choice["logprobs"];
        let list = |key: &str| logprobs[key].as_array().unwrap().clone();
        assert_eq!(u64::try_from(list("tokens").len()).ok(), tokens, "{logprobs}");
        let spelt: String = list("tokens").iter().map(|token| token.as_str().unwrap()).collect();
        assert_eq!(choice["text"].as_str(), Some(spelt.as_str()));
        for ((taken, top), offset) in
            list("token_logprobs").iter().zip(list("top_logprobs")).zip(list("text_offset"))
        {
            let taken = taken.as_f64().unwrap();
            let top: Vec<f64> = top.as_object().unwrap().values().map(|one| one.as_f64().unwrap()).collect();
            assert!(taken <= 0.0 && taken.is_finite() && offset.is_u64());
            assert!(top.iter().map(|one| one.exp()).sum::<f64>() < 1.0 + 1e-9, "{top:?}");
            // The draw is greedy, so nothing is likelier.
            assert!(top.iter().all(|&one| one <= taken + 1e-12), "{taken} {top:?}");
        }
    }
    // In a chat, streamed: as the SDK reads them, the same as whole.
    let mut chat = json!({
        "messages": [{ "role": "user", "content": "A name: " }], "logprobs": true, "top_logprobs": 2,
        "max_tokens": 6, "temperature": 0,
    });
    let whole =
        server.post("/v1/chat/completions", &chat).json()["choices"][0]["logprobs"]["content"].clone();
    chat["stream"] = true.into();
    let events = server.post("/v1/chat/completions", &chat).events();
    let parts = events.iter().filter_map(|event| event["choices"][0]["logprobs"]["content"].as_array());
    assert_eq!(Value::Array(parts.flatten().cloned().collect()), whole);
    let first = &whole[0];
    assert!(first["token"].is_string() && first["bytes"].is_array() && first["logprob"].is_f64(), "{first}");
    assert_eq!(first["top_logprobs"].as_array().map(Vec::len), Some(2));
}

/// An answer that begins with its prompt has the log-probabilities of the prompt's tokens too: all but that
/// of the first, before which there is nothing.
#[test]
fn log_probabilities_of_a_prompt_come_with_its_echo() {
    if !own() {
        return;
    }
    let server = Server::start(&[]);
    let asked = |prompt: Value, most: usize, echo: bool| {
        let body = json!({ "prompt": prompt, "max_tokens": most, "echo": echo, "logprobs": 2 });
        let answer = server.complete(&body);
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.json()
    };
    let numbers = |choice: &Value| choice["logprobs"]["token_logprobs"].as_array().unwrap().clone();
    let tokens = json!([1, 330, 8212, 1982, 302, 264, 1338, 28747]);
    for prompt in [tokens.clone(), json!("A JSON file of a person: ")] {
        let whole = asked(prompt.clone(), 0, true);
        let (choice, usage) = (&whole["choices"][0], &whole["usage"]);
        assert_eq!((&choice["finish_reason"], &usage["completion_tokens"]), (&json!("length"), &json!(0)));
        let logprobs = numbers(choice);
        assert_eq!(Some(u64::try_from(logprobs.len()).unwrap()), usage["prompt_tokens"].as_u64());
        assert!(logprobs[0].is_null() && choice["logprobs"]["top_logprobs"][0].is_null(), "{choice}");
        assert!(logprobs[1..].iter().all(|one| one.as_f64().is_some_and(|one| one < 0.0)), "{choice}");
        // Each token begins where it stands in the text.
        let text = choice["text"].as_str().unwrap();
        let spelt = choice["logprobs"]["tokens"].as_array().unwrap().iter();
        for (token, offset) in spelt.zip(choice["logprobs"]["text_offset"].as_array().unwrap()).skip(2) {
            let rest: String =
                text.chars().skip(usize::try_from(offset.as_u64().unwrap()).unwrap()).collect();
            assert!(rest.starts_with(token.as_str().unwrap()), "{token} at {offset} of {text}");
        }
        // With a text after it both are as they are alone.
        let (long, plain) = (asked(prompt.clone(), 4, true), asked(prompt, 4, false));
        let both = [logprobs, numbers(&plain["choices"][0])].concat();
        assert_eq!(numbers(&long["choices"][0]), both);
        let texts = [text, plain["choices"][0]["text"].as_str().unwrap()].concat();
        assert_eq!(long["choices"][0]["text"], json!(texts));
    }
    // Nothing of it is cached for others, nor taken from what is.
    let again = asked(tokens, 0, true);
    assert_eq!(again["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
    let refused = server.complete(&json!({ "max_tokens": 0 }));
    assert_eq!((refused.status, refused.error()["param"].as_str()), (400, Some("max_tokens")));
}

#[test]
fn a_bias_makes_tokens_likelier_or_keeps_them_out() {
    if !own() {
        return;
    }
    let server = Server::start(&[]);
    let plain = server.complete(&json!({ "max_tokens": 1, "logprobs": 1 })).json();
    let first = plain["choices"][0]["text"].as_str().unwrap().to_owned();
    // 28740 is the token "1" of this model.
    assert_ne!(first, "1");
    let biased = |bias: Value| server.texts(&json!({ "max_tokens": 3, "logit_bias": bias })).remove(0);
    assert_eq!(biased(json!({ "28740": 100 })), "111");
    assert_ne!(biased(json!({ "28740": -100 })), "111");
    let digits = json!({ "type": "regex", "value": "[12]{3}" });
    let text = server.texts(&json!({ "max_tokens": 5, "grammar": digits, "logit_bias": { "28740": -100 } }));
    assert_eq!(text, ["222"]);
    for wrong in [json!({ "40000": 1 }), json!({ "one": 1 }), json!({ "5": "a" }), json!([5])] {
        let refused = server.complete(&json!({ "logit_bias": wrong }));
        assert_eq!((refused.status, refused.error()["param"].as_str()), (400, Some("logit_bias")), "{wrong}");
    }
}

#[test]
fn streams_name_the_role_once_per_choice() {
    let server = Server::start(&[]);
    for grammar in [Value::Null, json!({ "type": "regex", "value": "[a-z]{4,8}" })] {
        let chat = json!({
            "messages": [{ "role": "user", "content": "A name: " }], "stream": true, "n": 2, "seed": 1,
            "max_tokens": 8, "grammar": grammar,
        });
        let events = server.post("/v1/chat/completions", &chat).events();
        for index in 0..2 {
            let own = events.iter().flat_map(|event| event["choices"].as_array().unwrap());
            let own = own.filter(|choice| choice["index"] == index);
            let roles = own.filter(|choice| choice["delta"].get("role").is_some()).count();
            assert_eq!(roles, 1, "{events:?}");
        }
    }
}

#[test]
fn lists_of_prompts_are_answered_in_their_order() {
    let server = Server::start(&[]);
    let alone = ["A person: ", "A house: "].map(|prompt| {
        server.texts(&json!({ "prompt": prompt, "seed": 4, "temperature": 1, "n": 2, "max_tokens": 12 }))
    });
    let prompts = ["A person: ", "A house: "];
    let body = json!({ "prompt": prompts, "seed": 4, "temperature": 1, "n": 2, "max_tokens": 12 });
    assert_eq!(server.texts(&body), alone.concat());
    let echoed = server.texts(&json!({ "prompt": "A person: ", "echo": true, "max_tokens": 1 }));
    assert!(echoed[0].starts_with("A person: "), "{echoed:?}");
}

#[test]
fn texts_are_closed_within_their_limit() {
    let server = Server::start(&["--finish"]);
    for (name, flags) in [("json", ["-g", "json"]), ("rpg", ["-g", "rpg"])] {
        for (seed, most) in [(1, 60), (2, 80), (3, 120)] {
            let body = json!({
                "grammar": { "type": "named", "value": name }, "seed": seed, "temperature": 1,
                "max_tokens": most,
            });
            let answer = server.complete(&body);
            if answer.status == 400 {
                assert_eq!(answer.error()["param"], "max_tokens", "{}", answer.body);
                continue;
            }
            let answer = answer.json();
            let text = answer["choices"][0]["text"].as_str().unwrap();
            assert_eq!(check(&flags, text, true).code, Some(0), "{text}");
            assert!(answer["usage"]["completion_tokens"].as_u64().unwrap() <= most, "{answer}");
            assert_eq!(answer["choices"][0]["finish_reason"], "stop");
        }
    }
    let endless = json!({ "type": "regex", "value": "\"[a-z]*\"" });
    let body = json!({ "grammar": endless, "max_tokens": 5, "finish": true });
    let text = server.texts(&body).remove(0);
    assert!(text.len() >= 2 && text.ends_with('"'), "{text}");
    let cut =
        json!({ "grammar": { "type": "regex", "value": "[qz]{300,}" }, "max_tokens": 5, "finish": false });
    let answer = server.complete(&cut).json();
    assert_eq!(answer["choices"][0]["finish_reason"], "length", "{answer}");
}

/// Weights quantised while loading, and GGUF files.
#[test]
fn quantised_models_write_texts_of_the_grammar() {
    let gguf = concat!(env!("DOMINO_ROOT"), "/tests/fixtures/gguf/llama_q8_0.gguf");
    let body = json!({ "grammar": { "type": "regex", "value": "[a-z]{3,9}" }, "max_tokens": 16 });
    let text = |model: &str, flags: &[&str]| {
        let text = Server::of(model, flags).texts(&body).remove(0);
        assert_eq!(check(&["-r", "[a-z]{3,9}"], &text, true).code, Some(0), "{model} {text}");
        text
    };
    let flag = if own() { "--quantize" } else { "--isq" };
    let quantised = text(MODEL, &[flag, "q8_0"]);
    assert_eq!(text(MODEL, &[flag, "q8_0", "--grammar-speculate"]), quantised);
    text(gguf, &[]);
}

/// One request for sixteen long texts does not hold a short one.
#[test]
fn a_large_request_does_not_hold_others() {
    if !own() {
        return;
    }
    let server = Server::start(&["--max-seqs", "2"]);
    let mut large = super::endless();
    large["n"] = 16.into();
    let mut stream =
        server.open("POST", "/v1/completions", super::JSON, &super::completion(&large).to_string());
    let mut some = [0; 64];
    std::io::Read::read_exact(&mut stream, &mut some).unwrap();
    let begun = std::time::Instant::now();
    let text = server.texts(&json!({ "grammar": { "type": "regex", "value": "b" } }));
    assert_eq!(text, ["b"]);
    assert!(begun.elapsed() < std::time::Duration::from_secs(30), "{:?}", begun.elapsed());
    assert!(server.metric("domino_texts") >= 16.0, "the other texts go on");
}

/// Where there is one place, a short text waits for the one that has it, and not for all of its request.
#[test]
fn a_large_request_does_not_hold_the_only_place() {
    if !own() {
        return;
    }
    let server = Server::start(&["--max-seqs", "1"]);
    let mut large = super::endless();
    large["n"] = 16.into();
    large["max_tokens"] = 100.into();
    let mut stream =
        server.open("POST", "/v1/completions", super::JSON, &super::completion(&large).to_string());
    let mut some = [0; 64];
    std::io::Read::read_exact(&mut stream, &mut some).unwrap();
    assert_eq!(server.texts(&json!({ "grammar": { "type": "regex", "value": "b" } })), ["b"]);
    assert!(server.metric("domino_texts") >= 12.0, "the other texts come later");
}

#[test]
fn flags_of_another_engine_are_refused() {
    let refused = |flags: &[&str]| {
        let run = domino(&[&["serve", "--model", MODEL, "--port", "0"], flags].concat(), b"");
        assert_eq!(run.code, Some(2), "{}", run.stderr);
        run.stderr
    };
    if own() {
        assert!(refused(&["--engine", "mistralrs"]).contains("another program, domino-mistralrs"));
        return;
    }
    for flags in [["--kv", "f16"], ["--threads", "2"], ["--context", "64"]] {
        assert!(refused(&flags).contains("--engine domino"), "{flags:?}");
    }
    assert!(refused(&["--max-seqs", "2"]).contains("mixes up texts"));
    assert!(refused(&["--isq", "q99"]).contains("--isq"));
    assert!(refused(&["--prior-dir", "priors"]).contains("--grammar-speculate"));
    let hangs = ["--grammar-speculate", "--stall-timeout", "0.001"];
    assert!(refused(&hangs).contains("the speculative pipeline of mistral.rs hangs"));
}

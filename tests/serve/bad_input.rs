//! Tests of bad input: each is answered with an error in OpenAI's form, and the server goes on.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{JSON, MODEL, Server, completion};

const LONG: Duration = Duration::from_secs(60);

/// Checks that the server still serves, with a grammar.
fn goes_on(server: &Server) {
    assert_eq!(server.texts(&json!({ "grammar": { "type": "regex", "value": "b" } })), ["b"]);
}

#[test]
fn numbers_out_of_range_are_refused_by_name_with_a_grammar_and_without() {
    let server = Server::start(&[]);
    let wrong = [
        ("temperature", vec![json!(-0.1), json!(-1e300), json!("1"), json!([])]),
        ("top_p", vec![json!(-0.1), json!(1.1), json!("0.5"), json!({})]),
        ("top_k", vec![json!(-2), json!(1.5), json!(1e20), json!("5")]),
        ("min_p", vec![json!(-0.1), json!(1.1), json!(true)]),
        ("frequency_penalty", vec![json!(-2.1), json!(2.1), json!("1")]),
        ("presence_penalty", vec![json!(-2.1), json!(3), json!([])]),
        ("repetition_penalty", vec![json!(0), json!(-1)]),
        ("max_tokens", vec![json!(0), json!(-5), json!(1.5), json!(1e30), json!("9")]),
        ("max_completion_tokens", vec![json!(0), json!(-5), json!("9")]),
        ("n", vec![json!(0), json!(-1), json!(17), json!(1.5), json!("2")]),
        ("seed", vec![json!(1.5), json!(1e30), json!("7"), json!([])]),
        ("logprobs", vec![json!(-1), json!(21), json!("2")]),
        ("stream", vec![json!("yes"), json!(1)]),
        ("stop", vec![json!(""), json!([""]), json!(5), json!([1])]),
        ("stream_options", vec![json!(true), json!([])]),
        ("logit_bias", vec![json!(5), json!({ "5": 101 })]),
        ("best_of", vec![json!(0), json!(7)]),
        ("model", vec![json!(5)]),
    ];
    for grammar in [Value::Null, json!({ "type": "regex", "value": "a+" })] {
        for (name, values) in &wrong {
            for value in values {
                let answer = server.complete(&json!({ *name: value, "grammar": grammar }));
                assert_eq!(answer.status, 400, "{name} {value} {grammar}: {}", answer.body);
                assert_eq!(answer.error()["param"], json!(name), "{name} {value} {grammar}: {}", answer.body);
            }
        }
    }
    goes_on(&server);
}

#[test]
fn wrong_messages_functions_and_schemas_are_refused_by_name() {
    let server = Server::start(&["--tool-spelling", "hermes"]);
    let chat = |more: Value| {
        let mut body = json!({ "messages": [{ "role": "user", "content": "a" }], "max_tokens": 2 });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        server.post("/v1/chat/completions", &body)
    };
    let function = |name: &str| json!({ "type": "function", "function": { "name": name } });
    let format = |schema: Value| {
        let schema = json!({ "name": "a", "schema": schema });
        json!({ "response_format": { "type": "json_schema", "json_schema": schema } })
    };
    for (more, param) in [
        (json!({ "messages": [] }), "messages"),
        (json!({ "messages": null }), "messages"),
        (json!({ "messages": "a" }), "messages"),
        (json!({ "messages": [5] }), "messages"),
        (json!({ "messages": [{}] }), "messages"),
        (json!({ "messages": [{ "role": "user" }] }), "messages"),
        (json!({ "messages": [{ "role": "user", "content": 5 }] }), "messages"),
        (json!({ "messages": [{ "role": "king", "content": "a" }] }), "messages[0].role"),
        (json!({ "tools": [function("f"), function("f")] }), "tools"),
        (json!({ "tools": [function("")] }), "tools"),
        (json!({ "tools": [{ "type": "function" }] }), "tools"),
        (json!({ "tools": [function("f")], "tool_choice": function("g") }), "tool_choice"),
        (json!({ "tools": [function("f")], "tool_choice": "sometimes" }), "tool_choice"),
        (json!({ "tool_choice": "required" }), "tool_choice"),
        (format(json!({ "type": "text" })), "response_format"),
        (format(json!({ "$ref": "#/nowhere" })), "response_format"),
        (format(json!({ "pattern": "(" })), "response_format"),
        (json!({ "response_format": { "type": "json_schema" } }), "response_format.json_schema"),
    ] {
        let answer = chat(more.clone());
        assert_eq!(answer.status, 400, "{more}: {}", answer.body);
        assert_eq!(answer.error()["param"], json!(param), "{more}: {}", answer.body);
    }
    goes_on(&server);
}

/// A request for a call is refused if no grammar holds the model to a spelling.
#[test]
fn a_call_without_a_spelling_says_which_flag_cures_it() {
    let server = Server::start(&["--tool-spelling", "off"]);
    let tools = json!([{ "type": "function", "function": { "name": "f" } }]);
    let named = json!({ "type": "function", "function": { "name": "f" } });
    for choice in [json!("required"), named] {
        let body = json!({
            "messages": [{ "role": "user", "content": "a" }], "tools": tools, "tool_choice": choice,
        });
        let answer = server.post("/v1/chat/completions", &body);
        assert_eq!(
            (answer.status, &answer.error()["param"]),
            (400, &json!("tool_choice")),
            "{}",
            answer.body
        );
        assert!(answer.body.contains("--tool-spelling"), "{}", answer.body);
    }
    goes_on(&server);
}

#[test]
fn bodies_that_are_no_json_or_no_request_are_refused() {
    let server = Server::start(&[]);
    let deep = "[".repeat(100_000);
    for body in
        ["", "{", "[]", "5", "null", "\"a\"", "{\"prompt\": }", "{\"prompt\": \"\\ud800\"}", "\u{0}", &deep]
    {
        for path in ["/v1/completions", "/v1/chat/completions"] {
            let answer = server.send("POST", path, JSON, body);
            assert_eq!(answer.status, 400, "{path} {:.20}: {}", body, answer.body);
            answer.error();
        }
    }
    for (more, param) in [
        (json!({ "prompt": null }), "prompt"),
        (json!({ "prompt": 5 }), "prompt"),
        (json!({ "prompt": [] }), "prompt"),
        (json!({ "prompt": [{}] }), "prompt"),
        (json!({ "prompt": [4_000_000_000_u32] }), "prompt"),
        (json!({ "colour": "red" }), "colour"),
        (json!({ "grammar": { "type": "regex", "value": "a", "flags": "i" } }), "grammar.flags"),
    ] {
        let answer = server.complete(&more);
        assert_eq!(
            (answer.status, &answer.error()["param"]),
            (400, &json!(param)),
            "{more}: {}",
            answer.body
        );
    }
    goes_on(&server);
}

#[test]
fn clients_who_leave_at_any_point_leave_nothing_behind() {
    let server = Server::start(&[]);
    let body = completion(&json!({ "max_tokens": 400, "stream": true })).to_string();
    let head = format!(
        "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n{JSON}Content-Length: {}\r\n\r\n",
        body.len()
    );
    let whole = format!("{head}{body}");
    for _ in 0..5 {
        // Between any two parts of a request.
        for length in
            [0, 1, head.len() / 2, head.len() - 1, head.len(), head.len() + 1, whole.len() - 1, whole.len()]
        {
            let mut stream = TcpStream::connect(&server.address).unwrap();
            stream.write_all(&whole.as_bytes()[..length]).unwrap();
        }
        // Within its answer.
        for count in [1, 100, 400] {
            let mut stream = TcpStream::connect(&server.address).unwrap();
            stream.write_all(whole.as_bytes()).unwrap();
            stream.set_read_timeout(Some(LONG)).unwrap();
            stream.read_exact(&mut vec![0; count]).unwrap();
        }
    }
    let begun = Instant::now();
    while server.metric("domino_texts") > 0.0 || server.metric("domino_requests_running") > 0.0 {
        assert!(begun.elapsed() < LONG, "a text goes on without a reader");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(server.metric("domino_body_bytes"), 0.0);
    goes_on(&server);
}

/// Heads that are too large, and what is no HTTP at all.
#[test]
fn oversized_heads_end_their_connections_only() {
    let server = Server::start(&[]);
    let line = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n";
    let body = completion(&json!({ "max_tokens": 1 })).to_string();
    for head in [
        format!("{line}X: {}\r\n\r\n", "a".repeat(1 << 20)),
        format!("{line}{}: a\r\n\r\n", "x".repeat(1 << 18)),
        format!("{line}{}\r\n", "X: a\r\n".repeat(5_000)),
        format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "a".repeat(1 << 20)),
        format!("{line}{JSON}Content-Length: -1\r\n\r\n{body}"),
        format!("{line}{JSON}Content-Length: 99999999999999999999\r\n\r\n{body}"),
        format!("{line}{JSON}Content-Length: 3\r\nContent-Length: 4\r\n\r\n{body}"),
        format!("{line}{JSON}Transfer-Encoding: chunked\r\n\r\nffffffffffffffffffff\r\n{body}"),
        format!("{line}{JSON}Transfer-Encoding: gzip\r\n\r\n{body}"),
        format!("{line}X\0Y: a\r\n\r\n"),
        "GET / HTTP/9.9\r\n\r\n".to_owned(),
        "\u{16}\u{3}\u{1}\u{2}\0 no HTTP\r\n\r\n".to_owned(),
    ] {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        // A head of a megabyte may be cut off by a reset, before its answer is read.
        let _ = stream.write_all(head.as_bytes());
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut said = Vec::new();
        let _ = stream.read_to_end(&mut said);
        let said = String::from_utf8(said).unwrap();
        let refused = said.starts_with("HTTP/1.1 4") || said.is_empty() && head.len() > 64 << 10;
        assert!(refused, "{head:.60}: {said}");
        goes_on(&server);
    }
    assert_eq!(server.metric("domino_requests_running"), 0.0);
}

/// Starts a server from a shell, after these commands.
fn after(commands: &str, model: &Path, more: &[&str]) -> Server {
    let program = env!("CARGO_BIN_EXE_domino");
    let mut child = Command::new("sh")
        .args(["-c", &format!("{commands}; exec \"$@\""), "sh", program])
        .args(["serve", "--port", "0", "--json", "--model"])
        .arg(model)
        .args(more)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let ready: Value = serde_json::from_str(&line).expect("the server says where it listens");
    Server { child, address: ready["address"].as_str().unwrap().to_owned() }
}

#[test]
fn file_descriptors_that_are_used_up_are_found_again() {
    let server = after("ulimit -n 64", Path::new(MODEL), &[]);
    let held: Vec<TcpStream> = (0..200).filter_map(|_| TcpStream::connect(&server.address).ok()).collect();
    assert!(held.len() > 64);
    // Clients with requests are served: idle connections make room for them.
    for _ in 0..5 {
        goes_on(&server);
    }
    drop(held);
    goes_on(&server);
}

#[test]
fn a_full_disk_does_not_stop_the_server() {
    let cache = tempfile::tempdir().unwrap();
    let cache = cache.path().to_str().unwrap().to_owned();
    // Files cannot be written: the limit on their size is zero.
    let server = after("trap '' XFSZ; ulimit -f 0", Path::new(MODEL), &["--cache-dir", &cache]);
    goes_on(&server);
    server.texts(&json!({ "grammar": { "type": "named", "value": "json" }, "max_tokens": 4 }));
    let kept = fs::read_dir(&cache).unwrap().flatten().filter_map(|entry| entry.metadata().ok());
    assert_eq!(kept.map(|about| about.len()).sum::<u64>(), 0);
}

#[test]
fn the_server_goes_on_without_its_model_folder() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("domino-small");
    fs::create_dir(&model).unwrap();
    for entry in fs::read_dir(MODEL).unwrap().flatten().filter(|entry| entry.path().is_file()) {
        fs::copy(entry.path(), model.join(entry.file_name())).unwrap();
    }
    let server = Server::of(model.to_str().unwrap(), &[]);
    let before = server.texts(&json!({ "seed": 3 }));
    fs::write(model.join("config.json"), "{}").unwrap();
    fs::remove_file(model.join("tokenizer.json")).unwrap();
    assert_eq!(server.texts(&json!({ "seed": 3 })), before);
    fs::remove_dir_all(&model).unwrap();
    assert_eq!(server.texts(&json!({ "seed": 3 })), before);
    goes_on(&server);
    assert_eq!(server.get("/health").status, 200);
}

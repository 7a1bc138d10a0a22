//! Tests of bounds while others are served: bodies and heads that do not end, long prompts, slow grammars.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{JSON, Server};

const LONG: Duration = Duration::from_secs(60);

/// Opens connections, and sends this text and nothing else on each.
fn begun(server: &Server, text: &str, count: usize) -> Vec<TcpStream> {
    let open = || {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        stream
    };
    (0..count).map(|_| open()).collect()
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < LONG, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn half_a_request_holds_neither_others_nor_the_end() {
    let mut server = Server::start(&["--max-connections", "64", "--read-timeout", "300"]);
    let head = format!("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n{JSON}");
    let mut held = begun(&server, "POST /v1/completions HTTP/1.1\r\nHost: loc", 100);
    // Enough for minutes, at the least rate that a body must have.
    let some = " ".repeat(128 << 10);
    held.extend(begun(&server, &format!("{head}Content-Length: 1000000\r\n\r\n{some}"), 8));
    held.extend(begun(&server, &format!("{head}Transfer-Encoding: chunked\r\n\r\n20000\r\n{some}\r\n"), 8));
    assert_eq!(server.get("/health").status, 200);
    assert_eq!(server.complete(&json!({ "max_tokens": 2 })).status, 200);
    let begun = Instant::now();
    server.signal("-TERM");
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    assert!(begun.elapsed() < LONG / 2, "{:?}", begun.elapsed());
    // A client whose body was on its way gets an error.
    let last = held.last_mut().unwrap();
    let mut said = String::new();
    let _ = last.read_to_string(&mut said);
    assert!(said.starts_with("HTTP/1.1 503") && said.contains("shutting_down"), "{said}");
}

#[test]
fn bodies_take_no_more_memory_than_there_is_for_them() {
    let server = Server::start(&["--body-memory", "4", "--max-body", "1024"]);
    let head = format!("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n{JSON}");
    let body = format!("{head}Content-Length: 1048576\r\n\r\n{}", " ".repeat(900 << 10));
    // This is more than one client's share: the excess is refused, and the rest is counted.
    let mut held = begun(&server, &body, 4);
    until("the bodies are not counted", || server.metric("domino_body_bytes") >= f64::from(900 << 10));
    assert!(server.metric("domino_body_bytes") <= f64::from(2 << 20));
    let refused = held.iter_mut().filter_map(|stream| {
        stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        let mut said = [0; 12];
        stream.read_exact(&mut said).ok().map(|()| String::from_utf8_lossy(&said).into_owned())
    });
    let refused: Vec<String> = refused.collect();
    assert!(refused.len() >= 2 && refused.iter().all(|said| said == "HTTP/1.1 503"), "{refused:?}");
    drop(held);
    until("bodies of those who left are counted still", || server.metric("domino_body_bytes") == 0.0);
    assert_eq!(server.complete(&json!({ "max_tokens": 2 })).status, 200);
}

/// A regression test: twenty such prompts once stopped all streams for 24 s.
#[test]
fn long_prompts_are_refused_before_they_are_read() {
    let server = Server::start(&[]);
    let long = "word ".repeat((4 << 20) / 5 - 100);
    let chat = json!({ "messages": [{ "role": "user", "content": long }] });
    std::thread::scope(|scope| {
        for _ in 0..10 {
            scope.spawn(|| {
                let answer = server.complete(&json!({ "prompt": long }));
                assert_eq!(
                    (answer.status, &answer.error()["code"]),
                    (400, &json!("context_length_exceeded"))
                );
                let answer = server.post("/v1/chat/completions", &chat);
                assert_eq!(answer.status, 400, "{}", answer.body);
            });
        }
        // Others are served meanwhile.
        assert_eq!(server.complete(&json!({ "max_tokens": 4 })).status, 200);
    });
}

#[test]
fn one_client_does_not_stop_grammars_of_others() {
    let keys = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(keys.path(), "hog one\nuser two\n").unwrap();
    let server = Server::start(&["--api-keys", keys.path().to_str().unwrap(), "--compile-timeout", "60"]);
    let headers = |key: &str| format!("{JSON}Authorization: Bearer {key}\r\n");
    let ask = |key: &str, grammar: Value| {
        let body = json!({ "model": "default", "prompt": "a", "max_tokens": 2, "grammar": grammar });
        server.send("POST", "/v1/completions", &headers(key), &body.to_string())
    };
    let slow = |salt: usize| {
        let number = |at: usize| (format!("p{at}"), json!({ "type": "number", "multipleOf": at + 2 }));
        let properties: serde_json::Map<String, Value> = (0..1000).map(number).collect();
        let schema = json!({ "title": salt.to_string(), "properties": properties });
        json!({ "type": "json_schema", "value": schema })
    };
    let streams: Vec<TcpStream> = (0..6)
        .map(|salt| {
            let body = json!({ "prompt": "a", "max_tokens": 2, "grammar": slow(salt) }).to_string();
            server.open("POST", "/v1/completions", &headers("one"), &body)
        })
        .collect();
    let metric = |name: &str| {
        let page = server.send("GET", "/metrics", "Authorization: Bearer two\r\n", "").body;
        let line = page.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap().to_owned();
        line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()
    };
    until("no grammar waits", || metric("domino_work_waiting") >= 3.0);
    for text in ["ab", "cd", "ef"] {
        let answer = ask("two", json!({ "type": "regex", "value": text }));
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
    assert!(metric("domino_work_waiting") >= 1.0, "the schemas were not slow enough to tell");
    // Work for clients that leave is given up.
    drop(streams);
    until("what nobody waits for waits", || metric("domino_work_waiting") == 0.0);
    assert!(metric("domino_grammar_cancelled_total") >= 1.0);
}

#[test]
fn requests_for_more_texts_than_places_are_refused() {
    let server = Server::start(&["--max-seqs", "1", "--max-queue", "2"]);
    for n in [4, 9, 16] {
        let answer = server.complete(&json!({ "n": n }));
        let error = answer.error();
        assert_eq!((answer.status, &error["param"]), (400, &json!("n")), "{error}");
    }
    assert_eq!(server.texts(&json!({ "n": 3, "max_tokens": 2 })).len(), 3);
}

#[test]
fn requests_without_a_key_are_refused() {
    let server = Server::start(&["--api-key", "secret"]);
    assert_eq!(server.get("/health").status, 200);
    for path in ["/v1/models", "/metrics"] {
        let refused = server.get(path);
        assert_eq!(
            (refused.status, &refused.error()["type"]),
            (401, &json!("authentication_error")),
            "{path}"
        );
        assert_eq!(server.send("GET", path, "Authorization: Bearer secret2\r\n", "").status, 401);
        assert_eq!(server.send("GET", path, "Authorization: Bearer secret\r\n", "").status, 200);
    }
}

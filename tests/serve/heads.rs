//! Heads of requests that are too large, never end, or are no HTTP: each is refused with an error in OpenAI's
//! form, on whatever connection it comes, and the server goes on.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpStream},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{Answer, JSON, Server, completion, operators::logged};

const LONG: Duration = Duration::from_secs(60);

/// The beginning of a head that is answered with 200.
const GET: &str = "GET /ready HTTP/1.1\r\nHost: localhost\r\n";

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(&server.address).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream
}

/// Sends `text` as it is.
fn begun(server: &Server, text: &str) -> TcpStream {
    let mut stream = connect(server);
    stream.write_all(text.as_bytes()).unwrap();
    stream
}

/// Waits for all answers of a connection up to its end, which must not be a reset.
fn answers(stream: &mut TcpStream) -> Vec<Answer> {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let mut found = Vec::new();
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let head = rest.find("\r\n\r\n").unwrap_or_else(|| panic!("half a head: {rest:?}")) + 4;
        let length = rest[..head].lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.unwrap_or_else(|| panic!("no length: {rest:?}")).parse().unwrap();
        let (answer, others) = rest.split_at(head + length);
        found.push(Answer::read(answer));
        rest = others;
    }
    found
}

/// Checks that an answer is a refusal as all others are, and the last one.
fn refused(answer: &Answer, status: u16, code: &str) {
    assert_eq!((answer.status, &answer.error()["code"]), (status, &json!(code)), "{}", answer.body);
    assert_eq!(answer.error()["type"], "invalid_request_error");
    for line in ["content-type: application/json", "connection: close", "x-request-id: req-", "date: "] {
        assert!(answer.head.contains(line), "no {line} in {}", answer.head);
    }
}

/// Heads that are too large, and what is large about them.
fn bombs() -> Vec<(&'static str, String)> {
    let huge = "a".repeat(1 << 20);
    vec![
        ("a header", format!("{GET}X: {huge}\r\n\r\n")),
        ("many headers", format!("{GET}{}\r\n", "X: a\r\n".repeat(5000))),
        ("one header more than may be", format!("{GET}{}\r\n", "X: a\r\n".repeat(100))),
        ("a request line", format!("GET /{huge} HTTP/1.1\r\nHost: localhost\r\n\r\n")),
        ("the name of a header", format!("{GET}{huge}: a\r\n\r\n")),
        // A head that comes with one read may have what is read at once more than the bound.
        ("thrice what may be", format!("{GET}X: {}\r\n\r\n", "a".repeat(192 << 10))),
        ("a header without end", format!("{GET}X: {huge}")),
        ("headers without end", format!("{GET}{}", "X: a\r\n".repeat(100_000))),
        ("a request line without end", format!("GET /{huge}")),
        ("a method without end", huge),
    ]
}

#[test]
fn heads_that_are_too_large_are_told() {
    let server = Server::start(&[]);
    for (what, bomb) in bombs() {
        let found = answers(&mut begun(&server, &bomb));
        assert_eq!(found.len(), 1, "{what}");
        refused(&found[0], 431, "head_too_large");
    }
    // Heads just below the bounds are accepted.
    for large in [format!("X: {}\r\n", "a".repeat(60 << 10)), "X: a\r\n".repeat(90)] {
        let found = answers(&mut begun(&server, &format!("{GET}Connection: close\r\n{large}\r\n")));
        assert_eq!((found.len(), found[0].status), (1, 200));
    }
    assert_eq!(server.texts(&json!({ "grammar": { "type": "regex", "value": "b" } })), ["b"]);
}

#[test]
fn heads_are_told_after_the_answers_before_them() {
    let server = Server::start(&[]);
    let body = completion(&json!({ "grammar": { "type": "regex", "value": "b" } })).to_string();
    let head = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n";
    let post = format!("{head}{JSON}Content-Length: {}\r\n\r\n{body}", body.len());
    let stream = completion(&json!({ "stream": true, "max_tokens": 4 })).to_string();
    let stream = format!("{head}{JSON}Content-Length: {}\r\n\r\n{stream}", stream.len());
    for (what, bomb) in bombs() {
        // Sent at once.
        let found = answers(&mut begun(&server, &format!("{GET}\r\n{post}{GET}\r\n{bomb}")));
        let statuses: Vec<u16> = found.iter().map(|answer| answer.status).collect();
        assert_eq!(statuses, [200, 200, 200, 431], "{what}");
        assert_eq!(found[1].json()["choices"][0]["text"], "b");
        refused(&found[3], 431, "head_too_large");
        // Sent when the first is answered.
        let mut kept = begun(&server, &format!("{GET}\r\n"));
        let mut said = Vec::new();
        while !said.ends_with(b"\r\n\r\nOK") {
            let mut byte = [0];
            kept.read_exact(&mut byte).unwrap();
            said.push(byte[0]);
        }
        kept.write_all(bomb.as_bytes()).unwrap();
        let found = answers(&mut kept);
        assert_eq!(found.len(), 1, "{what}");
        refused(&found[0], 431, "head_too_large");
    }
    // After a stream, whose end is a chunk.
    let mut said = String::new();
    begun(&server, &format!("{stream}{}", bombs()[0].1)).read_to_string(&mut said).unwrap();
    let (events, last) = said.split_once("\r\n0\r\n\r\n").unwrap();
    assert!(events.contains("data: [DONE]"), "{events}");
    refused(&Answer::read(last), 431, "head_too_large");
}

#[test]
fn heads_that_come_slowly_or_never_end_are_told() {
    let server = Server::start(&[]);
    for piece in ["X: aaaaaaaaaaa\r\n".repeat(512), "a".repeat(8 << 10)] {
        let mut stream = begun(&server, &format!("{GET}Y: "));
        let mut writer = stream.try_clone().unwrap();
        let begun = Instant::now();
        let writing = std::thread::spawn(move || {
            while begun.elapsed() < LONG && writer.write_all(piece.as_bytes()).is_ok() {
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let found = answers(&mut stream);
        assert!(begun.elapsed() < LONG / 2, "{:?}", begun.elapsed());
        assert_eq!(found.len(), 1);
        refused(&found[0], 431, "head_too_large");
        let _ = stream.shutdown(Shutdown::Both);
        writing.join().unwrap();
    }
    assert_eq!(server.get("/ready").status, 200);
}

#[test]
fn what_is_no_http_is_told() {
    let server = Server::start(&[]);
    for head in [
        "\u{1}\u{2}\u{3}\r\n\r\n".to_owned(),
        "GET /ready HTTP/9.9\r\nHost: localhost\r\n\r\n".to_owned(),
        "GET /ready\r\n\r\n\r\n".to_owned(),
        format!("{GET}no colon\r\n\r\n"),
        format!("{GET}Content-Length: many\r\n\r\n"),
        format!("{GET}Content-Length: 1\r\nContent-Length: 2\r\n\r\n"),
    ] {
        let found = answers(&mut begun(&server, &head));
        assert_eq!(found.len(), 1, "{head:?}");
        refused(&found[0], 400, "invalid_head");
    }
    assert_eq!(server.get("/ready").status, 200);
}

#[test]
fn refused_heads_are_in_the_log() {
    let (mut server, log) = logged(&["--log", "json"]);
    let found = answers(&mut begun(&server, &bombs()[0].1));
    server.signal("-TERM");
    server.child.wait().unwrap();
    let log = log.join().unwrap();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let refused: Vec<Value> = lines.filter(|line| line["message"] == "head refused").collect();
    assert_eq!((refused.len(), &refused[0]["status"]), (1, &json!(431)), "{log}");
    assert_eq!(refused[0]["caller"], "127.0.0.1");
    let id = format!("x-request-id: {}", refused[0]["id"].as_str().unwrap());
    assert!(found[0].head.contains(&id), "{id} in {}", found[0].head);
}

//! Heads of requests that are too large, never end, or are no HTTP: each is refused or cut off, and the
//! server goes on.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

use serde_json::json;

use super::Server;

const LONG: Duration = Duration::from_secs(60);

/// The beginning of a head that is answered with 200.
const GET: &str = "GET /ready HTTP/1.1\r\nHost: localhost\r\n";

/// Sends `text` as far as it is taken, and reads until the connection ends, if only by a reset.
fn said(server: &Server, text: &str) -> String {
    let begun = Instant::now();
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    let _ = stream.write_all(text.as_bytes());
    let mut said = Vec::new();
    let _ = stream.read_to_end(&mut said);
    assert!(begun.elapsed() < LONG, "it is held");
    String::from_utf8(said).unwrap()
}

#[test]
fn heads_have_bounds_and_the_server_goes_on() {
    let server = Server::start(&[]);
    let huge = "a".repeat(1 << 20);
    for bomb in [
        format!("{GET}X: {huge}\r\n\r\n"),
        format!("{GET}{}\r\n", "X: a\r\n".repeat(5000)),
        format!("GET /{huge} HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        format!("{GET}{huge}: a\r\n\r\n"),
        format!("{GET}X: {huge}"),
        format!("{GET}{}", "X: a\r\n".repeat(100_000)),
        format!("GET /{huge}"),
        huge.clone(),
    ] {
        // A peer that still writes may be reset before it has read why.
        let said = said(&server, &bomb);
        assert!(said.is_empty() || said.starts_with("HTTP/1.1 431"), "{said}");
    }
    let many = said(&server, &format!("{GET}{}\r\n", "X: a\r\n".repeat(100)));
    assert!(many.starts_with("HTTP/1.1 431"), "{many}");
    // Heads just below the bounds are accepted.
    for large in [format!("X: {}\r\n", "a".repeat(60 << 10)), "X: a\r\n".repeat(90)] {
        let said = said(&server, &format!("{GET}Connection: close\r\n{large}\r\n"));
        assert!(said.starts_with("HTTP/1.1 200"), "{said}");
    }
    assert_eq!(server.texts(&json!({ "grammar": { "type": "regex", "value": "b" } })), ["b"]);
}

#[test]
fn what_is_no_http_is_refused() {
    let server = Server::start(&[]);
    for head in [
        "\u{1}\u{2}\u{3}\r\n\r\n".to_owned(),
        "GET /ready HTTP/9.9\r\nHost: localhost\r\n\r\n".to_owned(),
        format!("{GET}no colon\r\n\r\n"),
        format!("{GET}Content-Length: many\r\n\r\n"),
        format!("{GET}Content-Length: 1\r\nContent-Length: 2\r\n\r\n"),
    ] {
        let said = said(&server, &head);
        assert!(said.starts_with("HTTP/1.1 400"), "{head:?}: {said}");
    }
    assert_eq!(server.get("/ready").status, 200);
}

//! Ends that come too early: engines that stop, clients who go away, servers that are told to end.

use std::{
    io::Read,
    net::TcpStream,
    time::{Duration, Instant},
};

use serde_json::json;

use super::{JSON, Server, completion, endless};

/// No pass is over in a millisecond, so to this server its engine hangs.
#[test]
fn a_stalled_engine_is_an_error_and_the_server_goes_on() {
    let mut server = Server::start(&["--stall-timeout", "0.001"]);
    let long = "word ".repeat(1200);
    let grammar = json!({ "type": "regex", "value": "[a-z]+" });
    for more in [json!({ "prompt": long, "grammar": grammar }), json!({ "prompt": long })] {
        let answer = server.complete(&more);
        assert_eq!(
            (answer.status, &answer.error()["code"]),
            (503, &json!("engine_stalled")),
            "{}",
            answer.body
        );
    }
    // A token that came late, for somebody who had gone, makes the engine well for a second.
    let begun = Instant::now();
    let mut health = server.get("/health");
    while health.status == 200 && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(100));
        health = server.get("/health");
    }
    assert_eq!((health.status, &health.error()["code"]), (503, &json!("engine_stalled")));
    assert!(health.error()["message"].as_str().unwrap().contains("token"), "{}", health.body);
    assert!(server.metric("domino_stalled_total") >= 2.0);
    assert_eq!(server.get("/v1/models").status, 200);
    server.signal("-TERM");
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}

#[test]
fn clients_who_leave_make_room_for_others() {
    let server = Server::start(&["--max-seqs", "1", "--max-queue", "0"]);
    let body = completion(&endless()).to_string();
    let mut first = server.open("POST", "/v1/completions", JSON, &body);
    let mut some = [0; 64];
    first.read_exact(&mut some).unwrap();
    let refused = server.complete(&json!({}));
    assert_eq!((refused.status, &refused.error()["code"]), (429, &json!("queue_full")));
    assert!(refused.head.contains("retry-after"));
    drop(first);
    let begun = Instant::now();
    while server.metric("domino_texts") > 0.0 {
        assert!(begun.elapsed() < Duration::from_secs(60), "the text goes on without a reader");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(server.metric("domino_cancelled_total") >= 1.0);
    assert_eq!(server.complete(&json!({})).status, 200);
}

#[test]
fn running_requests_are_finished_on_shutdown() {
    let mut server = Server::start(&[]);
    let body = json!({ "grammar": { "type": "named", "value": "json" }, "max_tokens": 300, "stream": true });
    let mut stream = server.open("POST", "/v1/completions", JSON, &completion(&body).to_string());
    let mut some = [0; 64];
    stream.read_exact(&mut some).unwrap();
    server.signal("-TERM");
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert!(rest.ends_with("data: [DONE]\n\n"), "{rest}");
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    assert!(TcpStream::connect(&server.address).is_err());
}

#[test]
fn requests_past_the_drain_timeout_are_cut_on_shutdown() {
    let mut server = Server::start(&["--drain-timeout", "0.2"]);
    // Texts of a thousand bytes and more, one after the other: far longer than is waited.
    let long = json!({ "type": "regex", "value": "[ab]{1000,}" });
    let body = json!({ "grammar": long, "max_tokens": 1500, "stream": true, "n": 16 });
    let mut stream = server.open("POST", "/v1/completions", JSON, &completion(&body).to_string());
    let mut some = [0; 64];
    stream.read_exact(&mut some).unwrap();
    server.signal("-TERM");
    let mut rest = Vec::new();
    // The stream is cut by a reset or by an end.
    let _ = stream.read_to_end(&mut rest);
    let rest = String::from_utf8_lossy(&rest);
    // An end may still come in the stream, as a problem of texts that were cut.
    assert!(rest.matches("\"finish_reason\":\"").count() < 16, "all 16 texts were waited for: {rest}");
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}

//! Tests of the server's operation: keys, ids, logs, settings in a file, metrics that add up, replicas.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    process::Stdio,
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{JSON, MODEL, Server, completion};
use crate::support::program::{domino, program};

const LONG: Duration = Duration::from_secs(60);

#[test]
fn keys_of_a_file_are_exchanged_while_it_runs() {
    let keys = tempfile::NamedTempFile::new().unwrap();
    fs::write(keys.path(), "# who may\nalice one\nbob two\n").unwrap();
    let server = Server::start(&["--api-keys", keys.path().to_str().unwrap()]);
    let status =
        |value: &str| server.send("GET", "/v1/models", &format!("Authorization: {value}\r\n"), "").status;
    for right in ["Bearer one", "bearer two", "BEARER one", "bEARER  two"] {
        assert_eq!(status(right), 200, "{right}");
    }
    for wrong in ["Bearer three", "one", "Basic one", "Bearer One", ""] {
        assert_eq!(status(wrong), 401, "{wrong}");
    }
    assert_eq!((server.get("/v1/models").status, server.get("/health").status), (401, 200));
    assert_eq!(server.get("/ready").status, 200);
    fs::write(keys.path(), "alice three\nbob two\n").unwrap();
    let begun = Instant::now();
    while status("Bearer three") != 200 {
        assert!(begun.elapsed() < LONG, "the new key is not taken");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!((status("Bearer one"), status("Bearer two")), (401, 200));
    // A file that cannot be used changes nothing.
    fs::write(keys.path(), "alice").unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!((status("Bearer three"), status("Bearer two")), (200, 200));
}

#[test]
fn every_answer_has_the_id_of_its_request() {
    let server = Server::start(&[]);
    for (path, status) in [("/v1/models", 200), ("/health", 200), ("/nothing", 404), ("/v1/completions", 405)]
    {
        let answer = server.send("GET", path, "X-Request-Id: mine-7\r\n", "");
        assert_eq!(answer.status, status);
        assert!(answer.head.contains("x-request-id: mine-7"), "{path}: {}", answer.head);
        let answer = server.send("GET", path, "X-Request-Id: a b\"\r\n", "");
        assert!(answer.head.contains("x-request-id: req-"), "{path}: {}", answer.head);
    }
    let stream = server.complete(&json!({ "stream": true, "max_tokens": 2 }));
    assert!(stream.head.contains("x-request-id: req-"), "{}", stream.head);
    let refused = server.send("GET", "/health", "Host: evil.example\r\n", "");
    assert!(refused.status == 403 && refused.head.contains("x-request-id: req-"), "{}", refused.head);
}

/// A server with what it writes to standard error.
pub(super) fn logged(arguments: &[&str]) -> (Server, std::thread::JoinHandle<String>) {
    let mut program = program();
    if arguments.contains(&"--cache-dir") {
        program.env_remove("DOMINO_NO_CACHE");
    }
    let mut child = program
        .args(["serve", "--port", "0", "--json", "--model", MODEL])
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let ready: Value = serde_json::from_str(&line).expect("the server says where it listens");
    let mut errors = child.stderr.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        errors.read_to_string(&mut text).unwrap();
        text
    });
    (Server { child, address: ready["address"].as_str().unwrap().to_owned() }, reader)
}

#[test]
fn requests_are_logged_as_objects() {
    let (mut server, log) = logged(&["--log", "json", "--api-key", "secret"]);
    let key = "Authorization: Bearer secret\r\nX-Request-Id: mine-8\r\n";
    let body = completion(&json!({ "max_tokens": 2, "stream": true })).to_string();
    assert_eq!(server.send("POST", "/v1/completions", &format!("{JSON}{key}"), &body).status, 200);
    assert_eq!(server.send("POST", "/v1/completions", JSON, &body).status, 401);
    server.signal("-TERM");
    server.child.wait().unwrap();
    let log = log.join().unwrap();
    assert!(!log.contains("secret"), "the key is in the log: {log}");
    let lines: Vec<Value> = log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let requests: Vec<&Value> = lines.iter().filter(|line| line["message"] == "request").collect();
    assert_eq!(requests.len(), 2, "{log}");
    let first = requests.iter().find(|line| line["id"] == "mine-8").unwrap();
    assert_eq!((&first["status"], &first["method"]), (&json!(200), &json!("POST")), "{first}");
    assert_eq!((&first["path"], &first["caller"]), (&json!("/v1/completions"), &json!("key api-key")));
    assert!(first["bytes"].as_u64() > Some(10) && first["cut"] == false, "{first}");
    assert!(requests.iter().any(|line| line["status"] == 401), "{log}");
}

#[test]
fn settings_are_read_from_a_file_and_flags_win() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("domino.toml");
    let path = path.to_str().unwrap();
    fs::write(path, "api-key = \"of-the-file\"\nmax_queue = 0\nallow-origin = [\"https://chat.example\"]\n")
        .unwrap();
    let server = Server::start(&["--config", path]);
    let get = |key: &str| {
        let headers = format!("Authorization: Bearer {key}\r\nOrigin: https://chat.example\r\n");
        server.send("GET", "/v1/models", &headers, "").status
    };
    assert_eq!((get("of-the-file"), get("other")), (200, 401));
    drop(server);
    // Flags win.
    let server = Server::start(&["--config", path, "--api-key", "of-the-line"]);
    let status =
        |key: &str| server.send("GET", "/v1/models", &format!("Authorization: Bearer {key}\r\n"), "").status;
    assert_eq!((status("of-the-line"), status("of-the-file")), (200, 401));
    drop(server);
    for (text, said, hint) in [
        ("max_queu = 3\n", ":1:1: there is no flag --max-queu", "max-queue"),
        ("port = 8080\nmodle = \"a\"\n", ":2:1: there is no flag --modle", "model"),
        ("port = \"many\"\n", "invalid value", "--help"),
        ("port = 99999\n", "invalid value", "--help"),
        ("port = \n", ":1:", "TOML"),
        ("lenient-strict = \"yes\"\n", "true or false", "flag"),
        ("[server]\nport = 1\n", "there is no flag --server", ""),
    ] {
        fs::write(path, text).unwrap();
        let run = domino(&["serve", "--model", MODEL, "--config", path], b"");
        assert_eq!(run.code, Some(2), "{text}: {}", run.stderr);
        assert!(run.stderr.contains(said) && run.stderr.contains(hint), "{text}: {}", run.stderr);
    }
    let run = domino(&["serve", "--config", "no-such-file.toml", "--json"], b"");
    assert!(run.code == Some(2) && run.stderr.contains("no-such-file.toml"), "{}", run.stderr);
}

#[test]
fn a_server_of_the_network_wants_a_key() {
    let run = domino(&["serve", "--model", MODEL, "--host", "0.0.0.0", "--port", "0"], b"");
    assert_eq!(run.code, Some(2), "{}", run.stderr);
    assert!(run.stderr.contains("--allow-anonymous"), "{}", run.stderr);
    let run = domino(&["serve", "--model", MODEL, "--api-keys", "no-such-file"], b"");
    assert!(run.code == Some(2) && run.stderr.contains("no-such-file"), "{}", run.stderr);
}

/// Terminals that close and service managers send it.
#[test]
fn a_hangup_signal_reloads_the_keys_and_ends_nothing() {
    let keys = tempfile::NamedTempFile::new().unwrap();
    fs::write(keys.path(), "alice one\n").unwrap();
    for (flag, value) in [("--api-keys", keys.path().to_str().unwrap()), ("--api-key", "one")] {
        let (mut server, log) = logged(&[flag, value]);
        for _ in 0..3 {
            server.signal("-HUP");
            std::thread::sleep(Duration::from_millis(100));
            let models = server.send("GET", "/v1/models", "Authorization: Bearer one\r\n", "");
            assert_eq!((server.get("/ready").status, models.status), (200, 200));
        }
        server.signal("-TERM");
        assert_eq!(server.child.wait().unwrap().code(), Some(0));
        let log = log.join().unwrap();
        assert!(log.contains("SIGHUP"), "{log}");
    }
}

#[test]
fn a_cache_folder_that_cannot_be_written_is_logged() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let inside = file.path().join("cache");
    let (mut server, log) = logged(&["--cache-dir", inside.to_str().unwrap()]);
    assert_eq!(server.get("/health").status, 200);
    server.signal("-TERM");
    server.child.wait().unwrap();
    let log = log.join().unwrap();
    assert!(log.contains("cannot be written"), "{log}");
}

#[test]
fn metrics_count_requests_but_no_health_checks() {
    let server = Server::start(&[]);
    let before = server.metric("domino_completion_tokens_total");
    for _ in 0..3 {
        assert_eq!((server.get("/health").status, server.get("/ready").status), (200, 200));
        // A second after the last token a text is written for the answer.
        std::thread::sleep(Duration::from_millis(1100));
    }
    assert_eq!(server.metric("domino_completion_tokens_total"), before);
    assert_eq!(server.metric("domino_requests_started_total"), 0.0);
    for more in [json!({ "max_tokens": 2 }), json!({ "max_tokens": 2, "stream": true }), json!({ "n": 99 })] {
        server.complete(&more);
    }
    let body = completion(&super::endless()).to_string();
    let mut gone = server.open("POST", "/v1/completions", JSON, &body);
    gone.read_exact(&mut [0; 64]).unwrap();
    drop(gone);
    let begun = Instant::now();
    while server.metric("domino_requests_cancelled_total") < 1.0 {
        assert!(begun.elapsed() < LONG, "a request of a client who went away runs");
        std::thread::sleep(Duration::from_millis(50));
    }
    let of = |name: &str| server.metric(&format!("domino_requests_{name}"));
    assert_eq!((of("started_total"), of("finished_total"), of("failed_total")), (4.0, 2.0, 1.0));
    assert_eq!(of("running"), 0.0);
}

/// Passes each connection on to the next of these addresses, as a balancer does.
fn balancer(addresses: Vec<String>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let turn = AtomicUsize::new(0);
        for client in listener.incoming().flatten() {
            let to = &addresses[turn.fetch_add(1, Ordering::Relaxed) % addresses.len()];
            let server = TcpStream::connect(to).unwrap();
            for (mut from, mut to) in [
                (client.try_clone().unwrap(), server.try_clone().unwrap()),
                (server.try_clone().unwrap(), client.try_clone().unwrap()),
            ] {
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(std::net::Shutdown::Write);
                });
            }
        }
    });
    address
}

#[test]
fn replicas_behind_a_balancer_answer_as_one_server() {
    let replicas = [Server::start(&[]), Server::start(&[])];
    let through = balancer(replicas.iter().map(|server| server.address.clone()).collect());
    let post = |body: &Value| {
        let (body, mut stream) = (body.to_string(), TcpStream::connect(&through).unwrap());
        let length = body.len();
        write!(stream, "POST /v1/completions HTTP/1.0\r\n{JSON}Content-Length: {length}\r\n\r\n{body}")
            .unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        super::Answer::read(&said)
    };
    let body = completion(&json!({
        "grammar": { "type": "named", "value": "json" }, "temperature": 1, "seed": 4, "max_tokens": 24,
    }));
    let texts: Vec<Value> = (0..4).map(|_| post(&body).json()["choices"][0]["text"].clone()).collect();
    assert!(texts.iter().all(|text| *text == texts[0]), "{texts:?}");
    for server in &replicas {
        assert_eq!(server.metric("domino_requests_finished_total"), 2.0);
    }
}

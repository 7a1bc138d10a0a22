//! Servers that cannot start: each says why, and what to do about it.

use std::fs;

use super::MODEL;
use crate::support::program::{domino, last_line};

#[test]
fn a_server_that_cannot_start_says_why() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let folder = tempfile::tempdir().unwrap();
    for file in ["config.json", "tokenizer.json", "model.safetensors"] {
        fs::copy(format!("{MODEL}/{file}"), folder.path().join(file)).unwrap();
    }
    let bare = folder.path().to_str().unwrap();
    for (flags, what) in [
        (&["--port", &port, "--model", MODEL][..], "cannot listen on"),
        (&["--model", bare], "has no tokenizer_config.json"),
        (&["--model", "no-such-folder"], "there is no no-such-folder"),
        (&["--model", MODEL, "--grammar-dir", "no-such-folder"], "cannot read no-such-folder"),
        (&["--model", MODEL, "--port", "0", "--precision", "f16", "--kv-memory", "64"], "not with --device"),
        (&["--model", MODEL, "--api-key", ""], "the API key is empty"),
        (&["--model", MODEL, "--port", "0", "--allow-origin", "*"], "is no origin"),
        (&["--model", MODEL, "--kv-memory", "1"], "--kv-memory"),
        (&["--model", MODEL, "--grammar-speculate=off", "--s", "3"], "are for guesses"),
    ] {
        let run = domino(&[&["serve", "--json"], flags].concat(), b"");
        assert_eq!(run.code, Some(2), "{flags:?}: {}", run.stderr);
        assert!(run.stderr.contains(what) && run.stderr.contains("\nhint: "), "{}", run.stderr);
        assert!(last_line(&run)["error"].as_str().unwrap().contains(what));
    }
}

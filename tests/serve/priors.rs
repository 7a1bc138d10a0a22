//! Counts that guesses are made by: those that come with the model, and those that `--prior-dir` keeps.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::json;

use super::{JSON, MODEL, Server, completion, operators::logged};
use crate::support::program::domino;

/// Flags by which nothing but counts guesses, as many tokens as they can.
const COUNTS: [&str; 5] = ["--grammar-speculate=on", "--proposer", "paper", "--s", "8"];

fn flags<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&COUNTS[..], more].concat()
}

/// A text whose tokens are known once it was written, and how many of them were guessed.
fn written(server: &Server, key: &str) -> (String, u64) {
    let regex = "The quick brown fox jumps over the lazy dog (once|twice|again and again)\\.";
    let body = completion(&json!({ "grammar": { "type": "regex", "value": regex } })).to_string();
    let headers = format!("{JSON}Authorization: Bearer {key}\r\n");
    let answer = server.send("POST", "/v1/completions", &headers, &body);
    assert_eq!(answer.status, 200, "{}", answer.body);
    let answer = answer.json();
    let text = answer["choices"][0]["text"].as_str().unwrap().to_owned();
    (text, answer["usage"]["domino"]["accepted"].as_u64().unwrap())
}

fn end(mut server: Server) {
    server.signal("-TERM");
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}

/// The files of counts below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(self::files(&path)),
            false if path.extension().is_some_and(|end| end == "prior") => files.push(path),
            false => {}
        }
    }
    files.sort();
    files
}

#[test]
fn counts_of_clients_are_kept_apart_and_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let (keys, kept) = (folder.path().join("keys"), folder.path().join("kept"));
    fs::write(&keys, "alice one\nbob two\n").unwrap();
    let (keys, kept) = (keys.to_str().unwrap(), kept.to_str().unwrap());
    let start = || Server::start(&flags(&["--api-keys", keys, "--prior-dir", kept]));
    let server = start();
    let (text, first) = written(&server, "one");
    let (again, second) = written(&server, "one");
    assert_eq!(again, text);
    assert!(second > first, "a text teaches nothing: {first} {second}");
    end(server);
    let of_alice = files(Path::new(kept));
    assert_eq!(of_alice.len(), 1, "{of_alice:?}");
    let path = of_alice[0].strip_prefix(kept).unwrap().to_str().unwrap().to_owned();
    assert!(path.starts_with("key_alice-") && path.contains("/domino-small_paper-"), "{path}");
    let readme = fs::read_to_string(Path::new(kept).join("README.txt")).unwrap();
    assert!(readme.contains("parts of these texts"), "{readme}");
    let server = start();
    assert_eq!(written(&server, "one"), (text.clone(), second));
    // Another client begins as the first one did.
    assert_eq!(written(&server, "two"), (text.clone(), first));
    end(server);
    assert_eq!(files(Path::new(kept)).len(), 2);
    let server = start();
    assert_eq!(written(&server, "two"), (text, second));
    end(server);
}

#[test]
fn damaged_and_foreign_priors_are_logged_and_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().to_str().unwrap();
    let start = || logged(&flags(&["--prior-dir", kept, "--share-caches"]));
    let (server, _log) = start();
    let (text, first) = written(&server, "");
    end(server);
    let whole = files(folder.path()).remove(0);
    let client = whole.strip_prefix(folder.path()).unwrap().components().next().unwrap().as_os_str();
    assert!(client.to_str().unwrap().starts_with("shared-"), "{whole:?}");
    let content = fs::read(&whole).unwrap();
    fs::write(folder.path().join("notes.txt"), "mine").unwrap();
    for damaged in [&content[..content.len() / 2], b"no counts", b""] {
        fs::write(&whole, damaged).unwrap();
        let (server, log) = start();
        assert_eq!(written(&server, ""), (text.clone(), first));
        end(server);
        let log = log.join().unwrap();
        let name = whole.file_name().unwrap().to_str().unwrap();
        assert!(log.contains(name) && log.contains("it is ignored"), "{log}");
        assert!(log.contains("notes.txt"), "{log}");
        // The server replaces its own file and leaves the stranger's alone.
        assert!(fs::read(&whole).unwrap().len() > content.len() / 2);
        assert_eq!(fs::read_to_string(folder.path().join("notes.txt")).unwrap(), "mine");
    }
    let (server, _log) = start();
    assert!(written(&server, "").1 > first);
}

#[test]
fn wrong_folders_and_flags_about_priors_are_refused() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let inside = file.path().join("kept");
    let inside = inside.to_str().unwrap();
    for (flags, said) in [
        (&["--prior-dir", inside][..], "files cannot be made in"),
        (&["--prior-dir", "kept", "--grammar-speculate=off"], "are for guesses"),
        (&["--prior-dir", "kept", "--host", "0.0.0.0", "--allow-anonymous"], "apart by their keys"),
    ] {
        let run = domino(&[&["serve", "--model", MODEL, "--port", "0"], flags].concat(), b"");
        assert_eq!(run.code, Some(2), "{flags:?}: {}", run.stderr);
        assert!(run.stderr.contains(said) && run.stderr.contains("\nhint: "), "{}", run.stderr);
    }
}

/// Priors are found in a model's folder and, for grammars whose names have folders, in folders within one.
#[test]
fn priors_come_with_the_model_or_in_nested_folders() {
    let (other, nested) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let copy = |name: &str, to: PathBuf| fs::copy(format!("{MODEL}/priors/{name}.prior"), to).unwrap();
    copy("c", other.path().join("c.prior"));
    fs::create_dir(nested.path().join("paper")).unwrap();
    copy("rpg", nested.path().join("paper/rpg.prior"));
    let accepted = |flags: &[&str], grammar: &str| -> u64 {
        let server = Server::start(flags);
        let body = json!({ "grammar": { "type": "named", "value": grammar }, "max_tokens": 24 });
        let usage = server.complete(&body).json()["usage"].clone();
        usage["domino"]["accepted"].as_u64().unwrap_or_else(|| panic!("{usage}"))
    };
    let without = flags(&["--prior", other.path().to_str().unwrap()]);
    let within = flags(&["--prior", nested.path().to_str().unwrap()]);
    for (with, grammar) in [(&COUNTS[..], "json"), (&within[..], "rpg")] {
        let (found, none) = (accepted(with, grammar), accepted(&without, grammar));
        assert!(found > none, "{grammar}: {found} with its prior and {none} without");
    }
}

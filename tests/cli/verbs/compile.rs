//! `domino compile` and `--trees` as a shell sees them.

use std::fs;

use crate::support::program::{domino, last_line};

const TOKENIZER: &str = concat!(env!("DOMINO_ROOT"), "/models/domino-small");

#[test]
fn a_file_of_trees_is_made_kept_and_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("json.trees");
    let path = file.to_str().unwrap();
    let compile = |grammar: &str, more: &[&str]| {
        let arguments = ["compile", "--json", "--grammar", grammar, "--tokenizer", TOKENIZER, "--out", path];
        let run = domino(&[&arguments[..], more].concat(), b"");
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        last_line(&run)
    };
    let first = compile("json", &[]);
    assert_eq!((&first["made"], &first["replaced_because"]), (&true.into(), &serde_json::Value::Null));
    let whole = fs::read(&file).unwrap();
    assert_eq!(first["bytes"], whole.len());
    assert_eq!(compile("json", &[])["made"], false);
    assert_eq!(compile("json", &["--force"])["made"], true);
    assert!(fs::read(&file).unwrap() == whole, "trees are not the same every time");

    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 4;
    for (content, reason) in [
        (&damaged[..], "damaged"),
        (&whole[..whole.len() - 1], "ends too early"),
        (b"{}", "not a file written by domino"),
    ] {
        fs::write(&file, content).unwrap();
        let again = compile("json", &[]);
        assert!(again["replaced_because"].as_str().unwrap().contains(reason), "{again}");
        assert!(fs::read(&file).unwrap() == whole);
    }
    let other = compile("c", &[]);
    assert!(other["replaced_because"].as_str().unwrap().contains("another grammar"), "{other}");
}

#[test]
fn masks_with_trees_are_masks_without() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("json.trees");
    let path = file.to_str().unwrap();
    let mask = |more: &[&str]| {
        let arguments =
            ["mask", "--json", "--grammar", "json", "--tokenizer", TOKENIZER, "--text", "{\"a\": "];
        domino(&[&arguments[..], more].concat(), b"")
    };
    let missing = mask(&["--trees", path]);
    assert_eq!(missing.code, Some(2));
    assert!(
        missing.stderr.contains("no such file") && missing.stderr.contains("domino compile"),
        "{}",
        missing.stderr
    );
    let arguments = ["compile", "--grammar", "json", "--tokenizer", TOKENIZER, "--out", path];
    let run = domino(&arguments, b"");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let whole = fs::read(&file).unwrap();
    let plain = last_line(&mask(&[]));
    assert_eq!(last_line(&mask(&["--trees", path])), plain);
    // A damaged file is reported and made again, and the answer is the same.
    fs::write(&file, &whole[..100]).unwrap();
    let run = mask(&["--trees", path]);
    assert!(run.stderr.contains("ends too early"), "{}", run.stderr);
    assert_eq!(last_line(&run), plain);
    assert!(fs::read(&file).unwrap() == whole);
}

#[test]
fn a_file_that_cannot_be_written_is_an_error() {
    let run = domino(
        &["compile", "--grammar", "json", "--tokenizer", TOKENIZER, "--out", "/nowhere/at/all.trees"],
        b"",
    );
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("cannot write /nowhere/at/all.trees"), "{}", run.stderr);
}

//! Warnings about regular expressions that other dialects read otherwise, and help on our dialect.

use serde_json::{Value, json};

use crate::support::{
    program::{Run, domino, last_line},
    random_model::write_model,
};

/// An expression that Python and PCRE read otherwise; the texts are `aa`, `aaa`, and so on.
const WARNED: &str = "a*+aa";
const BYTE_LEVEL: &str = concat!(env!("DOMINO_ROOT"), "/tests/fixtures/byte_level.json");

fn is_told(run: &Run) {
    assert!(
        run.stderr.starts_with("warning: --regex: this `+` repeats a repeat; Python and PCRE read"),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("\n --> 1:2\n1 | a*+aa\n  |  ^^\nhint: "), "{}", run.stderr);
}

fn is_listed(object: &Value) {
    let warning = &object["grammar_warnings"][0];
    assert_eq!(warning["kind"], json!("possessive"), "{object}");
    assert_eq!((&warning["line"], &warning["column"]), (&json!(1), &json!(2)), "{object}");
    assert!(warning["message"].is_string() && warning["hint"].is_string(), "{object}");
    assert_eq!(object["grammar_warnings"].as_array().map(Vec::len), Some(1));
}

#[test]
fn check_mask_and_inspect_warn_of_other_dialects() {
    let check = domino(&["check", "-r", WARNED, "-"], b"aa");
    assert_eq!(check.code, Some(0));
    is_told(&check);
    is_listed(&last_line(&domino(&["check", "--json", "-r", WARNED, "-"], b"aa")));
    let refused = domino(&["check", "--json", "-r", WARNED, "-"], b"ab");
    assert_eq!(refused.code, Some(1));
    is_listed(&last_line(&refused));

    let mask = ["mask", "-t", BYTE_LEVEL, "-r", WARNED, "--text"];
    is_told(&domino(&[&mask[..], &["aa"]].concat(), b""));
    is_listed(&last_line(&domino(&[&mask[..], &["aa", "--json"]].concat(), b"")));
    is_listed(&last_line(&domino(&[&mask[..], &["b", "--json"]].concat(), b"")));

    for stage in [&[][..], &["rules"], &["terminals"]] {
        let inspect = domino(&[&["inspect", "--json", "-r", WARNED][..], stage].concat(), b"");
        is_told(&inspect);
        is_listed(&last_line(&inspect));
    }
    let row = json!({ "id": 1, "syntax": "regex", "grammar": WARNED, "text": "aa" }).to_string();
    is_listed(&last_line(&domino(&["check", "--batch"], row.as_bytes())));
}

#[test]
fn generate_warns_of_other_dialects() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    let generate = ["generate", "--model", folder.path().to_str().unwrap(), "-n", "3", "--json"];
    let one = domino(&[&generate[..], &["-p", "x", "-r", WARNED]].concat(), b"");
    is_told(&one);
    is_listed(&last_line(&one));
    let row = json!({ "prompt": "x", "regex": WARNED }).to_string();
    is_listed(&last_line(&domino(&[&generate[..5], &["--batch", "-"]].concat(), row.as_bytes())));
}

#[test]
fn expressions_that_dialects_read_alike_give_no_warning() {
    let check = domino(&["check", "--json", "-r", "[a[b]*", "-"], b"[a[");
    assert_eq!((check.code, &*check.stderr), (Some(0), ""));
    assert!(last_line(&check).get("grammar_warnings").is_none());
    let row = json!({ "id": 1, "syntax": "regex", "grammar": "[[]", "text": "[" }).to_string();
    let batch = domino(&["check", "--batch"], row.as_bytes());
    assert_eq!(batch.stdout, "{\"id\":1,\"accepted\":true,\"error\":null}\n");
}

/// Expressions that the help calls refused are refused, and its others are taken.
#[test]
fn the_help_names_the_dialect() {
    let help = domino(&["check", "--help"], b"").stdout;
    for words in ["Rust's `regex` crate", "Python", "PCRE", "ECMAScript", "always ASCII", "docs/regex.md"] {
        assert!(help.contains(words), "{words} is not in\n{help}");
    }
    let refused = help.lines().find(|line| line.contains("refused by name")).expect("a line");
    for pattern in refused.split("refused by name").next().unwrap().split_whitespace() {
        assert_eq!(domino(&["check", "-r", pattern, "-"], b"").code, Some(2), "{pattern}");
    }
    for start in ["[a[b]", "[\\w&&[^\\d]]", "a*+", "\\0", "(?P<TEXT_UNTIL>"] {
        let line = help.lines().find(|line| line.trim_start().starts_with(start)).expect(start);
        let patterns = line.trim_start().split("  ").next().unwrap();
        for pattern in patterns.split_whitespace() {
            assert_ne!(domino(&["check", "-r", pattern, "-"], b"").code, Some(2), "{pattern}");
        }
    }
}

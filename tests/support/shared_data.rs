//! Test data that is not part of the repository: its place, and the grammars held against it.
//!
//! It lies in the folder that `DOMINO_SHARED` names, or else in `shared` beside the repository. A test whose
//! data is missing fails if the folder was named; otherwise it says so and passes.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use serde::{Deserialize, de::DeserializeOwned};

use crate::{grammar::corpus::grammar, support::decider::Decider};

/// The file or folder `path` of the shared data; `None` after a message if it is missing.
pub(crate) fn shared(path: &str) -> Option<PathBuf> {
    let named = std::env::var_os("DOMINO_SHARED").map(PathBuf::from);
    let (must, root) = match named {
        Some(root) => (true, root),
        None => (false, Path::new(env!("DOMINO_ROOT")).join("../shared")),
    };
    let file = root.join(path);
    if file.exists() {
        return Some(file);
    }
    assert!(!must, "{} is not there, and DOMINO_SHARED says that it is", file.display());
    // The test harness would swallow `eprintln!` of a test that passes.
    let message =
        format!("SKIPPED: {} is not there (set DOMINO_SHARED to the folder with the data)\n", file.display());
    io::stderr().write_all(message.as_bytes()).expect("standard error");
    None
}

/// Reads a file with one JSON value a line.
fn rows<T: DeserializeOwned>(file: &Path) -> Vec<T> {
    let text = fs::read_to_string(file).expect("the file can be read");
    text.lines().map(|line| serde_json::from_str(line).expect("a row")).collect()
}

/// A document with the verdict that a reader must give.
#[derive(Debug, Deserialize)]
struct SuiteRow {
    name: String,
    expect: Expect,
    text: Option<String>,
    /// The bytes, if they are not UTF-8.
    b64: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Expect {
    Accept,
    Reject,
    /// The reader may decide either way.
    Either,
}

impl SuiteRow {
    fn bytes(&self) -> Vec<u8> {
        match (&self.text, &self.b64) {
            (Some(text), None) => text.clone().into_bytes(),
            (None, Some(b64)) => base64(b64),
            _ => panic!("{}: either text or b64", self.name),
        }
    }
}

/// Decodes padded base64.
fn base64(text: &str) -> Vec<u8> {
    let digit = |c: u8| match c {
        b'A'..=b'Z' => u32::from(c - b'A'),
        b'a'..=b'z' => u32::from(c - b'a') + 26,
        b'0'..=b'9' => u32::from(c - b'0') + 52,
        b'+' => 62,
        b'/' => 63,
        _ => panic!("not base64: {text}"),
    };
    let digits: Vec<u32> = text.trim_end_matches('=').bytes().map(digit).collect();
    let group = |group: &[u32]| {
        let bits = group.iter().enumerate().fold(0, |bits, (index, digit)| bits | digit << (18 - 6 * index));
        bits.to_be_bytes()[1..group.len()].to_vec()
    };
    digits.chunks(4).flat_map(group).collect()
}

fn check_json_suite<D: Decider>() {
    let Some(file) = shared("data/json/jsontestsuite.jsonl") else { return };
    let mut decider = D::of(&grammar("rfc8259"));
    let rows: Vec<SuiteRow> = rows(&file);
    assert!(rows.len() > 300);
    let mut wrong = Vec::new();
    for row in &rows {
        let bytes = row.bytes();
        let accepted = decider.accepts(&bytes);
        let want = match (row.expect, std::str::from_utf8(&bytes)) {
            (_, Err(_)) => false,
            (Expect::Accept, _) => true,
            (Expect::Reject, _) => false,
            // The grammar of the RFC has no numbers too large and no surrogates too lonely, and no byte order
            // mark.
            (Expect::Either, Ok(text)) => !text.starts_with('\u{FEFF}'),
        };
        if accepted != want {
            wrong.push(format!("{}: {:?}, accepted: {accepted}", row.name, row.expect));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn check_real_json<D: Decider>() {
    #[derive(Deserialize)]
    struct Document {
        id: String,
        text: String,
    }
    let Some(file) = shared("data/json/realworld.jsonl") else { return };
    let mut decider = D::of(&grammar("rfc8259"));
    let documents: Vec<Document> = rows(&file);
    assert!(documents.len() > 100);
    let mut wrong: Vec<String> = Vec::new();
    for Document { id, text } in &documents {
        if !decider.accepts(text.as_bytes()) {
            wrong.push(format!("{id} is not accepted"));
        }
        // One byte too few or one bracket too many.
        let trimmed = text.trim_end();
        if decider.accepts(&trimmed.as_bytes()[..trimmed.len() - 1])
            || decider.accepts(format!("{text}]").as_bytes())
        {
            wrong.push(format!("{id} is accepted cut or with a bracket too many"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The paper's grammars: our name and the reference's.
const PAPER: [(&str, &str); 5] = [
    ("paper/json", "json_basic"),
    ("paper/gsm8k", "gsm8k"),
    ("paper/c", "c_simple"),
    ("paper/xml_person", "xml_person"),
    ("paper/rpg", "rpg_template"),
];

/// The reference texts of a grammar.
fn reference_texts(reference: &str) -> Option<Vec<String>> {
    let file = shared(&format!("peers/texts/{reference}.txt"))?;
    let text = fs::read_to_string(file).expect("texts");
    let text = text.strip_suffix('\n').unwrap_or(&text);
    Some(text.split("\n%%%\n").map(str::to_owned).collect())
}

fn check_paper_texts<D: Decider>() {
    for (name, reference) in PAPER {
        let Some(texts) = reference_texts(reference) else { continue };
        let mut decider = D::of(&grammar(name));
        for text in texts {
            assert!(decider.accepts(text.as_bytes()), "{name}: {text}");
        }
    }
}

mod by_the_engine {
    use super::*;
    use crate::support::decider::Engine;

    #[test]
    fn the_json_test_suite_is_decided_right() {
        check_json_suite::<Engine>();
    }

    #[test]
    fn real_json_documents_are_accepted() {
        check_real_json::<Engine>();
    }

    #[test]
    fn texts_of_the_papers_grammars_are_accepted() {
        check_paper_texts::<Engine>();
    }
}

mod by_the_oracle {
    use domino::{Grammar, Limits, Syntax, oracle::Oracle};

    use super::*;

    #[test]
    fn the_json_test_suite_is_decided_right() {
        check_json_suite::<Oracle>();
    }

    #[test]
    fn real_json_documents_are_accepted() {
        check_real_json::<Oracle>();
    }

    #[test]
    fn texts_of_the_papers_grammars_are_accepted() {
        check_paper_texts::<Oracle>();
    }

    /// Bytes that may follow a text, or a text with a byte changed, are those of the reference.
    #[test]
    fn paper_grammars_have_the_reference_language() {
        for (name, reference) in PAPER {
            let Some(texts) = reference_texts(reference) else { continue };
            let Some(file) = shared(&format!("peers/grammars/{reference}.gbnf")) else { continue };
            let text = fs::read_to_string(file).expect("a grammar");
            let want = Grammar::parse(Syntax::Gbnf, &text, &Limits::default()).expect("the reference reads");
            let (ours, theirs) = (Oracle::of(&grammar(name)), Oracle::of(&want));
            for text in texts.iter().take(3) {
                let (mut ours, mut theirs) = (ours.session(), theirs.session());
                for (at, &byte) in text.as_bytes().iter().enumerate() {
                    for other in 0..=u8::MAX {
                        let (a, b) = (ours.push(other), theirs.push(other));
                        assert_eq!(
                            a,
                            b,
                            "{name}: byte {other} after {:?}",
                            &text.as_bytes()[..at].escape_ascii()
                        );
                        if a {
                            assert_eq!(ours.is_complete(), theirs.is_complete(), "{name}");
                            // A detour: one byte changed, then on as before for a while.
                            let rest = &text.as_bytes()[at + usize::from(other % 2)..];
                            let detour = rest.iter().take(4).take_while(|&&byte| {
                                let (a, b) = (ours.push(byte), theirs.push(byte));
                                assert_eq!(a, b, "{name}: detour by {other} at {at} of {text}");
                                a
                            });
                            for _ in 0..=detour.count() {
                                ours.pop();
                                theirs.pop();
                            }
                        }
                    }
                    assert!(ours.push(byte) && theirs.push(byte), "{name}: {text}");
                }
                assert!(ours.is_complete() && theirs.is_complete(), "{name}: {text}");
            }
        }
    }
}

//! `domino trace`: its file, its masks held against expected ones, and its refusals.

use std::{fs, path::Path};

use domino::{
    Grammar, Limits, Syntax, TokenId, Vocabulary,
    oracle::{Oracle, SortedTokens},
};
use serde_json::{Value, json};

use crate::{
    promises::masks::real::step,
    support::program::{Run, domino_in, last_line, program},
};

const MODEL: &str = concat!(env!("DOMINO_ROOT"), "/models/domino-small");
const GRAMMAR: &str = r#"root ::= "{" pair (", " pair)* "}"   pair ::= [a-z]+ ": " [0-9]+"#;
const TEXTS: [&str; 3] = ["{a: 1}", "{age: 34, height: 180}", "{the: 0, thing: 123456}"];
const TIMES: [&str; 3] = ["mask_ns", "mask_first_ns", "pop"];

fn vocabulary() -> Vocabulary {
    Vocabulary::from_tokenizer_file(MODEL).unwrap()
}

/// Cuts a text into tokens, the longest first. They are not the model's own tokens, but tokens of the text.
fn tokens(vocabulary: &Vocabulary, text: &str) -> Vec<TokenId> {
    let mut tokens = Vec::new();
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        let fits = vocabulary.text_tokens().filter(|(_, bytes)| rest.starts_with(bytes));
        let (token, bytes) = fits.max_by_key(|(_, bytes)| bytes.len()).unwrap();
        tokens.push(token);
        rest = &rest[bytes.len()..];
    }
    tokens
}

fn trace(vocabulary: &Vocabulary, text: &str) -> Value {
    let ids: Vec<u32> = tokens(vocabulary, text).iter().map(|token| token.raw()).collect();
    json!({ "text": text, "tokens": ids })
}

fn traces(vocabulary: &Vocabulary, texts: &[&str]) -> Value {
    let traces: Vec<Value> = texts.iter().map(|text| trace(vocabulary, text)).collect();
    json!({ "grammar": "pairs", "vocab": "small", "eos": 2, "traces": traces })
}

/// Masks by the oracle.
fn expected(vocabulary: &Vocabulary, texts: &[&str]) -> Value {
    let sorted = SortedTokens::new(vocabulary);
    let oracle = Oracle::new(&Grammar::parse(Syntax::Gbnf, GRAMMAR, &Limits::default()).unwrap()).unwrap();
    let masks = texts.iter().map(|text| {
        let mut session = oracle.session();
        let mut masks = vec![step(&session.mask(&sorted), vocabulary)];
        for token in tokens(vocabulary, text) {
            assert!(session.push_all(vocabulary.bytes(token).unwrap()));
            masks.push(step(&session.mask(&sorted), vocabulary));
        }
        json!({
            "pop": masks.iter().map(|mask| mask.pop).collect::<Vec<_>>(),
            "hash": masks.iter().map(|mask| &mask.hash).collect::<Vec<_>>(),
            "eos": masks.iter().map(|mask| u8::from(mask.eos)).collect::<Vec<_>>(),
        })
    });
    json!({ "traces": masks.collect::<Vec<_>>() })
}

/// A folder with the grammar, the traces of `texts` and the masks expected of them.
fn folder(texts: &[&str]) -> tempfile::TempDir {
    let (folder, vocabulary) = (tempfile::tempdir().unwrap(), vocabulary());
    let write = |name: &str, text: String| fs::write(folder.path().join(name), text).unwrap();
    write("g.gbnf", GRAMMAR.to_owned());
    write("traces.json", traces(&vocabulary, texts).to_string());
    write("expected.json", expected(&vocabulary, texts).to_string());
    folder
}

fn run(folder: &Path, arguments: &[&str]) -> Run {
    let all = ["trace", "--grammar", "g.gbnf", "--tokenizer", MODEL];
    domino_in(folder, &[&all, arguments].concat(), b"")
}

fn read(file: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

fn length(value: &Value) -> usize {
    value.as_array().unwrap().len()
}

#[test]
fn a_cell_has_every_step() {
    let folder = folder(&TEXTS);
    let arguments = "traces.json --out cell.json --expected expected.json -n 3 --fresh 2 --json";
    let run = run(folder.path(), &arguments.split(' ').collect::<Vec<_>>());
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stderr.contains("every mask is as expected"), "{}", run.stderr);
    let cell = read(&folder.path().join("cell.json"));
    assert_eq!((&cell["format"], &cell["engine"]), (&json!("peers-cell-1"), &json!("domino")));
    assert_eq!((&cell["grammar"], &cell["vocab"]), (&json!("pairs"), &json!("small")));
    assert_eq!((&cell["passes"], &cell["extra"]["interrupted"]), (&json!(3), &json!(false)));
    assert_eq!((length(&cell["extra"]["compile_ns"]), &cell["extra"]["fresh"]), (2 * TEXTS.len(), &json!(2)));
    assert!(cell["vocab_ms"].as_f64().unwrap() > 0.0 && cell["compile_ms"].as_f64().unwrap() > 0.0);
    if cfg!(target_os = "linux") {
        let rss = |moment: &str| cell["rss_kb"][moment].as_u64().unwrap();
        assert!(rss("peak") >= rss("end") && rss("vocab") > rss("start"), "{}", cell["rss_kb"]);
    }
    let (vocabulary, expected) = (vocabulary(), read(&folder.path().join("expected.json")));
    assert_eq!(length(&cell["traces"]), TEXTS.len());
    for (number, text) in TEXTS.iter().enumerate() {
        let (row, n) = (&cell["traces"][number], tokens(&vocabulary, text).len());
        assert_eq!((&row["tokens"], &row["rejected_at"]), (&json!(n), &Value::Null));
        for masks in ["mask_first_ns", "mask_ns", "pop", "hash", "eos"] {
            assert_eq!(length(&row[masks]), n + 1, "{masks}");
        }
        for steps in ["commit_first_ns", "commit_ns", "check_commit_ns"] {
            assert_eq!(length(&row[steps]), n, "{steps}");
        }
        assert_eq!(length(&cell["extra"]["allows_ns"][number]), n);
        for masks in ["pop", "hash", "eos"] {
            assert_eq!(row[masks], expected["traces"][number][masks]);
        }
        assert!(row["start_ns"].is_u64() && row["start_first_ns"].is_u64());
    }
    let summary = last_line(&run);
    assert_eq!((&summary["as_expected"], &summary["traces"]), (&json!(true), &json!(TEXTS.len())));
    for times in [
        "mask_us",
        "mask_first_us",
        "commit_us",
        "allows_us",
        "check_commit_us",
        "compile_us",
        "text_to_mask_us",
    ] {
        let spread = &summary[times];
        assert!(spread["max"].as_f64() >= spread["p99"].as_f64(), "{summary}");
        assert!(spread["p99"].as_f64() >= spread["p50"].as_f64(), "{summary}");
    }
    // Nothing else was left in the folder.
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4);
}

#[test]
fn masks_are_the_same_however_a_grammar_is_compiled() {
    let folder = folder(&TEXTS);
    for (trees, tables) in [("lazy", "kept"), ("eager", "cold"), ("eager", "kept"), ("explored", "cold")] {
        let ways = ["--trees", trees, "--tables", tables];
        let arguments = ["traces.json", "--out", "cell.json", "--expected", "expected.json", "-n", "2"];
        let run = run(folder.path(), &[&arguments[..], &ways].concat());
        assert_eq!(run.code, Some(0), "{trees}, {tables}: {}", run.stderr);
        let extra = &read(&folder.path().join("cell.json"))["extra"];
        assert_eq!((&extra["trees"], &extra["tables"]), (&json!(trees), &json!(tables)));
    }
}

#[test]
fn a_wrong_mask_is_a_failure() {
    let folder = folder(&TEXTS);
    let file = folder.path().join("expected.json");
    let mut expected = read(&file);
    expected["traces"][1]["hash"][2] = json!("0123456789abcdef");
    fs::write(&file, expected.to_string()).unwrap();
    let arguments = ["traces.json", "--out", "cell.json", "--expected", "expected.json", "--json"];
    let run = run(folder.path(), &arguments);
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    assert!(
        run.stderr.contains("trace 1, step 2") && run.stderr.contains("0123456789abcdef"),
        "{}",
        run.stderr
    );
    assert!(last_line(&run)["error"].is_string());
    assert!(!folder.path().join("cell.json").exists(), "wrong results have no times");
}

#[test]
fn a_text_outside_the_language_ends_where_it_leaves_it() {
    let folder = folder(&TEXTS);
    let vocabulary = vocabulary();
    fs::write(folder.path().join("traces.json"), traces(&vocabulary, &["{a: 1}", "{a: b}"]).to_string())
        .unwrap();
    let run = run(folder.path(), &["traces.json", "--out", "cell.json", "--passes", "2"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stderr.contains("excludes a token") && run.stdout.is_empty(), "{}", run.stderr);
    let row = &read(&folder.path().join("cell.json"))["traces"][1];
    let at = usize::try_from(row["rejected_at"].as_u64().unwrap()).unwrap();
    assert!(tokens(&vocabulary, "{a: b}").len() > at);
    assert!(TIMES.iter().all(|times| length(&row[times]) == at + 1), "{row}");
    assert_eq!((length(&row["commit_ns"]), length(&row["check_commit_ns"])), (at, at));
}

#[test]
fn one_pass_has_no_warm_times() {
    let folder = folder(&TEXTS);
    let run =
        run(folder.path(), &["traces.json", "--out", "cell.json", "--passes", "1", "-k", "0", "--json"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let cell = read(&folder.path().join("cell.json"));
    assert_eq!((&cell["passes"], &cell["extra"]["lookahead"]), (&json!(1), &json!(0)));
    assert_eq!(length(&cell["traces"][0]["mask_ns"]), 0);
    assert!(last_line(&run)["mask_us"].is_null());
}

#[test]
fn bad_input_ends_with_2_and_a_reason() {
    let folder = folder(&["{a: 1}"]);
    let path = folder.path();
    let good = read(&path.join("traces.json"));
    let with = |change: &dyn Fn(&mut Value)| {
        let mut traces = good.clone();
        change(&mut traces);
        traces.to_string()
    };
    for (traces, says) in [
        ("not json".to_owned(), "not a file of traces"),
        ("{}".to_owned(), "missing field"),
        (with(&|file| file["traces"] = json!([])), "no trace"),
        (with(&|file| file["traces"][0]["tokens"][0] = json!(-1)), "not a file of traces"),
        (with(&|file| file["traces"][0]["tokens"][0] = json!(32_000)), "no text token of the 32000"),
        (with(&|file| file["traces"][0]["tokens"][0] = json!(2)), "special token </s>"),
        (with(&|file| file["traces"][0]["text"] = json!("{a: 2}")), "from byte 4 on"),
        (with(&|file| file["eos"] = json!(7)), "the traces end with token 7"),
    ] {
        fs::write(path.join("bad.json"), &traces).unwrap();
        fs::write(path.join("cell.json"), "before").unwrap();
        let run = run(path, &["bad.json", "--out", "cell.json", "--json"]);
        assert_eq!(run.code, Some(2), "{traces}: {}", run.stderr);
        assert!(run.stderr.contains(says), "{says}: {}", run.stderr);
        assert!(last_line(&run)["error"].is_string());
        assert_eq!(fs::read_to_string(path.join("cell.json")).unwrap(), "before");
    }
    fs::write(path.join("bad.json"), r#"{"traces": []}"#).unwrap();
    for arguments in [
        &["missing.json"][..],
        &["traces.json", "--out", "no-such-folder/cell.json"],
        &["traces.json", "--out", "."],
        &["traces.json", "--expected", "missing.json"],
        &["traces.json", "--expected", "traces.json"],
        &["traces.json", "--expected", "bad.json"],
        &["traces.json", "--passes", "0"],
        &["-", "--expected", "-"],
        &[],
    ] {
        let run = run(path, arguments);
        assert_eq!(run.code, Some(2), "{arguments:?}: {}", run.stderr);
    }
    let other = domino_in(path, &["trace", "-g", "g.gbnf", "-t", "no-such-file", "traces.json"], b"");
    assert_eq!(other.code, Some(2), "{}", other.stderr);
}

/// The first Ctrl-C ends the measurements, and those made so far are written.
#[cfg(unix)]
#[test]
fn an_interrupted_run_writes_what_it_has() {
    use std::{
        io::{BufRead, BufReader, Read},
        process::{Command, Stdio},
    };

    let long = format!("{{{}}}", vec!["age: 34"; 200].join(", "));
    let folder = folder(&["{a: 1}"]);
    fs::write(folder.path().join("traces.json"), traces(&vocabulary(), &[&long, &long]).to_string()).unwrap();
    let mut child = program()
        .args([
            "trace",
            "-g",
            "g.gbnf",
            "-t",
            MODEL,
            "traces.json",
            "-o",
            "cell.json",
            "-n",
            "10000",
            "--json",
        ])
        .current_dir(folder.path())
        .env("RUST_LOG", "domino=debug")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The second text's grammar is compiled after the first text has a pass behind it.
    let mut log = BufReader::new(child.stderr.take().unwrap());
    let mut compiled = 0;
    while compiled < 2 {
        let mut line = String::new();
        assert!(log.read_line(&mut line).unwrap() > 0, "it ended");
        compiled += usize::from(line.contains("lowered a grammar"));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let mut rest = String::new();
    log.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest}");
    assert!(rest.contains("interrupted"), "{rest}");
    let cell = read(&folder.path().join("cell.json"));
    assert_eq!(cell["extra"]["interrupted"], true);
    assert!(cell["passes"].as_u64().unwrap() < 10_000);
    assert!((1..=2).contains(&length(&cell["traces"])));
    assert!(length(&cell["traces"][0]["mask_first_ns"]) > 600);
}

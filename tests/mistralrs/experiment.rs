//! `domino-mistralrs experiment` with mistral.rs among the methods, on the shipped model.

use serde_json::Value;

use crate::program::domino;

use super::engine::{alone, model};

const DEFINITION: &str = r#"
name = "other"
models = ["MODEL"]
grammars = [{ name = "pets", file = "pets.regex" }]
methods = [
    "unconstrained", "masks", "mistralrs", "mistralrs-llguidance", "mistralrs-masks", "mistralrs-drafts",
]
prompts = ["Pets: "]
temperatures = [0, 1]
seeds = { from = 0, count = 2 }
max_tokens = 48
warm_ups = 2
warm_up_prompts = ["Animals: "]
"#;

fn experiment(regex: &str, file: &str) -> (tempfile::TempDir, crate::program::Run) {
    let folder = tempfile::tempdir().unwrap();
    let definition = DEFINITION.replace("MODEL", &model().display().to_string()).replace("pets.regex", file);
    std::fs::write(folder.path().join("d.toml"), definition).unwrap();
    std::fs::write(folder.path().join(file), regex).unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let run = domino(&["experiment", &path("d.toml"), "--out", &path("out"), "--json"], b"");
    (folder, run)
}

#[test]
fn methods_of_mistralrs_write_rows_beside_ours() {
    let _alone = alone();
    let regex = "(a|the) (cat|dog) sat on the mat, and looked at (a|the) (bird|fish)";
    let (folder, run) = experiment(regex, "pets.regex");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let text = std::fs::read_to_string(folder.path().join("out/rows.jsonl")).unwrap();
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 4 * 6);
    let of = |method: &str| {
        let mut found: Vec<_> = rows.iter().filter(|row| row["method"] == method).collect();
        found.sort_by_key(|row| (row["temperature"].to_string(), row["seed"].as_u64()));
        found
    };
    for row in &rows {
        let (seconds, first) = (row["seconds"].as_f64().unwrap(), row["first_seconds"].as_f64().unwrap());
        assert!(0.0 < first && first <= seconds && row["nll"].as_f64().unwrap() > 0.0, "{row}");
        let free = row["k"].is_null();
        assert!(free || (row["well_formed"] == true && row["complete"] == true), "{row}");
    }
    // Equal masks give equal draws, though the probabilities are only nearly equal. Masks of llguidance lack
    // tokens that ours allow.
    for (ours, theirs) in
        [("unconstrained", "mistralrs"), ("masks", "mistralrs-masks"), ("masks", "mistralrs-drafts")]
    {
        let (one, other) = (of(ours), of(theirs));
        let same = one.iter().zip(&other).filter(|(one, other)| one["tokens"] == other["tokens"]);
        assert!(same.count() >= 3, "{theirs}: {rows:?}");
    }
    let sum = |method: &str, key: &str| of(method).iter().map(|row| row[key].as_u64().unwrap()).sum::<u64>();
    assert!(sum("mistralrs-llguidance", "interventions") > 0 && sum("mistralrs-masks", "masks") > 0);
    assert_eq!((sum("mistralrs-masks", "drafted"), sum("mistralrs", "drafted")), (0, 0));
    assert!(sum("mistralrs-drafts", "accepted") > 0);
    assert!(sum("mistralrs-drafts", "passes") < sum("mistralrs-masks", "passes"));
}

#[test]
fn a_grammar_that_mistralrs_cannot_read_is_refused() {
    let (_folder, run) = experiment("root ::= \"cat\" | \"dog\"", "pets.gbnf");
    assert_eq!(run.code, Some(2), "{}", run.stderr);
    assert!(
        run.stderr.contains("mistral.rs does not read Gbnf") && run.stderr.contains("hint"),
        "{}",
        run.stderr
    );
}

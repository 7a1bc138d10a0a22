//! `domino learn` and `domino generate --speculate`, with a model of random weights.

use std::path::Path;

use serde_json::Value;

use crate::support::{
    program::{Run, domino, last_line},
    random_model::write_model,
};

fn run(model: &Path, verb: &str, arguments: &[&str]) -> Run {
    domino(&[&[verb, "--model", model.to_str().unwrap(), "--json"], arguments].concat(), b"")
}

fn learn(model: &Path, out: &Path, arguments: &[&str]) -> Run {
    run(model, "learn", &[&["--out", out.to_str().unwrap()], arguments].concat())
}

const LISTS: [&str; 2] = ["--regex", r"(?:alpha|beta|gamma)(?:, (?:alpha|beta|gamma)){9}"];

fn generate(model: &Path, arguments: &[&str]) -> Value {
    let run = run(model, "generate", &[&LISTS[..], &["-p", "List:", "--seed", "3"], arguments].concat());
    assert!(matches!(run.code, Some(0 | 3)), "{}", run.stderr);
    last_line(&run)
}

#[test]
fn learnt_drafts_give_the_same_text_in_fewer_passes() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    let prior = folder.path().join("lists.prior");
    let run = learn(folder.path(), &prior, &[&LISTS[..], &["--prompt", "List:", "--runs", "3"]].concat());
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let learnt = last_line(&run);
    assert!(
        learnt["observed"].as_u64().unwrap() > 30 && learnt["contexts"].as_u64().unwrap() > 10,
        "{learnt}"
    );
    let plain = generate(folder.path(), &["--speculate", "off"]);
    assert_eq!(plain["drafted"], Value::Null);
    let file = prior.to_str().unwrap();
    for how in ["6", "1", "64"] {
        let found = generate(folder.path(), &["--speculate", how, "--prior", file]);
        assert_eq!(found["token_ids"], plain["token_ids"], "{how}");
        let count = |key: &str| found[key].as_u64().unwrap();
        assert!(count("accepted") <= count("drafted") && count("drafted") > 0, "{found}");
        assert!(count("passes") < plain["passes"].as_u64().unwrap(), "{found}");
        assert!(found["tokens_per_pass"].as_f64().unwrap() > 1.0);
    }
    let auto = generate(folder.path(), &["--prior", file]);
    assert_eq!(auto["token_ids"], plain["token_ids"]);
    assert!(auto["drafted"].is_u64());
    let off = generate(folder.path(), &["--prior", file, "--speculate", "off"]);
    assert_eq!((&off["token_ids"], &off["drafted"]), (&plain["token_ids"], &Value::Null));
}

#[test]
fn the_papers_proposer_writes_the_same_text() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    let prior = folder.path().join("lists.prior");
    learn(folder.path(), &prior, &[&LISTS[..], &["--prompt", "List:", "--runs", "3"]].concat());
    let file = prior.to_str().unwrap();
    let plain = generate(folder.path(), &["--speculate", "off"]);
    let drafted = |arguments: &[&str]| {
        let found = generate(folder.path(), &[&["--proposer"], arguments].concat());
        assert_eq!(found["token_ids"], plain["token_ids"], "{arguments:?}");
        (found["drafted"].as_u64().unwrap(), found["passes"].as_u64().unwrap())
    };
    let plain_passes = plain["passes"].as_u64().unwrap();
    let all = drafted(&["paper", "--prior", file, "--threshold", "0"]);
    assert!(all.0 > 0 && all.1 < plain_passes, "{all:?} of {plain_passes}");
    let sure = drafted(&["paper", "--prior", file, "--threshold", "0.9"]);
    assert!(sure.0 < all.0, "{sure:?} and {all:?}");
    // Without a prior it learns from the text, and with auto it drafts where that pays.
    drafted(&["paper"]);
    drafted(&["paper", "--speculate", "auto", "--prior", file]);
    drafted(&["shipped", "--speculate", "4", "--threshold", "0.5", "--prior", file]);
    // A draft goes on by at most so many tokens.
    let short = drafted(&["paper", "--speculate", "1", "--threshold", "0", "--prior", file]);
    assert!(short.0 <= short.1, "{short:?}");
    // `fixed` is what `per-text` was called.
    for word in ["per-text", "fixed"] {
        drafted(&["paper", "--learn", word, "--prior", file]);
    }
    let kept = drafted(&["paper", "--learn", "online", "--prior", file]);
    assert!(kept.1 > 0);
    let path = folder.path().join("requests.jsonl");
    std::fs::write(&path, "{\"prompt\": \"List:\", \"seed\": 3}\n").unwrap();
    let how = ["--proposer", "paper", "--threshold", "0"];
    let batch = [&LISTS[..], &["--batch", path.to_str().unwrap()], &how].concat();
    let found = last_line(&run(folder.path(), "generate", &batch));
    assert_eq!(found["token_ids"], plain["token_ids"], "{found}");
}

#[test]
fn batches_draft_by_the_papers_proposer() {
    let row = br#"{"prompt": "A JSON file describing a person: ", "seed": 2}"#;
    let batch = |how: &[&str]| {
        let model = concat!(env!("DOMINO_ROOT"), "/models/domino-small");
        let flags = ["generate", "-m", model, "-g", "json", "-n", "40", "--json", "--batch", "-"];
        let run = crate::support::program::domino(&[&flags[..], how].concat(), row);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        crate::support::program::last_line(&run)
    };
    let (plain, found) =
        (batch(&["--speculate", "off"]), batch(&["--proposer", "paper", "--threshold", "0"]));
    assert_eq!(found["token_ids"], plain["token_ids"], "{found}");
    assert!(found["drafted"].as_u64().is_some_and(|drafted| drafted > 0), "{found}");
}

#[test]
fn a_proposer_that_does_nothing_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    let path = folder.path().to_str().unwrap();
    for (arguments, part) in [
        (&["-p", "x", "--proposer", "paper"][..], "--proposer needs a grammar"),
        (&["-p", "x", "--threshold", "0.5"], "--threshold needs a grammar"),
        (&["-r", "a", "--proposer", "paper", "--speculate", "off"], "--proposer has nothing to do"),
        (&["-r", "a", "--threshold", "0.5", "--speculate", "off"], "--threshold has nothing to do"),
        (&["-r", "a", "--threshold", "0.5"], "fixed length"),
        (&["-r", "a", "--threshold", "0.5", "--speculate", "auto"], "fixed length"),
        (&["-r", "a", "--proposer", "paper", "--draft-model", path], "guesses alone"),
        (&["-r", "a", "--proposer", "paper", "--sampling", "conditional"], "speculation"),
        (&["-r", "a", "--proposer", "ours"], "shipped"),
        (&["-r", "a", "--speculate", "2", "--threshold", "1.5"], "from 0 to 1"),
    ] {
        let run = run(folder.path(), "generate", arguments);
        assert_eq!(run.code, Some(2), "{arguments:?}: {}", run.stderr);
        assert!(run.stderr.contains(part), "{arguments:?}: {}", run.stderr);
    }
}

/// Writes a model of the same form and tokenizer with other weights.
fn write_other_model(folder: &Path) {
    write_model(folder);
    let path = folder.join("model.safetensors");
    let mut bytes = std::fs::read(&path).unwrap();
    let header = usize::try_from(u64::from_le_bytes(bytes[..8].try_into().unwrap())).unwrap();
    let weights = &mut bytes[8 + header..];
    weights.as_chunks_mut::<4>().0.reverse();
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_draft_model_changes_no_token() {
    let folder = tempfile::tempdir().unwrap();
    let (own, other) = (folder.path().join("own"), folder.path().join("other"));
    for folder in [&own, &other] {
        std::fs::create_dir(folder).unwrap();
    }
    write_model(&own);
    write_other_model(&other);
    let [own_path, other_path] = [&own, &other].map(|path| path.to_str().unwrap());
    let plain = generate(&own, &["--speculate", "off"]);
    assert_eq!(plain["draft_model"], Value::Null);
    let count = |found: &Value, key: &str| found["draft_model"][key].as_u64().unwrap();
    for (draft, mask) in [(own_path, "on"), (own_path, "off"), (other_path, "on"), (other_path, "off")] {
        let flags = ["--speculate", "6", "--draft-model", draft, "--draft-mask", mask];
        let found = generate(&own, &flags);
        assert_eq!(found["token_ids"], plain["token_ids"], "{flags:?}");
        let [guessed, judged, right] = ["guessed", "judged", "right"].map(|key| count(&found, key));
        assert!(guessed >= judged && judged >= right && judged > 0, "{flags:?}: {found}");
        if (draft, mask) == (own_path, "on") {
            assert_eq!(judged, right);
            assert!(found["passes"].as_u64().unwrap() * 2 < plain["passes"].as_u64().unwrap(), "{found}");
        }
    }
    // Drafts are as long as pays: clocks decide their length, not the text.
    let found = generate(&own, &["--draft-model", other_path]);
    assert_eq!(found["token_ids"], plain["token_ids"]);
    assert!(found["draft_model"]["guessed"].is_u64());
    let compared = generate(&own, &["--draft-model", own_path, "--compare"]);
    assert_eq!(compared["compare"]["same_tokens"], Value::Bool(true));
    let explain =
        [&LISTS[..], &["-p", "List:", "--seed", "3", "--speculate", "4", "--draft-model", own_path]];
    let run = run(&own, "explain", &explain.concat());
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let told = last_line(&run);
    assert!(told["accepted"].as_u64().unwrap() > 0 && told["passes"].as_u64() < plain["passes"].as_u64());
}

#[test]
fn a_draft_model_of_another_tokenizer_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (own, other) = (folder.path().join("own"), folder.path().join("other"));
    for folder in [&own, &other] {
        std::fs::create_dir(folder).unwrap();
        write_model(folder);
    }
    let file = other.join("tokenizer.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let refused = |json: &Value, parts: &[&str]| {
        std::fs::write(&file, json.to_string()).unwrap();
        let flags = [&LISTS[..], &["--draft-model", other.to_str().unwrap()]].concat();
        let run = run(&own, "generate", &flags);
        assert_eq!(run.code, Some(2), "{}", run.stderr);
        for part in parts {
            assert!(run.stderr.contains(part), "{part}: {}", run.stderr);
        }
    };
    let tokenizer: Value = serde_json::from_str(&text).unwrap();
    let mut swapped = tokenizer.clone();
    let words = swapped["model"]["vocab"].as_object_mut().unwrap();
    let [one, other] = ["a", "b"].map(|word| words[word].clone());
    words.insert("a".to_owned(), other);
    words.insert("b".to_owned(), one);
    refused(&swapped, &["--draft-model", "another vocabulary", "is \"b\" in it", "hint:", "same family"]);
    let mut unmerged = tokenizer;
    unmerged["model"]["merges"] = Value::Array(Vec::new());
    refused(&unmerged, &["another tokenizer", "from token", "hint:"]);
    let own = own.to_str().unwrap();
    for (flags, said) in [
        (&["--draft-model", own][..], "--grammar"),
        (&["--regex", "a", "--draft-mask", "off"], "--draft-model"),
        (&["--regex", "a", "--draft-model", "no/such", "--speculate", "off"], "--speculate off"),
        (&["--regex", "a", "--draft-model", "no/such/model"], "there is no no/such/model"),
        (&["--regex", "a", "--draft-model", own, "--batch", "-"], "--batch"),
    ] {
        let run = run(Path::new(own), "generate", flags);
        assert!(run.code == Some(2) && run.stderr.contains(said), "{flags:?}: {}", run.stderr);
    }
}

#[test]
fn compare_reports_speedups_and_the_same_tokens() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    let found = generate(folder.path(), &["--compare", "--speculate", "4"]);
    let compare = &found["compare"];
    assert_eq!(compare["same_tokens"], Value::Bool(true));
    for key in ["speedup_over_plain", "speedup_over_unconstrained", "tokens_per_pass"] {
        assert!(compare[key].as_f64().unwrap() > 0.0, "{key}");
    }
    assert!((0.0..=1.0).contains(&compare["acceptance"].as_f64().unwrap()));
    assert_eq!(found["token_ids"], generate(folder.path(), &[])["token_ids"]);
}

#[test]
fn priors_grow_by_merging_and_by_use() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    let prior = folder.path().join("lists.prior");
    let observed = |run: &Run| {
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        last_line(run)["observed"].as_u64().unwrap()
    };
    let once = observed(&learn(folder.path(), &prior, &[&LISTS[..], &["--runs", "1"]].concat()));
    let more = ["--runs", "1", "--seed", "8", "--merge"];
    let twice = observed(&learn(folder.path(), &prior, &[&LISTS[..], &more].concat()));
    assert!(twice > once);
    let text = folder.path().join("a.txt");
    std::fs::write(&text, format!("alpha{}", ", beta".repeat(9))).unwrap();
    let from_text = ["--text", text.to_str().unwrap(), "--merge"];
    let thrice = observed(&learn(folder.path(), &prior, &[&LISTS[..], &from_text].concat()));
    assert!(thrice > twice);
    let file = prior.to_str().unwrap();
    let written =
        generate(folder.path(), &["--learn", "online", "--prior", file])["tokens"].as_u64().unwrap();
    let show = domino(&["learn", "--show", file, "--json"], b"");
    assert!(observed(&show) >= thrice + written);
    let words = domino(&["learn", "--show", file], b"").stdout;
    assert!(words.contains("contexts") && words.contains("guesses right"), "{words}");
    let small = learn(folder.path(), &prior, &[&LISTS[..], &["--runs", "1", "--contexts", "8"]].concat());
    assert!(last_line(&small)["contexts"].as_u64().unwrap() <= 8);
}

#[test]
fn priors_and_draft_lengths_that_cannot_be_used_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    let prior = folder.path().join("lists.prior");
    learn(folder.path(), &prior, &[&LISTS[..], &["--runs", "1"]].concat());
    let file = prior.to_str().unwrap();
    let refused = |arguments: &[&str], parts: &[&str]| {
        let run = run(folder.path(), "generate", arguments);
        assert_eq!(run.code, Some(2), "{arguments:?}: {}", run.stderr);
        for part in parts {
            assert!(run.stderr.contains(part), "{arguments:?}: {}", run.stderr);
        }
    };
    let lists = |more: &[&'static str]| [&LISTS[..], more].concat();
    refused(&lists(&["--speculate", "0"]), &["between 1 and 64"]);
    refused(&lists(&["--speculate", "100000000000"]), &["between 1 and 64"]);
    refused(&lists(&["--speculate", "fast"]), &["auto"]);
    refused(&["--speculate", "4"], &["--grammar"]);
    refused(&lists(&["--speculate", "off", "--compare"]), &["--compare"]);
    refused(&["--regex", "[ab]+", "--prior", file], &["another grammar", "and this is", "domino learn"]);
    refused(&lists(&["--prior", "nowhere.prior"]), &["nowhere.prior"]);
    let mut bytes = std::fs::read(&prior).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&prior, bytes).unwrap();
    refused(&[&LISTS[..], &["--prior", file]].concat(), &["damaged"]);
    let text = folder.path().join("a.txt");
    std::fs::write(&text, "alpha, delta").unwrap();
    let run = learn(folder.path(), &prior, &[&LISTS[..], &["--text", text.to_str().unwrap()]].concat());
    assert!(run.code == Some(2) && run.stderr.contains("not in the language"), "{}", run.stderr);
}

#[test]
fn priors_are_learnt_at_a_lookahead_over_terminals() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    let prior = folder.path().join("lists.prior");
    let lists = folder.path().join("lists.gbnf");
    std::fs::write(
        &lists,
        "root ::= item (\", \" item)*\nitem ::= word \"-\" word | \"[\" root \"]\"\nword ::= [a-c]+\n",
    )
    .unwrap();
    let lists = ["-g", lists.to_str().unwrap()];
    let reach = ["-k", "1", "--terminals", "written"];
    let more = ["--runs", "1", "-n", "20"];
    let learnt = learn(folder.path(), &prior, &[&lists[..], &more, &reach].concat());
    assert_eq!(learnt.code, Some(0), "{}", learnt.stderr);
    let object = last_line(&learnt);
    assert_eq!((&object["lookahead"], &object["terminals"]), (&1.into(), &"written".into()));
    let shown = domino(&["learn", "--show", prior.to_str().unwrap()], b"");
    assert!(shown.stdout.contains("lookahead 1 over written terminals"), "{}", shown.stdout);
    // More is learnt at the same only.
    let again =
        |reach: &[&str]| learn(folder.path(), &prior, &[&lists[..], &more, reach, &["--merge"]].concat());
    assert_eq!(again(&reach).code, Some(0));
    let other = again(&["-k", "2", "--terminals", "written"]);
    assert!(other.code == Some(2) && other.stderr.contains("lookahead 1 over written"), "{}", other.stderr);
    let other = again(&["-k", "1"]);
    assert!(other.code == Some(2) && other.stderr.contains("other terminals"), "{}", other.stderr);
    // It guesses with any lookahead, and says that it was learnt with another.
    let path = prior.to_str().unwrap();
    let use_with = |reach: &[&str]| {
        run(folder.path(), "generate", &[&lists[..], &["-n", "10", "--prior", path], reach].concat())
    };
    let same = use_with(&reach);
    let learnt_at = &last_line(&same)["prior"];
    assert_eq!((&learnt_at["lookahead"], &learnt_at["terminals"]), (&1.into(), &"written".into()));
    assert!(matches!(same.code, Some(0 | 3)) && !same.stderr.contains("learnt with"), "{}", same.stderr);
    let other = use_with(&["--terminals", "written"]);
    assert!(matches!(other.code, Some(0 | 3)), "{}", other.stderr);
    assert!(other.stderr.contains("learnt with lookahead 1 over written"), "{}", other.stderr);
    assert_eq!(use_with(&[]).code, Some(2));
}

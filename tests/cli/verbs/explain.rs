//! `domino explain` and `domino retokenize`, with a model of random weights.

use std::{
    fs,
    io::{self, Write},
    path::Path,
    process::Command,
};

use serde_json::Value;

use crate::support::{
    program::{Run, domino, last_line},
    random_model::write_model,
};

const GRAMMAR: [&str; 2] = ["--regex", r"(?:alpha|beta|gamma)(?:, (?:alpha|beta|gamma)){4}"];

fn run(model: &Path, verb: &str, arguments: &[&str]) -> Run {
    domino(&[&[verb, "--model", model.to_str().unwrap()], arguments].concat(), b"")
}

fn object(model: &Path, verb: &str, arguments: &[&str]) -> Value {
    let run = run(model, verb, &[arguments, &["--json"]].concat());
    assert!(matches!(run.code, Some(0 | 3)), "{}", run.stderr);
    last_line(&run)
}

#[test]
fn the_text_is_that_of_generate() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    for flags in [
        &["-p", "List:", "--seed", "3"][..],
        &["-p", "List:", "--seed", "4", "--speculate", "6", "--learn", "online"],
        &["-p", "List:", "-t", "0", "--speculate", "off"],
        &["-t", "0.7", "--top-k", "9", "--repeat-penalty", "1.3", "--seed", "5", "-n", "9"],
        &["-n", "9", "--finish", "--mask", "opportunistic"],
        &["--stop", "a, ", "-k", "1", "--terminals", "written"],
    ] {
        let flags = [&GRAMMAR[..], flags].concat();
        let generated = object(folder.path(), "generate", &flags);
        let explained = object(folder.path(), "explain", &flags);
        assert_eq!(explained["text"], generated["text"], "{flags:?}");
        assert_eq!(explained["finish"], generated["finish"]);
        assert_eq!(explained["complete"], generated["complete"]);
        assert_eq!(explained["appended"], generated["appended"]);
        let ids: Vec<&Value> =
            explained["tokens"].as_array().unwrap().iter().map(|token| &token["token_id"]).collect();
        let expected: Vec<&Value> = generated["token_ids"].as_array().unwrap().iter().collect();
        assert_eq!(ids[..expected.len()], expected, "{flags:?}");
        // At most the end of text comes on top.
        assert!(ids.len() - expected.len() <= 1);
        for token in explained["tokens"].as_array().unwrap() {
            let kept = token["log_kept"].as_f64().unwrap();
            assert!(kept <= 1e-9 && token["allowed"].as_u64().unwrap() > 0, "{token}");
            let difference =
                token["logprob"].as_f64().unwrap() - token["constrained_logprob"].as_f64().unwrap();
            assert!((difference - kept).abs() < 1e-6);
        }
    }
    // No choice is refused without a grammar.
    let free = object(folder.path(), "explain", &["-n", "5"]);
    assert_eq!((&free["log_kept"], &free["interventions"]), (&Value::Null, &0.into()));
    assert_eq!(free["tokens"][0]["pieces"], Value::Array(Vec::new()));
}

#[test]
fn terminals_are_those_the_grammar_is_written_with() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    let grammar = folder.path().join("pair.gbnf");
    fs::write(&grammar, "root ::= name \"=\" number\nname ::= [a-c]+\nnumber ::= [0-9] [0-9]\n").unwrap();
    let found = object(
        folder.path(),
        "explain",
        &["--grammar", grammar.to_str().unwrap(), "-n", "99", "--seed", "2"],
    );
    assert_eq!(found["complete"], true, "{found}");
    let mut names: Vec<(String, String)> = Vec::new();
    for piece in
        found["tokens"].as_array().unwrap().iter().flat_map(|token| token["pieces"].as_array().unwrap())
    {
        assert_eq!(piece["terminals"].as_array().unwrap().len(), 1);
        let (name, text) = (piece["terminals"][0]["name"].as_str().unwrap(), piece["text"].as_str().unwrap());
        match names.last_mut().filter(|_| piece["begins"] == false) {
            Some(last) => {
                assert_eq!(last.0, name);
                last.1 += text;
            }
            None => names.push((name.to_owned(), text.to_owned())),
        }
    }
    let text = found["text"].as_str().unwrap();
    let (name, number) = text.split_once('=').unwrap();
    assert_eq!(names[0], ("name".to_owned(), name.to_owned()));
    assert_eq!(names[1], ("\"=\"".to_owned(), "=".to_owned()));
    assert_eq!(names[2..].iter().map(|(_, text)| text.as_str()).collect::<String>(), number);
}

#[test]
fn a_page_is_written_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    let page = folder.path().join("page.html");
    let arguments =
        [&GRAMMAR[..], &["-p", "<script>alert('&\")</script>\u{1}", "-o", page.to_str().unwrap()]].concat();
    let told = run(folder.path(), "explain", &arguments);
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    assert!(told.stdout.contains("page.html: ") && told.stdout.contains(" tokens"), "{}", told.stdout);
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.contains("&lt;script&gt;alert(&#39;&amp;&quot;)&lt;/script&gt;\\u{1}"));
    assert_eq!(html.matches("<script").count(), 1);
    assert!(!html.contains("://"), "a page names no other place");
    // A page that cannot be written is an error before anything is loaded.
    let nowhere = folder.path().join("no/such/folder/page.html");
    for arguments in [
        &["-o", nowhere.to_str().unwrap()][..],
        &[],
        &["--compare", "--json"],
        &["--json", "-k", "1", "--speculate", "3", "--model", "no-such-folder"],
    ] {
        let run = domino(&[&["explain"], &GRAMMAR[..], arguments].concat(), b"");
        assert_eq!(run.code, Some(2), "{arguments:?}: {}", run.stderr);
        assert!(run.stderr.contains("hint: "), "{}", run.stderr);
    }
}

/// The page's own script in a browser, with some keys pressed.
#[test]
fn the_page_follows_keys_in_a_browser() {
    let Some(browser) = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| {
        Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
    }) else {
        let message = b"LEFT OUT: the page of `domino explain` in a browser, since there is no chromium\n";
        io::stderr().write_all(message).unwrap();
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    let page = folder.path().join("page.html");
    let arguments = [&GRAMMAR[..], &["--seed", "3", "-o", page.to_str().unwrap()]].concat();
    assert_eq!(run(folder.path(), "explain", &arguments).code, Some(0));
    let html = fs::read_to_string(&page).unwrap();
    let keys = "<script>for (const key of ['ArrowRight', 'ArrowRight', 'ArrowLeft', 'ArrowDown', \
        'ArrowDown'])\
        document.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));</script>";
    fs::write(&page, html.clone() + keys).unwrap();
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
        .args(["--virtual-time-budget=2000", "--dump-dom", &format!("file://{}", page.display())])
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && dom.contains("</html>"),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let boxes = html.matches("role=\"option\"").count();
    assert_eq!(dom.matches("role=\"option\"").count(), boxes);
    assert!(dom.contains("aria-activedescendant=\"t1\""), "the cursor is on the second token");
    assert_eq!(dom.matches("aria-selected=\"true\"").count(), 1);
    assert_eq!(dom.matches("class=\"card on\"").count(), 1);
    let card = dom.split("class=\"card on\"").nth(1).unwrap();
    assert!(card.starts_with(" id=\"c1\""));
    let rows: Vec<&str> = card.split("</article>").next().unwrap().split("<tr").skip(2).collect();
    let marked: Vec<usize> =
        (0..rows.len()).filter(|&row| rows[row].split('>').next().unwrap().contains("at\"")).collect();
    assert_eq!(marked, [1], "{rows:?}");
}

#[test]
fn a_text_is_cut_both_ways() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    let text = "The name of the {\"thing\": true}";
    let found = object(folder.path(), "retokenize", &["--text", text, "-p", "Say: "]);
    for side in ["own", "tokenizer"] {
        let side = &found[side];
        let tokens: String =
            side["tokens"].as_array().unwrap().iter().map(|token| token.as_str().unwrap()).collect();
        assert_eq!(tokens, text);
        let sum: f64 =
            side["logprobs"].as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).sum();
        assert!((sum - side["log_likelihood"].as_f64().unwrap()).abs() < 1e-9 && sum < 0.0);
    }
    assert_eq!(found["same_tokens"], found["own"]["token_ids"] == found["tokenizer"]["token_ids"]);
    let file = folder.path().join("text");
    fs::write(&file, text).unwrap();
    let from_file = object(folder.path(), "retokenize", &[file.to_str().unwrap(), "-p", "Say: "]);
    assert_eq!(from_file, found);
    let shown = run(folder.path(), "retokenize", &["--text", text, "-p", "Say: "]);
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    assert!(
        shown.stdout.starts_with("the model's") && shown.stdout.contains("tokenizer's"),
        "{}",
        shown.stdout
    );
    // Bytes that are no UTF-8 have no tokens of the tokenizer's, but the model has some.
    fs::write(&file, b"\xff\xfe").unwrap();
    let bytes = object(folder.path(), "retokenize", &[file.to_str().unwrap()]);
    assert_eq!((&bytes["tokenizer"], &bytes["same_tokens"]), (&Value::Null, &false.into()));
    assert!(bytes["no_tokenizer_because"].as_str().unwrap().contains("UTF-8"));
    for arguments in [&["--text", ""][..], &[], &["-", "--prompt-file", "-"], &["no-such-file"]] {
        let run = run(folder.path(), "retokenize", arguments);
        assert_eq!(run.code, Some(2), "{arguments:?}: {}", run.stderr);
    }
}

/// Texts of the shipped model, whose tokenizer puts a space before every text.
#[test]
fn a_tokenizer_that_puts_a_space_before_texts_is_understood() {
    let text = "{\"name\": \"John Doe\", \"age\": 30}";
    let run = crate::support::program::domino_in(
        Path::new(env!("DOMINO_ROOT")),
        &["retokenize", "--model", "models/domino-small", "-p", "A person: ", "--text", text, "--json"],
        b"",
    );
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let found = last_line(&run);
    let tokens = found["tokenizer"]["tokens"].as_array().unwrap();
    assert_eq!(tokens.iter().map(|token| token.as_str().unwrap()).collect::<String>(), text);
    // Greedy choices are not the likeliest whole, but the first one is the likeliest first token.
    let first = |side: &str| found[side]["logprobs"][0].as_f64().unwrap();
    assert!(first("own") >= first("tokenizer"));
}

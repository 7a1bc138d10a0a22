//! Natural grammars with recursion, adjacent repeats and bounded repeats stay within the program's budgets.

use crate::support::program::{domino, domino_in, last_line};

const MODEL: &str = concat!(env!("DOMINO_ROOT"), "/models/domino-small");
/// Nested elements with text and white space, which can be told apart in many ways.
const MARKUP: &str = r#"root ::= "<a>" (root | text | ws)* "</a>"
text ::= [^<]+
ws ::= [ \n]+
"#;

#[test]
fn masks_inside_of_markup_and_quotes_meet_no_budget() {
    let folder = tempfile::tempdir().unwrap();
    for (name, grammar) in [
        ("x.gbnf", MARKUP),
        ("y.gbnf", r#"root ::= "<b>" (root | [^<>])* "</b>""#),
        ("z.gbnf", "root ::= \"<b>\" (root | text)* \"</b>\"\ntext ::= [^<>]+"),
        ("q.regex", r#""[^"\n]{0,50}""#),
    ] {
        let file = folder.path().join(name);
        std::fs::write(&file, grammar).unwrap();
        let text = match name {
            "x.gbnf" => "<a>",
            "q.regex" => "\"",
            _ => "<b>",
        };
        let run = domino(&["mask", "-g", file.to_str().unwrap(), "-t", MODEL, "--text", text, "--json"], b"");
        assert_eq!(run.code, Some(0), "{name}: {}", run.stderr);
        // Most tokens are plain text.
        let answer = last_line(&run);
        assert!(answer["count"].as_u64().unwrap() > 30_000 && answer["complete"] == false, "{name}");
    }
}

#[test]
fn texts_of_markup_meet_no_budget_with_any_seed() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.gbnf"), MARKUP).unwrap();
    for seed in ["0", "1", "2", "3", "4"] {
        let arguments =
            ["generate", "-g", "x.gbnf", "-m", MODEL, "-p", "Hi ", "-n", "60", "--json", "--seed", seed];
        let run = domino_in(folder.path(), &arguments, b"");
        let object = last_line(&run);
        let expected = if object["finish"] == "stop" { Some(0) } else { Some(3) };
        assert_eq!(run.code, expected, "{seed}: {}", run.stderr);
        assert!(object.get("error").is_none() && !run.stderr.contains("error: "), "{seed}: {}", run.stderr);
        assert!(object["text"].as_str().unwrap().starts_with("<a>"), "{seed}: {object}");
    }
}

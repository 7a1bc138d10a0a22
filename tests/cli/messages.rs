//! Messages about texts that leave a language: they speak of characters, not bytes.

use serde_json::{Value, json};

use crate::support::program::{domino, last_line};

const BYTE_LEVEL: &str = concat!(env!("DOMINO_ROOT"), "/tests/fixtures/byte_level.json");

/// Output lines of `check` for a text on standard input.
fn check(regex: &str, text: &[u8]) -> Vec<String> {
    let run = domino(&["check", "--regex", regex, "-"], text);
    assert_eq!(run.code, Some(1), "{}{}", run.stdout, run.stderr);
    run.stdout.lines().map(str::to_owned).collect()
}

#[test]
fn a_text_is_left_at_the_beginning_of_a_character() {
    // The two characters have their first byte in common.
    let lines = check("日本x", "日木x".as_bytes());
    assert_eq!(lines[0], "standard input:1:2: not in the language: '木' cannot follow");
    assert_eq!(lines[1..4], ["  日木x", "    ^^", "  could follow: '本'"]);

    let run = domino(&["check", "--regex", "日本x", "--json", "-"], "日木x".as_bytes());
    let answer = last_line(&run);
    // The first byte that cannot follow is the character's last but one.
    let byte = "日".len() + "木".bytes().zip("本".bytes()).take_while(|(a, b)| a == b).count();
    assert_eq!((&answer["offset"], &answer["line"], &answer["column"]), (&json!(byte), &json!(1), &json!(2)));
    assert_eq!((&answer["character"], &answer["expected"]), (&json!("木"), &json!(["'本'"])));
    assert_eq!(answer["error"], "'木' cannot follow");
}

#[test]
fn messages_of_batches_and_masks_are_those_of_check() {
    let rows = [
        json!({ "id": 1, "syntax": "regex", "grammar": "日本x", "text": "日木x" }),
        json!({ "id": 2, "syntax": "regex", "grammar": "日本x", "text": "日" }),
        json!({ "id": 3, "syntax": "regex", "grammar": "日本x", "text": "日", "prefix": true }),
    ];
    let rows: Vec<String> = rows.iter().map(Value::to_string).collect();
    let run = domino(&["check", "--batch"], rows.join("\n").as_bytes());
    let answers: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&answers[0]["column"], &answers[0]["message"]), (&json!(2), &json!("'木' cannot follow")));
    assert_eq!((&answers[0]["accepted"], &answers[0]["expected"]), (&json!(false), &json!(["'本'"])));
    assert_eq!(answers[1]["message"], "the text ends too early");
    assert_eq!((&answers[2]["accepted"], answers[2].get("message")), (&json!(true), None));

    let mask = ["mask", "--regex", "日本x", "--tokenizer", BYTE_LEVEL, "--text", "日木x"];
    let run = domino(&mask, b"");
    assert_eq!(run.code, Some(1));
    for said in ["'木' cannot follow", "column 2", "  日木x\n    ^^\n", "could follow: '本'"] {
        assert!(run.stderr.contains(said), "{said}: {}", run.stderr);
    }
    let answer = last_line(&domino(&[&mask[..], &["--json"]].concat(), b""));
    assert_eq!((&answer["column"], &answer["character"]), (&json!(2), &json!("木")));

    let inspect = ["inspect", "--regex", "日本x", "sets", "--text", "日木x"];
    let run = domino(&inspect, b"");
    assert!(run.stderr.contains("at 1:2: '木' cannot follow"), "{}", run.stderr);
}

#[test]
fn bytes_that_are_no_character_are_shown_in_hex() {
    let lines = check("a[日本]", b"a\xE6Z");
    assert!(lines[0].ends_with("1:3: not in the language: 'Z' cannot follow"), "{lines:?}");
    let lines = check("a[日本]", b"a\xFF");
    assert!(lines[0].ends_with("1:2: not in the language: 0xFF cannot follow"), "{lines:?}");
    assert_eq!(lines[3], "  could follow: '日', '本'");
    // The text ends inside a character: its place is where that begins.
    let lines = check("a[日本]", b"a\xE6");
    assert!(lines[0].ends_with("1:2: not in the language: the text ends inside a character"), "{lines:?}");
    assert_eq!(lines[3], "  could follow: '日', '本'");
    // Grammars may be about bytes.
    assert_eq!(check("a(?-u:\\xFF)", b"ab")[3], "  could follow: 0xFF");
}

#[test]
fn characters_that_could_follow_are_a_short_list() {
    assert!(check("[a-z]+|\\s|é", b"?")[3].starts_with("  could follow: 'a'-'z', 'é', "));
    assert_eq!(
        check("([^\"]\")*", b"\"")[3],
        "  could follow: the end of the text, any character except '\"'"
    );
    let many = &check("\\w", b"?")[3];
    assert!(many.starts_with("  could follow: '_', '0'-'9', 'A'-'Z', 'a'-'z', "), "{many}");
    assert!(many.contains(", and ") && many.ends_with(" more"), "{many}");
    let answer = last_line(&domino(&["check", "--regex", "\\w", "--json", "-"], b"?"));
    let listed = answer["expected"].as_array().unwrap().len();
    assert!(listed < 20 && answer["more_expected"].as_u64().unwrap() > 100, "{answer}");
}

#[test]
fn lines_and_columns_are_counted_over_pieces() {
    // Far more than is read at once, with characters of three bytes that pieces end in.
    let mut text = "日本\n".repeat(40_000);
    text += "ab日?本";
    let lines = check("(日本\n)*ab日本", text.as_bytes());
    assert_eq!(lines[0], "standard input:40001:4: not in the language: '?' cannot follow");
    assert_eq!(lines[1..3], ["  ab日?本", "      ^"]);
    let lines = check("日*x", ("日".repeat(100_000) + "木").as_bytes());
    assert!(lines[0].starts_with("standard input:1:100001: "), "{}", lines[0]);
    assert!(lines[1].starts_with("  …日") && lines[1].ends_with("日木"), "{}", lines[1]);
}

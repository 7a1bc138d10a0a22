//! Regular expressions beside Python, PCRE and ECMAScript, whose own answers are in a file (made by
//! `fixtures/regex/dialects.py`), and the page about the differences.

use std::{fs, path::Path};

use domino::{CompiledGrammar, Compiler, Grammar, GrammarError, Limits, Syntax, grammar::GrammarErrorKind};
use serde::Deserialize;

use crate::support::decider::byte_vocabulary;

/// Meaning of one pattern in other dialects: for each text `y` or `n`.
#[derive(Debug, Deserialize)]
struct Row {
    pattern: String,
    texts: Vec<String>,
    python: Option<String>,
    pcre: Option<String>,
    ecmascript: Option<String>,
    /// True for a row of the page's table.
    #[serde(default)]
    page: bool,
}

impl Row {
    fn elsewhere(&self) -> [(&'static str, Option<&str>); 3] {
        [
            ("Python", self.python.as_deref()),
            ("PCRE", self.pcre.as_deref()),
            ("ECMAScript", self.ecmascript.as_deref()),
        ]
    }
}

fn read(file: &str) -> String {
    let path = Path::new(env!("DOMINO_ROOT")).join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn rows() -> Vec<Row> {
    let rows = read("tests/fixtures/regex/dialects.jsonl");
    rows.lines().map(|line| serde_json::from_str(line).expect("a row")).collect()
}

fn parse(pattern: &str) -> Result<Grammar, GrammarError> {
    Grammar::parse(Syntax::Regex, pattern, &Limits::default())
}

fn matches(grammar: &CompiledGrammar, text: &str) -> bool {
    let mut constraint = grammar.constraint();
    let viable = constraint.advance_bytes(text.as_bytes()).expect("within the budgets");
    viable == text.len() && constraint.is_complete()
}

/// A warning comes wherever another dialect gives another answer. The exception, which the page names, is a
/// POSIX class: Python has none, and nobody means the characters of its name.
#[test]
fn no_other_dialect_differs_silently() {
    let compiler = Compiler::new(byte_vocabulary());
    let (mut agreed, mut warned, mut posix, mut wrong) = (0, 0, 0, Vec::new());
    for row in rows() {
        // The page tells of characters too, which are not warned of.
        if row.page {
            continue;
        }
        let Ok(grammar) = parse(&row.pattern) else { continue };
        let compiled = compiler.compile(&grammar).expect("the pattern compiles");
        let here: String =
            row.texts.iter().map(|text| if matches(&compiled, text) { 'y' } else { 'n' }).collect();
        for (dialect, there) in row.elsewhere() {
            match there {
                None => {}
                Some(there) if there == here => agreed += 1,
                Some(_) if !grammar.warnings().is_empty() => warned += 1,
                Some(_) if dialect == "Python" && row.pattern.contains(":]") => posix += 1,
                Some(there) => wrong.push(format!("{row:?}: {dialect} {there}, here {here}")),
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {agreed}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(agreed > 1000 && warned > 50, "{agreed} agree, {warned} are warned of");
    assert!(posix < 30, "{posix} POSIX classes");
}

/// Patterns that all three dialects take are taken, refused by name, or a class of nothing here.
#[test]
fn patterns_of_all_dialects_are_taken_or_refused_by_name() {
    let (mut taken, mut refused, mut wrong) = (0, 0, Vec::new());
    for row in rows() {
        if row.elsewhere().iter().any(|(_, answers)| answers.is_none()) {
            continue;
        }
        match parse(&row.pattern) {
            Ok(_) => taken += 1,
            Err(error) if *error.kind() == GrammarErrorKind::Unsupported => refused += 1,
            // Set operations: empty, or on a nested class that is not closed. Both errors say so.
            Err(error)
                if error
                    .hint()
                    .is_some_and(|hint| hint.contains("`--` and `~~`") || hint.contains("`--` or `~~`")) =>
            {
                refused += 1;
            }
            Err(error) => wrong.push(format!("{}: {error}", row.pattern)),
        }
    }
    assert!(wrong.is_empty(), "{} of {taken}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(taken > 200 && refused < 40, "{taken} are taken, {refused} refused");
}

/// The texts in a cell of the page's table.
fn texts(cell: &str) -> Vec<String> {
    let unescaped = |text: &str| {
        let text = text.replace(r"\n", "\n");
        let mut pieces = text.split(r"\x");
        let mut result = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            result.push(char::from(u8::from_str_radix(&piece[..2], 16).expect("a number")));
            result += &piece[2..];
        }
        result
    };
    cell.split('`').skip(1).step_by(2).map(unescaped).collect()
}

/// Every row of the table is what this program and the other dialects do.
#[test]
fn the_page_on_regular_expressions_is_true_row_by_row() {
    let compiler = Compiler::new(byte_vocabulary());
    let elsewhere: Vec<Row> = rows().into_iter().filter(|row| row.page).collect();
    let (page, mut checked) = (read("docs/regex.md"), 0);
    for line in page.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [written, here, yes, no, others @ ..] = &cells[..] else { panic!("{line}") };
        let pattern = written.trim_matches('`');
        let (yes, no) = (texts(yes), texts(no));
        let parsed = parse(pattern);
        match here.strip_prefix("refused: ") {
            Some(name) => {
                let error = parsed.as_ref().expect_err(pattern);
                assert!(error.message().contains(name), "{line}: {error}");
            }
            None => {
                let grammar = parsed.as_ref().unwrap_or_else(|error| panic!("{pattern}: {error}"));
                assert_eq!(here.ends_with("; warned"), !grammar.warnings().is_empty(), "{line}");
                let compiled = compiler.compile(grammar).expect("the pattern compiles");
                assert!(yes.iter().all(|text| matches(&compiled, text)), "{line}");
                assert!(!no.iter().any(|text| matches(&compiled, text)), "{line}");
                assert!(!yes.is_empty() && !no.is_empty(), "{line}");
            }
        }
        let row = elsewhere.iter().find(|row| row.pattern == pattern).unwrap_or_else(|| panic!("{line}"));
        assert_eq!(row.texts, [&yes[..], &no[..]].concat(), "{line}: dialects.py is to be run");
        let same = "y".repeat(yes.len()) + &"n".repeat(no.len());
        assert_eq!(others.len(), 3, "{line}");
        for ((dialect, answers), cell) in row.elsewhere().into_iter().zip(others) {
            match *cell {
                "refused" => assert_eq!(answers, None, "{dialect}: {line}"),
                "same" => assert_eq!(answers, Some(&*same), "{dialect}: {line}"),
                _ => assert!(
                    answers.is_some_and(|answers| answers != same || same.is_empty()),
                    "{dialect}: {line}"
                ),
            }
        }
        checked += 1;
    }
    assert_eq!(checked, elsewhere.len());
    assert!(checked > 40, "{checked} rows");
}

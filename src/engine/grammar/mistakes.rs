//! Golden tests of error messages: a file of mistakes, each with its message.

use crate::grammar::{Grammar, GrammarError};

/// Compares the message of each mistake in `file`, and returns the messages. Mistakes are separated by lines
/// of `=====`, and each from its message by `-----`. With `DOMINO_BLESS` set, the current messages are
/// written to `path` instead.
pub(super) fn check(file: &str, path: &str, read: fn(&str) -> Result<Grammar, GrammarError>) -> Vec<String> {
    let cases: Vec<(&str, &str)> =
        file.split("\n=====\n").map(|case| case.split_once("\n-----\n").unwrap_or((case, ""))).collect();
    let found: Vec<String> =
        cases.iter().map(|(text, _)| read(text).map(|_| ()).expect_err(text).to_string()).collect();
    if std::env::var_os("DOMINO_BLESS").is_some() {
        let blessed: Vec<String> =
            cases.iter().zip(&found).map(|((text, _), found)| format!("{text}\n-----\n{found}")).collect();
        std::fs::write(path, blessed.join("\n=====\n") + "\n").expect("the file can be written");
        return found;
    }
    for ((text, want), found) in cases.iter().zip(&found) {
        assert_eq!(found, want.trim_end(), "of {text}");
    }
    found
}

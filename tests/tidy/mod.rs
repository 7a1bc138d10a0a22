//! The house's rules that a machine can check: layers of modules, sizes, names, numbers, first
//! words.
//!
//! Each rule is in the file that checks it. What breaks one today is listed in `exceptions.txt` with the
//! reason why it is left, and that list only ever gets shorter: see [`exceptions`] and [`list`]. Rules
//! without exceptions are tests by themselves.

mod exceptions;
mod layers;
mod lexer;
mod licences;
mod list;
mod numbers;
mod packages;
mod paths;
mod sizes;
mod source;
mod summaries;
mod types;

use exceptions::{Found, Rule};

/// The rules that have exceptions.
fn rules() -> Vec<Rule> {
    let rule = |name, says: &str, subjects, counts| Rule { name, says: says.to_owned(), subjects, counts };
    let columns = format!("a line has at most {} columns, comments and pages included", sizes::MOST_COLUMNS);
    let lines = format!("a file has at most {} lines", sizes::MOST_FILE_LINES);
    let files = format!("a folder has at most {} Rust files right in it", sizes::MOST_FILES);
    let function = format!("a function has at most {} lines", sizes::MOST_FUNCTION_LINES);
    vec![
        rule("as", "no `as` on ids outside `src/engine/ids.rs`", "files", Some("casts")),
        rule("file", &lines, "files", None),
        rule("folder", &files, "folders", None),
        rule("fragment", "documentation opens with a sentence, not a fragment", "files", Some("summaries")),
        rule("function", &function, "functions", None),
        rule(
            "saturation",
            "no conversion ends in `MAX` or `NONE` for want of room",
            "files",
            Some("conversions"),
        ),
        rule("type", "a public name of a type is defined once", "names", None),
        rule("width", &columns, "files", Some("lines")),
    ]
}

/// All that breaks them.
fn found() -> Vec<Found> {
    let rust = source::rust();
    let mut found = sizes::wide_lines(rust);
    found.extend(sizes::wide_lines(&source::markdown()));
    found.extend(sizes::long_functions(rust));
    found.extend(sizes::long_files(rust));
    found.extend(sizes::full_folders(rust));
    found.extend(types::repeated(rust));
    found.extend(numbers::conversions(rust));
    found.extend(summaries::fragments(rust));
    found
}

#[test]
fn exceptions_only_get_fewer() {
    exceptions::hold(&rules(), &found());
}

#[test]
fn files_say_what_they_are() {
    let wrong: Vec<_> = source::rust()
        .iter()
        .filter(|source| !source.text.starts_with("//!"))
        .map(|source| format!("{} does not begin with what it is for", source.path))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

//! Mentions of pages in code, messages, scripts and definitions.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::support::pages::{pages, root};

/// Folders and files whose texts may name pages. Records name those of their day.
const PLACES: [&str; 11] = [
    "src",
    "tests",
    "benches",
    "examples",
    "experiments",
    "fuzz",
    "grammars",
    "models",
    ".ci",
    "Cargo.toml",
    "deny.toml",
];
/// Endings of text files.
const TEXTS: [&str; 8] = ["rs", "toml", "cpp", "py", "sh", "md", "lalrpop", ""];

/// Collects the texts in a place, by their paths from the root.
fn texts(place: &Path, into: &mut Vec<PathBuf>) {
    let path = root().join(place);
    if path.is_dir() {
        let left_out = ["records", "target", "fixtures"].iter().any(|name| place.ends_with(name));
        for entry in fs::read_dir(&path).expect("a folder").filter(|_| !left_out) {
            texts(&place.join(entry.expect("an entry").file_name()), into);
        }
    } else if TEXTS.contains(&path.extension().and_then(|ending| ending.to_str()).unwrap_or_default()) {
        into.push(place.to_owned());
    }
}

/// Pages that a text names as `docs/NAME.md`, with their lines.
fn named(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        for rest in text.split("docs/").skip(1) {
            let name: String =
                rest.chars().take_while(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c)).collect();
            let name = name.trim_end_matches('.');
            if let Some(stem) = name.strip_suffix(".md").filter(|stem| !stem.is_empty()) {
                found.push((line, format!("docs/{stem}.md")));
            }
        }
    }
    found
}

#[test]
fn names_of_pages_are_found_in_texts() {
    let text = "see docs/one.md, docs/two-three.md#a and\n(docs/four.md). docs/NAME, docs/*.md, docs/.md";
    let expected = [(1, "docs/one.md"), (1, "docs/two-three.md"), (2, "docs/four.md")];
    assert_eq!(named(text), expected.map(|(line, name)| (line, name.to_owned())));
}

#[test]
fn pages_that_are_named_exist() {
    let mut files = Vec::new();
    PLACES.into_iter().filter(|place| root().join(place).exists()).for_each(|place| {
        texts(Path::new(place), &mut files);
    });
    let (mut wrong, mut count) = (Vec::new(), 0);
    // The cases of these tests name pages that there are not.
    let made_up =
        |file: &PathBuf| ["tests/pages", "tests/tidy"].iter().any(|folder| file.starts_with(folder));
    for file in files.iter().filter(|file| !made_up(file)) {
        let Ok(text) = fs::read_to_string(root().join(file)) else { continue };
        for (line, name) in named(&text) {
            count += 1;
            if !pages().contains(&PathBuf::from(&name)) {
                wrong.push(format!("{}:{line}: there is no {name}", file.display()));
            }
        }
    }
    assert!(count > 10, "only {count} pages are named");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

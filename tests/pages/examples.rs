//! The programs in `examples`: each is short, is built with the features that it needs, and is on a page.

use std::{collections::BTreeSet, fs};

use crate::support::pages::{blocks, read, root};

/// Most lines of a program.
const LINES: usize = 80;
/// Most characters of a line.
const WIDTH: usize = 110;
/// The page that lists the programs.
const PAGE: &str = "docs/library.md";

/// The names of the programs.
fn names() -> BTreeSet<String> {
    let folder = fs::read_dir(root().join("examples")).expect("the folder of examples");
    let files = folder.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"));
    files.map(|file| file.strip_suffix(".rs").expect("a program in Rust").to_owned()).collect()
}

/// Names of `[[example]]` in the manifest, with the features that they require.
fn declared() -> Vec<(String, Vec<String>)> {
    let manifest: toml::Table = read("Cargo.toml").parse().expect("a manifest");
    let examples = manifest["example"].as_array().expect("examples").clone();
    let strings = |value: Option<&toml::Value>| {
        let list = value.and_then(toml::Value::as_array).cloned().unwrap_or_default();
        list.iter().map(|one| one.as_str().expect("a feature").to_owned()).collect()
    };
    examples
        .iter()
        .map(|one| (one["name"].as_str().expect("a name").to_owned(), strings(one.get("required-features"))))
        .collect()
}

#[test]
fn examples_are_short_and_say_how_they_are_run() {
    for name in names() {
        let text = read(format!("examples/{name}.rs"));
        assert!(text.lines().count() <= LINES, "{name} has more than {LINES} lines");
        let wide = text.lines().find(|line| line.chars().count() > WIDTH);
        assert_eq!(wide, None, "{name}");
        let head: Vec<&str> = text.lines().take_while(|line| line.starts_with("//!")).collect();
        assert!(head.iter().any(|line| line.contains(&format!("--example {name}"))), "{name}: {head:?}");
    }
}

#[test]
fn the_manifest_names_each_example_with_its_features() {
    let declared = declared();
    assert_eq!(declared.iter().map(|(name, _)| name.clone()).collect::<BTreeSet<_>>(), names());
    for (name, features) in declared {
        let text = read(format!("examples/{name}.rs"));
        for (feature, used) in [("candle", "candle"), ("tokenizers", "Tokenizer"), ("schemars", "schemars")] {
            let required = features.iter().any(|required| required == feature);
            assert_eq!(required, text.contains(used), "{name}: {feature}");
        }
    }
}

#[test]
fn the_page_lists_all_examples() {
    let page = read(PAGE);
    for name in names() {
        assert!(page.contains(&format!("[`{name}`](../examples/{name}.rs)")), "{PAGE} has no {name}");
    }
}

/// The loop on the page is the function that `tests/decode/numbering.rs` runs.
#[test]
fn the_pages_loop_is_that_of_the_example() {
    let program = read("examples/own_loop.rs");
    let from = program.find("pub fn write(").expect("the loop");
    let length = program[from..].find("\n}\n").expect("its end") + 2;
    let function = program[from..from + length].replace("dyn Error>", "dyn std::error::Error>");
    let shown = blocks(PAGE.as_ref());
    assert!(shown.iter().any(|block| block.text.contains(&function)), "{PAGE} has another loop");
}

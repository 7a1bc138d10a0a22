//! The house's rules that a machine can check: layers, heads, sizes.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Modules in pipeline order: each uses only those before it.
const LAYERS: [&str; 25] = [
    "clock",
    "cores",
    "ids",
    "limits",
    "hopcroft",
    "interner",
    "store",
    "gguf",
    "vocab",
    "grammar",
    "oracle",
    "scanner",
    "lower",
    "subterminal",
    "parser",
    "constraint",
    "captures",
    "compile",
    "further",
    "inspect",
    "proposer",
    "model",
    "decode",
    "experiment",
    "mistralrs",
];
/// The engine: knows nothing of models, and they know nothing of it.
const ENGINE: [&str; 12] = [
    "grammar",
    "scanner",
    "lower",
    "subterminal",
    "parser",
    "constraint",
    "captures",
    "compile",
    "inspect",
    "proposer",
    "oracle",
    "further",
];
/// Lines of a file, tests and documentation included.
const MOST_LINES: usize = 600;

fn files(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
            match entry.extension() {
                None if entry.is_dir() && !entry.ends_with("target") => open.push(entry),
                Some(extension) if extension == "rs" => found.push(entry),
                _ => {}
            }
        }
    }
    assert!(!found.is_empty(), "no files in {folder}");
    found
}

/// The layer of a file of the library, `None` for `lib.rs` and the program.
fn layer(file: &Path) -> Option<usize> {
    let inside = file.strip_prefix(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).ok()?;
    let first = inside.components().next()?.as_os_str().to_str()?;
    LAYERS.iter().position(|layer| *layer == first.trim_end_matches(".rs"))
}

/// First segments of paths that start with `crate::`, in code.
fn uses(text: &str) -> Vec<String> {
    let code: String =
        text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    let mut names = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        let Some(group) = rest.strip_prefix('{') else {
            names.push(rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect());
            continue;
        };
        let mut depth = 0;
        let mut name = String::new();
        let mut first = true;
        for c in group.chars() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    names.push(std::mem::take(&mut name));
                    first = true;
                }
                ':' if depth == 0 => first = false,
                c if depth == 0 && first && (c.is_alphanumeric() || c == '_') => name.push(c),
                _ => {}
            }
        }
        names.push(name);
    }
    names.retain(|name| !name.is_empty());
    names
}

#[test]
fn uses_are_found() {
    let text =
        "use crate::{\n ids::{A, B},\n limits::C,\n};\nuse crate::vocab::D; // crate::no\n// crate::no\n";
    assert_eq!(uses(text), ["ids", "limits", "vocab", "no"]);
}

#[test]
fn modules_use_only_those_before_them() {
    let mut wrong = Vec::new();
    let mut checked = 0;
    for file in files("src") {
        let Some(own) = layer(&file) else { continue };
        let text = fs::read_to_string(&file).expect("a file");
        let text = text.split("#[cfg(test)]\nmod tests").next().expect("code").to_owned();
        for name in uses(&text) {
            let Some(used) = LAYERS.iter().position(|layer| *layer == name) else { continue };
            checked += 1;
            let crosses = LAYERS[own] == "model" && ENGINE.contains(&LAYERS[used]);
            if used > own || crosses {
                wrong.push(format!("{} uses {name}", file.display()));
            }
        }
    }
    assert!(checked > 50, "only {checked} uses were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn files_say_what_they_are_and_stay_small() {
    let mut wrong = Vec::new();
    for file in ["src", "tests", "benches", "fuzz/src", "fuzz/fuzz_targets"].into_iter().flat_map(files) {
        let text = fs::read_to_string(&file).expect("a file");
        if !text.starts_with("//!") {
            wrong.push(format!("{} does not begin with what it is for", file.display()));
        }
        let lines = text.lines().count();
        if lines > MOST_LINES {
            wrong.push(format!("{} has {lines} lines", file.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn licences_stand_in_the_root() {
    let read = |name: &str| {
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).expect("a file of the root")
    };
    for (file, words) in [
        ("LICENSE-MIT", &["MIT License", "The Domino developers", "THE SOFTWARE IS PROVIDED \"AS IS\""][..]),
        (
            "LICENSE-APACHE",
            &["Version 2.0, January 2004", "9. Accepting Warranty", "END OF TERMS AND CONDITIONS"],
        ),
        (
            "NOTICE",
            &["The Domino developers", "models/domino-small", "Mistral AI", "Apache License, Version 2.0"],
        ),
        ("README.md", &["LICENSE-MIT", "LICENSE-APACHE", "NOTICE"]),
        ("Cargo.toml", &["license = \"MIT OR Apache-2.0\""]),
    ] {
        let text = read(file);
        let missing: Vec<_> = words.iter().filter(|words| !text.contains(**words)).collect();
        assert!(missing.is_empty(), "{file} lacks {missing:?}");
    }
}

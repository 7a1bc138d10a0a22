//! The pages that users read: their widths, and that their commands work. Links are in the files
//! beside this one.
//!
//! The line before a block of shell commands says how it is checked. `<!-- run -->` is run here, in order and
//! in one folder for each page; `<!-- command: NAME -->` by `.ci/run`; `<!-- not run: REASON -->` by nobody,
//! and then its commands and flags must exist. Blocks of Rust are doctests.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use domino::{Grammar, Limits, Syntax};

use crate::support::{
    pages::{blocks, pages, prose, read, root},
    program::domino,
};

/// Most characters of a line.
const WIDTH: usize = 110;
/// Most lines of the README.
const README_LINES: usize = 110;

#[test]
fn pages_and_readme_keep_to_their_line_limits() {
    let mut wrong = Vec::new();
    for page in pages() {
        let text = read(&page);
        let long = text.lines().enumerate().filter(|(_, line)| line.chars().count() > WIDTH);
        wrong.extend(long.map(|(number, _)| format!("{}:{} is too long", page.display(), number + 1)));
    }
    let lines = read("README.md").lines().count();
    if lines > README_LINES {
        wrong.push(format!("README.md has {lines} lines"));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn rust_is_compiled_and_other_blocks_are_read() {
    let doctests = read("src/lib.rs") + &read("src/mistralrs/lib.rs").replace("../../docs/", "../docs/");
    let (mut rust, mut others) = (0, 0);
    for page in pages() {
        for block in blocks(&page) {
            let language = block.language.split(',').next().unwrap_or_default();
            match language {
                "rust" => {
                    rust += 1;
                    let named = format!("include_str!(\"../{}\")", page.display());
                    assert!(doctests.contains(&named), "{}: src/lib.rs has no {named}", block.at);
                    assert!(!block.language.contains("ignore"), "{}: not compiled", block.at);
                }
                "gbnf" => {
                    others += 1;
                    let read = Grammar::parse(Syntax::Gbnf, &block.text, &Limits::default());
                    assert!(read.is_ok(), "{}: {}", block.at, read.unwrap_err());
                }
                "json" => {
                    others += 1;
                    serde_json::from_str::<serde_json::Value>(&block.text).expect(&block.at);
                }
                "sh" | "python" | "toml" | "bibtex" | "text" => {}
                other => panic!("{}: a block of {other:?}", block.at),
            }
        }
    }
    assert!(rust >= 3 && others >= 1, "{rust} blocks of Rust, {others} others");
}

/// The commands of a block: lines joined where they go on, split at pipes and `;`.
fn commands(text: &str) -> Vec<Vec<String>> {
    let joined = text.replace("\\\n", " ");
    let mut commands = Vec::new();
    for line in joined.lines() {
        let line = line.split(" # ").next().unwrap_or_default();
        for part in line.split(['|', ';', '>']) {
            let words: Vec<String> = part
                .split_whitespace()
                .skip_while(|word| word.contains('=') || ["do", "exec"].contains(word))
                .map(str::to_owned)
                .collect();
            if !words.is_empty() {
                commands.push(words);
            }
        }
    }
    commands
}

/// Checks a command of ours: the error names a subcommand, flag, feature or program that does not exist.
fn unknown(command: &[String]) -> Option<String> {
    let program = command[0].rsplit('/').next().unwrap_or_default();
    let words: Vec<&str> = command[1..].iter().map(|word| word.trim_matches(['\'', '"'])).collect();
    match (program, words.first()) {
        ("domino", Some(verb)) => {
            let help = domino(&[verb, "--help"], b"");
            if help.code != Some(0) {
                return Some(format!("there is no domino {verb}"));
            }
            let known: BTreeSet<&str> = help
                .stdout
                .split(|c: char| c.is_whitespace() || ",[]<>=()`".contains(c))
                .filter(|word| word.starts_with('-'))
                .collect();
            let flags = words.iter().filter(|word| word.len() > 1 && word.starts_with('-'));
            let flags = flags.map(|flag| flag.split('=').next().unwrap_or(flag));
            flags
                .clone()
                .find(|flag| !known.contains(flag))
                .map(|flag| format!("domino {verb} has no {flag}"))
        }
        ("cargo", Some(verb)) => {
            let own = read(match *verb {
                "measure" => "benches/Cargo.toml",
                "experiment" => "experiments/Cargo.toml",
                _ => "Cargo.toml",
            });
            let features =
                words.windows(2).filter(|pair| pair[0] == "--features").flat_map(|pair| pair[1].split(','));
            let missing = features.into_iter().find(|feature| !own.contains(&format!("\n{feature} = [")));
            let named = ["measure", "experiment"].contains(verb).then(|| words[1]);
            let absent = named.filter(|name| !own.contains(&format!("\nname = \"{name}\"\n")));
            missing.or(absent).map(|name| format!("cargo {verb}: there is no {name}"))
        }
        (program, _) if command[0].contains('/') && !root().join(&command[0]).exists() => {
            (!command[0].starts_with("target/")).then(|| format!("there is no {program}"))
        }
        _ => None,
    }
}

#[test]
fn commands_that_pages_do_not_run_exist() {
    assert!(unknown(&["domino".into(), "generate".into(), "--klingon".into()]).is_some());
    assert!(unknown(&["domino".into(), "klingon".into()]).is_some());
    assert!(unknown(&["cargo".into(), "build".into(), "--features".into(), "klingon".into()]).is_some());
    assert!(unknown(&["cargo".into(), "measure".into(), "klingon".into()]).is_some());
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for page in pages() {
        for block in blocks(&page).into_iter().filter(|block| block.language == "sh") {
            for command in commands(&block.text) {
                checked += 1;
                wrong.extend(unknown(&command).map(|what| format!("{}: {what}", block.at)));
            }
        }
        // Commands in the middle of a sentence.
        for span in prose(&read(&page)).flat_map(|(_, line)| line.split('`').skip(1).step_by(2)) {
            let command: Vec<String> = span.split_whitespace().map(str::to_owned).collect();
            let ours = command.len() > 1 && command[0] == "domino";
            if ours && command[1].chars().all(|c| c.is_ascii_lowercase() || c == '-') {
                checked += 1;
                wrong.extend(unknown(&command).map(|what| format!("{}: {what}", page.display())));
            }
        }
    }
    assert!(checked > 40, "only {checked} commands were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Runs the blocks of a page that are marked `run`, in a folder of their own with the models and the program
/// at hand; returns their number.
#[cfg(unix)]
fn run_page(page: &Path) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let bin = folder.path().join("bin");
    fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_domino"), bin.join("domino")).unwrap();
    std::os::unix::fs::symlink(root().join("models"), folder.path().join("models")).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let mut run = 0;
    for block in blocks(page).into_iter().filter(|block| block.language == "sh") {
        let marked = |mark: &str| {
            block.before.strip_prefix(mark).and_then(|rest| rest.strip_suffix(" -->")).map(str::trim)
        };
        if let Some(reason) = marked("<!-- not run:").or_else(|| marked("<!-- command:")) {
            assert!(!reason.is_empty(), "{}: no reason", block.at);
            continue;
        }
        assert_eq!(block.before, "<!-- run -->", "{}: what becomes of this block?", block.at);
        run += 1;
        let output = Command::new("bash")
            .args(["-euo", "pipefail", "-c", &block.text])
            .current_dir(folder.path())
            .env("PATH", &path)
            .env("DOMINO_NO_CACHE", "1")
            .output()
            .expect("bash");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {}\n{error}", block.at, output.status);
    }
    run
}

#[cfg(unix)]
#[test]
fn commands_of_the_pages_run() {
    let run: usize = pages().iter().map(|page| run_page(page)).sum();
    assert!(run >= 4, "only {run} blocks were run");
}

//! Requirements of commands are on one page, which every page with commands links to.

use std::path::{Path, PathBuf};

use crate::support::{
    pages::{blocks, pages, read},
    program::domino,
};

/// The page with the table of commands, and the section that it is in.
const TABLE: (&str, &str) = ("docs/grammars.md", "grammars.md#commands");

/// Subcommands of the program.
fn verbs() -> Vec<String> {
    let help = domino(&["--help"], b"").stdout;
    let (_, commands) = help.split_once("Commands:\n").expect("a list of commands");
    let list = commands.lines().take_while(|line| !line.is_empty());
    let named = list.filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')));
    let names = named.filter_map(|line| line.split_whitespace().next()).map(str::to_owned);
    names.filter(|name| name != "help").collect()
}

#[test]
fn the_table_of_needs_lists_every_command() {
    let page = read(TABLE.0);
    let verbs = verbs();
    assert!(verbs.len() > 10, "{verbs:?}");
    for verb in verbs {
        let row = page.lines().find(|line| line.starts_with(&format!("| `domino {verb}` |")));
        let needs = row.unwrap_or_else(|| panic!("{verb} is not in the table")).split('|').nth(3);
        let needs = needs.unwrap_or_else(|| panic!("{verb}: no third column"));
        let help = domino(&[&verb, "--help"], b"").stdout;
        // In builds without its feature a command has no flags.
        if help.contains("Not in this build") {
            assert!(needs.contains("feature"), "{verb}: {needs}");
            continue;
        }
        // Their model is an argument, or in a file.
        let named_otherwise = ["experiment", "model"].contains(&verb.as_str());
        assert!(!needs.contains("a model") || help.contains("--model") || named_otherwise, "{verb}");
        assert!(!needs.contains("tokenizer") || help.contains("--tokenizer"), "{verb}");
        let either = help.contains("--model") || help.contains("--tokenizer") || named_otherwise;
        assert_eq!(needs.trim().is_empty(), !either, "{verb}: {needs}");
    }
}

#[test]
fn pages_with_commands_link_to_the_table_of_needs() {
    let with_commands = |page: &PathBuf| blocks(page).iter().any(|block| block.is("sh"));
    let manual = pages().into_iter().filter(|page| page.starts_with("docs") && page != Path::new(TABLE.0));
    let mute: Vec<PathBuf> =
        manual.filter(with_commands).filter(|page| !read(page).contains(TABLE.1)).collect();
    assert!(mute.is_empty(), "no link to {} in {mute:?}", TABLE.1);
}

//! `-h` and `--help` of every command: their length, and where their sections end.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::program::domino;

/// Most lines of `-h`.
const MOST_LINES: usize = 60;
/// Most flags that `-h` shows beside those of all commands.
const MOST_FLAGS: usize = 10;
/// Flags of all commands.
const COMMON: [&str; 4] = ["--json", "--quiet", "--help", "--version"];

/// Subcommands that the program lists, and the program itself as "".
fn commands() -> Vec<String> {
    let help = domino(&["-h"], b"").stdout;
    let list = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let name = |line: &str| {
        let line = line.strip_prefix("  ")?;
        let name = line.split(' ').next().filter(|name| !name.is_empty())?;
        Some(name.to_owned())
    };
    let names: Vec<String> = list.lines().filter_map(name).filter(|name| name != "help").collect();
    assert!(names.len() > 10 && names.contains(&"generate".to_owned()), "{names:?}");
    [String::new()].into_iter().chain(names).collect()
}

fn help(command: &str, flag: &str) -> String {
    let arguments: Vec<&str> = [command, flag].into_iter().filter(|word| !word.is_empty()).collect();
    let run = domino(&arguments, b"");
    assert_eq!((run.code, &*run.stderr), (Some(0), ""), "{command} {flag}");
    run.stdout
}

/// Long names of flags, by their headings.
fn sections(help: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut sections: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut heading = String::new();
    for line in help.lines() {
        if let Some(name) = line.strip_suffix(':').filter(|name| !name.starts_with(' ')) {
            name.clone_into(&mut heading);
        }
        // A flag begins its line, behind its short name or the room for one.
        let flag = line.strip_prefix("  -").map_or_else(
            || line.strip_prefix("      --"),
            |short| short.get(1..).and_then(|rest| rest.strip_prefix(", --")),
        );
        if let Some(flag) = flag {
            let name = flag.split([' ', '[']).next().unwrap_or_default();
            sections.entry(heading.clone()).or_default().insert(format!("--{name}"));
        }
    }
    sections
}

#[test]
fn short_help_has_the_flags_that_most_runs_need() {
    for command in commands() {
        let short = help(&command, "-h");
        let lines = short.lines().count();
        assert!(lines <= MOST_LINES, "{command} -h has {lines} lines");
        let flags: Vec<String> = sections(&short).into_values().flatten().collect();
        let own: Vec<&String> = flags.iter().filter(|flag| !COMMON.contains(&flag.as_str())).collect();
        assert!(own.len() <= MOST_FLAGS, "{command} -h shows {own:?}");
        let long = help(&command, "--help");
        let all: BTreeSet<String> = sections(&long).into_values().flatten().collect();
        for flag in &flags {
            assert!(all.contains(flag), "{command}: {flag} is in -h alone");
        }
        // Short help that leaves flags out says where all of them are.
        let pointer = ["domino", &command, "--help"].into_iter().filter(|word| !word.is_empty());
        let pointer = pointer.collect::<Vec<_>>().join(" ");
        let said = short.contains(&format!("All flags, in sections: {pointer}\n"));
        assert!(said || own.len() + COMMON.len() + 4 >= all.len(), "{command}: {short}");
    }
    for (command, usual) in [
        ("generate", &["--grammar", "--prompt", "--model", "--seed", "--max-tokens", "--batch", "--out"][..]),
        ("check", &["--grammar", "--schema", "--prefix", "--report", "--batch"]),
        ("mask", &["--text", "--model", "--tokenizer"]),
        ("inspect", &["--along", "--model", "--tokenizer"]),
        ("trace", &["--expected", "--model", "--tokenizer"]),
    ] {
        let shown: BTreeSet<String> = sections(&help(command, "-h")).into_values().flatten().collect();
        for flag in usual {
            assert!(shown.contains(*flag), "{command} -h lacks {flag}");
        }
    }
}

/// Flags for schemas are those on the page: under their heading stand these, and no others.
#[test]
fn sections_of_the_help_have_the_documented_flags_only() {
    let page = include_str!("../../../docs/json-schema.md");
    let table = page.split("## Options").nth(1).unwrap().split("\n\n").nth(1).unwrap();
    let flags = table.lines().filter_map(|line| line.strip_prefix("| `")?.split(['`', ' ']).next());
    let flags: BTreeSet<String> = flags.map(str::to_owned).collect();
    assert!(flags.len() > 8 && flags.contains("--escapes"), "{flags:?}");
    let mut with_schemas = 0;
    for command in commands() {
        let sections = sections(&help(&command, "--help"));
        if let Some(schema) = sections.get("JSON Schema") {
            assert_eq!(*schema, flags, "{command}");
            with_schemas += 1;
        }
        // No flag stands twice, and each heading has the same flags wherever both stand.
        let all: usize = sections.values().map(BTreeSet::len).sum();
        let distinct: BTreeSet<&String> = sections.values().flatten().collect();
        assert_eq!(all, distinct.len(), "{command}");
        for (heading, flag) in [
            ("Tools", "--tools"),
            ("Tools", "--chat-template"),
            ("Model", "--model"),
            ("Model", "--tokenizer"),
            ("Grammar", "--grammar"),
            ("Speculation", "--prior"),
            ("Lookahead", "--terminals"),
            ("Sampling", "--temperature"),
            ("Cache and budgets", "--max-memory"),
        ] {
            for (other, flags) in sections.iter().filter(|(_, flags)| flags.contains(flag)) {
                assert_eq!(other, heading, "{command} {flag} stands among {flags:?}");
            }
        }
    }
    assert!(with_schemas >= 7, "{with_schemas}");
}

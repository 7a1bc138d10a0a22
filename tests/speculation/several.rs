//! Several definitions in one command of `domino experiment`.

use crate::{
    cli::verbs::experiment::{DEFINITION, experiment, folder, rows},
    support::program::last_line,
};

/// Each of several definitions has its records, and all tables are in one file. A killed command can be
/// resumed, and if one definition fails the others are made all the same.
#[test]
fn several_definitions_are_run_by_one_command() {
    let folder = folder();
    let folder = folder.path();
    for name in ["one", "two"] {
        let text = DEFINITION.replace("noise", name).replace("count = 12", "count = 2");
        std::fs::write(folder.join(name).with_extension("toml"), text).unwrap();
    }
    let arguments = ["one.toml", "two.toml", "--out", "all"];
    let all = experiment(folder, &arguments);
    assert_eq!(all.code, Some(0), "{}", all.stderr);
    assert!(all.stderr.contains("[1/2] one: ") && all.stderr.contains("[2/2] two: done"), "{}", all.stderr);
    let tables = std::fs::read_to_string(folder.join("all/tables.md")).unwrap();
    assert_eq!(all.stdout, tables);
    for said in ["* one: 16 runs, all of them", "* two: 16 runs", "\n## one\n", "](two/figures/"] {
        assert!(tables.contains(said), "{said}: {tables}");
    }
    let alone = experiment(folder, &["two.toml", "--out", "alone"]);
    assert_eq!(alone.code, Some(0), "{}", alone.stderr);
    assert_eq!(rows(&folder.join("all/two")), rows(&folder.join("alone")));
    // What is cut off goes on, and what is there stays.
    let first = std::fs::read(folder.join("all/one/rows.jsonl")).unwrap();
    let second = std::fs::read_to_string(folder.join("all/two/rows.jsonl")).unwrap();
    let half: String = second.lines().take(7).map(|line| format!("{line}\n")).collect();
    std::fs::write(folder.join("all/two/rows.jsonl"), half).unwrap();
    let json = experiment(folder, &[&arguments[..], &["--json"]].concat());
    assert_eq!(json.code, Some(0), "{}", json.stderr);
    assert_eq!(std::fs::read(folder.join("all/one/rows.jsonl")).unwrap(), first);
    assert_eq!(rows(&folder.join("all/two")), rows(&folder.join("alone")));
    let parts = last_line(&json)["experiments"].clone();
    let of = |part: usize| (parts[part]["name"].clone(), parts[part]["complete"].clone());
    assert_eq!((of(0), of(1)), (("one".into(), true.into()), ("two".into(), true.into())));
    // Records of another definition under the first one's name: the second one is made all the same.
    let other = std::fs::read_to_string(folder.join("one.toml")).unwrap().replace("12", "11");
    std::fs::write(folder.join("one.toml"), other).unwrap();
    std::fs::remove_dir_all(folder.join("all/two")).unwrap();
    let failed = experiment(folder, &arguments);
    assert_eq!(failed.code, Some(2), "{}", failed.stderr);
    assert!(
        failed.stderr.contains("one failed") && failed.stderr.contains("`max_tokens`"),
        "{}",
        failed.stderr
    );
    assert_eq!(rows(&folder.join("all/two")), rows(&folder.join("alone")));
}

/// A mistake in one of several definitions is reported before the first is run.
#[test]
fn several_definitions_are_read_before_the_first_is_run() {
    let folder = folder();
    let folder = folder.path();
    for (name, text, said) in [
        ("same", DEFINITION.to_owned(), "two of the definitions are called \"noise\""),
        ("bad", DEFINITION.replace("noise", "bad").replace("seeds", "sedes"), "seeds"),
        ("gone", DEFINITION.replace("noise", "gone").replace("\"model\"", "\"no-model\""), "no-model"),
        (
            "whole",
            DEFINITION.replace("noise", "whole").split("[quick]").next().unwrap().to_owned(),
            "[quick]",
        ),
    ] {
        let file = folder.join(name).with_extension("toml");
        std::fs::write(&file, text).unwrap();
        let file = file.to_str().unwrap();
        let run = experiment(folder, &["d.toml", file, "--quick", "--out", "all"]);
        assert!(run.code == Some(2) && run.stderr.contains(said), "{name}: {}", run.stderr);
        assert!(!folder.join("all").exists(), "{name}");
    }
}

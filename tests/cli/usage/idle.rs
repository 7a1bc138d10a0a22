//! Flags without effect are refused, or warned of if the run is otherwise as intended.

use super::{folder, refused, run};

#[test]
fn flags_about_tools_need_tools() {
    let folder = folder();
    let folder = folder.path();
    std::fs::write(folder.join("s.json"), "{\"type\": \"integer\"}").unwrap();
    std::fs::write(folder.join("t.jinja"), "<tool_call>").unwrap();
    for (flag, value) in [
        ("--chat-template", Some("t.jinja")),
        ("--tool-spelling", Some("hermes")),
        ("--tool-choice", Some("none")),
        ("--one-tool-call", None),
    ] {
        let given: Vec<&str> = [flag].into_iter().chain(value).collect();
        for grammar in [&["-g", "json"][..], &["--schema", "s.json"], &["-r", "a"], &[]] {
            let arguments = [&["generate", "-m", "model"], grammar, &given].concat();
            refused(folder, &arguments, &[flag, "--tools FILE"]);
        }
        refused(folder, &[&["mask", "-m", "model", "-g", "json"], &given[..]].concat(), &[flag]);
        refused(folder, &[&["check", "-g", "json", "-"], &given[..]].concat(), &[flag]);
    }
}

#[test]
fn flags_about_grammars_need_them() {
    let folder = folder();
    let folder = folder.path();
    let generate = ["generate", "-m", "model"];
    let few = [&["-k", "2"][..], &["--terminals", "written"], &["--reasoning", "open"]];
    for flags in few.into_iter().chain([&["--lookahead", "infinite"][..]]) {
        refused(folder, &[&generate[..], flags].concat(), &["needs a grammar"]);
    }
    refused(folder, &["explain", "-m", "model", "-o", "a.html", "-k", "2"], &["--lookahead needs a grammar"]);
    std::fs::write(folder.join("tools.json"), "[]").unwrap();
    for grammar in [&["-r", "a"][..], &["--tools", "tools.json", "--tool-spelling", "hermes"]] {
        refused(folder, &[&generate[..], grammar, &["--syntax", "gbnf"]].concat(), &["--syntax is for"]);
    }
    // A grammar of the program is in one notation, and that may be said.
    refused(folder, &["check", "-g", "json", "--syntax", "lark", "-"], &["is GBNF, not Lark"]);
    std::fs::write(folder.join("one"), "1").unwrap();
    assert_eq!(run(folder, &["check", "-g", "rfc8259", "--syntax", "gbnf", "one"]).code, Some(0));
}

#[test]
fn flags_that_change_nothing_are_warned_of() {
    let folder = folder();
    let folder = folder.path();
    let generate = |flags: &[&str]| {
        let run = run(folder, &[&["generate", "-m", "model", "-r", "yes|no"], flags].concat());
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        run.stderr
    };
    for (flags, flag) in [
        (&["-t", "0", "--top-k", "3"][..], "--top-k"),
        (&["-t", "0", "--top-p", "0.5"], "--top-p"),
        (&["-t", "0", "--min-p", "0.1"], "--min-p"),
        (&["--repeat-last-n", "9"], "--repeat-last-n"),
    ] {
        assert!(generate(flags).contains(&format!("warning: {flag} changes nothing")), "{flags:?}");
    }
    for flags in [&["--top-k", "3"][..], &["--repeat-last-n", "9", "--repeat-penalty", "1.1"], &["-t", "0"]] {
        assert!(!generate(flags).contains("changes nothing"), "{flags:?}");
    }
}

//! Programs as methods, played by scripts of a shell.

use std::path::Path;

use super::{tests::made_with, *};
use crate::experiment::{End, Others, Row};

/// Formats an error with its causes.
fn told(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| error.source());
    causes.fold(error.to_string(), |all, cause| format!("{all}: {cause}"))
}

/// Makes all rows of a definition with one program that runs `script`.
fn made(script: &str, grammar: bool, folder: &Path) -> Result<Vec<Row>, ExperimentError> {
    let definition = format!(
        "name = \"p\"\ngrammars = [\"small\"]\nprompts = [\"A: \"]\nmax_tokens = 24\nseeds = [0, 1]\n\
         methods = [\"unconstrained\", \"other\"]\n\
         programs.other = {{ command = [\"sh\", \"-c\", '''{script}'''], grammar = {grammar} }}"
    );
    let programs = Programs::new(folder.to_owned(), vec!["model".into()], 3);
    made_with(&definition, &folder.join("out"), Others { programs: Some(&programs), ..Others::default() })
}

/// Writes a script that answers with fixed lines and keeps the requests in a file.
fn script(folder: &Path, text: &str) -> String {
    let asked = folder.join("asked");
    format!(
        "read -r job; printf '%s\\n' \"$job\" > {asked}; echo '{{\"compile_seconds\": 0.5}}'\n\
         while read -r text; do printf '%s\\n' \"$text\" >> {asked}; echo '{text}'; done",
        asked = asked.display()
    )
}

#[test]
fn a_program_writes_texts() {
    let folder = tempfile::tempdir().unwrap();
    // In the byte-level vocabulary of the test, bytes are tokens.
    let text = r#"{"tokens": [123, 125], "finish": "stop", "seconds": 0.25, "first_seconds": 0.125}"#;
    let rows = made(&script(folder.path(), text), true, folder.path()).unwrap();
    let others: Vec<&Row> = rows.iter().filter(|row| row.run.method == "other").collect();
    assert_eq!(others.len(), 2);
    for row in others {
        assert_eq!((row.tokens.len(), row.finish, row.run.k), (2, End::Stop, Some(K::Infinite)));
        assert_eq!((row.seconds, row.first_seconds), (0.25, 0.125));
        assert_eq!((row.compile_seconds, row.passes, row.interventions), (Some(0.5), 3, None));
        assert!(row.nll.is_some());
    }
    let asked = std::fs::read_to_string(folder.path().join("asked")).unwrap();
    let lines: Vec<serde_json::Value> =
        asked.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // The job, the run that is not counted, and two texts.
    assert_eq!(lines.len(), 4);
    assert_eq!((&lines[0]["model"], &lines[0]["threads"]), (&"model".into(), &3.into()));
    assert!(lines[0]["grammar"]["texts"]["gbnf"].as_str().unwrap().starts_with("root"));
    assert_eq!((&lines[2]["max_tokens"], &lines[2]["seed"]), (&24.into(), &0.into()));
    assert_eq!((&lines[3]["seed"], &lines[3]["temperature"]), (&1.into(), &1.0.into()));
    assert!(!lines[3]["prompt"].as_array().unwrap().is_empty());
}

#[test]
fn texts_outside_the_language_are_recorded_and_the_run_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"{"tokens": [65], "finish": "length", "seconds": 0.25, "first_seconds": 0.125, "passes": 1,
        "interventions": 1}"#;
    let text = &text.replace('\n', " ");
    let rows = made(&script(folder.path(), text), true, folder.path()).unwrap();
    let others: Vec<&Row> = rows.iter().filter(|row| row.run.method == "other").collect();
    assert!(!others.is_empty());
    for row in others {
        assert_eq!((row.prefix, row.well_formed, row.log_kept), (false, false, None));
        assert_eq!((row.interventions, row.passes), (Some(1), 1));
    }
    // Without a grammar nothing is asked of it.
    let free = tempfile::tempdir().unwrap();
    let rows = made(&script(free.path(), text), false, free.path()).unwrap();
    assert!(rows.iter().all(|row| row.run.k.is_none()));
    let asked = std::fs::read_to_string(free.path().join("asked")).unwrap();
    assert!(asked.starts_with(r#"{"model":"model","threads":3,"grammar":null}"#), "{asked}");
}

#[test]
fn a_program_that_fails_is_an_error_with_its_message() {
    let broken = r#"echo "{}"; read text; echo "{\"tokens\": [-1]}""#;
    for (script, says) in [
        ("exit 3", "it ended early, with exit status: 3"),
        (r#"echo "{\"error\": \"no such model\"}""#, "no such model"),
        ("echo hello", "it answered \"hello\""),
        (broken, "it answered"),
        (r#"echo "{}""#, "it ended early"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let script = format!("read job; {script}; read end");
        let error = made(&script.replace("exit 3; read end", "exit 3"), true, folder.path()).unwrap_err();
        assert!(told(&error).contains(says), "{script}: {}", told(&error));
    }
    let text = r#"{"tokens": [100000], "finish": "stop", "seconds": 0.25, "first_seconds": 0.125}"#;
    let folder = tempfile::tempdir().unwrap();
    let error = made(&script(folder.path(), text), true, folder.path()).unwrap_err();
    assert!(told(&error).contains("the token 100000"), "{}", told(&error));
    let missing = "name = \"p\"\ngrammars = [\"small\"]\nprompts = [\"A\"]\nmethods = [\"other\"]\n\
        programs.other.command = [\"./not-there\"]";
    let programs = Programs::new(folder.path().to_owned(), Vec::new(), 1);
    let others = Others { programs: Some(&programs), ..Others::default() };
    let error = made_with(missing, &folder.path().join("none"), others).unwrap_err();
    assert!(error.to_string().contains("cannot start") && error.is_bad_input(), "{error}");
    let error = made_with(missing, &folder.path().join("no"), Others::default()).unwrap_err();
    assert!(matches!(error, ExperimentError::NoPrograms(_)) && error.hint().is_some(), "{error}");
}

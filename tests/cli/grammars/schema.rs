//! JSON Schemas on the command line.

use crate::support::program::{domino, last_line};

#[test]
fn schemas_take_options_per_row() {
    let schema = r#"{"type": "object", "properties": {"a": {"type": "integer"}, "b": {"enum": ["x"]}}}"#;
    let row = |text: &str, options: &[(&str, serde_json::Value)]| {
        let mut row =
            serde_json::json!({ "id": 1, "syntax": "json_schema", "grammar": schema, "text": text });
        for (key, value) in options {
            row[*key] = value.clone();
        }
        row.to_string()
    };
    let unique = r#"{"type": "array", "contains": {"const": "a"}, "maxContains": 2, "uniqueItems": true}"#;
    let lenient = serde_json::json!({
        "id": 2, "syntax": "json_schema", "grammar": unique, "text": "[\"a\", \"a\"]", "lenient": true,
    });
    let lines = [
        row(r#"{"b": "x", "a": 1}"#, &[]),
        row(r#"{"b": "x", "a": 1}"#, &[("order", "schema".into())]),
        row(" {} ", &[]),
        row(" {} ", &[("whitespace", "compact".into())]),
        row(r#"{"a": 1, "c": 2}"#, &[("closed", true.into())]),
        row("{}", &[("whitespace", "loose".into())]),
        lenient.to_string(),
    ];
    let run = domino(&["check", "--batch"], lines.join("\n").as_bytes());
    let answers: Vec<serde_json::Value> =
        run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let accepted: Vec<_> = answers.iter().map(|answer| answer["accepted"].as_bool()).collect();
    assert_eq!(
        accepted,
        [Some(true), Some(false), Some(true), Some(false), Some(false), None, Some(true)],
        "{answers:?}"
    );
    assert_eq!(answers[6]["relaxed"][0]["keyword"], "uniqueItems");
}

#[test]
fn files_of_schemas_are_known_by_their_ending() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("person.schema.json");
    std::fs::write(&path, r#"{"type": "object", "properties": {"name": {"type": "string"}}}"#).unwrap();
    let path = path.to_str().unwrap();
    let good = domino(&["check", "--grammar", path, "-"], br#" {"age": 3, "name": "x"} "#);
    assert_eq!(good.code, Some(0), "{}", good.stderr);
    let bad = domino(&["check", "--json", "--grammar", path, "--order", "schema", "-"], br#"{"name": 3}"#);
    assert_eq!(bad.code, Some(1), "{}", bad.stderr);
    let flag = domino(&["check", "--grammar", "json", "--closed", "-"], b"{}");
    assert_eq!(flag.code, Some(2), "{}", flag.stderr);
    std::fs::write(folder.path().join("wrong.json"), r#"{"type": "text"}"#).unwrap();
    let wrong = folder.path().join("wrong.json");
    let wrong = domino(&["check", "--grammar", wrong.to_str().unwrap(), "-"], b"{}");
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.contains("#: `type`"), "{}", wrong.stderr);
}

/// Writes a schema to a file with this ending.
fn file_of(schema: &str, ending: &str) -> tempfile::NamedTempFile {
    let file = tempfile::Builder::new().suffix(ending).tempfile().unwrap();
    std::fs::write(file.path(), schema).unwrap();
    file
}

const PET: &str = r##"{
    "type": "object", "required": ["name"], "additionalProperties": false,
    "properties": {
        "name": {"type": "string", "pattern": "^[a-z]{1,40}$"},
        "legs": {"enum": [2, 4]},
        "tags": {"type": "array", "items": {"$ref": "#/properties/name"}, "maxItems": 3}
    }
}"##;

/// Every command that takes a grammar takes a schema, by the ending of its file or by `--syntax`.
#[test]
fn all_commands_take_schemas() {
    let tokenizer = concat!(env!("DOMINO_ROOT"), "/models/domino-small/tokenizer.json");
    let folder = tempfile::tempdir().unwrap();
    let trees = folder.path().join("pet.trees");
    let rows = folder.path().join("rows.json");
    let text = r#"{"name": "rex"}"#;
    // The longest token first: no tokenizer's choice, but tokens of the text.
    let vocabulary = domino::Vocabulary::from_tokenizer_file(tokenizer).unwrap();
    let (mut tokens, mut rest) = (Vec::new(), text.as_bytes());
    while !rest.is_empty() {
        let fits = vocabulary.text_tokens().filter(|(_, bytes)| rest.starts_with(bytes));
        let (token, bytes) = fits.max_by_key(|(_, bytes)| bytes.len()).unwrap();
        tokens.push(token.raw());
        rest = &rest[bytes.len()..];
    }
    let eos = vocabulary.end_of_text()[0].raw();
    let trace = serde_json::json!({ "text": text, "tokens": tokens });
    let traces = serde_json::json!({ "grammar": "pet", "vocab": "small", "eos": eos, "traces": [trace] });
    std::fs::write(&rows, traces.to_string()).unwrap();
    let cell = folder.path().join("cell.json");
    for (ending, more) in [
        (".schema.json", &[][..]),
        (".json", &[]),
        (".txt", &["--syntax", "json_schema"]),
        (".txt", &["--syntax", "json-schema"]),
    ] {
        let file = file_of(PET, ending);
        let run = |arguments: &[&str], input: &str| {
            let grammar = ["--grammar", file.path().to_str().unwrap()];
            domino(&[&arguments[..1], &grammar, more, &arguments[1..]].concat(), input.as_bytes())
        };
        let good = |arguments: &[&str], input: &str| {
            let run = run(arguments, input);
            assert_eq!(run.code, Some(0), "{arguments:?} {ending}: {} {}", run.stdout, run.stderr);
            run
        };
        good(&["check", "-"], r#"{"legs": 4, "name": "rex"}"#);
        assert_eq!(run(&["check", "-"], r#"{"name": "Rex"}"#).code, Some(1));
        let mask = good(&["mask", "--json", "--tokenizer", tokenizer, "--text", "{\"name\": \"r"], "");
        assert!(last_line(&mask)["count"].as_u64() > Some(0), "{}", mask.stdout);
        good(&["inspect", "rules"], "");
        good(&["compile", "--tokenizer", tokenizer, "--out", trees.to_str().unwrap()], "");
        let cell = ["--tokenizer", tokenizer, rows.to_str().unwrap(), "--out", cell.to_str().unwrap()];
        good(&[&["trace"][..], &cell].concat(), "");
    }
}

/// `generate` and `learn` need a model.
#[test]
fn models_write_and_learn_instances() {
    let model = ["-m", concat!(env!("DOMINO_ROOT"), "/models/domino-small")];
    let file = file_of(PET, ".schema.json");
    let grammar = ["--grammar", file.path().to_str().unwrap(), "--whitespace", "compact"];
    let asked = ["-p", "A pet: ", "-n", "60", "--seed", "1", "--json"];
    let run = domino(&[&["generate"], &model[..], &grammar, &asked].concat(), b"");
    let text = last_line(&run)["text"].as_str().unwrap().to_owned();
    let check = domino(&[&["check"], &grammar[..], &["--prefix", "-"]].concat(), text.as_bytes());
    assert_eq!(check.code, Some(0), "{text}");
    let prior = file.path().with_extension("prior");
    let learn = ["-p", "A pet: ", "-n", "20", "--runs", "1", "--out", prior.to_str().unwrap()];
    let run = domino(&[&["learn"], &model[..], &grammar, &learn].concat(), b"");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    std::fs::remove_file(prior).unwrap();
}

/// `generate` says once which objects take any keys, and what forbids that; `check` does not.
#[test]
fn open_objects_are_named() {
    let model = concat!(env!("DOMINO_ROOT"), "/models/domino-small");
    let said = |schema: &str, flags: &[&str]| {
        let file = file_of(schema, ".json");
        let grammar = ["--grammar", file.path().to_str().unwrap()];
        let write = ["generate", "-m", model, "-p", "A pet: ", "-n", "8"];
        let run = domino(&[&write[..], &grammar, flags].concat(), b"");
        let check = domino(&[&["check"], &grammar[..], &["-"]].concat(), b"{}");
        assert!(!check.stderr.contains("any keys"), "{}", check.stderr);
        run.stderr
    };
    let one = r#"{"type": "object", "properties": {"n": {"type": "integer"}}}"#;
    let told = said(one, &[]);
    assert_eq!(told.matches("the object at # takes any keys beside those").count(), 1, "{told}");
    assert!(told.contains("--closed"), "{told}");
    let two = r#"{"properties": {"a": {"properties": {"b": true}}, "c": {"properties": {}}}}"#;
    assert!(said(two, &[]).contains("the objects at #, #/properties/a take any keys"), "{}", said(two, &[]));
    for (schema, flags) in [
        (one, &["--closed"][..]),
        (one, &["--quiet"]),
        (r#"{"properties": {"n": true}, "additionalProperties": true}"#, &[]),
        (r#"{"properties": {"n": true}, "additionalProperties": false}"#, &[]),
        (r#"{"allOf": [{"properties": {"n": true}}], "unevaluatedProperties": false}"#, &[]),
        (PET, &[]),
    ] {
        assert!(!said(schema, flags).contains("any keys"), "{schema} {flags:?}");
    }
}

#[test]
fn batches_take_options_as_flags() {
    let text = r#"{"legs": 2, "name": "a"}"#;
    let row = serde_json::json!({ "id": 1, "syntax": "json_schema", "grammar": PET, "text": text });
    let mut free = row.clone();
    free["order"] = "any".into();
    let lines = format!("{row}\n{free}\n");
    let run = domino(&["check", "--batch", "--order", "schema"], lines.as_bytes());
    let accepted: Vec<bool> = run
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["accepted"] == true)
        .collect();
    assert_eq!(accepted, [false, true], "{} {}", run.stdout, run.stderr);
}

#[test]
fn inspect_shows_shapes_and_what_large_automata_come_from() {
    let file = file_of(PET, ".json");
    let path = file.path().to_str().unwrap();
    let found = last_line(&domino(&["inspect", "--json", "--escapes", "all", "--grammar", path], b""));
    let shapes = found["shapes"].as_array().unwrap();
    let of = |pointer: &str| {
        let set = shapes.iter().find(|set| set["pointer"] == pointer);
        set.unwrap_or_else(|| panic!("{pointer} in {shapes:?}"))["shapes"].clone()
    };
    let object =
        "an object {name: #/properties/name, legs?: #/properties/legs, tags?: #/properties/tags}, closed";
    assert_eq!(of("#"), serde_json::json!([object]));
    assert_eq!(of("#/properties/legs"), serde_json::json!(["one of 2, 4"]));
    assert_eq!(of("#/properties/name"), serde_json::json!(["a string of a language"]));
    assert_eq!(
        of("#/properties/tags"),
        serde_json::json!(["an array [then #/properties/name], at most 3 items"])
    );
    assert_eq!(found["shapes_complete"], true);
    // The pattern has most states, wherever it was made part of a larger automaton.
    let written = ["inspect", "--json", "--terminals", "written", "--escapes", "all", "--grammar", path];
    let largest = last_line(&domino(&written, b""))["largest"][0].clone();
    assert_eq!(largest["pointer"], "#/properties/name", "{largest}");
    assert_eq!(largest["keywords"], serde_json::json!(["pattern"]), "{largest}");
    let words =
        domino(&["inspect", "--terminals", "written", "--escapes", "all", "--grammar", path], b"").stdout;
    assert!(words.contains(object) && words.contains("#/properties/name (pattern)"), "{words}");
    let few = last_line(&domino(
        &["inspect", "--json", "--limit", "1", "--escapes", "all", "--grammar", path],
        b"",
    ));
    assert_eq!((few["shapes"].as_array().unwrap().len(), &few["shapes_complete"]), (1, &false.into()));
}

/// The template of a schema without a prior is guessed by default, which changes no token.
#[test]
fn templates_are_drafted_by_default() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("person.schema.json");
    let schema = r#"{"type": "object", "required": ["kind of person", "age"], "additionalProperties": false,
        "properties": {"kind of person": {"const": "a person of the town"}, "age": {"type": "integer"}}}"#;
    std::fs::write(&path, schema).unwrap();
    let generate = |more: &[&str]| {
        let model = concat!(env!("DOMINO_ROOT"), "/models/domino-small");
        let flags = ["generate", "--json", "-m", model, "-p", "A person: ", "-n", "40", "--seed", "3"];
        let grammar = ["-g", path.to_str().unwrap(), "--escapes", "minimal", "--whitespace", "compact"];
        last_line(&domino(&[&flags, &grammar[..], more].concat(), b""))
    };
    let (plain, found) = (generate(&["--speculate", "off"]), generate(&[]));
    assert!(plain["drafted"].is_null() && plain["tokens"].as_u64() > Some(10), "{plain}");
    assert_eq!(found["token_ids"], plain["token_ids"]);
    assert!(found["drafted"].is_u64() && found["prior"].is_null(), "{found}");
    // Whether drafts pay hangs on how busy the machine is; drafts of a fixed length are made all the same.
    let fixed = generate(&["--speculate", "8"]);
    let drafted = fixed["drafted"].as_u64().unwrap();
    assert!(drafted > 0 && fixed["accepted"].as_u64().unwrap() <= drafted, "{fixed}");
    assert_eq!(fixed["token_ids"], plain["token_ids"]);
    let count = |key: &str| found[key].as_u64().unwrap();
    // All but the digits.
    let text = found["text"].as_str().unwrap();
    let digits = text.bytes().filter(|byte| byte.is_ascii_digit() || *byte == b'-').count() as u64;
    assert!(count("forced_bytes") + digits + 3 >= text.len() as u64, "{found}");
    assert!((0.5..=1.0).contains(&found["forced_share"].as_f64().unwrap()), "{found}");
    assert_eq!(found["forced_bytes"], plain["forced_bytes"]);
}

//! Definitions and records of experiments: those of the repository can be read, and messages about them are
//! true.

use std::path::Path;

use domino::experiment::{Definition, WarmUpPrompts};

use crate::support::records;

/// Files of a folder with this ending.
fn files(folder: &Path, ending: &str) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|found| found == ending)).collect()
}

/// Definitions for real models are whole and quick, and no method of the repository's definitions warms up on
/// what is measured.
#[test]
fn no_definition_warms_up_on_measured_prompts() {
    let root = Path::new(env!("DOMINO_ROOT"));
    let grammar = |name: &str| {
        let path = root.join("grammars").join(name).with_extension("gbnf");
        path.exists().then_some("root ::= \"a\"")
    };
    let folder = root.join("experiments/definitions");
    let mut all = files(&folder.join("real"), "toml");
    all.extend(files(&folder.join("evidence"), "toml"));
    assert!(all.len() >= 14, "{all:?}");
    for path in all.iter().chain(&files(&folder, "toml")) {
        let whole = Definition::read(path, false, &grammar).unwrap();
        let quick = Definition::read(path, true, &grammar).unwrap();
        assert_eq!(Some(&*whole.name), path.file_stem().and_then(|name| name.to_str()));
        assert!(quick.runs() < whole.runs() && !whole.about.is_empty(), "{}", path.display());
        for definition in [&whole, &quick] {
            assert_eq!(definition.warm_up_prompts, WarmUpPrompts::Apart, "{}", path.display());
            for task in &definition.tasks {
                let seen = task.prompts.iter().find(|prompt| task.warm_up_prompts.contains(&prompt.text));
                assert_eq!(seen, None, "{} {}", path.display(), task.name);
            }
        }
    }
}

/// Records that were made before warm-ups had prompts of their own say so beside their tables.
#[test]
fn records_of_old_warm_ups_say_so_beside_their_tables() {
    let root = Path::new(env!("DOMINO_ROOT")).join("experiments/records");
    let learns = ["paper", "ours", "draft_model-joint", "mistralrs-drafts"];
    let mut corrected = 0;
    for entry in std::fs::read_dir(root).unwrap() {
        let folder = entry.unwrap().path();
        let Some(data) = records::data(&folder) else { return };
        let Ok(header) = std::fs::read_to_string(data.path().join("header.json")) else { continue };
        let header: serde_json::Value = serde_json::from_str(&header).unwrap();
        let definition = &header["definition"];
        let methods = definition["methods"].as_array().unwrap();
        let learns_from_texts = methods
            .iter()
            .filter_map(|name| name.as_str())
            .any(|name| learns.contains(&name) || name.starts_with("paper+") || name.starts_with("ours-"));
        if !learns_from_texts || definition.get("warm_up_prompts").is_some() {
            continue;
        }
        let greedy = definition["temperatures"].as_array().unwrap().iter().any(|at| at.as_f64() == Some(0.0));
        let text = std::fs::read_to_string(folder.join("tables.md")).unwrap();
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("Correction: warm-ups went on from the measured prompts"), "{folder:?}");
        assert_eq!(words.contains("the very texts that were learnt from"), greedy, "{folder:?}");
        corrected += 1;
    }
    assert!(corrected >= 8, "{corrected}");
}

/// Resumed runs have one beginning, their tables are named at the end, and their tables have neither absolute
/// paths nor dashes for missing data.
#[test]
fn records_of_a_resumed_run_read_as_one_run() {
    use crate::support::{program::domino_in, random_model::write_model};

    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("deep/model");
    std::fs::create_dir_all(&model).unwrap();
    write_model(&model);
    let definition = format!(
        "name = \"on\"\nmodels = [{:?}]\ngrammars = [{{ name = \"words\", file = \"words.gbnf\" }}]\n\
         methods = [\"unconstrained\", \"masks\", \"paper\"]\nprompts = [\"A: \", \"B: \"]\nmax_tokens = 8\n\
         warm_ups = 1\n",
        model.display().to_string()
    );
    std::fs::write(folder.path().join("words.gbnf"), "root ::= [a-z]+ \".\"").unwrap();
    let path = folder.path().join("d.toml");
    std::fs::write(&path, definition).unwrap();
    let run = || {
        let path = path.display().to_string();
        let run = domino_in(folder.path(), &["experiment", &path, "--out", "out"], b"");
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        assert!(run.stderr.contains("tables and figures: out/tables.md"), "{}", run.stderr);
    };
    let read = |name: &str| std::fs::read_to_string(folder.path().join("out").join(name)).unwrap();
    run();
    // The header now says that the run began another day, and stopped.
    let header = read("header.json");
    let begun =
        serde_json::from_str::<serde_json::Value>(&header).unwrap()["begun"].as_str().unwrap().to_owned();
    std::fs::write(folder.path().join("out/header.json"), header.replace(&begun, "2001-02-03T04:05:06Z"))
        .unwrap();
    let rows = read("rows.jsonl");
    std::fs::write(folder.path().join("out/rows.jsonl"), rows.split_inclusive('\n').next().unwrap()).unwrap();
    run();
    let text = read("tables.md");
    assert!(text.contains("begun 2001-02-03T04:05:06Z") && !text.contains(&begun));
    assert!(!text.contains(&folder.path().display().to_string()), "tables.md has an absolute path");
    for table in ["rows.csv", "summary.csv", "tables/texts.csv", "tables/throughput.csv"] {
        let text = read(table);
        assert!(!text.contains(&folder.path().display().to_string()), "{table} has an absolute path");
        assert!(
            !text.lines().skip(1).any(|line| line.split(',').any(|cell| cell == "-")),
            "{table}:\n{text}"
        );
        let head = text.lines().next().unwrap();
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == ',';
        assert!(head.chars().all(plain), "{table}: {head}");
    }
    assert!(read("summary.csv").contains("\r\nmodel,words,"), "{}", read("summary.csv"));
    assert!(read("summary.md").contains("(-)") && read("tables.md").contains("Intervals: none"));
}

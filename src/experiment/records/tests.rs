//! Records stay whatever happens, and are not mixed.

use super::{super::row::tests::example, *};
use crate::experiment::header::tests::example as example_header;

fn rows() -> Vec<Row> {
    (0..5).map(|prompt| example("masks", prompt, 7)).collect()
}

/// Creates a header whose definition has those rows.
fn header() -> Header {
    let text = "name = \"made-up\"\nmodels = [\"small\"]\ngrammars = [\"json\"]\n\
        methods = [\"masks\"]\nseeds = [7]\n\
        prompts = [\"a\", \"b\", \"c\", \"d\", \"e\"]";
    let grammar = |_: &str| Some("root ::= \"{}\"");
    let definition = Definition::parse(text, "", Path::new(""), false, &grammar).unwrap();
    Header { definition: definition.to_json(), ..example_header() }
}

fn filled(folder: &Path, rows: &[Row]) {
    let mut records = Records::open(folder, &header()).unwrap();
    rows.iter().for_each(|row| records.append(row).unwrap());
}

#[test]
fn rows_stay_wherever_the_last_line_was_cut() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("a/b");
    let rows = rows();
    filled(&folder, &rows);
    assert_eq!(read(&folder).unwrap(), (header(), rows.clone()));
    let file = folder.join(ROWS);
    let whole = std::fs::read(&file).unwrap();
    let last = whole[..whole.len() - 1].iter().rposition(|&byte| byte == b'\n').unwrap() + 1;
    for cut in last..whole.len() {
        std::fs::write(&file, &whole[..cut]).unwrap();
        assert_eq!(read(&folder).unwrap().1.len(), 4, "{cut}");
        let mut records = Records::open(&folder, &header()).unwrap();
        assert!(records.has(&rows[3].run.key()) && !records.has(&rows[4].run.key()));
        records.append(&rows[4]).unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), whole, "{cut}");
    }
}

#[test]
fn records_of_another_experiment_are_not_continued() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path(), &rows());
    let mut other = header();
    other.commit = Some("facade".to_owned());
    let error = Records::open(folder.path(), &other).unwrap_err();
    assert!(error.to_string().contains("the commit is c0ffee there, facade here"), "{error}");
    // Nothing was touched.
    assert_eq!(read(folder.path()).unwrap(), (header(), rows()));
    let full = tempfile::tempdir().unwrap();
    std::fs::write(full.path().join("thesis.txt"), "words").unwrap();
    let error = Records::open(full.path(), &header()).unwrap_err();
    assert!(matches!(error, ExperimentError::Damaged { .. }), "{error}");
    assert_eq!(std::fs::read_dir(full.path()).unwrap().count(), 1);
}

/// A process may be killed at any moment before there is a header.
#[test]
fn a_folder_without_a_header_is_begun_anew() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(LOCK), "").unwrap();
    std::fs::write(folder.path().join(".header.json.12-0-99.part"), "{").unwrap();
    filled(folder.path(), &rows());
    assert_eq!(read(folder.path()).unwrap(), (header(), rows()));
}

#[test]
fn a_folder_is_locked_against_a_second_writer() {
    let folder = tempfile::tempdir().unwrap();
    let first = Records::open(folder.path(), &header()).unwrap();
    let second = Records::open(folder.path(), &header()).unwrap_err();
    assert!(matches!(second, ExperimentError::Locked { .. }), "{second}");
    drop(first);
    assert!(Records::open(folder.path(), &header()).is_ok());
}

#[test]
fn damaged_lines_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let rows = rows();
    filled(folder.path(), &rows);
    let file = folder.path().join(ROWS);
    let whole = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, whole.replacen("\"prompt\":1", "\"prompt\":x", 1)).unwrap();
    let error = Records::open(folder.path(), &header()).unwrap_err().to_string();
    assert!(error.contains("rows.jsonl: line 2: "), "{error}");
    std::fs::write(&file, format!("{whole}{}\n", whole.lines().next().unwrap())).unwrap();
    let error = read(folder.path()).unwrap_err().to_string();
    assert!(error.contains("line 6: a run that was there before"), "{error}");
    std::fs::write(folder.path().join(HEADER), "{").unwrap();
    assert!(read(folder.path()).unwrap_err().to_string().contains("header.json"));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_that_names_the_file() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(HEADER), serde_json::to_string(&header()).unwrap()).unwrap();
    let mut records = Records::open(folder.path(), &header()).unwrap();
    records.append(&rows()[0]).unwrap();
    // A device that is always full in place of the file.
    records.rows = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let error = records.append(&rows()[1]).unwrap_err();
    assert!(
        error.to_string().contains("rows.jsonl") && error.hint().unwrap().contains("disk is full"),
        "{error}"
    );
    assert!(!records.has(&rows()[1].run.key()));
    assert_eq!(read(folder.path()).unwrap().1, rows()[..1]);
}

#[test]
fn tables_have_a_cell_for_each_value() {
    let mut row = example("masks", 0, 1);
    row.text = "a \"b\",\nc".to_owned();
    row.run.k = None;
    let table = csv(&[row]);
    let (head, line) = table.split_once("\r\n").unwrap();
    assert!(head.starts_with("definition,model,grammar,prompt,") && head.ends_with(",reproduced"));
    assert!(
        line.starts_with("made-up,small,json,0,1.0,1,masks,,,,,0,\"a \"\"b\"\",\nc\",3,stop,true,"),
        "{line}"
    );
    assert_eq!(csv(&[]), "");
    // Only some rows have a thought.
    let mut thinking = example("masks", 0, 2);
    (thinking.run.think, thinking.thought_tokens, thinking.answer_at) = (Some(9), Some(2), Some(1));
    let table = csv(&[example("masks", 0, 1), thinking]);
    let cells = |line: &str| line.split(',').map(str::to_owned).collect::<Vec<_>>();
    let lines: Vec<Vec<String>> = table.lines().map(cells).collect();
    assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{table}");
    let at = |head: &str| lines[0].iter().position(|name| name == head).unwrap();
    for (head, plain, behind) in [("think", "", "9"), ("thought_tokens", "", "2"), ("answer_at", "", "1")] {
        assert_eq!((&*lines[1][at(head)], &*lines[2][at(head)]), (plain, behind), "{head}");
    }
    assert_eq!(lines[0].last().map(String::as_str), Some("reproduced"));
}

#[test]
fn shards_merge_to_the_whole() {
    let base = tempfile::tempdir().unwrap();
    let rows = rows();
    let folders: Vec<PathBuf> = ["one", "two"].iter().map(|name| base.path().join(name)).collect();
    for (number, folder) in folders.iter().enumerate() {
        let mut records =
            Records::open(folder, &Header { shard: Some(format!("{}/2", number + 1)), ..header() }).unwrap();
        // Not in the order of the plan.
        let own = rows.iter().rev().enumerate().filter(|(at, _)| at % 2 == number);
        own.for_each(|(_, row)| records.append(row).unwrap());
    }
    let out = base.path().join("whole");
    assert_eq!(merge(&folders, &out).unwrap(), rows);
    assert_eq!(read(&out).unwrap(), (header(), rows.clone()));
    let refused =
        |folders: &[PathBuf], out: &str| merge(folders, &base.path().join(out)).unwrap_err().to_string();
    assert!(refused(&folders, "whole").contains("not empty"));
    assert!(refused(&folders[..1], "x").contains("2 of 5 runs are missing"));
    assert!(refused(&[], "x").contains("no folder"));
    let twice = [folders[0].clone(), folders[0].clone()];
    assert!(refused(&twice, "x").contains("another folder has too"));
    let other = base.path().join("three");
    drop(Records::open(&other, &Header { commit: None, ..header() }).unwrap());
    assert!(refused(&[folders[0].clone(), other], "x").contains("the commit is c0ffee there, unknown here"));
    let mut records =
        Records::open(&folders[0], &Header { shard: Some("1/2".to_owned()), ..header() }).unwrap();
    records.append(&example("masks", 0, 8)).unwrap();
    drop(records);
    assert!(refused(&folders, "x").contains("not of the definition: small json 0 1 8 masks"));
    assert!(!base.path().join("x").exists());
}

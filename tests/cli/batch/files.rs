//! `--out FILE`: answers in the file stay and are not made again, and no other file is overwritten.

use std::{fs, path::Path};

use serde_json::{Value, json};

use super::by_id;
use crate::support::{
    program::{Run, domino},
    random_model::write_model,
};

fn write(rows: &Path, out: &Path, model: &Path, flags: &[&str]) -> Run {
    let [rows, out, model] = [rows, out, model].map(|path| path.to_str().unwrap());
    let usual = ["generate", "-m", model, "-r", "[a-z]{6}", "--batch", rows, "--out", out];
    domino(&[&usual, flags].concat(), b"")
}

fn lines(rows: &[Value]) -> String {
    rows.iter().map(|row| format!("{row}\n")).collect()
}

/// The text or the error of each answer in a file.
fn told(file: &Path) -> Vec<(String, Value)> {
    let of = |(id, answer): (String, Value)| (id, json!([answer["text"], answer["error"]]));
    by_id(&fs::read_to_string(file).unwrap()).into_iter().map(of).collect()
}

#[test]
fn answers_in_the_file_are_not_made_again() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    let [rows, out] = ["rows.jsonl", "out.jsonl"].map(|name| folder.path().join(name));
    let all = [
        json!({"id": "a", "seed": 1}),
        json!({"id": "b", "seed": 2, "n": 2}),
        json!({"id": "c", "colour": 1}),
        json!({"id": "d", "seed": 4}),
        json!({"seed": 5}),
    ];
    fs::write(&rows, lines(&all)).unwrap();
    let run = write(&rows, &out, folder.path(), &[]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{}", run.stderr);
    assert!(
        run.stderr.contains("[done; 5 texts, 1 failed, ") && run.stderr.lines().count() == 1,
        "{}",
        run.stderr
    );
    let whole = told(&out);
    let content = fs::read_to_string(&out).unwrap();
    assert_eq!(content.lines().count(), 6);
    // A second run makes nothing, and still reports that a row failed.
    let run = write(&rows, &out, folder.path(), &[]);
    assert_eq!(run.code, Some(1));
    assert!(
        run.stderr.contains("0 texts, 1 failed, 1 of them in an earlier run, 6 there before"),
        "{}",
        run.stderr
    );
    assert_eq!(fs::read_to_string(&out).unwrap(), content);
    // Every beginning of the file, cut at a line or in the midst of one, becomes the same file.
    let ends: Vec<usize> = content.match_indices('\n').map(|(at, _)| at + 1).collect();
    for cut in [0, 1, 5, 8, ends[0], ends[0] + 3, ends[2] - 1, ends[3], ends[4] + 40] {
        fs::write(&out, &content[..cut]).unwrap();
        let run = write(&rows, &out, folder.path(), &["--parallel", "2"]);
        assert_eq!(told(&out), whole, "cut at {cut}");
        let is_whole = cut == 0 || content[..cut].ends_with('\n');
        assert_eq!(run.stderr.contains("written only in part"), !is_whole, "{cut}: {}", run.stderr);
        let there = content[..cut].matches('\n').count();
        assert_eq!(run.stderr.contains(&format!("{there} there before")), there > 0, "{}", run.stderr);
    }
    // A row that was mended and whose line was taken out is made.
    let kept: String =
        content.lines().filter(|line| !line.contains("error")).map(|line| format!("{line}\n")).collect();
    fs::write(&out, kept).unwrap();
    fs::write(&rows, lines(&all).replace("colour", "seed")).unwrap();
    assert_eq!(write(&rows, &out, folder.path(), &[]).code, Some(0));
    assert_eq!(told(&out).len(), 6);
}

#[test]
fn rows_with_the_same_id_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    let [rows, out] = ["rows.jsonl", "out.jsonl"].map(|name| folder.path().join(name));
    for (all, first, second) in [
        ([json!({"id": 1}), json!({"id": 7}), json!({"id": 1})], 1, 3),
        ([json!({"id": "x"}), json!({"id": "x", "n": 2}), json!({"id": 3})], 1, 2),
        ([json!({"id": 3}), json!({"id": 2.5}), json!({})], 1, 3),
        ([json!({"id": 5}), json!({"id": [1]}), json!({"id": [1], "seed": 1})], 2, 3),
        ([json!({"id": {"a": 1}}), json!({"id": {"a": 1}}), json!({"id": "y"})], 1, 2),
    ] {
        fs::write(&rows, lines(&all)).unwrap();
        let run = write(&rows, &out, folder.path(), &[]);
        assert_eq!(run.code, Some(2), "{}", run.stderr);
        assert!(
            run.stderr.contains(&format!("lines {first} and {second} have the same id")),
            "{}",
            run.stderr
        );
        assert!(!out.exists(), "nothing was begun");
        // Faults in a pipe are found on the way: the later row is reported, and the others are made.
        let [out, model] = [&out, folder.path()].map(|path| path.to_str().unwrap());
        let usual = ["generate", "-m", model, "-r", "[a-z]{6}", "--batch", "-"];
        let run = domino(&[&usual[..], &["--out", out]].concat(), lines(&all).as_bytes());
        assert_eq!(run.code, Some(1), "{}", run.stderr);
        assert!(
            run.stderr.contains(&format!("lines {first} and {second} have the same id")),
            "{}",
            run.stderr
        );
        told(Path::new(out));
        fs::remove_file(out).unwrap();
        let run = domino(&usual, lines(&all).as_bytes());
        let refused =
            |answer: &Value| answer["error"].as_str().is_some_and(|error| error.contains("same id"));
        assert_eq!(super::parsed(&run.stdout).iter().filter(|answer| refused(answer)).count(), 1);
    }
    // Equal texts of other kinds are other ids.
    fs::write(&rows, lines(&[json!({"id": 1}), json!({"id": "1"}), json!({"id": [1]}), json!({"id": 1.5})]))
        .unwrap();
    assert_eq!(write(&rows, &out, folder.path(), &[]).code, Some(0));
    // Two lines of the file itself.
    let line = fs::read_to_string(&out).unwrap().lines().next().unwrap().to_owned();
    fs::write(&out, format!("{line}\n{line}\n")).unwrap();
    let run = write(&rows, &out, folder.path(), &[]);
    assert!(run.code == Some(2) && run.stderr.contains("lines 1 and 2 have the same id"), "{}", run.stderr);
}

#[test]
fn a_file_without_answers_is_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    let [rows, out] = ["rows.jsonl", "out.jsonl"].map(|name| folder.path().join(name));
    fs::write(&rows, "{\"id\": 1}\n").unwrap();
    for content in [
        "notes\n",
        "notes",
        "{\"id\": 1, \"prompt\": \"p\"}\n",
        "{\"id\": 1, \"prompt\": \"p\"}",
        "[1]\n",
        "{\"text\": \"without an id\"}\n",
        "{\"id\":1,\"text\":\"a\"}\n{\"id\": 2, \"pro",
        "\u{feff}x",
    ] {
        fs::write(&out, content).unwrap();
        let run = write(&rows, &out, folder.path(), &[]);
        assert_eq!(run.code, Some(2), "{content:?}: {}", run.stderr);
        assert!(run.stderr.contains("nothing was written"), "{content:?}: {}", run.stderr);
        assert_eq!(fs::read_to_string(&out).unwrap(), content);
    }
    let run = write(&rows, &rows, folder.path(), &[]);
    assert!(run.code == Some(2) && run.stderr.contains("the file of the rows"), "{}", run.stderr);
    assert_eq!(fs::read_to_string(&rows).unwrap(), "{\"id\": 1}\n");
    assert_eq!(write(&rows, folder.path(), folder.path(), &[]).code, Some(2));
    assert_eq!(write(&rows, &folder.path().join("no/such/out"), folder.path(), &[]).code, Some(2));
    // Two runs do not write one file.
    fs::write(&out, "").unwrap();
    let held = fs::File::open(&out).unwrap();
    held.lock().unwrap();
    let run = write(&rows, &out, folder.path(), &[]);
    assert!(run.code == Some(2) && run.stderr.contains("another run writes it"), "{}", run.stderr);
    drop(held);
    assert_eq!(write(&rows, &out, folder.path(), &[]).code, Some(0));
    #[cfg(unix)]
    assert_eq!(write(&rows, Path::new("/dev/null"), folder.path(), &[]).code, Some(0));
}

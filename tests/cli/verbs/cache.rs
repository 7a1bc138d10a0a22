//! The cache folder of the program: found, shown, shared, and never in the way.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::program::{Run, last_line, program, run};

const MODEL: &str = concat!(env!("DOMINO_ROOT"), "/models/domino-small");

/// The program with a cache in its default place.
fn with_cache() -> Command {
    let mut program = program();
    program.env_remove("DOMINO_NO_CACHE");
    program
}

fn mask(program: &mut Command) -> &mut Command {
    program.args(["mask", "--grammar", "json", "--tokenizer", MODEL, "--text", "{\"a\": "])
}

/// Asks for a mask, with the cache in `folder`.
fn cached_mask(folder: &Path) -> Run {
    let run = run(mask(&mut with_cache()).arg("--cache-dir").arg(folder), b"");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    run
}

fn uncached_mask() -> Run {
    run(mask(&mut program()), b"")
}

/// Rows of `domino cache --json`.
fn listed(folder: &Path) -> Vec<Value> {
    let run = run(with_cache().args(["cache", "--json", "--cache-dir"]).arg(folder), b"");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let object = last_line(&run);
    assert_eq!(object["folder"], folder.to_str().unwrap());
    object["files"].as_array().unwrap().clone()
}

/// The vocabulary's file in the cache.
fn vocabulary_file(folder: &Path) -> PathBuf {
    let files = listed(folder);
    let file = files.iter().find(|file| file["kind"] == "vocabulary").expect("a vocabulary");
    folder.join(file["name"].as_str().unwrap())
}

#[test]
fn cached_files_are_shown_and_cleared() {
    let folder = TempDir::new().unwrap();
    let cache = folder.path().join("new/cache");
    assert_eq!(listed(&cache), Vec::<Value>::new());
    let first = cached_mask(&cache);
    assert_eq!((&first.stdout, &*first.stderr), (&uncached_mask().stdout, ""));
    let file = vocabulary_file(&cache);
    assert!(fs::metadata(&file).unwrap().len() > 100_000);
    assert_eq!(cached_mask(&cache).stdout, first.stdout);
    fs::write(cache.join("notes.txt"), "mine").unwrap();

    let shown = run(with_cache().arg("cache").arg("--cache-dir").arg(&cache), b"");
    assert!(shown.stdout.contains("vocabulary") && shown.stdout.contains("KiB"), "{}", shown.stdout);
    let cleared = run(with_cache().args(["cache", "--clear", "--cache-dir"]).arg(&cache), b"");
    assert_eq!(cleared.code, Some(0), "{}", cleared.stderr);
    assert_eq!(listed(&cache), Vec::<Value>::new());
    assert!(!file.exists() && cache.join("notes.txt").exists());
}

#[test]
fn compiled_trees_are_cached_too() {
    let folder = TempDir::new().unwrap();
    let cache = folder.path().join("cache");
    let compile = |out: &str| {
        let run = run(
            with_cache()
                .args(["compile", "--grammar", "json", "--tokenizer", MODEL, "--out", out, "--cache-dir"])
                .arg(&cache)
                .current_dir(folder.path()),
            b"",
        );
        assert_eq!((run.code, &*run.stderr), (Some(0), ""));
        fs::read(folder.path().join(out)).unwrap()
    };
    let first = compile("first.trees");
    let kinds = |kind: &str| listed(&cache).iter().filter(|file| file["kind"] == kind).count();
    assert_eq!((kinds("vocabulary"), kinds("trees")), (1, 1));
    assert!(kinds("terminal-tables") > 0);
    assert!(compile("second.trees") == first);
    assert_eq!(cached_mask(&cache).stdout, uncached_mask().stdout);
}

#[test]
fn the_cache_folder_is_found_by_flag_variable_and_default() {
    let folder = TempDir::new().unwrap();
    let [by_flag, by_variable, by_default] =
        ["flag", "variable", "default"].map(|name| folder.path().join(name));
    let count = |folder: &Path| fs::read_dir(folder).map_or(0, Iterator::count);
    let with = |change: &dyn for<'a> Fn(&'a mut Command) -> &'a mut Command| {
        let mut program = with_cache();
        program.env("XDG_CACHE_HOME", &by_default);
        change(mask(&mut program));
        let run = run(&mut program, b"");
        assert_eq!((run.code, &*run.stderr), (Some(0), ""));
    };
    with(&|program| program.env("DOMINO_CACHE_DIR", &by_variable).arg("--no-cache"));
    with(&|program| program.env("DOMINO_NO_CACHE", "1").arg("--cache-dir").arg(&by_flag));
    assert_eq!((count(&by_flag), count(&by_variable), count(&by_default)), (0, 0, 0));
    with(&|program| program.env("DOMINO_CACHE_DIR", &by_variable).arg("--cache-dir").arg(&by_flag));
    assert_eq!((count(&by_flag), count(&by_variable), count(&by_default)), (1, 0, 0));
    with(&|program| program.env("DOMINO_CACHE_DIR", &by_variable));
    assert_eq!((count(&by_variable), count(&by_default)), (1, 0));
    if cfg!(target_os = "linux") {
        with(&|program| program.env("DOMINO_CACHE_DIR", "").env("DOMINO_NO_CACHE", "0"));
        assert_eq!(count(&by_default.join("domino")), 1);
    }
}

/// Below a file there can be no folder, not even for an administrator.
#[test]
fn a_folder_that_cannot_be_made_is_warned_of_once() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let cache = file.path().join("cache");
    let out = file.path().with_extension("trees");
    let run_one = cached_mask(&cache);
    assert_eq!(run_one.stdout, uncached_mask().stdout);
    // The warning comes once, also where many files would be kept.
    let compile = run(
        with_cache()
            .args(["compile", "--grammar", "json", "--tokenizer", MODEL, "--out"])
            .arg(&out)
            .arg("--cache-dir")
            .arg(&cache),
        b"",
    );
    assert_eq!(compile.code, Some(0));
    for stderr in [&run_one.stderr, &compile.stderr] {
        assert!(stderr.starts_with("warning: the cache folder") && stderr.lines().count() == 1, "{stderr}");
    }
    let shown = run(with_cache().arg("cache").arg("--cache-dir").arg(&cache), b"");
    assert_eq!(shown.code, Some(2));
    assert!(shown.stderr.contains("\nhint: "), "{}", shown.stderr);
    fs::remove_file(out).unwrap();
}

#[test]
fn a_damaged_file_is_warned_of_and_replaced() {
    let folder = TempDir::new().unwrap();
    let first = cached_mask(folder.path());
    let file = vocabulary_file(folder.path());
    let whole = fs::read(&file).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 3] ^= 16;
    for (content, reason) in [
        (&flipped[..], "damaged"),
        (&whole[..whole.len() / 2], "ends too early"),
        (b"", "not a file written by domino"),
    ] {
        fs::write(&file, content).unwrap();
        let again = cached_mask(folder.path());
        assert_eq!(again.stdout, first.stdout);
        let stderr = &again.stderr;
        assert!(stderr.starts_with("warning: ") && stderr.contains(reason), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        assert!(fs::read(&file).unwrap() == whole);
    }
    assert_eq!(cached_mask(folder.path()).stderr, "");
}

#[test]
fn many_processes_share_a_folder() {
    let folder = TempDir::new().unwrap();
    let cache = folder.path().join("cache");
    let trees = |number: usize| folder.path().join(format!("{number}.trees"));
    let children: Vec<_> = (0..8)
        .map(|number| {
            let mut program = with_cache();
            if number % 2 == 0 {
                mask(&mut program);
            } else {
                program
                    .args(["compile", "--grammar", "json", "--tokenizer", MODEL, "--out"])
                    .arg(trees(number));
            }
            program.arg("--cache-dir").arg(&cache).stdout(Stdio::piped()).stderr(Stdio::piped());
            program.spawn().unwrap()
        })
        .collect();
    let outputs: Vec<_> = children.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
    let expected = uncached_mask().stdout;
    for (number, output) in outputs.iter().enumerate() {
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        if number % 2 == 0 {
            assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
        } else {
            assert!(fs::read(trees(number)).unwrap() == fs::read(trees(1)).unwrap());
        }
    }
    // Every file is whole: each is read without a warning, and none is made again.
    let files = listed(&cache);
    assert!(files.iter().all(|file| file["kind"] != "unfinished"), "{files:?}");
    let stamps = || -> Vec<Vec<u8>> {
        let paths = files.iter().map(|file| cache.join(file["name"].as_str().unwrap()));
        paths.map(|path| fs::read(path).unwrap()).collect()
    };
    let before = stamps();
    let again = cached_mask(&cache);
    assert_eq!((&*again.stderr, &again.stdout), ("", &expected));
    assert!(stamps() == before);
}

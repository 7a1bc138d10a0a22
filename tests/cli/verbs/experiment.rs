//! `domino experiment` with a model of random weights: records that survive whatever happens to the program.

use std::{
    collections::HashSet,
    path::Path,
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::support::{
    program::{Run, domino_in, last_line, program},
    random_model::write_model,
};

pub(crate) const DEFINITION: &str = r#"
name = "noise"
models = ["model"]
grammars = [{ name = "words", file = "words.gbnf" }]
methods = ["unconstrained", "masks", "ours", "naive"]
prompts = ["A: ", "Another: "]
seeds = { from = 0, count = 12 }
max_tokens = 12
warm_ups = 1
warm_up_prompts = ["Warm: "]

[quick]
prompts = 1
seeds = [3]
"#;
/// Number of runs of the definition.
const RUNS: usize = 2 * 12 * 4;

/// A folder with the definition and its model.
pub(crate) fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model");
    std::fs::create_dir(&model).unwrap();
    write_model(&model);
    std::fs::write(folder.path().join("words.gbnf"), "root ::= [a-z]+ (\" \" [a-z]+)* \".\"").unwrap();
    std::fs::write(folder.path().join("d.toml"), DEFINITION).unwrap();
    folder
}

pub(crate) fn experiment(folder: &Path, arguments: &[&str]) -> Run {
    domino_in(folder, &[&["experiment"], arguments].concat(), b"")
}

fn started(folder: &Path, arguments: &[&str]) -> Child {
    let mut program = program();
    program.arg("experiment").args(arguments).current_dir(folder);
    program.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// The rows of a folder: the key of each run, and its tokens.
pub(crate) fn rows(folder: &Path) -> Vec<(String, Value)> {
    let text = std::fs::read_to_string(folder.join("rows.jsonl")).unwrap();
    let rows = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let run = |row: &Value| {
        let fields = [
            "model",
            "grammar",
            "prompt",
            "temperature",
            "seed",
            "method",
            "k",
            "s",
            "threshold",
            "warm_ups",
        ];
        fields.map(|field| row[field].to_string()).join(" ")
    };
    rows.map(|row| (run(&row), row["tokens"].clone())).collect()
}

fn sorted(mut rows: Vec<(String, Value)>) -> Vec<(String, Value)> {
    rows.sort_by(|one, other| one.0.cmp(&other.0));
    rows
}

/// Killed at twenty moments: no row is lost or there twice, and the tokens are those of an undisturbed run.
#[test]
fn a_killed_run_goes_on_without_a_row_lost_or_twice() {
    let folder = folder();
    let folder = folder.path();
    let runs = 5 * RUNS;
    std::fs::write(folder.join("d.toml"), DEFINITION.replace("count = 12", "count = 60")).unwrap();
    let begun = Instant::now();
    let whole = experiment(folder, &["d.toml", "--out", "whole", "--json"]);
    let took = begun.elapsed();
    assert_eq!(whole.code, Some(0), "{}", whole.stderr);
    let object = last_line(&whole);
    assert_eq!((object["rows"].as_u64(), object["complete"].as_bool()), (Some(runs as u64), Some(true)));
    let mut random = u64::from(std::process::id());
    let (mut before, mut cut) = (0, 0);
    for _ in 0..20 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut child = started(folder, &["d.toml", "--out", "parts"]);
        // Up to a tenth of the time of the whole, so that twenty kills allow about one whole run's work.
        std::thread::sleep(took / 10 * u32::try_from(random >> 54).unwrap() / 1024);
        cut += usize::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
        let file = folder.join("parts/rows.jsonl");
        let lines = std::fs::read_to_string(file).map_or(0, |text| text.matches('\n').count());
        assert!(lines >= before, "{before} rows have become {lines}");
        before = lines;
    }
    assert!(cut >= 10, "only {cut} runs were killed before their end");
    let last = experiment(folder, &["d.toml", "--out", "parts"]);
    assert_eq!(last.code, Some(0), "{}", last.stderr);
    let parts = rows(&folder.join("parts"));
    let keys: HashSet<&String> = parts.iter().map(|(run, _)| run).collect();
    assert_eq!((keys.len(), parts.len()), (runs, runs));
    assert_eq!(parts, rows(&folder.join("whole")));
    // A further run has nothing left to do.
    let text = std::fs::read(folder.join("parts/rows.jsonl")).unwrap();
    assert_eq!(experiment(folder, &["d.toml", "--out", "parts"]).code, Some(0));
    assert_eq!(std::fs::read(folder.join("parts/rows.jsonl")).unwrap(), text);
}

#[test]
fn shards_merge_to_what_one_machine_makes() {
    let folder = folder();
    let folder = folder.path();
    let whole = experiment(folder, &["d.toml", "--out", "whole"]);
    assert_eq!(whole.code, Some(0), "{}", whole.stderr);
    for shard in ["1/3", "2/3", "3/3"] {
        let out = shard.replace('/', "of");
        let run = experiment(folder, &["d.toml", "--shard", shard, "--out", &out]);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
    }
    let missing = experiment(folder, &["--merge", "1of3", "2of3", "--out", "merged"]);
    assert_eq!(missing.code, Some(2), "{}", missing.stderr);
    assert!(missing.stderr.contains("runs are missing"), "{}", missing.stderr);
    let merged = experiment(folder, &["--merge", "3of3", "1of3", "2of3", "--out", "merged", "--json"]);
    assert_eq!(merged.code, Some(0), "{}", merged.stderr);
    assert_eq!(rows(&folder.join("merged")), rows(&folder.join("whole")));
    assert_eq!(last_line(&merged)["rows"].as_u64(), Some(RUNS as u64));
    for file in ["header.json", "rows.csv", "summary.md", "summary.csv", "summary.json"] {
        assert!(folder.join("merged").join(file).is_file(), "{file}");
    }
}

/// The shards of an array, as the page on sweeps has them, made by processes side by side: by GNU parallel
/// where it is installed, and by `xargs -P` otherwise.
#[cfg(unix)]
#[test]
fn shards_run_side_by_side() {
    use std::process::Command;

    let folder = folder();
    let folder = folder.path();
    let whole = experiment(folder, &["d.toml", "--out", "whole"]);
    assert_eq!(whole.code, Some(0), "{}", whole.stderr);
    let path = program();
    let domino = path.get_program().to_str().unwrap();
    let gnu = Command::new("parallel").arg("--version").output();
    let is_gnu = gnu.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("GNU parallel"));
    let mut command = match is_gnu {
        true => {
            let mut command = Command::new("parallel");
            let command_line = format!("{domino} experiment d.toml --shard {{}}/4 --out s{{}}");
            command.args(["--jobs", "4", &command_line, ":::", "1", "2", "3", "4"]);
            command
        }
        false => {
            let mut command = Command::new("sh");
            let command_line = "printf '1\\n2\\n3\\n4\\n' | \
                xargs -P 4 -I {} \"$0\" experiment d.toml --shard {}/4 --out s{}";
            command.args(["-c", command_line, domino]);
            command
        }
    };
    println!("by {}", if is_gnu { "GNU parallel" } else { "xargs -P, as GNU parallel is not installed" });
    for (name, value) in path.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let output = command.current_dir(folder).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let merged = experiment(folder, &["--merge", "s1", "s2", "s3", "s4", "--out", "merged"]);
    assert_eq!(merged.code, Some(0), "{}", merged.stderr);
    assert_eq!(rows(&folder.join("merged")), rows(&folder.join("whole")));
}

/// A definition that sweeps the prior's size and measures passes: what is measured once stays, and is merged.
#[test]
fn passes_are_measured_once_and_shown() {
    let folder = folder();
    let folder = folder.path();
    let text = DEFINITION
        .replace("warm_ups = 1", "warm_ups = [1, 2]\npasses = 3")
        .replace("count = 12", "count = 1");
    std::fs::write(folder.join("d.toml"), &text).unwrap();
    for out in ["whole", "whole", "1of2", "2of2"] {
        let shard = out.replace("of", "/");
        let more: &[&str] = if out == "whole" { &[] } else { &["--shard", &shard] };
        let run = experiment(folder, &[&["d.toml", "--out", out], more].concat());
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        if out == "whole" {
            let curve = std::fs::read_to_string(folder.join("whole/passes.json")).unwrap();
            let kept = folder.join("kept.json");
            assert!(!kept.exists() || std::fs::read_to_string(&kept).unwrap() == curve);
            std::fs::write(kept, curve).unwrap();
        }
    }
    let merged = experiment(folder, &["--merge", "1of2", "2of2", "--out", "merged"]);
    assert_eq!(merged.code, Some(0), "{}", merged.stderr);
    for out in ["whole", "merged"] {
        let tables = std::fs::read_to_string(folder.join(out).join("tables.md")).unwrap();
        assert!(tables.contains("| model | 3 | "), "{tables}");
        assert!(tables.contains("Acceptance by grammar and size of the prior"), "{tables}");
        assert!(tables.contains("beside maximal coupling"), "{tables}");
        assert!(folder.join(out).join("figures/passes.svg").is_file());
    }
    assert_eq!(rows(&folder.join("merged")), rows(&folder.join("whole")));
    std::fs::write(folder.join("whole/passes.json"), "{").unwrap();
    let run = experiment(folder, &["--report", "whole"]);
    assert!(run.code == Some(2) && run.stderr.contains("passes.json"), "{}", run.stderr);
}

/// A small language is listed once, by the shards that draw texts of it; one that is too large is refused.
#[test]
fn small_languages_are_listed() {
    let folder = folder();
    let folder = folder.path();
    std::fs::write(folder.join("words.gbnf"), r#"root ::= "yes" | "no" | "not yet""#).unwrap();
    let text = DEFINITION
        .replace(r#"methods = ["unconstrained", "masks", "ours", "naive"]"#, r#"methods = ["masks", "ours"]"#)
        .replace("warm_ups = 1", "warm_ups = 1\nenumerate = 3000");
    std::fs::write(folder.join("d.toml"), &text).unwrap();
    for out in ["whole", "1of2", "2of2"] {
        let shard = out.replace("of", "/");
        let more: &[&str] = if out == "whole" { &[] } else { &["--shard", &shard] };
        let run = experiment(folder, &[&["d.toml", "--out", out], more].concat());
        assert_eq!(run.code, Some(0), "{}", run.stderr);
    }
    let merged = experiment(folder, &["--merge", "1of2", "2of2", "--out", "merged"]);
    assert_eq!(merged.code, Some(0), "{}", merged.stderr);
    let listed = |out: &str| {
        let text = std::fs::read_to_string(folder.join(out).join("distributions.json")).unwrap();
        let all: Vec<Value> = serde_json::from_str(&text).unwrap();
        let sequences = |of: &Value| of["sequences"].as_array().unwrap().clone();
        let tokens = |of: &Value| sequences(of).iter().map(|one| one["tokens"].clone()).collect::<Vec<_>>();
        let mut all: Vec<_> = all.iter().map(|one| (one["prompt"].as_u64(), tokens(one))).collect();
        all.sort_by_key(|one| one.0);
        all
    };
    assert!(listed("whole").len() == 2 && listed("whole") == listed("merged"));
    assert!(rows(&folder.join("whole")).iter().all(|(_, tokens)| listed("whole")[0].1.contains(tokens)));
    let tables = |out: &str| std::fs::read_to_string(folder.join(out).join("tables/distortion.csv")).unwrap();
    assert!(tables("whole").contains("tv_of_exact_draws") && tables("whole").lines().count() == 3);
    std::fs::write(folder.join("d.toml"), text.replace("3000", "5")).unwrap();
    let run = experiment(folder, &["d.toml", "--out", "few"]);
    assert_eq!(run.code, Some(2), "{}", run.stderr);
    assert!(
        run.stderr.contains("more than 5 beginnings") && run.stderr.contains("enumerate"),
        "{}",
        run.stderr
    );
}

/// The model as its own draft, quantised or not, with a mask and without: the tokens are those of masks.
#[test]
fn a_draft_model_is_an_axis() {
    let folder = folder();
    let folder = folder.path();
    let definition = |draft: &str| {
        let methods =
            "methods = [\"masks\", \"draft_model\", \"draft_model-unmasked\", \"draft_model-joint\"]";
        let text =
            DEFINITION.replace("methods = [\"unconstrained\", \"masks\", \"ours\", \"naive\"]", methods);
        let text = text.replace("count = 12", "count = 4");
        let text =
            text.replace("warm_ups = 1", &format!("warm_ups = 1\nthreshold = [0]\ndraft_model = {draft}"));
        std::fs::write(folder.join("d.toml"), text).unwrap();
    };
    definition("{ model = \"model\", quantize = \"q8_0\", kv = \"q8_0\" }");
    let run = experiment(folder, &["d.toml", "--out", "out"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let text = std::fs::read_to_string(folder.join("out/rows.jsonl")).unwrap();
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |method: &'static str| rows.iter().filter(move |row| row["method"] == method);
    let tokens = |row: &Value| (row["prompt"].clone(), row["seed"].clone(), row["tokens"].clone());
    let plain: HashSet<String> = of("masks").map(|row| format!("{:?}", tokens(row))).collect();
    for method in ["draft_model", "draft_model-unmasked", "draft_model-joint"] {
        let drafted: u64 = of(method).map(|row| row["drafted"].as_u64().unwrap()).sum();
        assert!(of(method).count() == 8 && drafted > 0, "{method}");
        assert!(of(method).all(|row| plain.contains(&format!("{:?}", tokens(row)))), "{method}");
    }
    let header: Value =
        serde_json::from_str(&std::fs::read_to_string(folder.join("out/header.json")).unwrap()).unwrap();
    assert_eq!(header["models"].as_array().unwrap().len(), 2);
    assert_eq!(header["definition"]["draft_model"]["quantize"], "q8_0");
    assert_eq!(header["definition"]["draft_model"]["kv"], "q8_0");
    for (draft, said) in [
        ("{ model = \"model\", quantize = \"f16\" }", "no such format"),
        ("{ model = \"model\", kv = \"q4_0\" }", "f32, f16, q8_0"),
        ("\"nowhere\"", "nowhere"),
    ] {
        definition(draft);
        let run = experiment(folder, &["d.toml", "--out", "other"]);
        assert!(run.code == Some(2) && run.stderr.contains(said), "{}", run.stderr);
    }
}

#[test]
fn records_of_another_experiment_are_refused() {
    let folder = folder();
    let folder = folder.path();
    let run = experiment(folder, &["d.toml", "--quick"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("\n| words   | masks "), "{}", run.stdout);
    let records: Vec<_> = std::fs::read_dir(folder.join("experiments/records")).unwrap().collect();
    let made = records.into_iter().next().unwrap().unwrap().path();
    assert!(made.to_str().unwrap().ends_with("-noise-quick"), "{}", made.display());
    let text = std::fs::read(made.join("rows.jsonl")).unwrap();
    let out = made.to_str().unwrap();
    for (change, said) in [
        (("max_tokens = 12", "max_tokens = 13"), "`max_tokens` is 12 there, 13 here"),
        (("\"A: \"", "\"B: \""), "`grammars` differs"),
    ] {
        std::fs::write(folder.join("other.toml"), DEFINITION.replace(change.0, change.1)).unwrap();
        let run = experiment(folder, &["other.toml", "--quick", "--out", out]);
        assert_eq!(run.code, Some(2), "{}", run.stderr);
        assert!(run.stderr.contains(said) && run.stderr.contains("hint:"), "{}", run.stderr);
    }
    let weights = folder.join("model/config.json");
    let config = std::fs::read_to_string(&weights).unwrap();
    std::fs::write(&weights, config + "\n").unwrap();
    let run = experiment(folder, &["d.toml", "--quick", "--out", out]);
    assert_eq!(run.code, Some(2), "{}", run.stderr);
    assert!(run.stderr.contains("the model model is "), "{}", run.stderr);
    assert_eq!(std::fs::read(made.join("rows.jsonl")).unwrap(), text);
}

#[test]
fn a_second_run_into_one_folder_is_refused() {
    let folder = folder();
    let folder = folder.path();
    std::fs::create_dir(folder.join("out")).unwrap();
    let lock = std::fs::File::create(folder.join("out/.lock")).unwrap();
    lock.lock().unwrap();
    let second = experiment(folder, &["d.toml", "--quick", "--out", "out"]);
    assert_eq!(second.code, Some(2), "{}", second.stderr);
    assert!(second.stderr.contains("another run writes to out"), "{}", second.stderr);
    drop(lock);
    assert_eq!(experiment(folder, &["d.toml", "--quick", "--out", "out"]).code, Some(0));
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_after_the_running_text() {
    let folder = folder();
    let folder = folder.path();
    std::fs::write(folder.join("long.toml"), DEFINITION.replace("count = 12", "count = 5000")).unwrap();
    let mut program = program();
    program.args(["experiment", "long.toml", "--out", "out"]).current_dir(folder);
    let child = program.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let file = folder.join("out/rows.jsonl");
    let begun = Instant::now();
    while !std::fs::read_to_string(&file).is_ok_and(|text| text.contains('\n')) {
        assert!(begun.elapsed() < Duration::from_secs(60), "no row was made");
        std::thread::sleep(Duration::from_millis(10));
    }
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{told}");
    assert!(told.contains("of 40000 runs are there; the same command goes on"), "{told}");
    let made = sorted(rows(&folder.join("out")));
    assert!(!made.is_empty() && made.windows(2).all(|pair| pair[0].0 != pair[1].0));
    assert!(std::fs::read_to_string(folder.join("out/summary.md")).unwrap().contains("| words |"));
}

#[test]
fn bad_definitions_are_refused_with_their_place() {
    let folder = folder();
    let folder = folder.path();
    for (change, said) in [
        (("max_tokens", "maxtokens"), "d.toml:8:1: unknown field `maxtokens`"),
        (("\"ours\"", "\"theirs\""), "there is no method \"theirs\""),
        (("\"words.gbnf\"", "\"verbs.gbnf\""), "verbs.gbnf"),
        (("[\"model\"]", "[\"no/such/model\"]"), "no/such/model"),
        (("name = \"noise\"", "name = \"noise\"\nk = [\"some\"]"), "d.toml:3:6"),
    ] {
        std::fs::write(folder.join("d.toml"), DEFINITION.replace(change.0, change.1)).unwrap();
        let run = experiment(folder, &["d.toml", "--out", "out"]);
        assert!(run.stderr.contains(said), "{said}: {}", run.stderr);
        assert!(!folder.join("out").exists(), "{said}");
        assert_eq!(run.code, Some(2), "{said}");
    }
    let run = experiment(folder, &["none.toml"]);
    assert!(run.stderr.contains("cannot read none.toml") && run.code == Some(2), "{}", run.stderr);
    let run = experiment(folder, &["d.toml", "--shard", "3/2"]);
    assert!(run.stderr.contains("I from 1 to N") && run.code == Some(2), "{}", run.stderr);
}

/// All definitions of the repository can be read, and are whole and quick.
#[test]
fn definitions_of_the_repository_can_be_read() {
    use domino::experiment::Definition;

    let root = Path::new(env!("DOMINO_ROOT"));
    let grammar = |name: &str| {
        let path = root.join("grammars").join(name).with_extension("gbnf");
        path.exists().then_some("root ::= \"a\"")
    };
    let mut found = 0;
    for entry in std::fs::read_dir(root.join("experiments/definitions")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "toml") {
            continue;
        }
        let whole = Definition::read(&path, false, &grammar).unwrap();
        let quick = Definition::read(&path, true, &grammar).unwrap();
        assert_eq!(Some(&*whole.name), path.file_stem().and_then(|name| name.to_str()));
        assert!(quick.runs() < whole.runs() && !whole.about.is_empty(), "{}", path.display());
        found += 1;
    }
    assert!(found >= 5, "{found}");
}

/// Tables and figures are made with the records, and again from a part of them.
#[test]
fn reports_are_made_of_whole_and_partial_records() {
    let folder = folder();
    let folder = folder.path();
    let run = experiment(folder, &["d.toml", "--quick", "--out", "records"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let records = folder.join("records");
    let read = |name: &str| std::fs::read_to_string(records.join(name)).unwrap();
    let tables = read("tables.md");
    assert!(tables.contains("over unconstrained") && !tables.contains("WRONG"), "{tables}");
    for method in ["unconstrained", "masks", "ours", "naive"] {
        assert!(tables.contains(&format!("| words | {method} |")), "{tables}");
    }
    assert!(tables.contains("4 runs, all of the definition"), "{tables}");
    let figure = read("figures/throughput.svg");
    assert!(figure.starts_with("<svg") && figure.contains("naive"));
    // Two rows less, and the tables say so.
    let rows = read("rows.jsonl");
    let kept: String = rows.split_inclusive('\n').take(2).collect();
    std::fs::write(records.join("rows.jsonl"), kept).unwrap();
    let report = experiment(folder, &["--report", "records", "--json"]);
    assert_eq!(report.code, Some(0), "{}", report.stderr);
    let object = last_line(&report);
    assert_eq!((object["rows"].as_u64(), object["planned"].as_u64()), (Some(2), Some(4)));
    assert!(object["files"].as_array().unwrap().iter().any(|file| file == "records/tables.md"), "{object}");
    assert!(read("tables.md").contains("2 of 4 runs: the record is not whole"));
    for arguments in [&["--report", "nowhere"][..], &["--report", "records", "d.toml"], &["--report"]] {
        let run = experiment(folder, arguments);
        assert_eq!(run.code, Some(2), "{arguments:?}: {}", run.stderr);
    }
}

/// A program without mistral.rs names the one that has it.
#[test]
fn methods_of_mistralrs_need_its_program() {
    let folder = folder();
    let path = folder.path().join("d.toml");
    std::fs::write(&path, DEFINITION.replace("\"naive\"", "\"mistralrs-masks\"")).unwrap();
    let run = experiment(folder.path(), &["d.toml", "--out", "out"]);
    assert_eq!(run.code, Some(2), "{}", run.stderr);
    assert!(run.stderr.contains("mistralrs-masks") && run.stderr.contains("domino-mistralrs"));
}

//! Flags from a file beside those of the command line.

use super::*;
use crate::cli::LowArgs;

/// Returns the words that a file with this text adds to the line.
fn merged(line: &[&str], text: &str) -> Result<Vec<String>, String> {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), text).unwrap();
    let path = file.path().to_str().unwrap();
    let whole = [&["domino", "serve", "--config", path], line].concat();
    let whole: Vec<OsString> = whole.into_iter().map(OsString::from).collect();
    let count = whole.len();
    let merged = merge(&LowArgs::arranged(), whole).map_err(|error| error.to_string().replace(path, "F"))?;
    Ok(merged.into_iter().skip(count).map(|word| word.into_string().unwrap()).collect())
}

#[test]
fn keys_of_the_file_become_flags() {
    let text = "port = 9\nhost = \"::1\"\nallow_origin = [\"https://a.example\", \"https://b.example\"]\n\
                read-timeout = 1.5\nlenient-strict = true\nallow-anonymous = false\nmax_queue = 1_000\n";
    let flags = merged(&[], text).unwrap();
    let mut wanted = [
        "--port=9",
        "--host=::1",
        "--allow-origin=https://a.example",
        "--allow-origin=https://b.example",
        "--read-timeout=1.5",
        "--lenient-strict",
        "--max-queue=1000",
    ];
    let mut found: Vec<&str> = flags.iter().map(String::as_str).collect();
    wanted.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, wanted);
    // Flags of all commands too, and nothing at all.
    assert_eq!(merged(&[], "max-memory = 100").unwrap(), ["--max-memory=100"]);
    assert_eq!(merged(&[], "# nothing\n").unwrap(), [""; 0]);
}

#[test]
fn flags_of_the_command_line_win() {
    let text = "port = 9\nallow-origin = [\"https://a.example\"]\nlog = \"json\"";
    for line in [&["--port", "7"][..], &["--port=7"]] {
        assert!(!merged(line, text).unwrap().contains(&"--port=9".to_owned()), "{line:?}");
    }
    let flags = merged(&["--allow-origin", "https://b.example"], text).unwrap();
    assert!(flags.contains(&"--port=9".to_owned()) && flags.len() == 2, "{flags:?}");
    // Short ones as well.
    assert_eq!(merged(&["-m", "a"], "model = \"b\"").unwrap(), [""; 0]);
}

#[test]
fn mistakes_in_the_file_are_reported_with_their_place() {
    for (text, said) in [
        ("prot = 9", "F:1:1: there is no flag --prot"),
        ("port = 9\n max_queu = 3", "F:2:2: there is no flag --max-queu"),
        ("config = \"a\"", "F:1:1: there is no flag --config"),
        ("[limits]\nport = 9", "F:1:2: there is no flag --limits"),
        ("port = 9\nport = 8", "F:2:1: "),
        ("max_queue = 9\nmax-queue = 8", "F:2:1: --max-queue is given twice"),
        ("port = [9]", "F:1:8: `port` takes a text or a number"),
        ("port = 0x50", "F:1:8: `port` takes a text or a number"),
        ("port = 2020-01-01", "F:1:8: `port` takes a text or a number"),
        ("port = {a = 1}", "F:1:8: `port` takes a text or a number"),
        ("lenient-strict = 1", "F:1:18: `lenient-strict` takes true or false"),
        ("allow-origin = [[1]]", "F:1:16: `allow-origin` takes a list of texts or numbers"),
        ("port =", "F:1:"),
    ] {
        let told = merged(&[], text).unwrap_err();
        assert!(told.starts_with(said), "{text}: {told}");
    }
}

#[test]
fn command_lines_without_config_are_left_unchanged() {
    for line in [&["domino", "serve"][..], &["domino", "check", "-"], &["domino"], &["domino", "--help"]] {
        let line: Vec<OsString> = line.iter().map(OsString::from).collect();
        assert_eq!(merge(&LowArgs::arranged(), line.clone()).unwrap(), line);
    }
    let line = ["domino", "serve", "--config", "no-such-file"].map(OsString::from).to_vec();
    assert!(merge(&LowArgs::arranged(), line).is_err());
}

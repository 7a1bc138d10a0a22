//! The program as a shell runs it, without the user's settings and cache.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::Value;

pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

fn finish(output: Output) -> Run {
    Run {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

pub(crate) fn domino(arguments: &[&str], stdin: &[u8]) -> Run {
    domino_in(Path::new("."), arguments, stdin)
}

pub(crate) fn domino_in(folder: &Path, arguments: &[&str], stdin: &[u8]) -> Run {
    run(program().args(arguments).current_dir(folder), stdin)
}

/// The program of the package that this is a test of.
const BUILT: &str = match (option_env!("CARGO_BIN_EXE_domino"), option_env!("CARGO_BIN_EXE_domino-mistralrs"))
{
    (Some(program), _) | (None, Some(program)) => program,
    (None, None) => panic!("no test of a package with a program"),
};

/// The path of the program under test: the built one, unless the variable names another.
pub(crate) fn tested() -> PathBuf {
    std::env::var_os("DOMINO_TEST_PROGRAM").map_or_else(|| BUILT.into(), PathBuf::from)
}

/// The program, without the user's settings and cache.
pub(crate) fn program() -> Command {
    let mut program = Command::new(tested());
    for variable in ["CARGO_MANIFEST_DIR", "RUST_LOG", "DOMINO_CACHE_DIR", "DOMINO_MODEL"] {
        program.env_remove(variable);
    }
    program.env("DOMINO_NO_CACHE", "1");
    program
}

/// Runs the program to its end.
pub(crate) fn run(program: &mut Command, stdin: &[u8]) -> Run {
    let mut child =
        program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let stdin = stdin.to_vec();
    // The program may end before it has read all of its input, so a failed write is no failure.
    let writer = std::thread::spawn(move || drop(pipe.write_all(&stdin)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    finish(output)
}

pub(crate) fn last_line(run: &Run) -> Value {
    serde_json::from_str(run.stdout.lines().last().unwrap_or_default())
        .unwrap_or_else(|error| panic!("{error}: {}{}", run.stdout, run.stderr))
}

//! The program `domino`.

use std::process::ExitCode;

fn main() -> ExitCode {
    domino_cli::main()
}

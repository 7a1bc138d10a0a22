//! `domino completions`: prints scripts that let a shell complete the command line.

use std::io::Write;

use clap::{Args, Command};
use clap_complete::Shell;

use crate::{terminal, terminal::failure::Exit};

const EXAMPLES: &str = "\
Examples:
  bash   domino completions bash > ~/.local/share/bash-completion/completions/domino
  zsh    domino completions zsh > ~/.zfunc/_domino     (with fpath+=~/.zfunc before compinit)
  fish   domino completions fish > ~/.config/fish/completions/domino.fish";

/// Print what a shell completes commands and flags with.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LowCompletions {
    /// The shell.
    #[arg(value_name = "SHELL", value_enum)]
    shell: Shell,
}

/// Prints the script for these commands and flags.
pub(crate) fn run(command: &LowCompletions, mut program: Command) -> anyhow::Result<Exit> {
    // The script is made in memory first, since `generate` panics where a reader has gone.
    let mut script = Vec::new();
    clap_complete::generate(command.shell, &mut program, "domino", &mut script);
    terminal::stdout().write_all(&script)?;
    Ok(Exit::Success)
}

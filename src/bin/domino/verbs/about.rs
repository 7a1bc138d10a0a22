//! Commands that print what the program has in it: `domino grammars` lists the grammars that come with it,
//! `domino man` prints its man pages, and `domino completions` scripts that let a shell complete the command
//! line.

use std::{io::Write, path::PathBuf};

use anyhow::Context;
use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;
use serde_json::json;

use crate::grammar::source::{SHIPPED, shipped_hint};
use crate::terminal;
use crate::terminal::failure::{BadInput, Exit};

/// List the grammars that come with the program.
#[derive(Debug, Args)]
pub(crate) struct LowGrammars {
    /// Print the grammar of this name instead.
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

/// Lists the grammars, or prints one.
pub(crate) fn print_grammars(command: &LowGrammars, json: bool) -> anyhow::Result<Exit> {
    let mut out = terminal::stdout();
    if let Some(name) = &command.name {
        let shipped = SHIPPED.iter().find(|shipped| shipped.name == name);
        let unknown = || BadInput::new(format!("no grammar {name:?}")).hint(shipped_hint(name));
        write!(out, "{}", shipped.ok_or_else(unknown)?.text)?;
    } else if json {
        let list: Vec<_> =
            SHIPPED.iter().map(|shipped| json!({ "name": shipped.name, "about": shipped.about() })).collect();
        writeln!(out, "{}", json!({ "grammars": list }))?;
    } else {
        for shipped in SHIPPED.iter() {
            writeln!(out, "{:<16} {}", shipped.name, shipped.about())?;
        }
    }
    Ok(Exit::Success)
}

const MAN_EXAMPLES: &str = "\
Examples:
  domino man | man -l -
  domino man generate | man -l -
  domino man --out ~/.local/share/man/man1";

/// Print a man page, or write those of all commands into a folder.
#[derive(Debug, Args)]
#[command(after_help = MAN_EXAMPLES)]
pub(crate) struct LowMan {
    /// The command whose page is printed; without, the page of the whole program.
    #[arg(value_name = "COMMAND")]
    command: Option<String>,
    /// Write the pages of all commands into this folder: domino.1, domino-generate.1 and so on.
    #[arg(long, short = 'o', value_name = "DIR", conflicts_with = "command")]
    out: Option<PathBuf>,
}

/// Prints a page, or writes them all.
pub(crate) fn print_man(command: &LowMan, program: Command) -> anyhow::Result<Exit> {
    let mut whole = program.disable_help_subcommand(true);
    whole.build();
    let pages = std::iter::once(&whole).chain(whole.get_subcommands());
    if let Some(folder) = &command.out {
        let failed = || format!("cannot write to {}", folder.display());
        std::fs::create_dir_all(folder).with_context(failed)?;
        for page in pages {
            let file = folder.join(format!("{}.1", title(page)));
            std::fs::write(file, rendered(page)?).with_context(failed)?;
        }
        return Ok(Exit::Success);
    }
    let name = command.command.as_deref().unwrap_or("domino");
    let page = pages.into_iter().find(|page| page.get_name() == name);
    let page = page.ok_or_else(|| {
        BadInput::new(format!("there is no command {name:?}")).hint("`domino help` lists them")
    })?;
    terminal::stdout().write_all(&rendered(page)?)?;
    Ok(Exit::Success)
}

/// The title of a page, such as `domino-generate`.
fn title(command: &Command) -> String {
    match command.get_name() {
        "domino" => "domino".to_owned(),
        name => format!("domino-{name}"),
    }
}

fn rendered(command: &Command) -> anyhow::Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command.clone()).title(title(command)).render(&mut page)?;
    Ok(page)
}

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  bash   domino completions bash > ~/.local/share/bash-completion/completions/domino
  zsh    domino completions zsh > ~/.zfunc/_domino     (with fpath+=~/.zfunc before compinit)
  fish   domino completions fish > ~/.config/fish/completions/domino.fish";

/// Print what a shell completes commands and flags with.
#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub(crate) struct LowCompletions {
    /// The shell.
    #[arg(value_name = "SHELL", value_enum)]
    shell: Shell,
}

/// Prints the script for these commands and flags.
pub(crate) fn print_completions(command: &LowCompletions, mut program: Command) -> anyhow::Result<Exit> {
    // The script is made in memory first, since `generate` panics where a reader has gone.
    let mut script = Vec::new();
    clap_complete::generate(command.shell, &mut program, "domino", &mut script);
    terminal::stdout().write_all(&script)?;
    Ok(Exit::Success)
}

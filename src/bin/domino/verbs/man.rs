//! `domino man`: prints the program's man pages.

use std::{io::Write, path::PathBuf};

use anyhow::Context;
use clap::{Args, Command};
use clap_mangen::Man;

use crate::terminal;
use crate::terminal::failure::{BadInput, Exit};

const EXAMPLES: &str = "\
Examples:
  domino man | man -l -
  domino man generate | man -l -
  domino man --out ~/.local/share/man/man1";

/// Print a man page, or write those of all commands into a folder.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LowMan {
    /// The command whose page is printed; without, the page of the whole program.
    #[arg(value_name = "COMMAND")]
    command: Option<String>,
    /// Write the pages of all commands into this folder: domino.1, domino-generate.1 and so on.
    #[arg(long, short = 'o', value_name = "DIR", conflicts_with = "command")]
    out: Option<PathBuf>,
}

/// Prints a page, or writes them all.
pub(crate) fn run(command: &LowMan, program: Command) -> anyhow::Result<Exit> {
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

//! `domino grammars`: lists the grammars that come with the program.

use std::io::Write;

use clap::Args;
use serde_json::json;

use crate::grammar::source::{SHIPPED, Shipped, shipped_hint};
use crate::terminal;
use crate::terminal::failure::{BadInput, Exit};

/// List the grammars that come with the program.
#[derive(Debug, Args)]
pub(crate) struct LowGrammars {
    /// Print the grammar of this name instead.
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

/// The resolved command `domino grammars`.
#[derive(Debug)]
pub(crate) struct Grammars {
    show: Option<&'static Shipped>,
    json: bool,
}

impl LowGrammars {
    pub(crate) fn resolve(self, json: bool) -> Result<Grammars, BadInput> {
        let find = |name: String| {
            SHIPPED
                .iter()
                .find(|shipped| shipped.name == name)
                .ok_or_else(|| BadInput::new(format!("no grammar {name:?}")).hint(shipped_hint(&name)))
        };
        Ok(Grammars { show: self.name.map(find).transpose()?, json })
    }
}

/// Lists the grammars, or prints one.
pub(crate) fn run(command: &Grammars) -> anyhow::Result<Exit> {
    let mut out = terminal::stdout();
    if let Some(shipped) = command.show {
        write!(out, "{}", shipped.text)?;
    } else if command.json {
        let list: Vec<_> =
            SHIPPED.iter().map(|shipped| json!({ "name": shipped.name, "about": shipped.about() })).collect();
        writeln!(out, "{}", json!({ "grammars": list }))?;
    } else {
        for shipped in SHIPPED {
            writeln!(out, "{:<16} {}", shipped.name, shipped.about())?;
        }
    }
    Ok(Exit::Success)
}

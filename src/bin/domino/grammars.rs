//! `domino grammars`: the grammars that come with the program.

use std::io::Write;

use serde_json::json;

use crate::{args::Grammars, failure::Exit, notation::SHIPPED, stdout};

/// Lists them, or prints one.
pub(crate) fn run(command: &Grammars) -> anyhow::Result<Exit> {
    let mut out = stdout::lock();
    if let Some(shipped) = command.show {
        write!(out, "{}", shipped.text)?;
    } else if command.json {
        let list: Vec<_> =
            SHIPPED.iter().map(|shipped| json!({ "name": shipped.name, "about": shipped.about() })).collect();
        writeln!(out, "{}", json!({ "grammars": list }))?;
    } else {
        for shipped in SHIPPED {
            writeln!(out, "{:<12} {}", shipped.name, shipped.about())?;
        }
    }
    Ok(Exit::Success)
}

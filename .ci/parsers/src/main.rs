//! Writes `src/engine/grammar/gbnf/gbnf.rs.in`, which LALRPOP makes of `gbnf.lalrpop` beside it.
//!
//! The parser is kept in the repository, so that whoever builds the library needs no parser generator.
//! `.ci/run` fails where it is another one than this program writes.

use std::{error::Error, fs, path::Path};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../src/engine/grammar/gbnf");
    let made = tempfile::tempdir()?;
    lalrpop::Configuration::new()
        .set_in_dir(&folder)
        .set_out_dir(made.path())
        .emit_comments(false)
        .emit_whitespace(false)
        .process()?;
    fs::copy(made.path().join("gbnf.rs"), folder.join("gbnf.rs.in"))?;
    Ok(())
}

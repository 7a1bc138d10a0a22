//! Files of subterminal trees, as `domino compile` writes them: taken where they are right, made again where
//! they are not.

use std::{fs, path::Path};

use domino::CompiledGrammar;

use crate::{
    files::output::Output,
    terminal::{
        failure::{BadInput, Paint, note},
        progress,
    },
};

/// The state of a file of trees before it is written.
pub(crate) enum TreesFile {
    /// The file has the right trees.
    Whole,
    /// The file is not there.
    Absent,
    /// The file is of no use, for this reason.
    Useless(String),
}

/// Gives a grammar the trees of a file. If the file is of no use, reports that on standard error, grows the
/// trees, and writes the file again.
pub(crate) fn attach(compiled: &CompiledGrammar, file: &Path, name: &str) -> Result<(), BadInput> {
    let paint = Paint::for_stderr();
    match load(compiled, file)? {
        TreesFile::Whole => return Ok(()),
        TreesFile::Absent => {
            return Err(BadInput::new(format!("{}: no such file", file.display()))
                .hint("`domino compile` makes files of trees"));
        }
        TreesFile::Useless(why) => {
            note!("{} {} is {why}; it is made again", paint.cyan("warning:"), file.display());
        }
    }
    grow(compiled, name);
    if let Err(error) = write(compiled, file) {
        note!("{} {error:#}", paint.cyan("warning:"));
    }
    Ok(())
}

/// Takes trees from a file, if it has the right ones.
pub(crate) fn load(compiled: &CompiledGrammar, file: &Path) -> Result<TreesFile, BadInput> {
    // Devices and pipes have no end, or nothing to read.
    if fs::metadata(file).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        return Ok(TreesFile::Absent);
    }
    let bytes = match fs::read(file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(TreesFile::Absent),
        Err(error) => return Err(BadInput::new(format!("cannot read {}: {error}", file.display()))),
    };
    Ok(match compiled.load_artefact(&bytes) {
        Ok(()) => TreesFile::Whole,
        Err(error) => TreesFile::Useless(error.to_string()),
    })
}

/// Grows all trees of the grammar called `name`, and shows how far that is.
pub(crate) fn grow(compiled: &CompiledGrammar, name: &str) {
    let bar = std::sync::OnceLock::new();
    compiled.grow_trees_with(|progress| {
        bar.get_or_init(|| progress::StepBar::start(format!("growing trees of {name}"), progress.total))
            .one_more();
    });
}

/// Writes all trees and returns the size of the file. Whoever reads the file meanwhile sees the old one or
/// the new one, since a renaming puts it in place.
pub(crate) fn write(compiled: &CompiledGrammar, file: &Path) -> anyhow::Result<u64> {
    let artefact = compiled.artefact();
    Output::prepare(file)?.write(&artefact)?;
    Ok(artefact.len() as u64)
}

//! What guesses ahead for the texts of a grammar: counts that were learnt before, and from then on by its texts.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use domino::{
    CompiledGrammar,
    mistralrs::Guesses,
    proposer::{Learning, Prior},
    vocab::Tokenizer,
};

use super::args::Speculation;
use crate::{failure::BadInput, proposer::Which};

/// Makes the guesses of grammars.
#[derive(Debug)]
pub(crate) struct Guessing {
    tokenizer: Tokenizer,
    /// Files of counts, each for one grammar.
    priors: Vec<Vec<u8>>,
    proposer: Which,
    threshold: f64,
}

impl Guessing {
    /// As was asked for, by the priors in `files`.
    pub(crate) fn new(
        tokenizer: Tokenizer,
        asked: &Speculation,
        files: &[PathBuf],
    ) -> Result<Self, BadInput> {
        let read = |file: &PathBuf| {
            let bad = |error: &dyn std::fmt::Display| BadInput::new(format!("{}: {error}", file.display()));
            let bytes = fs::read(file).map_err(|error| bad(&error))?;
            match Prior::open(&bytes) {
                Ok(_) => Ok(bytes),
                Err(error) => Err(bad(&error).hint(error.hint())),
            }
        };
        let priors = files.iter().map(read).collect::<Result<_, _>>()?;
        Ok(Self { tokenizer, priors, proposer: asked.proposer, threshold: asked.threshold })
    }

    /// Guesses for a grammar, by the prior that was made for it, if there is one.
    pub(crate) fn guesses(&self, grammar: &CompiledGrammar) -> Guesses {
        let prior = self.priors.iter().find_map(|file| Prior::from_bytes(file, grammar).ok());
        tracing::debug!(found = prior.is_some(), "looked for a prior");
        let prior = prior.unwrap_or_else(|| Prior::new(grammar));
        self.proposer.guesses(grammar, &self.tokenizer, prior, Learning::Online, self.threshold)
    }
}

/// The files that `--prior` means: a file, the *.prior of a folder, or, if nothing is named, those of the model.
pub(crate) fn prior_files(named: Option<&Path>, model: &Path) -> Result<Vec<PathBuf>, BadInput> {
    let Some(named) = named else {
        // Most models have none.
        return Ok(files_of(&model.join("priors")).unwrap_or_default());
    };
    if !named.is_dir() {
        return Ok(vec![named.to_path_buf()]);
    }
    let files = files_of(named)
        .map_err(|error| BadInput::new(format!("cannot read {}: {error}", named.display())))?;
    match files.is_empty() {
        true => Err(BadInput::new(format!("{} has no *.prior", named.display()))
            .hint("`domino learn` makes them; --prior takes one, or a folder of them")),
        false => Ok(files),
    }
}

fn files_of(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let paths =
        fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>()?;
    let is_prior = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "prior");
    let mut files: Vec<PathBuf> = paths.into_iter().filter(is_prior).collect();
    files.sort_unstable();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priors_are_a_file_or_those_of_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        assert!(prior_files(Some(folder.path()), folder.path()).is_err());
        assert_eq!(prior_files(None, folder.path()).unwrap(), Vec::<PathBuf>::new());
        fs::create_dir(path("priors")).unwrap();
        for name in ["b.prior", "a.prior", "notes.txt", "priors/c.prior"] {
            fs::write(path(name), "").unwrap();
        }
        assert_eq!(
            prior_files(Some(folder.path()), folder.path()).unwrap(),
            [path("a.prior"), path("b.prior")]
        );
        assert_eq!(prior_files(None, folder.path()).unwrap(), [path("priors/c.prior")]);
        assert_eq!(prior_files(Some(&path("b.prior")), folder.path()).unwrap(), [path("b.prior")]);
    }
}

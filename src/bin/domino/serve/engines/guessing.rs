//! Proposers of drafts for the texts of a grammar: they begin with a prior's counts, if there is one, and
//! learn from each text.

use std::{
    any::Any,
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use domino::{
    CompiledGrammar,
    proposer::{BestOf, CountProposer, DraftLength, Drafter, ForcedText, Learning, Lookup, Prior},
    vocab::Tokenizer,
};

use super::{
    args::{DraftSize, Speculation},
    client::Client,
};
use crate::{session::drafts::proposer::Which, terminal::failure::BadInput};

/// Maker of the guesses of grammars.
#[derive(Debug)]
pub(crate) struct Guessing {
    tokenizer: Tokenizer,
    /// Files of counts, each for one grammar.
    priors: Vec<Vec<u8>>,
    proposer: Which,
    length: DraftLength,
    threshold: f64,
}

impl Guessing {
    /// Reads the priors of the files.
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
        let length = match asked.size {
            DraftSize::Auto => DraftLength::Auto,
            DraftSize::Tokens(tokens) => DraftLength::up_to(tokens.get(), asked.threshold)
                .map_err(|error| BadInput::new(format!("--s: {error}")).hint("for example --s 8"))?,
        };
        Ok(Self { tokenizer, priors, proposer: asked.proposer, length, threshold: asked.threshold })
    }

    /// Makes the guesses for a grammar, with the prior that was made for it, if there is one.
    pub(crate) fn guesses(&self, grammar: &CompiledGrammar) -> GrammarGuesses {
        let prior = self.priors.iter().find_map(|file| Prior::from_bytes(file, grammar).ok());
        tracing::debug!(found = prior.is_some(), "looked for a prior");
        let forced = (!self.proposer.is_paper()).then(|| {
            // The grammar's own vocabulary includes the special tokens that the grammar spells out.
            let forced = ForcedText::new(self.tokenizer.clone(), grammar.vocabulary().clone());
            if prior.is_none() { forced.with_spellings() } else { forced }
        });
        let prior = prior.unwrap_or_else(|| Prior::new(grammar));
        let first = CountProposer::new(prior, Learning::Online).counting(self.proposer.counting());
        let (length, threshold) = (self.length, self.threshold);
        let inner = Inner { first, forced, length, threshold, books: Mutex::default() };
        GrammarGuesses { inner: Arc::new(inner) }
    }
}

/// Guesses for the texts of one grammar, learnt apart for each client. Cloning shares them.
#[derive(Debug, Clone)]
pub(crate) struct GrammarGuesses {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// Counts of the prior, with which each client begins.
    first: CountProposer,
    /// Guesses of forced text; `None`: only counts guess.
    forced: Option<ForcedText>,
    length: DraftLength,
    threshold: f64,
    books: Mutex<HashMap<Client, Arc<Book>>>,
}

/// Counts that the texts of one client have made.
#[derive(Debug)]
pub(crate) struct Book {
    pub(crate) learner: Arc<Mutex<CountProposer>>,
    /// Made by the engine of the counts, and kept for its next text.
    #[cfg_attr(not(feature = "mistralrs"), expect(dead_code, reason = "our own engine takes drafters"))]
    pub(crate) kept: OnceLock<Box<dyn Any + Send + Sync>>,
}

impl GrammarGuesses {
    /// Returns the counts of a client; a new client begins with those of the prior.
    pub(crate) fn book(&self, client: Client) -> Arc<Book> {
        let mut books = held(&self.inner.books);
        let new = || {
            let learner = Arc::new(Mutex::new(self.inner.first.another()));
            Arc::new(Book { learner, kept: OnceLock::new() })
        };
        Arc::clone(books.entry(client).or_insert_with(new))
    }

    /// A drafter for one text of a client.
    pub(crate) fn drafter(&self, client: Client) -> Drafter {
        let counts = Box::new(Arc::clone(&self.book(client).learner));
        match &self.inner.forced {
            None => Drafter::new(counts, self.inner.length),
            Some(forced) => {
                let all = vec![counts as _, Box::new(forced.clone()) as _, Box::new(Lookup::default()) as _];
                Drafter::new(Box::new(BestOf::new(all)), self.inner.length)
            }
        }
    }

    /// Guesses of the text that the grammar forces. `None`: they are not made.
    #[cfg_attr(not(feature = "mistralrs"), expect(dead_code, reason = "our own engine takes drafters"))]
    pub(crate) fn forced(&self) -> Option<&ForcedText> {
        self.inner.forced.as_ref()
    }

    /// The least acceptance of a guess, where their number is fixed.
    #[cfg_attr(not(feature = "mistralrs"), expect(dead_code, reason = "our own engine takes drafters"))]
    pub(crate) fn threshold(&self) -> f64 {
        self.inner.threshold
    }

    /// Memory of all counts, in bytes.
    pub(crate) fn memory(&self) -> usize {
        let books = held(&self.inner.books);
        let own = books.values().map(|book| held(&book.learner).prior().memory()).sum::<usize>();
        self.inner.first.prior().memory() + own
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lists the files that `--prior` means: one file, the *.prior of a folder, or by default those in the
/// model's folder `priors`.
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

//! Engines that write the texts: our own runner with many texts at once (`own`), and those of other programs
//! ([`texts`]).
//!
//! The handlers know an engine by [`Engine`] alone: it gets the tokens of a prompt, the grammar of the text
//! and the options of drawing, and it gives tokens. Prompts, stop strings, forms of answers and limits are
//! the handlers' business.
//!
//! Proposers of drafts for the texts of a grammar begin with a prior's counts, if there is one, and learn
//! from each text. What they have learnt may be kept in a folder ([`kept`]).

pub(crate) mod kept;
pub(crate) mod load;
mod own;
pub(crate) mod texts;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::{any::Any, collections::HashMap, fs, io, path::Path, path::PathBuf};

use domino::decode::{DecodeOptions, DecodeStats, Finish, Logprobs};
use domino::proposer::{CountProposer, Counting, DraftLength, DraftRecipe, Drafter, Learning, Prior};
use domino::{CompiledGrammar, Constraint, TokenId, vocab::Tokenizer};
use tokio::sync::mpsc::UnboundedReceiver;

use self::kept::{Keeping, PriorKeeper};
use super::{args::DraftSize, args::Speculation, bounds::Places, problem::Problem};
use crate::{session::drafts::Learner, session::drafts::Which, terminal::failure::BadInput};

/// A model that writes texts, by itself and beside one another.
pub trait Engine: Send + Sync {
    /// Begins a text, and returns the receiver of its events. Dropping the receiver cancels the text.
    fn begin(&self, text: TextOrder) -> UnboundedReceiver<EngineEvent>;

    /// Refuses options that this engine does not support.
    ///
    /// # Errors
    /// If there is such an option.
    fn check(&self, options: &DecodeOptions) -> Result<(), Problem>;
}

/// A text to be written.
#[derive(Debug)]
pub struct TextOrder {
    /// Tokens of the prompt, at least one; the model has room for these and the most new ones.
    pub prompt: Arc<[TokenId]>,
    /// Drawing, penalties, seed, length, log-probabilities. Stop strings are not the engine's.
    pub options: DecodeOptions,
    /// The grammar of the text; `None`: any text.
    pub grammar: Option<CompiledGrammar>,
    /// Proposers of drafts for the grammar. `None`: nothing is guessed.
    pub guesses: Option<GrammarGuesses>,
    /// The client, among whom turns are fair.
    pub(crate) client: Client,
    /// The client with whom counts and prefixes of prompts are shared: the same one, unless all share them.
    pub shared: Client,
    /// Number of the request, which its texts have in common.
    pub(crate) request: u64,
    /// Held until the engine has let go of the text.
    pub(crate) places: Arc<Places>,
}

impl TextOrder {
    /// The constraint of the text where it begins, as its options ask for; `None`: any text.
    #[must_use]
    pub fn constraint(&self) -> Option<Constraint> {
        let constraint = self.grammar.as_ref()?.constraint().trailing_space(self.options.trailing_space);
        Some(match self.options.reasoning_tokens {
            None => constraint,
            most => constraint.reasoning_tokens(most),
        })
    }
}

/// An event of a text that is being written.
#[derive(Debug)]
pub enum EngineEvent {
    /// Log-probabilities of the prompt's tokens but the first, before any token, if they were asked for.
    Prompt(Vec<Logprobs>),
    /// Another token.
    Token(WrittenToken),
    /// The text has ended: by end of text, or by length.
    End(Finish, DecodeStats),
    /// The text has failed.
    Failed(Problem),
}

/// A token of a text.
#[derive(Debug)]
pub struct WrittenToken {
    /// The token.
    pub token: TokenId,
    /// Bytes that it adds to the text.
    pub bytes: Vec<u8>,
    /// Its log-probabilities, if they were asked for and the engine tells them.
    pub logprobs: Option<Logprobs>,
    /// Work of the text so far, for whoever ends it here.
    pub stats: DecodeStats,
}

/// Maker of the guesses of grammars.
#[derive(Debug)]
pub(crate) struct Guessing {
    tokenizer: Tokenizer,
    /// Files of counts by the fingerprints of their grammars; for one there may be some of several models.
    priors: HashMap<String, Vec<Vec<u8>>>,
    /// `None`: what is learnt is forgotten at the end.
    keeper: Option<PriorKeeper>,
    proposer: Which,
    length: DraftLength,
    threshold: f64,
}

impl Guessing {
    /// Reads the priors of the files. What is learnt is given to the keeper, if there is one.
    pub(crate) fn new(
        tokenizer: Tokenizer,
        asked: &Speculation,
        files: &[PathBuf],
        keeper: Option<PriorKeeper>,
    ) -> Result<Self, BadInput> {
        let mut priors: HashMap<String, Vec<Vec<u8>>> = HashMap::new();
        for file in files {
            let bad = |error: &dyn std::fmt::Display| BadInput::new(format!("{}: {error}", file.display()));
            let bytes = fs::read(file).map_err(|error| bad(&error))?;
            let prior = Prior::open(&bytes).map_err(|error| bad(&error).hint(error.hint()))?;
            priors.entry(prior.grammar().to_owned()).or_default().push(bytes);
        }
        let length = match asked.size {
            DraftSize::Auto => DraftLength::Auto,
            DraftSize::Tokens(tokens) => DraftLength::up_to(tokens.get(), asked.threshold)
                .map_err(|error| BadInput::new(format!("--s: {error}")).hint("for example --s 8"))?,
        };
        let (proposer, threshold) = (asked.proposer, asked.threshold);
        Ok(Self { tokenizer, priors, keeper, proposer, length, threshold })
    }

    /// Returns the keeper of counts between runs, if there is a folder for them.
    pub(crate) fn keeper(&self) -> Option<PriorKeeper> {
        self.keeper.clone()
    }

    /// Makes the guesses for a grammar, with the prior that was made for it, if there is one.
    pub(crate) fn guesses(&self, grammar: &CompiledGrammar) -> GrammarGuesses {
        let none = Prior::new(grammar);
        let mut files = self.priors.get(none.grammar()).into_iter().flatten();
        let prior = files.find_map(|file| Prior::from_bytes(file, grammar).ok());
        tracing::debug!(found = prior.is_some(), "looked for a prior");
        let recipe = self.proposer.recipe(grammar, &self.tokenizer, prior.is_some());
        let counting = self.proposer.counting();
        let first = CountProposer::new(prior.unwrap_or(none), Learning::Online).counting(counting);
        let (length, threshold, keeper) = (self.length, self.threshold, self.keeper.clone());
        let inner = Inner { first, counting, recipe, length, threshold, keeper, books: Mutex::default() };
        GrammarGuesses { inner: Arc::new(inner) }
    }
}

/// Guesses for the texts of one grammar, learnt apart for each client. Cloning shares them.
#[derive(Debug, Clone)]
pub struct GrammarGuesses {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// Counts of the prior, with which each client begins.
    first: CountProposer,
    counting: Counting,
    /// The proposers beside the counts.
    recipe: DraftRecipe,
    length: DraftLength,
    threshold: f64,
    keeper: Option<PriorKeeper>,
    books: Mutex<HashMap<Client, Arc<Book>>>,
}

/// Counts that the texts of one client have made.
#[derive(Debug)]
pub struct Book {
    /// The counts, which the engine's proposers add to.
    pub learner: Learner,
    /// Made by the engine of the counts, and kept for its next text.
    pub kept: OnceLock<Box<dyn Any + Send + Sync>>,
    /// Has the counts written when they have changed, and when nobody uses them any more.
    _keeping: Option<Keeping>,
}

impl Book {
    fn new(counts: CountProposer, keeping: impl FnOnce(&Learner) -> Option<Keeping>) -> Arc<Self> {
        let learner = Arc::new(Mutex::new(counts));
        let keeping = keeping(&learner);
        Arc::new(Self { learner, kept: OnceLock::new(), _keeping: keeping })
    }
}

impl GrammarGuesses {
    /// Makes guesses that begin with these counts; `threshold` is the least acceptance of a guess, where
    /// their number is fixed.
    pub(crate) fn of(first: CountProposer, counting: Counting, recipe: DraftRecipe, threshold: f64) -> Self {
        let (length, keeper, books) = (DraftLength::Auto, None, Mutex::default());
        Self { inner: Arc::new(Inner { first, counting, recipe, length, threshold, keeper, books }) }
    }

    /// Returns the counts of a client; a new client begins with those of the prior.
    #[must_use]
    pub fn book(&self, client: Client) -> Arc<Book> {
        let mut books = held(&self.inner.books);
        let new = || Book::new(self.inner.first.another(), |_| None);
        Arc::clone(books.entry(client).or_insert_with(new))
    }

    /// Are the counts of this client yet to be read from their file?
    pub(crate) fn are_on_disk(&self, client: Client) -> bool {
        self.inner.keeper.is_some() && !held(&self.inner.books).contains_key(&client)
    }

    /// Reads the counts of a client from its file, and has them kept there, where that is done. `name` is
    /// the client's in the names of files, `grammar` the grammar of these guesses. Blocks.
    pub(crate) fn read(&self, client: Client, name: &str, grammar: &CompiledGrammar) {
        let Some(keeper) = self.inner.keeper.as_ref().filter(|_| self.are_on_disk(client)) else { return };
        let counts = match keeper.read(name, grammar) {
            Some(prior) => CountProposer::new(prior, Learning::Online).counting(self.inner.counting),
            None => self.inner.first.another(),
        };
        // Without the lock until here: texts of other clients wait for it.
        let mut books = held(&self.inner.books);
        books.entry(client).or_insert_with(|| Book::new(counts, |counts| Some(keeper.keep(name, counts))));
    }

    /// A drafter for one text of a client.
    pub(crate) fn drafter(&self, client: Client) -> Drafter {
        let counts = Box::new(Arc::clone(&self.book(client).learner));
        self.inner.recipe.drafter(counts, None, self.inner.length)
    }

    /// The recipe of the drafters.
    #[must_use]
    pub fn recipe(&self) -> &DraftRecipe {
        &self.inner.recipe
    }

    /// The least acceptance of a guess, where their number is fixed.
    #[must_use]
    pub fn threshold(&self) -> f64 {
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

/// Lists the files that `--prior` means: one file, the *.prior of a folder and of the folders in it, or by
/// default those in the model's folder `priors`.
pub(crate) fn prior_files(named: Option<&Path>, model: &Path) -> Result<Vec<PathBuf>, BadInput> {
    let Some(named) = named else {
        // Most models have none.
        return Ok(files_of(&model.join("priors"), LEVELS).unwrap_or_default());
    };
    if !named.is_dir() {
        return Ok(vec![named.to_path_buf()]);
    }
    let files = files_of(named, LEVELS)
        .map_err(|error| BadInput::new(format!("cannot read {}: {error}", named.display())))?;
    match files.is_empty() {
        true => Err(BadInput::new(format!("{} has no *.prior", named.display()))
            .hint("`domino learn` makes them; --prior takes one, or a folder of them")),
        false => Ok(files),
    }
}

/// Folders within folders that are looked into, as for `paper/json`.
const LEVELS: usize = 3;

fn files_of(folder: &Path, levels: usize) -> io::Result<Vec<PathBuf>> {
    let mut paths =
        fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort_unstable();
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            // A folder that cannot be read counts as empty.
            let inside = levels.checked_sub(1).and_then(|levels| files_of(&path, levels).ok());
            files.extend(inside.unwrap_or_default());
        } else if path.extension().is_some_and(|extension| extension == "prior") {
            files.push(path);
        }
    }
    Ok(files)
}

/// Number of the client that sent a request. Learnt counts and cached prefixes are kept apart by client, so
/// that no client can infer another's texts from times or from hits. 0 is the server itself and,
/// for what all clients share, all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Client(pub(crate) u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priors_are_read_from_a_file_or_from_nested_folders() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        assert!(prior_files(Some(folder.path()), folder.path()).is_err());
        assert_eq!(prior_files(None, folder.path()).unwrap(), Vec::<PathBuf>::new());
        fs::create_dir_all(path("priors/paper/a.prior")).unwrap();
        fs::create_dir_all(path("named/paper")).unwrap();
        for name in ["b.prior", "a.prior", "notes.txt", "paper/c.prior"] {
            fs::write(path("named").join(name), "").unwrap();
        }
        for name in ["priors/c.prior", "priors/paper/c.prior", "priors/paper/notes.txt"] {
            fs::write(path(name), "").unwrap();
        }
        let named = ["named/a.prior", "named/b.prior", "named/paper/c.prior"].map(path);
        assert_eq!(prior_files(Some(&path("named")), folder.path()).unwrap(), named);
        let shipped = ["priors/c.prior", "priors/paper/c.prior"].map(path);
        assert_eq!(prior_files(None, folder.path()).unwrap(), shipped);
        assert_eq!(prior_files(Some(&named[1]), folder.path()).unwrap(), [named[1].clone()]);
    }
}

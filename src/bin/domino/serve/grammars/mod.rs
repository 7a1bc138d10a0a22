//! Compiles the grammars of requests: each once, off the threads that answer and in fair turns ([`Pool`]).
//! Compiled grammars are kept while there is room, in an LRU cache that is bounded by the weight of its
//! values ([`LastUsed`]). Work that nobody waits for any more, since clients went away or their time is over,
//! is given up: cancelled where it is, which frees its worker. The ones with names are in `named`.

pub(crate) mod named;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicUsize, atomic::Ordering};
use std::{time::Duration, time::Instant};

use domino::grammar::json_schema::{Relaxed, SchemaOptions};
use domino::{Cancel, CompileError, CompiledGrammar, Compiler, Memory, grammar::Thought};
use tokio::sync::watch;

use self::named::{NamedGrammars, Source};
use super::engines::{GrammarGuesses, Guessing};
use super::{
    access::Caller, args::SchemaRules, asked::grammar::GrammarAsked, observe::metrics::Metrics,
    problem::Problem, work::Pool, work::PoolTask, writing::captured,
};
use crate::grammar::compiler::Reach;
use crate::grammar::{compiled::Capturing, compiler, notation::Notation, notation::Parsed, warned};
use crate::rows::LastUsed;

/// Divisor of the memory for grammars that gives the least share of what the compiler keeps between them.
const KEPT_SHARE: usize = 8;

/// Identity of a grammar: its notation, the hash of its text, the options if it is a schema, and the reach of
/// its masks, and the thought before its texts.
type Key = (Notation, blake3::Hash, SchemaOptions, Option<Reach>, Option<Thought>);

/// A compiled grammar that is ready for texts.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    pub(crate) grammar: CompiledGrammar,
    /// Proposers of its drafts. `None`: nothing is guessed.
    pub(crate) guesses: Option<GrammarGuesses>,
    /// Keywords of its schema that it relaxes.
    pub(crate) relaxed: Arc<[Relaxed]>,
    /// Captures of what it marks itself, if it does.
    pub(crate) captures: Option<Arc<Capturing>>,
}

/// Result of compiling a grammar.
type CompileOutcome = Result<Prepared, Problem>;

/// Everything that compiling a grammar needs.
#[derive(Debug)]
pub(crate) struct Shop {
    pub(crate) compiler: Compiler,
    /// Maker of guesses; `None`: nothing is guessed.
    pub(crate) guessing: Option<Guessing>,
    pub(crate) schemas: Arc<SchemaRules>,
}

/// A grammar that is compiled or will be.
#[derive(Debug, Clone)]
struct Slot {
    outcome: watch::Receiver<Option<CompileOutcome>>,
    wanted: Arc<CompileTask>,
}

/// The work of compiling a grammar, and the number of requests that wait for it.
#[derive(Debug)]
struct CompileTask {
    /// Changed only while the shelf is locked.
    waiting: AtomicUsize,
    /// Cancelled once everybody who waited has left.
    given_up: Cancel,
    task: PoolTask,
}

/// A request that waits for a grammar; dropping the last one gives the grammar up.
struct GrammarWaiter<'a> {
    registry: &'a Registry,
    key: Key,
    slot: Slot,
}

/// The grammars of one server.
#[derive(Debug)]
pub(crate) struct Registry {
    shop: Arc<Shop>,
    named: NamedGrammars,
    /// Memory of all that is kept, in bytes.
    most_bytes: usize,
    patience: Duration,
    pool: Arc<Pool>,
    shelf: Mutex<LastUsed<Key, Slot>>,
    metrics: Arc<Metrics>,
}

impl Registry {
    /// A registry that compiles in `pool`, keeps `most_bytes` of grammars, and lets a request wait for
    /// `patience`.
    pub(crate) fn new(
        shop: Shop,
        named: NamedGrammars,
        metrics: Arc<Metrics>,
        pool: Arc<Pool>,
        most_bytes: usize,
        patience: Duration,
    ) -> Arc<Self> {
        let (shop, shelf) = (Arc::new(shop), Mutex::new(LastUsed::new()));
        Arc::new(Self { shop, named, most_bytes, patience, pool, shelf, metrics })
    }

    /// Makes ahead what JSON Schemas need of the vocabulary, some 30 ms that the first request would wait
    /// for.
    pub(crate) fn prepare_for_schemas(&self) {
        let Shop { compiler, schemas, .. } = &*self.shop;
        let kinds = schemas.options.kinds_of_values_with(&compiler::limits(), compiler::automata());
        let prepared = kinds.map(|kinds| compiler.prepare(&kinds.grammar));
        tracing::debug!(?prepared, "prepared for JSON Schemas");
    }

    /// The grammars that have names.
    pub(crate) fn named(&self) -> &NamedGrammars {
        &self.named
    }

    /// The workers that compile.
    pub(crate) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// The grammar that a request of `caller` asks for. Dropping the future gives it up.
    pub(crate) async fn get(self: &Arc<Self>, caller: &Caller, asked: GrammarAsked) -> CompileOutcome {
        let param = asked.param;
        // Others may have asked for the same in another field.
        self.found(caller, asked).await.map_err(|problem| problem.about(param))
    }

    async fn found(self: &Arc<Self>, caller: &Caller, asked: GrammarAsked) -> CompileOutcome {
        let named = self.named.clone();
        let found = tokio::task::spawn_blocking(move || named.find(&asked)).await;
        let source = found.map_err(|_| Problem::engine("looking for the grammar failed"))??;
        let waiting = self.wait(caller, source)?;
        let mut outcome = waiting.slot.outcome.clone();
        match tokio::time::timeout(self.patience, outcome.wait_for(Option::is_some)).await {
            Ok(Ok(done)) => {
                let outcome = done.clone();
                drop(done);
                // Grammars grow while texts use them, so room may have run out since the last look.
                self.trim();
                outcome.unwrap_or_else(|| Err(Problem::engine("the grammar was not compiled")))
            }
            Ok(Err(_)) => Err(Problem::unavailable("shutting_down", "the server is ending")),
            Err(_) => Err(self.too_late(&waiting.slot)),
        }
    }

    /// The error for a request that has waited too long.
    fn too_late(&self, slot: &Slot) -> Problem {
        let seconds = self.patience.as_secs_f64();
        let message = match slot.wanted.task.waits() {
            true => {
                format!("{seconds} s were not enough for the grammar's turn to be compiled; ask again later")
            }
            false => {
                format!("the grammar is not compiled after {seconds} s and is given up; make it smaller")
            }
        };
        let message = format!("{message} (`domino serve --compile-timeout`)");
        Problem::unavailable("grammar_timeout", message).param("grammar")
    }

    /// Waits for the grammar, which is or will be compiled.
    fn wait(self: &Arc<Self>, caller: &Caller, source: Source) -> Result<GrammarWaiter<'_>, Problem> {
        let hash = blake3::hash(source.text.as_bytes());
        let key = (source.notation, hash, source.options.clone(), source.reach, source.thought.clone());
        let mut shelf = self.shelf();
        let slot = match shelf.get(&key).cloned() {
            Some(slot) => {
                self.metrics.grammar_hits.add(1);
                // In this caller's turn too: it need not wait behind all that another one has asked for.
                self.pool.join(caller, &slot.wanted.task)?;
                slot
            }
            None => {
                let slot = self.begin(caller, &key, source)?;
                self.metrics.grammar_misses.add(1);
                shelf.insert(key.clone(), slot.clone());
                slot
            }
        };
        slot.wanted.waiting.fetch_add(1, Ordering::AcqRel);
        drop(shelf);
        Ok(GrammarWaiter { registry: self, key, slot })
    }

    /// Submits the grammar to the pool, in the caller's turn.
    fn begin(self: &Arc<Self>, caller: &Caller, key: &Key, source: Source) -> Result<Slot, Problem> {
        let (sender, outcome) = watch::channel(None);
        // The task is known only once it is submitted.
        let (registry, key) = (Arc::clone(self), key.clone());
        let (tell, told) = std::sync::mpsc::channel::<Arc<CompileTask>>();
        let task = self.pool.submit(caller, move || {
            if let Ok(wanted) = told.recv() {
                registry.work(&key, &source, &sender, &wanted);
            }
        })?;
        let wanted = CompileTask { waiting: AtomicUsize::new(0), given_up: Cancel::new(), task };
        let wanted = Arc::new(wanted);
        // A task that was begun at once waits for this; one that was withdrawn has hung up.
        let _ = tell.send(Arc::clone(&wanted));
        Ok(Slot { outcome, wanted })
    }

    /// Compiles a grammar, tells those who wait, and has its trees grown and the masks made that texts come
    /// to first, when there is nothing better to do.
    fn work(
        self: &Arc<Self>,
        key: &Key,
        source: &Source,
        sender: &watch::Sender<Option<CompileOutcome>>,
        wanted: &CompileTask,
    ) {
        let start = Instant::now();
        let stop = &wanted.given_up;
        let compiled = catch_unwind(AssertUnwindSafe(|| self.shop.prepare(source, stop)));
        let outcome = compiled.unwrap_or_else(|_| Err(Problem::engine("compiling the grammar failed")));
        self.metrics.compile_times.add(start.elapsed());
        let grammar = outcome.as_ref().ok().map(|prepared| prepared.grammar.clone());
        {
            let mut shelf = self.shelf();
            if outcome.is_err() {
                self.metrics.grammar_failures.add(usize::from(!stop.is_cancelled()));
                Self::forget(&mut shelf, key, wanted);
            }
            sender.send_replace(Some(outcome));
        }
        if let Some(grammar) = grammar {
            // Texts go on meanwhile, and use what is there.
            let registry = Arc::clone(self);
            self.pool.later(move || {
                grammar.explore();
                registry.trim();
            });
        }
    }

    /// Takes a grammar from the shelf, unless another one has its place by now.
    fn forget(shelf: &mut LastUsed<Key, Slot>, key: &Key, wanted: &CompileTask) {
        if shelf.get(key).is_some_and(|slot| std::ptr::eq(&*slot.wanted, wanted)) {
            shelf.remove(key);
        }
    }

    /// Drops grammars until the rest fits the memory for them: grammars grow while texts use them, and the
    /// compiler's tables outlive the grammars they were made for. Tables that all grammars of a notation
    /// share are not counted, since they would be made again at once.
    pub(crate) fn trim(&self) {
        let compiler = &self.shop.compiler;
        let most = self.most_bytes.saturating_sub(compiler.memory().shared);
        let (gone, grammars) = {
            let mut shelf = self.shelf();
            (shelf.trim(most, weigh), shelf.values().map(weigh).sum::<usize>())
        };
        self.metrics.grammar_evictions.add(gone);
        // Some room is left for what schemas have in common.
        compiler.trim(most.saturating_sub(grammars).max(self.most_bytes / KEPT_SHARE));
    }

    /// Number of grammars that are kept, and their memory with that of the compiler, in bytes.
    pub(crate) fn size(&self) -> (usize, usize) {
        let shelf = self.shelf();
        let values = shelf.values();
        let (count, own): (usize, usize) =
            (values.len(), values.map(|slot| weighed(slot, Memory::own)).sum());
        (count, own + self.shop.compiler.memory().total())
    }

    fn shelf(&self) -> MutexGuard<'_, LastUsed<Key, Slot>> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for GrammarWaiter<'_> {
    fn drop(&mut self) {
        let Slot { outcome, wanted } = &self.slot;
        let mut shelf = self.registry.shelf();
        let last = wanted.waiting.fetch_sub(1, Ordering::AcqRel) == 1;
        if !last || outcome.borrow().is_some() {
            return;
        }
        wanted.given_up.cancel();
        self.registry.metrics.grammar_cancelled.add(1);
        Registry::forget(&mut shelf, &self.key, wanted);
        drop(shelf);
        self.registry.pool.withdraw(&wanted.task);
    }
}

impl Shop {
    /// Reads and compiles a grammar, unless it is given up meanwhile.
    fn prepare(&self, source: &Source, given_up: &Cancel) -> CompileOutcome {
        let limits = compiler::limits().cancelled_by(given_up);
        let read = source.read(&self.schemas, &limits);
        let Parsed { grammar, relaxed, open_objects } = read.map_err(|problem| problem.param("grammar"))?;
        if let Some([message, hint]) = warned::open_objects(&open_objects, "`closed` in `grammar_options`") {
            tracing::warn!(grammar = %source.name, "{message}; {hint}");
        }
        let compiler = self.compiler.cancelled_by(given_up);
        let compiler = source.reach.map_or(compiler.clone(), |reach| reach.of(compiler));
        // What is listed of texts is what is behind their thought.
        let captures = captured::marked(source, &grammar);
        let grammar = match &source.thought {
            Some(thought) => grammar.after_thought(thought, &limits).map_err(|error| {
                Problem::compile(&source.name, &CompileError::from(error)).param("grammar")
            })?,
            None => grammar,
        };
        let compiled = compiler.compile(&grammar).map_err(|error| match error.is_cancelled() {
            true => Problem::given_up(&error),
            false => Problem::compile(&source.name, &error).param("grammar"),
        })?;
        let guesses = self.guessing.as_ref().map(|guessing| guessing.guesses(&compiled));
        Ok(Prepared { grammar: compiled, guesses, relaxed: relaxed.into(), captures })
    }
}

/// Memory that is free once the grammar is dropped, in bytes.
fn weigh(slot: &Slot) -> usize {
    weighed(slot, Memory::total)
}

fn weighed(slot: &Slot, of: fn(&Memory) -> usize) -> usize {
    match &*slot.outcome.borrow() {
        Some(Ok(Prepared { grammar, guesses, captures, .. })) => {
            let guesses = guesses.as_ref().map_or(0, GrammarGuesses::memory);
            let captures = captures.as_ref().map_or(0, |captures| captures.memory());
            of(&grammar.memory()) + guesses + captures
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests;

//! Grammars of requests -> compiled ones: each compiled once, off the threads that answer, and kept while there is room.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use domino::{
    CompiledGrammar, Compiler, Grammar, Memory,
    grammar::json_schema::{Relaxed, SchemaOptions},
};
use tokio::sync::{Semaphore, watch};

use super::{
    args::SchemaRules,
    asked_grammar::GrammarAsked,
    engines::guessing::{GrammarGuesses, Guessing},
    metrics::Metrics,
    named::{NamedGrammars, Source},
    problem::Problem,
    shelf::Shelf,
};
use crate::{budgets, notation::Notation};

/// Grammars that may wait to be compiled.
const MOST_WAITING: usize = 64;

/// At least one part in so many of the memory for grammars is for what the compiler keeps for the next ones.
const KEPT_SHARE: usize = 8;

/// What a grammar is known by: its notation, the hash of its text, and how it is read if it is a schema.
type Key = (Notation, blake3::Hash, SchemaOptions);

/// A grammar that texts can be written of.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    pub(crate) grammar: CompiledGrammar,
    /// What its texts are guessed by, if they are.
    pub(crate) guesses: Option<GrammarGuesses>,
    /// What it allows beyond its schema.
    pub(crate) relaxed: Arc<[Relaxed]>,
}

/// What became of a grammar.
type Outcome = Result<Prepared, Problem>;

/// What grammars are prepared with.
#[derive(Debug)]
pub(crate) struct Shop {
    pub(crate) compiler: Compiler,
    /// `None`: nothing is guessed.
    pub(crate) guessing: Option<Guessing>,
    pub(crate) schemas: Arc<SchemaRules>,
}

/// A grammar that is compiled or will be.
type Slot = watch::Receiver<Option<Outcome>>;

/// The grammars of one server.
#[derive(Debug)]
pub(crate) struct Registry {
    shop: Arc<Shop>,
    named: NamedGrammars,
    /// Memory of all that is kept, in bytes.
    most_bytes: usize,
    patience: Duration,
    /// Grammars that are compiled at once.
    workers: Arc<Semaphore>,
    waiting: AtomicUsize,
    shelf: Mutex<Shelf<Key, Slot>>,
    metrics: Arc<Metrics>,
}

impl Registry {
    /// One that compiles on up to `workers` threads, keeps `most_bytes` of grammars, and lets a request wait for
    /// `patience`.
    pub(crate) fn new(
        shop: Shop,
        named: NamedGrammars,
        metrics: Arc<Metrics>,
        workers: usize,
        most_bytes: usize,
        patience: Duration,
    ) -> Arc<Self> {
        Arc::new(Self {
            shop: Arc::new(shop),
            named,
            most_bytes,
            patience,
            workers: Arc::new(Semaphore::new(workers.max(1))),
            waiting: AtomicUsize::new(0),
            shelf: Mutex::new(Shelf::new()),
            metrics,
        })
    }

    /// Makes ahead what JSON Schemas need of the vocabulary, some 30 ms that the first request would wait
    /// for.
    pub(crate) fn prepare_for_schemas(&self) {
        let Shop { compiler, schemas, .. } = &*self.shop;
        let kinds = schemas.options.kinds_of_values_with(&budgets::limits(), budgets::automata());
        let prepared = kinds.map(|kinds| compiler.prepare(&kinds.grammar));
        tracing::debug!(?prepared, "prepared for JSON Schemas");
    }

    /// The grammars that have names.
    pub(crate) fn named(&self) -> &NamedGrammars {
        &self.named
    }

    /// The grammar that a request asks for.
    pub(crate) async fn get(self: &Arc<Self>, asked: GrammarAsked) -> Outcome {
        let param = asked.param();
        // Others may have asked for the same in another field.
        self.found(asked).await.map_err(|problem| problem.about(param))
    }

    async fn found(self: &Arc<Self>, asked: GrammarAsked) -> Outcome {
        let named = self.named.clone();
        let found = tokio::task::spawn_blocking(move || named.find(&asked)).await;
        let source = found.map_err(|_| Problem::engine("looking for the grammar failed"))??;
        let mut slot = self.slot(source)?;
        match tokio::time::timeout(self.patience, slot.wait_for(Option::is_some)).await {
            Ok(Ok(done)) => {
                let outcome = done.clone();
                drop(done);
                // The texts of others have grown since they were asked for.
                self.trim();
                outcome.unwrap_or_else(|| Err(Problem::engine("the grammar was not compiled")))
            }
            Ok(Err(_)) => Err(Problem::unavailable("shutting_down", "the server is ending")),
            Err(_) => {
                let message = format!(
                    "the grammar is not compiled after {} s; that goes on, so ask again later, or make it smaller",
                    self.patience.as_secs_f64()
                );
                Err(Problem::unavailable("grammar_timeout", message).param("grammar"))
            }
        }
    }

    /// Where the grammar is or will be.
    fn slot(self: &Arc<Self>, source: Source) -> Result<Slot, Problem> {
        let key = (source.notation, blake3::hash(source.text.as_bytes()), source.options.clone());
        let mut shelf = self.shelf();
        if let Some(slot) = shelf.get(&key) {
            self.metrics.grammar_hits.add(1);
            return Ok(slot.clone());
        }
        if self.waiting.fetch_add(1, Ordering::AcqRel) >= MOST_WAITING {
            self.waiting.fetch_sub(1, Ordering::AcqRel);
            let message = format!("{MOST_WAITING} grammars wait to be compiled; ask again later");
            return Err(Problem::unavailable("grammar_queue_full", message));
        }
        self.metrics.grammar_misses.add(1);
        let (sender, slot) = watch::channel(None);
        shelf.insert(key.clone(), slot.clone());
        drop(shelf);
        let registry = Arc::clone(self);
        tokio::spawn(async move { registry.work(key, source, sender).await });
        Ok(slot)
    }

    /// Compiles a grammar, tells those who wait, then grows its trees and makes the masks that texts come to first.
    async fn work(self: Arc<Self>, key: Key, source: Source, sender: watch::Sender<Option<Outcome>>) {
        // The semaphore is never closed.
        let permit = Arc::clone(&self.workers).acquire_owned().await;
        let shop = Arc::clone(&self.shop);
        let start = Instant::now();
        let compiled = tokio::task::spawn_blocking(move || shop.prepare(&source)).await;
        let outcome = compiled.unwrap_or_else(|_| Err(Problem::engine("compiling the grammar failed")));
        self.metrics.compile_times.add(start.elapsed());
        self.waiting.fetch_sub(1, Ordering::AcqRel);
        if outcome.is_err() {
            self.metrics.grammar_failures.add(1);
            self.shelf().remove(&key);
        }
        let grammar = outcome.as_ref().ok().map(|prepared| prepared.grammar.clone());
        sender.send_replace(Some(outcome));
        if let Some(grammar) = grammar {
            // Texts go on meanwhile, and use what is there.
            let _ = tokio::task::spawn_blocking(move || grammar.explore()).await;
            self.trim();
        }
        drop(permit);
    }

    /// Drops what there is no room for: grammars grow while texts use them, and what the compiler keeps of
    /// those that went is there still. What all grammars of a notation have in common is not counted, since
    /// it would be made again at once.
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

    /// How many are kept, and their memory and that of their compiler in bytes.
    pub(crate) fn size(&self) -> (usize, usize) {
        let shelf = self.shelf();
        let values = shelf.values();
        let (count, own): (usize, usize) =
            (values.len(), values.map(|slot| weighed(slot, Memory::own)).sum());
        (count, own + self.shop.compiler.memory().total())
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf<Key, Slot>> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shop {
    fn prepare(&self, source: &Source) -> Outcome {
        let (grammar, relaxed) = self.parse(source).map_err(|problem| problem.param("grammar"))?;
        let grammar = self
            .compiler
            .compile(&grammar)
            .map_err(|error| Problem::compile(&source.name, &error).param("grammar"))?;
        let guesses = self.guessing.as_ref().map(|guessing| guessing.guesses(&grammar));
        Ok(Prepared { grammar, guesses, relaxed: relaxed.into() })
    }

    /// The grammar, and what it allows beyond its schema.
    fn parse(&self, source: &Source) -> Result<(Grammar, Vec<Relaxed>), Problem> {
        if source.notation == Notation::JsonSchema {
            let read = self.schemas.read(&source.text, &source.options);
            let schema = read.map_err(|error| Problem::schema(&source.name, error))?;
            return Ok((schema.grammar, schema.relaxed));
        }
        let parsed = source.notation.read(source.text.as_bytes(), &source.options);
        parsed
            .map(|parsed| (parsed.grammar, parsed.relaxed))
            .map_err(|error| Problem::grammar(&source.name, &error))
    }
}

/// Memory that is free once the grammar is dropped, in bytes.
fn weigh(slot: &Slot) -> usize {
    weighed(slot, Memory::total)
}

fn weighed(slot: &Slot, of: fn(&Memory) -> usize) -> usize {
    match &*slot.borrow() {
        Some(Ok(Prepared { grammar, guesses, .. })) => {
            of(&grammar.memory()) + guesses.as_ref().map_or(0, GrammarGuesses::memory)
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::byte_vocabulary;

    fn registry(most_bytes: usize) -> Arc<Registry> {
        let compiler = Compiler::new(byte_vocabulary().unwrap());
        let shop = Shop { compiler, guessing: None, schemas: Arc::default() };
        let named = NamedGrammars::new(None, Arc::default()).unwrap();
        let metrics = Arc::new(Metrics::default());
        Registry::new(shop, named, metrics, 2, most_bytes, Duration::from_secs(60))
    }

    fn regex(text: &str) -> GrammarAsked {
        GrammarAsked::Text(Notation::Regex, text.to_owned())
    }

    #[tokio::test]
    async fn a_grammar_is_compiled_once_for_all_who_ask_at_once() {
        let registry = registry(1 << 30);
        let tasks: Vec<_> = (0..20)
            .map(|_| {
                let registry = Arc::clone(&registry);
                tokio::spawn(async move { registry.get(GrammarAsked::Named("json".to_owned())).await })
            })
            .collect();
        for task in tasks {
            task.await.unwrap().unwrap();
        }
        assert_eq!(registry.size().0, 1);
        let now = super::super::metrics::Moment {
            texts: 0,
            most_texts: 0,
            grammars: 0,
            grammar_bytes: 0,
            stalled: false,
            gave_up: 0,
        };
        let text = registry.metrics.text(now);
        assert!(text.contains("\ndomino_grammar_misses_total 1\n"), "{text}");
        assert!(text.contains("\ndomino_grammar_hits_total 19\n"), "{text}");
    }

    #[tokio::test]
    async fn errors_have_a_place_and_are_not_kept() {
        let registry = registry(1 << 30);
        for _ in 0..2 {
            let problem = registry.get(regex("a(")).await.unwrap_err();
            let error = &problem.to_json()["error"];
            assert_eq!(
                (error["code"].as_str(), error["param"].as_str()),
                (Some("invalid_grammar"), Some("grammar"))
            );
            assert!(error["line"] == 1 && error["column"].is_u64(), "{error}");
        }
        let empty = GrammarAsked::Text(Notation::Gbnf, "root ::= root".to_owned());
        assert_eq!(registry.get(empty).await.unwrap_err().to_json()["error"]["code"], "invalid_grammar");
        assert_eq!(registry.size().0, 0);
    }

    #[tokio::test]
    async fn schemas_are_known_by_their_options_and_told_by_their_field() {
        let registry = registry(1 << 30);
        let array = r#"{"type": "array", "contains": {"const": 1}, "uniqueItems": true}"#;
        let text = format!(r#"{{"type": "object", "properties": {{"a": {array}}}}}"#);
        let schema = |options: &SchemaOptions| GrammarAsked::Schema(text.to_owned(), options.clone());
        let lenient = SchemaOptions::default().with_lenient(true);
        let prepared = registry.get(schema(&lenient)).await.unwrap();
        assert!(prepared.relaxed[0].pointer.starts_with("#/properties/a"), "{:?}", prepared.relaxed);
        registry.get(schema(&lenient.clone().with_closed(true))).await.unwrap();
        assert_eq!(registry.size().0, 2);
        let format = GrammarAsked::Format(text.to_owned(), SchemaOptions::default());
        for (asked, param) in [(schema(&SchemaOptions::default()), "grammar"), (format, "response_format")] {
            let error = registry.get(asked).await.unwrap_err().to_json()["error"].clone();
            let message = error["message"].as_str().unwrap();
            assert!(message.starts_with(&format!("{param}: #/properties/a")), "{error}");
            assert_eq!((&error["param"], &error["code"]), (&param.into(), &"invalid_json_schema".into()));
            assert_eq!(error["keyword"], "uniqueItems");
        }
    }

    #[tokio::test]
    async fn memory_is_bounded_but_the_last_grammar_stays() {
        let registry = registry(1);
        for text in ["a+", "b+", "c+"] {
            let grammar = registry.get(regex(text)).await.unwrap();
            grammar.grammar.constraint().mask().unwrap();
            registry.trim();
        }
        assert_eq!(registry.size().0, 1);
    }

    #[tokio::test]
    async fn who_waits_too_long_is_told_so() {
        let mut registry = registry(1 << 30);
        let inner = Arc::get_mut(&mut registry).unwrap();
        inner.workers = Arc::new(Semaphore::new(0));
        inner.patience = Duration::from_millis(10);
        let problem = registry.get(regex("a")).await.unwrap_err();
        assert_eq!(problem.to_json()["error"]["code"], "grammar_timeout");
        // Others wait too, but not without end.
        for number in 1..MOST_WAITING {
            registry.slot(registry.named.find(&regex(&format!("a{{{number}}}"))).unwrap()).unwrap();
        }
        let problem = registry.slot(registry.named.find(&regex("b")).unwrap()).unwrap_err();
        assert_eq!(problem.to_json()["error"]["code"], "grammar_queue_full");
    }
}

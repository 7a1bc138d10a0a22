//! The pipeline, called in order: grammar to terminals and productions to a machine for constraints.

use std::sync::{Arc, Mutex, PoisonError};

use hashbrown::HashMap;

use crate::grammar::{AutomataCache, Automaton, Grammar, GrammarError, GrammarWarning, PatternKind, Syntax};
use crate::limits::{Cancel, Limits, PREPARING_WORK, Work};
use crate::lower::{CompileError, CompileErrorKind, Terminals, lower};
use crate::machine::{CompilerMemory, Exploration, MachinePool, Memory};
use crate::program::{Program, ResolvedTokens, asks_for_marks};
use crate::session::{Constraint, Patience};
use crate::store::{CacheFolder, Kind, PayloadReader, PayloadWriter, StoreError, open, seal};
use crate::subterminal::{Forest, Lookahead, TableMemory, TerminalTable, VocabularyTables, make_ahead};
use crate::{cores, ids::TokenId, scanner, vocab::Vocabulary};

/// Number of sets of special tokens for which a compiler keeps a vocabulary: those of a model's ways to call
/// tools.
const MOST_SPELLED: usize = 8;

/// Tables of vocabularies with tokens spelled out, by those tokens.
type SpelledTables = HashMap<Vec<(TokenId, String)>, VocabularyTables>;

/// Compiles grammars for one vocabulary. Configured once, used for many grammars: what they share, such as
/// the inside of a JSON string, is computed once. Clones share that.
#[derive(Debug, Clone)]
pub struct Compiler {
    tables: VocabularyTables,
    /// The tables of the vocabulary with special tokens spelled out, by their numbers and names.
    spelled: Arc<Mutex<SpelledTables>>,
    /// May grammars ask for special tokens that the vocabulary does not have?
    any_special: bool,
    lookahead: Lookahead,
    terminals: Terminals,
    limits: Limits,
    patience: Option<Patience>,
    automata: AutomataCache,
}

impl Compiler {
    /// Creates a compiler with unbounded lookahead and default budgets.
    #[must_use]
    pub fn new(vocabulary: Vocabulary) -> Self {
        let tables = VocabularyTables::new(vocabulary, CacheFolder::none());
        Self {
            tables,
            spelled: Arc::default(),
            any_special: false,
            lookahead: Lookahead::default(),
            terminals: Terminals::default(),
            limits: Limits::default(),
            patience: None,
            automata: AutomataCache::new(),
        }
    }

    /// Sets the lookahead `k`.
    #[must_use]
    pub fn lookahead(mut self, lookahead: Lookahead) -> Self {
        self.lookahead = lookahead;
        self
    }

    /// The vocabulary that it compiles for.
    #[must_use]
    pub fn vocabulary(&self) -> &Vocabulary {
        self.tables.vocabulary()
    }

    /// Sets which parts of grammars are terminals, which lookahead `k` counts.
    #[must_use]
    pub fn terminals(mut self, terminals: Terminals) -> Self {
        self.terminals = terminals;
        self
    }

    /// Lets grammars ask for special tokens that the vocabulary does not have: for texts without a model.
    #[must_use]
    pub fn any_special(mut self) -> Self {
        self.any_special = true;
        self
    }

    /// Sets the budgets.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets how long sessions stay with a step and with a text, unless [`Constraint::patient`] sets it. By
    /// default a call does one piece of a step.
    #[must_use]
    pub fn patience(mut self, patience: Patience) -> Self {
        self.patience = Some(patience);
        self
    }

    /// Sets the folder in which trees and the tables they are made from are kept between runs. Default: none.
    #[must_use]
    pub fn cache(mut self, cache: CacheFolder) -> Self {
        self.tables = VocabularyTables::new(self.tables.vocabulary().clone(), cache);
        self.spelled = Arc::default();
        self
    }

    /// Compiles a grammar. Parser sets are made later, when texts first need them, and so are trees, unless
    /// they are in the [cache](Self::cache) or [grown](CompiledGrammar::grow_trees) ahead. What texts need
    /// first of each terminal is made by a job of rayon's global pool meanwhile ([`Limits::ahead`]). For
    /// [special tokens](Grammar::specials) it makes a second vocabulary, which is kept.
    ///
    /// Roughly linear in the grammar, apart from the terminals' automata, whose size is bounded by
    /// [`Limits::dfa_states`]. The first grammar with a kind of JSON Schema's strings walks the vocabulary.
    ///
    /// # Errors
    /// If the grammar has no sentence at all, asks for special tokens that the vocabulary does not have, a
    /// budget is used up, or the work was [cancelled](Self::cancelled_by).
    ///
    /// # Example
    /// ```
    /// use domino::{Compiler, Grammar, Limits, Syntax, TokenId, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder()
    ///     .token(TokenId::new(0), "a")
    ///     .token(TokenId::new(1), "ab")
    ///     .token(TokenId::new(2), "c")
    ///     .end_of_text(TokenId::new(3))
    ///     .build()?;
    /// let grammar = Grammar::parse(Syntax::Gbnf, r#"root ::= "a" ("b" "c")*"#, &Limits::default())?;
    /// let mut constraint = Compiler::new(vocabulary).compile(&grammar)?.constraint();
    /// assert!(constraint.allows(TokenId::new(1))?);
    /// constraint.advance(TokenId::new(1))?;
    /// assert_eq!(constraint.forced()?, Some(TokenId::new(2)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn compile(&self, grammar: &Grammar) -> Result<CompiledGrammar, CompileError> {
        self.limits.look()?;
        let compiled = self.pipeline(grammar);
        // Whatever came of work that was cut off.
        self.limits.look()?;
        let compiled = compiled?;
        match compiled.cached_trees() {
            Some(forest) => {
                let _ = compiled.program.grown.set(Arc::new(forest));
            }
            None => make_ahead(&compiled.program.tables, &compiled.program.vocabulary, &self.limits),
        }
        Ok(compiled)
    }

    /// Runs the stages, in order.
    fn pipeline(&self, grammar: &Grammar) -> Result<CompiledGrammar, CompileError> {
        let lowered = lower(grammar, self.terminals, &self.limits)?;
        tracing::debug!(
            terminals = lowered.scanner.terminal_count(),
            nonterminals = lowered.cfg.nonterminal_count(),
            "lowered a grammar"
        );
        let reach = (self.lookahead, self.terminals);
        let asked = ResolvedTokens::of(grammar, self.tables.vocabulary(), self.any_special)?;
        let tables = self.tables_for(grammar, &asked)?;
        let common = self.common(grammar, &tables);
        let program = Program::new(lowered, &tables, asked, &common, reach, self.limits.clone())?;
        for table in &program.tables {
            self.limits.look()?;
            table.prepare(tables.vocabulary().trie());
        }
        let program = Arc::new(program);
        let host = MachinePool::new(&program).map_err(CompileError::limit)?;
        let patience = self.patience;
        let grammar_warnings = Arc::from(grammar.warnings());
        Ok(CompiledGrammar { program, tables, host, patience, grammar_warnings })
    }

    /// Returns the tables of the vocabulary, with the tokens spelled out that the grammar asks for.
    fn tables_for(
        &self,
        grammar: &Grammar,
        asked: &ResolvedTokens,
    ) -> Result<VocabularyTables, CompileError> {
        if asked.is_nothing() {
            return Ok(self.tables.clone());
        }
        if asks_for_marks(grammar) {
            return Err(CompileError::new(CompileErrorKind::SpecialsAmongBytes));
        }
        let mut known = self.spelled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tables) = known.get(asked.spelled()) {
            return Ok(tables.clone());
        }
        let named: Vec<(TokenId, &str)> = asked.spelled().iter().map(|(id, name)| (*id, &**name)).collect();
        let spelled = self.tables.vocabulary().with_spelled(&named);
        let spelled = spelled.map_err(|error| CompileError::new(CompileErrorKind::Vocabulary(error)))?;
        let tables = VocabularyTables::new(spelled, self.tables.cache().clone());
        if known.len() == MOST_SPELLED {
            known.clear();
        }
        known.insert(asked.spelled().to_vec(), tables.clone());
        Ok(tables)
    }

    /// Returns the tables that grammars of this notation share.
    fn common(&self, grammar: &Grammar, tables: &VocabularyTables) -> Vec<Arc<TerminalTable>> {
        // One that is over budget is no loss but of time.
        let dfa = |automaton: &Automaton| {
            let kind = PatternKind::Automaton(automaton.clone());
            scanner::build_pattern(&kind, self.limits.dfa_states, &self.limits).ok()?
        };
        let common = grammar.common().iter();
        common.filter_map(|automaton| tables.of_common(automaton, || dfa(automaton))).collect()
    }
}

/// A grammar ready to constrain. Cloning is cheap; `Send` and `Sync`.
#[derive(Debug, Clone)]
pub struct CompiledGrammar {
    program: Arc<Program>,
    tables: VocabularyTables,
    host: MachinePool,
    patience: Option<Patience>,
    grammar_warnings: Arc<[GrammarWarning]>,
}

/// Progress of growing trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TreeProgress {
    /// Scanner states whose trees are grown.
    pub done: usize,
    /// Scanner states whose trees are to be grown.
    pub total: usize,
}

impl CompiledGrammar {
    /// Starts a session at the beginning of a text. Sessions share what they compute about the grammar.
    #[must_use]
    pub fn constraint(&self) -> Constraint {
        let constraint = Constraint::new(Arc::clone(&self.program), self.host.clone());
        match self.patience {
            Some(patience) => constraint.patient(patience),
            None => constraint,
        }
    }

    /// Memory of everything its sessions share. Constant time for each machine, each terminal, and each name
    /// in the grammar.
    #[must_use]
    pub fn memory(&self) -> Memory {
        let mut memory = self.host.memory(&self.program);
        (memory.grammar, memory.terminals) = (self.program.bytes(), self.program.terminal_bytes());
        memory.trees += self.program.grown.get().map_or(0, |trees| trees.own_bytes());
        memory
    }

    /// The [warnings](Grammar::warnings) of the grammar it was compiled from.
    #[must_use]
    pub fn grammar_warnings(&self) -> &[GrammarWarning] {
        &self.grammar_warnings
    }

    /// The hash of the grammar alone, whatever the vocabulary and the options.
    #[doc(hidden)]
    #[must_use]
    pub fn grammar_hash(&self) -> String {
        self.program.grammar_key().hex()
    }

    /// The program that its sessions run.
    pub(crate) fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Grows all subterminal trees now instead of when texts first need them, on all cores. Masks are the
    /// same. Does nothing if the trees are there. Of states that are almost alike, as those that differ in a
    /// count, one has a tree; those so near the bound that a token can cross it get theirs when a text comes
    /// to them.
    ///
    /// Costs a walk over the vocabulary for each scanner state that many tokens can follow, some milliseconds
    /// for grammars like JSON or C. Memory is bounded by [`Limits::tree_bytes`] and work by
    /// [`GROWING_WORK`](crate::limits::GROWING_WORK); past either the rest grows as texts need it. With a
    /// [cache](Compiler::cache) the trees and the tables they are made from are taken from there or kept
    /// there. For a grammar with greedy lexing there are none: its masks are made by walks of the vocabulary.
    pub fn grow_trees(&self) {
        self.grow_trees_with(|_| {});
    }

    /// Grows all trees like [`grow_trees`](Self::grow_trees); `progress` is called from any thread.
    pub fn grow_trees_with(&self, progress: impl Fn(TreeProgress) + Sync) {
        self.program.grown.get_or_init(|| Arc::new(self.grown(&progress)));
    }

    /// Grows all trees on a thread of its own (without the feature `threads`: before it returns), for
    /// instance while a model reads its prompt. Sessions go on meanwhile, and use the trees from their next
    /// mask on once all are there.
    pub fn grow_trees_in_background(&self) {
        self.in_background(Self::grow_trees);
    }

    /// [Explores](Self::explore) on a thread of its own (without the feature `threads`: before it returns),
    /// for instance while a model is loaded and reads its prompt.
    pub fn explore_in_background(&self) {
        self.in_background(|grammar| {
            grammar.explore();
        });
    }

    fn in_background(&self, work: impl FnOnce(&Self) + Send + 'static) {
        let grammar = self.clone();
        if let Err(error) = cores::in_background("domino trees", move || work(&grammar)) {
            tracing::warn!(
                "no thread to work ahead on: {error}; trees and masks are made as texts need them"
            );
        }
    }

    /// Makes masks ahead, those of the places that texts come to first: [grows](Self::grow_trees) all trees,
    /// then follows every text from the start, those with the fewest rules open first. A grammar that does
    /// not nest, such as a form to fill in, is soon known as a whole; then every mask is a lookup from the
    /// first text on. Masks are the same.
    ///
    /// Does as much as [`Limits::exploration`] says, always the same, on one thread; a quarter of the memory
    /// of parser sets and constraint states and half of that of masks at most, so that texts find room for
    /// what they come to themselves. Called again, it does again what is there no more. Sessions go on
    /// meanwhile; a step of theirs waits for a fraction of a millisecond.
    pub fn explore(&self) -> Exploration {
        self.grow_trees();
        let work = &mut Work::new(self.program.limits.exploration);
        let explored = self.host.explore(&self.program, work);
        tracing::debug!(states = explored.states, complete = explored.complete, "explored a grammar");
        explored
    }

    /// Are all trees there, grown or loaded?
    #[must_use]
    pub fn has_trees(&self) -> bool {
        self.program.grown.get().is_some()
    }

    /// Serialises all trees, sealed with a checksum and with their grammar, vocabulary and options. Grows
    /// them if they are not there.
    #[must_use]
    pub fn artefact(&self) -> Vec<u8> {
        self.grow_trees();
        seal(Kind::Trees, &self.program.key(), &self.trees_payload())
    }

    /// Loads the trees from an [`artefact`](Self::artefact), if they are not there yet. Linear in its size:
    /// about 1 ms for 2 MB.
    ///
    /// # Errors
    /// If it is damaged, or was made by another version, for another grammar or vocabulary, or with other
    /// options; then nothing has changed, and trees grow as without it.
    pub fn load_artefact(&self, artefact: &[u8]) -> Result<(), StoreError> {
        let mut reader = PayloadReader::new(open(artefact, Kind::Trees, &self.program.key())?);
        let forest = self.read_trees(&mut reader)?;
        reader.finish()?;
        // Whoever was first, the trees are the same.
        let _ = self.program.grown.set(Arc::new(forest));
        Ok(())
    }

    /// Loads or grows all trees, and stores grown ones. A greedy grammar has none.
    fn grown(&self, progress: &(dyn Fn(TreeProgress) + Sync)) -> Forest {
        if self.program.lowered.greedy {
            return Forest::new(self.program.limits.tree_bytes);
        }
        if let Some(forest) = self.cached_trees() {
            return forest;
        }
        let (program, tables) = (&self.program, &self.tables);
        program.tables.iter().for_each(|table| tables.load(table));
        let report = |done, total| progress(TreeProgress { done, total });
        let forest = Forest::grown(program.inputs(), program.limits.tree_bytes, &report);
        tracing::debug!(nodes = forest.len(), bytes = forest.bytes(), "grew all trees of a grammar");
        if tables.cache().path().is_some() {
            program.tables.iter().for_each(|table| tables.save(table));
            let mut writer = PayloadWriter::default();
            forest.write(&mut writer);
            tables.cache().put(Kind::Trees, &program.key(), &writer.finish());
        }
        forest
    }

    /// Loads the trees from the cache folder.
    fn cached_trees(&self) -> Option<Forest> {
        let cache = self.tables.cache();
        cache.path()?;
        cache.get(Kind::Trees, &self.program.key(), |reader| self.read_trees(reader))
    }

    fn read_trees(&self, reader: &mut PayloadReader<'_>) -> Result<Forest, StoreError> {
        Forest::read(reader, self.program.inputs(), self.program.limits.tree_bytes)
    }

    fn trees_payload(&self) -> Vec<u8> {
        let mut writer = PayloadWriter::default();
        if let Some(forest) = self.program.grown.get() {
            forest.write(&mut writer);
        }
        writer.finish()
    }

    /// The vocabulary it was compiled for.
    #[must_use]
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.program.asked.vocabulary
    }

    /// The text that a token adds: its bytes, or the name of a special token that the grammar asks for.
    #[must_use]
    pub fn text_of(&self, token: TokenId) -> &[u8] {
        self.program.text_of(token)
    }

    /// The lookahead it was compiled with.
    #[must_use]
    pub fn lookahead(&self) -> Lookahead {
        self.program.lookahead
    }

    /// The terminals it was compiled with.
    #[must_use]
    pub fn terminals(&self) -> Terminals {
        self.program.terminals
    }
}

impl Compiler {
    /// This compiler, with a handle by which another thread, or a time, ends what it [reads](Self::parse),
    /// [compiles](Self::compile) and [prepares](Self::prepare). It shares all that this one keeps. Costs a
    /// few counts of references.
    ///
    /// What has ended so was never asked for: nothing unfinished is kept, and this compiler goes on. Compiled
    /// grammars do not have the handle, so they go on too when it is cancelled later.
    ///
    /// # Example
    /// ```
    /// use std::time::Duration;
    ///
    /// use domino::{Cancel, Compiler, Syntax, TokenId, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().all_bytes().end_of_text(TokenId::new(256)).build()?;
    /// let compiler = Compiler::new(vocabulary);
    /// let grammar = compiler.parse(Syntax::Regex, "[a-f]{40}")?;
    /// let hurried = compiler.cancelled_by(&Cancel::after(Duration::ZERO));
    /// let error = hurried.compile(&grammar).unwrap_err();
    /// assert!(error.is_cancelled());
    /// assert!(error.to_string().contains("give it more time"));
    /// compiler.cancelled_by(&Cancel::after(Duration::from_secs(60))).compile(&grammar)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn cancelled_by(&self, cancel: &Cancel) -> Self {
        self.clone().limits(self.limits.clone().cancelled_by(cancel))
    }
}

// A compiler keeps tables between grammars: they can be filled ahead, weighed and dropped.

impl Compiler {
    /// Sets the automata of JSON Schemas that [`parse`](Self::parse) goes by: those of another compiler, for
    /// instance. Default: its own.
    #[must_use]
    pub fn share_automata(mut self, automata: AutomataCache) -> Self {
        self.automata = automata;
        self
    }

    /// The automata of JSON Schemas that were [parsed](Self::parse), for whoever reads schemas in another way
    /// ([`SchemaOptions::parse_with`](crate::grammar::json_schema::SchemaOptions::parse_with)), weighs them
    /// or forgets them.
    #[must_use]
    pub fn automata(&self) -> &AutomataCache {
        &self.automata
    }

    /// Memory of the tables that grammars of this compiler share, and of those kept for later grammars.
    /// Linear in the number of terminals.
    ///
    /// # Example
    /// ```
    /// use domino::{Compiler, Syntax, TokenId, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().all_bytes().end_of_text(TokenId::new(256)).build()?;
    /// let compiler = Compiler::new(vocabulary);
    /// let compiled = compiler.compile(&compiler.parse(Syntax::Regex, "[a-f]{40}")?)?;
    /// assert!(compiler.memory().terminals >= compiled.memory().terminals);
    /// drop(compiled);
    /// let before = compiler.memory().unused;
    /// compiler.trim(1_000);
    /// assert!(compiler.memory().unused <= before);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn memory(&self) -> CompilerMemory {
        let spelled = self.spelled.lock().unwrap_or_else(PoisonError::into_inner);
        let mut memory = CompilerMemory { automata: self.automata.bytes(), ..CompilerMemory::default() };
        for tables in spelled.values().chain([&self.tables]) {
            let TableMemory { all, unused, shared } = tables.weights();
            memory.terminals += all;
            memory.unused += unused;
            memory.shared += shared;
        }
        memory.vocabularies = spelled.values().map(|tables| tables.vocabulary().memory()).sum();
        memory
    }

    /// Drops tables that are kept for later grammars until they take no more than `most` bytes: first the
    /// terminals that no grammar uses, least recently asked for first, then automata of schemas. Grammars
    /// that are compiled go on as they are; masks are the same.
    pub fn trim(&self, most: usize) {
        let automata = self.automata.bytes();
        let mut room = most.saturating_sub(automata);
        let spelled = self.spelled.lock().unwrap_or_else(PoisonError::into_inner);
        for tables in spelled.values().chain([&self.tables]) {
            tables.trim(room);
            room = room.saturating_sub(tables.weights().unused);
        }
        if automata > most {
            self.automata.trim(most);
        }
    }

    /// Reads a grammar within the compiler's limits, with the automata of schemas that it has read before:
    /// [`Grammar::parse_with`].
    ///
    /// # Errors
    /// As [`Grammar::parse`].
    ///
    /// # Example
    /// ```
    /// use domino::{Compiler, Syntax, TokenId, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().all_bytes().end_of_text(TokenId::new(256)).build()?;
    /// let compiler = Compiler::new(vocabulary);
    /// for schema in [r#"{"type": "number"}"#, r#"{"items": {"type": "number"}}"#] {
    ///     compiler.compile(&compiler.parse(Syntax::JsonSchema, schema)?)?;
    /// }
    /// assert!(compiler.automata().bytes() > 0);
    /// compiler.automata().clear();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn parse(&self, syntax: Syntax, text: &str) -> Result<Grammar, GrammarError> {
        Grammar::parse_with(syntax, text, &self.limits, &self.automata)
    }

    /// Makes the tables ahead that grammars such as this one need of the vocabulary, for instance while a
    /// model is loaded, so that the first of them does not wait. Takes some 30 ms for [JSON
    /// Schema](crate::grammar::json_schema::SchemaOptions::kinds_of_values) with 131k tokens. Masks are the
    /// same.
    ///
    /// # Errors
    /// As [`compile`](Self::compile).
    ///
    /// # Example
    /// ```
    /// use domino::{Compiler, Limits, TokenId, Vocabulary, grammar::json_schema::SchemaOptions};
    ///
    /// let vocabulary = Vocabulary::builder().all_bytes().end_of_text(TokenId::new(256)).build()?;
    /// let compiler = Compiler::new(vocabulary);
    /// compiler.prepare(&SchemaOptions::default().kinds_of_values(&Limits::default())?.grammar)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn prepare(&self, grammar: &Grammar) -> Result<(), CompileError> {
        // A long rehearsal, however small the grammar is.
        let limits = Limits { rehearsal: PREPARING_WORK, rehearsal_size: 0, ..self.limits.clone() };
        self.tables.vocabulary().trie().sort_by_kind();
        let compiled = self.clone().limits(limits).compile(grammar)?;
        // What was made before an error stays.
        let _ = compiled.constraint().mask();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::Syntax;

    /// Building the index of tokens by characters, which counted strings need, is no part of any step of a
    /// text.
    #[test]
    fn strings_have_their_index_once_compiled() {
        let schema = r#"{"type": "string", "maxLength": 3}"#;
        let grammar = Grammar::parse(Syntax::JsonSchema, schema, &Limits::default()).unwrap();
        let vocabulary = Vocabulary::builder().all_bytes().end_of_text(TokenId::new(256));
        let compiler = Compiler::new(vocabulary.build().unwrap());
        let bytes = || {
            let common = compiler.common(&grammar, &compiler.tables);
            common.iter().map(|table| table.bytes()).sum::<usize>()
        };
        let before = bytes();
        compiler.compile(&grammar).unwrap();
        assert!(bytes() > before);
    }
}

#[cfg(test)]
mod cancelled_tests;

//! Tables that a compiler keeps between grammars: filled ahead, weighed and dropped.

use std::sync::PoisonError;

use super::Compiler;
use crate::{
    grammar::{AutomataCache, Grammar, GrammarError, Syntax},
    limits::{Limits, PREPARING_WORK},
    lower::CompileError,
    machine::CompilerMemory,
    subterminal::TableMemory,
};

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

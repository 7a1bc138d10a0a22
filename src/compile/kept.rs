//! What a compiler keeps between grammars: filled ahead.

use super::Compiler;
use crate::{
    grammar::{AutomataCache, Grammar, GrammarError, Syntax},
    limits::{Limits, PREPARING_WORK},
    lower::CompileError,
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
    /// ([`SchemaOptions::parse_with`](crate::grammar::json_schema::SchemaOptions::parse_with)), weighs them or
    /// forgets them.
    #[must_use]
    pub fn automata(&self) -> &AutomataCache {
        &self.automata
    }

    /// Reads a grammar within its limits, by what it has read before: [`Grammar::parse_with`].
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

    /// Makes ahead what grammars such as this one need of the vocabulary, so that the first of them waits for
    /// none of it: while a model is loaded, for instance. Takes some 30 ms for
    /// [JSON Schema](crate::grammar::json_schema::SchemaOptions::kinds_of_values) with 131k tokens. Masks are
    /// the same.
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

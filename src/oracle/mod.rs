//! A brute-force decider of viable prefixes, to hold the engine against.
//!
//! It shares the grammar IR with the engine and nothing else: no lexer, no automata, no interning. The
//! IR becomes one context-free grammar over bytes (`bytes_cfg`), and a textbook Earley recogniser
//! (`session`) reads one byte after the other. Without unproductive rules every state of that
//! recogniser can be completed to a sentence, so "some item is left" means "viable prefix".
//!
//! [`lookahead`] is apart: it counts terminals, so it takes those of the lowered grammar as given.
//!
//! Simple and slow on purpose: a mask over 32,000 tokens takes up to a second.

mod bytes_cfg;
mod error;
pub mod lookahead;
mod repeated;
mod session;
#[cfg(test)]
mod tests;

use crate::{
    grammar::Grammar,
    oracle::bytes_cfg::{BytesCfg, MAX_SYMBOLS},
    vocab::{TokenSet, Vocabulary},
};

pub use error::OracleError;
pub use session::{Session, SortedTokens};

/// Decides which byte strings can be completed to a sentence of a grammar.
#[derive(Debug)]
pub struct Oracle {
    cfg: BytesCfg,
    /// Does no text count in which an object has a key twice?
    distinct_keys: bool,
}

impl Oracle {
    /// Creates the oracle of `grammar`. Linear in its expressions and in the counts of its repetitions.
    ///
    /// # Errors
    /// If the grammar over bytes would have more than 50 million symbols, or is greedy.
    pub fn new(grammar: &Grammar) -> Result<Self, OracleError> {
        Self::within(grammar, MAX_SYMBOLS)
    }

    /// Creates the oracle of `grammar` if that is cheap: the grammar over bytes has fewer than `symbols`
    /// symbols.
    ///
    /// # Errors
    /// If it has more, or is greedy.
    pub fn within(grammar: &Grammar, symbols: usize) -> Result<Self, OracleError> {
        if grammar.is_greedy() {
            return Err(OracleError::Greedy);
        }
        if grammar.classes().len() > 0 {
            return Err(OracleError::Tokens);
        }
        if grammar.distinct_items().is_some() {
            return Err(OracleError::Items);
        }
        let distinct_keys = grammar.distinct_keys().is_some();
        Ok(Self { cfg: BytesCfg::new(grammar, symbols)?, distinct_keys })
    }

    /// Starts a session at the empty text.
    #[must_use]
    pub fn session(&self) -> Session<'_> {
        Session::new(&self.cfg, self.distinct_keys)
    }

    /// Does the grammar have a sentence at all?
    #[must_use]
    pub fn has_sentence(&self) -> bool {
        self.cfg.has_sentence()
    }

    /// Is `text` the beginning of a sentence, or one?
    #[must_use]
    pub fn viable(&self, text: &[u8]) -> bool {
        self.has_sentence() && self.session().push_all(text)
    }

    /// Is `text` a sentence?
    #[must_use]
    pub fn accepts(&self, text: &[u8]) -> bool {
        let mut session = self.session();
        session.push_all(text) && session.is_complete()
    }

    /// Returns the tokens of `vocabulary` that may follow `prefix`: those after whose bytes the text is still
    /// viable, and the end-of-text tokens if it is a sentence. None if `prefix` is not viable.
    #[must_use]
    pub fn mask(&self, prefix: &[u8], vocabulary: &Vocabulary) -> TokenSet {
        let mut session = self.session();
        if session.push_all(prefix) {
            session.mask(&SortedTokens::new(vocabulary))
        } else {
            TokenSet::empty(vocabulary.size())
        }
    }
}

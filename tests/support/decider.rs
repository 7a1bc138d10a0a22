//! Membership of a text in a language, by the engine and by the brute-force oracle.

use domino::{CompiledGrammar, Compiler, Grammar, TokenId, Vocabulary};

/// Decides texts of one grammar.
pub(crate) trait Decider {
    /// Makes a decider for this grammar.
    fn of(grammar: &Grammar) -> Self;
    /// Returns whether `text` is a prefix of a text of the grammar, and whether it is one itself.
    fn decide(&mut self, text: &[u8]) -> (bool, bool);

    /// True for a text of the grammar.
    fn accepts(&mut self, text: &[u8]) -> bool {
        self.decide(text).1
    }

    /// True for a prefix of a text of the grammar.
    fn viable(&mut self, text: &[u8]) -> bool {
        self.decide(text).0
    }
}

/// A token for each byte, whose id is the byte, and 256 to end the text.
pub(crate) fn byte_vocabulary() -> Vocabulary {
    Vocabulary::builder().all_bytes().end_of_text(TokenId::new(256)).build().expect("a vocabulary")
}

/// The engine, over [`byte_vocabulary`].
pub(crate) struct Engine(pub(crate) CompiledGrammar);

impl Decider for Engine {
    fn of(grammar: &Grammar) -> Self {
        Self(Compiler::new(byte_vocabulary()).compile(grammar).expect("the grammar compiles"))
    }

    fn decide(&mut self, text: &[u8]) -> (bool, bool) {
        let mut constraint = self.0.constraint();
        let viable = constraint.advance_bytes(text).expect("within the budgets") == text.len();
        (viable, viable && constraint.is_complete())
    }
}

impl Decider for domino::oracle::Oracle {
    fn of(grammar: &Grammar) -> Self {
        Self::new(grammar).expect("the oracle takes the grammar")
    }

    fn decide(&mut self, text: &[u8]) -> (bool, bool) {
        let mut session = self.session();
        let viable = self.has_sentence() && session.push_all(text);
        (viable, viable && session.is_complete())
    }
}

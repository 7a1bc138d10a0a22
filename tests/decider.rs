//! Two ways to decide whether a text is of a grammar: the engine, and the brute-force oracle.

use domino::Grammar;

/// Decides texts of one grammar.
pub(crate) trait Decider {
    /// For this grammar.
    fn of(grammar: &Grammar) -> Self;
    /// Is it the start of a text of the grammar, and is it one itself?
    fn decide(&mut self, text: &[u8]) -> (bool, bool);

    /// Is it a text of the grammar?
    fn accepts(&mut self, text: &[u8]) -> bool {
        self.decide(text).1
    }

    /// Is it the start of a text of the grammar?
    fn viable(&mut self, text: &[u8]) -> bool {
        self.decide(text).0
    }
}

#[cfg(feature = "oracle")]
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

//! Grammar IR -> terminals and a reduced context-free grammar.
//!
//! The passes, and what holds after each:
//! 1. [`recursion`]: no rule begins or ends with itself; such recursion has become repetition.
//! 2. [`regular`]: it is known which expressions are regular, and how large.
//! 3. [`emit`]: regular expressions within the budget have become terminals, none of which matches the
//!    empty string; the rest has become productions, with repetition as left recursion.
//! 4. [`reduce`]: every symbol derives some text and occurs in some sentence, so "may follow" means
//!    "a sentence follows".

mod cfg;
mod emit;
mod error;
mod recursion;
mod reduce;
mod regular;
mod work;

pub(crate) use cfg::{Cfg, Dot, NonterminalId, Slot};
pub use error::{CompileError, CompileErrorKind};

use crate::{grammar::Grammar, limits::Limits, scanner::Scanner};

/// A grammar as the parser and the scanner need it.
#[derive(Debug)]
pub(crate) struct Lowered {
    /// The productions.
    pub(crate) cfg: Cfg,
    /// The terminals' automata.
    pub(crate) scanner: Scanner,
    /// How each terminal is written, for display.
    pub(crate) terminal_names: Vec<String>,
}

/// Runs the passes. Roughly linear in the grammar, apart from determinisation, which is bounded by `limits`.
pub(crate) fn lower(grammar: &Grammar, limits: &Limits) -> Result<Lowered, CompileError> {
    let mut work = work::WorkGrammar::from_ir(grammar, limits)?;
    let order = work.rules_callees_first();
    recursion::to_repetition(&mut work, &order, limits)?;
    let regular = regular::analyse(&work, &order);
    let emitted = emit::emit(&work, &regular, limits)?;
    let (cfg, dfas, terminal_names) =
        reduce::reduce(emitted).ok_or_else(|| CompileError::new(CompileErrorKind::EmptyLanguage))?;
    let scanner = Scanner::new(dfas).ok_or_else(|| {
        CompileError::limit(crate::limits::LimitExceeded::new("scanner states", u32::MAX as usize))
    })?;
    Ok(Lowered { cfg, scanner, terminal_names })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::Syntax;

    fn lowered(text: &str) -> Lowered {
        let limits = Limits::default();
        lower(&Grammar::parse(Syntax::Gbnf, text, &limits).unwrap(), &limits).unwrap()
    }

    /// Terminals and nonterminals, the start apart.
    fn sizes(text: &str) -> (usize, usize) {
        let lowered = lowered(text);
        (lowered.scanner.terminal_count(), lowered.cfg.nonterminal_count() - 1)
    }

    #[test]
    fn regular_rules_are_one_terminal() {
        assert_eq!(sizes(r#"root ::= "a" [0-9]+ | "b""#), (1, 0));
        // A terminal that matched the empty string is split: terminal, and a nonterminal that may be empty.
        assert_eq!(sizes(r#"root ::= ws "x" ws   ws ::= ([ \t\n] ws)?"#), (1, 0));
        assert_eq!(sizes(r#"root ::= "(" root? ")" ws   ws ::= [ ]*"#).0, 3);
    }

    #[test]
    fn linear_recursion_is_repetition() {
        for text in [
            r#"root ::= "a" root | "b""#,
            r#"root ::= "a" (root | "b" root) | ("b")"#,
            r#"root ::= "a" root? | root "c" | "b""#,
            r#"root ::= root "+" root | "1""#,
            r#"root ::= root root | "1" | root"#,
        ] {
            assert_eq!(sizes(text), (1, 0), "{text}");
        }
    }

    #[test]
    fn what_is_too_large_stays_apart() {
        let (terminals, nonterminals) = sizes(r#"root ::= [a-z]{500} [0-9]{0,1000}"#);
        assert_eq!(terminals, 2);
        // Counts up to a block of 256, and rests.
        assert!(nonterminals < 600, "{nonterminals}");
    }

    #[test]
    fn equal_terminals_are_one() {
        assert_eq!(sizes(r#"root ::= "(" root? ")" | "\x28" "z" root "(" | [(] root [)]"#).0, 3);
    }

    #[test]
    fn no_sentence_is_an_error() {
        for text in ["root ::= root", r#"root ::= "a" x  x ::= "b" x"#, "root ::= a  a ::= b  b ::= a"] {
            let limits = Limits::default();
            let grammar = Grammar::parse(Syntax::Gbnf, text, &limits).unwrap();
            let error = lower(&grammar, &limits).unwrap_err();
            assert_eq!(*error.kind(), CompileErrorKind::EmptyLanguage, "{text}");
        }
    }

    #[test]
    fn what_no_sentence_uses_is_gone() {
        let lowered = lowered(
            r#"root ::= "(" (root | "x" never)? ")"  never ::= "n" never2  never2 ::= never unused  unused ::= "u""#,
        );
        assert_eq!(lowered.terminal_names, [r#""(""#, r#"")""#]);
    }
}

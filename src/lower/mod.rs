//! Lowers the grammar IR to terminals and a reduced context-free grammar.
//!
//! The passes, and what holds after each:
//! 1. [`recursion`]: no rule begins or ends with itself; such recursion has become repetition.
//! 2. [`factor_runs`], unless terminals are written: no repetition has regular alternatives beside others;
//!    adjacent regular ones form one expression. Or [`lexemes`]: neighbours that a lexer would take as one
//!    are one expression.
//! 3. [`regular`]: it is known which expressions are regular, and how large.
//! 4. [`emit`]: regular expressions within the budget have become terminals, none of which matches the empty
//!    string; the rest has become productions, with repetition as left recursion.
//! 5. [`reduce`]: every symbol derives some text and occurs in some sentence, so "may follow" means "a
//!    sentence follows".

mod cfg;
mod components;
mod error;
mod lowered;
mod passes;
mod provenance;
mod terminals;
#[cfg(test)]
mod written_tests;

pub(crate) use cfg::any_order::{AnyOrderList, NEVER};
pub(crate) use cfg::follow::Follow;
pub(crate) use cfg::shortest::{NonterminalUses, Prices, rests, shortest};
pub(crate) use cfg::symbols::{AfterDot, DottedRule, NonterminalId, Symbol};
pub(crate) use cfg::{Cfg, DominanceRank};
pub(crate) use components::components;
pub use error::{CompileError, CompileErrorKind};
pub(crate) use lowered::Lowered;
pub(crate) use provenance::{Provenance, RuleFate, SourceSpan};
pub use terminals::Terminals;

use std::time::Duration;

use self::{
    passes::{emit, factor_runs, lexemes, recursion, reduce, regular, rewrite},
    provenance::fates,
};
use crate::{
    clock::Instant,
    grammar::Grammar,
    limits::{Budget, LimitExceeded, Limits},
    scanner::Scanner,
};

/// Runs the passes. Roughly linear in the grammar, apart from determinisation, which is bounded by `limits`.
pub(crate) fn lower(
    grammar: &Grammar,
    terminals: Terminals,
    limits: &Limits,
) -> Result<Lowered, CompileError> {
    let mut clock = Clock::start(limits);
    let mut work = rewrite::WorkGrammar::from_ir(grammar, limits)?;
    let mut order = work.rules_callees_first();
    let rewritten = recursion::to_repetition(&mut work, &order, limits)?;
    clock.lap("recursion to repetition")?;
    let mut emitted = match terminals {
        Terminals::Folded => {
            let mut regular = regular::analyse(&work, &order);
            if factor_runs::to_runs(&mut work, &regular, &mut order, limits)? {
                regular = regular::analyse(&work, &order);
            }
            clock.lap("runs of regular parts")?;
            emit::emit(&work, &regular, limits)?
        }
        Terminals::Written => {
            let tokens = lexemes::separate(&mut work, &order, limits)?;
            let mut regular = regular::analyse(&work, &order);
            regular.retain(&tokens);
            let fold_states = limits.fold_states.saturating_mul(lexemes::STATES_FACTOR);
            emit::emit(&work, &regular, &Limits { fold_states, ..limits.clone() })?
        }
    };
    clock.lap("terminals and productions")?;
    let (symbols, absorbed) = (std::mem::take(&mut emitted.rules), std::mem::take(&mut emitted.absorbed));
    let reduced =
        reduce::reduce(emitted).ok_or_else(|| CompileError::new(CompileErrorKind::EmptyLanguage))?;
    let notes =
        fates::Notes { reachable: &order, rewritten: &rewritten, symbols: &symbols, absorbed: &absorbed };
    let cfg = reduced.cfg;
    if cfg.lists().iter().any(|(_, list)| cfg.has_empty_part(list)) {
        return Err(CompileError::new(CompileErrorKind::EmptyPart));
    }
    let rules = fates::rules(&work, &notes, &reduced.numbers, |nonterminal| cfg.only_terminal(nonterminal));
    clock.lap("reduction")?;
    let scanner = Scanner::new(reduced.terminals, limits.terminal_bytes).ok_or_else(|| {
        CompileError::limit(LimitExceeded::new(Budget::Fixed, "scanner states", u32::MAX as usize))
    })?;
    clock.lap("scanner")?;
    let provenance = Provenance {
        root: work.root(),
        rules,
        terminals: reduced.terminal_origins,
        nonterminals: reduced.nonterminal_origins,
    };
    Ok(Lowered {
        cfg,
        scanner,
        terminal_names: reduced.terminal_names,
        provenance,
        keys: grammar.distinct_keys(),
        items: grammar.distinct_items(),
        after_new: reduced.after_new,
        greedy: grammar.is_greedy(),
        times: clock.laps,
    })
}

/// A clock of passes, for display only, which looks between them whether the work was cancelled.
struct Clock<'l> {
    last: Instant,
    laps: Vec<(&'static str, Duration)>,
    limits: &'l Limits,
}

impl<'l> Clock<'l> {
    fn start(limits: &'l Limits) -> Self {
        Self { last: Instant::now(), laps: Vec::new(), limits }
    }

    fn lap(&mut self, pass: &'static str) -> Result<(), LimitExceeded> {
        let now = Instant::now();
        self.laps.push((pass, now.duration_since(self.last)));
        self.last = now;
        self.limits.look()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::Syntax;

    fn lowered(text: &str) -> Lowered {
        let limits = Limits::default();
        lower(&Grammar::parse(Syntax::Gbnf, text, &limits).unwrap(), Terminals::Folded, &limits).unwrap()
    }

    /// Counts terminals and nonterminals, without the start.
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
    fn large_regular_parts_stay_separate_terminals() {
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
    fn a_grammar_without_sentences_is_an_error() {
        for text in ["root ::= root", r#"root ::= "a" x  x ::= "b" x"#, "root ::= a  a ::= b  b ::= a"] {
            let limits = Limits::default();
            let grammar = Grammar::parse(Syntax::Gbnf, text, &limits).unwrap();
            let error = lower(&grammar, Terminals::Folded, &limits).unwrap_err();
            assert_eq!(*error.kind(), CompileErrorKind::EmptyLanguage, "{text}");
        }
    }

    #[test]
    fn rules_that_no_sentence_uses_are_removed() {
        let lowered = lowered(
            r#"root ::= "(" (root | "x" never)? ")"  never ::= "n" never2
            never2 ::= never unused  unused ::= "u""#,
        );
        assert_eq!(lowered.terminal_names(), [r#""(""#, r#"")""#]);
    }
}

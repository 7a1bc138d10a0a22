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
mod error;
mod lowered;
mod passes;
mod provenance;
#[cfg(test)]
mod written_tests;

use std::time::Duration;

use self::lowered::{Notes, rule_fates};
use self::passes::{emit, factor_runs, lexemes, recursion, reduce, regular, rewrite};
use crate::limits::{Budget, LimitExceeded, Limits};
use crate::{clock::Instant, grammar::Grammar, scanner::Scanner};

pub(crate) use cfg::{
    AfterDot, AnyOrderList, Cfg, DominanceRank, DottedRule, NEVER, NonterminalId, Symbol,
    follow::Follow,
    shortest::{NonterminalUses, Prices, rests, shortest},
};
pub use error::{CompileError, CompileErrorKind};
pub(crate) use lowered::Lowered;
pub(crate) use provenance::{Provenance, RuleFate, SourceSpan};

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
    if reduced.cfg.lists().iter().any(|(_, list)| reduced.cfg.has_empty_part(list)) {
        return Err(CompileError::new(CompileErrorKind::EmptyPart));
    }
    let notes = Notes { reachable: &order, rewritten: &rewritten, symbols: &symbols, absorbed: &absorbed };
    let rules = rule_fates(&work, &notes, &reduced.numbers, |one| reduced.cfg.only_terminal(one));
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
        cfg: reduced.cfg,
        scanner,
        terminal_names: reduced.terminal_names,
        provenance,
        keys: grammar.distinct_keys(),
        items: grammar.distinct_items(),
        thought: grammar.shared_thought(),
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

/// The choice of the parts of a grammar that are terminals.
///
/// With unbounded [`Lookahead`](crate::Lookahead) masks are the same. A finite `k` counts terminals, so it
/// depends on this: only with [`Written`](Self::Written) does it mean what the paper's `k` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Terminals {
    /// The largest regular parts, up to [`Limits::fold_states`](crate::Limits::fold_states) states each. They
    /// are few, so masks are fastest; a whole statement may be one terminal.
    #[default]
    Folded,
    /// The terminals of a lexer that a person would write for the grammar (the scanner of the paper, 3.2):
    ///
    /// * A literal is a terminal. A class, alone or repeated, is one.
    /// * A *token-like rule* is one: a rule over characters, such as `string`, `number`, `name` or `ws`. It
    ///   has a class and
    ///   - no literal that is a word: one with a letter, of at least three characters or two letters
    ///     (`"<job>"`, `"if"`);
    ///   - no two literals next to each other, which would be one literal if they were one token;
    ///   - no repetition of a part that itself has any number of characters, as `[0-9]+ ("," [0-9]+)*`, which
    ///     is a list;
    ///   - no recursion, but for that which repeats single characters (`ws ::= ([ \t\n] ws)?`);
    ///   - no mention of another rule, but for *fragments*: rules of bounded length that are, or have as an
    ///     alternative, or are an alternative to, a single character (`hex`, `[^"\\] | escape`); and rules
    ///     that nothing else mentions, all but one of them optional, in a sequence without literals, as
    ///     `int frac? exp?`.
    /// * So are two kinds of stretches inside other rules, as if they had a name: neighbouring parts with
    ///   classes and without literals between them, and such parts in quotes, that is, between two equal
    ///   literals (`"\"" [^"]* "\""` in `string ::= "\"" [^"]* "\"" ws`).
    /// * A regular expression is one terminal.
    ///
    /// In `job ::= "\"job\"" ws ":" ws string` the terminals are `"job"`, `ws`, `:` and `string`. Automata
    /// may have 16 times as many states as folded ones before they fall apart into smaller terminals.
    Written,
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

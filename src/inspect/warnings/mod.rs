//! Warnings: where a grammar is ambiguous, or otherwise written, in a way that costs.
//!
//! Two searches over the lowered grammar, each of which proposes texts and runs them to see what they cost:
//! [`growth`] finds recursion that makes every repetition dearer than the last, [`overlap`] finds neighbours that
//! share a text of any length and so keep several threads alive.
//!
//! What is warned of is true: a text is named that shows it. What is missed: growth that only texts show that are
//! longer than the shortest ones, or that mix several ways round; what comes only after tens of repetitions; and in very
//! large grammars whatever lies beyond the bounds of the searches. Ambiguity that costs nothing, such as cycles and
//! empty rules, is not warned of.

mod growth;
mod overlap;
mod runner;
mod yields;

use std::fmt;

use self::{
    growth::{Cause, Growth},
    overlap::Overlap,
    runner::{Run, Runner, Verdict},
    yields::Yields,
};
use super::marks::Marks;
use crate::{compile::CompiledGrammar, grammar::Span, ids::RuleId, lower::Lowered};

/// What is wrong with a grammar's cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WarningKind {
    /// A rule begins and ends with itself, so a text of many parts can be grouped in very many ways, and all of them are
    /// followed: the cost of a step grows with the text.
    Ambiguous,
    /// A rule ends with itself by way of others, so each end of it ends all that are open: the cost of a step grows with
    /// the text.
    RightRecursion,
    /// A rule inside itself can be told from what is around it only later, so that more and more ways to read the text
    /// are followed: the cost of a step grows with the text.
    Undecided,
    /// Two neighbours can share a text of any length, so that it is followed for each place where the one may have ended and
    /// the other begun. The cost does not grow with the text.
    Overlap,
}

impl WarningKind {
    /// Does the cost of a step grow with the text?
    #[must_use]
    pub fn is_grave(self) -> bool {
        self != Self::Overlap
    }
}

/// A place where a grammar costs more than it need. `Display` says what is wrong, on which text it shows, and how to
/// write it instead.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warning {
    /// What is wrong.
    pub kind: WarningKind,
    /// The rule it is in.
    pub rule: RuleId,
    /// The rule's name.
    pub rule_name: String,
    /// Where in the grammar text: the rule or, for a part of it, the part.
    pub span: Span,
    /// Other rules, or parts of them, that have to do with it, by name.
    pub others: Vec<String>,
    /// What is wrong, in a sentence.
    pub message: String,
    /// How to write it instead, in a sentence.
    pub hint: String,
    /// A text after which it shows.
    pub before: Vec<u8>,
    /// What is repeated after that text.
    pub repeated: Vec<u8>,
    /// Parser items and threads for one repetition, after some repetitions.
    pub early_cost: u64,
    /// The same after many repetitions.
    pub late_cost: u64,
    /// The most threads at once.
    pub threads: usize,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule {}: {}\nhint: {}", self.rule_name, self.message, self.hint)
    }
}

/// Names of other rules in a message.
const MOST_NAMES: usize = 5;
/// Bytes of an example in a message.
const EXAMPLE_BYTES: usize = 40;

impl CompiledGrammar {
    /// Where the grammar costs more than it need, the grave ones first. Empty for most grammars.
    ///
    /// Runs made-up texts on machines of its own; what sessions have found out is neither used nor changed. Takes about as
    /// long as compiling, up to some tenths of a second on large grammars. What is found, and what is not, is said of
    /// [`inspect`](crate::inspect).
    #[must_use]
    pub fn warnings(&self) -> Vec<Warning> {
        let program = self.program();
        let lowered = &program.lowered;
        let (yields, marks) = (Yields::new(lowered), Marks::new(lowered));
        let mut runner = Runner::new(program);
        let mut warnings: Vec<Warning> = growth::find(lowered, &yields, &marks, &mut runner)
            .iter()
            .map(|growth| grown(lowered, growth))
            .collect();
        for overlap in overlap::find(lowered, &yields, &mut runner) {
            let warning = overlapping(lowered, &overlap);
            // Recursion that makes an overlap grow was named already, and one growing overlap of a rule is enough.
            let known = |other: &Warning| other.kind.is_grave() && other.rule == warning.rule;
            if !(warning.kind.is_grave() && warnings.iter().any(known)) {
                warnings.push(warning);
            }
        }
        warnings.sort_by_key(|warning| !warning.kind.is_grave());
        warnings
    }
}

fn grown(lowered: &Lowered, growth: &Growth) -> Warning {
    let mut rules: Vec<RuleId> = growth.members.iter().map(|&member| lowered.rule_of(member)).collect();
    rules.sort_unstable();
    rules.dedup();
    let rule = lowered.rule_of(growth.nonterminal);
    let name = |rule: RuleId| lowered.provenance.rules[rule.index()].name.clone();
    let others: Vec<String> = rules.into_iter().filter(|&other| other != rule).map(name).collect();
    let kind = match growth.cause {
        Cause::BothEnds => WarningKind::Ambiguous,
        Cause::RightEnd => WarningKind::RightRecursion,
        Cause::Inside => WarningKind::Undecided,
    };
    let by_way_of = match &others[..] {
        [] => String::new(),
        others => format!(", by way of {}", list(others)),
    };
    let (what, hint) = match kind {
        WarningKind::Ambiguous => (
            format!(
                "it begins and ends with itself{by_way_of}: a text of many parts can be grouped in very many ways"
            ),
            "say how parts are grouped, or that it does not matter, as in `list ::= part (\",\" part)*`"
                .to_owned(),
        ),
        WarningKind::RightRecursion => (
            format!("it ends with itself{by_way_of}: each end of it ends all that are open"),
            "write repetition instead of recursion, as in `list ::= part (\",\" part)*`".to_owned(),
        ),
        _ => (
            format!("what it contains{by_way_of} can be read in more and more ways before one is ruled out"),
            "let a text tell where each part of it ends, for instance by a separator".to_owned(),
        ),
    };
    let message = format!("{what}; {}", costs(&growth.before, &growth.repeated, &growth.run));
    let (_, span) = lowered.part(growth.nonterminal);
    Warning {
        kind,
        rule,
        rule_name: name(rule),
        span,
        others,
        message,
        hint,
        before: growth.before.clone(),
        repeated: growth.repeated.clone(),
        early_cost: growth.run.cost.0,
        late_cost: growth.run.cost.1,
        threads: growth.run.threads,
    }
}

fn overlapping(lowered: &Lowered, overlap: &Overlap) -> Warning {
    let rule = lowered.rule_of(overlap.nonterminal);
    let rule_name = lowered.provenance.rules[rule.index()].name.clone();
    let symbol = lowered.symbol_name(overlap.symbol);
    let others: Vec<String> = overlap.others.iter().map(|&other| lowered.symbol_name(other)).collect();
    let (kind, cost) = match overlap.run.verdict {
        Verdict::Grows => (WarningKind::Undecided, costs(&overlap.before, &overlap.repeated, &overlap.run)),
        _ => {
            let threads = format!("{} threads after {}", overlap.run.threads, shown(&overlap.before));
            (WarningKind::Overlap, threads)
        }
    };
    let message = format!(
        "{symbol} can go on with {} over and over where {} may begin with the same: {cost}",
        shown(&overlap.repeated),
        list(&others),
    );
    let (_, span) = lowered.part(overlap.nonterminal);
    Warning {
        kind,
        rule,
        rule_name,
        span,
        others,
        message,
        hint: format!(
            "let only one of {symbol} and what follows it have that text, or put something between them"
        ),
        before: overlap.before.clone(),
        repeated: overlap.repeated.clone(),
        early_cost: overlap.run.cost.0,
        late_cost: overlap.run.cost.1,
        threads: overlap.run.threads,
    }
}

/// What repetitions cost that cost more and more.
fn costs(before: &[u8], repeated: &[u8], run: &Run) -> String {
    format!(
        "after {}, a repetition of {} costs {} items and threads, and later {}",
        shown(before),
        shown(repeated),
        run.cost.0,
        run.cost.1
    )
}

fn list(names: &[String]) -> String {
    let mut text = names.iter().take(MOST_NAMES).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > MOST_NAMES {
        text += &format!(" and {} more", names.len() - MOST_NAMES);
    }
    text
}

/// The end of a text, in quotes.
fn shown(text: &[u8]) -> String {
    let start = text.len().saturating_sub(EXAMPLE_BYTES);
    let dots = if start > 0 { "..." } else { "" };
    format!("{dots}{:?}", String::from_utf8_lossy(&text[start..]))
}

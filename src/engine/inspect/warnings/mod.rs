//! Warnings about grammars that cost more than they need, such as ambiguous ones.
//!
//! Two searches over the lowered grammar propose texts, and run them to see what they cost: [`growth`] finds
//! recursion that makes every repetition costlier than the last, [`overlap`] finds neighbours that share a
//! text of any length and so keep several threads alive.
//!
//! Every warning is true: it names a text that shows it. Some growth is missed: if only longer texts than the
//! shortest show it, or texts that mix several cycles; if it begins after tens of repetitions; and in very
//! large grammars whatever lies beyond the bounds of the searches. Ambiguity that costs nothing, such as
//! cycles and empty rules, gets no warning.

mod growth;
mod overlap;
mod runner;
mod yields;

use std::fmt;

use self::{
    growth::{Cause, CostGrowth},
    overlap::Overlap,
    runner::{RepetitionVerdict, ShownText, TextRunner},
    yields::Yields,
};
use super::marks::SymbolFacts;
use crate::lower::{Lowered, NonterminalId};
use crate::{compile::CompiledGrammar, grammar::Span, ids::RuleId};

/// The kind of a costly place in a grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WarningKind {
    /// A rule begins and ends with itself, so a text of many parts can be grouped in very many ways, all of
    /// which are followed: the cost of a step grows with the text.
    Ambiguous,
    /// A rule ends with itself by way of others, so each end of it ends all that are open: the cost of a step
    /// grows with the text.
    RightRecursion,
    /// A rule inside itself can be distinguished from its surroundings only later, so that more and more ways
    /// to read the text are followed: the cost of a step grows with the text.
    Undecided,
    /// Two neighbours can share a text of any length, which is followed for each place where the one may have
    /// ended and the other begun. The cost does not grow with the text.
    Overlap,
}

impl WarningKind {
    /// Does the cost of a step grow with the text?
    #[must_use]
    pub fn is_grave(self) -> bool {
        self != Self::Overlap
    }
}

/// A place where a grammar costs more than it need. `Display` says what is wrong, on which text it shows, and
/// how to write it instead.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warning {
    /// The kind of the fault.
    pub kind: WarningKind,
    /// The rule it is in.
    pub rule: RuleId,
    /// The rule's name.
    pub rule_name: String,
    /// The place in the grammar text: the rule or, for a part of it, the part.
    pub span: Span,
    /// Names of other rules, or parts of them, that take part in it.
    pub others: Vec<String>,
    /// A sentence that says what is wrong.
    pub message: String,
    /// A sentence that says how to write it instead.
    pub hint: String,
    /// The text after which it shows.
    pub before: Vec<u8>,
    /// The text that is repeated after that.
    pub repeated: Vec<u8>,
    /// Parser items and threads of one repetition, after some repetitions.
    pub early_cost: u64,
    /// Parser items and threads of one repetition, after many repetitions.
    pub late_cost: u64,
    /// The most threads at once.
    pub threads: usize,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule {}: {}\nhint: {}", self.rule_name, self.message, self.hint)
    }
}

/// Number of other rules named in a message.
const MOST_NAMES: usize = 5;
/// Length of an example in a message, in bytes.
const EXAMPLE_BYTES: usize = 40;

impl CompiledGrammar {
    /// Finds the places where the grammar costs more than it need, the grave ones first. Empty for most
    /// grammars.
    ///
    /// Runs made-up texts on machines of its own; sessions are neither used nor changed. Takes about as long
    /// as compiling, up to some tenths of a second on large grammars. [`inspect`](crate::inspect) says what
    /// is found, and what is not.
    #[must_use]
    pub fn warnings(&self) -> Vec<Warning> {
        let program = self.program();
        let lowered = &program.lowered;
        let (yields, marks) = (Yields::new(lowered), SymbolFacts::new(lowered));
        let mut runner = TextRunner::new(program);
        let mut warnings: Vec<Warning> = growth::find(lowered, &yields, &marks, &mut runner)
            .iter()
            .map(|growth| grown(lowered, growth))
            .collect();
        for overlap in overlap::find(lowered, &yields, &mut runner) {
            let warning = overlapping(lowered, &overlap);
            // Recursion that makes an overlap grow was named already, and one growing overlap of a rule is
            // enough.
            let known = |other: &Warning| other.kind.is_grave() && other.rule == warning.rule;
            if !(warning.kind.is_grave() && warnings.iter().any(known)) {
                warnings.push(warning);
            }
        }
        warnings.sort_by_key(|warning| !warning.kind.is_grave());
        warnings
    }
}

/// Makes the warning about a nonterminal, of which a text shows what is wrong.
fn warning(
    lowered: &Lowered,
    nonterminal: NonterminalId,
    (kind, others): (WarningKind, Vec<String>),
    [message, hint]: [String; 2],
    ShownText { before, repeated, run }: &ShownText,
) -> Warning {
    let rule = lowered.rule_of(nonterminal);
    Warning {
        kind,
        rule,
        rule_name: lowered.provenance.rules[rule.index()].name.clone(),
        span: lowered.part(nonterminal).1,
        others,
        message,
        hint,
        before: before.clone(),
        repeated: repeated.clone(),
        early_cost: run.cost.0,
        late_cost: run.cost.1,
        threads: run.threads,
    }
}

/// Describes recursion whose repetitions cost more and more.
fn grown(lowered: &Lowered, growth: &CostGrowth) -> Warning {
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
                "it begins and ends with itself{by_way_of}: a text of many parts can be grouped in very \
                 many ways"
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
    let message = format!("{what}; {}", costs(&growth.shown));
    warning(lowered, growth.nonterminal, (kind, others), [message, hint], &growth.shown)
}

/// Describes an ambiguous boundary of a symbol and what may follow it.
fn overlapping(lowered: &Lowered, overlap: &Overlap) -> Warning {
    let symbol = lowered.symbol_name(overlap.symbol);
    let others: Vec<String> = overlap.others.iter().map(|&other| lowered.symbol_name(other)).collect();
    let ShownText { before, repeated, run } = &overlap.shown;
    let (kind, cost) = match run.verdict {
        RepetitionVerdict::Grows => (WarningKind::Undecided, costs(&overlap.shown)),
        _ => (WarningKind::Overlap, format!("{} threads after {}", run.threads, shown(before))),
    };
    let message = format!(
        "{symbol} can go on with {} over and over where {} may begin with the same: {cost}",
        shown(repeated),
        list(&others),
    );
    let only_one = format!("let only one of {symbol} and what follows it have that text");
    let hint = format!("{only_one}, or put something between them");
    warning(lowered, overlap.nonterminal, (kind, others), [message, hint], &overlap.shown)
}

/// Describes the costs of repetitions that cost more and more.
fn costs(ShownText { before, repeated, run }: &ShownText) -> String {
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

/// Quotes the end of a text.
fn shown(text: &[u8]) -> String {
    let start = text.len().saturating_sub(EXAMPLE_BYTES);
    let dots = if start > 0 { "..." } else { "" };
    format!("{dots}{:?}", String::from_utf8_lossy(&text[start..]))
}

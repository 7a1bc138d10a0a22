//! Finds recursion whose every repetition costs more than the last.
//!
//! Text can be repeated without end only where a nonterminal leads to itself: `A => x A y` by some
//! productions. For each such occurrence in the productions, the engine is run on a shortest text before `A`,
//! then on shortest texts of `x` (or of `y`, where `x` may be empty) over and over, on a machine of its own
//! that has nothing cached. On most grammars a state comes back, or at least the work for a repetition stays
//! the same. If the work keeps growing, the grammar costs more with every repetition.

use std::collections::{HashMap, HashSet, VecDeque};

use super::{
    runner::{RepetitionVerdict, ShownText, TextRunner},
    yields::{Want, Yields},
};
use crate::{
    inspect::marks::SymbolFacts,
    lower::{AfterDot, Cfg, DottedRule, Lowered, NonterminalId, SourceSpan},
};

/// Number of occurrences that are looked at.
const MAX_CYCLES: usize = 2_000;
/// Number of texts run for one place in the grammar text: counted repetition makes many occurrences of one.
const MAX_RUNS_OF_A_PLACE: usize = 4;
/// Number of symbols in productions looked at to find cycles.
const MAX_SEARCH: usize = 5_000_000;

/// The cause of growing costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Cause {
    /// The nonterminal begins and ends with itself.
    BothEnds,
    /// The nonterminal ends with itself.
    RightEnd,
    /// The nonterminal contains itself.
    Inside,
}

/// A text that costs more and more.
#[derive(Debug, Clone)]
pub(super) struct CostGrowth {
    /// The nonterminal that leads to itself.
    pub(super) nonterminal: NonterminalId,
    /// The cause of the growth.
    pub(super) cause: Cause,
    /// The nonterminals on the cycle, itself included.
    pub(super) members: Vec<NonterminalId>,
    pub(super) shown: ShownText,
}

/// Finds the worst text for each group of nonterminals that lead to each other in the same way.
pub(super) fn find(
    lowered: &Lowered,
    yields: &Yields<'_>,
    marks: &SymbolFacts,
    runner: &mut TextRunner<'_>,
) -> Vec<CostGrowth> {
    let cfg = &lowered.cfg;
    let occurrences = occurrences(cfg, marks);
    let mut search = MAX_SEARCH;
    let mut candidates: Vec<(NonterminalId, AfterDot, Vec<u8>, Vec<u8>)> = Vec::new();
    let mut seen: HashSet<(Vec<u8>, Vec<u8>)> = HashSet::new();
    // If there are too many occurrences, every `step`-th one.
    let step = occurrences.len().div_ceil(MAX_CYCLES).max(1);
    for &occurrence in occurrences.iter().step_by(step) {
        let nonterminal = cfg.lhs(occurrence.dot);
        let Some(cycle) = way_round(cfg, marks, occurrence, &mut search) else { continue };
        for (before, repeated) in texts(cfg, yields, nonterminal, &cycle) {
            if !repeated.is_empty() && seen.insert((before.clone(), repeated.clone())) {
                // With the symbol of its productions that leads back to it.
                candidates.push((nonterminal, cfg.slot(occurrence.dot), before, repeated));
            }
        }
    }
    // Short texts say the same as long ones, for less.
    candidates.sort_by_key(|(_, _, before, repeated)| before.len() + repeated.len());
    let mut runs: HashMap<(SourceSpan, SourceSpan), usize> = HashMap::new();
    let mut worst: HashMap<(Cause, usize), CostGrowth> = HashMap::new();
    for (nonterminal, entered, before, repeated) in candidates {
        let place = (lowered.place(AfterDot::Nonterminal(nonterminal)), lowered.place(entered));
        let runs = runs.entry(place).or_insert(0);
        *runs += 1;
        if *runs > MAX_RUNS_OF_A_PLACE {
            continue;
        }
        let Some(run) = runner.run(&before, &repeated) else { continue };
        if run.verdict != RepetitionVerdict::Grows {
            continue;
        }
        let (cause, group) = growth_cause(lowered, marks, nonterminal);
        if worst.get(&(cause, group)).is_none_or(|known| known.shown.run.cost.1 < run.cost.1) {
            let members = members(cfg, marks, nonterminal, cause);
            let shown = ShownText { before, repeated, run };
            worst.insert((cause, group), CostGrowth { nonterminal, cause, members, shown });
        }
    }
    let mut found: Vec<CostGrowth> = worst.into_values().collect();
    found.sort_by_key(|growth| growth.nonterminal);
    found
}

/// A nonterminal in a production of another of its component: the production, and the dot before it.
#[derive(Debug, Clone, Copy)]
struct Occurrence {
    first: DottedRule,
    dot: DottedRule,
}

/// Finds all occurrences inside of components.
fn occurrences(cfg: &Cfg, marks: &SymbolFacts) -> Vec<Occurrence> {
    let mut occurrences = Vec::new();
    let mut first = Cfg::START;
    for (dot, slot) in cfg.dots() {
        match slot {
            AfterDot::End(_) => first = dot.next(),
            AfterDot::Nonterminal(used)
                if marks.component[used.index()] == marks.component[cfg.lhs(dot).index()] =>
            {
                occurrences.push(Occurrence { first, dot });
            }
            _ => {}
        }
    }
    occurrences
}

/// Returns the cause why a nonterminal's texts may cost more and more, and a number for all that share it.
fn growth_cause(lowered: &Lowered, marks: &SymbolFacts, nonterminal: NonterminalId) -> (Cause, usize) {
    let at = nonterminal.index();
    match (marks.left_recursive[at], marks.right_recursive[at]) {
        (true, true) => (Cause::BothEnds, marks.right_component[at]),
        // What was both may be so no more: recursion at the ends of the rule has become repetition.
        _ if lowered.rule(nonterminal).recursion.is_some_and(|ends| ends.left && ends.right) => {
            (Cause::BothEnds, marks.component[at])
        }
        (false, true) => (Cause::RightEnd, marks.right_component[at]),
        _ => (Cause::Inside, marks.component[at]),
    }
}

/// Lists the nonterminals on the way from a nonterminal to itself, at an end or inside.
fn members(cfg: &Cfg, marks: &SymbolFacts, nonterminal: NonterminalId, cause: Cause) -> Vec<NonterminalId> {
    let at = nonterminal.index();
    let same = |component: &[usize], other: NonterminalId| component[other.index()] == component[at];
    let all = cfg.nonterminals().filter(|&other| same(&marks.component, other));
    all.filter(|&other| match cause {
        Cause::Inside => true,
        Cause::RightEnd => same(&marks.right_component, other),
        Cause::BothEnds => same(&marks.right_component, other) || same(&marks.left_component, other),
    })
    .collect()
}

/// Finds a shortest cycle from a nonterminal through one occurrence in a production of its own.
fn way_round(
    cfg: &Cfg,
    marks: &SymbolFacts,
    start: Occurrence,
    search: &mut usize,
) -> Option<Vec<Occurrence>> {
    let (goal, component) = (cfg.lhs(start.dot), marks.component[cfg.lhs(start.dot).index()]);
    let AfterDot::Nonterminal(entered) = cfg.slot(start.dot) else { return None };
    let mut came: HashMap<NonterminalId, Occurrence> = HashMap::from([(entered, start)]);
    let mut open = VecDeque::from([entered]);
    while !came.contains_key(&goal) {
        let from = open.pop_front()?;
        for &first in cfg.productions(from) {
            let mut dot = first;
            for slot in cfg.symbols(first) {
                *search = search.checked_sub(1)?;
                if let AfterDot::Nonterminal(to) = slot
                    && marks.component[to.index()] == component
                    && !came.contains_key(&to)
                {
                    came.insert(to, Occurrence { first, dot });
                    open.push_back(to);
                }
                dot = dot.next();
            }
        }
    }
    let mut way = Vec::new();
    let mut at = goal;
    loop {
        let occurrence = *came.get(&at)?;
        way.push(occurrence);
        at = cfg.lhs(occurrence.dot);
        if occurrence.dot == start.dot {
            break;
        }
    }
    way.reverse();
    Some(way)
}

/// Makes pairs of a text and one that can be repeated after it.
fn texts(
    cfg: &Cfg,
    yields: &Yields<'_>,
    nonterminal: NonterminalId,
    cycle: &[Occurrence],
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let Some(before) = yields.before(nonterminal) else { return Vec::new() };
    // The text on the left of the nonterminal, once round the cycle.
    let left = |want: Want| -> Option<Vec<u8>> {
        let mut text = Vec::new();
        for step in cycle {
            yields.push_row(step.first, step.dot, want, &mut text)?;
        }
        Some(text)
    };
    // The text on its right, from the inside out.
    let right = |want: Want| -> Option<Vec<u8>> {
        let mut text = Vec::new();
        for step in cycle.iter().rev() {
            let mut end = step.dot.next();
            while !matches!(cfg.slot(end), AfterDot::End(_)) {
                end = end.next();
            }
            yields.push_row(step.dot.next(), end, want, &mut text)?;
        }
        Some(text)
    };
    let mut texts = Vec::new();
    match left(Want::Shortest) {
        Some(repeated) if !repeated.is_empty() => texts.push((before, repeated)),
        // The left side may be empty: a text that is not, or else the right side, is repeated.
        Some(_) => {
            let mut inner = before.clone();
            let inner =
                yields.push(AfterDot::Nonterminal(nonterminal), Want::NotEmpty, &mut inner).map(|()| inner);
            texts.extend(left(Want::NotEmpty).map(|repeated| (before, repeated)));
            if let Some(inner) = inner {
                texts.extend(right(Want::Shortest).map(|repeated| (inner.clone(), repeated)));
                texts.extend(right(Want::NotEmpty).map(|repeated| (inner, repeated)));
            }
        }
        None => {}
    }
    texts
}

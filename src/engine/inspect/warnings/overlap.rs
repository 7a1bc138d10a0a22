//! Finds ambiguous boundaries: terminal A can continue after its successor B has started, for any length, so
//! the text can be split between them at any place, and each split is a thread of its own.
//!
//! Method: symbols that stand next to each other in a production (what is between them may be empty) are
//! compared: the terminals that the first can end with and those that the second can begin with. Two
//! terminals overlap if the first, from a state in which it may end, and the second, from its start, can read
//! the same bytes without end (a cycle in the product automaton). Such a text exists, since in a reduced
//! grammar every ending stands next to every beginning; it is run to see how many threads it makes.

use std::collections::{HashMap, VecDeque};

use super::{
    runner::{RepetitionVerdict, ShownText, TextRunner},
    yields::{Want, Yields, path, representatives},
};
use crate::{
    automata::ClassNumbers,
    ids::TerminalId,
    inspect::marks::is_nullable,
    lower::{AfterDot, Cfg, DottedRule, Lowered, NonterminalId, SourceSpan},
    scanner::TerminalDfa,
};

/// Number of terminals kept of those that a nonterminal can begin or end with.
const MAX_ENDS: usize = 64;
/// Number of comparisons of terminals.
const MAX_PAIRS: usize = 50_000;
/// Number of overlaps found before any is tried.
const MAX_CANDIDATES: usize = 2_000;
/// Number of texts run for one place in the grammar text: counted repetition makes many overlaps of one.
const MAX_RUNS_OF_A_PLACE: usize = 8;

/// Number of pairs of states visited for one pair of terminals, and for all.
const MAX_STATES: [usize; 2] = [20_000, 1_000_000];
/// Number of places reported.
const MAX_FOUND: usize = 50;

/// A symbol of a production that overlaps with what may follow it.
#[derive(Debug, Clone)]
pub(super) struct Overlap {
    /// The nonterminal of the production.
    pub(super) nonterminal: NonterminalId,
    /// The symbol.
    pub(super) symbol: AfterDot,
    /// The symbols that it overlaps with.
    pub(super) others: Vec<AfterDot>,
    /// Bytes that both can read over and over, and a text up to them.
    pub(super) shown: ShownText,
}

impl Overlap {
    fn rank(&self) -> (bool, usize) {
        (self.shown.run.verdict == RepetitionVerdict::Grows, self.shown.run.threads)
    }
}

/// Finds all overlaps, one for each place in the grammar text of a symbol that overlaps with what follows it.
pub(super) fn find(lowered: &Lowered, yields: &Yields<'_>, runner: &mut TextRunner<'_>) -> Vec<Overlap> {
    let mut candidates = candidates(lowered, yields);
    // Short texts say the same as long ones, for less.
    candidates.sort_by_key(|candidate| candidate.before.len() + candidate.repeated.len());
    let mut runs: HashMap<(SourceSpan, SourceSpan), usize> = HashMap::new();
    let mut found: HashMap<(SourceSpan, SourceSpan), Overlap> = HashMap::new();
    for OverlapCandidate { nonterminal, symbol, other, before, repeated } in candidates {
        if found.len() >= MAX_FOUND {
            break;
        }
        let place = (lowered.place(AfterDot::Nonterminal(nonterminal)), lowered.place(symbol));
        let runs = runs.entry(place).or_insert(0);
        *runs += 1;
        if *runs > MAX_RUNS_OF_A_PLACE {
            continue;
        }
        // It may make no second thread after all, where both would be the same.
        let Some(run) = runner.run(&before, &repeated).filter(|run| run.threads > 1) else { continue };
        let shown = ShownText { before, repeated, run };
        let overlap = Overlap { nonterminal, symbol, others: vec![other], shown };
        let known = found.entry(place).or_insert_with(|| overlap.clone());
        if !known.others.contains(&other) {
            known.others.push(other);
        }
        if known.rank() < overlap.rank() {
            *known = Overlap { others: std::mem::take(&mut known.others), ..overlap };
        }
    }
    let mut found: Vec<Overlap> = found.into_values().collect();
    found.sort_by_key(|overlap| (overlap.nonterminal, overlap.symbol));
    found
}

/// An overlap to be tried.
struct OverlapCandidate {
    nonterminal: NonterminalId,
    symbol: AfterDot,
    other: AfterDot,
    before: Vec<u8>,
    repeated: Vec<u8>,
}

/// Lists all pairs of neighbours with terminals that overlap.
fn candidates(lowered: &Lowered, yields: &Yields<'_>) -> Vec<OverlapCandidate> {
    let cfg = &lowered.cfg;
    let mut search = Search::new(lowered, yields);
    let mut row: Vec<AfterDot> = Vec::new();
    let mut first = Cfg::START;
    for (dot, slot) in cfg.dots() {
        if !matches!(slot, AfterDot::End(_)) {
            row.push(slot);
            continue;
        }
        for (at, &symbol) in row.iter().enumerate() {
            for &other in &row[at + 1..] {
                search.hold(Occurrence { first, at, symbol }, other);
                if !is_nullable(cfg, other) {
                    break;
                }
            }
        }
        row.clear();
        first = dot.next();
    }
    search.found
}

/// The state of the search.
struct Search<'s> {
    lowered: &'s Lowered,
    yields: &'s Yields<'s>,
    beginnings: UnboundedEnds,
    endings: UnboundedEnds,
    /// Results of the pairs of terminals compared so far.
    known: HashMap<(TerminalId, TerminalId), Option<TerminalOverlap>>,
    pairs: usize,
    states: usize,
    found: Vec<OverlapCandidate>,
}

impl<'s> Search<'s> {
    /// Prepares a search with full budgets.
    fn new(lowered: &'s Lowered, yields: &'s Yields<'s>) -> Self {
        let goes_on: Vec<bool> = lowered.scanner.dfas().iter().map(|dfa| !dfa.is_finite()).collect();
        Self {
            lowered,
            yields,
            beginnings: UnboundedEnds::new(&lowered.cfg, &goes_on, false),
            endings: UnboundedEnds::new(&lowered.cfg, &goes_on, true),
            known: HashMap::new(),
            pairs: MAX_PAIRS,
            states: MAX_STATES[1],
            found: Vec::new(),
        }
    }

    /// Compares a symbol with one that may follow it.
    fn hold(&mut self, here: Occurrence, other: AfterDot) {
        let endings = self.endings.of(here.symbol).to_vec();
        let beginnings = self.beginnings.of(other).to_vec();
        for pair in endings.iter().flat_map(|&one| beginnings.iter().map(move |&other| (one, other))) {
            let room = self.pairs > 0 && self.found.len() < MAX_CANDIDATES;
            if !room {
                return;
            }
            self.pairs -= 1;
            let Some(shared) = self.shared(pair) else { continue };
            let Some(before) = self.text_before(here, pair.0, &shared) else { continue };
            self.found.push(OverlapCandidate {
                nonterminal: self.lowered.cfg.lhs(here.first),
                symbol: here.symbol,
                other,
                before,
                repeated: shared.repeated,
            });
        }
    }

    fn shared(&mut self, pair: (TerminalId, TerminalId)) -> Option<TerminalOverlap> {
        if let Some(known) = self.known.get(&pair) {
            return known.clone();
        }
        let scanner = &self.lowered.scanner;
        let found = shared(scanner.dfa(pair.0), scanner.dfa(pair.1), &mut self.states);
        self.known.insert(pair, found.clone());
        found
    }

    /// Returns a text up to where both begin to read the same over and over. `None` if it is too long.
    fn text_before(
        &self,
        here: Occurrence,
        terminal: TerminalId,
        shared: &TerminalOverlap,
    ) -> Option<Vec<u8>> {
        let (lowered, yields) = (self.lowered, self.yields);
        let cfg = &lowered.cfg;
        let mut before = yields.before(cfg.lhs(here.first))?;
        let dot = (0..here.at).fold(here.first, |dot, _| dot.next());
        yields.push_row(here.first, dot, Want::Shortest, &mut before)?;
        self.endings.text_before(cfg, yields, here.symbol, terminal, &mut before)?;
        before.extend(path(lowered.scanner.dfa(terminal), 0, |state| state == shared.from)?);
        before.extend(&shared.lead);
        Some(before)
    }
}

/// A symbol of a production.
#[derive(Debug, Clone, Copy)]
struct Occurrence {
    first: DottedRule,
    /// Number of symbols before it.
    at: usize,
    symbol: AfterDot,
}

/// Terminals of unbounded length that each nonterminal can begin with, or end with; some of them, if there
/// are many.
struct UnboundedEnds {
    of_nonterminal: Vec<Vec<TerminalId>>,
    single: Vec<Vec<TerminalId>>,
    from_right: bool,
}

impl UnboundedEnds {
    /// Computes the sets by a worklist. A production counts up to its first symbol that cannot be empty.
    fn new(cfg: &Cfg, goes_on: &[bool], from_right: bool) -> Self {
        let single = (0..)
            .zip(goes_on)
            .map(|(number, &goes_on)| if goes_on { vec![TerminalId::new(number)] } else { Vec::new() })
            .collect();
        let mut ends = Self { of_nonterminal: vec![Vec::new(); cfg.nonterminal_count()], single, from_right };
        // The rows to look at again when the set of a nonterminal has grown.
        let mut users: Vec<Vec<usize>> = vec![Vec::new(); cfg.nonterminal_count()];
        let mut rows: Vec<(usize, Vec<AfterDot>)> = Vec::new();
        let mut start = Cfg::START;
        for (dot, slot) in cfg.dots() {
            if !matches!(slot, AfterDot::End(_)) {
                continue;
            }
            let mut row: Vec<AfterDot> = cfg.symbols(start).collect();
            start = dot.next();
            if from_right {
                row.reverse();
            }
            let corner = row.iter().take_while(|slot| is_nullable(cfg, **slot)).count() + 1;
            row.truncate(corner);
            for slot in &row {
                if let AfterDot::Nonterminal(symbol) = slot {
                    users[symbol.index()].push(rows.len());
                }
            }
            rows.push((cfg.lhs(dot).index(), row));
        }
        let mut open: VecDeque<usize> = (0..rows.len()).collect();
        while let Some(number) = open.pop_front() {
            let (lhs, row) = &rows[number];
            let mut all = ends.of_nonterminal[*lhs].clone();
            all.extend(row.iter().flat_map(|&slot| ends.of(slot)));
            all.sort_unstable();
            all.dedup();
            all.truncate(MAX_ENDS);
            // Sets grow up to a bound, or exchange terminals for smaller ones, so this ends.
            if all != ends.of_nonterminal[*lhs] {
                ends.of_nonterminal[*lhs] = all;
                open.extend(&users[*lhs]);
            }
        }
        ends
    }

    fn of(&self, slot: AfterDot) -> &[TerminalId] {
        match slot {
            AfterDot::Terminal(terminal) => &self.single[terminal.index()],
            AfterDot::Nonterminal(nonterminal) | AfterDot::End(nonterminal) => {
                &self.of_nonterminal[nonterminal.index()]
            }
        }
    }

    /// Appends a text of `slot` up to where `terminal` begins, at the end of it.
    fn text_before(
        &self,
        cfg: &Cfg,
        yields: &Yields<'_>,
        slot: AfterDot,
        terminal: TerminalId,
        text: &mut Vec<u8>,
    ) -> Option<()> {
        debug_assert!(self.from_right);
        let mut came: HashMap<AfterDot, (DottedRule, DottedRule, AfterDot)> = HashMap::new();
        let mut open = VecDeque::from([slot]);
        let goal = AfterDot::Terminal(terminal);
        while slot != goal && !came.contains_key(&goal) {
            let from = open.pop_front()?;
            let AfterDot::Nonterminal(nonterminal) = from else { continue };
            for &first in cfg.productions(nonterminal) {
                let row: Vec<AfterDot> = cfg.symbols(first).collect();
                for (at, &symbol) in row.iter().enumerate().rev() {
                    if self.of(symbol).contains(&terminal) && !came.contains_key(&symbol) && symbol != slot {
                        let dot = (0..at).fold(first, |dot, _| dot.next());
                        came.insert(symbol, (first, dot, from));
                        open.push_back(symbol);
                    }
                    if !is_nullable(cfg, symbol) {
                        break;
                    }
                }
            }
        }
        let mut way = Vec::new();
        let mut at = goal;
        while at != slot {
            let (first, dot, from) = *came.get(&at)?;
            way.push((first, dot));
            at = from;
        }
        for (first, dot) in way.into_iter().rev() {
            yields.push_row(first, dot, Want::Shortest, text)?;
        }
        Some(())
    }
}

/// The overlap of two terminals: the state in which the first may end, bytes that both read from there, and
/// bytes that both read over and over after that.
#[derive(Debug, Clone)]
struct TerminalOverlap {
    from: u32,
    lead: Vec<u8>,
    repeated: Vec<u8>,
}

/// Can `one`, from a state in which it may end, and `other`, from its start, read the same bytes without end?
fn shared(one: &TerminalDfa, other: &TerminalDfa, budget: &mut usize) -> Option<TerminalOverlap> {
    // Without a table all texts have an end.
    if !one.is_table() || !other.is_table() {
        return None;
    }
    let mut joint = [0_u8; 256];
    let mut names: HashMap<(u8, u8), u8> = HashMap::new();
    let mut numbers = ClassNumbers::default();
    for (byte, class) in joint.iter_mut().enumerate() {
        let both = (one.classes()[byte], other.classes()[byte]);
        *class = *names.entry(both).or_insert_with(|| numbers.fresh());
    }
    let bytes = representatives(&joint);
    let mut number: HashMap<(u32, u32), usize> = HashMap::new();
    let mut nodes: Vec<(u32, u32)> = Vec::new();
    let states = (0..).zip(one.accepting()).filter(|(_, accepting)| **accepting).map(|(state, _)| state);
    for state in states {
        number.insert((state, 0), nodes.len());
        nodes.push((state, 0));
    }
    let starts = nodes.len();
    let mut edges: Vec<Vec<(usize, u8)>> = Vec::new();
    while edges.len() < nodes.len() {
        if edges.len() > MAX_STATES[0] || *budget == 0 {
            return None;
        }
        *budget -= 1;
        let (left, right) = nodes[edges.len()];
        let mut row = Vec::new();
        for &byte in &bytes {
            let (Some(left), Some(right)) = (one.step(left, byte), other.step(right, byte)) else {
                continue;
            };
            let fresh = nodes.len();
            let to = *number.entry((left, right)).or_insert(fresh);
            if to == fresh {
                nodes.push((left, right));
            }
            row.push((to, byte));
        }
        edges.push(row);
    }
    let live = with_endless_ways(&edges);
    let start = (0..starts).find(|&start| live[start])?;
    // Any way through live nodes comes back to one of them.
    let (mut came, mut text, mut at) = (HashMap::new(), Vec::new(), start);
    while !came.contains_key(&at) {
        came.insert(at, text.len());
        let &(to, byte) = edges[at].iter().find(|(to, _)| live[*to])?;
        text.push(byte);
        at = to;
    }
    let repeated = text.split_off(*came.get(&at)?);
    Some(TerminalOverlap { from: nodes[start].0, lead: text, repeated })
}

/// Marks the nodes from which a path can go on without end, by removing dead ends.
fn with_endless_ways(edges: &[Vec<(usize, u8)>]) -> Vec<bool> {
    let mut incoming: Vec<Vec<usize>> = vec![Vec::new(); edges.len()];
    let mut outgoing: Vec<usize> = edges.iter().map(Vec::len).collect();
    for (from, row) in edges.iter().enumerate() {
        row.iter().for_each(|&(to, _)| incoming[to].push(from));
    }
    let mut open: Vec<usize> = (0..edges.len()).filter(|&node| outgoing[node] == 0).collect();
    let mut live = vec![true; edges.len()];
    while let Some(node) = open.pop() {
        live[node] = false;
        for &from in &incoming[node] {
            outgoing[from] -= 1;
            if outgoing[from] == 0 {
                open.push(from);
            }
        }
    }
    live
}

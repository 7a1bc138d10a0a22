//! Two automata side by side: how long texts must be for their states to treat them differently.

use std::{collections::VecDeque, ops::Range};

use super::counted::{Home, next};
use crate::{
    scanner::{NONE, TerminalDfa},
    vocab::byte_kind,
};

/// Kinds of bytes by which a state may differ from the base of its partner before it may be the next base.
const FAR_FROM_BASE: usize = 4;

/// No text is treated differently.
pub(super) const NEVER: u32 = u32::MAX;

/// A state of a terminal, beside that of a common one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pair {
    /// The partner; [`NONE`] if there is none.
    pub(super) partner: u32,
    /// For each [level](Levels) of texts the length of the shortest one that the two treat differently: one
    /// may end, or go on, and the other may not.
    pub(super) apart: [u32; LEVELS],
}

/// Levels of texts.
pub(super) const LEVELS: usize = 6;

/// Bytes of ASCII that lead on where characters of a string may come, at least.
const INSIDE_BYTES: usize = 70;

/// The first bytes of U+0085 and U+00A0, of U+1680, U+3000 and U+FEFF.
const SPACES: [u8; 4] = [0xc2, 0xe1, 0xe3, 0xef];

/// Any texts; those without a byte that may end the common terminal; of these, those without a byte of ASCII
/// that leads it away from where it is between characters, and so without escapes; of these, those without
/// characters that the terminal leaves out; of these, those without characters from U+2000 to U+2FFF; of
/// these, those without the first bytes of all other spaces.
///
/// A string with `minLength` differs from any string by its closing quote alone, so inside of the quotes
/// the two are never apart. In one with the pattern `^.*\.txt$` no line may end, so that it is apart from
/// any string after two bytes, but those are an escape; and the three of U+2028, beside which nearly all
/// other texts are plain. One with `\S` leaves out more such spaces. One with the pattern `^[^<>]{1,99}$`
/// differs in two characters, and after 99 of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Levels {
    /// The [kinds](byte_kind) of bytes that texts of each level are without, as bits; each has all of the
    /// one before.
    without: [u64; LEVELS],
    /// The last level of texts of one kind of bytes.
    of_kind: [u8; 64],
}

impl Levels {
    /// Those of texts inside, where nothing ends.
    pub(super) const INSIDE: usize = 1;

    /// Those of a common terminal. Linear in its states and bytes.
    pub(super) fn new(common: &TerminalDfa, home: Option<Home>) -> Self {
        let ending = if common.accepts_empty() { 0 } else { ending(common) };
        let leaves = |home: Home| (0..0x80_u8).filter(move |&byte| home.is_left_by(common, byte));
        let escaping =
            home.map_or(0, |home| leaves(home).fold(0, |kinds, byte| kinds | 1 << byte_kind(byte)));
        let separators = 1 << byte_kind(0xe2);
        let spaces = SPACES.iter().fold(separators, |kinds, &byte| kinds | 1 << byte_kind(byte));
        let inside = ending | escaping;
        Self::without([0, ending, inside, inside, inside | separators, inside | spaces])
    }

    fn without(without: [u64; LEVELS]) -> Self {
        let last = |kind: usize| without.iter().rposition(|without| without >> kind & 1 == 0).unwrap_or(0);
        // There are few levels.
        let of_kind = std::array::from_fn(|kind| u8::try_from(last(kind)).unwrap_or(0));
        Self { without, of_kind }
    }

    /// The same beside a terminal: with the characters that it leaves out wherever many may come. Linear in
    /// its states and classes.
    pub(super) fn beside(self, dfa: &TerminalDfa, common: &TerminalDfa, home: Option<Home>) -> Self {
        let Some(home) = home else { return self };
        let mut ascii = vec![0_usize; dfa.class_count()];
        (0..0x80_u8).for_each(|byte| ascii[usize::from(dfa.classes()[usize::from(byte)])] += 1);
        let mut left_out = vec![false; dfa.class_count()];
        for state in 0..u32::try_from(dfa.len()).unwrap_or(NONE) {
            let row = || dfa.row(state).iter();
            let ways =
                row().zip(&ascii).filter(|(to, _)| **to != NONE).map(|(_, bytes)| bytes).sum::<usize>();
            if ways >= INSIDE_BYTES {
                left_out.iter_mut().zip(row()).for_each(|(out, &to)| *out |= to == NONE);
            }
        }
        let is_out = |&byte: &u8| left_out[usize::from(dfa.classes()[usize::from(byte)])];
        let out = (0..=u8::MAX).filter(is_out).filter(|&byte| home.goes_on_by(common, byte));
        let out = out.fold(0, |kinds, byte| kinds | 1 << byte_kind(byte));
        let mut without = self.without;
        without[3..].iter_mut().for_each(|without| *without |= out);
        Self::without(without)
    }

    /// The [kinds](byte_kind) of bytes that texts of each level are without, as bits.
    pub(super) fn without_kinds(&self) -> [u64; LEVELS] {
        self.without
    }

    /// The last level of texts of these kinds.
    pub(super) fn of(&self, kinds: u64) -> usize {
        self.without.iter().rposition(|without| kinds & without == 0).unwrap_or(0)
    }

    fn of_byte(&self, byte: u8) -> usize {
        usize::from(self.of_kind[usize::from(byte_kind(byte))])
    }
}

/// Runs both side by side from their starts (breadth-first over the product automaton), by a byte of each
/// kind, and returns the partner of each state of `dfa`. A state that meets several partners is held against
/// the first. Linear in the states times the kinds of bytes, and mostly less: a state is compared with an
/// earlier one of the same partner.
pub(super) fn side_by_side(
    dfa: &TerminalDfa,
    common: &TerminalDfa,
    levels: &Levels,
    bytes: &[u8],
) -> Vec<Pair> {
    let endless = common.accepts_empty();
    let mut both = SideBySide {
        dfa,
        common,
        kinds: Kinds::new(dfa, common, levels, bytes),
        pairs: vec![Pair { partner: NONE, apart: [NEVER; LEVELS] }; dfa.len()],
        bases: std::iter::repeat_with(|| None).take(common.len()).collect(),
        open: VecDeque::new(),
        steps: Steps::default(),
        edges: Vec::new(),
        changes: Vec::new(),
    };
    both.meet(0, 0);
    while let Some(state) = both.open.pop_front() {
        both.leave(state);
        let pair = &mut both.pairs[state as usize];
        let ends = !endless && common.accepting()[pair.partner as usize];
        if dfa.accepting()[state as usize] != ends {
            pair.apart = [0; LEVELS];
        }
    }
    let SideBySide { mut pairs, mut steps, open, .. } = both;
    let mut open = Vec::from(open);
    steps.sort(dfa.len());
    for level in 0..LEVELS {
        if level > 0 && levels.without[level] == levels.without[level - 1] {
            pairs.iter_mut().for_each(|pair| pair.apart[level] = pair.apart[level - 1]);
        } else {
            spread(&mut pairs, &steps, level, &mut open);
        }
    }
    pairs
}

/// Bytes that neither automaton tells from each other: their class in the common one, and the last level of
/// texts with them.
#[derive(Debug, Clone, Copy)]
struct Kind {
    common: usize,
    level: usize,
}

/// Kinds of bytes by their class in a terminal; those of class `c` are `all[first[c] .. first[c + 1]]`.
#[derive(Debug)]
struct Kinds {
    all: Vec<Kind>,
    first: Vec<usize>,
}

impl Kinds {
    fn new(dfa: &TerminalDfa, common: &TerminalDfa, levels: &Levels, bytes: &[u8]) -> Self {
        let class = |dfa: &TerminalDfa, byte: u8| usize::from(dfa.classes()[usize::from(byte)]);
        let mut bytes = bytes.to_vec();
        bytes.sort_by_key(|&byte| class(dfa, byte));
        let first = (0..=dfa.class_count()).map(|at| bytes.partition_point(|&byte| class(dfa, byte) < at));
        let kind = |&byte: &u8| Kind { common: class(common, byte), level: levels.of_byte(byte) };
        Self { first: first.collect(), all: bytes.iter().map(kind).collect() }
    }

    fn of(&self, class: usize) -> Range<usize> {
        self.first[class]..self.first[class + 1]
    }
}

/// What a state does by kinds of bytes, beside its partner. Other states with this partner mostly do nearly
/// the same, and are held against it. The first such state of "any string but these keys" is that in which a
/// key begins, which leads to many others; so one that leads to fewer takes its place.
#[derive(Debug)]
struct Base {
    /// `None` before the first one.
    state: Option<u32>,
    by_kind: Vec<Way>,
    edges: Vec<Edge>,
    /// By level: kinds of bytes that only one of the two goes on by.
    torn: [u32; LEVELS],
}

impl Base {
    /// Before there is a state to hold others against.
    fn nowhere(kinds: usize) -> Self {
        Self { state: None, by_kind: vec![Way::Nowhere; kinds], edges: Vec::new(), torn: [0; LEVELS] }
    }

    /// Takes over the edges that its kinds of bytes take, and numbers them anew.
    fn take_edges(&mut self, edges: &[Edge], kinds: &Kinds) {
        let mut numbers: Vec<Option<usize>> = vec![None; edges.len()];
        self.edges.clear();
        for (way, kind) in self.by_kind.iter_mut().zip(&kinds.all) {
            let Way::Along(edge) = way else { continue };
            let number = *numbers[*edge].get_or_insert_with(|| {
                self.edges.push(Edge { to: edges[*edge].to, level: 0, kinds: 0 });
                self.edges.len() - 1
            });
            *edge = number;
            self.edges[number].kinds += 1;
            self.edges[number].level = self.edges[number].level.max(kind.level);
        }
    }
}

/// Where bytes of a kind lead.
#[derive(Debug, Clone, Copy)]
enum Way {
    Nowhere,
    /// To a state and its partner; the number of the edge.
    Along(usize),
    /// One of the two goes on, or both do to states that are not partners.
    Torn,
}

/// A step of both to a state and its partner.
#[derive(Debug, Clone, Copy)]
struct Edge {
    to: u32,
    /// The last level with such a step.
    level: usize,
    /// Kinds of bytes that take it.
    kinds: u32,
}

/// The steps of both automata side by side, backwards.
#[derive(Debug, Default)]
struct Steps {
    /// From, to, and the last level with the step.
    all: Vec<(u32, u32, usize)>,
    /// The same by `to`; those to state `q` are `by_end[first[q] .. first[q + 1]]`.
    by_end: Vec<(u32, usize)>,
    first: Vec<u32>,
}

impl Steps {
    /// Sorts them by their ends (counting sort).
    fn sort(&mut self, states: usize) {
        self.first = vec![0; states + 2];
        self.all.iter().for_each(|&(_, to, _)| self.first[to as usize + 2] += 1);
        (2..self.first.len()).for_each(|at| self.first[at] += self.first[at - 1]);
        self.by_end = vec![(0, 0); self.all.len()];
        for &(from, to, level) in &self.all {
            let at = &mut self.first[to as usize + 1];
            self.by_end[*at as usize] = (from, level);
            *at += 1;
        }
    }

    /// The states with a step to `to` by texts of a level.
    fn to(&self, to: u32, level: usize) -> impl Iterator<Item = u32> {
        let range = self.first[to as usize] as usize..self.first[to as usize + 1] as usize;
        self.by_end[range].iter().filter(move |(_, last)| *last >= level).map(|&(from, _)| from)
    }
}

/// Two automata that run side by side from their starts.
struct SideBySide<'a> {
    dfa: &'a TerminalDfa,
    common: &'a TerminalDfa,
    kinds: Kinds,
    pairs: Vec<Pair>,
    /// By state of the common one.
    bases: Vec<Option<Base>>,
    open: VecDeque<u32>,
    steps: Steps,
    // Scratch.
    edges: Vec<Edge>,
    changes: Vec<(usize, Way)>,
}

impl SideBySide<'_> {
    /// Goes from a state to those after it.
    fn leave(&mut self, state: u32) {
        let partner = self.pairs[state as usize].partner;
        let mut base =
            self.bases[partner as usize].take().unwrap_or_else(|| Base::nowhere(self.kinds.all.len()));
        let mut edges = std::mem::take(&mut self.edges);
        let mut changes = std::mem::take(&mut self.changes);
        edges.clone_from(&base.edges);
        changes.clear();
        let (row, theirs) = (self.dfa.row(state), self.common.row(partner));
        let mut torn = base.torn;
        let mut change = |both: &mut Self, class: usize| {
            let to = row[class];
            for at in both.kinds.of(class) {
                let Kind { common, level } = both.kinds.all[at];
                let other = theirs[common];
                match base.by_kind[at] {
                    Way::Nowhere => {}
                    Way::Along(edge) => edges[edge].kinds -= 1,
                    Way::Torn => torn[..=level].iter_mut().for_each(|torn| *torn -= 1),
                }
                let way = if to == NONE && other == NONE {
                    Way::Nowhere
                } else if to != NONE && other != NONE && both.meet(to, other) {
                    let edge = edges.iter().rposition(|edge| edge.to == to).unwrap_or_else(|| {
                        edges.push(Edge { to, level, kinds: 0 });
                        edges.len() - 1
                    });
                    edges[edge].level = edges[edge].level.max(level);
                    edges[edge].kinds += 1;
                    Way::Along(edge)
                } else {
                    torn[..=level].iter_mut().for_each(|torn| *torn += 1);
                    Way::Torn
                };
                changes.push((at, way));
            }
        };
        match base.state {
            None => (0..row.len()).for_each(|class| change(self, class)),
            Some(known) => differing(row, self.dfa.row(known)).for_each(|class| change(self, class)),
        }
        let taken = || edges.iter().filter(|edge| edge.kinds > 0);
        self.steps.all.extend(taken().map(|edge| (state, edge.to, edge.level)));
        self.pairs[state as usize].apart = torn.map(|torn| if torn > 0 { 1 } else { NEVER });
        let is_plainer = changes.len() > FAR_FROM_BASE && taken().count() < base.edges.len();
        if base.state.is_none() || is_plainer {
            base.state = Some(state);
            base.torn = torn;
            changes.iter().for_each(|&(at, way)| base.by_kind[at] = way);
            base.take_edges(&edges, &self.kinds);
        }
        self.bases[partner as usize] = Some(base);
        (self.edges, self.changes) = (edges, changes);
    }

    /// Are the two states partners? They are if the first has none yet.
    fn meet(&mut self, state: u32, other: u32) -> bool {
        let partner = &mut self.pairs[state as usize].partner;
        if *partner == NONE {
            *partner = other;
            self.open.push_back(state);
        }
        *partner == other
    }
}

/// The classes by which two rows lead to different states, ascending.
fn differing(row: &[u32], other: &[u32]) -> impl Iterator<Item = usize> {
    /// As many are compared at once.
    const BLOCK: usize = 8;
    let blocks = row.chunks(BLOCK).zip(other.chunks(BLOCK)).enumerate();
    blocks.filter(|(_, (row, other))| row != other).flat_map(|(block, (row, other))| {
        let differs = move |at: &usize| row[*at] != other[*at];
        (0..row.len()).filter(differs).map(move |at| block * BLOCK + at)
    })
}

/// Works out distances from those of at most one step, among texts of a level: breadth-first backwards.
fn spread(pairs: &mut [Pair], steps: &Steps, level: usize, open: &mut Vec<u32>) {
    open.clear();
    for distance in [0, 1] {
        let so_far = (0..).zip(&*pairs).filter(|(_, pair)| pair.apart[level] == distance);
        open.extend(so_far.map(|(state, _)| state));
    }
    let mut next = 0;
    while let Some(&state) = open.get(next) {
        next += 1;
        let farther = pairs[state as usize].apart[level].saturating_add(1);
        for from in steps.to(state, level) {
            let apart = &mut pairs[from as usize].apart[level];
            if *apart > farther {
                *apart = farther;
                open.push(from);
            }
        }
    }
}

/// The kinds of bytes by which a terminal may come to an end.
fn ending(dfa: &TerminalDfa) -> u64 {
    let ends = |state: u32, byte: u8| next(dfa, state, byte).is_some_and(|to| dfa.accepting()[to as usize]);
    let states = 0..u32::try_from(dfa.len()).unwrap_or(NONE);
    let kinds = states.flat_map(|state| (0..=u8::MAX).filter(move |&byte| ends(state, byte)));
    kinds.fold(0, |kinds, byte| kinds | 1 << byte_kind(byte))
}

/// A byte of each kind that one of the automata or the level tells from others.
pub(super) fn told_apart(dfa: &TerminalDfa, common: &TerminalDfa, levels: &Levels) -> Vec<u8> {
    let width = common.class_count() * LEVELS;
    let mut seen = vec![false; dfa.class_count() * width];
    let kind = |byte: u8| {
        let [own, common] = [dfa, common].map(|dfa| usize::from(dfa.classes()[usize::from(byte)]));
        own * width + common * LEVELS + levels.of_byte(byte)
    };
    (0..=u8::MAX).filter(|&byte| !std::mem::replace(&mut seen[kind(byte)], true)).collect()
}

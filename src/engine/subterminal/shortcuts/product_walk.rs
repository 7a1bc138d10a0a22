//! Compares two automata (a product construction): the length of the shortest text that their states treat
//! differently, by levels of texts.

use std::{collections::VecDeque, ops::Range};

use super::characters::{Home, next};
use crate::{
    scanner::{NONE, TerminalDfa},
    vocab::byte_kind,
};

/// Number of kinds of bytes by which a state may differ from its partner's base before it may be the next
/// base.
const FAR_FROM_BASE: usize = 4;

/// Length that stands for no text: all are treated alike.
pub(super) const NEVER: u32 = u32::MAX;

/// A state of a terminal, and its partner in a common one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pair {
    /// The partner, or [`NONE`].
    pub(super) partner: u32,
    /// Length of the shortest text of each [level](TextLevels) that the two treat differently: one may end,
    /// or go on, and the other may not.
    pub(super) apart: [u32; LEVELS],
}

/// Number of levels of texts.
pub(super) const LEVELS: usize = 6;

/// Least number of ASCII bytes that lead on in a state where characters of a string may come.
const INSIDE_BYTES: usize = 70;

/// First bytes of U+0085 and U+00A0, of U+1680, U+3000 and U+FEFF.
const SPACES: [u8; 4] = [0xc2, 0xe1, 0xe3, 0xef];

/// A nested family of text classes, each without more kinds of bytes than the one before:
///
/// | level | texts |
/// |---|---|
/// | 0 | all |
/// | 1 | without a byte that may end the common terminal, such as a closing quote |
/// | 2 | nor an ASCII byte that leads it away from between characters, so without escapes |
/// | 3 | nor characters that the terminal leaves out |
/// | 4 | nor characters from U+2000 to U+2FFF |
/// | 5 | nor the first bytes of other spaces |
///
/// A string with `minLength` differs from any string by its closing quote alone, so at level 1 the two are
/// never apart. With the pattern `^.*\.txt$` no line may end: at level 1 it is apart from any string after
/// the two bytes of an escape, and at level 3 after the three of U+2028, so level 4 holds nearly all texts.
/// `\S` leaves out more such spaces (level 5). `^[^<>]{1,99}$` differs in two characters (level 3), and after
/// 99 of them.
#[derive(Debug, Clone, Copy)]
pub(in crate::subterminal) struct TextLevels {
    /// The [kinds](byte_kind) of bytes that each level excludes, as bits; each level excludes all of the one
    /// before.
    without: [u64; LEVELS],
    /// Highest level of texts that have only bytes of this kind.
    of_kind: [u8; 64],
}

impl TextLevels {
    /// Computes the levels of a common terminal. Linear in its states and bytes.
    pub(in crate::subterminal) fn new(common: &TerminalDfa, home: Option<Home>) -> Self {
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
        let levels = || (0_u8..).zip(&without).map(|(level, without)| (level, *without));
        let last = |kind: usize| levels().filter(|(_, without)| without >> kind & 1 == 0).last();
        let of_kind = std::array::from_fn(|kind| last(kind).map_or(0, |(level, _)| level));
        Self { without, of_kind }
    }

    /// Adds the characters that a terminal leaves out wherever many may come. Linear in its states and
    /// classes.
    pub(super) fn beside(self, dfa: &TerminalDfa, common: &TerminalDfa, home: Option<Home>) -> Self {
        let Some(home) = home else { return self };
        let mut ascii = vec![0_usize; dfa.class_count()];
        (0..0x80_u8).for_each(|byte| ascii[usize::from(dfa.classes()[usize::from(byte)])] += 1);
        let mut left_out = vec![false; dfa.class_count()];
        for state in (0_u32..).take(dfa.len()) {
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

    /// The [kinds](byte_kind) of bytes that each level excludes, as bits.
    pub(super) fn without_kinds(&self) -> [u64; LEVELS] {
        self.without
    }

    /// Returns the highest level of texts of these kinds.
    pub(in crate::subterminal) fn of(&self, kinds: u64) -> usize {
        self.without.iter().rposition(|without| kinds & without == 0).unwrap_or(0)
    }

    fn of_byte(&self, byte: u8) -> usize {
        usize::from(self.of_kind[usize::from(byte_kind(byte))])
    }
}

/// Runs both automata side by side from their starts (breadth-first search over the product automaton), by a
/// byte of each kind, and returns the partner of each state of `dfa`. A state that meets several partners is
/// compared with the first. Linear in the states times the kinds of bytes, and mostly less: a state is
/// compared with an earlier one of the same partner.
pub(super) fn side_by_side(
    dfa: &TerminalDfa,
    common: &TerminalDfa,
    levels: &TextLevels,
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
        steps: ProductSteps::default(),
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

/// Bytes that neither automaton distinguishes: their class in the common one, and the highest level of texts
/// with them.
#[derive(Debug, Clone, Copy)]
struct ByteKind {
    common: usize,
    level: usize,
}

/// Kinds of bytes by their class in a terminal; class `c` has `all[first[c] .. first[c + 1]]`.
#[derive(Debug)]
struct Kinds {
    all: Vec<ByteKind>,
    first: Vec<usize>,
}

impl Kinds {
    fn new(dfa: &TerminalDfa, common: &TerminalDfa, levels: &TextLevels, bytes: &[u8]) -> Self {
        let class = |dfa: &TerminalDfa, byte: u8| usize::from(dfa.classes()[usize::from(byte)]);
        let mut bytes = bytes.to_vec();
        bytes.sort_by_key(|&byte| class(dfa, byte));
        let first = (0..=dfa.class_count()).map(|at| bytes.partition_point(|&byte| class(dfa, byte) < at));
        let kind = |&byte: &u8| ByteKind { common: class(common, byte), level: levels.of_byte(byte) };
        Self { first: first.collect(), all: bytes.iter().map(kind).collect() }
    }

    fn of(&self, class: usize) -> Range<usize> {
        self.first[class]..self.first[class + 1]
    }
}

/// The steps of a state by kinds of bytes, beside its partner. Other states with this partner mostly do
/// nearly the same, so only their differences are processed. The first such state of "any string but these
/// keys" is that in which a key begins, which leads to many others; so one that leads to fewer replaces it.
#[derive(Debug)]
struct Base {
    /// The state; `None` before the first one.
    state: Option<u32>,
    by_kind: Vec<KindEffect>,
    edges: Vec<ProductEdge>,
    /// Number of kinds of bytes, by level, that only one of the two goes on by.
    torn: [u32; LEVELS],
}

impl Base {
    /// Creates a base without a state.
    fn nowhere(kinds: usize) -> Self {
        Self { state: None, by_kind: vec![KindEffect::Nowhere; kinds], edges: Vec::new(), torn: [0; LEVELS] }
    }

    /// Takes over the edges that its kinds of bytes take, and renumbers them.
    fn take_edges(&mut self, edges: &[ProductEdge], kinds: &Kinds) {
        let mut numbers: Vec<Option<usize>> = vec![None; edges.len()];
        self.edges.clear();
        for (way, kind) in self.by_kind.iter_mut().zip(&kinds.all) {
            let KindEffect::Along(edge) = way else { continue };
            let number = *numbers[*edge].get_or_insert_with(|| {
                self.edges.push(ProductEdge { to: edges[*edge].to, level: 0, kinds: 0 });
                self.edges.len() - 1
            });
            *edge = number;
            self.edges[number].kinds += 1;
            self.edges[number].level = self.edges[number].level.max(kind.level);
        }
    }
}

/// The effect of a kind of bytes.
#[derive(Debug, Clone, Copy)]
enum KindEffect {
    Nowhere,
    /// Both go on to a state and its partner; holds the number of the edge.
    Along(usize),
    /// Only one goes on, or both do to states that are not partners.
    Torn,
}

/// A step of both automata to a state and its partner.
#[derive(Debug, Clone, Copy)]
struct ProductEdge {
    to: u32,
    /// Highest level with such a step.
    level: usize,
    /// Number of kinds of bytes that take it.
    kinds: u32,
}

/// The steps of both automata, for walking backwards.
#[derive(Debug, Default)]
struct ProductSteps {
    /// Source, target, and the highest level of each step.
    all: Vec<(u32, u32, usize)>,
    /// Sources by target, with the level: state `q` has `by_end[first[q] .. first[q + 1]]`.
    by_end: Vec<(u32, usize)>,
    first: Vec<u32>,
}

impl ProductSteps {
    /// Groups the steps by target (counting sort).
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

    /// Iterates over the states with a step to `to` by texts of a level.
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
    /// The base of each state of the common automaton.
    bases: Vec<Option<Base>>,
    open: VecDeque<u32>,
    steps: ProductSteps,
    // Scratch.
    edges: Vec<ProductEdge>,
    changes: Vec<(usize, KindEffect)>,
}

impl SideBySide<'_> {
    /// Processes the steps out of a state.
    fn leave(&mut self, state: u32) {
        let partner = self.pairs[state as usize].partner;
        let mut base =
            self.bases[partner as usize].take().unwrap_or_else(|| Base::nowhere(self.kinds.all.len()));
        let mut edges = std::mem::take(&mut self.edges);
        let mut changes = std::mem::take(&mut self.changes);
        // Starts from the counts of the base, then corrects the classes in which this state differs from it.
        edges.clone_from(&base.edges);
        changes.clear();
        let (row, theirs) = (self.dfa.row(state), self.common.row(partner));
        let mut torn = base.torn;
        // Replaces the base's way by a class of bytes with this state's.
        let mut change = |both: &mut Self, class: usize| {
            let to = row[class];
            for at in both.kinds.of(class) {
                let ByteKind { common, level } = both.kinds.all[at];
                let other = theirs[common];
                match base.by_kind[at] {
                    KindEffect::Nowhere => {}
                    KindEffect::Along(edge) => edges[edge].kinds -= 1,
                    KindEffect::Torn => torn[..=level].iter_mut().for_each(|torn| *torn -= 1),
                }
                let way = if to == NONE && other == NONE {
                    KindEffect::Nowhere
                } else if to != NONE && other != NONE && both.meet(to, other) {
                    let edge = edges.iter().rposition(|edge| edge.to == to).unwrap_or_else(|| {
                        edges.push(ProductEdge { to, level, kinds: 0 });
                        edges.len() - 1
                    });
                    edges[edge].level = edges[edge].level.max(level);
                    edges[edge].kinds += 1;
                    KindEffect::Along(edge)
                } else {
                    torn[..=level].iter_mut().for_each(|torn| *torn += 1);
                    KindEffect::Torn
                };
                changes.push((at, way));
            }
        };
        // A state without a base yet is compared class by class, others only where they differ.
        match base.state {
            None => (0..row.len()).for_each(|class| change(self, class)),
            Some(known) => differing(row, self.dfa.row(known)).for_each(|class| change(self, class)),
        }
        let taken = || edges.iter().filter(|edge| edge.kinds > 0);
        self.steps.all.extend(taken().map(|edge| (state, edge.to, edge.level)));
        self.pairs[state as usize].apart = torn.map(|torn| if torn > 0 { 1 } else { NEVER });
        // A state with fewer steps, far from the base, is a better base for later ones: see `Base`.
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

    /// Makes the states partners if the first has none yet. Returns whether they are partners.
    fn meet(&mut self, state: u32, other: u32) -> bool {
        let partner = &mut self.pairs[state as usize].partner;
        if *partner == NONE {
            *partner = other;
            self.open.push_back(state);
        }
        *partner == other
    }
}

/// Iterates over the classes by which two rows lead to different states, ascending.
fn differing(row: &[u32], other: &[u32]) -> impl Iterator<Item = usize> {
    /// Number of entries that are compared at once.
    const BLOCK: usize = 8;
    let blocks = row.chunks(BLOCK).zip(other.chunks(BLOCK)).enumerate();
    blocks.filter(|(_, (row, other))| row != other).flat_map(|(block, (row, other))| {
        let differs = move |at: &usize| row[*at] != other[*at];
        (0..row.len()).filter(differs).map(move |at| block * BLOCK + at)
    })
}

/// Spreads distances of at most one step to all states, among texts of a level: breadth-first search
/// backwards.
fn spread(pairs: &mut [Pair], steps: &ProductSteps, level: usize, open: &mut Vec<u32>) {
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

/// Returns the kinds of bytes by which a terminal may come to an end.
fn ending(dfa: &TerminalDfa) -> u64 {
    let ends = |state: u32, byte: u8| next(dfa, state, byte).is_some_and(|to| dfa.accepting()[to as usize]);
    let states = (0_u32..).take(dfa.len());
    let kinds = states.flat_map(|state| (0..=u8::MAX).filter(move |&byte| ends(state, byte)));
    kinds.fold(0, |kinds, byte| kinds | 1 << byte_kind(byte))
}

/// Returns a byte of each kind that one of the automata or the level distinguishes.
pub(super) fn told_apart(dfa: &TerminalDfa, common: &TerminalDfa, levels: &TextLevels) -> Vec<u8> {
    let width = common.class_count() * LEVELS;
    let mut seen = vec![false; dfa.class_count() * width];
    let kind = |byte: u8| {
        let [own, common] = [dfa, common].map(|dfa| usize::from(dfa.classes()[usize::from(byte)]));
        own * width + common * LEVELS + levels.of_byte(byte)
    };
    (0..=u8::MAX).filter(|&byte| !std::mem::replace(&mut seen[kind(byte)], true)).collect()
}

//! Rows by kinship: where a terminal does what a common one does, such as "any string but these keys" does
//! what
//! any string does, its row takes over what is known of the common one instead of walking the trie again.
//!
//! Both automata run side by side. For each state the length of the shortest text is known that it and its
//! partner treat differently; below a trie node with shorter ways down, tokens and exits are the partner's.

use std::{collections::VecDeque, ops::Range, sync::Arc};

use super::{
    counted::{Beside, Counted, Home, next},
    crossing::Loops,
    ranges::Ranges,
    reach::Reach,
};
use crate::{
    ids::TrieNodeId,
    scanner::{NONE, TerminalDfa},
    vocab::{ByteTrie, byte_kind},
};

/// No text is treated differently.
const NEVER: u32 = u32::MAX;

/// A state of a terminal, beside that of a common one.
#[derive(Debug, Clone, Copy)]
struct Pair {
    /// The partner; [`NONE`] if there is none.
    partner: u32,
    /// For each [level](Levels) of texts the length of the shortest one that the two treat differently: one
    /// may end, or go on, and the other may not.
    apart: [u32; LEVELS],
}

/// Levels of texts.
const LEVELS: usize = 4;

/// Any texts; those without a byte that may end the common terminal; of these, those without a byte of ASCII
/// that leads it away from where it is between characters, and so without escapes; of these, those without
/// characters of three bytes.
///
/// A string with `minLength` differs from any string by its closing quote alone, so inside of the quotes
/// the two are never apart. In one with the pattern `^.*\.txt$` no line may end, so that it is apart from
/// any string after two bytes, but those are an escape; and the three of U+2028, beside which most other
/// texts are plain.
#[derive(Debug, Clone, Copy)]
struct Levels {
    /// The [kinds](byte_kind) of bytes that texts of each level are without, as bits; each has all of the
    /// one before.
    without: [u64; LEVELS],
}

impl Levels {
    /// Those of texts inside, where nothing ends.
    const INSIDE: usize = 1;

    fn new(common: &TerminalDfa, home: Option<Home>, endless: bool) -> Self {
        let ending = if endless { 0 } else { ending(common) };
        let leaves = |home: Home| (0..0x80_u8).filter(move |&byte| home.is_left_by(common, byte));
        let escaping =
            home.map_or(0, |home| leaves(home).fold(0, |kinds, byte| kinds | 1 << byte_kind(byte)));
        let long = (0xe0..0xf0_u8).fold(0, |kinds, byte| kinds | 1 << byte_kind(byte));
        Self { without: [0, ending, ending | escaping, ending | escaping | long] }
    }

    /// The last level of texts of these kinds.
    fn of(&self, kinds: u64) -> usize {
        self.without.iter().rposition(|without| kinds & without == 0).unwrap_or(0)
    }

    fn of_byte(&self, byte: u8) -> usize {
        self.of(1 << byte_kind(byte))
    }
}

/// A row that was made from another.
pub(super) struct Found {
    pub(super) reach: Reach,
    /// The subtrees that are the other row's, in order.
    pub(super) taken: Vec<Range<u32>>,
    /// The exits elsewhere.
    pub(super) exits: Ranges,
    /// Trie nodes looked at.
    pub(super) walked: usize,
}

/// A terminal beside a common one.
#[derive(Debug)]
pub(super) struct Kin {
    common: Arc<TerminalDfa>,
    pairs: Box<[Pair]>,
    /// Set if the terminal is the common one but for counts of characters.
    counted: Option<Counted>,
    levels: Levels,
    /// Does the common one say nothing of where texts end? So it is for one that has the empty text, such as
    /// any characters of a string: pieces of a counted string go on as it does, and end elsewhere.
    endless: bool,
}

impl Kin {
    /// Runs both side by side from their starts. Linear in the states of `dfa` times the bytes that either
    /// tells apart. A state that comes beside several is held against the first.
    pub(super) fn new(dfa: &TerminalDfa, common: &Arc<TerminalDfa>, home: Option<Home>) -> Self {
        let endless = common.accepts_empty();
        let levels = Levels::new(common, home, endless);
        let bytes = told_apart(dfa, common, &levels);
        let fresh = Pair { partner: NONE, apart: [NEVER; LEVELS] };
        let mut pairs = vec![fresh; dfa.len()];
        pairs[0].partner = 0;
        // Where each state comes from, and the last level with the byte.
        let mut before: Vec<Vec<(u32, usize)>> = vec![Vec::new(); dfa.len()];
        let mut open = VecDeque::from([0_u32]);
        while let Some(state) = open.pop_front() {
            let partner = pairs[state as usize].partner;
            let Pair { mut apart, .. } = fresh;
            for &byte in &bytes {
                let level = levels.of_byte(byte);
                match (next(dfa, state, byte), next(common, partner, byte)) {
                    (None, None) => continue,
                    (Some(to), Some(other)) => {
                        if pairs[to as usize].partner == NONE {
                            pairs[to as usize].partner = other;
                            open.push_back(to);
                        }
                        if pairs[to as usize].partner == other {
                            // Most bytes lead to the same state.
                            match before[to as usize].last_mut() {
                                Some((from, last)) if *from == state => *last = level.max(*last),
                                _ => before[to as usize].push((state, level)),
                            }
                            continue;
                        }
                    }
                    _ => {}
                }
                apart[..=level].fill(1);
            }
            let ends = !endless && common.accepting()[partner as usize];
            if dfa.accepting()[state as usize] != ends {
                apart = [0; LEVELS];
            }
            pairs[state as usize] = Pair { partner, apart };
        }
        (0..LEVELS).for_each(|level| spread(&mut pairs, &before, level));
        let counted = home.and_then(|home| {
            let beside = Beside { dfa, common, bytes: &bytes };
            let same = |state: u32| !endless && pairs[state as usize].apart[0] == NEVER;
            Counted::new(&beside, home, |state| pairs[state as usize].partner, same)
        });
        Self { common: Arc::clone(common), pairs: pairs.into_boxed_slice(), counted, levels, endless }
    }

    /// The counts of characters that are all in which the terminal differs, if so it is.
    pub(super) fn counted(&self) -> Option<&Counted> {
        self.counted.as_ref()
    }

    /// The state of the common terminal that a state is held against.
    pub(super) fn partner(&self, state: u32) -> Option<u32> {
        Some(self.pairs[state as usize].partner).filter(|&partner| partner != NONE)
    }

    /// The length of the shortest text inside of a string that a state and its partner treat differently.
    pub(super) fn apart_inside(&self, state: u32) -> u32 {
        self.pairs[state as usize].apart[Levels::INSIDE]
    }

    /// Do a state and its partner treat all texts alike?
    pub(super) fn is_same(&self, state: u32) -> bool {
        !self.endless && self.partner(state).is_some() && self.pairs[state as usize].apart[0] == NEVER
    }

    /// Memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.pairs) + self.counted.as_ref().map_or(0, Counted::bytes)
    }

    /// Are exits taken over as well?
    pub(super) fn has_exits(&self) -> bool {
        !self.endless
    }

    /// The row of `state`, from that of its partner.
    pub(super) fn row(
        &self,
        trie: &ByteTrie,
        (dfa, loops): (&TerminalDfa, &Loops),
        state: u32,
        partners: &Reach,
    ) -> Found {
        let mut walk = Walk {
            kin: self,
            trie,
            loops,
            dfa,
            stays: Ranges::new(),
            exits: Ranges::new(),
            taken: Vec::new(),
            walked: 0,
        };
        walk.all(state, self.pairs[state as usize].partner);
        let Walk { stays, mut exits, taken, walked, .. } = walk;
        let no_exits = Ranges::new();
        let partners_exits = if self.endless { &no_exits } else { partners.exits() };
        let from = (partners.tokens(), partners_exits);
        let reach = Reach::spliced(trie, (stays, exits.clone()), &taken, from);
        exits.normalise();
        Found { reach, taken, exits, walked }
    }
}

/// Works out distances from those of one step, among texts of a level: breadth-first backwards.
fn spread(pairs: &mut [Pair], before: &[Vec<(u32, usize)>], level: usize) {
    let mut known: Vec<u32> = pairs.iter().map(|pair| pair.apart[level]).collect();
    let mut open: Vec<u32> =
        (0..).zip(&known).filter(|(_, distance)| **distance < NEVER).map(|(state, _)| state).collect();
    open.sort_by_key(|&state| known[state as usize]);
    let mut open = VecDeque::from(open);
    while let Some(state) = open.pop_front() {
        let farther = known[state as usize].saturating_add(1);
        for &(from, _) in before[state as usize].iter().filter(|(_, last)| *last >= level) {
            if known[from as usize] > farther {
                known[from as usize] = farther;
                open.push_back(from);
            }
        }
    }
    pairs.iter_mut().zip(known).for_each(|(pair, known)| pair.apart[level] = known);
}

/// The kinds of bytes by which a terminal may come to an end.
fn ending(dfa: &TerminalDfa) -> u64 {
    let ends = |state: u32, byte: u8| next(dfa, state, byte).is_some_and(|to| dfa.accepting()[to as usize]);
    let states = 0..u32::try_from(dfa.len()).unwrap_or(NONE);
    let kinds = states.flat_map(|state| (0..=u8::MAX).filter(move |&byte| ends(state, byte)));
    kinds.fold(0, |kinds, byte| kinds | 1 << byte_kind(byte))
}

/// A byte of each kind that one of the automata or the level tells from others.
fn told_apart(dfa: &TerminalDfa, common: &TerminalDfa, levels: &Levels) -> Vec<u8> {
    let mut seen = hashbrown::HashSet::new();
    let kind = |byte: u8| {
        (dfa.classes()[usize::from(byte)], common.classes()[usize::from(byte)], levels.of_byte(byte))
    };
    (0..=u8::MAX).filter(|&byte| seen.insert(kind(byte))).collect()
}

/// A walk over the trie with both automata.
struct Walk<'a> {
    kin: &'a Kin,
    trie: &'a ByteTrie,
    loops: &'a Loops,
    dfa: &'a TerminalDfa,
    /// What the walk itself found.
    stays: Ranges,
    exits: Ranges,
    /// Subtrees that are taken over.
    taken: Vec<Range<u32>>,
    walked: usize,
}

impl Walk<'_> {
    /// All tokens. The partner may be [`NONE`] further down, where only the terminal itself goes on.
    fn all(&mut self, state: u32, partner: u32) {
        let mut path: Vec<(u32, u32, u32)> = Vec::new();
        let mut at = 1;
        let last = self.trie.end(ByteTrie::ROOT).raw();
        while at < last {
            self.walked += 1;
            while path.last().is_some_and(|&(end, ..)| end <= at) {
                path.pop();
            }
            let (state, partner) =
                path.last().map_or((state, partner), |&(_, state, partner)| (state, partner));
            let node = TrieNodeId::new(at);
            let end = self.trie.end(node).raw();
            let byte = self.trie.byte(node);
            let Some(to) = next(self.dfa, state, byte) else {
                at = end;
                continue;
            };
            let beside = if partner == NONE { None } else { next(&self.kin.common, partner, byte) };
            if self.enter(node, to, beside) {
                path.push((end, to, beside.unwrap_or(NONE)));
                at += 1;
            } else {
                at = end;
            }
        }
    }

    /// Collects a node, and all below it if that is known. Returns whether the children are still to be
    /// walked.
    fn enter(&mut self, node: TrieNodeId, state: u32, beside: Option<u32>) -> bool {
        let end = self.trie.end(node).raw();
        let pair = self.kin.pairs[state as usize];
        let below = self.trie.height(node).unwrap_or(NEVER - 1);
        let level = self.kin.levels.of(self.trie.kinds_below(node));
        if beside.is_some_and(|beside| beside == pair.partner) && pair.apart[level] > below {
            match self.taken.last_mut() {
                Some(last) if last.end == node.raw() => last.end = end,
                _ => self.taken.push(node.raw()..end),
            }
            return false;
        }
        let accepts = self.dfa.accepting()[state as usize];
        if self.loops.holds(state, self.trie.kinds_below(node)) {
            self.stays.push(self.trie.subtree_tokens(node));
            if accepts && self.trie.has_children(node) {
                self.exits.push(node.raw()..end);
            }
            return false;
        }
        self.stays.push(self.trie.own_tokens(node));
        if accepts {
            self.exits.push(node.raw()..node.raw() + 1);
        }
        true
    }
}

//! Dominance between dotted rules: a simulation preorder on nonterminals, found in the productions.
//!
//! A dominates B if every continuation of B is one of A. In `X{0,9}` the items that have used 2 and 5 of the
//! 9 parts differ by their count alone. If both began at the same place, the lower count dominates: it may
//! end where the other may, and have more parts. So a parser set needs only the lowest count; otherwise every
//! combination of counts at all levels of nesting would be a set of its own. Below the minimum of `X{3,9}`
//! counts stay apart.
//!
//! Method: a nonterminal that occurs only at the beginning of productions is completed into those
//! productions, so its continuations are known from them: its *contexts*, each a production's left-hand side
//! and the symbols left of it. `A` ranks before `B` if for each context of `B` there is one of `A` with the
//! same symbols left, and with the same left-hand side or one that ranks before it. Both must be predicted in
//! the same sets, which holds if all ways to predict them begin at one nonterminal. Nonterminals that rank
//! one behind the other form a *chain*:
//!
//! ```text
//! X{0,3} is  X ::= c1 | c2 | c3    c1 ::= x    c2 ::= c1 x    c3 ::= c2 x
//! contexts   c1: X, c2 with x left    c2: X, c3 with x left    c3: X      chain   c1 before c2 before c3
//! ```
//!
//! Linear in the productions, and a few comparisons for each nonterminal.

use hashbrown::HashMap;

use super::{AfterDot, Cfg, Dominance, DominanceRank, DottedRule, NonterminalId};

/// Number of contexts of a nonterminal beyond which it is in no chain. A part of a counted repeat has three.
const MAX_CONTEXTS: usize = 16;

/// Number of chains of one place that a nonterminal is tried on, the newest first.
const MAX_CHAINS: usize = 8;

/// Computes the ranks of `cfg`, which does not have them yet.
pub(in crate::lower) fn dominance(cfg: &Cfg) -> Dominance {
    let mut suffixes = Suffixes::default();
    let starts = Starts::of(cfg, &mut suffixes);
    let chains = Chains::of(&starts);
    let mut classes: HashMap<(Owner, u32), Vec<DottedRule>> = HashMap::new();
    for first in cfg.first_dots() {
        let chain = chains.of_nonterminal(cfg.lhs(first));
        let after_chain = match cfg.slot(first) {
            AfterDot::Nonterminal(corner) => chains.of_nonterminal(corner).is_some(),
            _ => false,
        };
        if chain.is_none() && !after_chain {
            continue;
        }
        let owner = chain.map_or(Owner::Nonterminal(cfg.lhs(first)), Owner::Chain);
        let mut dot = first;
        for (at, suffix) in suffixes.of(cfg, first).into_iter().enumerate() {
            if at > 0 || chain.is_some() {
                classes.entry((owner, suffix)).or_default().push(dot);
            }
            dot = dot.next();
        }
    }
    let mut classes: Vec<Vec<DottedRule>> = classes.into_values().filter(|dots| dots.len() > 1).collect();
    // In an order that does not depend on hashes.
    classes.iter_mut().for_each(|dots| dots.sort_by_key(|&dot| (chains.place(cfg.lhs(dot)), dot)));
    classes.sort();
    let mut ranks = vec![None; if classes.is_empty() { 0 } else { cfg.dot_count() }];
    for (class, dots) in (0..).zip(&classes) {
        for (place, dot) in (0..).zip(dots) {
            ranks[dot.0 as usize] = Some(DominanceRank { class, place });
        }
    }
    Dominance::new(ranks)
}

/// The left-hand sides that a class has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Owner {
    Nonterminal(NonterminalId),
    Chain(u32),
}

/// Rests of productions, numbered by their symbols.
#[derive(Debug, Default)]
struct Suffixes {
    numbers: HashMap<(AfterDot, u32), u32>,
    /// The last number. There are fewer than dots, which have numbers.
    last: u32,
}

impl Suffixes {
    /// Returns the numbers of all suffixes of a production, the longest first. The last is the empty one,
    /// number 0.
    fn of(&mut self, cfg: &Cfg, first: DottedRule) -> Vec<u32> {
        let mut numbers = vec![0];
        for slot in cfg.symbols(first).collect::<Vec<_>>().into_iter().rev() {
            let rest = numbers[numbers.len() - 1];
            let number = *self.numbers.entry((slot, rest)).or_insert(self.last + 1);
            self.last = self.last.max(number);
            numbers.push(number);
        }
        numbers.reverse();
        numbers
    }
}

/// The symbols left after a nonterminal at the beginning of a production, and that production's left-hand
/// side.
type CornerContext = (u32, NonterminalId);

/// The nonterminals that occur only at the beginning of productions.
#[derive(Debug)]
struct Starts {
    /// Contexts by nonterminal; empty for others.
    contexts: Vec<Vec<CornerContext>>,
    /// Order of these nonterminals: each is behind the left-hand sides of its contexts, but in cycles.
    order: Vec<NonterminalId>,
}

impl Starts {
    /// Finds the nonterminals that only begin productions, with their contexts.
    fn of(cfg: &Cfg, suffixes: &mut Suffixes) -> Self {
        let count = cfg.nonterminal_count();
        let (mut uses, mut only_first) = (vec![Vec::new(); count], vec![true; count]);
        for first in cfg.first_dots() {
            for (at, slot) in cfg.symbols(first).enumerate() {
                match slot {
                    AfterDot::Nonterminal(symbol) if at == 0 => uses[symbol.index()].push(first),
                    AfterDot::Nonterminal(symbol) => only_first[symbol.index()] = false,
                    _ => {}
                }
            }
        }
        // Productions do not tell which parts of a list in any order have come, so no part dominates another.
        for (_, list) in cfg.lists().iter() {
            for symbol in list.parts.iter().chain([&list.symbol, &list.part]) {
                only_first[symbol.index()] = false;
            }
        }
        let mut contexts = vec![Vec::new(); count];
        for (at, uses) in uses.iter().enumerate() {
            if only_first[at] && uses.len() <= MAX_CONTEXTS {
                let context = |&first: &DottedRule| (suffixes.of(cfg, first)[1], cfg.lhs(first));
                contexts[at] = uses.iter().map(context).collect();
            }
        }
        let order = outside_in(&contexts);
        Self { contexts, order }
    }

    fn contexts(&self, nonterminal: NonterminalId) -> &[CornerContext] {
        &self.contexts[nonterminal.index()]
    }
}

/// The nonterminals with contexts, each behind the left-hand sides of these (depth-first search, post-order).
fn outside_in(contexts: &[Vec<CornerContext>]) -> Vec<NonterminalId> {
    let mut order = Vec::new();
    let mut seen = vec![false; contexts.len()];
    for start in (0..).map(NonterminalId).take(contexts.len()) {
        let mut open = vec![(start, 0)];
        while let Some((nonterminal, next)) = open.pop() {
            let contexts = &contexts[nonterminal.index()];
            if contexts.is_empty() || (next == 0 && std::mem::replace(&mut seen[nonterminal.index()], true)) {
                continue;
            }
            match contexts.get(next) {
                Some(&(_, outer)) => open.extend([(nonterminal, next + 1), (outer, 0)]),
                None => order.push(nonterminal),
            }
        }
    }
    order
}

/// Chains of nonterminals that rank one behind the other.
#[derive(Debug)]
struct Chains {
    /// Chain of each nonterminal, and how many rank behind it there.
    members: Vec<Option<(u32, u32)>>,
    lengths: Vec<u32>,
    /// Number of the next chain. There are at most as many as nonterminals, which have numbers.
    next: u32,
}

impl Chains {
    /// Builds the chains, outer nonterminals first: each is appended to a chain that it ranks before.
    fn of(starts: &Starts) -> Self {
        let members = vec![None; starts.contexts.len()];
        let mut chains = Self { members, lengths: Vec::new(), next: 0 };
        // By nonterminal: one that is predicted in the same sets; itself if none is known.
        let mut places: Vec<Option<NonterminalId>> = vec![None; starts.contexts.len()];
        // By place: the last of each chain.
        let mut lasts: HashMap<NonterminalId, Vec<NonterminalId>> = HashMap::new();
        for &new in &starts.order {
            let outer = starts.contexts(new).iter().map(|&(_, outer)| outer).filter(|&outer| outer != new);
            let mut outer = outer.map(|outer| places[outer.index()].unwrap_or(outer));
            let first = outer.next().unwrap_or(new);
            let place = if outer.all(|other| other == first) { first } else { new };
            places[new.index()] = Some(place);
            let lasts = lasts.entry(place).or_default();
            // Alternatives of one rule have the same contexts, and rarely anything to compare.
            let known = lasts.iter_mut().rev().take(MAX_CHAINS).find(|last| {
                let (general, special) = (starts.contexts(new), starts.contexts(**last));
                general != special && chains.is_before(general, special)
            });
            match known {
                Some(last) => {
                    chains.append(new, *last);
                    *last = new;
                }
                None => {
                    chains.begin(new);
                    lasts.push(new);
                }
            }
        }
        chains
    }

    /// Does a nonterminal with the contexts `general` dominate one with `special`?
    fn is_before(&self, general: &[CornerContext], special: &[CornerContext]) -> bool {
        special.iter().all(|&(rest, outer)| {
            general.iter().any(|&(other_rest, other)| {
                let is_before = || match (self.members[other.index()], self.members[outer.index()]) {
                    (Some((chain, at)), Some((other_chain, other_at))) => {
                        chain == other_chain && at >= other_at
                    }
                    _ => false,
                };
                rest == other_rest && (other == outer || is_before())
            })
        })
    }

    fn begin(&mut self, nonterminal: NonterminalId) {
        self.members[nonterminal.index()] = Some((self.next, 0));
        self.lengths.push(1);
        self.next += 1;
    }

    fn append(&mut self, nonterminal: NonterminalId, last: NonterminalId) {
        if let Some((chain, at)) = self.members[last.index()] {
            self.members[nonterminal.index()] = Some((chain, at + 1));
            self.lengths[chain as usize] += 1;
        }
    }

    /// Returns the chain of a nonterminal, if the chain has several members.
    fn of_nonterminal(&self, nonterminal: NonterminalId) -> Option<u32> {
        let (chain, _) = self.members[nonterminal.index()]?;
        (self.lengths[chain as usize] > 1).then_some(chain)
    }

    /// Returns how many of its chain rank before it.
    fn place(&self, nonterminal: NonterminalId) -> u32 {
        self.members[nonterminal.index()].map_or(0, |(chain, at)| self.lengths[chain as usize] - 1 - at)
    }
}

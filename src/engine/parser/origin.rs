//! Origins of predictions: the part of a set that completion can ask for.
//!
//! When a nonterminal `A` is completed, its origin, the set in which it was predicted, is asked only for the
//! items that wait for `A`, and for their origins. All of that follows from the kernel items that lead to `A`
//! at their left corner. So the origin is the set of just these, and whatever else was open at that place is
//! forgotten: after `stmt ws stmt ws ...`, where each `ws` may still go on, the next `stmt` has the same
//! origin as the last. (If an item leads to `B` and a rule of `B` begins with `A`, it leads to `A`, so
//! restricting a restricted set gives the same.)

use std::hash::Hash;

use hashbrown::{HashMap, hash_map::Entry};

use super::core::Item;
use crate::ids::SetId;
use crate::limits::{LimitExceeded, Work};
use crate::lower::{AfterDot, Cfg, DottedRule, NonterminalId};

/// Number of nonterminals up to which left corners are computed; beyond, whole sets are origins: exact, less
/// canonical.
const MAX_NONTERMINALS: usize = 20_000;

/// Number of kernel items up to which a set is restricted: chains of thousands of open rules would otherwise
/// make a large set for each. Beyond, again, the whole set is the origin.
const MAX_KERNEL: usize = 64;

/// Left corners and known origins.
#[derive(Debug, Default)]
pub(super) struct KnownOrigins {
    known: Memo<NonterminalId>,
    /// For each nonterminal, a bit for each nonterminal that it can begin with, itself included.
    left_corners: HashMap<NonterminalId, Box<[u64]>>,
}

impl KnownOrigins {
    /// Is a set with this kernel its own origin, whatever is predicted?
    pub(super) fn keeps_whole(&self, cfg: &Cfg, kernel: &[Item]) -> bool {
        kernel.len() > MAX_KERNEL || cfg.nonterminal_count() > MAX_NONTERMINALS
    }

    /// Returns the origin of `nonterminal` in `set`, if it is memoised.
    pub(super) fn known(&self, set: SetId, nonterminal: NonterminalId) -> Option<SetId> {
        self.known.get(set, nonterminal)
    }

    pub(super) fn remember(&mut self, set: SetId, nonterminal: NonterminalId, origin: SetId) {
        self.known.insert(set, nonterminal, origin);
    }

    /// Can the rest after `dot` begin with `nonterminal`?
    pub(super) fn leads_to(
        &mut self,
        cfg: &Cfg,
        dot: DottedRule,
        nonterminal: NonterminalId,
        work: &mut Work,
    ) -> Result<bool, LimitExceeded> {
        let AfterDot::Nonterminal(first) = cfg.slot(dot) else { return Ok(false) };
        if first == nonterminal {
            return Ok(true);
        }
        work.spend(2)?;
        let bits = match self.left_corners.entry(first) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => unknown.insert(left_corners(cfg, first, work)?),
        };
        Ok(bits[nonterminal.index() / 64] >> (nonterminal.index() % 64) & 1 == 1)
    }

    /// Memory, in bytes.
    pub(super) fn bytes(&self, cfg: &Cfg) -> usize {
        let corners = self.left_corners.len() * cfg.nonterminal_count().div_ceil(64) * size_of::<u64>();
        self.known.bytes() + self.left_corners.allocation_size() + corners
    }
}

/// Collects everything that `first` can begin with. Linear in the productions reached.
fn left_corners(cfg: &Cfg, first: NonterminalId, work: &mut Work) -> Result<Box<[u64]>, LimitExceeded> {
    let mut bits = vec![0_u64; cfg.nonterminal_count().div_ceil(64)].into_boxed_slice();
    let mut open = vec![first];
    bits[first.index() / 64] |= 1 << (first.index() % 64);
    while let Some(nonterminal) = open.pop() {
        work.spend(cfg.productions(nonterminal).len())?;
        for &start in cfg.productions(nonterminal) {
            let mut dot = start;
            while let AfterDot::Nonterminal(corner) = cfg.slot(dot) {
                let word = &mut bits[corner.index() / 64];
                if *word >> (corner.index() % 64) & 1 == 0 {
                    *word |= 1 << (corner.index() % 64);
                    open.push(corner);
                }
                if !cfg.is_nullable(corner) {
                    break;
                }
                dot = dot.next();
            }
        }
    }
    Ok(bits)
}

/// Number of sets whose answers share one table. A full table moves all it holds in one go, so one table of
/// millions would make a single step slow.
const SETS_OF_A_TABLE: usize = 64;

/// A map from a set and a second key to a set.
#[derive(Debug)]
pub(super) struct Memo<K> {
    tables: Vec<HashMap<(SetId, K), SetId>>,
    bytes: usize,
}

impl<K> Default for Memo<K> {
    fn default() -> Self {
        Self { tables: Vec::new(), bytes: 0 }
    }
}

impl<K: Copy + Eq + Hash> Memo<K> {
    pub(super) fn get(&self, set: SetId, key: K) -> Option<SetId> {
        self.tables.get(set.index() / SETS_OF_A_TABLE)?.get(&(set, key)).copied()
    }

    /// Adds an entry and its memory.
    pub(super) fn insert(&mut self, set: SetId, key: K, to: SetId) {
        let at = set.index() / SETS_OF_A_TABLE;
        if at >= self.tables.len() {
            let more = at + 1 - self.tables.len();
            self.bytes += more * size_of::<HashMap<(SetId, K), SetId>>();
            self.tables.resize_with(at + 1, HashMap::new);
        }
        let table = &mut self.tables[at];
        let before = table.allocation_size();
        table.insert((set, key), to);
        self.bytes += table.allocation_size() - before;
    }

    /// Memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

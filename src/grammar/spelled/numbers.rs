//! Numbers of states that are too many to list.

use std::sync::{PoisonError, RwLock};

use hashbrown::HashMap;

use super::Place;

/// Numbers of one terminal at most: a grammar has room for 60 such terminals.
pub(super) const MOST_NUMBERS: u32 = 1 << 26;
/// Places up to which they are numbered by what they are.
const MOST_DIGITS: u32 = if cfg!(test) { 1 << 11 } else { MOST_NUMBERS };
/// Numbers below this are of the start and of the end.
pub(super) const FIRST: u32 = 2;
/// Bits of a key for a node, and for a state: those of a count are the rest.
const NODE_BITS: u32 = 14;
const STATE_BITS: u32 = 18;

/// How places are numbered.
#[derive(Debug)]
pub(super) enum Numbers {
    /// By what they are: state, count and node as digits.
    Digits { states: u32, node_bits: u32, bound: u32 },
    /// In the order in which texts come to them, as there are too many.
    AsMet(RwLock<Met>),
}

#[derive(Debug, Default)]
pub(super) struct Met {
    known: HashMap<u64, u32>,
    keys: Vec<u64>,
}

impl Numbers {
    /// For so many states, counts and nodes. `None` if there are more states or nodes than a key can tell
    /// apart.
    pub(super) fn new(states: usize, counts: u64, nodes: usize) -> Option<Self> {
        let states = u32::try_from(states).ok().filter(|&states| states < 1 << STATE_BITS)?;
        let nodes = u32::try_from(nodes).ok().filter(|&nodes| nodes <= 1 << NODE_BITS)?;
        let node_bits = nodes.max(1).next_power_of_two().ilog2();
        let all = u64::from(states).checked_mul(counts)?.checked_shl(node_bits)?.checked_add(FIRST.into())?;
        let bound = u32::try_from(all).ok().filter(|&bound| bound <= MOST_DIGITS);
        // A product that does not fit is not one of few.
        let fits = u64::from(states).saturating_mul(counts) <= u64::from(MOST_NUMBERS);
        Some(match bound.filter(|_| fits) {
            Some(bound) => Self::Digits { states, node_bits, bound },
            None => Self::AsMet(RwLock::default()),
        })
    }

    /// Numbers are below this.
    pub(super) fn bound(&self) -> u32 {
        match self {
            Self::Digits { bound, .. } => *bound,
            Self::AsMet(_) => MOST_NUMBERS,
        }
    }

    /// The number of a place; `None` if there are no more.
    pub(super) fn of(&self, place: Place) -> Option<u32> {
        match self {
            Self::Digits { states, node_bits, .. } => {
                Some(((place.count * states + place.state) << node_bits | place.node) + FIRST)
            }
            Self::AsMet(met) => {
                let key = key(place);
                if let Some(&known) = met.read().unwrap_or_else(PoisonError::into_inner).known.get(&key) {
                    return Some(known);
                }
                let mut met = met.write().unwrap_or_else(PoisonError::into_inner);
                let fresh = u32::try_from(met.keys.len()).ok()?.checked_add(FIRST)?;
                let Met { known, keys } = &mut *met;
                if let Some(&known) = known.get(&key) {
                    return Some(known);
                }
                if fresh >= MOST_NUMBERS {
                    return None;
                }
                known.insert(key, fresh);
                keys.push(key);
                Some(fresh)
            }
        }
    }

    /// The place of a number from [`FIRST`] on.
    pub(super) fn place(&self, number: u32) -> Place {
        let at = number - FIRST;
        match self {
            Self::Digits { states, node_bits, .. } => {
                let rest = at >> node_bits;
                Place { state: rest % states, count: rest / states, node: at & ((1 << node_bits) - 1) }
            }
            Self::AsMet(met) => {
                let met = met.read().unwrap_or_else(PoisonError::into_inner);
                met.keys.get(at as usize).copied().map_or_else(Place::default, place_of)
            }
        }
    }

    /// What tells a place from others, whatever was met first.
    pub(super) fn name(&self, number: u32) -> u64 {
        match self {
            Self::AsMet(_) if number >= FIRST => key(self.place(number)) + u64::from(FIRST),
            _ => u64::from(number),
        }
    }

    /// Memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Digits { .. } => 0,
            Self::AsMet(met) => {
                let met = met.read().unwrap_or_else(PoisonError::into_inner);
                met.known.allocation_size() + met.keys.capacity() * size_of::<u64>()
            }
        }
    }
}

fn key(place: Place) -> u64 {
    u64::from(place.count) << (STATE_BITS + NODE_BITS)
        | u64::from(place.state) << NODE_BITS
        | u64::from(place.node)
}

fn place_of(key: u64) -> Place {
    let part = |shift: u32, bits: u32| u32::try_from(key >> shift & ((1 << bits) - 1)).unwrap_or(u32::MAX);
    Place {
        state: part(NODE_BITS, STATE_BITS),
        count: part(STATE_BITS + NODE_BITS, 32),
        node: part(0, NODE_BITS),
    }
}

//! Automata that many schemas have in common, such as that of the numbers from 0 on: made once.

use std::{
    hash::Hash,
    sync::{Mutex, PoisonError},
};

use hashbrown::HashMap;

use super::leaf::LeafError;
use crate::grammar::Automaton;

/// States of the automata that are kept, together: 5 MB or so.
const MOST_STATES: usize = 1 << 16;

/// Automata by what they are made of.
pub(super) struct Memo<K>(Mutex<Known<K>>);

struct Known<K> {
    automata: Option<HashMap<K, Automaton>>,
    /// Of all of them.
    states: usize,
}

impl<K: Eq + Hash> Memo<K> {
    /// Nothing is known yet.
    pub(super) const fn new() -> Self {
        Self(Mutex::new(Known { automata: None, states: 0 }))
    }

    /// The automaton of `key`, which `make` makes if it is not known.
    ///
    /// # Errors
    /// Those of `make`, which are not kept.
    pub(super) fn get_or_make(
        &self,
        key: K,
        make: impl FnOnce() -> Result<Automaton, LeafError>,
    ) -> Result<Automaton, LeafError> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().automata.as_ref().and_then(|known| known.get(&key)) {
            return Ok(known.clone());
        }
        // Others may go on meanwhile; two may make the same.
        let made = make()?;
        let states = made.states().len();
        if states <= MOST_STATES {
            let mut known = lock();
            let Known { automata, states: sum } = &mut *known;
            let automata = automata.get_or_insert_default();
            if *sum + states > MOST_STATES {
                automata.clear();
                *sum = 0;
            }
            if automata.insert(key, made.clone()).is_none() {
                *sum += states;
            }
        }
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::automaton::{Edge, State};

    fn of_states(count: usize) -> Automaton {
        let edge = |to: usize| Edge { first: b'a', last: b'a', to: u32::try_from(to).unwrap() };
        let state = |at: usize| State { accepts: at + 1 == count, edges: vec![edge((at + 1) % count)] };
        Automaton::new((0..count).map(state).collect()).unwrap()
    }

    #[test]
    fn what_is_small_is_made_once() {
        let memo = Memo::new();
        let make = |key: usize, states: usize| {
            let mut made = false;
            let automaton = memo.get_or_make(key, || {
                made = true;
                Ok(of_states(states))
            });
            assert_eq!(automaton.unwrap().states().len(), states);
            made
        };
        assert!(make(1, 2) && !make(1, 2));
        assert!(make(2, MOST_STATES + 1) && make(2, MOST_STATES + 1));
        assert!(memo.get_or_make(3, || Err(LeafError::Number(String::new()))).is_err());
        assert!(make(3, 4) && !make(1, 2));
        assert!(make(4, MOST_STATES));
        assert!(make(1, 2), "nothing is kept forever");
    }
}

//! Contexts of states, as two hashes.

use hashbrown::HashMap;

use crate::ids::StateId;

/// Scanner states and parser state of a text, as two hashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Context {
    pub(in crate::machine) alpha: u64,
    pub(in crate::machine) beta: u64,
}

impl Context {
    /// Hash of the terminals that the text is inside of or may begin, each with the state of its scanner.
    #[must_use]
    pub fn alpha(self) -> u64 {
        self.alpha
    }

    /// Hash of the dotted rules in which those terminals were started. The sets where these were predicted
    /// are forgotten, and so is the stack.
    #[must_use]
    pub fn beta(self) -> u64 {
        self.beta
    }
}

/// Number of contexts that are kept, at 32 bytes each. Past it all are forgotten and computed again on
/// demand.
const MOST: usize = 1 << 16;

/// The contexts of states that were asked for.
#[derive(Debug, Default)]
pub(in crate::machine) struct Contexts {
    known: HashMap<StateId, Context>,
}

impl Contexts {
    /// The context of `state`, if it was asked for before.
    pub(in crate::machine) fn get(&self, state: StateId) -> Option<Context> {
        self.known.get(&state).copied()
    }

    /// Files the context of `state`.
    pub(in crate::machine) fn keep(&mut self, state: StateId, context: Context) {
        if self.known.len() >= MOST {
            self.known.clear();
        }
        self.known.insert(state, context);
    }
}

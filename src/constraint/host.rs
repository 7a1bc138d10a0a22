//! Which machine a session runs on.
//!
//! Sessions share a machine until its budgets are more than half used; then new sessions get a new one, and older
//! ones move when the old one cannot go on. So nothing that one session did is missing to another, and
//! what nobody uses any more is freed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{machine::Machine, program::Program};
use crate::limits::LimitExceeded;

/// A machine that sessions share.
pub(super) type SharedMachine = Arc<Mutex<Machine>>;

/// The machine that the sessions of a compiled grammar get now. Cloning shares it.
#[derive(Debug, Clone)]
pub(crate) struct Host {
    current: Arc<Mutex<SharedMachine>>,
}

impl Host {
    /// A host with a new machine.
    pub(crate) fn new(program: &Program) -> Result<Self, LimitExceeded> {
        let machine = Arc::new(Mutex::new(Machine::new(program)?));
        Ok(Self { current: Arc::new(Mutex::new(machine)) })
    }

    /// A machine that is not worn. Machines are given out in order of age: whoever moves, moves to a newer one.
    pub(super) fn machine(&self, program: &Program) -> SharedMachine {
        let mut current = lock(&self.current);
        let worn = lock(&current).is_worn(program);
        // A machine could be made with these budgets before, so it can be now.
        if worn && let Ok(fresh) = Machine::new(program) {
            *current = Arc::new(Mutex::new(fresh));
        }
        Arc::clone(&current)
    }
}

/// A panic elsewhere cannot leave a machine half-changed in a way that matters: what it holds are memos
/// that are written whole.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

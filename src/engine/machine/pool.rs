//! The pool of machines of a compiled grammar.
//!
//! Sessions share a machine until its budgets are more than half used. Then new sessions get a new one, and
//! older ones move when theirs cannot go on. So no session lacks what another has done, and a machine that
//! nobody uses is freed.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    thread,
    time::Duration,
};

use super::{
    explore::{Exploration, Frontier},
    memos::Memory,
    state_automaton::StateAutomaton,
};
use crate::{
    clock::Instant,
    limits::{LimitExceeded, Work},
    program::Program,
};

/// Longest time for which exploring holds a machine that sessions run on, and the pause after it. A lock that
/// is taken again at once is not handed over to waiting threads.
const TURN: Duration = Duration::from_micros(300);
const REST: Duration = Duration::from_micros(30);

/// A machine that sessions share.
pub(crate) type SharedMachine = Arc<Mutex<StateAutomaton>>;

/// The machines of a compiled grammar. Cloning shares them.
#[derive(Debug, Clone)]
pub(crate) struct MachinePool {
    machines: Arc<Mutex<Machines>>,
}

#[derive(Debug)]
struct Machines {
    /// The machine that new sessions get.
    current: SharedMachine,
    /// Earlier machines; alive as long as sessions run on them.
    replaced: Vec<Weak<Mutex<StateAutomaton>>>,
}

impl MachinePool {
    /// Creates a pool with one new machine.
    pub(crate) fn new(program: &Program) -> Result<Self, LimitExceeded> {
        let current = Arc::new(Mutex::new(StateAutomaton::new(program)?));
        Ok(Self { machines: Arc::new(Mutex::new(Machines { current, replaced: Vec::new() })) })
    }

    /// Returns a machine that is not worn. Machines are given out in order of age: a session only ever moves
    /// to a newer one.
    pub(crate) fn machine(&self, program: &Program) -> SharedMachine {
        let mut machines = lock(&self.machines);
        let worn = lock(&machines.current).is_worn(program);
        // A machine could be made with these budgets before, so it can be now.
        if worn && let Ok(mut fresh) = StateAutomaton::new(program) {
            // Texts are under way, and room is short.
            fresh.skip_rehearsal();
            let Machines { current, replaced } = &mut *machines;
            replaced.retain(|machine| machine.strong_count() > 0);
            replaced.push(Arc::downgrade(current));
            *current = Arc::new(Mutex::new(fresh));
        }
        Arc::clone(&machines.current)
    }

    /// Explores the machine that new sessions get, from the start on, taking turns with its sessions.
    pub(crate) fn explore(&self, program: &Program, work: &mut Work) -> Exploration {
        let machine = self.machine(program);
        let mut frontier = Frontier::new(program, &lock(&machine));
        let mut states = 0;
        let mut since = Instant::now();
        loop {
            match lock(&machine).explore(program, &mut frontier, work) {
                Some(true) => states += 1,
                // Tokens of classes lead to states that no bytes lead to.
                done => {
                    return Exploration { states, complete: done.is_some() && program.classes.is_empty() };
                }
            }
            if since.elapsed() > TURN {
                // Besides this one and the host's.
                if Arc::strong_count(&machine) > 2 {
                    thread::sleep(REST);
                }
                since = Instant::now();
            }
        }
    }

    /// Memory of all machines that are alive.
    pub(crate) fn memory(&self, program: &Program) -> Memory {
        let machines = lock(&self.machines);
        let replaced: Vec<SharedMachine> = machines.replaced.iter().filter_map(Weak::upgrade).collect();
        let all = replaced.iter().chain([&machines.current]);
        all.map(|machine| lock(machine).memory(program)).fold(Memory::default(), Memory::and)
    }
}

/// Locks a mutex, poisoned or not: a panic elsewhere cannot leave a machine inconsistent, as all it holds are
/// memos that are written whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Compiler, Grammar, Limits, Syntax, TokenId, Vocabulary};

    fn program(limits: Limits) -> Arc<Program> {
        let grammar = Grammar::parse(Syntax::Gbnf, r#"root ::= "(" root ")" | "x""#, &limits).unwrap();
        let vocabulary = Vocabulary::builder().all_bytes().end_of_text(TokenId::new(256)).build().unwrap();
        Arc::clone(Compiler::new(vocabulary).limits(limits).compile(&grammar).unwrap().program())
    }

    /// Makes limits on the memory of parser sets and of states: this many halves of what a new machine takes.
    fn limits(halves: usize) -> [Limits; 2] {
        let program = program(Limits::default());
        let memory = StateAutomaton::new(&program).unwrap().memory(&program);
        let [mut sets, mut states] = [Limits::default(), Limits::default()];
        sets.parser_bytes = memory.parser_sets * halves / 2;
        states.state_bytes = memory.states * halves / 2;
        [sets, states]
    }

    #[test]
    fn sessions_share_a_machine_until_it_is_half_used() {
        for (halves, shared) in [(3, false), (5, true)] {
            for limits in limits(halves) {
                let program = program(limits);
                let host = MachinePool::new(&program).unwrap();
                let machine = host.machine(&program);
                assert_eq!(Arc::ptr_eq(&machine, &host.machine(&program)), shared, "{:?}", program.limits);
            }
        }
    }

    #[test]
    fn only_machines_in_use_are_kept() {
        let [limits, _] = limits(3);
        let program = program(limits);
        let host = MachinePool::new(&program).unwrap();
        let _used = host.machine(&program);
        for _ in 0..10 {
            host.machine(&program);
        }
        assert_eq!(host.memory(&program).machines, 2);
        // What is left of the latest goes when the next one comes.
        assert_eq!(lock(&host.machines).replaced.len(), 2);
    }
}

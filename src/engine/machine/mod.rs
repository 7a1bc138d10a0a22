//! The machine that texts of a grammar run on: a lazy automaton, whose states are sets of threads.
//!
//! Its states, moves and masks are made as texts come to them, or ahead (a rehearsal, exploring), and all
//! texts share them. *Invariant:* whatever it keeps follows from the program alone, so no answer depends on
//! who asked before. When its memory is half used, new texts get another machine of the pool.
//!
//! Below it are the program that it runs and the makers of masks. Above it are the readers of JSON, which
//! know what a machine does not, and the sessions, which hold one machine each.

mod bounded_lookahead;
mod class_steps;
mod explore;
mod memos;
mod pool;
mod rehearsal;
mod state_automaton;
mod states;
mod trie_walk;

pub use explore::Exploration;
pub use memos::{CompilerMemory, Context, Memory};
pub(crate) use memos::{Fingerprint, with_bytes, with_number};
pub(crate) use pool::{MachinePool, SharedMachine, lock};
pub(crate) use state_automaton::StateAutomaton;
pub(crate) use states::Move;

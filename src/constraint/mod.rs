//! A text in the making: threads through scanner and parser, masks, and the session users hold.

mod cache;
mod characters;
mod classes;
mod completion;
#[expect(clippy::module_inception, reason = "the stage's main type lives in the file of its name")]
mod constraint;
mod context;
mod detour;
mod distinct;
mod enclosed;
mod error;
mod explore;
mod greedy;
mod history;
mod host;
mod items;
mod key_set;
mod keys;
mod machine;
mod mask;
mod memory;
mod path;
mod patience;
mod program;
mod readers;
mod readings;
mod rehearsal;
mod specials;
mod thread;
mod trie_walk;
mod unique;

pub use characters::NextChars;
pub(crate) use classes::members;
pub use completion::Completion;
pub use constraint::{Constraint, ThreadView};
pub use context::Context;
pub(crate) use context::mixed;
pub use error::{StepError, StepErrorKind, TextPlace};
pub use explore::Exploration;
pub(crate) use host::Host;
pub(crate) use keys::has_key_twice;
pub(crate) use machine::Machine;
pub use memory::Memory;
pub use patience::Patience;
pub(crate) use program::{Asked, Program};
pub use readings::TerminalRun;

//! A grammar, ready for texts: what it is lowered to, with all that it needs of one vocabulary.
//!
//! All texts of a grammar share its [`Program`]. *Invariant:* it never changes. What is worked out late (the
//! lengths of shortest texts, the rests that are white space, the keys that can run out, the trees that were
//! grown ahead) is a function of it alone, and is filled in once.
//!
//! Above it are the masks and the machine, which run it. It knows of neither; of threads, in which both
//! count, it says only what one is ([`Thread`]).

mod blank_rests;
mod class_members;
mod finite_keys;
#[expect(clippy::module_inception, reason = "the room's main type lives in the file of its name")]
mod program;
mod resolved_tokens;
mod scarce_keys;
mod shortest_lengths;
mod thread;
mod token_class;
mod white_space;

pub(crate) use program::Program;
pub(crate) use resolved_tokens::{ResolvedTokens, asks_for_marks};
pub(crate) use scarce_keys::ScarceKeys;
pub(crate) use thread::Thread;
pub(crate) use token_class::{MemberSpelling, ResolvedClass};
pub(crate) use white_space::is_blank;

//! Questions about a text: its shortest completion, its terminals, the characters and bytes that may come
//! next, and where it is in the grammar.
//!
//! *Invariant:* an answer moves nothing, and no mask and no step depends on what was asked.
//!
//! Below it is the session that is asked. Which parts of a text named rules have matched is a question of its
//! own, with a parse of its own: `captures`.

mod completion;
mod next_characters;
mod segmentation;
mod shortest_completion;
mod threads;

pub use completion::Completion;
pub use next_characters::NextChars;
pub use segmentation::TerminalRun;
pub use threads::ThreadView;

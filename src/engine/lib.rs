//! The engine of `domino-decoding`: from the text of a grammar and a vocabulary to the tokens that may
//! follow.
//!
//! It knows nothing of models and of drawing. Programs use it by the library `domino`, which has all that is
//! public here under the same paths; its first page has the words and the map. Modules stand in the order in
//! which data flows, and use only those above them. What has no page is for the packages of this repository
//! alone, and changes without notice.

#![cfg_attr(
    not(test),
    warn(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::todo,
        clippy::unimplemented,
        clippy::print_stdout,
        clippy::print_stderr,
        clippy::cast_possible_truncation
    )
)]

mod automata;
#[doc(hidden)]
pub mod clock;
#[doc(hidden)]
pub mod cores;
#[doc(hidden)]
pub mod gguf;
pub mod ids;
pub mod limits;
#[doc(hidden)]
pub mod special;
#[doc(hidden)]
pub mod split_mix;
pub mod store;
pub mod vocab;

pub mod grammar;

mod scanner;

mod lower;

mod subterminal;

mod parser;

mod program;

mod masks;

mod machine;

mod json_readers;

mod session;

mod questions;

mod captures;

mod compile;

pub mod inspect;

#[cfg(feature = "oracle")]
pub mod oracle;

#[cfg(feature = "oracle")]
#[doc(hidden)]
pub use oracle::lookahead as further;

pub use captures::{Capture, CaptureError, Captures};
pub use compile::{CompiledGrammar, Compiler, TreeProgress};
pub use grammar::{AutomataCache, Grammar, GrammarError, Syntax};
pub use ids::TokenId;
pub use limits::{Budget, Cancel, LimitExceeded, Limits};
pub use lower::{CompileError, CompileErrorKind, Terminals};
pub use machine::{CompilerMemory, Context, Exploration, Memory};
pub use questions::{Completion, NextChars, TerminalRun, ThreadView};
#[doc(hidden)]
pub use session::TextEnd;
pub use session::{Constraint, Patience, StepError, StepErrorKind, TextPlace, ThoughtWatch, TrailingSpace};
pub use subterminal::Lookahead;
pub use vocab::{TokenSet, Vocabulary, VocabularyError};

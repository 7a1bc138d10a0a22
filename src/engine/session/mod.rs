//! The session that users hold: one text, the tokens that may follow, and the way back.
//!
//! A [`Constraint`] is a place on a machine, the readers of its text, and a history. *Invariant:* an error
//! moves nothing, and a rollback leads back to exactly the same place.
//!
//! Below it are the machine, which all sessions of a grammar share, and the readers of JSON, which each
//! session has for itself. Above it is what people ask of a text, and all that generates.

mod constraint;
mod distinct;
mod ending;
mod error;
mod patience;
mod special_tokens;
mod thoughts;

#[doc(hidden)]
pub use constraint::TextEnd;
pub(crate) use constraint::TextPosition;
pub use constraint::{Constraint, TrailingSpace};
pub use error::{StepError, StepErrorKind, TextPlace};
pub use patience::Patience;
pub use thoughts::ThoughtWatch;

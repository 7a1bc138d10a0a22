//! Domino makes a language model write only text of a given grammar and bends the model as little as
//! possible. It follows DOMINO ("Guiding LLMs The Right Way", arXiv 2403.06988).

pub mod ids;
pub mod limits;

pub mod vocab;

pub mod grammar;

mod compile;
mod constraint;
mod lower;
mod parser;
mod scanner;
mod subterminal;

pub mod decode;
pub mod model;

#[cfg(feature = "oracle")]
pub mod oracle;

pub use compile::{CompileError, CompileErrorKind, CompiledGrammar, Compiler, Lookahead};
pub use constraint::{Constraint, StepError, StepErrorKind, ThreadView};
pub use grammar::{Grammar, GrammarError, Syntax};
pub use ids::TokenId;
pub use limits::{LimitExceeded, Limits};
pub use vocab::{TokenSet, Vocabulary, VocabularyError};

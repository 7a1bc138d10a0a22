//! Answers about texts and grammars: shortest completions, captures and warnings.

mod captures;
pub(super) mod completion;
mod warnings;

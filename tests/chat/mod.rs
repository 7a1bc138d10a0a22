//! Chat templates: held against transformers, hostile ones, and the program with them.

mod golden;
mod hostile;
mod model;
#[cfg(feature = "cli")]
mod program;
#[cfg(feature = "cli")]
mod shell;

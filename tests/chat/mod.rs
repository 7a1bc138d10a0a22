//! Chat templates: held against transformers, hostile ones, and the program with them.

mod calls;
mod golden;
mod hostile;
mod model;
mod program;
mod shell;

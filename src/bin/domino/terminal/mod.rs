//! The terminal: what people see and type, standard output and error, Ctrl-C. It knows of no command.

pub(crate) mod describe;
pub(crate) mod excerpt;
pub(crate) mod failure;
pub(crate) mod interrupt;
pub(crate) mod json;
pub(crate) mod log;
pub(crate) mod numbers;
pub(crate) mod progress;
pub(crate) mod stdout;

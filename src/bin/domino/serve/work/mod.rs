//! Runs long work, such as compiling a grammar, on several threads and in fair turns.

pub(crate) mod pool;

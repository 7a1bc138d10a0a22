//! The `domino` program.
fn main() {}

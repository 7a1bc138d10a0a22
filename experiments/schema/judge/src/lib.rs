//! Nothing but tests: see `tests/judge.rs`.

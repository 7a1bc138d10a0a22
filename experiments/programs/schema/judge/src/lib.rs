//! An empty library: the package is its tests, in `tests/judge.rs`.

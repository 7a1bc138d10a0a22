//! Bounds that hold whoever calls: how slow bodies may be, and how much memory they take while they come.

pub(crate) mod bodies;

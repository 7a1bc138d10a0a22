//! Masks are the same however they are made: by lazy or grown trees, by a walk, ahead of time, from a file.

mod counts;
mod explore;
mod lookahead;
pub(crate) mod real;
mod trees;
mod walks;

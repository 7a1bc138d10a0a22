//! Bounds on all requests alike: how slowly their bodies may come, and how much memory these take meanwhile.

pub(crate) mod bodies;

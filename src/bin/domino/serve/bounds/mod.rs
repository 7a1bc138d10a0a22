//! Bounds on all requests alike: how slowly their bodies may come, and how much memory these take meanwhile
//! ([`bodies`]); how many texts there are, and how long they wait for an engine that stands still ([`gate`]).

pub(crate) mod bodies;
pub(crate) mod gate;

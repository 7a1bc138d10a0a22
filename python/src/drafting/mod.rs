//! Drafts: what may come next, by counts and by what is forced.

pub(crate) mod drafts;
pub(crate) mod prior;
pub(crate) mod proposers;

//! Decides who may call: pages and names ([`visitors`]), and callers, told apart by the key that a request
//! has ([`keys`]) or else by its address ([`caller`]).

pub(crate) mod caller;
pub(crate) mod keys;
pub(crate) mod visitors;

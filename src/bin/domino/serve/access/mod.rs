//! Tells callers apart: by the key that a request has ([`keys`]), or else by its address ([`caller`]).

pub(crate) mod caller;
pub(crate) mod keys;

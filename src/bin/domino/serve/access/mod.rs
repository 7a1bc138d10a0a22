//! Who calls: the key that a request has ([`keys`]), or else the address it comes from ([`caller`]).

pub(crate) mod caller;
pub(crate) mod keys;

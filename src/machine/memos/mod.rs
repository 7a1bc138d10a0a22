//! Memos of the machine: what they keep, without how it is found.

pub(super) mod contexts;
pub(super) mod fingerprint;
pub(super) mod refusals;
pub(super) mod walks;

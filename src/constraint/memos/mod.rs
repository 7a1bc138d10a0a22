//! Memos of a program and of its machine: what they keep, without how it is found.

pub(super) mod contexts;
pub(super) mod fingerprint;
pub(super) mod lengths;
pub(super) mod refusals;
pub(super) mod scarce_keys;
pub(super) mod walks;

//! Formats of numbers, and the instructions that multiply them, by their names.

pub(super) mod format;
pub(super) mod instructions;
pub(super) mod kv_format;
pub(super) mod names;

//! Indexes of tokens: by the kinds of their bytes, by their quotes, by the items that they end.

pub(super) mod item_ends;
pub(super) mod kinds;
pub(super) mod quoted;

//! Rows: the lines of JSON that `generate`, `check` and `trace` read with `--batch`, in one format
//! (docs/batch.md).
//!
//! [`row`] is that format. It takes a line apart by [`members`], whose values keep their text. [`keys`] lists
//! the keys and their readers; [`grammar`] has a row's keys about its grammar, and [`carried`] the columns
//! that go from a row into its answer. [`stream`] has the lines of an input, and [`kept`] is an LRU cache for
//! compiled grammars.

mod carried;
mod drawing;
mod grammar;
mod kept;
mod keys;
pub(crate) mod members;
mod row;
mod stream;

pub(crate) use self::{
    carried::{Carried, key_of},
    grammar::{RowGrammar, WantedGrammar},
    kept::LastUsed,
    keys::RowReader,
    members::ObjectMembers,
    row::{Row, RowReading},
    stream::{Lines, NextLine, SeenIds, survey},
};

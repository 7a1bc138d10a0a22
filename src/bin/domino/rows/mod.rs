//! Rows: the lines of JSON that `generate`, `check` and `trace` read with `--batch`, in one format
//! (docs/batch.md).
//!
//! [`row`] is that format. It takes a line apart by [`members`], whose values keep their text; [`keys`] lists
//! which keys there are and who reads them; [`grammar`] is what a row says of its grammar, and [`carried`]
//! what goes from a row into its answer. [`stream`] has the lines of an input, and [`kept`] the compiled
//! grammars that were used last.

mod carried;
mod grammar;
mod kept;
mod keys;
pub(crate) mod members;
mod row;
mod stream;

pub(crate) use self::{
    carried::{Carried, key_of},
    grammar::{UsualGrammar, WantedGrammar},
    kept::LastUsed,
    keys::RowReader,
    members::ObjectMembers,
    row::{Row, RowReading},
    stream::{Lines, NextLine, SeenIds, survey},
};

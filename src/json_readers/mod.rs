//! Readers of JSON beside the parser: what no grammar can say, that no key of an object and no item of an
//! array comes twice.
//!
//! If parser sets knew which keys and items have come, every mask would depend on them. So each text has
//! readers of its own, which read it once more, say which tokens would repeat something, and whether what is
//! at hand can only become a repeat (a dead end). *Invariant:* a reader's answer follows from the text so
//! far; stepping readers and undoing the steps leads back to where they were.
//!
//! Below them is the machine: searches for dead ends step it. Above them are the sessions, which take from
//! masks what readers refuse.

mod array_items;
mod item_search;
mod key_set;
mod object_keys;
mod readers;
mod repeat_candidates;

pub(crate) use array_items::ArrayItems;
pub(crate) use item_search::SearchState;
pub(crate) use object_keys::{KeyChange, KeyPrefix, ObjectKeys, has_key_twice};
pub(crate) use readers::{JsonReaders, Undo, UndoLog};

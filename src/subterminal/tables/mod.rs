//! Tables of terminals: their rows, made on demand and kept for all grammars of a vocabulary.

mod ahead;
mod strings;
mod table;
mod terminal_entry;
mod vocabulary_tables;

pub(crate) use ahead::make_ahead;
pub(super) use table::TableRow;
pub(crate) use table::TerminalTable;
pub(super) use terminal_entry::TerminalEntry;
pub(crate) use vocabulary_tables::{TableMemory, VocabularyTables};

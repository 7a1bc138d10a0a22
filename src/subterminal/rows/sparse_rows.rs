//! Keeps rows of states that are made on demand: few of very many, so a hash map instead of a table.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashbrown::HashMap;

use super::row::TokenRow;
use crate::limits::{LimitExceeded, Work};

/// Work of making a row, and number of trie nodes per further unit. All rows of a text's substrings together
/// take its length times that of the longest token, so the budget, which is for hostile grammars, is not
/// about them.
const ROW_WORK: usize = 80;
const NODES: usize = 4;

/// Rows by state.
#[derive(Debug, Default)]
pub(in crate::subterminal) struct SparseRows(Mutex<HashMap<u32, Arc<TokenRow>>>);

impl SparseRows {
    /// Returns the row of `state`. `make` makes it, and counts the trie nodes that it looked at. The row is
    /// kept even if that was too much work.
    pub(in crate::subterminal) fn row(
        &self,
        state: u32,
        make: impl FnOnce() -> (Arc<TokenRow>, usize),
        work: &mut Work,
    ) -> Result<Arc<TokenRow>, LimitExceeded> {
        if let Some(row) = self.rows().get(&state) {
            return Ok(Arc::clone(row));
        }
        let (reach, walked) = make();
        self.rows().insert(state, Arc::clone(&reach));
        work.spend(ROW_WORK + walked / NODES + reach.work())?;
        Ok(reach)
    }

    /// Memory without the rows themselves, in bytes.
    pub(in crate::subterminal) fn bytes(&self) -> usize {
        self.rows().allocation_size()
    }

    fn rows(&self) -> MutexGuard<'_, HashMap<u32, Arc<TokenRow>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

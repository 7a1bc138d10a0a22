//! A thread: one way to read a text so far.

use crate::ids::{ScanStateId, SetId};

/// A terminal that was started in the parser set `set`, and where its scanner is. The state of the scanner
/// names the terminal, so that is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Thread {
    pub(crate) set: SetId,
    pub(crate) scan: ScanStateId,
}

//! Clients as the engines know them.

/// Name of the key that a client has sent. What one client wrote is not to be guessed from the times, counts
/// and caches that another one sees, so these are apart for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Client(pub(crate) u64);

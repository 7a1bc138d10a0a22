//! Clients as the engines know them.

/// Number of the client that sent a request. Learnt counts and cached prefixes are kept apart by client, so
/// that no client can infer another's texts from times or from hits. 0 is the server itself and,
/// for what all clients share, all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Client(pub(crate) u64);

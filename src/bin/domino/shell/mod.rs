//! What shells and their users are given: completions of the command line, and man pages.

pub(crate) mod completions;
pub(crate) mod man;

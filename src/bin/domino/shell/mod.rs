//! Help for shells and their users: completions of the command line, and man pages.

pub(crate) mod completions;
pub(crate) mod man;

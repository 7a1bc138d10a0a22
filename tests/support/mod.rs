//! Helpers of tests; none is a test.

// Membership by the engine and by the oracle.
pub(crate) mod decider;
// Models that wrap another one.
pub(crate) mod delegate;
// Pages, and the blocks in them.
#[cfg(feature = "cli")]
pub(crate) mod pages;
// The program as a shell runs it.
#[cfg(feature = "cli")]
pub(crate) mod program;
// A small model of random weights.
#[cfg(feature = "cli")]
pub(crate) mod random_model;
// Test data outside of the repository.
pub(crate) mod shared_data;

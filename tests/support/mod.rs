//! Helpers of tests; none is a test.

// Membership by the engine and by the oracle.
pub(crate) mod decider;
// Models that wrap another one.
pub(crate) mod delegate;
// Pages, and the blocks in them.
pub(crate) mod pages;
// The program as a shell runs it.
pub(crate) mod program;
// A small model of random weights.
pub(crate) mod random_model;
// The data of records.
pub(crate) mod records;
// Test data outside of the repository.
pub(crate) mod shared_data;

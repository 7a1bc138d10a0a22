//! Sessions.

// Sessions of one grammar on many threads.
mod sessions;

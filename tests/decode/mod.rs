//! Sampling and the decode loop.

mod draw;
mod options;
mod run;

//! Sampling and the decode loop.

mod draw;
mod run;

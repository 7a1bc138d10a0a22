//! Sampling and the decode loop.

mod batch;
mod draw;
mod options;
mod run;

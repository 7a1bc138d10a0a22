//! Sampling and the decode loop.

mod batch;
mod draw;
mod kept;
mod options;
mod replay;
mod run;

//! Sampling and the decode loop.

mod batch;
mod draw;
#[cfg(not(packaged))]
mod kept;
mod options;
#[cfg(not(packaged))]
mod replay;
mod run;

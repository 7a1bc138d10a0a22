//! mistral.rs as an engine, for every model that it loads.

mod drafting;
mod load;
mod recorder;
mod writer;

pub(super) use self::load::load;

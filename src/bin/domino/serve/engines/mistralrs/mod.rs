//! mistral.rs as an engine, for every model that it loads.

#[cfg(feature = "mistralrs-speculation")]
mod drafting;
mod load;
mod recorder;
#[cfg(not(feature = "mistralrs-speculation"))]
mod undrafted;
mod writer;

pub(super) use self::load::load;

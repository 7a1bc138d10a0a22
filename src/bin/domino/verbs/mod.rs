//! Commands: a file or a folder each, with its own flags, what they mean, and how it runs. No command knows
//! another. (`serve` is a folder beside this one.) Three that only print share a file, [`about`].

pub(crate) mod about;
pub(crate) mod cache;
pub(crate) mod check;
pub(crate) mod compile;
#[cfg(feature = "experiments")]
pub(crate) mod experiment;
#[cfg(not(feature = "experiments"))]
#[path = "experiment/absent.rs"]
pub(crate) mod experiment;
pub(crate) mod explain;
pub(crate) mod generate;
pub(crate) mod inspect;
pub(crate) mod learn;
pub(crate) mod mask;
pub(crate) mod model;

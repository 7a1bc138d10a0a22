//! Commands: a file or a folder each, with its own flags, what they mean, and how it runs. No command knows
//! another. (`serve` is a folder beside this one.)

pub(crate) mod bench_model;
pub(crate) mod cache;
pub(crate) mod check;
pub(crate) mod compile;
pub(crate) mod completions;
#[cfg(feature = "experiments")]
pub(crate) mod experiment;
#[cfg(not(feature = "experiments"))]
#[path = "experiment/absent.rs"]
pub(crate) mod experiment;
pub(crate) mod explain;
pub(crate) mod generate;
pub(crate) mod grammars;
pub(crate) mod inspect;
pub(crate) mod learn;
pub(crate) mod man;
pub(crate) mod mask;
pub(crate) mod model;
pub(crate) mod retokenize;
pub(crate) mod trace;

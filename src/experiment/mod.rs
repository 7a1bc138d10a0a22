//! Experiments: a grid of runs by a definition, one record a run, and their summary.
//!
//! A [`Definition`] is read from TOML; a [`Plan`] is the order of its runs, or of one shard's; [`run()`]
//! makes them, by [methods] that take turns, and appends a [`Row`] each to [`Records`]. A run that is killed
//! resumes where it was; tables and figures are made from rows alone.

mod bench;
mod definition;
pub mod enumeration;
mod error;
mod header;
mod measures;
pub mod methods;
pub mod outputs;
pub mod passes;
mod plan;
mod records;
mod row;
mod run;
pub mod statistics;
pub mod summary;

pub use definition::{
    AnswerPlace, DEFAULT_MODEL, Definition, DraftSource, ExternalProgram, Functions, GrammarTexts,
    MethodChoice, Prompt, ShippedGrammars, Task, Turns, Variant, WarmUpPrompts,
};
pub use error::ExperimentError;
pub use header::{Header, Machine, ModelRecord, date, model_hash};
pub use plan::{Plan, Shard, ShardError};
pub use records::{Records, merge, read, read_header, write_file};
pub use row::{End, K, Row, RunId, UNCONSTRAINED, fill_reproduced};
pub use run::{Ended, Loaded, ModelPart, Others, Watch, run, run_with};

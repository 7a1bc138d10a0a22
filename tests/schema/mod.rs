//! JSON Schema, held against suites and against hostile input. `experiments/programs/schema/judge` holds
//! random schemas against an independent judge.

mod cases;
mod choices;
mod conditions;
mod deciding;
mod drafts;
mod hostile;
mod json_texts;
mod numbers;
mod report;
mod suite;
mod suites;

use deciding::{Schema, checking};

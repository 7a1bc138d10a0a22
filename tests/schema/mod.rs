//! JSON Schema, held against suites and against hostile input. `experiments/schema/judge` holds random schemas against an
//! independent judge.

mod cases;
mod deciding;
mod hostile;
mod suite;
mod suites;

use deciding::{Schema, checking};

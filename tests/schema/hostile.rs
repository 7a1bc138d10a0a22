//! Hostile schemas: an answer in bounded time, never a panic.

mod schemas;

use std::time::{Duration, Instant};

use domino::{Limits, grammar::json_schema::SchemaOptions};

use schemas::Named;

/// Longest time of an answer, also in a build that is not optimised.
const PATIENCE: Duration = Duration::from_secs(20);

/// Reads schemas; each answer, whatever it is, must come within [`PATIENCE`].
fn answers(schemas: Vec<Named>) {
    for (name, schema) in schemas {
        for lenient in [false, true] {
            let start = Instant::now();
            let result = SchemaOptions::default().with_lenient(lenient).parse(&schema, &Limits::default());
            let said = result.map_or_else(|error| error.to_string(), |_| "read".to_owned());
            assert!(start.elapsed() < PATIENCE, "{name}: {:?}: {said}", start.elapsed());
        }
    }
}

#[test]
fn towers_of_keywords_end_in_time() {
    answers(schemas::towers());
}

#[test]
fn products_of_alternatives_end_in_time() {
    answers(schemas::products());
}

#[test]
fn loops_of_references_end_in_time() {
    answers(schemas::references());
}

#[test]
fn hostile_numbers_and_counts_end_in_time() {
    answers(schemas::counts());
}

#[test]
fn large_schemas_end_in_time() {
    answers(schemas::large());
}

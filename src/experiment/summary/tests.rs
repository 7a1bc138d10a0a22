//! Lines of made-up rows, and how they are shown.

use super::*;
use crate::experiment::row::{Row, UNCONSTRAINED, tests::example};

fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for prompt in 0..4 {
        for seed in 0..3 {
            let mut masks = example("masks", prompt, seed);
            // Twice as fast.
            masks.seconds = 0.4;
            masks.well_formed = seed > 0;
            rows.extend([masks, example(UNCONSTRAINED, prompt, seed)]);
        }
    }
    rows
}

#[test]
fn summary_lines_hold_the_measures_of_their_rows() {
    let lines = summarise(&rows());
    let names: Vec<&str> = lines.iter().map(|line| line.method.as_str()).collect();
    assert_eq!(names, [UNCONSTRAINED, "masks"]);
    let masks = &lines[1];
    assert_eq!((masks.n, masks.prompts), (12, 4));
    assert!((masks.throughput.unwrap().value - 2.0).abs() < 1e-9);
    assert!((masks.tokens_per_second.unwrap().value - 20.0).abs() < 1e-9);
    assert!((masks.well_formed.unwrap().value - 2.0 / 3.0).abs() < 1e-12);
    assert!((masks.prefix.unwrap().value - 1.0).abs() < 1e-12);
    assert!((masks.perplexity.unwrap().value - 0.5_f64.exp()).abs() < 1e-12);
    assert!((masks.acceptance.unwrap().value - 0.5).abs() < 1e-12);
    assert_eq!((masks.correct, masks.redraws, masks.interventions), (None, None, None));
    assert!((lines[0].throughput.unwrap().value - 1.0).abs() < 1e-12 && lines[0].mask_milliseconds.is_none());
}

#[test]
fn tables_have_one_line_per_summary_line() {
    let lines = summarise(&rows());
    let table = markdown(&lines);
    assert!(
        table.contains("| json | masks | infinite | - | - | 1 | 12 | 4 | 2.00 (2.00 to 2.00) |"),
        "{table}"
    );
    assert!(!table.contains("redraws"), "{table}");
    let heads = table.lines().nth(2).unwrap().matches('|').count();
    assert!(
        table.lines().skip(2).filter(|line| !line.is_empty()).all(|line| line.matches('|').count() == heads)
    );
    let csv = csv(&lines);
    let commas: Vec<usize> = csv.lines().map(|line| line.matches(',').count()).collect();
    assert_eq!(commas, [commas[0]; 3], "{csv}");
    let json = serde_json::to_string(&lines).unwrap();
    assert_eq!(serde_json::from_str::<Vec<Line>>(&json).unwrap(), lines);
}

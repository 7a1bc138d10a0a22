//! Lines of made-up rows, and how they are shown.

use super::*;
use crate::experiment::row::{Row, UNCONSTRAINED, tests::example};

fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for prompt in 0..5 {
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
    assert_eq!((masks.n, masks.prompts), (15, 5));
    assert!((masks.throughput.unwrap().value - 2.0).abs() < 1e-9);
    assert!((masks.tokens_per_second.unwrap().value - 20.0).abs() < 1e-9);
    assert!((masks.well_formed.unwrap().value - 2.0 / 3.0).abs() < 1e-12);
    assert!((masks.prefix.unwrap().value - 1.0).abs() < 1e-12);
    assert!((masks.perplexity.unwrap().value - 0.5_f64.exp()).abs() < 1e-12);
    assert!((masks.acceptance.unwrap().value - 0.5).abs() < 1e-12);
    assert_eq!((masks.correct, masks.redraws, masks.interventions), (None, None, None));
    assert!((lines[0].throughput.unwrap().value - 1.0).abs() < 1e-12 && lines[0].mask_milliseconds.is_none());
}

/// On a terminal a line has six columns at most, and says the settings in which lines differ.
#[test]
fn a_brief_table_has_six_columns() {
    let mut all = rows();
    for row in rows().into_iter().filter(|row| row.run.method == "masks") {
        let mut other = row;
        other.run.k = Some(crate::experiment::K::Terminals(1));
        all.push(other);
    }
    let table = brief(&summarise(&all));
    let lines: Vec<&str> = table.lines().skip(2).filter(|line| !line.is_empty()).collect();
    assert!(lines.iter().all(|line| line.matches('|').count() == 7), "{table}");
    let wide: Vec<usize> = lines.iter().map(|line| line.chars().count()).collect();
    assert!(wide.iter().all(|width| *width == wide[0] && *width <= 110), "{table}");
    assert!(table.contains("| masks, k 1 ") && table.contains("| masks, k infinite "), "{table}");
    assert!(table.contains("| unconstrained "), "{table}");
}

#[test]
fn tables_have_one_line_per_summary_line() {
    let lines = summarise(&rows());
    let table = markdown(&lines);
    assert!(
        table.contains("| json | masks | infinite | - | - | 1 | 15 | 5 | 2.00 (2.00 to 2.00) |"),
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

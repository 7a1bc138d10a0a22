//! Lines of made-up rows, and how they are shown.

use super::*;
use crate::experiment::row::{Row, UNCONSTRAINED, tests::example};
use crate::ids::as_f64;

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

/// Texts with thoughts are lines of their own, compared with masks that think as long.
#[test]
fn thoughts_are_a_setting_of_a_line() {
    let mut all = rows();
    for think in [4, 8] {
        for method in ["masks", "ours"] {
            let mut row = example(method, 0, 0);
            (row.run.think, row.thought_tokens, row.answer_at) = (Some(think), Some(1), Some(1));
            row.seconds = row.first_seconds + if method == "ours" { 0.1 } else { 0.05 * as_f64(think) };
            all.push(row);
        }
    }
    let lines = summarise(&all);
    let names: Vec<String> = lines.iter().map(Line::method_name).collect();
    let expected = ["masks, think 4", "ours, think 4", "masks, think 8", "ours, think 8"];
    assert_eq!(names, [&[UNCONSTRAINED, "masks"][..], &expected].concat());
    let gains: Vec<f64> = lines.iter().filter_map(|line| Some(line.over_masks?.value)).collect();
    assert!(gains.len() == 2 && (gains[0] - 2.0).abs() < 1e-9 && (gains[1] - 4.0).abs() < 1e-9, "{gains:?}");
    // Two tokens and one byte of the answer.
    assert!((lines[2].perplexity.unwrap().value - 0.75_f64.exp()).abs() < 1e-12);
    assert!((lines[2].forced.unwrap().value - 1.0).abs() < 1e-12);
    let (table, short, csv) = (markdown(&lines), brief(&lines), csv(&lines));
    assert!(table.contains("| prompts | think |") && table.contains("| 1 | 4 |"), "{table}");
    assert!(short.contains("| masks, think 4 ") && short.contains("| masks "), "{short}");
    all.retain(|row| row.run.think.is_none_or(|think| think == 4));
    assert!(brief(&summarise(&all)).contains("| ours, think 4 "));
    assert!(csv.starts_with("model,grammar,method,k,s,threshold,temperature,n,prompts,think,"), "{csv}");
    assert!(!markdown(&summarise(&rows())).contains("think"));
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

//! The README's table of evidence: a grammar a row, and the figures of its record.

use crate::support::pages::read;

/// Rows of the first table after a heading, by their cells, without the row of the head.
fn table(page: &str, heading: &str) -> Vec<Vec<String>> {
    let (_, section) = page.split_once(heading).unwrap_or_else(|| panic!("no {heading}"));
    let lines = section.lines().skip_while(|line| !line.starts_with('|'));
    let rows = lines.take_while(|line| line.starts_with('|')).filter(|line| !line.starts_with("|---"));
    rows.map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().replace('*', "")).collect())
        .collect()
}

/// The grammars of the README's table as records name them.
const GRAMMARS: [(&str, &str); 5] =
    [("JSON", "json"), ("GSM8K", "gsm8k"), ("XML", "xml_person"), ("template", "rpg"), ("C subset", "c")];

/// The record that the table is taken from.
const RECORD: &str = "experiments/records/2026-11-27-qwen_table3/tables.md";

#[test]
fn the_table_has_the_figures_of_its_record() {
    let record = table(&read(RECORD), "## Throughput by grammar and method");
    let of = |grammar: &str, method: &str, column: &str| {
        let column = record[0].iter().position(|name| name == column).expect("a column");
        let row = record.iter().find(|row| row[0] == grammar && row[1] == method).expect("a row");
        row[column].replace(" †", "")
    };
    let rate = |grammar: &str, method: &str| {
        let cell = of(grammar, method, "tokens/s");
        cell.split(' ').next().map(str::to_owned).expect("a number")
    };
    let shown = table(&read("README.md"), "## What it gains");
    assert_eq!(
        shown[0],
        ["grammar", "no grammar", "masks", "paper's drafts", "Domino", "over no grammar", "over masks"]
    );
    assert_eq!(shown.len(), 1 + GRAMMARS.len());
    for (row, (name, grammar)) in shown[1..].iter().zip(GRAMMARS) {
        let mut expected = vec![name.to_owned()];
        expected.extend(["unconstrained", "masks", "paper", "ours"].map(|method| rate(grammar, method)));
        expected.extend(["over unconstrained", "over masks"].map(|column| of(grammar, "ours", column)));
        let row: Vec<String> = row.iter().map(|cell| cell.replace(" †", "")).collect();
        assert_eq!(row, expected, "{RECORD}");
    }
}

/// The README shows a text and a picture of it, so that a reader sees an output.
#[test]
fn a_text_and_its_picture_are_shown() {
    let readme = read("README.md");
    assert!(readme.contains("\n```json\n") && readme.contains("](docs/explain.png)"));
}

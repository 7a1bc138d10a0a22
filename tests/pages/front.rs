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

/// The rates of a method in a record's table, without decimals: the least and the largest.
fn rates(record: &[Vec<String>], method: &str) -> (u32, u32) {
    let column = record[0].iter().position(|name| name == "tokens/s").expect("a column");
    let rates = record.iter().filter(|row| row[1] == method).map(|row| {
        let rate = row[column].split(' ').next().expect("a number");
        rate.parse::<u32>().expect("a whole number")
    });
    (rates.clone().min().expect("a row"), rates.max().expect("a row"))
}

#[test]
fn the_text_has_the_figures_of_llama_cpps_record() {
    let record = read("experiments/records/2026-11-27-real_llama_cpp/tables.md");
    let record = table(&record, "## Throughput by grammar and method");
    let (theirs, ours) = (rates(&record, "llama.cpp-gbnf"), rates(&record, "ours"));
    let expected = format!(
        "llama.cpp with its grammar makes {} to {} of the same file, where Domino made {} to {}.",
        theirs.0, theirs.1, ours.0, ours.1
    );
    let readme = read("README.md").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(readme.contains(&expected), "{expected}");
}

/// Wrong masks of each engine, and all masks of the first, summed over cells such as `0, 10, 0 of 1043`.
fn wrong_masks(rows: &[Vec<String>]) -> (Vec<u64>, u64) {
    let count = |text: &str| text.parse::<u64>().expect("a count");
    let (mut wrong, mut all) = (vec![0; 3], 0);
    for row in rows {
        let cell = row.last().expect("a cell");
        let most = cell.split([',', ' ']).filter_map(|word| word.parse::<u64>().ok()).max();
        all += most.expect("a number of masks");
        for (sum, part) in wrong.iter_mut().zip(cell.split(", ")) {
            *sum += count(part.split(' ').next().unwrap_or_default());
        }
    }
    (wrong, all)
}

#[test]
fn the_text_has_the_figures_of_the_page_on_cost() {
    let page = read("docs/performance.md");
    let (wrong, all) = wrong_masks(&table(&page, "## Masks")[1..]);
    assert_eq!(wrong[0], 0, "all masks are right");
    let schemas = table(&page, "## JSON Schemas");
    let of = |name: &str, column: usize| {
        let row = schemas.iter().find(|row| row[0].starts_with(name)).expect("an engine");
        row[column].split(',').next().unwrap_or_default().to_owned()
    };
    let thousands = format!("{},{:03}", all / 1000, all % 1000);
    let expected = format!(
        "all of {thousands} masks and {} real schemas are right (llguidance: {} wrong, {} right), mask and \
         commit take {} us ({};",
        of("Domino", 1),
        wrong[1],
        of("llguidance", 1),
        of("Domino", 5),
        of("llguidance", 5)
    );
    let readme = read("README.md").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(readme.contains(&expected), "{expected}");
    assert!(schemas[0][1].ends_with(&of("Domino", 1)), "all schemas are right");
}

/// The README shows a text and a picture of it, so that a reader sees an output.
#[test]
fn the_readme_shows_a_text_and_its_picture() {
    let readme = read("README.md");
    assert!(readme.contains("\n```json\n") && readme.contains("](docs/explain.png)"));
}

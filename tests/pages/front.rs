//! The README's table of evidence: a task a row, as the laboratory makes it of the rows of its record.

use domino::experiment::{
    self,
    outputs::{Beside, Outputs, Table},
    summary::summarise,
};

use crate::support::{pages::read, records};

/// Rows of the first table after a heading, by their cells, without the row of the head.
fn table(page: &str, heading: &str) -> Vec<Vec<String>> {
    let (_, section) = page.split_once(heading).unwrap_or_else(|| panic!("no {heading}"));
    let lines = section.lines().skip_while(|line| !line.starts_with('|'));
    let rows = lines.take_while(|line| line.starts_with('|')).filter(|line| !line.starts_with("|---"));
    rows.map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().replace('*', "")).collect())
        .collect()
}

/// The rows of the README's table: the task, the record that it is taken from, and its grammar there.
const TASKS: [(&str, &str, &str); 4] = [
    ("GSM8K", "experiments/records/2026-11-30-qwen_same", "gsm8k"),
    ("entities", "experiments/records/2026-11-30-qwen_same", "ner"),
    ("entities, Gemma 3", "experiments/records/2026-11-30-gemma_same", "ner"),
    ("entities, SmolLM2", "experiments/records/2026-11-30-smollm2_same", "ner"),
];

/// A row of the table, from the record's table of the texts that are the same with and without the grammar:
/// comparing other texts would compare their lengths and their words too.
fn row_of(name: &str, grammar: &str, same: &Table) -> Vec<String> {
    let at = |head: &str| same.head.iter().position(|found| found == head).expect(head);
    let row = same.rows.iter().find(|row| row[at("grammar")].words() == grammar).expect("a row");
    let words = |head: &str| row[at(head)].words();
    // Intervals are of what is compared.
    let plain = |head: &str| words(head).split(" (").next().unwrap_or_default().to_owned();
    let mut cells = vec![name.to_owned(), words("texts")];
    cells.extend(["no grammar", "masks", "paper", "ours"].map(plain));
    cells.extend(["over no grammar", "over masks"].map(words));
    cells.push(plain("tokens/pass"));
    cells
}

#[test]
fn the_table_is_computed_from_the_rows_of_its_record() {
    let shown = table(&read("README.md"), "## What it gains");
    assert!(shown.len() == 1 + TASKS.len() && TASKS.len() <= 5);
    assert_eq!(shown[0][..2], ["task", "texts"]);
    assert_eq!(shown[0][2..6], ["no grammar", "masks", "paper's drafts", "Domino"]);
    assert_eq!(shown[0][6..], ["over no grammar", "over masks", "tokens a pass"]);
    for (row, (name, record, grammar)) in shown[1..].iter().zip(TASKS) {
        let Some(data) = records::data(record.as_ref()) else { return };
        let (header, rows) = experiment::read(data.path()).expect("a record");
        let outputs = Outputs::new(&header, &rows, &summarise(&rows), &Beside::default());
        let same = outputs.tables.iter().find(|table| table.id == "same-texts").expect("the same texts");
        assert_eq!(row, &row_of(name, grammar, same), "{record}");
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
    let record = read("experiments/records/2026-11-28-real_llama_cpp_smollm2/tables.md");
    assert!(record.contains("\nRuns: 200 runs, all of the definition,"), "a whole record");
    let record = table(&record, "## Throughput by grammar and method");
    let (theirs, ours) = (rates(&record, "llama.cpp-gbnf"), rates(&record, "ours"));
    let expected = format!(
        "Of SmolLM2-135M-Instruct llama.cpp with its grammar makes {} to {} tokens a second, and Domino \
         {} to {}, of other texts",
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
        "All of {thousands} masks and {} real schemas are right (llguidance: {} masks wrong, {} schemas \
         right). A mask and its commit take {} us (llguidance: {} us;",
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

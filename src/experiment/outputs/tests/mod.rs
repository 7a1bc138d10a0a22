//! Tables and figures of made-up rows.

use super::{
    super::{
        End, Header, K, ModelRecord, Row, RunId, UNCONSTRAINED, enumeration::Sequence, row::tests::example,
        summary::summarise,
    },
    *,
};

mod baseline;
mod evidence;

const NASTY: &str = "<script>\"&";

/// Creates runs of two grammars: unconstrained, masks at two lookaheads, and drafts of three lengths at both.
fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for (grammar, pace) in [("json", 0.2), ("gsm8k", 0.1)] {
        for prompt in 0..3 {
            let row = |method: &str, k: Option<K>, s: Option<usize>, seconds: f64| {
                let mut row = example(method, prompt, 0);
                row.run.grammar = grammar.to_owned();
                (row.run.k, row.run.s) = (k, s);
                row.run.threshold = s.map(|_| 0.5);
                row.seconds = row.first_seconds + seconds;
                row.correct = Some(prompt > 0);
                row
            };
            rows.push(row(UNCONSTRAINED, None, None, pace));
            for k in [K::Terminals(1), K::Infinite] {
                let slow = if k == K::Infinite { 1.0 } else { 2.0 };
                rows.push(row("masks", Some(k), None, slow * pace));
                for s in [1_u8, 4, 8] {
                    // Four tokens are best.
                    let gain = 1.0 + 0.1 * f64::from(4 - s.abs_diff(4));
                    rows.push(row("paper", Some(k), Some(s.into()), slow * pace / gain));
                }
            }
        }
    }
    rows
}

fn header(name: &str) -> Header {
    let mut header: Header = serde_json::from_value(serde_json::json!({
        "format": 1, "definition": { "name": name, "about": format!("About {name}") }, "definition_hash": "",
        "shard": null, "command": ["domino", "experiment"], "version": "0", "commit": null, "models": [],
        "machines": [{ "cores": 2, "processor": "some", "system": "linux" }], "begun": "2026-01-02",
    }))
    .unwrap();
    header.models = vec![ModelRecord { name: name.to_owned(), hash: "0123456789abcdef0123".to_owned() }];
    header
}

fn outputs(rows: &[Row]) -> Outputs {
    Outputs::new(&header("made-up"), rows, &summarise(rows), &Beside::default())
}

fn table<'a>(outputs: &'a Outputs, id: &str) -> &'a Table {
    outputs.tables.iter().find(|table| table.id == id).unwrap_or_else(|| panic!("no {id}"))
}

/// Returns the estimate in a line that begins with these cells, in the column of this head.
fn estimate(table: &Table, line: &[&str], head: &str) -> f64 {
    let column = table.head.iter().position(|found| found == head).expect(head);
    let row = table.rows.iter().find(|row| row.iter().zip(line).all(|(cell, text)| cell.words() == *text));
    match row.map(|row| row[column].plain()) {
        Some(Cell::Estimate(estimate, _)) => estimate.value,
        other => panic!("{line:?}: {other:?}"),
    }
}

#[test]
fn tables_are_those_of_the_paper() {
    let found = outputs(&rows());
    let ids: Vec<&str> = found.tables.iter().map(|table| table.id.as_str()).collect();
    let expected = [
        "texts",
        "throughput",
        "paper-throughput",
        "paper-texts",
        "lookahead",
        "draft-length",
        "k-by-s-1",
        "acceptance",
        "coupling",
        "retokenized",
    ];
    assert_eq!(ids, expected);
    for table in &found.tables {
        assert!(
            !table.rows.is_empty() && table.rows.iter().all(|row| row.len() == table.head.len()),
            "{}",
            table.id
        );
    }
    let close = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found} {expected}");
    close(estimate(table(&found, "retokenized"), &["json", "masks"], "lost"), 0.25);
    // The fastest of the lengths at the largest k.
    let texts = table(&found, "texts");
    close(estimate(texts, &["json", "paper", "infinite", "4", "0.5", "3"], "over unconstrained"), 1.05);
    close(estimate(texts, &["json", "paper", "infinite", "4", "0.5", "3"], "over masks"), 1.4);
    close(estimate(texts, &["gsm8k", "masks", "infinite"], "accuracy"), 2.0 / 3.0);
    // By k, below the unconstrained texts.
    let by_k = table(&found, "lookahead");
    close(estimate(by_k, &["json", "masks", "1"], "over unconstrained"), 0.375);
    assert_eq!(by_k.rows.len(), 2 * (1 + 2 + 2));
    close(estimate(by_k, &["json", UNCONSTRAINED], "accuracy"), 2.0 / 3.0);
    // By s, below what there is to compare with, in tokens a second too.
    let by_s = table(&found, "draft-length");
    assert_eq!(by_s.rows.len(), 2 * (2 + 6));
    close(estimate(by_s, &["gsm8k", "paper", "1", "8", "0.5"], "over unconstrained"), 0.75);
    close(estimate(by_s, &["gsm8k", "masks", "infinite"], "tokens/s"), 2.0 / 0.1);
    let grid = table(&found, "k-by-s-1");
    assert_eq!(grid.head[3..], ["n", "s = 1", "s = 4", "s = 8"]);
    close(estimate(grid, &["json", "1", "0.5"], "s = 4"), 0.525);
    close(estimate(grid, &["json", "infinite", "0.5"], "s = 1"), 0.825);
}

/// In a language of two sequences, texts that are cut are none of them, and prompts count alike.
#[test]
fn distances_to_the_distribution_are_means_over_prompts() {
    let mut all = rows();
    all.retain(|row| row.run.grammar == "json" && row.run.prompt < 2);
    for row in &mut all {
        row.tokens = vec![1, 2];
        row.finish = if row.run.method == UNCONSTRAINED { End::Length } else { End::Stop };
    }
    let distribution = |prompt, first: f64| {
        let sequence =
            |tokens: &[u32], conditional| Sequence { tokens: tokens.to_vec(), conditional, masked: 0.5 };
        let RunId { model, grammar, temperature, .. } = all[0].run.clone();
        let sequences = vec![sequence(&[1, 2], first), sequence(&[3], 1.0 - first)];
        Distribution { model, grammar, prompt, temperature, sequences }
    };
    let distributions = vec![distribution(0, 0.75), distribution(1, 0.25)];
    let beside = Beside { distributions, ..Beside::default() };
    let found = Outputs::new(&header("made-up"), &all, &summarise(&all), &beside);
    let shown = table(&found, "distortion");
    let close = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found} {expected}");
    close(estimate(shown, &["json", "masks", "infinite"], "TV of texts"), 0.5);
    close(estimate(shown, &["json", UNCONSTRAINED], "TV of texts"), 1.0);
    let column = |head: &str| shown.head.iter().position(|found| found == head).unwrap();
    for row in &shown.rows {
        // One draw of probability 3/4 is off by 2 * 3/4 * 1/4 on average, so is its complement.
        assert_eq!(row[column("TV of exact draws")], Cell::Number(0.375, 3));
        assert_eq!(row[column("TV of masks")], Cell::Number(0.25, 3));
    }
    assert!(outputs(&all).tables.iter().all(|table| table.id != "distortion"));
}

#[test]
fn drafts_are_shown_by_prior_and_beside_maximal_coupling() {
    let mut all = rows();
    for (texts, accepted) in [(10, 2), (1, 1)] {
        let mut learnt = rows();
        learnt.retain(|row| row.run.method == "paper");
        for row in &mut learnt {
            (row.run.warm_ups, row.accepted) = (Some(texts), accepted);
        }
        all.extend(learnt);
    }
    let curve = PassCurve { model: "small".to_owned(), context: 8, repeats: 3, seconds: vec![0.002, 0.003] };
    let beside = Beside { passes: vec![curve], ..Beside::default() };
    let found = Outputs::new(&header("made-up"), &all, &summarise(&all), &beside);
    let by_prior = table(&found, "acceptance-by-prior");
    let shown: Vec<(String, String)> =
        by_prior.rows.iter().map(|row| (row[6].words(), row[7].words()[..4].to_owned())).collect();
    let expected = [("1", "0.50"), ("10", "1.00")].map(|(texts, share)| (texts.to_owned(), share.to_owned()));
    assert_eq!(shown, [expected.clone(), expected].concat());
    let coupling = table(&found, "coupling");
    assert!(
        (estimate(coupling, &["json", "paper", "infinite", "4", "0.5", "3", "10"], "1 - TV") - 0.8).abs()
            < 1e-9
    );
    let passes = table(&found, "passes");
    assert_eq!(passes.rows[1].iter().map(Cell::words).collect::<Vec<_>>(), ["small", "2", "3.000", "1.50"]);
    for id in ["passes", "acceptance-by-prior"] {
        let figure = found.figures.iter().find(|figure| figure.id == id).unwrap();
        assert!(svg::draw(figure).unwrap().contains(&figure.across), "{id}");
    }
}

#[test]
fn models_and_temperatures_have_separate_tables() {
    let mut all = rows();
    let mut warm = rows();
    warm.iter_mut().for_each(|row| row.run.temperature = 0.5);
    all.extend(warm);
    let found = outputs(&all);
    assert_eq!(found.tables.iter().filter(|table| table.id.starts_with("texts")).count(), 2);
    let mut ids: Vec<&str> = found.tables.iter().map(|table| table.id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), found.tables.len());
    assert!(found.tables.iter().all(|table| table.title.contains("temperature")));
}

/// Figures without numbers are left out: without unconstrained texts, or without drafts.
#[test]
fn figures_without_numbers_are_left_out() {
    let mut all = rows();
    all.retain(|row| row.run.method == "paper");
    for row in &mut all {
        (row.run.warm_ups, row.drafted, row.accepted) = (Some(3), 0, 0);
    }
    let found = outputs(&all);
    // What is not relative to anything can be drawn.
    let lines = found.figures.iter().filter(|figure| matches!(figure.marks, Marks::Lines(_)));
    let ids: Vec<&str> = lines.map(|figure| figure.id.as_str()).collect();
    assert_eq!(ids, ["tokens-per-second-by-s-1"]);
    assert!(found.figures.iter().all(|figure| svg::draw(figure).is_ok()));
}

#[test]
fn missing_measures_make_no_table_and_no_column() {
    let mut few: Vec<Row> = rows().into_iter().filter(|row| row.run.method == UNCONSTRAINED).collect();
    few.iter_mut().for_each(|row| row.preferred = None);
    let found = outputs(&few);
    let ids: Vec<&str> = found.tables.iter().map(|table| table.id.as_str()).collect();
    assert_eq!(ids, ["texts", "throughput", "acceptance"]);
    // And no column.
    let heads = &table(&found, "texts").head;
    assert!(
        heads.iter().any(|head| head == "accuracy") && !heads.iter().any(|head| head == "k"),
        "{heads:?}"
    );
    assert!(outputs(&[]).tables.is_empty() && outputs(&[]).figures.is_empty());
}

#[test]
fn files_of_tables_and_figures_are_written_whole() {
    let folder = std::env::temp_dir().join(format!("domino-outputs-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let found = outputs(&rows());
    let written = found.write(&folder).unwrap();
    let read = |path: &Path| std::fs::read_to_string(path).unwrap();
    let (mut tables, mut figures) = (0, 0);
    for path in &written {
        let text = read(path);
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("csv") => {
                tables += 1;
                let commas: Vec<usize> = text.lines().map(|line| line.matches(',').count()).collect();
                assert!(commas.windows(2).all(|pair| pair[0] == pair[1]), "{text}");
            }
            Some("svg") => {
                figures += 1;
                assert!(text.starts_with("<svg") && text.trim_end().ends_with("</svg>"), "{text}");
            }
            _ => {}
        }
    }
    assert_eq!((tables, figures), (found.tables.len(), found.figures.len()));
    let markdown = read(&folder.join("tables.md"));
    assert!(markdown.contains("Mistral 7B") && markdown.contains("figures/throughput.svg"));
    for table in markdown.split("\n## ").filter(|part| part.contains("|---|")) {
        let bars: Vec<usize> = table
            .lines()
            .filter(|line| line.starts_with('|'))
            .map(|line| line.matches('|').count())
            .collect();
        assert!(bars.windows(2).all(|pair| pair[0] == pair[1]), "{table}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn hostile_names_become_no_markup() {
    let mut rows = rows();
    for row in &mut rows {
        row.run.grammar = format!("{NASTY}{}", row.run.grammar);
    }
    let outputs = Outputs::new(&header(NASTY), &rows, &summarise(&rows), &Beside::default());
    let drawings: Vec<String> = outputs.figures.iter().map(|figure| svg::draw(figure).unwrap()).collect();
    assert!(!drawings.is_empty() && drawings.iter().all(|drawing| !drawing.contains("<script")));
}

#[test]
fn a_text_outside_its_language_is_marked_as_wrong() {
    let mut rows = rows();
    let markdown = outputs(&rows).markdown();
    assert!(!markdown.contains("WRONG"));
    let prose = markdown.lines().filter(|line| !line.starts_with(['|', '!']));
    assert_eq!(prose.map(|line| line.trim_end()).find(|line| line.len() > 110), None);
    rows[1].prefix = false;
    let found = outputs(&rows);
    assert_eq!(found.wrong, 1);
    assert!(found.markdown().contains("WRONG"));
}

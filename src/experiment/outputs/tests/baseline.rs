//! The control, and texts that are the same with a grammar and without, of made-up rows.

use super::*;

/// Five prompts of two grammars in two seeds. `json` was written in the slower half of the run: a pass of 0.2
/// s, of `gsm8k` 0.1 s. A text has two tokens behind the first.
fn in_turns() -> Vec<Row> {
    let mut rows = Vec::new();
    for (grammar, pass) in [("json", 0.2), ("gsm8k", 0.1)] {
        for (prompt, seed) in (0..5).flat_map(|prompt| [(prompt, 0), (prompt, 1)]) {
            for (method, gain) in
                [(UNCONSTRAINED, 1.0), ("opportunistic", 1.0), ("masks", 1.25), ("ours", 2.5)]
            {
                let mut row = example(method, prompt, seed);
                row.run.grammar = grammar.to_owned();
                row.seconds = row.first_seconds + 2.0 * pass / gain;
                row.cpu_seconds = Some(4.0 * pass / gain);
                row.passes = if method == "ours" { 2 } else { 3 };
                rows.push(row);
            }
        }
    }
    rows
}

#[test]
fn the_control_is_relative_to_all_passes_of_its_model() {
    let mut rows = in_turns();
    // Half as fast, and in processor time as fast: something else took the processor.
    for row in rows.iter_mut().filter(|row| row.run.method == "opportunistic") {
        row.seconds = row.first_seconds + 2.0 * (row.seconds - row.first_seconds);
    }
    let found = outputs(&rows);
    let control = table(&found, "control");
    let of = |grammar: &str, head: &str| estimate(control, &["small", grammar], head);
    let close = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found} {expected}");
    close(of("all", "control"), 0.5);
    close(of("all", "control, processor"), 1.0);
    close(of("all", "no grammar"), 1.0);
    // Of 0.2 and 0.1 s a pass the mean is 0.15.
    close(of("json", "no grammar"), 0.75);
    close(of("gsm8k", "no grammar"), 1.5);
    close(of("gsm8k", "control"), 0.75);
    // What ends a text is a pass without a token, where nothing ends it by a grammar.
    for row in rows.iter_mut().filter(|row| row.run.method == UNCONSTRAINED) {
        row.passes += 1;
        row.seconds += 0.5 * (row.seconds - row.first_seconds);
    }
    close(estimate(table(&outputs(&rows), "control"), &["small", "all"], "control"), 0.5);
}

#[test]
fn throughput_has_one_denominator_a_model() {
    let rows = in_turns();
    let lines = summarise(&rows);
    let of = |grammar: &str, method: &str| {
        let line = lines.iter().find(|line| line.grammar == grammar && line.method == method).unwrap();
        (line.throughput.unwrap(), line.processor_throughput.unwrap(), line.over_masks)
    };
    let (wall, processor, masks) = of("gsm8k", "ours");
    assert!((wall.value - 3.75).abs() < 1e-9 && (processor.value - 3.75).abs() < 1e-9);
    assert!((masks.unwrap().value - 2.0).abs() < 1e-9 && wall.interval().is_some());
    assert!((of("json", "ours").0.value - 1.875).abs() < 1e-9);
    let titles: Vec<String> = outputs(&rows).tables.iter().map(|table| table.title.clone()).collect();
    assert!(
        titles.contains(&"Throughput by grammar and method, of different texts".to_owned()),
        "{titles:?}"
    );
}

#[test]
fn only_texts_that_the_model_writes_without_a_grammar_too_are_compared() {
    let mut rows = in_turns();
    for row in &mut rows {
        match (&*row.run.method, &*row.run.grammar, row.run.prompt, row.run.seed) {
            // Another text without a grammar, which came at once, and one that differs in its end alone.
            (UNCONSTRAINED, "json", 0, _) => (row.text, row.seconds) = ("{ }".to_owned(), 0.300001),
            (UNCONSTRAINED, "json", 1, _) => row.text += "\n",
            // A text that masks write and drafts do not counts for neither.
            ("masks", "json", 2, 1) => row.text = "[]".to_owned(),
            (UNCONSTRAINED, "gsm8k", ..) => row.text = "I".to_owned(),
            _ => {}
        }
    }
    let found = outputs(&rows);
    let same = table(&found, "same-texts");
    let close = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found} {expected}");
    let of = |head: &str| estimate(same, &["small", "json", "1", "7 of 10"], head);
    close(of("no grammar"), 5.0);
    close(of("masks"), 6.25);
    close(of("ours"), 12.5);
    close(of("over no grammar"), 2.5);
    close(of("over no grammar, processor"), 2.5);
    close(of("over masks"), 2.0);
    close(of("tokens/pass"), 2.0);
    let none: Vec<String> = same.rows[1].iter().map(Cell::words).collect();
    assert_eq!(none[..5], ["small", "gsm8k", "1", "0 of 10", "-"]);
    // Several lengths of drafts are several methods, of which none is the one to compare.
    rows.iter_mut().filter(|row| row.run.method == "ours").for_each(|row| row.run.s = Some(row.run.prompt));
    assert!(outputs(&rows).tables.iter().all(|table| table.id != "same-texts"));
}

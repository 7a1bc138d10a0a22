//! Marks, numbers of the paper, panels, and sentences about intervals and warm-ups.

use super::*;

/// Sections of one's own definition are not named after tables and figures of the paper, whose numbers
/// differ.
#[test]
fn sections_are_not_called_by_the_papers_numbers() {
    let found = outputs(&rows());
    let titles =
        found.tables.iter().map(|table| &table.title).chain(found.figures.iter().map(|one| &one.title));
    for title in titles {
        assert!(!title.starts_with("Table ") && !title.starts_with("Figure "), "{title}");
    }
    assert!(table(&found, "texts").about.contains("the paper's table 2"));
}

/// The paper's numbers stand beside the method of ours that they belong to, and no other.
#[test]
fn the_papers_numbers_stand_beside_their_methods() {
    let mut all = rows();
    for (method, pace) in [("opportunistic", 0.25), ("always", 0.4), ("templates", 0.1), ("ours", 0.05)] {
        let mut more: Vec<Row> = rows().into_iter().filter(|row| row.run.method == "masks").collect();
        for row in &mut more {
            row.run.method = method.to_owned();
            row.seconds = row.first_seconds + pace;
        }
        all.extend(more);
    }
    let found = outputs(&all);
    let shown = table(&found, "paper-throughput");
    assert!(shown.about.contains("A100") && shown.about.contains("H100"), "{}", shown.about);
    let head: Vec<&str> = shown.head.iter().map(String::as_str).collect();
    let expected = ["grammar", "method in the paper", "paper: Mistral 7B", "paper: Llama-2 13B", "ours"];
    assert_eq!(head[..5], expected);
    let lines: Vec<String> = shown
        .rows
        .iter()
        .map(|row| row[..5].iter().map(Cell::words).collect::<Vec<_>>().join(" | "))
        .collect();
    for line in [
        "json | Domino (opportunistic) | 0.96 | - | opportunistic",
        "json | Domino (s = 10) | - | 1.12 | paper",
        "json | Domino | 0.88 | 0.95 | always",
        "json | Guidance (template) | 1.03 | 1.03 | templates",
        "gsm8k | Domino (s = 10) | 1.77 | 1.66 | paper",
        "gsm8k | llama.cpp (grammar) | 0.80 | 0.86 | -",
        "json | - | - | - | ours",
    ] {
        assert!(lines.contains(&line.to_owned()), "{line}: {lines:#?}");
    }
    // Of grammars that are not here nothing is shown, and no table has the paper's number in another row.
    assert!(lines.iter().all(|line| line.starts_with("json") || line.starts_with("gsm8k")));
    // One has a column of the method of this name.
    let others = || found.tables.iter().filter(|table| table.id != "same-texts");
    assert!(others().all(|table| table.head.iter().all(|head| head != "paper")));
    let answers = table(&found, "paper-texts");
    assert_eq!(estimate(answers, &["gsm8k", "Mistral 7B", UNCONSTRAINED], "accuracy"), 2.0 / 3.0);
}

/// Throughput of texts that ran to the limit has a mark, and every table with throughput has the share of
/// texts that ended and the throughput of those alone.
#[test]
fn texts_that_ran_away_are_marked() {
    let mut all = rows();
    for row in all.iter_mut().filter(|row| row.run.k == Some(K::Terminals(1))) {
        // One of three ends, and quickly.
        let ends = row.run.prompt == 0;
        row.finish = if ends { End::Stop } else { End::Length };
        row.seconds = if ends { row.first_seconds + 0.01 } else { row.seconds };
    }
    let found = outputs(&all);
    let by_k = table(&found, "lookahead");
    let column = |head: &str| by_k.head.iter().position(|found| found == head).unwrap();
    let row =
        |k: &str| by_k.rows.iter().find(|row| row[1].words() == "masks" && row[2].words() == k).unwrap();
    let pace = column("over unconstrained");
    assert!(row("1")[pace].words().ends_with('†') && !row("infinite")[pace].words().contains('†'));
    assert!(by_k.about.contains('†') && row("1")[column("ended")].words().starts_with("0.33"));
    let ended = row("1")[column("over unconstrained, ended")].words();
    assert!(ended.starts_with("15.00"), "{ended}");
    for table in
        found.tables.iter().filter(|table| table.head.iter().any(|head| head == "over unconstrained"))
    {
        if !table.id.starts_with("paper-") {
            for head in ["ended", "over unconstrained, ended"] {
                assert!(table.head.iter().any(|found| found == head), "{} has no {head}", table.id);
            }
        }
    }
    assert!(!by_k.csv().contains('†'), "a number is a number");
    assert!(outputs(&rows()).markdown().matches('†').count() == 0);
}

/// With one prompt there is nothing to draw again, with a few too little, and the page says so.
#[test]
fn few_prompts_have_a_dash_for_their_interval() {
    let mut all = rows();
    let mut many = rows();
    for row in rows() {
        many.push(Row { run: RunId { prompt: row.run.prompt + 3, ..row.run.clone() }, ..row });
    }
    let words = |rows: &[Row]| outputs(rows).markdown().split_whitespace().collect::<Vec<_>>().join(" ");
    let several = words(&many);
    assert!(several.contains("of a number, 6,") && several.contains("drawn again 1000 times"), "{several}");
    let few = words(&all);
    assert!(few.contains("Intervals: none") && few.contains("a number has 3 prompts"), "{few}");
    all.retain(|row| row.run.prompt == 0);
    for seed in 1..5 {
        let mut more: Vec<Row> = all.iter().filter(|row| row.run.seed == 0).cloned().collect();
        more.iter_mut().for_each(|row| row.run.seed = seed);
        all.extend(more);
    }
    let found = outputs(&all);
    let markdown = found.markdown().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(markdown.contains("Intervals: none") && markdown.contains("one prompt"), "{markdown}");
    let texts = table(&found, "texts");
    assert!(texts.markdown().contains("1.40 (-)"), "{}", texts.markdown());
    let csv = texts.csv();
    let heads: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    let at = heads.iter().position(|head| *head == "over_unconstrained").unwrap();
    assert_eq!(
        heads[at + 1..at + 4],
        ["over_unconstrained_low", "over_unconstrained_high", "over_unconstrained_n"]
    );
    for line in csv.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        assert!(!cells[at].is_empty() && cells[at + 1].is_empty() && cells[at + 2].is_empty(), "{line}");
        assert!(cells.iter().all(|cell| *cell != "-"), "{line}");
    }
}

/// Greedy texts whose methods had warmed up on their prompts are marked in tables and counted at the head.
#[test]
fn greedy_texts_of_warm_ups_are_marked() {
    let mut all = rows();
    for row in &mut all {
        row.run.temperature = 0.0;
        row.seen = (row.run.method == "paper").then_some(row.run.prompt == 1);
    }
    let found = outputs(&all);
    assert_eq!(found.known_before, 2 * 2 * 3);
    assert!(found.markdown().contains("SEEN: 12 texts at"), "{}", found.markdown());
    let methods: Vec<String> = table(&found, "texts").rows.iter().map(|row| row[1].words()).collect();
    assert!(methods.contains(&"paper ‡".to_owned()) && methods.contains(&"masks".to_owned()), "{methods:?}");
    assert!(!table(&found, "texts").csv().contains('‡'));
    // At another temperature other seeds give other texts.
    all.iter_mut().for_each(|row| row.run.temperature = 1.0);
    let found = outputs(&all);
    assert!(found.known_before == 0 && !found.markdown().contains('‡'));
}

/// The page tells how methods were warmed up; records that do not say it used the old way.
#[test]
fn the_page_says_how_methods_were_warmed_up() {
    let said = |definition: serde_json::Value| {
        let mut header = header("made-up");
        let name = serde_json::json!({
            "name": "a", "models": ["m"], "grammars": [{ "name": "json", "prompts": [1, 2] }],
            "k": ["infinite"],
            "s": [4], "threshold": [0.5], "temperatures": [1.0], "seeds": [0], "turns": "rotate",
        });
        header.definition = name;
        for (key, value) in definition.as_object().unwrap() {
            header.definition[key] = value.clone();
        }
        Outputs::new(&header, &rows(), &summarise(&rows()), &Beside::default()).warm_ups
    };
    let of = |more: serde_json::Value| {
        let mut definition = serde_json::json!({ "methods": ["paper"], "warm_ups": 10 });
        definition.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        said(definition).unwrap_or_default()
    };
    assert!(of(serde_json::json!({ "warm_up_prompts": "apart" })).contains("prompts of their own"));
    let measured = of(serde_json::json!({ "warm_up_prompts": "measured" }));
    assert!(measured.contains("the measured prompts") && measured.contains("as in the paper"));
    assert_eq!(of(serde_json::json!({})), measured);
    assert!(of(serde_json::json!({ "temperatures": [0.0] })).contains("the very texts"));
    assert_eq!(said(serde_json::json!({ "methods": ["masks"], "warm_ups": 10 })), None);
}

/// Tables say that prompts stood in a chat template, and what the system said there.
#[test]
fn tables_say_whether_prompts_had_a_chat_template() {
    let shown = |chat: serde_json::Value, system: serde_json::Value| {
        let mut header = header("made-up");
        (header.definition["chat"], header.definition["system"]) = (chat, system);
        Outputs::new(&header, &rows(), &summarise(&rows()), &Beside::default()).markdown()
    };
    assert!(shown(true.into(), "Be brief.".into()).contains("chat template; the system says \"Be brief.\"."));
    assert!(shown(true.into(), serde_json::Value::Null).contains("in the model's chat template."));
    assert!(!shown(false.into(), serde_json::Value::Null).contains("chat template"));
}

/// A sweep of the threshold is a table of its own, which says whose thresholds they are.
#[test]
fn a_sweep_of_thresholds_has_a_table() {
    let mut all = rows();
    let mut more: Vec<Row> = rows().into_iter().filter(|row| row.run.method == "paper").collect();
    more.iter_mut().for_each(|row| row.run.threshold = Some(0.2));
    all.extend(more);
    let found = outputs(&all);
    let shown = table(&found, "threshold");
    assert!(shown.about.contains("are ours"), "{}", shown.about);
    let column = shown.head.iter().position(|head| head == "threshold").unwrap();
    let thresholds: Vec<String> = shown.rows.iter().map(|row| row[column].words()).collect();
    assert_eq!(thresholds, ["0.2", "0.5", "0.2", "0.5"]);
    let figures: Vec<&str> = found.figures.iter().map(|figure| figure.title.as_str()).collect();
    assert!(figures.iter().any(|title| title.contains("paper, threshold 0.2")), "{figures:?}");
    assert!(outputs(&rows()).tables.iter().all(|table| table.id != "threshold"));
}

/// Figures by s have a panel for each grammar with a line for each k, and methods to compare with; figures by
/// k a line for each method.
#[test]
fn figures_have_panels_by_grammar() {
    let found = outputs(&rows());
    let figure = |id: &str| found.figures.iter().find(|figure| figure.id == id).expect(id);
    for (id, levels) in
        [("throughput-by-s-1", vec!["masks"]), ("tokens-per-second-by-s-1", vec![UNCONSTRAINED, "masks"])]
    {
        let Marks::Lines(panels) = &figure(id).marks else { panic!("{id}") };
        let names: Vec<&str> = panels.iter().map(|panel| panel.name.as_str()).collect();
        assert_eq!(names, ["json", "gsm8k"]);
        for panel in panels {
            let series: Vec<&str> = panel.series.iter().map(|one| one.name.as_str()).collect();
            assert_eq!(series, ["k = 1", "k = infinite"]);
            assert!(panel.series.iter().all(|one| one.points.len() == 3));
            let found: Vec<&str> = panel.levels.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(found, levels);
        }
    }
    let by_k = figure("throughput-by-k");
    let Marks::Lines(panels) = &by_k.marks else { panic!("no lines") };
    assert_eq!((panels.len(), &by_k.ticks[..]), (2, &["1".to_owned(), "infinite".to_owned()][..]));
    let series: Vec<&str> = panels[0].series.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(series, ["masks", "paper"]);
}

/// Accuracy by k stands beside the paper's where a task of its form has the lookaheads.
#[test]
fn the_papers_lookaheads_stand_beside_ours() {
    let mut all = rows();
    let mut none: Vec<Row> = rows()
        .into_iter()
        .filter(|row| row.run.method == "masks" && row.run.k == Some(K::Infinite))
        .collect();
    for row in &mut none {
        (row.run.k, row.correct) = (Some(K::Terminals(0)), Some(false));
    }
    all.extend(none);
    let found = outputs(&all);
    let shown = table(&found, "paper-lookahead");
    let lines: Vec<String> =
        shown.rows.iter().map(|row| row[..4].iter().map(Cell::words).collect::<Vec<_>>().join(" ")).collect();
    let expected = [
        "gsm8k unconstrained 0.415 0.155",
        "gsm8k 0 0.308 0.000",
        "gsm8k 1 0.100 0.036",
        "gsm8k infinite 0.418 0.157",
    ];
    assert_eq!(lines, expected);
    assert_eq!(estimate(shown, &["gsm8k", "0"], "accuracy"), 0.0);
    assert!(estimate(shown, &["gsm8k", "infinite"], "accuracy") > 0.6);
}

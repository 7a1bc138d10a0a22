//! The paper's tables from the lines of a summary.

use super::{
    super::{row::K, row::UNCONSTRAINED, summary::Line},
    drafting, paper,
    table::{Cell, Table},
};

/// Lines of one model and temperature, which are comparable.
pub(super) struct Group<'a> {
    /// For file names: different for different groups, empty if there is but one.
    pub(super) suffix: String,
    /// For titles.
    pub(super) title: String,
    pub(super) lines: Vec<&'a Line>,
}

/// The groups, in order of first mention.
pub(super) fn groups(lines: &[Line]) -> Vec<Group<'_>> {
    let mut found: Vec<Group<'_>> = Vec::new();
    for line in lines {
        let same = |group: &&mut Group<'_>| {
            group.lines.first().is_some_and(|first| {
                first.model == line.model && first.temperature.to_bits() == line.temperature.to_bits()
            })
        };
        match found.iter_mut().find(same) {
            Some(group) => group.lines.push(line),
            None => {
                let title = format!(" ({}, temperature {})", line.model, line.temperature);
                found.push(Group { suffix: format!("-{}", found.len() + 1), title, lines: vec![line] });
            }
        }
    }
    if let [only] = &mut found[..] {
        only.suffix.clear();
        only.title.clear();
    }
    found
}

/// Are these lines of one grammar and method?
pub(super) fn same_method(one: &Line, other: &Line) -> bool {
    one.grammar == other.grammar && one.method == other.method
}

fn throughput(line: &Line) -> f64 {
    line.throughput.map_or(f64::NEG_INFINITY, |throughput| throughput.value)
}

/// One line for each grammar and method: at the largest k, with the most warm-ups, and of several lengths and
/// thresholds the fastest.
pub(super) fn best<'a>(lines: &[&'a Line]) -> Vec<&'a Line> {
    let mut found: Vec<&Line> = Vec::new();
    for &line in lines {
        let rank = |line: &Line| (line.k, line.warm_ups, throughput(line));
        let better = |known: &Line| rank(line) > rank(known);
        match found.iter_mut().find(|known| same_method(known, line)) {
            Some(known) if better(known) => *known = line,
            Some(_) => {}
            None => found.push(line),
        }
    }
    found
}

/// How [`best`] chooses, for readers.
const CHOICE: &str = "Each method is shown at the largest k; of several s and thresholds the fastest is, \
    which makes its throughput look a little better than it is.";

/// All tables that the lines give.
pub(super) fn all(lines: &[Line]) -> Vec<Table> {
    let mut tables = Vec::new();
    for group in groups(lines) {
        tables.push(table_2(&group));
        tables.push(table_3(&group));
        tables.extend(table_4(&group));
        tables.extend(figure_5(&group));
        tables.extend(grid(&group));
        tables.extend(acceptance(&group));
        tables.extend(drafting::by_prior(&group));
        tables.extend(drafting::coupling(&group));
    }
    tables
}

/// A table without the columns that are empty in all its lines.
pub(super) fn table(
    group: &Group<'_>,
    id: &str,
    title: &str,
    about: &str,
    head: &[&str],
    mut rows: Vec<Vec<Cell>>,
) -> Table {
    let is_used =
        |column: &usize| rows.iter().any(|row| row.get(*column).is_some_and(|cell| *cell != Cell::None));
    let used: Vec<usize> = (0..head.len()).filter(is_used).collect();
    for row in &mut rows {
        *row = used.iter().filter_map(|&column| row.get(column).cloned()).collect();
    }
    Table {
        id: format!("{id}{}", group.suffix),
        title: format!("{title}{}", group.title),
        about: about.to_owned(),
        head: used.iter().filter_map(|&column| head.get(column)).map(|head| (*head).to_owned()).collect(),
        rows,
    }
}

pub(super) fn text(text: &str) -> Cell {
    Cell::Text(text.to_owned())
}

/// The cells that say which line it is.
pub(super) fn setting(line: &Line) -> Vec<Cell> {
    vec![
        text(&line.grammar),
        text(&line.method),
        Cell::shown(line.k),
        Cell::shown(line.s),
        Cell::shown(Some(line.n)),
    ]
}

/// Accuracy, well-formedness, perplexity and throughput by method.
fn table_2(group: &Group<'_>) -> Table {
    let row = |line: &&Line| {
        let mut cells = setting(line);
        cells.extend([
            Cell::of(line.correct, 3),
            Cell::of(line.well_formed, 3),
            Cell::of(line.perplexity, 2),
            Cell::of(line.throughput, 2),
            Cell::of(line.reproduced, 3),
            Cell::of(line.interventions, 3),
        ]);
        cells
    };
    let about = format!(
        "Share of right answers (where prompts have one), share of texts in the language within the limit \
         of tokens, perplexity under the model by itself, tokens a second relative to unconstrained, share \
         of the valid unconstrained texts that come out the same (the paper's definition 2.1), and \
         interventions a token. {CHOICE}"
    );
    table(
        group,
        "table-2",
        "Table 2: what constraining does to texts",
        &about,
        &[
            "grammar",
            "method",
            "k",
            "s",
            "n",
            "accuracy",
            "well-formed",
            "perplexity",
            "over unconstrained",
            "reproduced",
            "interventions/token",
        ],
        best(&group.lines).iter().map(row).collect(),
    )
}

/// Throughput by grammar and method, with the compile time and the paper's figure beside it.
fn table_3(group: &Group<'_>) -> Table {
    let row = |line: &&Line| {
        let mut cells = setting(line);
        let compile = line.compile_seconds.filter(|_| line.method != UNCONSTRAINED);
        cells.extend([
            Cell::of(line.throughput, 2),
            Cell::of(line.tokens_per_second, 0),
            Cell::of(line.tokens_per_pass, 2),
            Cell::of(line.mask_milliseconds, 3),
            compile.map_or(Cell::None, |seconds| Cell::Number(1e3 * seconds, 1)),
            paper::throughput(&line.grammar)
                .filter(|_| line.method != UNCONSTRAINED)
                .map_or(Cell::None, |printed| Cell::Number(printed, 2)),
        ]);
        cells
    };
    let about = format!(
        "Tokens a second, the prompt's pass and the first token left out, relative to the same model \
         without a grammar in the same process; milliseconds to compile the grammar, trees included; and \
         what the paper prints for Domino with drafts, Mistral 7B. {CHOICE}"
    );
    table(
        group,
        "table-3",
        "Table 3: throughput by grammar and method",
        &about,
        &[
            "grammar",
            "method",
            "k",
            "s",
            "n",
            "over unconstrained",
            "tokens/s",
            "tokens/pass",
            "mask ms/token",
            "compile ms",
            "paper",
        ],
        best(&group.lines).iter().map(row).collect(),
    )
}

/// Accuracy by lookahead, if there are several.
fn table_4(group: &Group<'_>) -> Option<Table> {
    let ks = |line: &Line| {
        let mut ks: Vec<K> =
            group.lines.iter().filter(|other| same_method(other, line)).filter_map(|line| line.k).collect();
        ks.sort_unstable();
        ks.dedup();
        ks
    };
    let mut chosen: Vec<&Line> = Vec::new();
    for &line in group.lines.iter().filter(|line| line.k.is_some() && ks(line).len() > 1) {
        let same = |known: &&mut &Line| same_method(known, line) && known.k == line.k;
        match chosen.iter_mut().find(same) {
            Some(known) if throughput(line) > throughput(known) => *known = line,
            Some(_) => {}
            None => chosen.push(line),
        }
    }
    let row = |line: &&Line| {
        let mut cells = setting(line);
        cells.extend([
            Cell::of(line.correct, 3),
            Cell::of(line.well_formed, 3),
            Cell::of(line.perplexity, 2),
            Cell::of(line.interventions, 3),
            Cell::of(line.non_canonical, 3),
            Cell::of(line.log_kept, 2),
            Cell::of(line.throughput, 2),
        ]);
        cells
    };
    let about = "Fewer terminals ahead allow fewer tokens and bend the model more. Texts do not depend on \
        s; of several lengths and thresholds the fastest is shown.";
    let head = [
        "grammar",
        "method",
        "k",
        "s",
        "n",
        "accuracy",
        "well-formed",
        "perplexity",
        "interventions/token",
        "non-canonical",
        "log kept",
        "over unconstrained",
    ];
    let rows: Vec<Vec<Cell>> = chosen.iter().map(row).collect();
    (!rows.is_empty())
        .then(|| table(group, "table-4", "Table 4: accuracy by lookahead k", about, &head, rows))
}

/// The lengths of drafts among lines like this one, ascending.
pub(super) fn lengths(lines: &[&Line]) -> Vec<usize> {
    let mut lengths: Vec<usize> = lines.iter().filter_map(|line| line.s).collect();
    lengths.sort_unstable();
    lengths.dedup();
    lengths
}

/// Lines that differ in s alone, for each grammar, method, k and threshold that has several.
pub(super) fn sweeps<'a>(lines: &[&'a Line]) -> Vec<Vec<&'a Line>> {
    let same = |one: &Line, other: &Line| {
        same_method(one, other)
            && one.k == other.k
            && one.warm_ups == other.warm_ups
            && one.threshold.map(f64::to_bits) == other.threshold.map(f64::to_bits)
    };
    let mut found: Vec<Vec<&Line>> = Vec::new();
    for &line in lines.iter().filter(|line| line.s.is_some()) {
        match found.iter_mut().find(|sweep| sweep.first().is_some_and(|first| same(first, line))) {
            Some(sweep) => sweep.push(line),
            None => found.push(vec![line]),
        }
    }
    for sweep in &mut found {
        sweep.sort_by_key(|line| line.s);
    }
    found.retain(|sweep| lengths(sweep).len() > 1);
    found
}

/// Throughput by the length of drafts, if there are several.
fn figure_5(group: &Group<'_>) -> Option<Table> {
    let row = |line: &Line| {
        vec![
            text(&line.grammar),
            text(&line.method),
            Cell::shown(line.k),
            Cell::shown(line.threshold),
            Cell::shown(line.s),
            Cell::shown(Some(line.n)),
            Cell::of(line.throughput, 2),
            Cell::of(line.tokens_per_pass, 2),
            Cell::of(line.acceptance, 2),
        ]
    };
    let rows: Vec<Vec<Cell>> = sweeps(&group.lines).into_iter().flatten().map(row).collect();
    let about = "Tokens a second relative to unconstrained, tokens for each pass and accepted among drafted \
        tokens, by the most tokens s of a draft.";
    let head =
        ["grammar", "method", "k", "threshold", "s", "n", "over unconstrained", "tokens/pass", "acceptance"];
    (!rows.is_empty()).then(|| table(group, "figure-5", "Figure 5: throughput by s", about, &head, rows))
}

/// Throughput by k and s, a table for each method that has several of both.
fn grid(group: &Group<'_>) -> Vec<Table> {
    let mut methods: Vec<&str> = Vec::new();
    for sweep in sweeps(&group.lines) {
        if let Some(line) = sweep.first().filter(|line| !methods.contains(&line.method.as_str())) {
            methods.push(&line.method);
        }
    }
    let mut tables = Vec::new();
    for (number, method) in methods.into_iter().enumerate() {
        let lines: Vec<&Line> =
            group.lines.iter().filter(|line| line.method == method && line.s.is_some()).copied().collect();
        let lengths = lengths(&lines);
        let mut places: Vec<(&str, Option<K>, Option<f64>)> = Vec::new();
        for line in &lines {
            let place = (line.grammar.as_str(), line.k, line.threshold);
            if !places.contains(&place) {
                places.push(place);
            }
        }
        let mut ks: Vec<Option<K>> = places.iter().map(|(_, k, _)| *k).collect();
        ks.sort_unstable();
        ks.dedup();
        if ks.len() < 2 {
            continue;
        }
        let row = |(grammar, k, threshold): &(&str, Option<K>, Option<f64>)| {
            let mut cells = vec![text(grammar), Cell::shown(*k), Cell::shown(*threshold)];
            let found = lengths.iter().map(|length| {
                lines.iter().find(|line| {
                    (line.grammar.as_str(), line.k, line.threshold, line.s)
                        == (*grammar, *k, *threshold, Some(*length))
                })
            });
            let found: Vec<Option<&&Line>> = found.collect();
            let texts = || found.iter().flatten().map(|line| line.n);
            cells.push(Cell::shown(match (texts().min(), texts().max()) {
                (Some(least), Some(most)) if least < most => Some(format!("{least} to {most}")),
                (least, _) => least.map(|least| least.to_string()),
            }));
            cells.extend(found.iter().map(|line| Cell::of(line.and_then(|line| line.throughput), 2)));
            cells
        };
        let rows = places.iter().map(row).collect();
        let heads: Vec<String> = lengths.iter().map(|length| format!("s = {length}")).collect();
        let head: Vec<&str> =
            ["grammar", "k", "threshold", "n"].into_iter().chain(heads.iter().map(String::as_str)).collect();
        let about = "Tokens a second relative to unconstrained. Counts were learnt at the k of their line; \
            n is the number of texts of each cell.";
        let title = format!("k by s: {method}");
        tables.push(table(group, &format!("k-by-s-{}", number + 1), &title, about, &head, rows));
    }
    tables
}

/// How many drafted tokens are accepted, by grammar, if anything was drafted.
fn acceptance(group: &Group<'_>) -> Option<Table> {
    let lines = best(&group.lines);
    let row = |line: &&Line| {
        let mut cells = setting(line);
        cells.extend([
            Cell::of(line.acceptance, 2),
            Cell::of(line.tokens_per_pass, 2),
            Cell::of(line.forced, 2),
            Cell::of(line.throughput, 2),
        ]);
        cells
    };
    let drafts = lines.iter().filter(|line| line.acceptance.is_some());
    let rows: Vec<Vec<Cell>> = drafts.map(row).collect();
    let about = format!(
        "Accepted among drafted tokens, tokens for each pass, and the share of the text's bytes that the \
         grammar forces but for their spelling. {CHOICE}"
    );
    let head =
        ["grammar", "method", "k", "s", "n", "acceptance", "tokens/pass", "forced", "over unconstrained"];
    (!rows.is_empty()).then(|| table(group, "acceptance", "Acceptance by grammar", &about, &head, rows))
}

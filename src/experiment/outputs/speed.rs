//! Throughput: by grammar and method, by length of drafts, by lookahead and length, by threshold, and of
//! engines side by side, as the tokens a second that a user gets from each.

use super::table::{
    CHOICE, Cell, LineGroup, PACE, Table, best, groups, heads, lengths, pace, paced, setting, sweeps, table,
    text,
};
use crate::experiment::row::{K, UNCONSTRAINED};
use crate::experiment::summary::Line;

/// Methods without drafts that draft lengths are compared with.
pub(super) const COMPARED: [&str; 4] = [UNCONSTRAINED, "always", "opportunistic", "masks"];

/// Makes the table of throughput by grammar and method, with the compile time.
pub(super) fn by_method(group: &LineGroup<'_>) -> Table {
    let row = |line: &&Line| {
        let mut cells = setting(line);
        let compile = line.compile_seconds.filter(|_| line.method != UNCONSTRAINED);
        cells.extend(pace(line));
        cells.extend([
            paced(line, line.processor_throughput, 2),
            paced(line, line.tokens_per_second, 0),
            Cell::of(line.ended_per_second, 0),
            Cell::of(line.tokens_per_pass, 2),
            Cell::of(line.mask_milliseconds, 3),
            compile.map_or(Cell::None, |seconds| Cell::Number(1e3 * seconds, 1)),
        ]);
        cells
    };
    let about = format!(
        "The form of the paper's table 3: tokens a second, the prompt's pass and the first token left out, \
         relative to the same model without a grammar in the same process, and relative to masks without \
         drafts, which compute fewer rows of the output product than a model without a grammar; share of \
         texts that ended before the limit, and the throughput of those alone; relative in processor time; \
         milliseconds to compile the grammar, trees included. {CHOICE}"
    );
    let more = [
        "over unconstrained, processor",
        "tokens/s",
        "tokens/s, ended",
        "tokens/pass",
        "mask ms/token",
        "compile ms",
    ];
    let rows = best(&group.lines).iter().map(row).collect();
    let head = heads(&[&PACE[..], &more].concat());
    table(group, "throughput", "Throughput by grammar and method", &about, &head, rows)
}

/// Makes the table of throughput by draft length, if there are several, below methods without drafts.
pub(super) fn by_length(group: &LineGroup<'_>) -> Option<Table> {
    let row = |line: &Line| {
        let mut cells = setting(line);
        cells.extend([paced(line, line.tokens_per_second, 0), Cell::of(line.ended_per_second, 0)]);
        cells.extend(pace(line));
        cells.extend([Cell::of(line.tokens_per_pass, 2), Cell::of(line.acceptance, 2)]);
        cells
    };
    let mut lines: Vec<&Line> = Vec::new();
    for sweep in sweeps(&group.lines) {
        let Some(first) = sweep.first() else { continue };
        if !lines.iter().any(|line| line.grammar == first.grammar) {
            lines.extend(compared(group, &first.grammar));
        }
        lines.extend(sweep);
    }
    let rows: Vec<Vec<Cell>> = lines.into_iter().map(row).collect();
    let about = "The form of the paper's figure 5: tokens a second, the same relative to unconstrained, \
        tokens for each pass and accepted among drafted tokens, by the most tokens s of a draft; and of each \
        grammar first what there is to compare with, methods without drafts.";
    let head = [&["tokens/s", "tokens/s, ended"][..], &PACE, &["tokens/pass", "acceptance"]].concat();
    (!rows.is_empty()).then(|| table(group, "draft-length", "Throughput by s", about, &heads(&head), rows))
}

/// Returns the lines of a grammar's methods without drafts, at the largest k.
pub(super) fn compared<'a>(group: &LineGroup<'a>, grammar: &str) -> Vec<&'a Line> {
    let mut lines: Vec<&Line> =
        best(&group.lines).into_iter().filter(|line| line.grammar == grammar).collect();
    lines.retain(|line| COMPARED.contains(&line.method.as_str()));
    lines
}

/// Makes the table of throughput by threshold, for each grammar and method that has several; of several s the
/// fastest.
pub(super) fn by_threshold(group: &LineGroup<'_>) -> Option<Table> {
    let mut thresholds: Vec<f64> = group.lines.iter().filter_map(|line| line.threshold).collect();
    thresholds.sort_by(f64::total_cmp);
    thresholds.dedup();
    if thresholds.len() < 2 {
        return None;
    }
    let mut lines: Vec<&Line> = Vec::new();
    for threshold in thresholds {
        let of: Vec<&Line> =
            group.lines.iter().filter(|line| line.threshold == Some(threshold)).copied().collect();
        lines.extend(best(&of));
    }
    let place = |line: &Line| (line.grammar.clone(), line.method_name());
    let mut order: Vec<(String, String)> = Vec::new();
    for line in &lines {
        let place = place(line);
        if !order.contains(&place) {
            order.push(place);
        }
    }
    lines.sort_by_key(|line| order.iter().position(|at| *at == place(line)));
    let row = |line: &&Line| {
        let mut cells = setting(line);
        cells.extend([Cell::of(line.acceptance, 2), Cell::of(line.tokens_per_pass, 2)]);
        cells.extend(pace(line));
        cells
    };
    let about = "A token is drafted if its share of the counts is at least the threshold. The paper has such \
        a threshold and does not say which: these values are ours. Of several s the fastest is shown.";
    let head = heads(&[&["acceptance", "tokens/pass"][..], &PACE].concat());
    let rows = lines.iter().map(row).collect();
    Some(table(group, "threshold", "Throughput by threshold", about, &head, rows))
}

/// Makes tables of throughput by k and s, one for each method that has several of both.
pub(super) fn by_lookahead_and_length(group: &LineGroup<'_>) -> Vec<Table> {
    let mut methods: Vec<String> = Vec::new();
    for sweep in sweeps(&group.lines) {
        let name = sweep.first().map(|line| line.method_name());
        methods.extend(name.filter(|name| !methods.contains(name)));
    }
    let mut tables = Vec::new();
    for (number, method) in methods.into_iter().enumerate() {
        let lines: Vec<&Line> = group
            .lines
            .iter()
            .filter(|line| line.method_name() == method && line.s.is_some())
            .copied()
            .collect();
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
            cells.extend(
                found.iter().map(|line| line.map_or(Cell::None, |line| paced(line, line.throughput, 2))),
            );
            cells
        };
        let rows = places.iter().map(row).collect();
        let heads: Vec<String> = lengths.iter().map(|length| format!("s = {length}")).collect();
        let head: Vec<&str> =
            ["grammar", "k", "threshold", "n"].into_iter().chain(heads.iter().map(String::as_str)).collect();
        let about = "Tokens a second relative to unconstrained. Counts were learnt at the k of their line; \
            n is the number of texts of each cell.";
        let title = format!("k by s, of different texts: {method}");
        tables.push(table(group, &format!("k-by-s-{}", number + 1), &title, about, &head, rows));
    }
    tables
}

/// Makes the table of acceptance of drafted tokens, by grammar, if anything was drafted.
pub(super) fn acceptance(group: &LineGroup<'_>) -> Option<Table> {
    let lines = best(&group.lines);
    let row = |line: &&Line| {
        let mut cells = setting(line);
        cells.extend([
            Cell::of(line.acceptance, 2),
            Cell::of(line.tokens_per_pass, 2),
            Cell::of(line.forced, 2),
        ]);
        cells.extend(pace(line));
        cells
    };
    let drafts = lines.iter().filter(|line| line.acceptance.is_some());
    let rows: Vec<Vec<Cell>> = drafts.map(row).collect();
    let about = format!(
        "Accepted among drafted tokens, tokens for each pass, and the share of the text's bytes that the \
         grammar forces but for their spelling. {CHOICE}"
    );
    let head = heads(&[&["acceptance", "tokens/pass", "forced"][..], &PACE].concat());
    (!rows.is_empty()).then(|| table(group, "acceptance", "Acceptance by grammar", &about, &head, rows))
}

/// Makes a table for each model and temperature in which another engine takes part: `elsewhere` names the
/// methods of other engines with constraints of their own.
pub(super) fn side_by_side(lines: &[Line], elsewhere: &[String]) -> Vec<Table> {
    let all = groups(lines);
    let taking_part =
        all.iter().filter(|group| group.lines.iter().any(|line| elsewhere.contains(&line.method)));
    taking_part
        .map(|group| {
            let lines = best(&group.lines);
            let (mut grammars, mut methods) = (Vec::new(), Vec::new());
            for line in &lines {
                if !grammars.contains(&line.grammar.as_str()) {
                    grammars.push(line.grammar.as_str());
                }
                if !methods.contains(&line.method_name()) {
                    methods.push(line.method_name());
                }
            }
            let row = |method: &String| {
                let of = |grammar: &&str| {
                    lines.iter().find(|line| line.method_name() == *method && line.grammar == **grammar)
                };
                let found: Vec<Option<&&Line>> = grammars.iter().map(of).collect();
                let n: usize = found.iter().flatten().map(|line| line.n).sum();
                let mut cells = vec![text(method), Cell::shown(Some(n))];
                cells.extend(
                    found.iter().map(|line| line.map_or(Cell::None, |line| paced(line, line.end_to_end, 0))),
                );
                cells
            };
            let head: Vec<&str> = ["method", "n"].into_iter().chain(grammars.iter().copied()).collect();
            let about = "Tokens a second by engine and grammar, over whole texts: from the prompt's pass on, \
            which counts. Loading the model and reading the grammar do not count, where the engine reads it \
            once. Of several s and thresholds the fastest is shown.";
            let rows = methods.iter().map(row).collect();
            table(group, "end-to-end", "End to end: tokens a second by engine", about, &head, rows)
        })
        .collect()
}

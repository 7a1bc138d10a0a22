//! Tables and figures about drafts: acceptance by the size of the prior and beside maximal coupling, and the
//! cost of longer passes.

use super::figures::{Figure, Marks, Panel, Series};
use super::table::{Cell, LineGroup, PACE, Table, best, heads, pace, same_method, setting, table, text};
use crate::experiment::{passes::PassCurve, statistics::Estimate, summary::Line};

/// Groups lines that differ only in the number of warm-ups, fewest first, for each grammar and method that
/// has several; at the largest k, and of several lengths and thresholds the fastest.
fn by_warm_ups<'a>(group: &LineGroup<'a>) -> Vec<Vec<&'a Line>> {
    let mut numbers: Vec<usize> = group.lines.iter().filter_map(|line| line.warm_ups).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let mut found: Vec<Vec<&Line>> = Vec::new();
    for number in numbers {
        let lines: Vec<&Line> =
            group.lines.iter().filter(|line| line.warm_ups == Some(number)).copied().collect();
        for line in best(&lines) {
            match found.iter_mut().find(|all| all.first().is_some_and(|first| same_method(first, line))) {
                Some(all) => all.push(line),
                None => found.push(vec![line]),
            }
        }
    }
    found
}

/// Makes the table of acceptance by the number of texts learnt from.
pub(super) fn by_prior(group: &LineGroup<'_>) -> Option<Table> {
    let row = |line: &Line| {
        let mut cells = setting(line);
        cells.extend([
            Cell::shown(line.warm_ups),
            Cell::of(line.acceptance, 2),
            Cell::of(line.guessed, 2),
            Cell::of(line.tokens_per_pass, 2),
        ]);
        cells.extend(pace(line));
        cells
    };
    let rows: Vec<Vec<Cell>> = by_warm_ups(group).into_iter().flatten().map(row).collect();
    let about = "Accepted among drafted tokens, share of all tokens that the counts guess, tokens for each \
        pass and throughput, by the number of texts that the prior was learnt from.";
    let head = heads(&[&["texts learnt", "acceptance", "guessed", "tokens/pass"][..], &PACE].concat());
    let title = "Acceptance by grammar and size of the prior";
    (!rows.is_empty()).then(|| table(group, "acceptance-by-prior", title, about, &head, rows))
}

/// Makes the table of acceptance beside its bound by the best coupling.
pub(super) fn coupling(group: &LineGroup<'_>) -> Option<Table> {
    let lines = best(&group.lines);
    let row = |line: &&Line| {
        let mut cells = setting(line);
        cells.extend([
            Cell::shown(line.warm_ups),
            Cell::of(line.overlap, 3),
            Cell::of(line.guessed, 3),
            Cell::of(line.acceptance, 3),
        ]);
        cells
    };
    let rows: Vec<Vec<Cell>> = lines.iter().filter(|line| line.overlap.is_some()).map(row).collect();
    let about = "At every token of the texts, found out afterwards: 1 - TV, the mean over places of the sum \
        over tokens of the lesser of two probabilities, the counts' and the model's under its mask, which is \
        how often draws of the two agree under maximal coupling; the share of places where the guess by \
        counts is the token that came (Gumbel coupling, where guesses share the draw's noise; without it the \
        guess is the likeliest token, which can be right more often than a draw); and the accepted among \
        the tokens that were drafted, which are guesses that seemed worth it, by all proposers.";
    let head = heads(&["texts learnt", "1 - TV", "guessed", "acceptance of drafts"]);
    let title = "Gumbel coupling beside maximal coupling";
    (!rows.is_empty()).then(|| table(group, "coupling", title, about, &head, rows))
}

/// Makes the table of t(n)/t(1) of the models.
pub(super) fn passes(curves: &[PassCurve]) -> Option<Table> {
    let mut rows = Vec::new();
    for curve in curves {
        let Some(first) = curve.seconds.first() else { continue };
        rows.extend((1_usize..).zip(&curve.seconds).map(|(n, seconds)| {
            let relative = Cell::Number(seconds / first, 2);
            vec![text(&curve.model), Cell::shown(Some(n)), Cell::Number(1e3 * seconds, 3), relative]
        }));
    }
    let (context, repeats) = curves.first().map_or((0, 0), |curve| (curve.context, curve.repeats));
    (!rows.is_empty()).then(|| Table {
        id: "passes".to_owned(),
        title: "Cost of longer passes".to_owned(),
        about: format!(
            "Milliseconds of a pass over n new tokens with the logits of all, and relative to a pass over \
             one; medians of {repeats} that took turns, behind {context} tokens."
        ),
        head: ["model", "n", "t(n) ms", "t(n)/t(1)"].map(str::to_owned).to_vec(),
        rows,
    })
}

/// Makes the figure of t(n)/t(1) of the models.
pub(super) fn passes_figure(curves: &[PassCurve]) -> Option<Figure> {
    let series = |curve: &PassCurve| {
        let first = curve.seconds.first().copied()?;
        let exact = |seconds: &f64| Estimate::exact(seconds / first, curve.repeats);
        let points = (1..).zip(&curve.seconds).map(|(n, seconds)| (n, exact(seconds))).collect();
        Some(Series { name: curve.model.clone(), points })
    };
    let series: Vec<Series<usize>> = curves.iter().filter_map(series).collect();
    (!series.is_empty()).then(|| Figure {
        id: "passes".to_owned(),
        title: "Cost of longer passes".to_owned(),
        about: "The median time of a pass over n new tokens, relative to a pass over one.".to_owned(),
        axis: "t(n)/t(1)".to_owned(),
        across: "n, new tokens of a pass".to_owned(),
        ticks: Vec::new(),
        base: Some(1.0),
        marks: Marks::Lines(vec![Panel { name: String::new(), series, levels: Vec::new() }]),
    })
}

/// Makes the figure of acceptance by the size of the prior: a panel for each grammar, a line for each method.
pub(super) fn prior_figures(group: &LineGroup<'_>) -> Option<Figure> {
    let mut panels: Vec<Panel> = Vec::new();
    for lines in by_warm_ups(group) {
        let Some(first) = lines.first() else { continue };
        let points = lines.iter().filter_map(|line| Some((line.warm_ups?, line.acceptance?))).collect();
        let series = Series { name: first.method_name(), points };
        match panels.iter_mut().find(|panel| panel.name == first.grammar) {
            Some(panel) => panel.series.push(series),
            None => {
                panels.push(Panel { name: first.grammar.clone(), series: vec![series], levels: Vec::new() })
            }
        }
    }
    (!panels.is_empty()).then(|| Figure {
        id: format!("acceptance-by-prior{}", group.suffix),
        title: format!("Acceptance by size of the prior{}", group.title),
        about:
            "Accepted among drafted tokens by the number of texts that the prior was learnt from, a panel \
            for each grammar and a colour for each method; bars are 95% intervals."
                .to_owned(),
        axis: "accepted among drafted tokens".to_owned(),
        across: "texts that the prior was learnt from".to_owned(),
        ticks: Vec::new(),
        base: None,
        marks: Marks::Lines(panels),
    })
}

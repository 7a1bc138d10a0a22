//! What is drawn: throughput by s, and throughput and acceptance by grammar and method.

use super::{
    super::{row::UNCONSTRAINED, statistics::Estimate, summary::Line},
    drafting,
    tables::{Group, best, groups, sweeps},
};

/// A figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Its name in file names and addresses.
    pub id: String,
    /// Its title.
    pub title: String,
    /// What it shows.
    pub about: String,
    /// What the numbers are.
    pub axis: String,
    /// What the places of lines are.
    pub across: String,
    /// What is drawn.
    pub marks: Marks,
}

/// What is drawn in a figure.
#[derive(Debug, Clone, PartialEq)]
pub enum Marks {
    /// Lines over numbers.
    Lines(Vec<Series<usize>>),
    /// Points beside the names of methods.
    Points(Vec<Series<String>>),
}

/// Estimates that belong together, each at its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Series<P> {
    /// What they are of.
    pub name: String,
    /// Places and estimates, in order.
    pub points: Vec<(P, Estimate)>,
}

/// All figures that the lines give.
pub(super) fn all(lines: &[Line]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for group in groups(lines) {
        figures.extend(by_length(&group));
        figures.extend(by_method(
            &group,
            "throughput",
            "Throughput by grammar and method",
            "tokens/s over unconstrained",
            |line| line.throughput,
        ));
        figures.extend(drafting::prior_figures(&group));
        figures.extend(by_method(
            &group,
            "acceptance",
            "Acceptance by grammar and method",
            "accepted among drafted tokens",
            |line| line.acceptance,
        ));
    }
    // Where no text has the number there is nothing to draw, and no range to draw it in.
    figures.retain_mut(|figure| match &mut figure.marks {
        Marks::Lines(series) => {
            series.retain(|one| !one.points.is_empty());
            !series.is_empty()
        }
        Marks::Points(_) => true,
    });
    figures
}

/// Throughput by s: a figure for each method that has several, with a line for each grammar, k and threshold.
fn by_length(group: &Group<'_>) -> Vec<Figure> {
    let mut methods: Vec<(&str, Vec<Series<usize>>)> = Vec::new();
    let sweeps = sweeps(&group.lines);
    let several = |of: fn(&Line) -> Option<String>| {
        let mut found: Vec<Option<String>> = sweeps.iter().flatten().map(|line| of(line)).collect();
        found.sort();
        found.dedup();
        found.len() > 1
    };
    let ks = several(|line| line.k.map(|k| k.to_string()));
    let thresholds = several(|line| line.threshold.map(|threshold| threshold.to_string()));
    for sweep in &sweeps {
        let Some(first) = sweep.first() else { continue };
        let mut name = first.grammar.clone();
        if let Some(k) = first.k.filter(|_| ks) {
            name += &format!(", k = {k}");
        }
        if let Some(threshold) = first.threshold.filter(|_| thresholds) {
            name += &format!(", threshold {threshold}");
        }
        let points = sweep.iter().filter_map(|line| Some((line.s?, line.throughput?))).collect();
        let series = Series { name, points };
        match methods.iter_mut().find(|(method, _)| *method == first.method) {
            Some((_, all)) => all.push(series),
            None => methods.push((&first.method, vec![series])),
        }
    }
    let figure = |(number, (method, series)): (usize, (&str, Vec<Series<usize>>))| Figure {
        id: format!("throughput-by-s-{}{}", number + 1, group.suffix),
        title: format!("Figure 5: throughput by s, {method}{}", group.title),
        about:
            "Tokens a second relative to unconstrained by the most tokens of a draft; bars are 95% intervals."
                .to_owned(),
        axis: "tokens/s over unconstrained".to_owned(),
        across: "s, the most tokens of a draft".to_owned(),
        marks: Marks::Lines(series),
    };
    methods.into_iter().enumerate().map(figure).collect()
}

/// A number by grammar and method, if several methods have it.
fn by_method(
    group: &Group<'_>,
    id: &str,
    title: &str,
    axis: &str,
    of: fn(&Line) -> Option<Estimate>,
) -> Option<Figure> {
    let mut series: Vec<Series<String>> = Vec::new();
    for line in best(&group.lines).into_iter().filter(|line| line.method != UNCONSTRAINED) {
        let Some(estimate) = of(line) else { continue };
        let point = (line.method.clone(), estimate);
        match series.iter_mut().find(|one| one.name == line.grammar) {
            Some(one) => one.points.push(point),
            None => series.push(Series { name: line.grammar.clone(), points: vec![point] }),
        }
    }
    let about =
        "Each method at the largest k; of several s and thresholds the fastest. Bars are 95% intervals.";
    (series.iter().map(|one| one.points.len()).sum::<usize>() > 1).then(|| Figure {
        id: format!("{id}{}", group.suffix),
        title: format!("{title}{}", group.title),
        about: about.to_owned(),
        axis: axis.to_owned(),
        across: String::new(),
        marks: Marks::Points(series),
    })
}

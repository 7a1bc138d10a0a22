//! The figures: throughput by s and by k, and throughput and acceptance by grammar and method.

use super::speed::{COMPARED, compared};
use super::table::{LineGroup, best, groups, sweeps};
use super::{drafting, texts};
use crate::experiment::row::{K, UNCONSTRAINED};
use crate::experiment::{statistics::Estimate, summary::Line};

/// A figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Name in file names and addresses.
    pub id: String,
    /// The figure's title.
    pub title: String,
    /// A sentence about what it shows.
    pub about: String,
    /// Label of the axis of values.
    pub axis: String,
    /// Label of the axis of places.
    pub across: String,
    /// Names of the places 0, 1 and so on, if places are not numbers.
    pub ticks: Vec<String>,
    /// The value that everything is relative to, drawn as a line across.
    pub base: Option<f64>,
    /// The marks.
    pub marks: Marks,
}

/// The marks of a figure.
#[derive(Debug, Clone, PartialEq)]
pub enum Marks {
    /// Panels of lines over numbers, with the same axes and colours.
    Lines(Vec<Panel>),
    /// Points beside the names of methods.
    Points(Vec<Series<String>>),
}

/// A part of a figure, for one grammar.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    /// Title of the panel.
    pub name: String,
    /// Lines.
    pub series: Vec<Series<usize>>,
    /// Values that do not depend on the place, with the names of their methods.
    pub levels: Vec<(String, Estimate)>,
}

/// Estimates that belong together, each at its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Series<P> {
    /// The name of the series.
    pub name: String,
    /// Places and estimates, in order.
    pub points: Vec<(P, Estimate)>,
}

/// A function from a line to one of its numbers.
type Of = fn(&Line) -> Option<Estimate>;

/// Kinds of throughput: id, label of the axis, number, and base.
const RATES: [(&str, &str, Of, Option<f64>); 2] = [
    ("throughput", "tokens/s over unconstrained", |line| line.throughput, Some(1.0)),
    ("tokens-per-second", "tokens/s", |line| line.tokens_per_second, None),
];

/// Makes all figures of the lines.
pub(super) fn all(lines: &[Line]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for group in groups(lines) {
        figures.extend(by_length(&group));
        figures.extend(by_lookahead(&group));
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
        Marks::Lines(panels) => {
            panels.iter_mut().for_each(|panel| panel.series.retain(|one| !one.points.is_empty()));
            panels.retain(|panel| !panel.series.is_empty());
            !panels.is_empty()
        }
        Marks::Points(_) => true,
    });
    figures
}

/// Returns the distinct values of a list, in order of first occurrence.
pub(super) fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for value in values {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}

/// Makes figures of throughput by s and k: one for each method and threshold that has several s, relative and
/// not, with a panel for each grammar, a line for each k, and methods without drafts across.
fn by_length(group: &LineGroup<'_>) -> Vec<Figure> {
    let sweeps = sweeps(&group.lines);
    let firsts = || sweeps.iter().filter_map(|sweep| sweep.first().copied());
    let several = distinct(firsts().map(|line| line.threshold)).len() > 1;
    let ks = distinct(firsts().map(|line| line.k)).len() > 1;
    let kinds = distinct(firsts().map(|line| (line.method_name(), line.threshold)));
    let mut figures = Vec::new();
    for (number, (method, threshold)) in kinds.into_iter().enumerate() {
        let is_it = |line: &Line| line.method_name() == method && line.threshold == threshold;
        let of: Vec<&Vec<&Line>> =
            sweeps.iter().filter(|sweep| sweep.first().is_some_and(|line| is_it(line))).collect();
        let name = match threshold.filter(|_| several) {
            Some(threshold) => format!("{method}, threshold {threshold}"),
            None => method.clone(),
        };
        for (id, axis, rate, base) in RATES {
            figures.push(Figure {
                id: format!("{id}-by-s-{}{}", number + 1, group.suffix),
                title: format!("{} by s and k, {name}{}", heading(base), group.title),
                about: format!(
                    "{} by the most tokens of a draft, a panel for each grammar and a colour for each k; \
                     dashed are methods without drafts, at the largest k. Bars are 95% intervals.",
                    numbers(base)
                ),
                axis: axis.to_owned(),
                across: "s, the most tokens of a draft".to_owned(),
                ticks: Vec::new(),
                base,
                marks: Marks::Lines(panels(group, &of, ks, rate, base.is_some())),
            });
        }
    }
    figures
}

fn heading(base: Option<f64>) -> &'static str {
    if base.is_some() { "Throughput" } else { "Tokens a second" }
}

fn numbers(base: Option<f64>) -> &'static str {
    if base.is_some() { "Tokens a second relative to unconstrained" } else { "Tokens a second" }
}

/// Makes the panels of sweeps over s.
fn panels(group: &LineGroup<'_>, sweeps: &[&Vec<&Line>], ks: bool, rate: Of, relative: bool) -> Vec<Panel> {
    let mut panels: Vec<Panel> = Vec::new();
    for sweep in sweeps {
        let Some(first) = sweep.first() else { continue };
        let mut name = match first.k.filter(|_| ks) {
            Some(k) => format!("k = {k}"),
            None => first.method_name(),
        };
        if let Some(texts) = first.warm_ups {
            name += &format!(", {texts} texts learnt");
        }
        let points = sweep.iter().filter_map(|line| Some((line.s?, rate(line)?))).collect();
        let series = Series { name, points };
        match panels.iter_mut().find(|panel| panel.name == first.grammar) {
            Some(panel) => panel.series.push(series),
            None => panels.push(Panel {
                name: first.grammar.clone(),
                series: vec![series],
                levels: levels(group, &first.grammar, rate, relative),
            }),
        }
    }
    panels
}

/// Returns methods without drafts, to compare lengths with; unconstrained texts are the base of relative
/// numbers.
fn levels(group: &LineGroup<'_>, grammar: &str, rate: Of, relative: bool) -> Vec<(String, Estimate)> {
    let lines = compared(group, grammar);
    let of = |method: &'static str| lines.iter().filter(move |line| line.method == method);
    let compared = COMPARED.into_iter().filter(|method| !relative || *method != UNCONSTRAINED).flat_map(of);
    compared.filter_map(|line| Some((line.method_name(), rate(line)?))).collect()
}

/// Makes the figure of throughput by k: a panel for each grammar, a line for each method that has several; of
/// several lengths and thresholds the fastest.
fn by_lookahead(group: &LineGroup<'_>) -> Option<Figure> {
    let lines: Vec<&Line> = texts::by_k(group).into_iter().filter(|line| line.k.is_some()).collect();
    let mut ks: Vec<K> = lines.iter().filter_map(|line| line.k).collect();
    ks.sort_unstable();
    ks.dedup();
    let mut panels: Vec<Panel> = Vec::new();
    for grammar in distinct(lines.iter().map(|line| line.grammar.as_str())) {
        let of: Vec<&&Line> = lines.iter().filter(|line| line.grammar == grammar).collect();
        let series = distinct(of.iter().map(|line| line.method_name())).into_iter().map(|method| {
            let place =
                |line: &&&&Line| Some((ks.iter().position(|k| Some(*k) == line.k)?, line.throughput?));
            let mut points: Vec<(usize, Estimate)> = of
                .iter()
                .filter(|line| line.method_name() == method)
                .filter_map(|line| place(&line))
                .collect();
            points.sort_by_key(|(at, _)| *at);
            Series { name: method, points }
        });
        panels.push(Panel { name: grammar.to_owned(), series: series.collect(), levels: Vec::new() });
    }
    (!panels.is_empty()).then(|| Figure {
        id: format!("throughput-by-k{}", group.suffix),
        title: format!("Throughput by k{}", group.title),
        about:
            "Tokens a second relative to unconstrained by lookahead, a panel for each grammar and a colour \
            for each method; of several s and thresholds the fastest. Bars are 95% intervals."
                .to_owned(),
        axis: "tokens/s over unconstrained".to_owned(),
        across: "k, the terminals that a token may reach into".to_owned(),
        ticks: ks.iter().map(ToString::to_string).collect(),
        base: Some(1.0),
        marks: Marks::Lines(panels),
    })
}

/// Makes the figure of a number by grammar and method, if several methods have it.
fn by_method(
    group: &LineGroup<'_>,
    id: &str,
    title: &str,
    axis: &str,
    of: fn(&Line) -> Option<Estimate>,
) -> Option<Figure> {
    let mut series: Vec<Series<String>> = Vec::new();
    for line in best(&group.lines).into_iter().filter(|line| line.method != UNCONSTRAINED) {
        let Some(estimate) = of(line) else { continue };
        let point = (line.method_name(), estimate);
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
        ticks: Vec::new(),
        base: Some(1.0),
        marks: Marks::Points(series),
    })
}

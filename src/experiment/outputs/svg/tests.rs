//! Drawings of made-up figures, read as text.

use std::collections::BTreeSet;

use super::*;
use crate::experiment::{
    outputs::figures::{Panel, Series},
    statistics::Estimate,
};

const GRAMMARS: [&str; 5] = ["json", "gsm8k", "xml_person", "rpg", "c"];
const LEVELS: [&str; 2] = ["always", "opportunistic"];

fn estimate(value: f64, interval: bool) -> Estimate {
    let bound = |at: f64| interval.then_some(at);
    Estimate { value, low: bound(0.9 * value), high: bound(1.1 * value), n: 4 }
}

/// Creates a figure with this number of panels, and of lines in each.
fn figure(panels: usize, lines: usize, interval: bool) -> Figure {
    let series = |line: usize| {
        let of = |s: usize| 1.0 + 0.1 * f64::from(u32::try_from(s * (line + 1)).unwrap());
        Series {
            name: format!("k = {line}"),
            points: (1..6).map(|s| (s, estimate(of(s), interval))).collect(),
        }
    };
    let panel = |name: &&str| Panel {
        name: (*name).to_owned(),
        series: (0..lines).map(series).collect(),
        levels: LEVELS.iter().map(|name| ((*name).to_owned(), estimate(0.8, true))).collect(),
    };
    Figure {
        id: "made-up".to_owned(),
        title: "Made up".to_owned(),
        about: String::new(),
        axis: "tokens/s".to_owned(),
        across: "s".to_owned(),
        ticks: Vec::new(),
        base: Some(1.0),
        marks: Marks::Lines(GRAMMARS.iter().take(panels).map(panel).collect()),
    }
}

/// Returns the value of an attribute.
fn attribute<'a>(element: &'a str, name: &str) -> &'a str {
    let (_, rest) = element.split_once(&format!(" {name}=\"")).unwrap_or_else(|| panic!("{name}: {element}"));
    rest.split_once('"').unwrap().0
}

/// A group of a class: its place, its size, and its content.
struct DrawnGroup<'a> {
    at: (i32, i32),
    size: (i32, i32),
    inside: &'a str,
}

fn groups<'a>(drawing: &'a str, class: &str) -> Vec<DrawnGroup<'a>> {
    let start = format!("<g class=\"{class}\"");
    let group = |part: &'a str| {
        let (head, rest) = part.split_once('>').unwrap();
        let at = attribute(head, "transform").trim_start_matches("translate(").trim_end_matches(')');
        let (x, y) = at.split_once(',').unwrap();
        let number = |text: &str| text.parse::<i32>().unwrap();
        DrawnGroup {
            at: (number(x), number(y)),
            size: (number(attribute(head, "data-width")), number(attribute(head, "data-height"))),
            inside: rest.split_once("</g>").unwrap().0,
        }
    };
    drawing.split(&start).skip(1).map(group).collect()
}

/// Returns the colours of lines, dashed ones included; axes, intervals and the base are thinner.
fn colours(panel: &str) -> BTreeSet<&str> {
    let lines = panel.split("<polyline").skip(1).map(|rest| rest.split_once("/>").unwrap().0);
    let thick = lines.filter(|line| attribute(line, "stroke-width") == "2");
    thick.map(|line| attribute(line, "stroke")).collect()
}

fn overlap(one: &DrawnGroup<'_>, other: &DrawnGroup<'_>) -> bool {
    let apart = |one: i32, size: i32, other: i32, wide: i32| one + size <= other || other + wide <= one;
    !apart(one.at.0, one.size.0, other.at.0, other.size.0)
        && !apart(one.at.1, one.size.1, other.at.1, other.size.1)
}

#[test]
fn each_grammar_has_a_panel_and_each_line_a_colour() {
    for (panels, lines) in [(1, 1), (1, 20), (2, 4), (3, 9), (5, 4), (5, 12)] {
        let drawing = draw(&figure(panels, lines, true)).unwrap();
        let found = groups(&drawing, "panel");
        assert_eq!(found.len(), panels);
        for (panel, name) in found.iter().zip(GRAMMARS) {
            assert!(panel.inside.contains(&format!("\n{name}\n")), "{name} has no panel");
            assert_eq!(colours(panel.inside).len(), lines + LEVELS.len(), "{name}");
        }
        // A name has the same colour in all panels, and the legend has them all.
        assert!(found.iter().all(|panel| colours(panel.inside) == colours(found[0].inside)));
    }
}

#[test]
fn the_legend_is_outside_of_the_plots() {
    for (panels, lines) in [(1, 1), (1, 20), (2, 4), (4, 2), (5, 30)] {
        let drawing = draw(&figure(panels, lines, true)).unwrap();
        let (found, legends) = (groups(&drawing, "panel"), groups(&drawing, "legend"));
        let [legend] = &legends[..] else { panic!("{} legends", legends.len()) };
        for (index, panel) in found.iter().enumerate() {
            assert!(!overlap(panel, legend) && !panel.inside.contains("k = 0"));
            assert!(found[index + 1..].iter().all(|other| !overlap(panel, other)));
        }
        let (width, height) = (attribute(&drawing, "width"), attribute(&drawing, "height"));
        let whole =
            DrawnGroup { at: (0, 0), size: (width.parse().unwrap(), height.parse().unwrap()), inside: "" };
        for part in found.iter().chain([legend]) {
            assert!(part.at.0 + part.size.0 <= whole.size.0 && part.at.1 + part.size.1 <= whole.size.1);
        }
        // All names are in it, each inside of its box.
        let names: Vec<String> = (0..lines).map(|line| format!("k = {line}")).collect();
        let names = names.iter().map(String::as_str).chain(LEVELS);
        for name in names {
            let (before, _) = legend.inside.split_once(&format!("\n{name}\n")).expect(name);
            let text = before.rsplit("<text").next().unwrap();
            let (x, y): (i32, i32) =
                (attribute(text, "x").parse().unwrap(), attribute(text, "y").parse().unwrap());
            assert!(0 < x && x < legend.size.0 && 0 < y && y < legend.size.1, "{name} at {x}, {y}");
        }
    }
}

#[test]
fn values_without_an_interval_are_drawn_as_points() {
    let bars = |drawing: &str| drawing.matches("<circle").count();
    let (with, without) = (draw(&figure(2, 3, true)).unwrap(), draw(&figure(2, 3, false)).unwrap());
    // An interval has a point too, of another size.
    assert_eq!(bars(&with), bars(&without));
    let lines = |drawing: &str| drawing.matches("stroke-width=\"1\"").count();
    assert!(lines(&with) > lines(&without) + 2 * 3 * 5);
}

#[test]
fn ticks_that_are_no_numbers_have_names() {
    let mut named = figure(2, 2, true);
    named.ticks = ["0", "1", "2", "3", "4", "infinite"].map(str::to_owned).to_vec();
    let drawing = draw(&named).unwrap();
    for panel in groups(&drawing, "panel") {
        for name in ["1", "2", "3", "4", "infinite"] {
            assert_eq!(panel.inside.matches(&format!("\n{name}\n")).count(), 1, "{name}");
        }
    }
    assert!(!draw(&figure(2, 2, true)).unwrap().contains("infinite"));
}

/// The names of places do not run into one another, however many there are.
#[test]
fn names_of_ticks_do_not_overlap() {
    let mut crowded = figure(1, 1, true);
    let Marks::Lines(panels) = &mut crowded.marks else { panic!("no lines") };
    panels[0].series[0].points = [1, 2, 3, 10, 11, 30, 100].map(|at| (at, estimate(1.0, true))).to_vec();
    let drawing = draw(&crowded).unwrap();
    let inside = groups(&drawing, "panel")[0].inside;
    let shown: Vec<bool> =
        [1, 2, 3, 10, 11, 30, 100].map(|at| inside.contains(&format!("\n{at}\n"))).to_vec();
    assert_eq!(shown, [true, false, false, true, false, true, true]);
}

//! Figures as SVG, by `plotters`: lines over numbers, a panel for each grammar, with the same axes and
//! colours and a legend below them all; and points beside names, series under series, with intervals and the
//! base at 1.
//!
//! Invariant: a name has one colour in all panels and series, and no other name has it; the legend shares no
//! place with a panel. Each panel and the legend is a group of its own, by class.

use std::fmt::Write;

use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::{coord::Shift, element::DashedPathElement, prelude::*};

use super::figures::{Figure, Marks, Panel, Series};
use crate::experiment::{error::ExperimentError, statistics::Estimate};

/// Draws a figure as SVG.
pub(super) fn draw(figure: &Figure) -> Result<String, ExperimentError> {
    let drawn = match &figure.marks {
        Marks::Lines(panels) => draw_panels(figure, panels),
        Marks::Points(series) => draw_points(&figure.axis, series),
    };
    drawn.map_err(|error| ExperimentError::Figure { title: figure.title.clone(), message: error.to_string() })
}

/// Width of a drawing, and number of panels side by side.
const WIDTH: u32 = 960;
const ACROSS: usize = 3;
/// Width of a drawing of one panel.
const ALONE: u32 = 620;
/// Height of a panel.
const HEIGHT: u32 = 270;
/// Height of a line of the legend, width of its samples and gaps, and of a letter of any name.
const LINE: u32 = 22;
const SAMPLE: u32 = 34;
const GAP: u32 = 24;
const LETTER: u32 = 7;
/// Margin around the legend's entries.
const EDGE: u32 = 10;

/// A rectangle in a drawing.
#[derive(Debug, Clone, Copy)]
struct PanelFrame {
    at: (u32, u32),
    size: (u32, u32),
}

/// The places of panels and legend in a drawing.
#[derive(Debug)]
struct Layout {
    size: (u32, u32),
    panels: Vec<PanelFrame>,
    legend: PanelFrame,
    /// Places of the legend's entries, from its corner.
    entries: Vec<(u32, u32)>,
}

impl Layout {
    /// Places the panels in a grid, and the legend below it.
    fn new(panels: usize, names: &[&str]) -> Result<Self, DrawingError> {
        let across = panels.clamp(1, ACROSS);
        let width = if panels == 1 { ALONE } else { WIDTH };
        let each = width / u32::try_from(across)?;
        let mut frames = Vec::new();
        for index in 0..panels {
            let (row, column) = (u32::try_from(index / across)?, u32::try_from(index % across)?);
            frames.push(PanelFrame { at: (column * each, row * HEIGHT), size: (each, HEIGHT) });
        }
        let top = u32::try_from(panels.div_ceil(across))? * HEIGHT;
        let (mut entries, mut at) = (Vec::new(), (EDGE, EDGE));
        for name in names {
            let wide = SAMPLE + LETTER * u32::try_from(name.chars().count())? + GAP;
            if at.0 > EDGE && at.0 + wide > width - EDGE {
                at = (EDGE, at.1 + LINE);
            }
            entries.push(at);
            at.0 += wide;
        }
        let height = if names.is_empty() { 0 } else { at.1 + LINE + EDGE };
        let legend = PanelFrame { at: (0, top), size: (width, height) };
        Ok(Self { size: (width, top + height), panels: frames, legend, entries })
    }
}

/// Lists the names of lines and levels in order of first occurrence: the index decides the colour.
fn names(panels: &[Panel]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    let lines = panels.iter().flat_map(|panel| panel.series.iter().map(|one| one.name.as_str()));
    let levels = panels.iter().flat_map(|panel| panel.levels.iter().map(|(name, _)| name.as_str()));
    for name in lines.chain(levels) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Draws the figure.
fn draw_panels(figure: &Figure, panels: &[Panel]) -> Result<String, DrawingError> {
    let names = names(panels);
    let layout = Layout::new(panels.len(), &names)?;
    let ((width, height), scale) = (layout.size, Scale::of(figure, panels));
    let mut out = format!(
        "<svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         xmlns=\"http://www.w3.org/2000/svg\">\n\
         <rect x=\"0\" y=\"0\" width=\"{width}\" height=\"{height}\" opacity=\"1\" fill=\"{PAPER}\" \
         stroke=\"none\"/>\n"
    );
    for (panel, frame) in panels.iter().zip(&layout.panels) {
        let part = part(*frame, |area| scale.panel(area, panel, &names))?;
        let _ = write!(out, "{}", grouped("panel", *frame, &part));
    }
    if !names.is_empty() {
        let is_level =
            |name: &str| panels.iter().any(|panel| panel.levels.iter().any(|(level, _)| level == name));
        let part = part(layout.legend, |area| legend(area, &layout, &names, &is_level))?;
        let _ = write!(out, "{}", grouped("legend", layout.legend, &part));
    }
    out += "</svg>\n";
    Ok(out)
}

/// Wraps a part of the drawing in a group with its place.
fn grouped(class: &str, PanelFrame { at: (x, y), size: (width, height) }: PanelFrame, part: &str) -> String {
    format!(
        "<g class=\"{class}\" data-width=\"{width}\" data-height=\"{height}\" \
         transform=\"translate({x},{y})\">\n{part}</g>\n"
    )
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Draws into a frame; the element around it is left out.
fn part(
    frame: PanelFrame,
    draw: impl FnOnce(&Area<'_>) -> Result<(), DrawingError>,
) -> Result<String, DrawingError> {
    let mut drawing = String::new();
    {
        let area = SVGBackend::with_string(&mut drawing, frame.size).into_drawing_area();
        draw(&area)?;
        area.present()?;
    }
    let start = drawing.find('>').map_or(0, |at| at + 1);
    let inner = drawing.get(start..).unwrap_or_default().trim_start();
    Ok(inner.trim_end().trim_end_matches("</svg>").to_owned())
}

/// Draws names beside samples of their lines: levels are dashed.
fn legend(
    area: &Area<'_>,
    layout: &Layout,
    names: &[&str],
    is_level: &dyn Fn(&str) -> bool,
) -> Result<(), DrawingError> {
    let half = i32::try_from(LINE / 2)?;
    for (index, (name, (x, y))) in names.iter().zip(&layout.entries).enumerate() {
        let (x, y) = (i32::try_from(*x)?, i32::try_from(*y)? + half);
        let style = colour(index).stroke_width(2);
        let ends = [(x, y), (x + i32::try_from(SAMPLE)? - 8, y)];
        if is_level(name) {
            area.draw(&DashedPathElement::new(ends, 5, 4, style))?;
        } else {
            area.draw(&PathElement::new(ends, style))?;
        }
        let style = font(13).pos(Pos::new(HPos::Left, VPos::Center));
        area.draw_text(name, &style, (x + i32::try_from(SAMPLE)?, y))?;
    }
    Ok(())
}

/// Number of names of places that fit below an axis.
const MOST_TICKS: f64 = 12.0;

/// Returns places at least this far apart, the smallest first.
fn apart(mut places: Vec<f64>, least: f64) -> Vec<f64> {
    places.sort_by(f64::total_cmp);
    let mut found: Vec<f64> = Vec::new();
    for place in places {
        if found.last().is_none_or(|last| place - last > least.max(0.25)) {
            found.push(place);
        }
    }
    found
}

/// The axes of all panels.
struct Scale<'a> {
    figure: &'a Figure,
    first: f64,
    last: f64,
    top: f64,
    /// Places that are named below the axis.
    places: Vec<f64>,
}

impl<'a> Scale<'a> {
    /// Fits the axes to the points of all panels.
    fn of(figure: &'a Figure, panels: &[Panel]) -> Self {
        let series = || panels.iter().flat_map(|panel| &panel.series);
        let places = || series().flat_map(|one| one.points.iter().map(|(at, _)| number(*at)));
        let (first, last) =
            (places().fold(f64::INFINITY, f64::min), places().fold(f64::NEG_INFINITY, f64::max));
        let levels = panels.iter().flat_map(|panel| panel.levels.iter().map(|(_, level)| level));
        let points = series().flat_map(|one| one.points.iter().map(|(_, estimate)| estimate));
        Self {
            figure,
            first,
            last,
            top: largest(points.chain(levels)),
            places: apart(places().collect(), (last - first) / MOST_TICKS),
        }
    }

    fn tick(&self, at: f64) -> String {
        let is_it = |(place, _): &(usize, &String)| (number(*place) - at).abs() < 0.25;
        let name = self.figure.ticks.iter().enumerate().find(is_it);
        name.map_or_else(|| format!("{at:.0}"), |(_, name)| name.clone())
    }

    /// Draws lines with intervals, side by side so that no interval hides another, and levels across.
    fn panel(&self, area: &Area<'_>, panel: &Panel, names: &[&str]) -> Result<(), DrawingError> {
        let of = |name: &str| names.iter().position(|known| *known == name).map_or(INK_COLOUR, colour);
        let (left, right) = (self.first - 0.5, self.last + 0.5);
        let figures = usize::from(self.top < 20.0);
        let mut chart = ChartBuilder::on(area)
            .margin(8)
            .margin_right(14)
            .caption(&panel.name, font(15))
            .x_label_area_size(40)
            .y_label_area_size(58)
            .build_cartesian_2d(left..right, 0.0..self.top)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .bold_line_style(GRID_COLOUR)
            .light_line_style(TRANSPARENT)
            .axis_style(INK_COLOUR)
            .label_style(font(13))
            .axis_desc_style(font(13))
            .x_labels(0)
            .y_labels(6)
            .y_label_formatter(&|y| format!("{y:.figures$}"))
            .x_desc(self.figure.across.as_str())
            .y_desc(self.figure.axis.as_str())
            .draw()?;
        for at in &self.places {
            let (x, y) = chart.backend_coord(&(*at, 0.0));
            area.draw(&PathElement::new([(x, y), (x, y + 5)], INK_COLOUR))?;
            let style = font(13).pos(Pos::new(HPos::Center, VPos::Top));
            area.draw_text(&self.tick(*at), &style, (x, y + 8))?;
        }
        if let Some(base) = self.figure.base {
            chart.draw_series([PathElement::new([(left, base), (right, base)], INK_COLOUR)])?;
        }
        for (name, level) in &panel.levels {
            let ends = [(left, level.value), (right, level.value)];
            chart.draw_series(DashedLineSeries::new(ends, 5, 4, of(name).stroke_width(2)))?;
        }
        for (index, one) in panel.series.iter().enumerate() {
            let (colour, many) = (of(&one.name), number(panel.series.len()));
            let aside = (0.5 / many).min(0.06) * (number(index) - (many - 1.0) / 2.0);
            let places: Vec<(f64, Estimate)> =
                one.points.iter().map(|(at, estimate)| (number(*at) + aside, *estimate)).collect();
            for (at, estimate) in &places {
                let value = estimate.value;
                match estimate.interval() {
                    Some((low, high)) => {
                        let bar = ErrorBar::new_vertical(*at, low, value, high, colour.filled(), 6);
                        chart.draw_series([bar])?;
                    }
                    None => {
                        chart.draw_series([Circle::new((*at, value), 3, colour.filled())])?;
                    }
                }
            }
            let line = places.iter().map(|(at, estimate)| (*at, estimate.value));
            chart.draw_series(LineSeries::new(line, colour.stroke_width(2)))?;
        }
        Ok(())
    }
}

/// Width of a drawing of points.
const POINTS_WIDTH: u32 = 760;
/// Height of one row, and of title and axis together.
const ROW: u32 = 22;
const AROUND: u32 = 70;
/// Bounds of the column of names.
const NAMES: std::ops::RangeInclusive<u32> = 90..=330;

/// Draws the figure.
fn draw_points(axis: &str, series: &[Series<String>]) -> Result<String, DrawingError> {
    let mut drawing = String::new();
    let rows: usize = series.iter().map(|one| one.points.len()).sum();
    let height = AROUND + ROW * u32::try_from(rows + series.len())?;
    {
        let area = SVGBackend::with_string(&mut drawing, (POINTS_WIDTH, height)).into_drawing_area();
        area.fill(&WHITE)?;
        points(&area, axis, series)?;
        area.present()?;
    }
    Ok(drawing)
}

/// Draws the points of all series from the top down, with error bars.
fn points(area: &Area<'_>, axis: &str, series: &[Series<String>]) -> Result<(), DrawingError> {
    let rows = series.iter().map(|one| one.points.len() + 1).sum::<usize>();
    let right = largest(series.iter().flat_map(|one| one.points.iter().map(|(_, estimate)| estimate)));
    let names = series.iter().flat_map(|one| one.points.iter().map(|(method, _)| method).chain([&one.name]));
    let longest = names.map(|name| name.chars().count()).max().unwrap_or(0);
    let width = LETTER * u32::try_from(longest)? + 20;
    let mut chart = ChartBuilder::on(area)
        .margin(10)
        .margin_right(24)
        .x_label_area_size(44)
        .y_label_area_size(width.clamp(*NAMES.start(), *NAMES.end()))
        .build_cartesian_2d(0.0..right, 0.0..number(rows))?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .y_labels(0)
        .bold_line_style(GRID_COLOUR)
        .light_line_style(TRANSPARENT)
        .axis_style(INK_COLOUR)
        .label_style(font(13))
        .axis_desc_style(font(13))
        .x_label_formatter(&|x| format!("{x:.1}"))
        .x_desc(axis)
        .draw()?;
    chart.draw_series([PathElement::new(vec![(1.0, 0.0), (1.0, number(rows))], INK_COLOUR)])?;
    let name = |text: &str, size: u32, at: (i32, i32)| {
        let style = font(size).pos(Pos::new(HPos::Right, VPos::Center));
        area.draw_text(text, &style, (at.0 - 10, at.1))
    };
    let mut named: Vec<&str> = Vec::new();
    // From the top down.
    let mut at = number(rows) - 0.5;
    for one in series {
        name(&one.name, 14, chart.backend_coord(&(0.0, at)))?;
        at -= 1.0;
        for (method, estimate) in &one.points {
            let index = named.iter().position(|name| name == method).unwrap_or(named.len());
            if index == named.len() {
                named.push(method);
            }
            let (colour, Estimate { value, .. }) = (colour(index), *estimate);
            match estimate.interval() {
                Some((low, high)) => {
                    let bar = ErrorBar::new_horizontal(at, low, value, high, colour.filled(), 7);
                    chart.draw_series([bar])?;
                }
                None => {
                    chart.draw_series([Circle::new((value, at), 3, colour.filled())])?;
                }
            }
            name(method, 12, chart.backend_coord(&(0.0, at)))?;
            at -= 1.0;
        }
    }
    Ok(())
}

/// The colour behind everything.
const PAPER: &str = "#FFFFFF";
const INK_COLOUR: RGBColor = RGBColor(0x22, 0x22, 0x24);
const GRID_COLOUR: RGBColor = RGBColor(0xDD, 0xDD, 0xDE);

/// Colours for lines, distinguishable also with colour blindness (Okabe and Ito), on light and dark paper.
const COLOURS: [RGBColor; 8] = [
    RGBColor(0x00, 0x72, 0xB2),
    RGBColor(0xD5, 0x5E, 0x00),
    RGBColor(0x00, 0x9E, 0x73),
    RGBColor(0xCC, 0x79, 0xA7),
    RGBColor(0x56, 0xB4, 0xE9),
    RGBColor(0xE6, 0x9F, 0x00),
    RGBColor(0x8C, 0x6B, 0xB1),
    RGBColor(0x80, 0x80, 0x80),
];

/// Error of a drawing.
type DrawingError = Box<dyn std::error::Error>;

/// Returns the font of a size.
fn font(size: u32) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&INK_COLOUR)
}

/// Returns the colour of an index: those of the list, then hues by the golden angle.
fn colour(index: usize) -> RGBColor {
    let Some(more) = index.checked_sub(COLOURS.len()) else { return COLOURS[index] };
    let turn = (0.05 + 0.381_966 * number(more)).fract();
    let (red, green, blue) = HSLColor(turn, 0.55, 0.38 + 0.04 * number(more % 5)).rgb();
    RGBColor(red, green, blue)
}

/// Returns the largest bound of all estimates, and at least that of the base.
fn largest<'a>(estimates: impl Iterator<Item = &'a Estimate>) -> f64 {
    1.05 * estimates.map(|estimate| estimate.high.unwrap_or(estimate.value)).fold(1.0, f64::max)
}

/// Converts a small number to a float.
fn number(length: usize) -> f64 {
    u32::try_from(length).map_or(f64::INFINITY, f64::from)
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod ink_tests {
    use std::collections::HashSet;

    use super::colour;

    #[test]
    fn colours_of_series_are_all_different() {
        let all: HashSet<(u8, u8, u8)> =
            (0..40).map(colour).map(|colour| (colour.0, colour.1, colour.2)).collect();
        assert_eq!(all.len(), 40);
    }
}

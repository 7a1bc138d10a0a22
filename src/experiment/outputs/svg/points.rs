//! Points beside names, series under series, with intervals and the base at 1. A name has one colour in all
//! series.

use plotters::{
    coord::Shift,
    prelude::*,
    style::text_anchor::{HPos, Pos, VPos},
};

use super::ink::{DrawingError, GRID_COLOUR, INK_COLOUR, colour, font, largest, number};
use crate::experiment::{outputs::figures::Series, statistics::Estimate};

/// Width of the drawing.
const WIDTH: u32 = 760;
/// Height of one row, and of title and axis together.
const ROW: u32 = 22;
const AROUND: u32 = 70;
/// Width of one character of a row's name, and bounds of the column of names.
const LETTER: u32 = 7;
const NAMES: std::ops::RangeInclusive<u32> = 90..=330;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Draws the figure.
pub(super) fn draw(axis: &str, series: &[Series<String>]) -> Result<String, DrawingError> {
    let mut drawing = String::new();
    let rows: usize = series.iter().map(|one| one.points.len()).sum();
    let height = AROUND + ROW * u32::try_from(rows + series.len())?;
    {
        let area = SVGBackend::with_string(&mut drawing, (WIDTH, height)).into_drawing_area();
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

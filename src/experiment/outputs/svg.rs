//! Figures as SVG, by `plotters`.
//!
//! All ink is one colour, and all paper another, so that a page can put its own in their place.

use plotters::{
    coord::Shift,
    prelude::*,
    style::text_anchor::{HPos, Pos, VPos},
};

use super::{
    super::{error::ExperimentError, statistics::Estimate},
    figures::{Figure, Marks, Series},
};

/// The colour of text and axes, as it stands in drawings.
pub(super) const INK: &str = "#222224";
/// The colour of the grid.
pub(super) const GRID: &str = "#DDDDDE";
/// The colour behind everything.
pub(super) const PAPER: &str = "#FFFFFF";

const INK_COLOUR: RGBColor = RGBColor(0x22, 0x22, 0x24);
const GRID_COLOUR: RGBColor = RGBColor(0xDD, 0xDD, 0xDE);

/// Told apart also by those who see few colours (Okabe and Ito), and on light and dark paper.
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

const WIDTH: u32 = 760;
/// Height of a line chart.
const HEIGHT: u32 = 400;
/// Height of one row of a dot plot, and of its title and axis together.
const ROW: u32 = 22;
const AROUND: u32 = 70;
/// Width of one character of a row's name, and bounds of the column of names.
const LETTER: u32 = 7;
const NAMES: std::ops::RangeInclusive<u32> = 90..=330;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// The figure as SVG.
pub(super) fn draw(figure: &Figure) -> Result<String, ExperimentError> {
    let mut drawing = String::new();
    let height = match &figure.marks {
        Marks::Lines(_) => HEIGHT,
        Marks::Points(series) => {
            let rows: usize = series.iter().map(|one| one.points.len()).sum();
            AROUND + ROW * u32::try_from(rows + series.len()).unwrap_or(0)
        }
    };
    let drawn = {
        let area = SVGBackend::with_string(&mut drawing, (WIDTH, height)).into_drawing_area();
        let drawn = area.fill(&WHITE).map_err(|error| error.to_string()).and_then(|()| match &figure.marks {
            Marks::Lines(series) => lines(&area, figure, series).map_err(|error| error.to_string()),
            Marks::Points(series) => points(&area, &figure.axis, series).map_err(|error| error.to_string()),
        });
        drawn.and_then(|()| area.present().map_err(|error| error.to_string()))
    };
    drawn.map_err(|message| ExperimentError::Figure { title: figure.title.clone(), message })?;
    Ok(drawing)
}

type Drawn = Result<(), Box<dyn std::error::Error>>;

fn font(size: u32) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&INK_COLOUR)
}

fn colour(index: usize) -> RGBColor {
    COLOURS.get(index % COLOURS.len()).copied().unwrap_or(INK_COLOUR)
}

/// The largest bound of all estimates, and at least that of the base.
fn largest<'a>(estimates: impl Iterator<Item = &'a Estimate>) -> f64 {
    1.05 * estimates.map(|estimate| estimate.high).fold(1.0, f64::max)
}

fn number(length: usize) -> f64 {
    f64::from(u32::try_from(length).unwrap_or(u32::MAX))
}

/// Lines over numbers, with intervals, and the base at 1.
fn lines(area: &Area<'_>, figure: &Figure, series: &[Series<usize>]) -> Drawn {
    let lengths = || series.iter().flat_map(|one| one.points.iter().map(|(s, _)| number(*s)));
    let (first, last) = (lengths().fold(f64::INFINITY, f64::min), lengths().fold(1.0, f64::max));
    let top = largest(series.iter().flat_map(|one| one.points.iter().map(|(_, estimate)| estimate)));
    let mut chart = ChartBuilder::on(area)
        .margin(14)
        .x_label_area_size(44)
        .y_label_area_size(54)
        .build_cartesian_2d(first - 0.5..last + 0.5, 0.0..top)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .bold_line_style(GRID_COLOUR)
        .light_line_style(TRANSPARENT)
        .axis_style(INK_COLOUR)
        .label_style(font(13))
        .axis_desc_style(font(13))
        .x_labels(20)
        .x_label_formatter(&|s| if s.fract() == 0.0 { format!("{s:.0}") } else { String::new() })
        .y_label_formatter(&|y| format!("{y:.1}"))
        .x_desc(figure.across.as_str())
        .y_desc(figure.axis.as_str())
        .draw()?;
    let base = vec![(first - 0.5, 1.0), (last + 0.5, 1.0)];
    chart.draw_series([PathElement::new(base, INK_COLOUR)])?;
    for (index, one) in series.iter().enumerate() {
        let colour = colour(index);
        // Side by side, so that no interval hides another.
        let aside = 0.06 * (number(index) - number(series.len() - 1) / 2.0);
        let places: Vec<(f64, Estimate)> =
            one.points.iter().map(|(s, estimate)| (number(*s) + aside, *estimate)).collect();
        chart.draw_series(places.iter().map(|(s, Estimate { value, low, high, .. })| {
            ErrorBar::new_vertical(*s, *low, *value, *high, colour.filled(), 6)
        }))?;
        let line = places.iter().map(|(s, estimate)| (*s, estimate.value));
        chart
            .draw_series(LineSeries::new(line, colour.stroke_width(2)))?
            .label(&one.name)
            .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], colour.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .border_style(GRID_COLOUR)
        .background_style(WHITE.mix(0.85))
        .label_font(font(13))
        .draw()?;
    Ok(())
}

/// Points beside names, series under series, with intervals and the base at 1.
fn points(area: &Area<'_>, axis: &str, series: &[Series<String>]) -> Drawn {
    let rows = series.iter().map(|one| one.points.len() + 1).sum::<usize>();
    let right = largest(series.iter().flat_map(|one| one.points.iter().map(|(_, estimate)| estimate)));
    let names = series.iter().flat_map(|one| one.points.iter().map(|(method, _)| method).chain([&one.name]));
    let longest = names.map(|name| name.chars().count()).max().unwrap_or(0);
    let width = LETTER * u32::try_from(longest).unwrap_or(0) + 20;
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
    // From the top down.
    let mut at = number(rows) - 0.5;
    for (index, one) in series.iter().enumerate() {
        name(&one.name, 14, chart.backend_coord(&(0.0, at)))?;
        at -= 1.0;
        for (method, Estimate { value, low, high, .. }) in &one.points {
            let colour = colour(index);
            chart.draw_series([ErrorBar::new_horizontal(at, *low, *value, *high, colour.filled(), 7)])?;
            name(method, 12, chart.backend_coord(&(0.0, at)))?;
            at -= 1.0;
        }
    }
    Ok(())
}

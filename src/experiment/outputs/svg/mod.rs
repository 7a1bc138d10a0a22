//! Figures as SVG, by `plotters`.

mod ink;
mod panels;
mod points;

use super::figures::{Figure, Marks};
use crate::experiment::error::ExperimentError;

/// Draws a figure as SVG.
pub(super) fn draw(figure: &Figure) -> Result<String, ExperimentError> {
    let drawn = match &figure.marks {
        Marks::Lines(panels) => panels::draw(figure, panels),
        Marks::Points(series) => points::draw(&figure.axis, series),
    };
    drawn.map_err(|error| ExperimentError::Figure { title: figure.title.clone(), message: error.to_string() })
}

#[cfg(test)]
mod tests;

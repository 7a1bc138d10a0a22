//! Colours and fonts of figures.

use plotters::prelude::*;

use crate::experiment::statistics::Estimate;

/// The colour behind everything.
pub(super) const PAPER: &str = "#FFFFFF";
pub(super) const INK_COLOUR: RGBColor = RGBColor(0x22, 0x22, 0x24);
pub(super) const GRID_COLOUR: RGBColor = RGBColor(0xDD, 0xDD, 0xDE);

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
pub(super) type DrawingError = Box<dyn std::error::Error>;

/// Returns the font of a size.
pub(super) fn font(size: u32) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&INK_COLOUR)
}

/// Returns the colour of an index: those of the list, then hues by the golden angle.
pub(super) fn colour(index: usize) -> RGBColor {
    let Some(more) = index.checked_sub(COLOURS.len()) else { return COLOURS[index] };
    let turn = (0.05 + 0.381_966 * number(more)).fract();
    let (red, green, blue) = HSLColor(turn, 0.55, 0.38 + 0.04 * number(more % 5)).rgb();
    RGBColor(red, green, blue)
}

/// Returns the largest bound of all estimates, and at least that of the base.
pub(super) fn largest<'a>(estimates: impl Iterator<Item = &'a Estimate>) -> f64 {
    1.05 * estimates.map(|estimate| estimate.high.unwrap_or(estimate.value)).fold(1.0, f64::max)
}

/// Converts a small number to a float.
pub(super) fn number(length: usize) -> f64 {
    u32::try_from(length).map_or(f64::INFINITY, f64::from)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::colour;

    #[test]
    fn colours_of_series_are_all_different() {
        let all: HashSet<(u8, u8, u8)> =
            (0..40).map(colour).map(|colour| (colour.0, colour.1, colour.2)).collect();
        assert_eq!(all.len(), 40);
    }
}

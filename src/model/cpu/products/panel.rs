//! Sizes of panels: rows of weights whose numbers lie together as they are needed together.

/// Outputs whose weights lie together in a panel.
pub(crate) const PANEL: usize = 16;
/// Most inputs that are unpacked at once.
pub(crate) const CHUNK: usize = 64;
/// Bytes of a plane: a word for each row of a panel.
pub(crate) const PLANE: usize = 4 * PANEL;
/// Offset of signed bytes, which makes them unsigned.
pub(crate) const BIAS: u8 = 128;

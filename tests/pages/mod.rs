//! Links between pages, names of pages elsewhere, and the programs in `examples`.
//!
//! Widths, and what pages show, are in `tests/docs.rs`.

mod examples;
mod front;
mod links;
mod mentions;
mod needs;

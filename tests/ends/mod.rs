//! Tests of the ends of texts: a complete text ends where nothing but white space can follow it.

mod decoders;
mod program;
mod space;

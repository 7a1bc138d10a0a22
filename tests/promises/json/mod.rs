//! Objects and arrays of JSON Schema: keys and items that come once, and masks of random schemas.

mod items;
mod keys;
mod run_out;
mod schemas;

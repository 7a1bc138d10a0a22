//! Each part that a grammar may have means what it says: leaves, repeats, classes, special tokens, notations.

mod any_order;
mod automata;
mod classes;
mod gbnf;
mod greedy;
mod leaves;
mod length_bounded;
pub(super) mod specials;
mod substrings;
mod thoughts;
mod tokens;

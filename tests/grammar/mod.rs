//! Grammars in each notation.

// The shipped grammars against the texts beside them.
pub(crate) mod corpus;
// Grammars inside of JSON strings.
mod escaped;
// Named languages in regular expressions and GBNF.
mod extensions;
// Grammars of the kinds that people write.
mod natural;
// Published grammars in Lark and EBNF, and structural tags.
mod notations;
// Regular expressions beside other dialects.
mod regex_dialects;
// Grammars of Rust types.
mod rust_types;
// Arguments of calls between XML tags.
mod tool_arguments;
// Calls of functions in all spellings.
pub(crate) mod tools;

//! Grammars on the command line.

// Warnings about keywords of schemas.
mod keywords;
// Natural grammars stay within the program's budgets.
mod natural;
// Lark and EBNF on the command line.
mod notations;
// Numbers of schemas on the command line.
mod numbers;
// Warnings about dialects of regular expressions.
mod regex;
// JSON Schemas on the command line.
mod schema;

//! Grammars that come with the library, as texts in GBNF.
//!
//! ```
//! use domino::{Grammar, Limits, Syntax, shipped};
//!
//! let text = shipped::text("rfc8259").expect("it comes with the library");
//! let grammar = Grammar::parse(Syntax::Gbnf, text, &Limits::default())?;
//! # Ok::<(), domino::GrammarError>(())
//! ```

/// Names and texts of the grammars of these names.
macro_rules! texts {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../grammars/", $name, ".gbnf")))),*]
    };
}

/// All of them: names, and texts in GBNF. Those under `paper/` are the grammars of the DOMINO paper (its
/// appendix), byte for byte.
pub const GRAMMARS: &[(&str, &str)] = texts![
    "json" "rfc8259" "gsm8k" "xml_person" "rpg" "c" "arithmetic" "sql_select" "call" "csv" "email" "iso8601"
    "paper/json" "paper/gsm8k" "paper/xml_person" "paper/rpg" "paper/c"
];

/// Returns the text of the grammar of this name; `None` if there is none.
#[must_use]
pub fn text(name: &str) -> Option<&'static str> {
    GRAMMARS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

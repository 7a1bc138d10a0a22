//! Names of notations, and the endings of their files.

use std::path::Path;

use crate::grammar::Syntax;

/// Returns the name of a notation in definitions and records.
pub(in crate::experiment) fn notation(syntax: Syntax) -> &'static str {
    match syntax {
        Syntax::Gbnf => "gbnf",
        Syntax::Regex => "regex",
        Syntax::Ebnf => "ebnf",
        Syntax::Lark => "lark",
        Syntax::LarkGreedy => "lark_greedy",
        Syntax::JsonSchema => "json_schema",
        Syntax::StructuralTag => "structural_tag",
    }
}

/// Returns the notation of a file by its ending, as the program's flags do.
pub(super) fn of_ending(path: &Path) -> Syntax {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("regex" | "re") => Syntax::Regex,
        Some("ebnf") => Syntax::Ebnf,
        Some("lark") => Syntax::Lark,
        Some("json") if path.to_str().is_some_and(|path| path.ends_with(".tags.json")) => {
            Syntax::StructuralTag
        }
        Some("json") => Syntax::JsonSchema,
        _ => Syntax::Gbnf,
    }
}

//! Lark, XGrammar's EBNF and its structural tags: read or refused with places inside the text, compiled, walked.

use domino::Syntax;

use super::walk;

/// Fails if a grammar text is treated wrongly. After a first byte of `e` it is EBNF, after a `{` structural tags.
pub fn check(data: &[u8]) {
    let (syntax, text) = match data {
        [b'e', rest @ ..] => (Syntax::Ebnf, rest),
        [b'{', ..] => (Syntax::StructuralTag, data),
        _ => (Syntax::Lark, data),
    };
    if let Some(grammar) = walk::read(syntax, text) {
        walk::walk(&grammar, text, |_, _| {});
    }
}

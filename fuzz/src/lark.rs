//! Lark, XGrammar's EBNF and its structural tags: read or refused with places inside the text, compiled,
//! walked.

use domino::Syntax;

use super::walk;

/// Fails if a grammar text is mishandled. A first byte `e` stands before EBNF, `g` before Lark with greedy
/// lexing; a text that begins with `{` is read as structural tags.
pub fn check(data: &[u8]) {
    let (syntax, text) = match data {
        [b'e', rest @ ..] => (Syntax::Ebnf, rest),
        [b'g', rest @ ..] => (Syntax::LarkGreedy, rest),
        [b'{', ..] => (Syntax::StructuralTag, data),
        _ => (Syntax::Lark, data),
    };
    if let Some(grammar) = walk::read(syntax, text) {
        walk::walk(&grammar, text, |_, _| {});
    }
}

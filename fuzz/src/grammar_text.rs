//! GBNF text: read or refused with places inside the text, compiled, walked.

use domino::Syntax;

use super::walk;

/// Fails if a grammar text is mishandled.
pub fn check(data: &[u8]) {
    if let Some(grammar) = walk::read(Syntax::Gbnf, data) {
        walk::walk(&grammar, data, |_, _| {});
    }
}

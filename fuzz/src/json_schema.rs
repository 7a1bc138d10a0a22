//! JSON Schemas: read or refused with places inside the text, compiled, walked.

use domino::Syntax;

use super::walk;

/// Fails if a schema is mishandled.
pub fn check(data: &[u8]) {
    if let Some(grammar) = walk::read(Syntax::JsonSchema, data) {
        walk::walk(&grammar, data, |_, _| {});
    }
}

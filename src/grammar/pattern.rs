//! A terminal's byte language: a regular expression without look-around, over bytes.
//!
//! Invariant: the [`Hir`] inside has no look-around, so that every pattern is a regular language of
//! byte strings. It may be empty or contain the empty string.

use regex_syntax::hir::{Class, ClassUnicode, Hir, HirKind};

use crate::limits::PATTERN_NESTING;

/// The byte language of a leaf of a grammar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    hir: Hir,
}

/// Why a regular expression cannot be a [`Pattern`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatternError {
    /// It asks about its surroundings; holds the assertion as it is written.
    #[error("look-around such as {0} asks about text outside the match, which a terminal cannot do")]
    LookAround(&'static str),
    /// It is nested more deeply than this many levels.
    #[error("the expression is nested more than {0} levels deep")]
    TooDeep(usize),
}

impl Pattern {
    /// Exactly these bytes.
    #[must_use]
    pub fn literal(bytes: &[u8]) -> Self {
        Self { hir: Hir::literal(bytes) }
    }

    /// One character of the class, in UTF-8.
    #[must_use]
    pub fn class(class: ClassUnicode) -> Self {
        Self { hir: Hir::class(Class::Unicode(class)) }
    }

    /// One character, in UTF-8, or one byte of the class.
    pub(crate) fn byte_class(class: Class) -> Self {
        Self { hir: Hir::class(class) }
    }

    /// The language of `hir`, matched as a whole.
    ///
    /// # Errors
    /// If `hir` has look-around, or is nested deeper than automata can be built of. Linear in the size of `hir`.
    pub fn from_hir(hir: Hir) -> Result<Self, PatternError> {
        use regex_syntax::hir::Look;
        let name = match hir.properties().look_set().iter().next() {
            None if nested_within(&hir, PATTERN_NESTING) => return Ok(Self { hir }),
            None => return Err(PatternError::TooDeep(PATTERN_NESTING)),
            Some(Look::Start | Look::End) => "`^`, `$`, `\\A` or `\\z`",
            Some(Look::StartLF | Look::EndLF | Look::StartCRLF | Look::EndCRLF) => "multi-line `^` or `$`",
            Some(_) => "a word boundary `\\b` or `\\B`",
        };
        Err(PatternError::LookAround(name))
    }

    /// The expression.
    #[must_use]
    pub fn hir(&self) -> &Hir {
        &self.hir
    }

    /// The bytes, if the language is written as one literal.
    #[must_use]
    pub fn as_literal(&self) -> Option<&[u8]> {
        match self.hir.kind() {
            HirKind::Literal(literal) => Some(&literal.0),
            HirKind::Empty => Some(&[]),
            _ => None,
        }
    }
}

/// Is `hir` nested at most `depth` levels deep? Does not recurse.
fn nested_within(hir: &Hir, depth: usize) -> bool {
    let mut open = vec![(hir, 1)];
    while let Some((hir, level)) = open.pop() {
        if level > depth {
            return false;
        }
        match hir.kind() {
            HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Look(_) => {}
            HirKind::Repetition(repetition) => open.push((&repetition.sub, level + 1)),
            HirKind::Capture(capture) => open.push((&capture.sub, level + 1)),
            HirKind::Concat(parts) | HirKind::Alternation(parts) => {
                open.extend(parts.iter().map(|part| (part, level + 1)));
            }
        }
    }
    true
}

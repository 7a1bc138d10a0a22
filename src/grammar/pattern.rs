//! A terminal's byte language: a regular expression without look-around, over bytes.
//!
//! Invariant: the [`Hir`] inside has no look-around, so that every pattern is a regular language of
//! byte strings. It may be empty or contain the empty string.

use regex_syntax::hir::{Class, ClassUnicode, Hir, HirKind};

/// The byte language of a leaf of a grammar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    hir: Hir,
}

/// Why a regular expression cannot be a [`Pattern`]: it asks about its surroundings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("look-around such as {0} asks about text outside the match, which a terminal cannot do")]
pub struct LookAroundError(
    /// The assertion as it is written.
    pub &'static str,
);

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

    /// The language of `hir`, matched as a whole.
    ///
    /// # Errors
    /// If `hir` has look-around. Linear in the size of `hir`.
    pub fn from_hir(hir: Hir) -> Result<Self, LookAroundError> {
        use regex_syntax::hir::Look;
        let name = match hir.properties().look_set().iter().next() {
            None => return Ok(Self { hir }),
            Some(Look::Start | Look::End) => "`^`, `$`, `\\A` or `\\z`",
            Some(Look::StartLF | Look::EndLF | Look::StartCRLF | Look::EndCRLF) => "multi-line `^` or `$`",
            Some(_) => "a word boundary `\\b` or `\\B`",
        };
        Err(LookAroundError(name))
    }

    /// The expression.
    #[must_use]
    pub fn hir(&self) -> &Hir {
        &self.hir
    }

    /// Is the empty string in the language? Constant time.
    #[must_use]
    pub fn matches_empty(&self) -> bool {
        self.hir.properties().minimum_len() == Some(0)
    }

    /// Is the language empty as far as the expression itself says? Constant time.
    #[must_use]
    pub fn is_never(&self) -> bool {
        self.hir.properties().minimum_len().is_none()
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

//! White space between the parts of a value, and the punctuation that it is written with.

use crate::{
    grammar::{GrammarBuilder, Pattern, json_schema::options::WhiteSpace, source::Span},
    ids::ExprId,
    limits::LimitExceeded,
};

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, Repetition};

/// Line breaks in one run of white space.
const MOST_BREAKS: u32 = 2;
/// Blanks and tabs in one run of white space.
const MOST_BLANKS: u32 = 80;

/// A place where white space may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spot {
    /// After `{` or `[`, with members or items to come.
    AfterOpen,
    /// Before `}` or `]`, after members or items.
    BeforeClose,
    /// Between the two of an empty object or array.
    InEmpty,
    BeforeComma,
    AfterComma,
    BeforeColon,
    AfterColon,
}

/// How white space is written.
#[derive(Debug)]
pub(super) struct Space {
    kind: WhiteSpace,
    /// One run, where it does not depend on the place.
    run: Option<ExprId>,
}

impl Space {
    pub(super) fn new(kind: WhiteSpace, builder: &mut GrammarBuilder) -> Result<Self, LimitExceeded> {
        let language = match kind {
            WhiteSpace::Flexible => Some(bounded_run()),
            WhiteSpace::Any => Some(repeated(class(&[' ', '\t', '\n', '\r']), 0, None)),
            WhiteSpace::Compact | WhiteSpace::Pretty(_) => None,
        };
        let run = match language {
            // Without assertions and nested twice, so it is a pattern.
            Some(hir) => match Pattern::from_hir(hir) {
                Ok(pattern) => {
                    let body = builder.pattern(pattern, Span::default())?;
                    // A second definition is impossible: the name is taken here first.
                    let _ = builder.define("space", body, Span::default());
                    Some(builder.rule_ref("space", Span::default())?)
                }
                Err(_) => None,
            },
            None => None,
        };
        Ok(Self { kind, run })
    }

    /// What may stand before and after the whole value.
    pub(super) fn around(&self) -> Option<ExprId> {
        self.run.filter(|_| self.kind == WhiteSpace::Any)
    }

    /// What stands at a spot of a value at a level: a run, or a text.
    pub(super) fn at(&self, spot: Spot, level: u32) -> Result<Option<ExprId>, String> {
        let WhiteSpace::Pretty(width) = self.kind else { return Ok(self.run) };
        let indent = |level: u32| "\n".to_owned() + &" ".repeat(usize::from(width) * level as usize);
        match spot {
            Spot::InEmpty | Spot::BeforeComma | Spot::BeforeColon => Ok(None),
            Spot::AfterOpen | Spot::AfterComma => Err(indent(level + 1)),
            Spot::BeforeClose => Err(indent(level)),
            Spot::AfterColon => Err(" ".to_owned()),
        }
    }
}

/// Line breaks, then blanks and tabs.
fn bounded_run() -> Hir {
    let newline = Hir::concat(vec![repeated(class(&['\r']), 0, Some(1)), class(&['\n'])]);
    Hir::concat(vec![
        repeated(newline, 0, Some(MOST_BREAKS)),
        repeated(class(&[' ', '\t']), 0, Some(MOST_BLANKS)),
    ])
}

fn class(chars: &[char]) -> Hir {
    Hir::class(Class::Unicode(ClassUnicode::new(chars.iter().map(|&c| ClassUnicodeRange::new(c, c)))))
}

fn repeated(part: Hir, min: u32, max: Option<u32>) -> Hir {
    Hir::repetition(Repetition { min, max, greedy: true, sub: Box::new(part) })
}

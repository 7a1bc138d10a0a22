//! What a Lark text says, before names mean anything.
//!
//! Trees are as deep as the lexer lets brackets nest, so that passes over them may recurse.

use crate::grammar::source::Span;

/// A part of a definition's body.
#[derive(Debug, Clone)]
pub(super) struct Expr<'t> {
    pub(super) kind: Kind<'t>,
    pub(super) span: Span,
}

/// Kinds of [`Expr`].
#[derive(Debug, Clone)]
pub(super) enum Kind<'t> {
    /// One after the other.
    Sequence(Vec<Expr<'t>>),
    /// One of them.
    Choice(Vec<Expr<'t>>),
    /// `a & b`: what is in all of them.
    Both(Vec<Expr<'t>>),
    /// `~a`: what is not in it.
    Not(Box<Expr<'t>>),
    /// At least and at most so often.
    Repeat(Box<Expr<'t>>, u32, Option<u32>),
    /// `"text"`.
    Text { text: String, ignore_case: bool },
    /// `"a".."z"`.
    Range(char, char),
    /// `/regex/flags`: where the expression is, and the flags.
    Regex { body: Span, flags: &'t str },
    /// A rule, a terminal or a template's parameter.
    Name(&'t str),
    /// `name{argument, ..}`.
    Template(&'t str, Vec<Expr<'t>>),
    /// `%json VALUE`: where the schema is.
    Json(Span),
    /// `%regex VALUE`.
    Structured(Span),
    /// `%lark { .. }`.
    Nested(Vec<Item<'t>>),
    /// `<name>`.
    Special(&'t str),
    /// `@name`.
    Reference(&'t str),
}

impl Expr<'_> {
    /// Its parts.
    pub(super) fn parts(&self) -> &[Self] {
        match &self.kind {
            Kind::Sequence(parts) | Kind::Choice(parts) | Kind::Both(parts) | Kind::Template(_, parts) => {
                parts
            }
            Kind::Not(part) | Kind::Repeat(part, ..) => std::slice::from_ref(part),
            _ => &[],
        }
    }
}

/// How a rule's one lexeme ends.
#[derive(Debug, Clone)]
pub(super) enum Ending<'t> {
    /// `lazy`: as soon as it can.
    Lazy,
    /// `suffix=..`: with the first of these, which is a part of the text.
    Suffix(Expr<'t>),
    /// `stop=..`: before the first of these.
    Stop(Expr<'t>),
}

/// A rule or a terminal.
#[derive(Debug, Clone)]
pub(super) struct Definition<'t> {
    pub(super) name: &'t str,
    /// Of the name.
    pub(super) span: Span,
    pub(super) parameters: Vec<&'t str>,
    pub(super) priority: Option<Span>,
    pub(super) ending: Option<(Ending<'t>, Span)>,
    /// What its texts are captured as.
    pub(super) capture: Option<String>,
    /// Options that do not change which texts there are: name and place.
    pub(super) without_effect: Vec<(&'static str, Span)>,
    pub(super) body: Expr<'t>,
}

/// What stands on the lines of a grammar.
#[derive(Debug, Clone)]
pub(super) enum Item<'t> {
    Define(Definition<'t>),
    /// `%ignore`.
    Ignore(Expr<'t>),
    /// `%import module.NAME -> LOCAL`: module, then name and local name with places.
    Import {
        module: String,
        module_span: Span,
        names: Vec<(&'t str, Span, &'t str)>,
    },
    /// `%llguidance VALUE`: where that is.
    Options(Span),
}

/// Is it a terminal's name?
pub(super) fn is_terminal(name: &str) -> bool {
    name.trim_start_matches('_').starts_with(|c: char| c.is_ascii_uppercase())
}

//! The text of a Lark grammar -> its syntax tree, whose names are not resolved yet.
//!
//! Trees are as deep as the lexer lets brackets nest, so passes over them may recurse.

mod lexer;
mod parser;

use crate::grammar::source::Span;

pub(super) use self::parser::parse;

/// A part of a definition's body.
#[derive(Debug, Clone)]
pub(super) struct LarkExpr<'t> {
    pub(super) kind: ExprKind<'t>,
    pub(super) span: Span,
}

/// The kind of an [`LarkExpr`].
#[derive(Debug, Clone)]
pub(super) enum ExprKind<'t> {
    /// The parts, one after the other.
    Sequence(Vec<LarkExpr<'t>>),
    /// One of the parts.
    Choice(Vec<LarkExpr<'t>>),
    /// `a & b`: the texts that are in all parts.
    Both(Vec<LarkExpr<'t>>),
    /// `~a`: the texts that are not in the part.
    Not(Box<LarkExpr<'t>>),
    /// A part with the least and the greatest number of its repetitions.
    Repeat(Box<LarkExpr<'t>>, u32, Option<u32>),
    /// `"text"`.
    Text { text: String, ignore_case: bool },
    /// `"a".."z"`.
    Range(char, char),
    /// `/regex/flags`: the place of the expression, and the flags.
    Regex { body: Span, flags: &'t str },
    /// A rule, a terminal or a template's parameter.
    Name(&'t str),
    /// `name{argument, ..}`.
    Template(&'t str, Vec<LarkExpr<'t>>),
    /// `%json VALUE`: the place of the schema.
    Json(Span),
    /// `%regex VALUE`.
    Structured(Span),
    /// `%lark { .. }`.
    Nested(Vec<LarkItem<'t>>),
    /// `<name>`.
    Special(&'t str),
    /// `@name`.
    Reference(&'t str),
}

impl LarkExpr<'_> {
    /// The direct parts of the expression.
    pub(super) fn parts(&self) -> &[Self] {
        match &self.kind {
            ExprKind::Sequence(parts)
            | ExprKind::Choice(parts)
            | ExprKind::Both(parts)
            | ExprKind::Template(_, parts) => parts,
            ExprKind::Not(part) | ExprKind::Repeat(part, ..) => std::slice::from_ref(part),
            _ => &[],
        }
    }
}

/// The option that ends the one lexeme of a rule early.
#[derive(Debug, Clone)]
pub(super) enum Ending<'t> {
    /// `lazy`: it ends as soon as it can.
    Lazy,
    /// `suffix=..`: it ends with the first of these, which is part of the text.
    Suffix(LarkExpr<'t>),
    /// `stop=..`: it ends before the first of these.
    Stop(LarkExpr<'t>),
}

/// A rule or a terminal.
#[derive(Debug, Clone)]
pub(super) struct LarkDefinition<'t> {
    pub(super) name: &'t str,
    /// The place of the name.
    pub(super) span: Span,
    pub(super) parameters: Vec<&'t str>,
    pub(super) priority: Option<Span>,
    pub(super) ending: Option<(Ending<'t>, Span)>,
    /// The name of the capture of its texts.
    pub(super) capture: Option<String>,
    /// Options that do not change the set of texts: name and place.
    pub(super) without_effect: Vec<(&'static str, Span)>,
    pub(super) body: LarkExpr<'t>,
}

/// A definition or a statement of a grammar.
#[derive(Debug, Clone)]
pub(super) enum LarkItem<'t> {
    Define(LarkDefinition<'t>),
    /// `%ignore`.
    Ignore(LarkExpr<'t>),
    /// `%import module.NAME -> LOCAL`: the module, then each name and local name with its place.
    Import {
        module: String,
        module_span: Span,
        names: Vec<(&'t str, Span, &'t str)>,
    },
    /// `%llguidance VALUE`: the place of the value.
    Options(Span),
}

/// True for the name of a terminal.
pub(super) fn is_terminal(name: &str) -> bool {
    name.trim_start_matches('_').starts_with(|c: char| c.is_ascii_uppercase())
}

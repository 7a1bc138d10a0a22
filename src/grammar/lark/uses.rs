//! Uses of lexemes in grammars with lazy rules. Each is a rule that gets its body when all uses are known,
//! since it may have to be cut down ([`super::contest`]).

use crate::{
    grammar::{
        GrammarError,
        regular::Language,
        source::{Source, Span},
    },
    ids::{ExprId, RuleId},
    limits::{Budget, LimitExceeded},
};

use super::{
    contest::{self, MOST_USES, MOST_WORDS},
    syntax::{ExprKind, LarkExpr, LarkItem, is_terminal},
    terminal::LazyLanguage,
    translate::{ExprSite, LarkResult, LarkTranslator},
};

/// A use of a lexeme.
#[derive(Debug)]
pub(super) struct LexemeUse<'a, 't> {
    rule: RuleId,
    name: String,
    span: Span,
    what: Used<'a, 't>,
}

#[derive(Debug)]
pub(super) enum Used<'a, 't> {
    /// A part of a rule.
    Part(&'a LarkExpr<'t>, ExprSite<'a, 't>),
    /// A rule that ends as soon as it can.
    Lazy(LazyLanguage),
    /// A schema, by the name of its start rule.
    Schema(String),
}

impl<'a, 't> LarkTranslator<'a, 't, '_> {
    /// Writes a use of a lexeme as a rule whose body is made later.
    pub(super) fn used(&mut self, what: Used<'a, 't>, span: Span) -> LarkResult<ExprId> {
        let Some(uses) = &mut self.uses else { return Err(GrammarError::syntax("no lazy rule")) };
        if uses.len() >= MOST_USES {
            let limit =
                LimitExceeded::new(Budget::Expressions, "uses of terminals beside lazy rules", MOST_USES);
            return Err(GrammarError::limit(limit).at(Source::new(self.text), span, ""));
        }
        let name = format!("%lexeme-{}", uses.len() + 1);
        let rule = self.builder.declare(&name);
        uses.push(LexemeUse { rule, name: name.clone(), span, what });
        self.reference(&name, span)
    }

    /// Gives uses of lexemes their bodies; those that may stand where a lazy one may are cut down.
    pub(super) fn settle(&mut self, root: &str) -> LarkResult<()> {
        let Some(uses) = self.uses.take() else { return Ok(()) };
        let words = self.builder.expr_count().saturating_mul(uses.len().div_ceil(64));
        if words > MOST_WORDS {
            let limit = LimitExceeded::new(Budget::Expressions, "terminals beside lazy rules", MOST_WORDS);
            return Err(self.limit(limit, uses_span(&uses)));
        }
        let start = self.builder.declare(root);
        let rules: Vec<RuleId> = uses.iter().map(|one| one.rule).collect();
        let lazy: Vec<bool> = uses.iter().map(|one| matches!(one.what, Used::Lazy(_))).collect();
        let contests = contest::contests(&self.builder, start, &rules, &lazy);
        let limits = self.limits;
        let texts = Language::texts(limits).map_err(|limit| self.limit(limit, uses_span(&uses)))?;
        let some = Language::empty_text(limits).and_then(|empty| texts.minus(&empty, limits));
        let some = some.map_err(|limit| self.limit(limit, uses_span(&uses)))?;
        for (at, (one, rivals)) in uses.iter().zip(&contests).enumerate() {
            let heads =
                rivals.iter().filter(|rival| **rival != at).filter_map(|&rival| match &uses[rival].what {
                    Used::Lazy(ended) => Some(ended.whole.clone()),
                    _ => None,
                });
            let heads: Vec<Language> = heads.collect();
            // A lazy rival ends as soon as it can, so texts that begin with one of its texts are left out.
            let cut = |language: &Language, more: &Language| {
                let begun = Language::sequence(&[Language::union(&heads, limits)?, more.clone()], limits)?;
                language.minus(&begun, limits)
            };
            let left = match &one.what {
                Used::Schema(name) => {
                    let body = self.reference(name, one.span)?;
                    self.set(&one.name, body, one.span);
                    continue;
                }
                Used::Part(expr, place) if heads.is_empty() => {
                    let body = self.expr(expr, place)?;
                    self.set(&one.name, body, one.span);
                    continue;
                }
                Used::Part(expr, place) => cut(&self.language(expr, place)?, &texts),
                // Two lazy lexemes that end at the same place are both kept.
                Used::Lazy(ended) => cut(&ended.text, &some),
            };
            let left = left.map_err(|limit| self.limit(limit, one.span))?;
            let body = self.language_leaf(&left, one.span)?;
            self.set(&one.name, body, one.span);
        }
        Ok(())
    }

    /// True for one whole lexeme of a rule.
    pub(super) fn is_lexeme(&self, expr: &LarkExpr<'t>, place: &ExprSite<'a, 't>) -> bool {
        match &expr.kind {
            ExprKind::Text { text, .. } => !text.is_empty(),
            ExprKind::Range(..)
            | ExprKind::Regex { .. }
            | ExprKind::Structured(_)
            | ExprKind::Both(_)
            | ExprKind::Not(_) => true,
            ExprKind::Name(name) => {
                is_terminal(name)
                    && place.arguments.as_ref().is_none_or(|arguments| arguments.get(name).is_none())
            }
            _ => false,
        }
    }
}

/// The place of the first use.
fn uses_span(uses: &[LexemeUse<'_, '_>]) -> Span {
    uses.first().map_or_else(Span::default, |one| one.span)
}

/// True if a grammar, nested ones included, has a rule that ends as soon as it can.
pub(super) fn has_lazy(items: &[LarkItem<'_>]) -> bool {
    let mut open: Vec<&LarkExpr<'_>> = Vec::new();
    let mut lists = vec![items];
    loop {
        while let Some(items) = lists.pop() {
            for item in items {
                match item {
                    LarkItem::Define(definition) if definition.ending.is_some() => return true,
                    LarkItem::Define(definition) => open.push(&definition.body),
                    _ => {}
                }
            }
        }
        let Some(expr) = open.pop() else { return false };
        match &expr.kind {
            ExprKind::Nested(items) => lists.push(items),
            _ => open.extend(expr.parts()),
        }
    }
}

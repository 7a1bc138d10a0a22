//! A finished grammar: its rules and expressions, and what else holds of its texts.

use super::{any_order::AnyOrder, asked_tokens::AskedTokens, automaton::Automaton, pattern::Pattern};
use crate::{
    grammar::{errors::GrammarWarning, source::Span},
    ids::{ExprId, Numbered, RuleId},
};

/// An expression over rules and patterns.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Expr {
    /// A byte language.
    Pattern(Pattern),
    /// The language of a rule.
    Rule(RuleId),
    /// The concatenation of its parts; without parts, the empty string.
    Sequence(Vec<ExprId>),
    /// The union of its parts; without parts, no string at all.
    Alternatives(Vec<ExprId>),
    /// A part repeated `min` to `max` times (`None`: any number).
    Repeat {
        /// The part that is repeated.
        part: ExprId,
        /// The least count.
        min: u32,
        /// The greatest count, at least `min`.
        max: Option<u32>,
    },
    /// Parts in any order, with separators.
    AnyOrder(Box<AnyOrder>),
}

/// A named rule.
#[derive(Debug, Clone)]
pub(super) struct NamedRule {
    pub(super) name: String,
    pub(super) span: Span,
    pub(super) body: ExprId,
}

/// A grammar: rules, one of them the start.
#[derive(Debug, Clone)]
pub struct Grammar {
    pub(super) rules: Numbered<NamedRule>,
    pub(super) exprs: Numbered<Expr>,
    pub(super) spans: Vec<Span>,
    pub(super) root: RuleId,
    pub(super) warnings: Vec<GrammarWarning>,
    pub(super) keys: Option<DistinctKeys>,
    pub(super) items: Option<DistinctItems>,
    pub(super) common: Vec<Automaton>,
    pub(super) asked: AskedTokens,
    pub(super) captured: Vec<(RuleId, String)>,
    pub(super) ignored: Vec<RuleId>,
    pub(super) greedy: bool,
}

/// The rule that the texts of a grammar are JSON, and that none of their objects has a key twice. No
/// context-free grammar can say that of keys that it does not list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DistinctKeys {
    /// True if some beginning of a key leaves only finitely many keys, so that all of them may have come.
    /// Masks look at more tokens then.
    pub may_run_out: bool,
    /// Promises three things about key terminals, so that masks check fewer tokens: each key is one terminal,
    /// and a terminal that may begin with a colon follows it directly; keys that need no escapes are accepted
    /// without them; and a terminal of one key stands only where that key is new. `false` is always correct.
    pub are_terminals: bool,
}

/// The rule that the texts of a grammar are JSON, and that some of its marks stand only after an item of an
/// array that equals none before it ([`Pattern::after_new_item`]). No context-free grammar can say that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DistinctItems {
    /// True if some beginning of an item, or of a string in one, is shared by only finitely many values, so
    /// that all of them may have come. Masks look at more tokens then.
    pub strings_may_run_out: bool,
    /// True if that holds for the digits of a number.
    pub numbers_may_run_out: bool,
}

impl Grammar {
    /// The start rule.
    #[must_use]
    pub fn root(&self) -> RuleId {
        self.root
    }

    /// Parts of the text that may not mean what its author expects, in the text's order; at most twenty.
    /// Warnings about cost are in [`CompiledGrammar::warnings`](crate::CompiledGrammar::warnings).
    #[must_use]
    pub fn warnings(&self) -> &[GrammarWarning] {
        &self.warnings
    }

    /// Replaces each warning by `change`.
    pub(in crate::grammar) fn with_warnings(
        mut self,
        change: impl FnMut(GrammarWarning) -> GrammarWarning,
    ) -> Self {
        self.warnings = self.warnings.into_iter().map(change).collect();
        self
    }

    /// The rule that no object has a key twice, if the texts of the grammar are restricted by it.
    #[must_use]
    pub fn distinct_keys(&self) -> Option<DistinctKeys> {
        self.keys
    }

    /// The rule that some marks stand only after new items, if the texts of the grammar are restricted by it.
    #[must_use]
    pub fn distinct_items(&self) -> Option<DistinctItems> {
        self.items
    }

    /// Languages that grammars of this notation share, and that leaves of this grammar may largely agree
    /// with, such as any string of JSON. They do not change its texts; masks are made sooner.
    #[must_use]
    pub fn common(&self) -> &[Automaton] {
        &self.common
    }

    /// The rules that the grammar captures, with the captures' names: for [`Captures`](crate::Captures).
    pub fn captured(&self) -> impl ExactSizeIterator<Item = (RuleId, &str)> {
        self.captured.iter().map(|(rule, name)| (*rule, &**name))
    }

    /// The rules whose texts are left out at the end of a capture, such as that of Lark's `%ignore`.
    #[must_use]
    pub fn ignored(&self) -> &[RuleId] {
        &self.ignored
    }

    /// True if terminals are split off greedily, as [`Syntax::LarkGreedy`](crate::Syntax::LarkGreedy) says.
    #[must_use]
    pub fn is_greedy(&self) -> bool {
        self.greedy
    }

    /// The grammar of the same texts with `prefix` before them, for [healing](crate::decode::Healing)
    /// prompts. `None` if its texts are JSON without [repeated keys](Self::distinct_keys) or
    /// [items](Self::distinct_items), which are rules for whole texts. Linear.
    #[must_use]
    pub fn after(&self, prefix: &[u8]) -> Option<Self> {
        let mut grammar = self.clone();
        if grammar.keys.is_some() || grammar.items.is_some() {
            return None;
        }
        let mut push = |expr: Expr| {
            let id = grammar.exprs.push(expr, "expressions").ok()?;
            grammar.spans.push(Span::default());
            Some(ExprId::new(id))
        };
        let before = push(Expr::Pattern(Pattern::literal(prefix)))?;
        let text = push(Expr::Rule(self.root))?;
        let body = push(Expr::Sequence(vec![before, text]))?;
        let rule = NamedRule { name: "after the prompt".to_owned(), span: Span::default(), body };
        grammar.root = RuleId::new(grammar.rules.push(rule, "rules").ok()?);
        Some(grammar)
    }

    /// All rules, in order of first mention.
    pub fn rules(&self) -> impl ExactSizeIterator<Item = RuleId> + use<> {
        self.rules.numbers().map(RuleId::new)
    }

    /// The name of a rule as written.
    #[must_use]
    pub fn rule_name(&self, rule: RuleId) -> &str {
        &self.rules[rule.index()].name
    }

    /// The place where the rule is defined.
    #[must_use]
    pub fn rule_span(&self, rule: RuleId) -> Span {
        self.rules[rule.index()].span
    }

    /// The body of a rule.
    #[must_use]
    pub fn rule_body(&self, rule: RuleId) -> ExprId {
        self.rules[rule.index()].body
    }

    /// The expression of an id.
    #[must_use]
    pub fn expr(&self, expr: ExprId) -> &Expr {
        &self.exprs[expr.index()]
    }

    /// The place of an expression in the grammar text.
    #[must_use]
    pub fn expr_span(&self, expr: ExprId) -> Span {
        self.spans[expr.index()]
    }

    /// All expressions; parts come before the expressions that have them.
    pub fn exprs(&self) -> impl ExactSizeIterator<Item = (ExprId, &Expr)> {
        self.exprs.numbers().map(ExprId::new).zip(&*self.exprs)
    }
}

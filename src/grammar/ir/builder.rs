//! The way into the IR: rules are mentioned, expressions pushed, bodies given, and all is checked at the end.

use std::collections::HashMap;

use super::{
    any_order::AnyOrder,
    asked_tokens::AskedTokens,
    automaton::Automaton,
    grammar::{DistinctItems, DistinctKeys, Expr, Grammar, NamedRule},
    pattern::Pattern,
    room::Room,
};
use crate::{
    grammar::{errors::GrammarWarning, source::Span},
    ids::{ExprId, Numbered, RuleId, number},
    limits::{LimitExceeded, Limits},
};

/// A rule that was used or defined.
#[derive(Debug)]
struct Mention {
    name: String,
    uses: Vec<Span>,
    body: Option<(Span, ExprId)>,
}

/// A builder of a [`Grammar`]. Sequences and alternatives of one part are that part, so redundant parentheses
/// cost nothing.
#[derive(Debug)]
pub struct GrammarBuilder {
    names: HashMap<String, RuleId>,
    rules: Vec<Mention>,
    exprs: Numbered<Expr>,
    spans: Vec<Span>,
    warnings: Vec<GrammarWarning>,
    keys: Option<DistinctKeys>,
    items: Option<DistinctItems>,
    common: Vec<Automaton>,
    pub(super) asked: AskedTokens,
    captured: Vec<(RuleId, String)>,
    ignored: Vec<RuleId>,
    greedy: bool,
    room: Room,
}

/// The error that a rule was given a second body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DuplicateRule {
    /// The place where the rule was defined first.
    pub first: Span,
}

/// The reason why a [`GrammarBuilder`] cannot finish.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnfinishedGrammar {
    /// There is no rule with the start rule's name.
    NoRoot,
    /// Rules are used but have no body: their names and all places of use, in order of first use.
    Undefined(Vec<(String, Vec<Span>)>),
    /// There are more rules than numbers for them.
    TooManyRules(LimitExceeded),
}

impl GrammarBuilder {
    /// A builder of an empty grammar.
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        Self {
            names: HashMap::new(),
            rules: Vec::new(),
            exprs: Numbered::default(),
            spans: Vec::new(),
            warnings: Vec::new(),
            keys: None,
            items: None,
            common: Vec::new(),
            asked: AskedTokens::default(),
            captured: Vec::new(),
            ignored: Vec::new(),
            greedy: false,
            room: Room::new(limits),
        }
    }

    fn rule(&mut self, name: &str) -> RuleId {
        if let Some(&rule) = self.names.get(name) {
            return rule;
        }
        // Past the last number the first rule stands in, until `finish` fails because of it.
        let rule = RuleId::new(number(self.rules.len(), "rules").unwrap_or(0));
        self.names.insert(name.to_owned(), rule);
        self.rules.push(Mention { name: name.to_owned(), uses: Vec::new(), body: None });
        rule
    }

    fn push(&mut self, expr: Expr, span: Span) -> Result<ExprId, LimitExceeded> {
        self.room.expression(self.exprs.len())?;
        let id = self.exprs.push(expr, "expressions")?;
        self.spans.push(span);
        Ok(ExprId::new(id))
    }

    /// The number of expressions so far.
    pub(crate) fn expr_count(&self) -> usize {
        self.exprs.len()
    }

    /// Memory of the automata so far, in bytes.
    pub(in crate::grammar) fn automata_bytes(&self) -> usize {
        self.room.bytes()
    }

    /// The expression of an id, which must exist.
    pub(crate) fn expr(&self, expr: ExprId) -> &Expr {
        &self.exprs[expr.index()]
    }

    /// The body of a rule, if it has one yet.
    pub(crate) fn body(&self, rule: RuleId) -> Option<ExprId> {
        self.rules.get(rule.index())?.body.map(|(_, body)| body)
    }

    /// Attaches warnings for the author of the text.
    pub(crate) fn warn(&mut self, warnings: Vec<GrammarWarning>) {
        self.warnings.extend(warnings);
    }

    /// Declares that texts are split into terminals greedily.
    pub(in crate::grammar) fn greedy(&mut self) {
        self.greedy = true;
    }

    /// Declares that the texts are JSON, and leaves out those in which an object has a key twice.
    pub fn distinct_keys(&mut self, keys: DistinctKeys) {
        self.keys = Some(keys);
    }

    /// Declares that the texts are JSON, with marks that stand only [after new
    /// items](Pattern::after_new_item).
    pub fn distinct_items(&mut self, items: DistinctItems) {
        self.items = Some(items);
    }

    /// Adds to the automata of [`Grammar::common`].
    pub fn in_common(&mut self, automaton: Automaton) {
        if !self.common.contains(&automaton) {
            self.common.push(automaton);
        }
    }

    /// Declares that texts of the rule called `rule` are captured under `name`.
    pub fn capture(&mut self, rule: &str, name: &str) {
        let rule = self.rule(rule);
        self.captured.push((rule, name.to_owned()));
    }

    /// Declares that texts of the rule called `rule` are left out at the end of a capture.
    pub fn ignore(&mut self, rule: &str) {
        let rule = self.rule(rule);
        self.ignored.push(rule);
    }

    /// Mentions the rule called `name`: rules are numbered in order of first mention.
    pub fn declare(&mut self, name: &str) -> RuleId {
        self.rule(name)
    }

    /// A use of the rule called `name`, which may be defined later.
    ///
    /// # Errors
    /// If the budget of expressions is used up, as for every expression below.
    pub fn rule_ref(&mut self, name: &str, span: Span) -> Result<ExprId, LimitExceeded> {
        let rule = self.rule(name);
        self.mention(rule, span)
    }

    /// A use of a rule that has been mentioned.
    pub(super) fn mention(&mut self, rule: RuleId, span: Span) -> Result<ExprId, LimitExceeded> {
        self.rules[rule.index()].uses.push(span);
        self.push(Expr::Rule(rule), span)
    }

    /// An expression for a byte language.
    ///
    /// # Errors
    /// See [`rule_ref`](Self::rule_ref).
    pub fn pattern(&mut self, pattern: Pattern, span: Span) -> Result<ExprId, LimitExceeded> {
        self.room.leaf(pattern.kind())?;
        self.asked.classes.extend(pattern.classes());
        self.push(Expr::Pattern(pattern), span)
    }

    /// The concatenation of the parts.
    ///
    /// # Errors
    /// See [`rule_ref`](Self::rule_ref).
    pub fn sequence(&mut self, parts: Vec<ExprId>, span: Span) -> Result<ExprId, LimitExceeded> {
        match parts[..] {
            [only] => Ok(only),
            _ => self.push(Expr::Sequence(parts), span),
        }
    }

    /// The union of the parts.
    ///
    /// # Errors
    /// See [`rule_ref`](Self::rule_ref).
    pub fn alternatives(&mut self, parts: Vec<ExprId>, span: Span) -> Result<ExprId, LimitExceeded> {
        match parts[..] {
            [only] => Ok(only),
            _ => self.push(Expr::Alternatives(parts), span),
        }
    }

    /// A part repeated `min` to `max` times. The caller sees to `min <= max`.
    ///
    /// # Errors
    /// See [`rule_ref`](Self::rule_ref).
    pub fn repeat(
        &mut self,
        part: ExprId,
        min: u32,
        max: Option<u32>,
        span: Span,
    ) -> Result<ExprId, LimitExceeded> {
        debug_assert!(max.is_none_or(|max| min <= max));
        self.push(Expr::Repeat { part, min, max }, span)
    }

    /// Parts in any order. The caller sees to it that names are indices of [`required`](AnyOrder::required),
    /// and that neither parts nor the separator match the empty text.
    ///
    /// # Errors
    /// See [`rule_ref`](Self::rule_ref).
    pub fn any_order(&mut self, parts: AnyOrder, span: Span) -> Result<ExprId, LimitExceeded> {
        debug_assert!(
            parts
                .parts
                .iter()
                .all(|part| part.name.is_none_or(|name| (name as usize) < parts.required.len()))
        );
        self.push(Expr::AnyOrder(Box::new(parts)), span)
    }

    /// Gives the rule called `name` its body. `span` is the place of the name in its definition.
    ///
    /// # Errors
    /// If the rule has a body already.
    pub fn define(&mut self, name: &str, body: ExprId, span: Span) -> Result<RuleId, DuplicateRule> {
        let rule = self.rule(name);
        let slot = &mut self.rules[rule.index()].body;
        if let Some((first, _)) = *slot {
            return Err(DuplicateRule { first });
        }
        *slot = Some((span, body));
        Ok(rule)
    }

    /// The rules that have a body so far: name and place of definition, in order of first mention.
    pub fn defined(&self) -> impl Iterator<Item = (&str, Span)> {
        self.rules.iter().filter_map(|rule| rule.body.map(|(span, _)| (&*rule.name, span)))
    }

    /// Checks whether [`finish`](Self::finish) would succeed.
    ///
    /// # Errors
    /// If `root` or any rule that is used is not defined.
    pub fn check(&self, root: &str) -> Result<(), UnfinishedGrammar> {
        let undefined = self.rules.iter().filter(|rule| rule.body.is_none());
        let undefined: Vec<_> = undefined.map(|rule| (rule.name.clone(), rule.uses.clone())).collect();
        match (undefined.is_empty(), self.names.contains_key(root)) {
            (true, true) => Ok(()),
            (true, false) => Err(UnfinishedGrammar::NoRoot),
            (false, _) => Err(UnfinishedGrammar::Undefined(undefined)),
        }
    }

    /// Finishes the grammar, whose start rule is called `root`.
    ///
    /// # Errors
    /// If `root` or any rule that is used is not defined, or there are 2^32 rules.
    pub fn finish(self, root: &str) -> Result<Grammar, UnfinishedGrammar> {
        self.check(root)?;
        let root = *self.names.get(root).ok_or(UnfinishedGrammar::NoRoot)?;
        // Every rule has a body: that was checked.
        let rules = self
            .rules
            .into_iter()
            .filter_map(|rule| rule.body.map(|(span, body)| NamedRule { name: rule.name, span, body }))
            .collect();
        let rules = Numbered::of(rules, "rules").map_err(UnfinishedGrammar::TooManyRules)?;
        let Self { exprs, spans, warnings, keys, items, common, asked, captured, ignored, greedy, .. } = self;
        Ok(Grammar {
            rules,
            exprs,
            spans,
            root,
            warnings,
            keys,
            items,
            common,
            asked,
            captured,
            ignored,
            greedy,
        })
    }
}

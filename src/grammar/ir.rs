//! The grammar IR every notation is turned into: rules over an arena of expressions.
//!
//! Invariants: an expression's parts have smaller ids than itself (so passes are loops, not recursion,
//! and deep input cannot blow the stack); every rule has a body; [`GrammarBuilder`] is the only way in.
//! Knows nothing of scanners, parsers or vocabularies.

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap},
};

use super::{
    any_order::AnyOrder, automaton::Automaton, pattern::Pattern, source::Span, warning::GrammarWarning,
};
use crate::{
    ids::{ExprId, RuleId},
    limits::{Budget, LimitExceeded, Limits},
    special::{self, TokenClass},
};

/// An expression over rules and patterns.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Expr {
    /// A byte language.
    Pattern(Pattern),
    /// The language of a rule.
    Rule(RuleId),
    /// One after the other; with no parts, the empty string.
    Sequence(Vec<ExprId>),
    /// One of them; with no parts, no string at all.
    Alternatives(Vec<ExprId>),
    /// `min` to `max` times (`None`: any number).
    Repeat {
        /// What is repeated.
        part: ExprId,
        /// Least count.
        min: u32,
        /// Greatest count, at least `min`.
        max: Option<u32>,
    },
    /// Parts in any order, with separators.
    AnyOrder(Box<AnyOrder>),
}

/// A named rule.
#[derive(Debug, Clone)]
struct Rule {
    name: String,
    span: Span,
    body: ExprId,
}

/// A grammar: rules, one of them the start.
#[derive(Debug, Clone)]
pub struct Grammar {
    rules: Vec<Rule>,
    exprs: Vec<Expr>,
    spans: Vec<Span>,
    root: RuleId,
    pub(super) warnings: Vec<GrammarWarning>,
    keys: Option<DistinctKeys>,
    items: Option<DistinctItems>,
    common: Vec<Automaton>,
    specials: Vec<String>,
    captured: Vec<(RuleId, String)>,
    ignored: Vec<RuleId>,
    greedy: bool,
    classes: BTreeSet<TokenClass>,
}

/// That the texts of a grammar are JSON, and none of their objects has a key twice. No context-free grammar
/// can say so of keys that it does not list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DistinctKeys {
    /// Can there be a beginning of a key after which only finitely many keys are left, so that all of those
    /// may have come? Masks look at more tokens then.
    pub may_run_out: bool,
    /// Promises three things about key terminals, so that masks check fewer tokens. Each key is one
    /// terminal, and one that may begin with a colon follows it directly. Keys that need no escapes are
    /// accepted without them. A terminal of one key stands only where that key is new. If in doubt, `false`
    /// is correct.
    pub are_terminals: bool,
}

/// That the texts of a grammar are JSON, and some of its marks stand only after an item of an array that
/// equals none before it ([`Pattern::after_new_item`]). No context-free grammar can say so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DistinctItems {
    /// Can there be a beginning of an item, or of a string in one, that only finitely many values have, so that
    /// all of those may have come? Masks look at more tokens then.
    pub strings_may_run_out: bool,
    /// The same of the digits of a number.
    pub numbers_may_run_out: bool,
}

impl Grammar {
    /// The start rule.
    #[must_use]
    pub fn root(&self) -> RuleId {
        self.root
    }

    /// Parts of the text that may not mean what its author expects, in the text's order; at most twenty. What
    /// a grammar costs is another question: [`CompiledGrammar::warnings`](crate::CompiledGrammar::warnings).
    #[must_use]
    pub fn warnings(&self) -> &[GrammarWarning] {
        &self.warnings
    }

    /// Of the texts of the rules, are only those meant in which no object of the JSON has a key twice?
    #[must_use]
    pub fn distinct_keys(&self) -> Option<DistinctKeys> {
        self.keys
    }

    /// Do some marks of the JSON stand only after items that are new in their array?
    #[must_use]
    pub fn distinct_items(&self) -> Option<DistinctItems> {
        self.items
    }

    /// Languages that grammars of its notation have in common, and that leaves of this one may largely agree
    /// with, such as any string of JSON. They mean nothing for its texts; masks are made sooner.
    #[must_use]
    pub fn common(&self) -> &[Automaton] {
        &self.common
    }

    /// The names of the special tokens that it asks for, sorted. Such a token stands for itself: a text may
    /// hold its name beside it.
    #[must_use]
    pub fn specials(&self) -> &[String] {
        &self.specials
    }

    /// The classes of tokens that it asks for, sorted.
    pub(crate) fn classes(&self) -> impl ExactSizeIterator<Item = TokenClass> {
        self.classes.iter().copied()
    }

    /// The rules that it captures itself, and under which names: for [`Captures`](crate::Captures).
    pub fn captured(&self) -> impl ExactSizeIterator<Item = (RuleId, &str)> {
        self.captured.iter().map(|(rule, name)| (*rule, &**name))
    }

    /// The rules whose texts are left out where they end what is captured, such as that of Lark's `%ignore`.
    #[must_use]
    pub fn ignored(&self) -> &[RuleId] {
        &self.ignored
    }

    /// Are texts split into terminals greedily, as [`Syntax::LarkGreedy`](super::Syntax::LarkGreedy) says?
    #[must_use]
    pub fn is_greedy(&self) -> bool {
        self.greedy
    }

    /// The texts of this grammar with `prefix` before them, for [healing](crate::decode::Healing) prompts.
    /// `None` if its texts are JSON without [repeated keys](Self::distinct_keys) or
    /// [items](Self::distinct_items), which is said of whole texts. Linear.
    #[must_use]
    pub fn after(&self, prefix: &[u8]) -> Option<Self> {
        let mut grammar = self.clone();
        if grammar.keys.is_some() || grammar.items.is_some() {
            return None;
        }
        let mut push = |expr: Expr| {
            let id = ExprId::from_index(grammar.exprs.len())?;
            grammar.exprs.push(expr);
            grammar.spans.push(Span::default());
            Some(id)
        };
        let before = push(Expr::Pattern(Pattern::literal(prefix)))?;
        let text = push(Expr::Rule(self.root))?;
        let body = push(Expr::Sequence(vec![before, text]))?;
        grammar.root = RuleId::from_index(grammar.rules.len())?;
        grammar.rules.push(Rule { name: "after the prompt".to_owned(), span: Span::default(), body });
        Some(grammar)
    }

    /// A text in which the names of its [special tokens](Self::specials) stand for those, as the bytes that
    /// [`Constraint::advance_bytes`](crate::Constraint::advance_bytes) takes: each name between two bytes
    /// `0xFF`. Linear in the text, for each name.
    #[must_use]
    pub fn spell<'t>(&self, text: &'t [u8]) -> Cow<'t, [u8]> {
        if self.specials.is_empty() { text.into() } else { special::spell(text, &self.specials).into() }
    }

    /// All rules, in order of first mention.
    pub fn rules(&self) -> impl ExactSizeIterator<Item = RuleId> + use<> {
        (0..u32::try_from(self.rules.len()).unwrap_or(u32::MAX)).map(RuleId::new)
    }

    /// The name of a rule as written.
    #[must_use]
    pub fn rule_name(&self, rule: RuleId) -> &str {
        &self.rules[rule.index()].name
    }

    /// Where the rule is defined.
    #[must_use]
    pub fn rule_span(&self, rule: RuleId) -> Span {
        self.rules[rule.index()].span
    }

    /// The body of a rule.
    #[must_use]
    pub fn rule_body(&self, rule: RuleId) -> ExprId {
        self.rules[rule.index()].body
    }

    /// An expression.
    #[must_use]
    pub fn expr(&self, expr: ExprId) -> &Expr {
        &self.exprs[expr.index()]
    }

    /// Where an expression stands in the grammar text.
    #[must_use]
    pub fn expr_span(&self, expr: ExprId) -> Span {
        self.spans[expr.index()]
    }

    /// All expressions; parts come before what they are part of.
    pub fn exprs(&self) -> impl ExactSizeIterator<Item = (ExprId, &Expr)> {
        self.exprs
            .iter()
            .enumerate()
            .map(|(index, expr)| (ExprId::new(u32::try_from(index).unwrap_or(u32::MAX)), expr))
    }
}

/// A rule that was used or defined.
#[derive(Debug)]
struct Mention {
    name: String,
    uses: Vec<Span>,
    body: Option<(Span, ExprId)>,
}

/// Builds a [`Grammar`]. Sequences and alternatives of one part are that part, so redundant
/// parentheses cost nothing.
#[derive(Debug)]
pub struct GrammarBuilder {
    names: HashMap<String, RuleId>,
    rules: Vec<Mention>,
    exprs: Vec<Expr>,
    spans: Vec<Span>,
    warnings: Vec<GrammarWarning>,
    keys: Option<DistinctKeys>,
    items: Option<DistinctItems>,
    common: Vec<Automaton>,
    specials: BTreeSet<String>,
    captured: Vec<(RuleId, String)>,
    ignored: Vec<RuleId>,
    greedy: bool,
    classes: BTreeSet<TokenClass>,
    max_exprs: usize,
}

/// A rule was given a second body; holds the span of the first definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DuplicateRule {
    /// Where the rule was defined first.
    pub first: Span,
}

/// Why a [`GrammarBuilder`] could not finish.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnfinishedGrammar {
    /// There is no rule of the start rule's name.
    NoRoot,
    /// Rules that are used but have no body: name and every place of use, in order of first use.
    Undefined(Vec<(String, Vec<Span>)>),
}

impl GrammarBuilder {
    /// An empty grammar.
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        Self {
            names: HashMap::new(),
            rules: Vec::new(),
            exprs: Vec::new(),
            spans: Vec::new(),
            warnings: Vec::new(),
            keys: None,
            items: None,
            common: Vec::new(),
            specials: BTreeSet::new(),
            captured: Vec::new(),
            ignored: Vec::new(),
            greedy: false,
            classes: BTreeSet::new(),
            max_exprs: limits.expressions.min(u32::MAX as usize),
        }
    }

    fn rule(&mut self, name: &str) -> RuleId {
        if let Some(&rule) = self.names.get(name) {
            return rule;
        }
        // More rules than expressions cannot be made, and expressions are bounded by `u32`.
        let rule = RuleId::new(u32::try_from(self.rules.len()).unwrap_or(u32::MAX));
        self.names.insert(name.to_owned(), rule);
        self.rules.push(Mention { name: name.to_owned(), uses: Vec::new(), body: None });
        rule
    }

    fn push(&mut self, expr: Expr, span: Span) -> Result<ExprId, LimitExceeded> {
        if self.exprs.len() >= self.max_exprs {
            return Err(LimitExceeded::new(Budget::Expressions, "expressions of a grammar", self.max_exprs));
        }
        let id = ExprId::new(u32::try_from(self.exprs.len()).unwrap_or(u32::MAX));
        self.exprs.push(expr);
        self.spans.push(span);
        Ok(id)
    }

    /// Number of expressions so far.
    pub(crate) fn expr_count(&self) -> usize {
        self.exprs.len()
    }

    /// An expression; there is one.
    pub(crate) fn expr(&self, expr: ExprId) -> &Expr {
        &self.exprs[expr.index()]
    }

    /// The body of a rule, if it has one yet.
    pub(crate) fn body(&self, rule: RuleId) -> Option<ExprId> {
        self.rules.get(rule.index())?.body.map(|(_, body)| body)
    }

    /// Attaches what the author of the text should know.
    pub(crate) fn warn(&mut self, warnings: Vec<GrammarWarning>) {
        self.warnings.extend(warnings);
    }

    /// Says that texts are split into terminals greedily.
    pub(super) fn greedy(&mut self) {
        self.greedy = true;
    }

    /// Says that the texts are JSON, and that those in which an object has a key twice are not meant.
    pub fn distinct_keys(&mut self, keys: DistinctKeys) {
        self.keys = Some(keys);
    }

    /// Says that the texts are JSON, and that marks [after new items](Pattern::after_new_item) are that.
    pub fn distinct_items(&mut self, items: DistinctItems) {
        self.items = Some(items);
    }

    /// Adds to what [`Grammar::common`] says.
    pub fn in_common(&mut self, automaton: Automaton) {
        if !self.common.contains(&automaton) {
            self.common.push(automaton);
        }
    }

    /// Says that texts of the rule called `rule` are captured under `name`.
    pub fn capture(&mut self, rule: &str, name: &str) {
        let rule = self.rule(rule);
        self.captured.push((rule, name.to_owned()));
    }

    /// Says that texts of the rule called `rule` are left out where they end what is captured.
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
    /// When the budget of expressions is used up, as for every expression below.
    pub fn rule_ref(&mut self, name: &str, span: Span) -> Result<ExprId, LimitExceeded> {
        let rule = self.rule(name);
        self.mention(rule, span)
    }

    /// A use of a rule that is there.
    pub(super) fn mention(&mut self, rule: RuleId, span: Span) -> Result<ExprId, LimitExceeded> {
        self.rules[rule.index()].uses.push(span);
        self.push(Expr::Rule(rule), span)
    }

    /// A byte language.
    ///
    /// # Errors
    /// See [`rule_ref`](Self::rule_ref).
    pub fn pattern(&mut self, pattern: Pattern, span: Span) -> Result<ExprId, LimitExceeded> {
        self.classes.extend(pattern.classes());
        self.push(Expr::Pattern(pattern), span)
    }

    /// The special token of this name, which the vocabulary must have. The name is not empty.
    ///
    /// # Errors
    /// See [`rule_ref`](Self::rule_ref).
    pub fn special(&mut self, name: &str, span: Span) -> Result<ExprId, LimitExceeded> {
        debug_assert!(!name.is_empty());
        self.specials.insert(name.to_owned());
        self.pattern(Pattern::literal(&special::spelled(name)), span)
    }

    /// Says that patterns hold special tokens, as [`special`](Self::special) makes them.
    pub(super) fn with_specials(&mut self, names: &[String]) {
        self.specials.extend(names.iter().cloned());
    }

    /// One after the other.
    ///
    /// # Errors
    /// See [`rule_ref`](Self::rule_ref).
    pub fn sequence(&mut self, parts: Vec<ExprId>, span: Span) -> Result<ExprId, LimitExceeded> {
        match parts[..] {
            [only] => Ok(only),
            _ => self.push(Expr::Sequence(parts), span),
        }
    }

    /// One of them.
    ///
    /// # Errors
    /// See [`rule_ref`](Self::rule_ref).
    pub fn alternatives(&mut self, parts: Vec<ExprId>, span: Span) -> Result<ExprId, LimitExceeded> {
        match parts[..] {
            [only] => Ok(only),
            _ => self.push(Expr::Alternatives(parts), span),
        }
    }

    /// `min` to `max` times. The caller sees to `min <= max`.
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

    /// Parts in any order. The caller sees to it that names are indices of
    /// [`required`](AnyOrder::required), and that neither parts nor the separator match the empty text.
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

    /// Gives the rule called `name` its body. `span` is that of the name where it is defined.
    ///
    /// # Errors
    /// If it has one already.
    pub fn define(&mut self, name: &str, body: ExprId, span: Span) -> Result<RuleId, DuplicateRule> {
        let rule = self.rule(name);
        let slot = &mut self.rules[rule.index()].body;
        if let Some((first, _)) = *slot {
            return Err(DuplicateRule { first });
        }
        *slot = Some((span, body));
        Ok(rule)
    }

    /// The rules that have a body so far: name and where it is defined, in order of first mention.
    pub fn defined(&self) -> impl Iterator<Item = (&str, Span)> {
        self.rules.iter().filter_map(|rule| rule.body.map(|(span, _)| (&*rule.name, span)))
    }

    /// Would [`finish`](Self::finish) succeed?
    ///
    /// # Errors
    /// If `root` or any rule that is used is not defined.
    pub fn check(&self, root: &str) -> Result<(), UnfinishedGrammar> {
        let undefined: Vec<_> = self
            .rules
            .iter()
            .filter(|rule| rule.body.is_none())
            .map(|rule| (rule.name.clone(), rule.uses.clone()))
            .collect();
        match (undefined.is_empty(), self.names.contains_key(root)) {
            (true, true) => Ok(()),
            (true, false) => Err(UnfinishedGrammar::NoRoot),
            (false, _) => Err(UnfinishedGrammar::Undefined(undefined)),
        }
    }

    /// The grammar whose start rule is called `root`.
    ///
    /// # Errors
    /// If `root` or any rule that is used is not defined.
    pub fn finish(self, root: &str) -> Result<Grammar, UnfinishedGrammar> {
        self.check(root)?;
        let root = *self.names.get(root).ok_or(UnfinishedGrammar::NoRoot)?;
        // Every rule has a body: that was checked.
        let rules = self
            .rules
            .into_iter()
            .filter_map(|rule| rule.body.map(|(span, body)| Rule { name: rule.name, span, body }))
            .collect();
        let Self {
            exprs,
            spans,
            warnings,
            keys,
            items,
            common,
            specials,
            captured,
            ignored,
            greedy,
            classes,
            ..
        } = self;
        let specials = specials.into_iter().collect();
        Ok(Grammar {
            rules,
            exprs,
            spans,
            root,
            warnings,
            keys,
            items,
            common,
            specials,
            captured,
            ignored,
            greedy,
            classes,
        })
    }
}

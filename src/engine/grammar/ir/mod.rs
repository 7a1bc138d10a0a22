//! The grammar IR that every notation is turned into: rules over an arena of expressions.
//!
//! Invariants: an expression's parts have smaller ids than itself (so passes are loops without recursion, and
//! deep input cannot overflow the stack); every rule has a body; [`GrammarBuilder`] is the only way in. The
//! IR knows nothing of scanners, parsers or vocabularies.

pub mod any_order;
pub mod automaton;
pub mod decisions;
pub mod pattern;

mod ask;
mod escaped;
mod length_bounded;

use std::{collections::HashMap, sync::Arc};

use hashbrown::HashSet;

use self::{
    any_order::AnyOrder,
    ask::AskedTokens,
    automaton::Automaton,
    pattern::{Pattern, PatternKind},
};
use super::{errors::GrammarWarning, source::Span, thought::Thought};
use crate::{
    ids::{ExprId, Numbered, RuleId, number},
    limits::{Budget, Cancel, LimitExceeded, Limits},
};

pub use self::length_bounded::LengthBounded;

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
struct NamedRule {
    name: String,
    span: Span,
    body: ExprId,
}

/// A grammar: rules, one of them the start.
#[derive(Debug, Clone)]
pub struct Grammar {
    rules: Numbered<NamedRule>,
    exprs: Numbered<Expr>,
    spans: Vec<Span>,
    root: RuleId,
    warnings: Vec<GrammarWarning>,
    keys: Option<DistinctKeys>,
    items: Option<DistinctItems>,
    common: Vec<Automaton>,
    asked: AskedTokens,
    captured: Vec<(RuleId, String)>,
    ignored: Vec<RuleId>,
    greedy: bool,
    thought: Option<Arc<Thought>>,
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
    pub(super) fn with_warnings(mut self, change: impl FnMut(GrammarWarning) -> GrammarWarning) -> Self {
        self.warnings = self.warnings.into_iter().map(change).collect();
        self
    }

    /// The rule that no object has a key twice, if the texts of the grammar are restricted by it.
    #[must_use]
    pub fn distinct_keys(&self) -> Option<DistinctKeys> {
        self.keys
    }

    /// The same grammar without the texts in which an object has a key twice. Its texts must be JSON, which
    /// is not checked. For notations that cannot say this themselves.
    #[must_use]
    pub fn with_distinct_keys(self, keys: DistinctKeys) -> Self {
        Self { keys: Some(keys), ..self }
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

    /// The grammar of the same texts with `prefix` before them, for healing
    /// prompts. `None` if its texts are JSON without [repeated keys](Self::distinct_keys) or
    /// [items](Self::distinct_items), which are rules for whole texts. Linear.
    #[must_use]
    pub fn after(&self, prefix: &[u8]) -> Option<Self> {
        let mut grammar = self.clone();
        if grammar.keys.is_some() || grammar.items.is_some() {
            return None;
        }
        let before = grammar.push_expr(Expr::Pattern(Pattern::literal(prefix))).ok()?;
        let text = grammar.push_expr(Expr::Rule(self.root)).ok()?;
        grammar.begin_with(vec![before, text]).ok()?;
        Some(grammar)
    }

    /// Adds an expression of parts that are there.
    pub(super) fn push_expr(&mut self, expr: Expr) -> Result<ExprId, LimitExceeded> {
        let id = self.exprs.push(expr, "expressions")?;
        self.spans.push(Span::default());
        Ok(ExprId::new(id))
    }

    /// Makes the start a new rule, of a sequence of these parts.
    pub(super) fn begin_with(&mut self, parts: Vec<ExprId>) -> Result<(), LimitExceeded> {
        let body = self.push_expr(Expr::Sequence(parts))?;
        let rule = NamedRule { name: "the whole text".to_owned(), span: Span::default(), body };
        self.root = RuleId::new(self.rules.push(rule, "rules")?);
        Ok(())
    }

    /// Asks for the special token of this name.
    pub(super) fn ask_for(&mut self, name: &str) {
        self.asked.add_special(name);
    }

    /// The thought that comes before its texts, if one may ([`after_thought`](Self::after_thought)).
    #[must_use]
    pub fn thought(&self) -> Option<&Thought> {
        self.thought.as_deref()
    }

    /// Returns the same, shared.
    pub(crate) fn shared_thought(&self) -> Option<Arc<Thought>> {
        self.thought.clone()
    }

    /// Notes that texts begin with this thought, which is in the grammar.
    pub(super) fn think(&mut self, thought: &Thought) {
        self.thought = Some(Arc::new(thought.clone()));
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

// Rules are mentioned, expressions pushed, bodies given, and all is checked at the end.

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
    asked: AskedTokens,
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
    pub(super) fn automata_bytes(&self) -> usize {
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
    pub(super) fn greedy(&mut self) {
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
    fn mention(&mut self, rule: RuleId, span: Span) -> Result<ExprId, LimitExceeded> {
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
            thought: None,
        })
    }
}

/// The budgets of a [`GrammarBuilder`].
#[derive(Debug)]
struct Room {
    expressions: usize,
    /// Memory of automata, in bytes: the limit, then what is taken of it.
    most: usize,
    bytes: usize,
    /// The automata met so far, each counted once.
    known: HashSet<Automaton>,
    cancel: Option<Cancel>,
}

impl Room {
    /// The budgets that the limits allow.
    fn new(limits: &Limits) -> Self {
        let expressions = limits.expressions.min(u32::MAX as usize);
        let (known, cancel) = (HashSet::new(), limits.cancel.clone());
        Self { expressions, most: limits.terminal_bytes, bytes: 0, known, cancel }
    }

    /// Checks that there is room for one more expression beside `count`.
    ///
    /// # Errors
    /// If there is none, or the construction was cancelled.
    fn expression(&self, count: usize) -> Result<(), LimitExceeded> {
        let exceeded =
            || LimitExceeded::new(Budget::Expressions, "expressions of a grammar", self.expressions);
        self.cancel.as_ref().map_or(Ok(()), Cancel::look)?;
        if count < self.expressions { Ok(()) } else { Err(exceeded()) }
    }

    /// Memory of the automata so far, in bytes.
    fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes the room of a leaf's automaton, if it has one that was not met before.
    ///
    /// # Errors
    /// If there is not enough.
    fn leaf(&mut self, kind: &PatternKind) -> Result<(), LimitExceeded> {
        let (automaton, more) = match kind {
            PatternKind::Automaton(automaton) => (automaton, 0),
            PatternKind::LengthBounded(bounded) => (bounded.automaton(), bounded.bytes()),
            PatternKind::Spelled(spelled) => {
                self.bytes += spelled.bytes();
                let fits = self.bytes <= self.most;
                return fits.then_some(()).ok_or_else(|| LimitExceeded::of_terminals(self.most));
            }
            PatternKind::Expression(_) | PatternKind::Substrings(_) => return Ok(()),
        };
        self.bytes += more;
        if self.known.insert(automaton.clone()) {
            self.bytes += automaton.bytes();
        }
        if self.bytes > self.most { Err(LimitExceeded::of_terminals(self.most)) } else { Ok(()) }
    }
}

/// Copies the rules of `grammar` under names that begin with `prefix`, and returns the name of its start
/// rule. `at` is the place where its text begins in that of the other grammar. Linear.
///
/// [`Grammar::distinct_keys`], [`Grammar::distinct_items`] and [`Grammar::thought`] are not copied, since
/// they are about whole texts.
///
/// # Errors
/// If the budget of expressions is used up.
pub(super) fn embed(
    builder: &mut GrammarBuilder,
    grammar: &Grammar,
    prefix: &str,
    at: u32,
) -> Result<String, LimitExceeded> {
    let name = |rule| format!("{prefix}{}", grammar.rule_name(rule));
    // Rules are numbered in order of first mention, and few mentions are a rule's first.
    let mut rules: Vec<Option<RuleId>> = vec![None; grammar.rules().len()];
    let mut made: Vec<ExprId> = Vec::with_capacity(grammar.exprs().len());
    for (id, expr) in grammar.exprs() {
        let span = grammar.expr_span(id).shifted(at);
        let parts = |parts: &[ExprId]| parts.iter().map(|part| made[part.index()]).collect::<Vec<_>>();
        let copy = match expr {
            Expr::Pattern(pattern) => builder.pattern(pattern.clone(), span),
            Expr::Rule(rule) => {
                let copy = *rules[rule.index()].get_or_insert_with(|| builder.declare(&name(*rule)));
                builder.mention(copy, span)
            }
            Expr::Sequence(list) => builder.sequence(parts(list), span),
            Expr::Alternatives(list) => builder.alternatives(parts(list), span),
            Expr::Repeat { part, min, max } => builder.repeat(made[part.index()], *min, *max, span),
            Expr::AnyOrder(list) => {
                let list: AnyOrder = list.map(|part| made[part.index()]);
                builder.any_order(list, span)
            }
        }?;
        made.push(copy);
    }
    for rule in grammar.rules() {
        let body = made[grammar.rule_body(rule).index()];
        // A prefix is used once, so the name is free.
        let _ = builder.define(&name(rule), body, grammar.rule_span(rule).shifted(at));
    }
    builder.with_asked(grammar);
    grammar.captured().for_each(|(rule, captured)| builder.capture(&name(rule), captured));
    grammar.ignored().iter().for_each(|&rule| builder.ignore(&name(rule)));
    grammar.common().iter().for_each(|automaton| builder.in_common(automaton.clone()));
    Ok(name(grammar.root()))
}

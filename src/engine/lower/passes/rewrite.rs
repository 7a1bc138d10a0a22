//! The grammar while it is being lowered: the IR's arena, open to rewriting.
//!
//! Invariant: as in the IR, an expression's parts have smaller ids than itself.

use hashbrown::{HashMap, HashSet};
use regex_syntax::hir::{Hir, HirKind};

use crate::{
    automata::components,
    grammar::{Expr, Grammar, Pattern, PatternKind, Span},
    ids::{ExprId, RuleId},
    limits::{Budget, LimitExceeded, Limits},
};

/// Rules that can be rewritten.
#[derive(Debug)]
pub(in crate::lower) struct WorkGrammar {
    exprs: Vec<Expr>,
    /// The place of each expression in the text; empty for those that rewriting made.
    spans: Vec<Span>,
    bodies: Vec<ExprId>,
    /// Name of each rule, and the place of its definition.
    rules: Vec<(String, Span)>,
    root: RuleId,
    epsilon: Option<ExprId>,
    /// Regular expressions of the source, as the expressions they were taken apart into.
    regexes: HashSet<ExprId>,
}

impl WorkGrammar {
    /// Copies a grammar with its patterns taken apart down to literals and classes. Whether they become one
    /// automaton again is decided as for any other expression, so no pattern is too large.
    pub(in crate::lower) fn from_ir(grammar: &Grammar, limits: &Limits) -> Result<Self, LimitExceeded> {
        let mut work = Self {
            exprs: Vec::with_capacity(grammar.exprs().len()),
            spans: Vec::with_capacity(grammar.exprs().len()),
            bodies: Vec::new(),
            rules: grammar
                .rules()
                .map(|rule| (grammar.rule_name(rule).to_owned(), grammar.rule_span(rule)))
                .collect(),
            root: grammar.root(),
            epsilon: None,
            regexes: HashSet::new(),
        };
        // Parts have smaller ids than their wholes, so one pass in order of ids renames all.
        let mut renamed: Vec<ExprId> = Vec::with_capacity(grammar.exprs().len());
        for (id, expr) in grammar.exprs() {
            let all = |parts: &[ExprId]| parts.iter().map(|part| renamed[part.index()]).collect();
            let new = match expr {
                Expr::Pattern(pattern) => match pattern.kind() {
                    PatternKind::Expression(hir) => {
                        let opened = work.open_pattern(hir, limits)?;
                        if !matches!(hir.kind(), HirKind::Literal(_) | HirKind::Class(_) | HirKind::Empty) {
                            work.regexes.insert(opened);
                        }
                        opened
                    }
                    PatternKind::Automaton(_)
                    | PatternKind::Substrings(_)
                    | PatternKind::LengthBounded(_)
                    | PatternKind::Spelled(_) => work.push(expr.clone(), limits)?,
                },
                Expr::Rule(rule) => work.push(Expr::Rule(*rule), limits)?,
                Expr::Sequence(parts) => work.push(Expr::Sequence(all(parts)), limits)?,
                Expr::Alternatives(parts) => work.push(Expr::Alternatives(all(parts)), limits)?,
                Expr::Repeat { part, min, max } => work.repeat(renamed[part.index()], *min, *max, limits)?,
                Expr::AnyOrder(parts) => {
                    let parts = parts.map(|part| renamed[part.index()]);
                    work.push(Expr::AnyOrder(Box::new(parts)), limits)?
                }
            };
            // What a pattern was taken apart into stands where the pattern does.
            work.spans.resize(work.exprs.len(), grammar.expr_span(id));
            renamed.push(new);
        }
        work.bodies = grammar.rules().map(|rule| renamed[grammar.rule_body(rule).index()]).collect();
        Ok(work)
    }

    /// Takes a pattern apart. Recursion is as deep as the pattern, which [`Pattern`] bounds.
    fn open_pattern(&mut self, hir: &Hir, limits: &Limits) -> Result<ExprId, LimitExceeded> {
        let all = |work: &mut Self, parts: &[Hir]| -> Result<Vec<ExprId>, LimitExceeded> {
            parts.iter().map(|part| work.open_pattern(part, limits)).collect()
        };
        let expr = match hir.kind() {
            HirKind::Concat(parts) => Expr::Sequence(all(self, parts)?),
            HirKind::Alternation(parts) => Expr::Alternatives(all(self, parts)?),
            HirKind::Capture(capture) => return self.open_pattern(&capture.sub, limits),
            HirKind::Repetition(repetition) => {
                let part = self.open_pattern(&repetition.sub, limits)?;
                return self.repeat(part, repetition.min, repetition.max, limits);
            }
            HirKind::Literal(literal) => Expr::Pattern(Pattern::literal(&literal.0)),
            HirKind::Class(class) => Expr::Pattern(Pattern::byte_class(class.clone())),
            // A pattern has no look-around.
            HirKind::Empty | HirKind::Look(_) => return self.sequence(Vec::new(), limits),
        };
        self.push(expr, limits)
    }

    pub(in crate::lower) fn root(&self) -> RuleId {
        self.root
    }

    pub(in crate::lower) fn expr(&self, expr: ExprId) -> &Expr {
        &self.exprs[expr.index()]
    }

    pub(in crate::lower) fn exprs(&self) -> &[Expr] {
        &self.exprs
    }

    pub(in crate::lower) fn rule_count(&self) -> usize {
        self.bodies.len()
    }

    pub(in crate::lower) fn body(&self, rule: RuleId) -> ExprId {
        self.bodies[rule.index()]
    }

    /// Lists the expressions in the body of a rule that were not `seen` yet, parts before what they are part
    /// of, and marks them.
    pub(in crate::lower) fn unseen_below(&self, rule: RuleId, seen: &mut [bool]) -> Vec<ExprId> {
        let mut below = Vec::new();
        let mut stack = vec![self.body(rule)];
        while let Some(expr) = stack.pop() {
            if std::mem::replace(&mut seen[expr.index()], true) {
                continue;
            }
            below.push(expr);
            match self.expr(expr) {
                Expr::Pattern(_) | Expr::Rule(_) => {}
                Expr::Sequence(parts) | Expr::Alternatives(parts) => stack.extend(parts),
                Expr::Repeat { part, .. } => stack.push(*part),
                Expr::AnyOrder(parts) => stack.extend(parts.exprs()),
            }
        }
        // A part has a smaller id than its whole.
        below.sort_unstable();
        below
    }

    pub(in crate::lower) fn name(&self, rule: RuleId) -> &str {
        &self.rules[rule.index()].0
    }

    /// The place of the rule's definition.
    pub(in crate::lower) fn rule_span(&self, rule: RuleId) -> Span {
        self.rules[rule.index()].1
    }

    /// The place of an expression in the text; empty if rewriting made it.
    pub(in crate::lower) fn expr_span(&self, expr: ExprId) -> Span {
        self.spans.get(expr.index()).copied().unwrap_or_default()
    }

    /// Is the expression a whole regular expression of the source?
    pub(in crate::lower) fn is_regex(&self, expr: ExprId) -> bool {
        self.regexes.contains(&expr)
    }

    /// Was the expression made by rewriting?
    pub(in crate::lower) fn is_rewritten(&self, expr: ExprId) -> bool {
        expr.index() >= self.spans.len()
    }

    /// Adds a rule that is a part of another and has its name.
    pub(in crate::lower) fn add_rule(
        &mut self,
        of: RuleId,
        body: ExprId,
        limits: &Limits,
    ) -> Result<RuleId, LimitExceeded> {
        let exceeded =
            || LimitExceeded::new(Budget::Expressions, "expressions of a grammar", limits.expressions);
        let rule = RuleId::from_index(self.bodies.len()).ok_or_else(exceeded)?;
        self.bodies.push(body);
        self.rules.push(self.rules[of.index()].clone());
        Ok(rule)
    }

    pub(in crate::lower) fn set_body(&mut self, rule: RuleId, body: ExprId) {
        self.bodies[rule.index()] = body;
    }

    /// Copies the expression with parts replaced by equivalent ones. Linear in what is below it.
    pub(in crate::lower) fn replaced(
        &mut self,
        expr: ExprId,
        by: &HashMap<ExprId, ExprId>,
        limits: &Limits,
    ) -> Result<ExprId, LimitExceeded> {
        let mut known: HashMap<ExprId, ExprId> = HashMap::new();
        // Expressions to rebuild: each comes up once before its parts, and again after them.
        let mut open = vec![(expr, false)];
        while let Some((here, parts_done)) = open.pop() {
            if known.contains_key(&here) {
                continue;
            }
            let target = *by.get(&here).unwrap_or(&here);
            let of = |part: &ExprId| *known.get(part).unwrap_or(part);
            let parts: Vec<ExprId> = match &self.exprs[target.index()] {
                Expr::Pattern(_) | Expr::Rule(_) => Vec::new(),
                Expr::Sequence(parts) | Expr::Alternatives(parts) => parts.clone(),
                Expr::Repeat { part, .. } => vec![*part],
                Expr::AnyOrder(parts) => parts.exprs().collect(),
            };
            if !parts_done {
                open.push((here, true));
                open.extend(parts.into_iter().map(|part| (part, false)));
                continue;
            }
            // All parts are rebuilt; the expression is copied only if one of them has changed.
            let new: Vec<ExprId> = parts.iter().map(of).collect();
            let made = if new == parts {
                target
            } else {
                let rebuilt = match &self.exprs[target.index()] {
                    Expr::Sequence(_) => Expr::Sequence(new),
                    Expr::Alternatives(_) => Expr::Alternatives(new),
                    Expr::Repeat { min, max, .. } => Expr::Repeat { part: new[0], min: *min, max: *max },
                    Expr::AnyOrder(parts) => Expr::AnyOrder(Box::new(parts.map(|part| of(&part)))),
                    other => other.clone(),
                };
                let made = self.push(rebuilt, limits)?;
                let span = self.expr_span(here);
                self.spans.resize(self.exprs.len(), Span::default());
                self.spans[made.index()] = span;
                made
            };
            known.insert(here, made);
        }
        Ok(*known.get(&expr).unwrap_or(&expr))
    }

    /// Adds an expression over existing ones.
    pub(in crate::lower) fn push(&mut self, expr: Expr, limits: &Limits) -> Result<ExprId, LimitExceeded> {
        let exceeded =
            || LimitExceeded::new(Budget::Expressions, "expressions of a grammar", limits.expressions);
        // Rewriting may double the expressions before it counts as running away.
        if self.exprs.len() >= limits.expressions.saturating_mul(2) {
            return Err(exceeded());
        }
        let id = ExprId::from_index(self.exprs.len()).ok_or_else(exceeded)?;
        self.exprs.push(expr);
        limits.look()?;
        Ok(id)
    }

    /// Returns the sequence of these parts; a single part is itself.
    pub(in crate::lower) fn sequence(
        &mut self,
        parts: Vec<ExprId>,
        limits: &Limits,
    ) -> Result<ExprId, LimitExceeded> {
        match parts[..] {
            [only] => Ok(only),
            [] => match self.epsilon {
                Some(epsilon) => Ok(epsilon),
                None => {
                    let epsilon = self.push(Expr::Sequence(parts), limits)?;
                    self.epsilon = Some(epsilon);
                    Ok(epsilon)
                }
            },
            _ => self.push(Expr::Sequence(parts), limits),
        }
    }

    /// Returns the choice of these parts; a single part is itself.
    pub(in crate::lower) fn alternatives(
        &mut self,
        parts: Vec<ExprId>,
        limits: &Limits,
    ) -> Result<ExprId, LimitExceeded> {
        match parts[..] {
            [only] => Ok(only),
            _ => self.push(Expr::Alternatives(parts), limits),
        }
    }

    /// Repeats a part `min` to `max` times. A repetition of a repetition is one repetition: `(x{p,q}){m,n}`
    /// is `x{pm,qn}` for `p <= 1`, because the counts it adds up leave no gaps.
    pub(in crate::lower) fn repeat(
        &mut self,
        part: ExprId,
        min: u32,
        max: Option<u32>,
        limits: &Limits,
    ) -> Result<ExprId, LimitExceeded> {
        if (min, max) == (1, Some(1)) {
            return Ok(part);
        }
        if let Expr::Repeat { part, min: least @ (0 | 1), max: most } = *self.expr(part) {
            let product = match (most, max) {
                (_, Some(0)) | (Some(0), _) => Some(Some(0)),
                (None, _) | (_, None) => Some(None),
                (Some(most), Some(max)) => most.checked_mul(max).map(Some),
            };
            if let Some(product) = product {
                return self.push(Expr::Repeat { part, min: min * least, max: product }, limits);
            }
        }
        self.push(Expr::Repeat { part, min, max }, limits)
    }

    /// Lists the rules that each rule's body mentions, by a loop over everything reachable from the body.
    fn callees(&self) -> Vec<Vec<RuleId>> {
        // By expression: the rule from which it was last met.
        let mut seen = vec![usize::MAX; self.exprs.len()];
        let mut stack = Vec::new();
        self.bodies
            .iter()
            .enumerate()
            .map(|(rule, &body)| {
                let mut callees = Vec::new();
                stack.push(body);
                while let Some(expr) = stack.pop() {
                    if std::mem::replace(&mut seen[expr.index()], rule) == rule {
                        continue;
                    }
                    match &self.exprs[expr.index()] {
                        Expr::Pattern(_) => {}
                        Expr::Rule(callee) => callees.push(*callee),
                        Expr::Sequence(parts) | Expr::Alternatives(parts) => stack.extend(parts),
                        Expr::Repeat { part, .. } => stack.push(*part),
                        Expr::AnyOrder(parts) => stack.extend(parts.exprs()),
                    }
                }
                callees.sort_unstable();
                callees.dedup();
                callees
            })
            .collect()
    }

    /// Counts the mentions of each rule by others of these. Linear.
    pub(in crate::lower) fn mention_counts(&self, components: &[Vec<RuleId>]) -> Vec<u32> {
        let mut counts = vec![0_u32; self.bodies.len()];
        let mut seen = vec![false; self.exprs.len()];
        for &rule in components.iter().flatten() {
            // Expressions may be shared: each is looked at once, each mention in it counts.
            let mut stack = Vec::new();
            let mut meet = |part: ExprId, stack: &mut Vec<ExprId>| match &self.exprs[part.index()] {
                Expr::Rule(callee) if *callee == rule => {}
                Expr::Rule(callee) => counts[callee.index()] = counts[callee.index()].saturating_add(1),
                _ => stack.push(part),
            };
            meet(self.body(rule), &mut stack);
            while let Some(expr) = stack.pop() {
                if std::mem::replace(&mut seen[expr.index()], true) {
                    continue;
                }
                match &self.exprs[expr.index()] {
                    Expr::Pattern(_) | Expr::Rule(_) => {}
                    Expr::Sequence(parts) | Expr::Alternatives(parts) => {
                        parts.iter().for_each(|&part| meet(part, &mut stack));
                    }
                    Expr::Repeat { part, .. } => meet(*part, &mut stack),
                    Expr::AnyOrder(parts) => parts.exprs().for_each(|part| meet(part, &mut stack)),
                }
            }
        }
        counts
    }

    /// Returns the strongly connected components of rules reachable from the root, callees before callers.
    pub(in crate::lower) fn rules_callees_first(&self) -> Vec<Vec<RuleId>> {
        let mut callees = self.callees();
        let take = |rule: usize| std::mem::take(&mut callees[rule]).into_iter().map(RuleId::index).collect();
        let found = components(self.bodies.len(), [self.root.index()], take);
        let rules = |component: Vec<usize>| component.into_iter().filter_map(RuleId::from_index).collect();
        found.into_iter().map(rules).collect()
    }
}

//! Choices: what holds of all parts, or of exactly one.
//!
//! Alternatives are multiplied out as a trial; where that is too much, objects stay a condition.

use std::rc::Rc;

use hashbrown::HashSet;

use super::{Algebra, Depth, Formula, FormulaId, Formulas, Leaf, MOST_WORK, Shape, TOO_MANY};
use crate::grammar::json_schema::error::{Checked, PendingError, SchemaErrorKind};

/// Limit on the work of one trial.
const TRIAL_WORK: usize = 200_000;
/// Limit on the alternatives that a trial makes of few.
const TRIAL_SHAPES: usize = 64;
/// Limit on the wanted members of one object that a trial makes.
const TRIAL_WANTED: usize = 2;

impl Algebra<'_> {
    /// Multiplies alternatives out by `work`, as a trial. If that is too much, the objects of the formula
    /// stay a condition; and if that makes too many states, `work` goes on as far as the budget goes.
    pub(super) fn tried(
        &mut self,
        id: FormulaId,
        work: impl Fn(&mut Self) -> Checked<Rc<Shape>>,
    ) -> Checked<Rc<Shape>> {
        if self.trial.is_some() {
            return work(self);
        }
        self.trial = Some(self.work.saturating_add(if self.options.untried { 0 } else { TRIAL_WORK }));
        let tried = work(self);
        self.trial = None;
        match tried {
            Err(problem) if self.is_within_limits(&problem) => match self.as_condition(id) {
                Err(problem) if self.is_within_limits(&problem) => work(self),
                made => made,
            },
            tried => tried,
        }
    }

    /// Ends a trial that asks for members under keys of several kinds, each of which doubles the states of an
    /// object.
    pub(super) fn look_at_wanted(&self, wanted: usize) -> Checked<()> {
        if self.trial.is_some() && wanted > TRIAL_WANTED {
            return Err(self.too_large(TOO_MANY));
        }
        Ok(())
    }

    /// Ends a trial that makes many more alternatives than the most that one of its parts has.
    pub(super) fn look_at_trial(&self, made: usize, most: usize) -> Checked<()> {
        if self.trial.is_some() && made >= TRIAL_SHAPES.max(most.saturating_mul(4)) {
            return Err(self.too_large(TOO_MANY));
        }
        Ok(())
    }

    /// True if the problem is a limit that was met before the schema's budget was used up.
    pub(super) fn is_within_limits(&self, problem: &PendingError) -> bool {
        problem.kind == SchemaErrorKind::Limit && self.work <= MOST_WORK
    }

    /// The shape of a formula with its objects as one shape with a condition.
    fn as_condition(&mut self, id: FormulaId) -> Checked<Rc<Shape>> {
        let objects = self.objects_as_condition(id)?;
        if let Some(shape) = objects.as_ref().filter(|shape| shape.condition.is_some()) {
            // It is needed when the object is written, and shows now whether there are too many states.
            self.decided_object(shape)?;
        }
        let others = self.without_objects(id)?;
        Ok(Rc::new(Shape { objects: objects.into_iter().collect(), ..(*others).clone() }))
    }

    /// The values of a formula that are no objects, memoised.
    fn without_objects(&mut self, id: FormulaId) -> Checked<Rc<Shape>> {
        if let Some(known) = self.others.get(&id) {
            return Ok(known.clone());
        }
        let shape = match self.formulas.get(id).clone() {
            Formula::Schema { node, scope, negated } => {
                let meaning = self.formula_of(node, scope)?;
                let meaning = if negated { self.formulas.not(meaning) } else { meaning };
                self.without_objects(meaning)?
            }
            Formula::And(parts) => {
                let mut whole = self.ends.any.clone();
                for &part in &*parts {
                    let part = self.without_objects(part)?;
                    whole = self.narrowed(whole, &part)?;
                }
                whole
            }
            Formula::Or(parts) => {
                let parts: Vec<_> =
                    parts.iter().map(|&part| self.without_objects(part)).collect::<Checked<_>>()?;
                self.union(&parts).map(Rc::new)?
            }
            Formula::One { of, negated } => {
                let mut parts = Vec::with_capacity(of.len());
                for &part in &*of {
                    let shape = self.without_objects(part)?;
                    parts.push(self.any_leaf(Leaf::Shape(shape)));
                }
                let spelt = match negated {
                    true => self.not_exactly_one(&parts)?,
                    false => self.exactly_one(&parts, Formulas::ANY)?,
                };
                self.expand(spelt)?
            }
            _ => self.expand(id)?,
        };
        let shape = Rc::new(Shape { objects: Vec::new(), ..(*shape).clone() });
        self.others.insert(id, shape.clone());
        Ok(shape)
    }

    /// Intersects the parts. Those with exactly one of some schemas come last: the others may tell these
    /// apart, for example by requiring a tag.
    pub(super) fn expand_all(&mut self, parts: &[FormulaId]) -> Checked<Rc<Shape>> {
        let (mut plain, mut choices) = (Vec::new(), Vec::new());
        self.sort_choices(parts, &mut plain, &mut choices)?;
        let plain = plain.into_iter().map(|part| self.expand(part)).collect::<Checked<Vec<_>>>()?;
        let mut whole = self.in_all(&plain)?;
        for of in choices {
            let context = if Rc::ptr_eq(&whole, &self.ends.any) {
                Formulas::ANY
            } else {
                self.any_leaf(Leaf::Shape(whole.clone()))
            };
            let part = self.exactly_one(&of, context)?;
            whole = self.expand(part)?;
        }
        Ok(whole)
    }

    /// Splits parts into those that ask for exactly one of some schemas, also where they do so by a
    /// reference, and all others. A schema is looked into once, so a loop of references stays for its
    /// expansion to find.
    fn sort_choices(
        &mut self,
        parts: &[FormulaId],
        plain: &mut Vec<FormulaId>,
        choices: &mut Vec<Rc<[FormulaId]>>,
    ) -> Checked<()> {
        let mut open: Vec<FormulaId> = parts.iter().rev().copied().collect();
        let mut seen = HashSet::new();
        while let Some(part) = open.pop() {
            match self.formulas.get(part).clone() {
                Formula::One { of, negated: false } => choices.push(of),
                Formula::Schema { node, scope, negated: false } if seen.insert(part) => {
                    self.site.push(node);
                    let meaning = self.formula_of(node, scope);
                    self.site.pop();
                    let meaning = meaning?;
                    match self.formulas.get(meaning).clone() {
                        Formula::And(inner) if inner.iter().any(|&part| self.may_choose(part)) => {
                            open.extend(inner.iter().rev());
                        }
                        Formula::One { .. } | Formula::Schema { .. } => open.push(meaning),
                        _ => plain.push(part),
                    }
                }
                _ => plain.push(part),
            }
        }
        Ok(())
    }

    /// True for a choice, or a schema that may be one.
    fn may_choose(&self, id: FormulaId) -> bool {
        matches!(
            self.formulas.get(id),
            Formula::One { negated: false, .. } | Formula::Schema { negated: false, .. }
        )
    }

    /// The formula of `oneOf` within `context`: each part, minus the other parts that it may overlap.
    ///
    /// Parts that are provably disjoint within `context`, such as those that differ in a tag, need no
    /// complement. Each alternative contains the context, since a nested choice may need it too.
    pub(super) fn exactly_one(&mut self, parts: &[FormulaId], context: FormulaId) -> Checked<FormulaId> {
        let mut without: Vec<Vec<FormulaId>> = vec![Vec::new(); parts.len()];
        for (first, &one) in parts.iter().enumerate() {
            for (second, &other) in parts.iter().enumerate().skip(first + 1) {
                self.spend(10)?;
                let both = self.formulas.and([context, one, other]);
                if !self.is_surely_empty(both, Depth::DISJOINT) {
                    without[first].push(other);
                    without[second].push(one);
                }
            }
        }
        let mut alternatives = Vec::with_capacity(parts.len());
        for (&part, others) in parts.iter().zip(&without) {
            let others: Vec<_> = others.iter().map(|&other| self.formulas.not(other)).collect();
            alternatives.push(self.formulas.and([context, part].into_iter().chain(others)));
        }
        Ok(self.formulas.or(alternatives))
    }

    /// The formula of "none of the parts, or two of them".
    pub(super) fn not_exactly_one(&mut self, parts: &[FormulaId]) -> Checked<FormulaId> {
        let none: Vec<_> = parts.iter().map(|&part| self.formulas.not(part)).collect();
        let mut alternatives = vec![self.formulas.and(none)];
        for (index, &one) in parts.iter().enumerate() {
            for &other in &parts[index + 1..] {
                self.spend(10)?;
                alternatives.push(self.formulas.and([one, other]));
            }
        }
        Ok(self.formulas.or(alternatives))
    }
}

//! Formulas -> conditions on objects, as large as the formulas and the schemas in them.

use std::rc::Rc;

use hashbrown::HashSet;

use super::{
    Algebra, ConditionId, Formula, FormulaId, Formulas, Leaf, MOST_LEVELS, ObjectShape, Statement, TOO_MANY,
    conditions::Condition,
};
use crate::{
    grammar::json_schema::error::{Checked, PendingError, SchemaErrorKind},
    ids::as_index,
};

impl Algebra<'_> {
    /// The objects of a formula as one shape, whose alternatives are a condition.
    pub(super) fn objects_as_condition(&mut self, id: FormulaId) -> Checked<Option<Rc<ObjectShape>>> {
        let condition = self.condition(id)?;
        let mut mentioned = ObjectShape::default();
        self.mentioned(id, &mut mentioned, &mut (HashSet::new(), HashSet::new()), 0)?;
        // Open alternatives are open by themselves where others are closed, which no condition says.
        if self.options.is_closed() && mentioned.open {
            return Err(self.too_large(TOO_MANY));
        }
        let mut shape = mentioned;
        let mut clauses = Vec::new();
        for part in self.conditions.parts(condition) {
            if part == ConditionId::NEVER {
                return Ok(None);
            }
            let (Condition::Says(statement), negated) = self.conditions.get(part) else {
                clauses.push(part);
                continue;
            };
            let statement = statement.clone();
            self.narrow(&mut shape, statement, negated);
        }
        let condition = self.conditions.all(clauses);
        shape.condition = (condition != ConditionId::ALWAYS).then_some(condition);
        Ok(self.settled_object(shape).map(Rc::new))
    }

    /// Narrows a shape by a statement that holds, or by one that does not.
    fn narrow(&mut self, shape: &mut ObjectShape, statement: Statement, negated: bool) {
        let declare =
            |shape: &mut ObjectShape, formulas: &mut Formulas, name: Rc<str>, value: FormulaId| match shape
                .properties
                .iter_mut()
                .find(|(known, _)| *known == name)
            {
                Some((_, known)) => *known = formulas.and([*known, value]),
                None => shape.properties.push((name, value)),
            };
        let require = |shape: &mut ObjectShape, name: Rc<str>| {
            if !shape.required.contains(&name) {
                shape.required.push(name);
            }
        };
        let formulas = &mut self.formulas;
        match (statement, negated) {
            (Statement::Value(name, value), false) => declare(shape, formulas, name, value),
            (Statement::Value(name, value), true) => {
                let other = formulas.not(value);
                declare(shape, formulas, name.clone(), other);
                require(shape, name);
            }
            (Statement::Present(name), false) => require(shape, name),
            (Statement::Present(name), true) => declare(shape, formulas, name, Formulas::NEVER),
            (Statement::Every(keys, value), false) => shape.every.push((keys, value)),
            (Statement::Every(keys, value), true) => shape.some.push((keys, formulas.not(value))),
            (Statement::AtLeast(min), false) => shape.min = shape.min.max(min),
            (Statement::AtLeast(min), true) => {
                let max = min.saturating_sub(1);
                shape.max = Some(shape.max.map_or(max, |known| known.min(max)));
            }
        }
    }

    /// The condition on objects of a formula. As large as the formula and the schemas in it.
    fn condition(&mut self, id: FormulaId) -> Checked<ConditionId> {
        if let Some(&known) = self.conditions.of_formulas.get(&id) {
            return Ok(known);
        }
        let condition = match self.formulas.get(id).clone() {
            Formula::Any => ConditionId::ALWAYS,
            Formula::Never => ConditionId::NEVER,
            Formula::Schema { node, scope, negated } => {
                if self.conditions.open.len() > MOST_LEVELS || !self.conditions.open.insert(id) {
                    let reason = "the schema refers to itself before it says anything of a value";
                    return Err(PendingError::new(SchemaErrorKind::Loop, node, Some("$ref"), reason));
                }
                self.site.push(node);
                let meaning = self.formula_of(node, scope).and_then(|meaning| self.condition(meaning));
                self.site.pop();
                self.conditions.open.remove(&id);
                meaning?.negated_if(negated)
            }
            Formula::Value { node, negated } => {
                let shape = self.shape_of_value(node)?;
                self.condition_of_union(&shape.objects)?.negated_if(negated)
            }
            Formula::Leaf { leaf, negated } => match &self.leaves[as_index(leaf)] {
                Leaf::Shape(shape) => {
                    let objects = shape.objects.clone();
                    self.condition_of_union(&objects)?.negated_if(negated)
                }
                // Under a negation there is no saying what allows more than the schema.
                Leaf::Unknown(problem) if !self.options.lenient => return Err(problem.clone()),
                Leaf::Unknown(_) => return Err(self.too_large(TOO_MANY)),
            },
            Formula::And(parts) => {
                let parts = self.conditions_of(&parts)?;
                self.conditions.all(parts)
            }
            Formula::Or(parts) => {
                let parts = self.conditions_of(&parts)?;
                self.conditions.any(parts)
            }
            Formula::One { of, negated } => {
                let parts = self.conditions_of(&of)?;
                self.conditions.one(parts).negated_if(negated)
            }
        };
        self.conditions.of_formulas.insert(id, condition);
        Ok(condition)
    }

    fn conditions_of(&mut self, parts: &[FormulaId]) -> Checked<Vec<ConditionId>> {
        self.spend(parts.len())?;
        parts.iter().map(|&part| self.condition(part)).collect()
    }

    fn condition_of_union(&mut self, objects: &[Rc<ObjectShape>]) -> Checked<ConditionId> {
        let ways = objects.iter().map(|object| self.condition_of_shape(object));
        let ways: Vec<_> = ways.collect::<Checked<_>>()?;
        Ok(self.conditions.any(ways))
    }

    /// All that a shape says, as one condition.
    pub(in super::super) fn condition_of_shape(&mut self, shape: &ObjectShape) -> Checked<ConditionId> {
        self.spend(1 + shape.properties.len() + shape.required.len())?;
        let mut parts: Vec<ConditionId> = shape.condition.into_iter().collect();
        for (name, value) in &shape.properties {
            let value = self.value_of_member(*value)?;
            parts.push(self.conditions.says(Statement::Value(name.clone(), value)));
        }
        for name in &shape.required {
            parts.push(self.conditions.says(Statement::Present(name.clone())));
        }
        for &(keys, value) in &shape.every {
            let value = self.value_of_member(value)?;
            parts.push(self.conditions.says(Statement::Every(keys, value)));
        }
        for &(keys, value) in &shape.some {
            let not = self.formulas.not(value);
            let not = self.value_of_member(not)?;
            parts.push(self.conditions.says(Statement::Every(keys, not)).not());
        }
        parts.push(self.conditions.says(Statement::AtLeast(shape.min)));
        if let Some(max) = shape.max {
            parts.push(self.conditions.says(Statement::AtLeast(max.saturating_add(1))).not());
        }
        Ok(self.conditions.all(parts))
    }

    /// The set that stands for all sets equal to this one, as far as their texts show: schemas repeat
    /// themselves, and equal sets need not be told apart.
    fn value_of_member(&mut self, value: FormulaId) -> Checked<FormulaId> {
        if let Some(&known) = self.conditions.values.get(&value) {
            return Ok(known);
        }
        let found = match self.formulas.get(value).clone() {
            Formula::Schema { node, scope, negated } => {
                let meaning = self.formula_of(node, scope)?;
                let inner = match self.formulas.get(meaning) {
                    Formula::Schema { .. } if meaning != value => self.value_of_member(meaning)?,
                    Formula::Any | Formula::Never | Formula::Leaf { .. } => meaning,
                    _ => {
                        let documents = &self.resolver.documents;
                        let text = documents.text(documents.document(node));
                        let text = text.get(documents.span(node).range()).unwrap_or_default();
                        let refers = ["Ref\"", "ref\"", "id\"", "chor\""];
                        let plain = if negated { self.formulas.not(value) } else { value };
                        if refers.iter().any(|word| text.contains(word)) {
                            plain
                        } else {
                            let key = (self.resolver.dialect(node), text.into());
                            *self.conditions.by_text.entry(key).or_insert(plain)
                        }
                    }
                };
                if negated { self.formulas.not(inner) } else { inner }
            }
            _ => value,
        };
        self.conditions.called.entry(found).or_insert(value);
        self.conditions.values.insert(value, found);
        Ok(found)
    }

    /// Adds the members that a formula mentions, in order, and whether it lists or opens any.
    fn mentioned(
        &mut self,
        id: FormulaId,
        into: &mut ObjectShape,
        seen: &mut (HashSet<FormulaId>, HashSet<Rc<str>>),
        level: usize,
    ) -> Checked<()> {
        if !seen.0.insert(id) || level > MOST_LEVELS {
            return Ok(());
        }
        match self.formulas.get(id).clone() {
            Formula::Any | Formula::Never => {}
            Formula::Schema { node, scope, .. } => {
                let meaning = self.formula_of(node, scope)?;
                self.mentioned(meaning, into, seen, level + 1)?;
            }
            Formula::Value { node, .. } => {
                let shape = self.shape_of_value(node)?;
                shape.objects.iter().for_each(|object| mention(object, into, &mut seen.1));
            }
            Formula::Leaf { leaf, .. } => {
                if let Leaf::Shape(shape) = &self.leaves[as_index(leaf)] {
                    shape.objects.iter().for_each(|object| mention(object, into, &mut seen.1));
                }
            }
            Formula::And(parts) | Formula::Or(parts) | Formula::One { of: parts, .. } => {
                for &part in &*parts {
                    self.mentioned(part, into, seen, level + 1)?;
                }
            }
        }
        Ok(())
    }
}

fn mention(object: &ObjectShape, into: &mut ObjectShape, seen: &mut HashSet<Rc<str>>) {
    for (name, _) in &object.properties {
        if seen.insert(name.clone()) {
            into.properties.push((name.clone(), Formulas::ANY));
        }
    }
    into.listed |= object.listed;
    into.open |= object.open;
}

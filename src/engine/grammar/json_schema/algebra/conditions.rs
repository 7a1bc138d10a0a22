//! Conditions on objects: boolean circuits over what is said of single members, hash-consed.
//!
//! A union of objects has one shape for each combination of alternatives, which are exponentially many where
//! the alternatives are about different keys. A circuit is as large as the schema: it keeps products as
//! products, is closed under all operations at no cost (negation is a bit of the id, as in and-inverter
//! graphs), and is taken apart member by member when the object is written.

use std::rc::Rc;

use hashbrown::{HashMap, HashSet};

use super::{Algebra, Formula, FormulaId, Formulas, KeysId, Leaf, MOST_LEVELS, ObjectShape, TOO_MANY};
use crate::{
    grammar::json_schema::{
        dialect::Dialect,
        error::{Checked, PendingError, SchemaErrorKind},
    },
    ids::{Numbered, as_index},
};

/// The id of a condition: the number of a circuit and, in the lowest bit, whether it is negated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in super::super) struct ConditionId(u32);

impl ConditionId {
    pub(in super::super) const ALWAYS: Self = Self(0);
    pub(in super::super) const NEVER: Self = Self(1);

    pub(in super::super) fn not(self) -> Self {
        Self(self.0 ^ 1)
    }

    fn is_negated(self) -> bool {
        self.0 & 1 == 1
    }

    /// The condition without negation.
    fn plain(self) -> Self {
        Self(self.0 & !1)
    }

    fn negated_if(self, negated: bool) -> Self {
        if negated { self.not() } else { self }
    }
}

/// A statement about an object.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in super::super) enum Statement {
    /// The member is absent, or its value is in the set.
    Value(Rc<str>, FormulaId),
    Present(Rc<str>),
    /// The value of each member whose key is in the set of keys is in the set of values.
    Every(KeysId, FormulaId),
    /// The object has this number of members.
    AtLeast(u64),
}

/// A circuit.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in super::super) enum Condition {
    Always,
    Says(Statement),
    /// All parts hold, which are sorted.
    All(Rc<[ConditionId]>),
    /// Exactly one of the parts holds, which are sorted and differ.
    One(Rc<[ConditionId]>),
}

/// The arena of all circuits.
#[derive(Debug)]
pub(in super::super) struct Conditions {
    circuits: Numbered<Condition>,
    ids: HashMap<Condition, ConditionId>,
    /// The circuits of the objects of formulas.
    of_formulas: HashMap<FormulaId, ConditionId>,
    /// The formulas of which circuits are being made.
    pub(super) open: HashSet<FormulaId>,
    /// The sets by which equal sets of member values are known, and the first of those.
    pub(super) values: HashMap<FormulaId, FormulaId>,
    pub(super) called: HashMap<FormulaId, FormulaId>,
    pub(super) by_text: HashMap<(Dialect, Box<str>), FormulaId>,
}

impl Conditions {
    pub(super) fn new() -> Self {
        let mut made = Self {
            circuits: Numbered::default(),
            ids: HashMap::new(),
            of_formulas: HashMap::new(),
            open: HashSet::new(),
            values: HashMap::new(),
            called: HashMap::new(),
            by_text: HashMap::new(),
        };
        made.intern(Condition::Always);
        made
    }

    pub(super) fn len(&self) -> usize {
        self.circuits.len()
    }

    /// The circuit of a condition, and whether it is negated.
    pub(in super::super) fn get(&self, id: ConditionId) -> (&Condition, bool) {
        (&self.circuits[as_index(id.0 >> 1)], id.is_negated())
    }

    fn intern(&mut self, condition: Condition) -> ConditionId {
        let circuits = &mut self.circuits;
        *self.ids.entry(condition).or_insert_with_key(|condition| {
            // Past the last number no value stands in. Long before, the limit on formulas ends the work.
            let number = circuits.push(condition.clone(), "conditions").ok();
            number.and_then(|number| number.checked_mul(2)).map_or(ConditionId::NEVER, ConditionId)
        })
    }

    pub(in super::super) fn says(&mut self, statement: Statement) -> ConditionId {
        match statement {
            Statement::Value(_, Formulas::ANY)
            | Statement::Every(_, Formulas::ANY)
            | Statement::AtLeast(0) => ConditionId::ALWAYS,
            Statement::Value(name, Formulas::NEVER) => {
                self.intern(Condition::Says(Statement::Present(name))).not()
            }
            statement => self.intern(Condition::Says(statement)),
        }
    }

    /// The parts of a conjunction; a condition of another kind is its only part.
    pub(in super::super) fn parts(&self, id: ConditionId) -> Vec<ConditionId> {
        match self.get(id) {
            (Condition::All(parts), false) => parts.to_vec(),
            _ => vec![id],
        }
    }

    /// The parts of a condition that are more than a statement; of "exactly one", what it chooses from.
    pub(in super::super) fn clauses(&self, id: ConditionId) -> Vec<ConditionId> {
        let mut clauses = Vec::new();
        for part in self.parts(id) {
            match self.get(part).0 {
                Condition::Always | Condition::Says(_) => {}
                Condition::All(_) => clauses.push(part),
                Condition::One(parts) => clauses.extend(parts.iter()),
            }
        }
        clauses
    }

    /// The set of the schema that was met first of all that are equal to this one.
    pub(in super::super) fn called(&self, value: FormulaId) -> FormulaId {
        self.called.get(&value).copied().unwrap_or(value)
    }

    /// Conjunction. Unit propagation: parts that hold are taken out of the clauses beside them.
    pub(in super::super) fn all(&mut self, parts: impl IntoIterator<Item = ConditionId>) -> ConditionId {
        let mut known: HashSet<ConditionId> = HashSet::new();
        let mut clauses: Vec<ConditionId> = Vec::new();
        let mut open: Vec<ConditionId> = parts.into_iter().collect();
        loop {
            while let Some(part) = open.pop() {
                match self.get(part) {
                    (Condition::All(parts), false) => open.extend(parts.iter()),
                    (Condition::All(_), true) => clauses.push(part),
                    (Condition::Always, false) => {}
                    _ if known.contains(&part.not()) => return ConditionId::NEVER,
                    _ => {
                        known.insert(part);
                    }
                }
            }
            if known.contains(&ConditionId::NEVER) {
                return ConditionId::NEVER;
            }
            for clause in std::mem::take(&mut clauses) {
                let (Condition::All(parts), _) = self.get(clause) else { continue };
                // The clause says that not all of these hold.
                if parts.iter().any(|part| known.contains(&part.not())) {
                    continue;
                }
                if parts.iter().any(|part| known.contains(part)) {
                    let left: Vec<_> = parts.iter().copied().filter(|part| !known.contains(part)).collect();
                    open.push(self.joined(left).not());
                } else {
                    clauses.push(clause);
                }
            }
            if open.is_empty() {
                break;
            }
        }
        self.joined(known.into_iter().chain(clauses).collect())
    }

    /// The conjunction of parts as they are.
    fn joined(&mut self, mut parts: Vec<ConditionId>) -> ConditionId {
        parts.sort_unstable();
        parts.dedup();
        match parts[..] {
            [] => ConditionId::ALWAYS,
            [only] => only,
            _ => self.intern(Condition::All(parts.into())),
        }
    }

    pub(in super::super) fn any(&mut self, parts: impl IntoIterator<Item = ConditionId>) -> ConditionId {
        self.all(parts.into_iter().map(ConditionId::not)).not()
    }

    /// Exactly one of the parts holds.
    pub(in super::super) fn one(&mut self, parts: impl IntoIterator<Item = ConditionId>) -> ConditionId {
        let mut parts: Vec<ConditionId> =
            parts.into_iter().filter(|&part| part != ConditionId::NEVER).collect();
        parts.sort_unstable();
        // Equal parts hold together, so none of them may.
        let (mut single, mut failing) = (Vec::new(), Vec::new());
        for equal in parts.chunk_by(|one, other| one == other) {
            if equal.len() == 1 { single.push(equal[0]) } else { failing.push(equal[0].not()) }
        }
        // One of a part and its complement holds, so no other part may.
        let holds = single.iter().position(|&part| {
            part == ConditionId::ALWAYS || part.is_negated() && single.contains(&part.not())
        });
        if let Some(holds) = holds {
            let held = single[holds];
            let others = single.into_iter().filter(|&part| part != held && part != held.not());
            return self.all(others.map(ConditionId::not).chain(failing));
        }
        let one = match single[..] {
            [] => ConditionId::NEVER,
            [only] => only,
            _ => self.intern(Condition::One(single.into())),
        };
        self.all(failing.into_iter().chain([one]))
    }

    /// Replaces statements by what they come to, as far as `decide` knows.
    ///
    /// `known` holds the circuits that were replaced before. Returns also the number of parts looked at.
    pub(in super::super) fn resolved(
        &mut self,
        id: ConditionId,
        decide: &dyn Fn(&Statement) -> Option<bool>,
        known: &mut HashMap<ConditionId, ConditionId>,
        looked: &mut usize,
    ) -> ConditionId {
        let plain = id.plain();
        let made = match known.get(&plain) {
            Some(&made) => made,
            None => {
                *looked += 1;
                let made = match self.get(plain).0.clone() {
                    Condition::Always => plain,
                    Condition::Says(statement) => match decide(&statement) {
                        Some(holds) => ConditionId::ALWAYS.negated_if(!holds),
                        None => plain,
                    },
                    Condition::All(parts) => {
                        *looked += parts.len();
                        let parts: Vec<_> =
                            parts.iter().map(|&part| self.resolved(part, decide, known, looked)).collect();
                        self.all(parts)
                    }
                    Condition::One(parts) => {
                        *looked += parts.len();
                        let parts: Vec<_> =
                            parts.iter().map(|&part| self.resolved(part, decide, known, looked)).collect();
                        self.one(parts)
                    }
                };
                known.insert(plain, made);
                made
            }
        };
        made.negated_if(id.is_negated())
    }

    /// All statements of a condition, in the order in which they were first met anywhere.
    pub(in super::super) fn statements(&self, id: ConditionId) -> Vec<Statement> {
        let (mut open, mut seen, mut found) = (vec![id.plain()], HashSet::new(), Vec::new());
        while let Some(id) = open.pop() {
            if !seen.insert(id) {
                continue;
            }
            match self.get(id).0 {
                Condition::Always => {}
                Condition::Says(_) => found.push(id),
                Condition::All(parts) | Condition::One(parts) => {
                    open.extend(parts.iter().map(|part| part.plain()));
                }
            }
        }
        found.sort_unstable();
        let statement = |id: ConditionId| match self.get(id).0 {
            Condition::Says(statement) => Some(statement.clone()),
            _ => None,
        };
        found.into_iter().filter_map(statement).collect()
    }
}

// Formulas become conditions on objects that are as large as the formulas and the schemas in them.

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

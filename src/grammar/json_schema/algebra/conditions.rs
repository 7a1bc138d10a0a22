//! Conditions on objects: boolean circuits over what is said of single members, hash-consed.
//!
//! A union of objects has one shape for each combination of alternatives, which are
//! exponentially many where the alternatives are about different keys. A circuit is as large as the schema:
//! it keeps products as products, is closed under all operations at no cost (negation is a bit of the id, as
//! in and-inverter graphs), and is taken apart member by member when the object is written.

use std::rc::Rc;

use hashbrown::{HashMap, HashSet};

use super::{super::dialect::Dialect, FormulaId, Formulas, KeysId};
use crate::ids::{Numbered, as_index};

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

    pub(super) fn negated_if(self, negated: bool) -> Self {
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
    pub(super) of_formulas: HashMap<FormulaId, ConditionId>,
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

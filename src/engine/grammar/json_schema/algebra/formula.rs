//! Boolean formulas over sets of values, hash-consed: equal formulas have equal ids.
//!
//! A formula is in negation normal form over finitely many atoms, namely the schemas of the text and their
//! keywords. Hence only finitely many formulas are met while values are taken apart level by level, and
//! recursion ends.

use std::rc::Rc;

use hashbrown::HashMap;

use super::super::{document::NodeId, resolve::AnchorScope};
use crate::ids::{Numbered, as_index};

/// The id of a formula in the arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in super::super) struct FormulaId(u32);

/// A set of values, as a formula over sets.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in super::super) enum Formula {
    /// All values.
    Any,
    /// No value.
    Never,
    /// All values that a schema allows, or all that it forbids.
    Schema { node: NodeId, scope: AnchorScope, negated: bool },
    /// The one value that stands at a node, or all others.
    Value { node: NodeId, negated: bool },
    /// A shape, by its number, or its complement.
    Leaf { leaf: u32, negated: bool },
    /// The intersection of the parts, in order of first mention.
    And(Rc<[FormulaId]>),
    /// The union of the parts.
    Or(Rc<[FormulaId]>),
    /// The values in exactly one of the parts, or all other values.
    One { of: Rc<[FormulaId]>, negated: bool },
}

/// The arena of all formulas.
#[derive(Debug)]
pub(in super::super) struct Formulas {
    formulas: Numbered<Formula>,
    ids: HashMap<Formula, FormulaId>,
}

impl Formulas {
    /// All values.
    pub(in super::super) const ANY: FormulaId = FormulaId(0);
    /// No value.
    pub(in super::super) const NEVER: FormulaId = FormulaId(1);

    pub(in super::super) fn new() -> Self {
        let mut formulas = Self { formulas: Numbered::default(), ids: HashMap::new() };
        formulas.intern(Formula::Any);
        formulas.intern(Formula::Never);
        formulas
    }

    pub(in super::super) fn len(&self) -> usize {
        self.formulas.len()
    }

    pub(in super::super) fn get(&self, id: FormulaId) -> &Formula {
        &self.formulas[as_index(id.0)]
    }

    pub(in super::super) fn intern(&mut self, formula: Formula) -> FormulaId {
        let formulas = &mut self.formulas;
        *self.ids.entry(formula).or_insert_with_key(|formula| {
            // Past the last number no value stands in. Long before, the limit on formulas ends the work.
            formulas.push(formula.clone(), "formulas").map_or(Self::NEVER, FormulaId)
        })
    }

    /// Intersects `parts`.
    pub(in super::super) fn and(&mut self, parts: impl IntoIterator<Item = FormulaId>) -> FormulaId {
        self.join(parts, true)
    }

    /// Unites `parts`.
    pub(in super::super) fn or(&mut self, parts: impl IntoIterator<Item = FormulaId>) -> FormulaId {
        self.join(parts, false)
    }

    /// Joins parts. Nested joins of the same kind are flattened, so a part is never of the kind of the whole.
    fn join(&mut self, parts: impl IntoIterator<Item = FormulaId>, all: bool) -> FormulaId {
        let (neutral, absorbing) = if all { (Self::ANY, Self::NEVER) } else { (Self::NEVER, Self::ANY) };
        let mut flat: Vec<FormulaId> = Vec::new();
        for part in parts {
            match self.get(part) {
                Formula::And(inner) if all => flat.extend(inner.iter()),
                Formula::Or(inner) if !all => flat.extend(inner.iter()),
                _ => flat.push(part),
            }
        }
        let mut seen = hashbrown::HashSet::new();
        flat.retain(|&part| part != neutral && seen.insert(part));
        if seen.contains(&absorbing)
            || flat.iter().any(|&part| self.opposite(part).is_some_and(|not| seen.contains(&not)))
        {
            return absorbing;
        }
        match flat[..] {
            [] => neutral,
            [only] => only,
            _ => self.intern(if all { Formula::And(flat.into()) } else { Formula::Or(flat.into()) }),
        }
    }

    /// The complement of an atom, if `id` is an atom and its complement is interned.
    fn opposite(&self, id: FormulaId) -> Option<FormulaId> {
        let flipped = match *self.get(id) {
            Formula::Schema { node, scope, negated } => Formula::Schema { node, scope, negated: !negated },
            Formula::Value { node, negated } => Formula::Value { node, negated: !negated },
            Formula::Leaf { leaf, negated } => Formula::Leaf { leaf, negated: !negated },
            _ => return None,
        };
        self.ids.get(&flipped).copied()
    }

    /// Complements a formula by De Morgan's laws. Recurses as deep as formulas are nested in one schema
    /// object, which is a small constant.
    pub(in super::super) fn not(&mut self, id: FormulaId) -> FormulaId {
        let flipped = match self.get(id).clone() {
            Formula::Any => return Self::NEVER,
            Formula::Never => return Self::ANY,
            Formula::Schema { node, scope, negated } => Formula::Schema { node, scope, negated: !negated },
            Formula::Value { node, negated } => Formula::Value { node, negated: !negated },
            Formula::Leaf { leaf, negated } => Formula::Leaf { leaf, negated: !negated },
            Formula::One { of, negated } => Formula::One { of, negated: !negated },
            Formula::And(parts) => {
                let parts: Vec<_> = parts.iter().map(|&part| self.not(part)).collect();
                return self.or(parts);
            }
            Formula::Or(parts) => {
                let parts: Vec<_> = parts.iter().map(|&part| self.not(part)).collect();
                return self.and(parts);
            }
        };
        self.intern(flipped)
    }

    /// The values in exactly one of `parts`.
    pub(in super::super) fn exactly_one(&mut self, parts: Vec<FormulaId>) -> FormulaId {
        match parts[..] {
            [] => Self::NEVER,
            [only] => only,
            _ => self.intern(Formula::One { of: parts.into(), negated: false }),
        }
    }
}

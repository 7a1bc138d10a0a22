//! Sets of JSON values: formulas over schemas, and the shapes that they expand to.
//!
//! Alternating tree automata, made nondeterministic as far as needed: a formula expands to a [`Shape`], whose
//! members and items are formulas again. Formulas are interned and expansion is memoised, so recursive
//! schemas close. Products may be exponential, so each is counted against a budget.

mod automata;
mod combine;
mod empty;
mod finite;
mod formula;
mod keys;
mod meet;
mod shape;

use std::{collections::BTreeSet, rc::Rc};

use hashbrown::{HashMap, HashSet};

pub(super) use automata::Automata;
pub(super) use empty::Depth;
pub(super) use formula::{Formula, FormulaId, Formulas};
pub(super) use keys::{KeySets, Keys, KeysId};
use meet::StringTag;
pub(super) use shape::{ArrayShape, ConstantShapes, ItemCount, ObjectShape, Shape};

use super::{
    NumberSet, StringSet,
    document::{NodeId, Value},
    error::{Checked, PendingError, SchemaErrorKind},
    options::SchemaOptions,
    resolve::{AnchorScope, Resolver},
};
use crate::ids::Numbered;

/// Limit on the array shapes, and on the object shapes, of one set of values.
const MOST_SHAPES: usize = 2_048;
/// Limit on the constraints that are copied in all. Each takes about 50 ns.
const MOST_WORK: usize = 20_000_000;
/// Limit on nested `$ref`, `allOf`, `anyOf` and the like within one value. Each takes a few kB of stack.
const MOST_LEVELS: usize = 80;
/// Limit on the formulas, and on the sets of keys, of one schema. A formula takes about 100 bytes.
const MOST_FORMULAS: usize = 2_000_000;

/// A leaf of formulas.
#[derive(Debug)]
pub(super) enum Leaf {
    /// A set of values.
    Shape(Rc<Shape>),
    /// A keyword that cannot be had exactly: an error, or all values where that is allowed.
    Unknown(Box<PendingError>),
}

/// The state of the algebra of one schema: its formulas, and all that is known of them.
#[derive(Debug)]
pub(super) struct Algebra<'o> {
    pub(super) options: &'o SchemaOptions,
    pub(super) automata: Automata<'o>,
    pub(super) resolver: Resolver,
    pub(super) formulas: Formulas,
    pub(super) keys: KeySets,
    pub(super) ends: ConstantShapes,
    /// Problems that were answered by allowing more than the schema does (in lenient mode).
    pub(super) relaxed: Vec<PendingError>,
    /// Keywords that have no meaning in this dialect.
    pub(super) ignored: BTreeSet<String>,
    leaves: Numbered<Leaf>,
    /// The leaves of keywords by the keyword and the text of its value: schemas repeat themselves.
    said: HashMap<(&'static str, Box<str>), FormulaId>,
    /// The formula of each schema that was read.
    pub(super) read: HashMap<(NodeId, AnchorScope), FormulaId>,
    shapes: HashMap<FormulaId, Rc<Shape>>,
    /// Formulas being expanded.
    open: HashSet<FormulaId>,
    /// Schemas being expanded, the innermost last.
    pub(super) site: Vec<NodeId>,
    /// Formulas known to have no value.
    empty: HashSet<FormulaId>,
    /// Formulas that seem to have a value when looked at to this depth.
    filled: HashMap<FormulaId, Depth>,
    /// Formulas as tags; `None` for those that are no tag.
    tags: HashMap<FormulaId, Option<StringTag>>,
    /// The sets of all keys but those of a sorted list.
    pub(super) other_keys: HashMap<Vec<Rc<str>>, Rc<StringSet>>,
    work: usize,
}

impl<'o> Algebra<'o> {
    pub(super) fn new(resolver: Resolver, options: &'o SchemaOptions, automata: Automata<'o>) -> Self {
        Self {
            options,
            automata,
            resolver,
            formulas: Formulas::new(),
            keys: KeySets::default(),
            ends: ConstantShapes::new(),
            relaxed: Vec::new(),
            ignored: BTreeSet::new(),
            leaves: Numbered::default(),
            said: HashMap::new(),
            read: HashMap::new(),
            shapes: HashMap::new(),
            open: HashSet::new(),
            site: Vec::new(),
            empty: HashSet::new(),
            filled: HashMap::new(),
            tags: HashMap::new(),
            other_keys: HashMap::new(),
            work: 0,
        }
    }

    /// The schema at a node, entered from a scope.
    pub(super) fn schema(&mut self, node: NodeId, scope: AnchorScope) -> FormulaId {
        match self.resolver.documents.value(node) {
            Value::Bool(true) => return Formulas::ANY,
            Value::Bool(false) => return Formulas::NEVER,
            Value::Object(members) if members.is_empty() => return Formulas::ANY,
            _ => {}
        }
        let scope = self.resolver.enter(scope, node);
        self.formulas.intern(Formula::Schema { node, scope, negated: false })
    }

    /// Adds a leaf with a given shape.
    pub(super) fn leaf(&mut self, shape: Shape) -> FormulaId {
        self.any_leaf(Leaf::Shape(Rc::new(shape)))
    }

    /// The leaf of a keyword with this value, if it was met before.
    pub(super) fn known_leaf(&self, keyword: &'static str, value: &str) -> Option<FormulaId> {
        self.said.get(&(keyword, value.into())).copied()
    }

    /// The leaf of a keyword with this value, made on the first call.
    pub(super) fn leaf_of(
        &mut self,
        keyword: &'static str,
        value: &str,
        make: impl FnOnce(&Self) -> Checked<Shape>,
    ) -> Checked<FormulaId> {
        if let Some(known) = self.known_leaf(keyword, value) {
            return Ok(known);
        }
        let shape = make(self)?;
        let leaf = self.leaf(shape);
        self.said.insert((keyword, value.into()), leaf);
        Ok(leaf)
    }

    /// Adds a leaf for a keyword that cannot be had exactly.
    pub(super) fn unknown(&mut self, problem: Box<PendingError>) -> FormulaId {
        self.any_leaf(Leaf::Unknown(problem))
    }

    fn any_leaf(&mut self, leaf: Leaf) -> FormulaId {
        // As of formulas: the limit on them ends the work long before.
        let Ok(leaf) = self.leaves.push(leaf, "leaves") else { return Formulas::NEVER };
        self.formulas.intern(Formula::Leaf { leaf, negated: false })
    }

    /// A copy of the shape of all values, to be narrowed in one type.
    pub(super) fn any_shape(&self) -> Shape {
        (*self.ends.any).clone()
    }

    /// The innermost schema being expanded.
    pub(super) fn here(&self) -> NodeId {
        self.site.last().copied().unwrap_or_default()
    }

    /// Sets the schema that problems are reported at while nothing is being expanded.
    pub(super) fn stand_at(&mut self, node: NodeId) {
        self.site.clear();
        self.site.push(node);
    }

    /// Expands a formula to its shape, one level deep. Memoised.
    pub(super) fn expand(&mut self, id: FormulaId) -> Checked<Rc<Shape>> {
        if let Some(known) = self.shapes.get(&id) {
            return Ok(known.clone());
        }
        if self.open.len() >= MOST_LEVELS {
            return Err(
                self.too_large(&format!("schemas refer to schemas more than {MOST_LEVELS} levels deep"))
            );
        }
        if !self.open.insert(id) {
            let node = match *self.formulas.get(id) {
                Formula::Schema { node, .. } => node,
                _ => self.here(),
            };
            let reason = "the schema refers to itself before it says anything of a value";
            return Err(PendingError::new(SchemaErrorKind::Loop, node, Some("$ref"), reason)
                .with_hint("a reference back must stand below `properties`, `items` or the like"));
        }
        let shape = self.expand_new(id);
        self.open.remove(&id);
        let shape = shape?;
        self.spend(1 + shape.arrays.len() + shape.objects.len())?;
        self.shapes.insert(id, shape.clone());
        Ok(shape)
    }

    fn expand_new(&mut self, id: FormulaId) -> Checked<Rc<Shape>> {
        match self.formulas.get(id).clone() {
            Formula::Any => Ok(self.ends.any.clone()),
            Formula::Never => Ok(self.ends.never.clone()),
            Formula::Schema { node, scope, negated } => {
                self.site.push(node);
                let shape = self.expand_schema(node, scope, negated);
                self.site.pop();
                shape
            }
            Formula::Value { node, negated } => {
                let shape = self.shape_of_value(node)?;
                if negated { self.complement(&shape).map(Rc::new) } else { Ok(Rc::new(shape)) }
            }
            Formula::Leaf { leaf, negated } => match &self.leaves[leaf as usize] {
                Leaf::Shape(shape) if !negated => Ok(shape.clone()),
                Leaf::Shape(shape) => {
                    let shape = shape.clone();
                    self.complement(&shape).map(Rc::new)
                }
                Leaf::Unknown(problem) => {
                    let problem = problem.clone();
                    self.relax(problem)?;
                    Ok(self.ends.any.clone())
                }
            },
            Formula::And(parts) => self.expand_all(&parts),
            Formula::Or(parts) => {
                let mut shapes = Vec::with_capacity(parts.len());
                for &part in &*parts {
                    shapes.push(self.expand(part)?);
                }
                self.union(&shapes).map(Rc::new)
            }
            Formula::One { of, negated } => {
                let spelt =
                    if negated { self.not_exactly_one(&of)? } else { self.exactly_one(&of, Formulas::ANY)? };
                self.expand(spelt)
            }
        }
    }

    /// Intersects the parts. Those with exactly one of some schemas come last: the others may tell these
    /// apart, for example by requiring a tag.
    fn expand_all(&mut self, parts: &[FormulaId]) -> Checked<Rc<Shape>> {
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

    fn expand_schema(&mut self, node: NodeId, scope: AnchorScope, negated: bool) -> Checked<Rc<Shape>> {
        let formula = self.formula_of(node, scope)?;
        let formula = if negated { self.formulas.not(formula) } else { formula };
        self.expand(formula)
    }

    /// The intersection of several shapes.
    fn in_all(&mut self, shapes: &[Rc<Shape>]) -> Checked<Rc<Shape>> {
        let objects = if Self::has_choices(shapes) {
            match self.objects_in_all(shapes) {
                Ok(objects) => Some(objects),
                // The pairs are then multiplied out as far as the budget goes.
                Err(problem) if self.may_relax(&problem) => None,
                Err(problem) => return Err(problem),
            }
        } else {
            None
        };
        let mut whole = self.ends.any.clone();
        for shape in shapes {
            let shape = match objects {
                Some(_) => &Rc::new(Shape { objects: Vec::new(), ..(**shape).clone() }),
                None => shape,
            };
            whole = self.narrowed(whole, shape)?;
        }
        Ok(match objects {
            Some(objects) => Rc::new(Shape { objects, ..Rc::unwrap_or_clone(whole) }),
            None => whole,
        })
    }

    /// True if a budget was used up that lenient mode may answer by allowing more.
    fn may_relax(&self, problem: &PendingError) -> bool {
        self.options.lenient && problem.kind == SchemaErrorKind::Limit && self.work <= MOST_WORK
    }

    /// Intersects two shapes; in lenient mode, if that is too large, returns the left one.
    fn narrowed(&mut self, whole: Rc<Shape>, part: &Rc<Shape>) -> Checked<Rc<Shape>> {
        if Rc::ptr_eq(&whole, &self.ends.any) {
            return Ok(part.clone());
        }
        if Rc::ptr_eq(part, &self.ends.any) {
            return Ok(whole);
        }
        match self.intersection(&whole, part) {
            Ok(shape) => Ok(Rc::new(shape)),
            Err(problem) if problem.kind == SchemaErrorKind::Limit && self.work <= MOST_WORK => {
                self.relax(problem)?;
                Ok(whole)
            }
            Err(problem) => Err(problem),
        }
    }

    /// Notes in lenient mode that more is allowed than the schema says; otherwise returns the problem.
    pub(super) fn relax(&mut self, problem: Box<PendingError>) -> Checked<()> {
        if !self.options.lenient || problem.kind == SchemaErrorKind::Cancelled {
            return Err(problem);
        }
        let known =
            self.relaxed.iter().any(|known| known.node == problem.node && known.keyword == problem.keyword);
        if !known {
            self.relaxed.push(*problem);
        }
        Ok(())
    }

    /// The formula of `oneOf` within `context`: each part, minus the other parts that it may overlap.
    ///
    /// Parts that are provably disjoint within `context`, such as those that differ in a tag, need no
    /// complement. Each alternative contains the context, since a nested choice may need it too.
    fn exactly_one(&mut self, parts: &[FormulaId], context: FormulaId) -> Checked<FormulaId> {
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
    fn not_exactly_one(&mut self, parts: &[FormulaId]) -> Checked<FormulaId> {
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

    /// The shape of exactly the value at a node.
    fn shape_of_value(&mut self, node: NodeId) -> Checked<Shape> {
        let mut shape = (*self.ends.never).clone();
        match self.resolver.documents.value(node).clone() {
            Value::Null => shape.null = true,
            Value::Bool(value) => shape.booleans[usize::from(value)] = true,
            Value::Number(text) => shape.numbers = Rc::new(NumberSet::of([self.decimal(node, &text)?])),
            Value::String(text) => shape.strings = Rc::new(self.fitting(StringSet::one(&text))?),
            Value::Array(items) => {
                let length = items.len() as u64;
                let prefix = items.iter().map(|&item| self.value(item)).collect();
                shape.arrays.push(Rc::new(ArrayShape {
                    prefix,
                    rest: Formulas::NEVER,
                    min: length,
                    max: Some(length),
                    ..ArrayShape::any()
                }));
            }
            Value::Object(members) => {
                let names: Vec<Rc<str>> = members.iter().map(|(key, _)| Rc::from(&**key)).collect();
                let values: Vec<_> = members.iter().map(|&(_, value)| self.value(value)).collect();
                let others = self.keys.rest(names.clone(), Vec::new());
                shape.objects.push(Rc::new(ObjectShape {
                    properties: names.iter().cloned().zip(values).collect(),
                    required: names,
                    every: vec![(others, Formulas::NEVER)],
                    ..ObjectShape::default()
                }));
            }
        }
        Ok(shape)
    }

    /// The value that stands at a node.
    pub(super) fn value(&mut self, node: NodeId) -> FormulaId {
        self.formulas.intern(Formula::Value { node, negated: false })
    }
}

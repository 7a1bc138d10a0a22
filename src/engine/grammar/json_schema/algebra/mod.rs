//! Sets of JSON values: formulas over schemas, and the shapes that they expand to.
//!
//! Alternating tree automata, made nondeterministic as far as needed: a formula expands to a [`Shape`], whose
//! members and items are formulas again. Formulas are interned and expansion is memoised, so recursive
//! schemas close. Products may be exponential, so each is counted against a budget.

mod choose;
mod classes;
mod combine;
mod conditions;
mod formula;
mod meet;
mod shape;

use std::{collections::BTreeSet, rc::Rc};

use hashbrown::{HashMap, HashSet};

use self::{conditions::Conditions, meet::StringTag};
use super::{
    AutomataCache, LeafError, NumberSet, StringSet,
    document::{NodeId, Value},
    emit::DecidedObject,
    error::{Checked, PendingError, SchemaErrorKind},
    options::SchemaOptions,
    resolve::{AnchorScope, Resolver},
};
use crate::{
    ids::Numbered,
    limits::{Cancel, LimitExceeded, Limits},
};

pub(super) use self::{
    classes::{Depth, ValueClass},
    conditions::{ConditionId, Statement},
    formula::{Formula, FormulaId, Formulas},
    shape::{ArrayShape, ConstantShapes, ItemCount, KeySets, Keys, KeysId, ObjectShape, Shape},
};

/// Limit on the array shapes, and on the object shapes, of one set of values.
const MOST_SHAPES: usize = 2_048;
/// Limit on the work of combinations, in parts looked at: some 1.3 µs each where objects are multiplied out
/// (26 s of CPU for the 20 million of a `oneOf` of 20 closed objects). Of 1,400 schemas of MaskBench's sample
/// the largest takes 24,000, by `SchemaOptions::report`.
pub(super) const MOST_WORK: usize = 1_000_000;
/// Limit on nested `$ref`, `allOf`, `anyOf` and the like within one value. Each takes a few kB of stack.
const MOST_LEVELS: usize = 80;
/// Limit on the formulas, and on the sets of keys, of one schema. A formula takes about 100 bytes.
const MOST_FORMULAS: usize = 2_000_000;

/// The message about a schema whose budget is used up.
const TOO_MANY: &str = "the schema's combinations are too many to multiply out";

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
    pub(super) conditions: Conditions,
    /// The diagrams of objects with a condition, by the addresses of their shapes, which they keep alive.
    pub(super) diagrams: HashMap<*const ObjectShape, (Rc<ObjectShape>, Rc<DecidedObject>)>,
    /// The shapes of formulas without their objects.
    others: HashMap<FormulaId, Rc<Shape>>,
    work: usize,
    /// The work at which a trial ends, while there is one.
    trial: Option<usize>,
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
            conditions: Conditions::new(),
            diagrams: HashMap::new(),
            others: HashMap::new(),
            work: 0,
            trial: None,
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
            Formula::And(parts) => self.tried(id, |algebra| algebra.expand_all(&parts)),
            Formula::Or(parts) => {
                let mut shapes = Vec::with_capacity(parts.len());
                for &part in &*parts {
                    shapes.push(self.expand(part)?);
                }
                self.union(&shapes).map(Rc::new)
            }
            Formula::One { of, negated } => self.tried(id, |algebra| {
                let spelt = match negated {
                    true => algebra.not_exactly_one(&of)?,
                    false => algebra.exactly_one(&of, Formulas::ANY)?,
                };
                let shape = algebra.expand(spelt)?;
                algebra.look_at_trial(shape.objects.len(), of.len())?;
                Ok(shape)
            }),
        }
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
        self.options.lenient && self.is_within_limits(problem)
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
            Err(problem) if self.is_within_limits(&problem) => {
                self.relax(problem)?;
                Ok(whole)
            }
            Err(problem) => Err(problem),
        }
    }

    /// Notes in lenient mode that more is allowed than the schema says; otherwise returns the problem.
    pub(super) fn relax(&mut self, problem: Box<PendingError>) -> Checked<()> {
        let is_tried = self.trial.is_some() && problem.kind == SchemaErrorKind::Limit;
        if !self.options.lenient || is_tried || problem.kind == SchemaErrorKind::Cancelled {
            return Err(problem);
        }
        let known =
            self.relaxed.iter().any(|known| known.node == problem.node && known.keyword == problem.keyword);
        if !known {
            self.relaxed.push(*problem);
        }
        Ok(())
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

/// The cache of automata that all schemas share, the memory budget of one schema's own, and the handle that
/// ends the reading.
#[derive(Debug)]
pub(super) struct Automata<'o> {
    pub(super) common: &'o AutomataCache,
    /// Memory of the automata of patterns, in bytes: the limit, then what is taken of it.
    most: usize,
    bytes: usize,
    cancel: Option<Cancel>,
}

impl<'o> Automata<'o> {
    pub(super) fn new(common: &'o AutomataCache, limits: &Limits) -> Self {
        Self { common, most: limits.terminal_bytes, bytes: 0, cancel: limits.cancel.clone() }
    }

    /// Takes room for a set of strings that is kept as long as the schema is read.
    ///
    /// # Errors
    /// If the budget is used up.
    pub(super) fn take(&mut self, set: &StringSet) -> Result<(), LeafError> {
        self.bytes = self.bytes.saturating_add(set.bytes());
        if self.bytes > self.most {
            return Err(LimitExceeded::of_terminals(self.most).into());
        }
        Ok(())
    }
}

impl Algebra<'_> {
    /// The problem of a budget that is used up at the schema at work.
    pub(super) fn too_large(&self, what: &str) -> Box<PendingError> {
        PendingError::new(SchemaErrorKind::Limit, self.here(), None, what.to_owned())
            .with_hint("combine fewer alternatives, or patterns with smaller counts")
    }

    /// The work counted so far.
    pub(super) fn work(&self) -> usize {
        self.work
    }

    /// Counts work that is about to be done against the budget.
    pub(super) fn spend(&mut self, units: usize) -> Checked<()> {
        self.work += units;
        let made = self.formulas.len().max(self.leaves.len()).max(self.keys.len());
        let made = made.max(self.conditions.len());
        let most = self.trial.unwrap_or(MOST_WORK);
        if self.work > most.min(MOST_WORK) || made > MOST_FORMULAS {
            return Err(self.too_large(TOO_MANY));
        }
        self.look()
    }

    /// Checks that nobody has cancelled the reading: whenever work is counted, and after each language of a
    /// leaf, the longest work in one piece.
    pub(super) fn look(&self) -> Checked<()> {
        let looked = self.automata.cancel.as_ref().map_or(Ok(()), Cancel::look);
        looked.map_err(|limit| PendingError::of_limit(self.here(), limit))
    }

    /// Turns an exceeded budget of a leaf language into a problem of the schema at work.
    pub(super) fn fitting<T>(&self, result: Result<T, LeafError>) -> Checked<T> {
        self.look()?;
        result.map_err(|error| PendingError::of_leaf(self.here(), None, error))
    }
}

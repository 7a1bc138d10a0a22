//! Shapes: sets of values, type by type.
//!
//! A shape is a union over the six JSON types. Its arrays and objects are unions of *conjunctions* of
//! constraints. Conjunctions are closed under intersection (join the lists of constraints), and their
//! complements are unions again (one alternative for each broken constraint). The contents of members and
//! items are formulas, expanded only when they are asked for.

use std::rc::Rc;

use super::{
    super::{NumberSet, StringSet, document::NodeId},
    conditions::ConditionId,
    formula::{FormulaId, Formulas},
    keys::KeysId,
};

/// A set of values.
#[derive(Debug, Clone)]
pub(in super::super) struct Shape {
    pub(in super::super) null: bool,
    /// True if `false` is in the set; true if `true` is.
    pub(in super::super) booleans: [bool; 2],
    pub(in super::super) numbers: Rc<NumberSet>,
    pub(in super::super) strings: Rc<StringSet>,
    pub(in super::super) arrays: Vec<Rc<ArrayShape>>,
    pub(in super::super) objects: Vec<Rc<ObjectShape>>,
}

/// A conjunction: arrays for which all of this holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct ArrayShape {
    /// The items at the first positions. A shorter array has only the first of them.
    pub(in super::super) prefix: Vec<FormulaId>,
    /// All items after them.
    pub(in super::super) rest: FormulaId,
    pub(in super::super) min: u64,
    pub(in super::super) max: Option<u64>,
    pub(in super::super) counts: Vec<ItemCount>,
    /// The node of the schema that says that no two items are equal.
    pub(in super::super) unique: Option<NodeId>,
    /// The node of the schema that says that two items are equal.
    pub(in super::super) repeated: Option<NodeId>,
}

/// Bounds on how many of the items from a position on are in a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct ItemCount {
    pub(in super::super) from: usize,
    pub(in super::super) of: FormulaId,
    pub(in super::super) min: u64,
    pub(in super::super) max: Option<u64>,
}

/// A conjunction: objects for which all of this holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in super::super) struct ObjectShape {
    /// The value of each named member, if the object has it, in order of first mention.
    pub(in super::super) properties: Vec<(Rc<str>, FormulaId)>,
    /// Names that must be there, in order of first mention.
    pub(in super::super) required: Vec<Rc<str>>,
    /// The value of every member whose key is in the set.
    pub(in super::super) every: Vec<(KeysId, FormulaId)>,
    /// Some member has a key of the set, and this value.
    pub(in super::super) some: Vec<(KeysId, FormulaId)>,
    pub(in super::super) min: u64,
    pub(in super::super) max: Option<u64>,
    /// What else must hold, where alternatives are too many to be shapes of their own.
    pub(in super::super) condition: Option<ConditionId>,
    /// For objects that are closed by default: true if the schema lists members, even none.
    pub(in super::super) listed: bool,
    /// For objects that are closed by default: true if the schema says that this one is open.
    pub(in super::super) open: bool,
}

impl ObjectShape {
    /// True if only the listed members are allowed, where objects are closed by default.
    pub(in super::super) fn is_closed(&self) -> bool {
        (self.listed || !self.properties.is_empty()) && !self.open
    }
}

impl ArrayShape {
    /// All arrays.
    pub(in super::super) fn any() -> Self {
        Self {
            prefix: Vec::new(),
            rest: Formulas::ANY,
            min: 0,
            max: None,
            counts: Vec::new(),
            unique: None,
            repeated: None,
        }
    }

    /// The formula of the item at a position.
    pub(in super::super) fn item(&self, place: usize) -> FormulaId {
        self.prefix.get(place).copied().unwrap_or(self.rest)
    }
}

/// The two constant shapes.
#[derive(Debug)]
pub(in super::super) struct ConstantShapes {
    /// All values.
    pub(in super::super) any: Rc<Shape>,
    /// No value.
    pub(in super::super) never: Rc<Shape>,
}

impl ConstantShapes {
    pub(in super::super) fn new() -> Self {
        let any = Shape {
            null: true,
            booleans: [true; 2],
            numbers: Rc::new(NumberSet::all()),
            strings: Rc::new(StringSet::all()),
            arrays: vec![Rc::new(ArrayShape::any())],
            objects: vec![Rc::new(ObjectShape::default())],
        };
        let never = Shape {
            null: false,
            booleans: [false; 2],
            numbers: Rc::new(NumberSet::none()),
            strings: Rc::new(StringSet::none()),
            arrays: Vec::new(),
            objects: Vec::new(),
        };
        Self { any: Rc::new(any), never: Rc::new(never) }
    }
}

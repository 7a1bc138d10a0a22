//! Shapes: sets of values, type by type.
//!
//! A shape is a union over the six JSON types. Its arrays and objects are unions of *conjunctions* of
//! constraints, which are closed under intersection (put the constraints together) and complement (a union
//! with one constraint broken each). What is inside members and items is a formula that nobody has looked at
//! yet.

use std::rc::Rc;

use super::{
    super::{NumberSet, StringSet, document::NodeId},
    formula::{FormulaId, Formulas},
    keys::KeysId,
};

/// A set of values.
#[derive(Debug, Clone)]
pub(in super::super) struct Shape {
    pub(in super::super) null: bool,
    /// Is false in it, is true?
    pub(in super::super) booleans: [bool; 2],
    pub(in super::super) numbers: Rc<NumberSet>,
    pub(in super::super) strings: Rc<StringSet>,
    pub(in super::super) arrays: Vec<Rc<ArrayShape>>,
    pub(in super::super) objects: Vec<Rc<ObjectShape>>,
}

/// Arrays for which all of this holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct ArrayShape {
    /// The items at the first places. A shorter array has only the first of them.
    pub(in super::super) prefix: Vec<FormulaId>,
    /// All items after them.
    pub(in super::super) rest: FormulaId,
    pub(in super::super) min: u64,
    pub(in super::super) max: Option<u64>,
    pub(in super::super) counts: Vec<Count>,
    /// No two items are equal, as the schema at this node says.
    pub(in super::super) unique: Option<NodeId>,
    /// Two items are equal, as the schema at this node says.
    pub(in super::super) repeated: Option<NodeId>,
}

/// Bounds on how many items from a place on are in a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Count {
    pub(in super::super) from: usize,
    pub(in super::super) of: FormulaId,
    pub(in super::super) min: u64,
    pub(in super::super) max: Option<u64>,
}

/// Objects for which all of this holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in super::super) struct ObjectShape {
    /// What the member of a name holds if there is one, in order of first mention.
    pub(in super::super) properties: Vec<(Rc<str>, FormulaId)>,
    /// Names that must be there, in order of first mention.
    pub(in super::super) required: Vec<Rc<str>>,
    /// What all members with these keys hold.
    pub(in super::super) every: Vec<(KeysId, FormulaId)>,
    /// Some member has one of these keys and holds this.
    pub(in super::super) some: Vec<(KeysId, FormulaId)>,
    pub(in super::super) min: u64,
    pub(in super::super) max: Option<u64>,
    /// Where objects are closed unless they say otherwise: is there a list of members, even an empty one?
    pub(in super::super) listed: bool,
    /// Where they are: do they say otherwise?
    pub(in super::super) open: bool,
}

impl ObjectShape {
    /// Has it no members but those that it speaks of, where objects are closed unless they say otherwise?
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

    /// What the item at a place must be in.
    pub(in super::super) fn item(&self, place: usize) -> FormulaId {
        self.prefix.get(place).copied().unwrap_or(self.rest)
    }
}

/// The shapes that everything starts from.
#[derive(Debug)]
pub(in super::super) struct Ends {
    /// All values.
    pub(in super::super) any: Rc<Shape>,
    /// No value.
    pub(in super::super) never: Rc<Shape>,
}

impl Ends {
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

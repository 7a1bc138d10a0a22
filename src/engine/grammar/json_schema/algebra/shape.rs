//! Shapes: sets of values, type by type; and the sets of object keys in them.
//!
//! A shape is a union over the six JSON types. Its arrays and objects are unions of *conjunctions* of
//! constraints. Conjunctions are closed under intersection (join the lists of constraints), and their
//! complements are unions again (one alternative for each broken constraint). The contents of members and
//! items are formulas, expanded only when they are asked for.

use std::rc::Rc;

use hashbrown::HashMap;

use super::{
    Algebra,
    conditions::ConditionId,
    formula::{FormulaId, Formulas},
};
use crate::{
    grammar::json_schema::{
        LeafError, NumberSet, StringSet,
        document::NodeId,
        error::{Checked, PendingError},
    },
    ids::Numbered,
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

// Sets of keys are the subjects of `patternProperties`, `additionalProperties` and `propertyNames`.

impl Algebra<'_> {
    /// Turns an exceeded budget of a set of strings into a problem of the schema at work, by its keyword.
    pub(in super::super) fn fitting_strings<T>(&self, result: Result<T, LeafError>) -> Checked<T> {
        self.look()?;
        result.map_err(|error| PendingError::of_strings(&self.resolver.documents, self.here(), error))
    }
}

/// The id of a set of keys in the arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in super::super) struct KeysId(u32);

/// A set of keys.
#[derive(Debug, Clone)]
pub(in super::super) enum Keys {
    /// The keys of a language of strings.
    Strings(Rc<StringSet>),
    /// All keys but these names and the keys of these sets.
    Rest { names: Rc<[Rc<str>]>, sets: Rc<[KeysId]> },
}

/// The names and the sets that a set leaves out.
type LeftOut = (Rc<[Rc<str>]>, Rc<[KeysId]>);

/// The arena of all sets of keys. Sets made of equal patterns, or that leave out the same, have equal ids.
#[derive(Debug, Default)]
pub(in super::super) struct KeySets {
    sets: Numbered<Keys>,
    by_pattern: HashMap<Box<str>, KeysId>,
    by_rest: HashMap<LeftOut, KeysId>,
}

impl KeySets {
    pub(in super::super) fn get(&self, id: KeysId) -> &Keys {
        &self.sets[id.0 as usize]
    }

    /// The number of sets.
    pub(in super::super) fn len(&self) -> usize {
        self.sets.len()
    }

    fn push(&mut self, keys: Keys) -> KeysId {
        // Past the last number the first set stands in. Long before, the limit on sets ends the work.
        KeysId(self.sets.push(keys, "sets of keys").unwrap_or(0))
    }

    /// The set that was made for a pattern.
    pub(in super::super) fn known(&self, pattern: &str) -> Option<KeysId> {
        self.by_pattern.get(pattern).copied()
    }

    /// The keys that a pattern matches.
    pub(in super::super) fn pattern(&mut self, pattern: &str, strings: StringSet) -> KeysId {
        let id = self.strings(Rc::new(strings));
        self.by_pattern.insert(pattern.into(), id);
        id
    }

    /// The keys of a language.
    pub(in super::super) fn strings(&mut self, strings: Rc<StringSet>) -> KeysId {
        self.push(Keys::Strings(strings))
    }

    /// All keys but these.
    pub(in super::super) fn rest(&mut self, names: Vec<Rc<str>>, mut sets: Vec<KeysId>) -> KeysId {
        sets.sort_unstable();
        sets.dedup();
        let key: LeftOut = (names.into(), sets.into());
        if let Some(&known) = self.by_rest.get(&key) {
            return known;
        }
        let id = self.push(Keys::Rest { names: key.0.clone(), sets: key.1.clone() });
        self.by_rest.insert(key, id);
        id
    }

    /// True if the key is in the set. Sets left out are languages of strings, so this recurses once.
    pub(in super::super) fn contains(&self, id: KeysId, key: &str) -> bool {
        match self.get(id) {
            Keys::Strings(strings) => strings.contains(key),
            Keys::Rest { names, sets } => {
                names.iter().all(|name| **name != *key) && sets.iter().all(|&set| !self.contains(set, key))
            }
        }
    }
}

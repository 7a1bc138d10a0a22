//! A cheap test for sets without a value, which looks a few levels deep.
//!
//! It prunes combinations while they are multiplied out, and tells alternatives of `oneOf` apart. It has no
//! false positives; a "no" means "not within this depth". Sets that are empty for deeper reasons are found
//! when the grammar is reduced, which is exact.

use super::{Algebra, ArrayShape, FormulaId, Formulas, ObjectShape};
use crate::ids::saturating_usize;

/// The number of levels of members and items that are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) struct Depth(u8);

impl Depth {
    /// The depth for members of combinations.
    pub(in super::super) const ITEM: Self = Self(1);
    /// The depth for two alternatives of `oneOf`: tags may lie a level deeper.
    pub(in super::super) const DISJOINT: Self = Self(3);
}

impl Algebra<'_> {
    /// True if the set surely has no value, as far as `depth` shows.
    pub(in super::super) fn is_surely_empty(&mut self, id: FormulaId, depth: Depth) -> bool {
        match id {
            Formulas::ANY => return false,
            Formulas::NEVER => return true,
            _ if self.empty.contains(&id) => return true,
            _ if depth.0 == 0 || self.filled.get(&id).is_some_and(|&known| known >= depth) => return false,
            _ => {}
        }
        // Noted first, so that a set that is met again below itself counts as filled.
        let before = self.filled.insert(id, depth);
        let below = Depth(depth.0 - 1);
        // What cannot be expanded now, perhaps because it is being expanded, is not known to be empty.
        let Ok(shape) = self.expand(id) else {
            match before {
                Some(before) => self.filled.insert(id, before),
                None => self.filled.remove(&id),
            };
            return false;
        };
        let is_empty = !shape.null
            && shape.booleans == [false; 2]
            && shape.numbers.is_empty()
            && shape.strings.is_empty()
            && shape.arrays.iter().all(|array| self.has_no_array(array, below))
            && shape.objects.iter().all(|object| self.has_no_object(object, below));
        if is_empty {
            self.filled.remove(&id);
            self.empty.insert(id);
        }
        is_empty
    }

    fn has_no_array(&mut self, array: &ArrayShape, depth: Depth) -> bool {
        let places = saturating_usize(array.min).min(array.prefix.len() + 1);
        (0..places).any(|place| self.is_surely_empty(array.item(place), depth))
    }

    fn has_no_object(&mut self, object: &ObjectShape, depth: Depth) -> bool {
        self.required_values(object).into_iter().any(|value| self.is_surely_empty(value, depth))
    }
}

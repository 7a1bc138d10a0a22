//! Sets with few values, as lists of them.

use std::rc::Rc;

use super::{
    super::{NumberSet, StringSet, error::Checked},
    Algebra, FormulaId, Shape,
};

impl Algebra<'_> {
    /// Lists the values of a set, if they are at most `limit`, and none is an array or an object.
    pub(in super::super) fn few_values(
        &mut self,
        id: FormulaId,
        limit: usize,
    ) -> Checked<Option<Vec<FormulaId>>> {
        let shape = self.expand(id)?;
        if !shape.arrays.is_empty() || !shape.objects.is_empty() {
            return Ok(None);
        }
        let (Some(strings), Some(numbers)) = (shape.strings.as_finite(limit), shape.numbers.as_finite(limit))
        else {
            return Ok(None);
        };
        let mut values: Vec<Shape> = Vec::new();
        let never = (*self.ends.never).clone();
        if shape.null {
            values.push(Shape { null: true, ..never.clone() });
        }
        for value in [0, 1].into_iter().filter(|&value| shape.booleans[value]) {
            let mut one = never.clone();
            one.booleans[value] = true;
            values.push(one);
        }
        for text in &strings {
            let strings = Rc::new(self.fitting(StringSet::one(text))?);
            values.push(Shape { strings, ..never.clone() });
        }
        for number in numbers {
            values.push(Shape { numbers: Rc::new(NumberSet::of([number])), ..never.clone() });
        }
        if values.len() > limit {
            return Ok(None);
        }
        Ok(Some(values.into_iter().map(|value| self.leaf(value)).collect()))
    }
}

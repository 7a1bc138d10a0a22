//! Keywords of arrays.

use std::rc::Rc;

use super::{
    super::{
        algebra::{Algebra, ArrayShape, FormulaId, Formulas, ItemCount},
        document::{NodeId, Value},
        error::{Checked, PendingError},
    },
    SchemaSite,
};

impl Algebra<'_> {
    /// Reads `items`, `prefixItems`, `additionalItems` and the bounds of length.
    pub(super) fn items(&mut self, site: SchemaSite) -> Checked<FormulaId> {
        let mut shape = ArrayShape {
            min: self.count(site, "minItems")?.unwrap_or(0),
            max: self.count(site, "maxItems")?,
            ..ArrayShape::any()
        };
        (shape.prefix, shape.rest) = self.places(site)?;
        Ok(self.only_arrays(shape))
    }

    /// The schemas of the first items, and the schema of all others.
    pub(super) fn places(&mut self, site: SchemaSite) -> Checked<(Vec<FormulaId>, FormulaId)> {
        let items = self.sibling(site, "items");
        let list = |algebra: &Self, node: Option<NodeId>| match node
            .map(|node| algebra.resolver.documents.value(node))
        {
            Some(Value::Array(schemas)) => Some(schemas.clone()),
            _ => None,
        };
        let prefix = list(self, self.sibling(site, "prefixItems"));
        let old = list(self, items);
        if old.is_some() && !site.dialect.has_item_lists() {
            let problem = PendingError::invalid(site.node, "items", "the value must be a schema");
            return Err(problem.with_hint("in this draft, lists of schemas are under `prefixItems`"));
        }
        let (prefix, rest) = match (prefix, old) {
            (None, Some(old)) => (old, self.sibling(site, "additionalItems")),
            (prefix, _) => (prefix.unwrap_or_default(), items),
        };
        let rest = rest.map_or(Formulas::ANY, |node| self.schema(node, site.scope));
        Ok((prefix.into_iter().map(|node| self.schema(node, site.scope)).collect(), rest))
    }

    /// Reads `contains`, with `minContains` and `maxContains`.
    pub(super) fn contains(&mut self, site: SchemaSite, value: NodeId) -> Checked<FormulaId> {
        let min = self.count(site, "minContains")?.unwrap_or(1);
        let max = self.count(site, "maxContains")?;
        let of = self.schema(value, site.scope);
        if max.is_some_and(|max| max < min) {
            // No array can satisfy both, so only other values are left.
            let mut whole = self.any_shape();
            whole.arrays = Vec::new();
            return Ok(self.leaf(whole));
        }
        let counts = vec![ItemCount { from: 0, of, min, max }];
        Ok(self.only_arrays(ArrayShape { min, counts, ..ArrayShape::any() }))
    }

    /// Reads `uniqueItems`.
    pub(super) fn unique(&mut self, site: SchemaSite, value: NodeId) -> Checked<FormulaId> {
        match self.resolver.documents.value(value) {
            Value::Bool(true) => {
                Ok(self.only_arrays(ArrayShape { unique: Some(site.node), ..ArrayShape::any() }))
            }
            Value::Bool(false) => Ok(Formulas::ANY),
            _ => Err(PendingError::invalid(site.node, "uniqueItems", "the value must be true or false")),
        }
    }

    /// The arrays of a shape, and all values that are not arrays.
    pub(super) fn only_arrays(&mut self, shape: ArrayShape) -> FormulaId {
        let mut whole = self.any_shape();
        whole.arrays = vec![Rc::new(shape)];
        self.leaf(whole)
    }
}

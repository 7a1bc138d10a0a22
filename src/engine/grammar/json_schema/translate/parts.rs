//! Keywords of values with parts: objects and arrays.

use std::rc::Rc;

use super::SchemaSite;
use crate::grammar::json_schema::{
    StringSet,
    algebra::{Algebra, ArrayShape, FormulaId, Formulas, ItemCount, KeysId, ObjectShape},
    document::{NodeId, Value},
    error::{Checked, PendingError},
};

/// The keys that one schema object mentions itself.
#[derive(Debug, Default)]
struct Declared {
    pub(super) names: Vec<Rc<str>>,
    pub(super) sets: Vec<KeysId>,
}

impl Algebra<'_> {
    /// Reads `properties`, `patternProperties`, `additionalProperties`, `required` and the counts of members.
    pub(super) fn members(&mut self, site: SchemaSite) -> Checked<FormulaId> {
        let mut shape = ObjectShape {
            min: self.count(site, "minProperties")?.unwrap_or(0),
            max: self.count(site, "maxProperties")?,
            listed: self.options.is_closed() && self.sibling(site, "properties").is_some(),
            ..ObjectShape::default()
        };
        let mut unknown = Vec::new();
        for (name, schema) in self.named(site, "properties")? {
            shape.properties.push((name, self.schema(schema, site.scope)));
        }
        let mut declared = Declared { names: names(&shape), sets: Vec::new() };
        for (pattern, schema) in self.named(site, "patternProperties")? {
            let value = self.schema(schema, site.scope);
            match self.keys_of_pattern(site, &pattern) {
                Ok(keys) => {
                    declared.sets.push(keys);
                    // Where unmentioned keys are forbidden, these count as mentioned.
                    if value != Formulas::ANY || self.options.is_closed() {
                        shape.every.push((keys, value));
                    }
                }
                Err(problem) => unknown.push(self.unknown(problem)),
            }
        }
        if let Some(schema) = self.sibling(site, "additionalProperties") {
            let value = self.schema(schema, site.scope);
            shape.open = self.options.is_closed() && value != Formulas::NEVER;
            // The set of additional keys is not known without all patterns.
            if value != Formulas::ANY && unknown.is_empty() {
                let keys = self.keys.rest(declared.names, declared.sets);
                shape.every.push((keys, value));
            }
        }
        self.required(site, &mut shape)?;
        let mut whole = self.any_shape();
        whole.objects = vec![Rc::new(shape)];
        unknown.push(self.leaf(whole));
        Ok(self.formulas.and(unknown))
    }

    fn required(&mut self, site: SchemaSite, shape: &mut ObjectShape) -> Checked<()> {
        let Some(node) = self.sibling(site, "required") else { return Ok(()) };
        let documents = &self.resolver.documents;
        match documents.value(node) {
            Value::Array(names) => {
                let mut seen = hashbrown::HashSet::new();
                for &name in names {
                    let Some(name) = documents.string(name) else {
                        return Err(PendingError::invalid(
                            site.node,
                            "required",
                            "the names must be strings",
                        ));
                    };
                    if seen.insert(name) {
                        shape.required.push(name.into());
                    }
                }
                Ok(())
            }
            // Draft 3 marks single properties so. Later drafts know no such keyword, and it was meant for the
            // object around, not for this one.
            Value::Bool(_) => {
                self.ignored.insert("required: true".to_owned());
                Ok(())
            }
            _ => Err(PendingError::invalid(site.node, "required", "the names must be in an array")),
        }
    }

    /// The members of the object under a keyword; none if there is no such keyword.
    pub(super) fn named(&self, site: SchemaSite, keyword: &'static str) -> Checked<Vec<(Rc<str>, NodeId)>> {
        let Some(node) = self.sibling(site, keyword) else { return Ok(Vec::new()) };
        match self.resolver.documents.value(node) {
            Value::Object(members) => {
                Ok(members.iter().map(|(name, node)| (Rc::from(&**name), *node)).collect())
            }
            _ => Err(PendingError::invalid(site.node, keyword, "the value must be an object")),
        }
    }

    /// The keys that a pattern of `patternProperties` matches.
    pub(super) fn keys_of_pattern(&mut self, site: SchemaSite, pattern: &str) -> Checked<KeysId> {
        if let Some(known) = self.keys.known(pattern) {
            return Ok(known);
        }
        self.look()?;
        match StringSet::from_pattern(pattern) {
            Ok(set) => Ok(self.keys.pattern(pattern, set)),
            Err(error) => Err(PendingError::of_leaf(site.node, Some("patternProperties"), error)),
        }
    }

    /// Reads `propertyNames`: all keys outside of the schema's strings are forbidden.
    pub(super) fn property_names(&mut self, site: SchemaSite, value: NodeId) -> Checked<FormulaId> {
        let schema = self.schema(value, site.scope);
        if schema == Formulas::ANY {
            return Ok(schema);
        }
        let before = self.relaxed.len();
        let strings = self.expand(schema)?.strings.clone();
        // A set that is too large must not be complemented.
        if let Some(problem) = self.relaxed.get(before).cloned() {
            return Ok(self.unknown(Box::new(problem)));
        }
        let other = self.fitting(strings.complement())?;
        let keys = self.keys.strings(Rc::new(other));
        let shape = ObjectShape { every: vec![(keys, Formulas::NEVER)], ..ObjectShape::default() };
        Ok(self.only_objects(shape))
    }

    /// Reads `dependentRequired`, `dependentSchemas`, and `dependencies`, which is both.
    pub(super) fn dependent(&mut self, site: SchemaSite, value: NodeId) -> Checked<FormulaId> {
        let Value::Object(members) = self.resolver.documents.value(value).clone() else {
            return Err(PendingError::invalid(site.node, "dependencies", "the value must be an object"));
        };
        let mut parts = Vec::new();
        for (name, node) in members {
            let name: Rc<str> = (&*name).into();
            let then = self.depends(site, node)?;
            let without = self.only_objects(ObjectShape {
                properties: vec![(name.clone(), Formulas::NEVER)],
                ..ObjectShape::default()
            });
            let with = self.has_member(&name);
            let with = self.formulas.and([with, then]);
            // Values that are not objects pass the first alternative.
            parts.push(self.formulas.or([without, with]));
        }
        Ok(self.formulas.and(parts))
    }

    /// The formula that must hold of an object that has a certain member.
    fn depends(&mut self, site: SchemaSite, node: NodeId) -> Checked<FormulaId> {
        let documents = &self.resolver.documents;
        let names: Vec<NodeId> = match documents.value(node) {
            Value::Array(names) => names.clone(),
            // Draft 3 allows a single name.
            Value::String(_) => vec![node],
            _ => return Ok(self.schema(node, site.scope)),
        };
        let mut required: Vec<Rc<str>> = Vec::new();
        for name in names {
            let Some(name) = documents.string(name) else {
                return Err(PendingError::invalid(site.node, "dependencies", "the names must be strings"));
            };
            if required.iter().all(|known| **known != *name) {
                required.push(name.into());
            }
        }
        Ok(self.only_objects(ObjectShape { required, ..ObjectShape::default() }))
    }

    /// The objects that have the member, and no other values.
    pub(super) fn has_member(&mut self, name: &Rc<str>) -> FormulaId {
        let mut shape = (*self.ends.never).clone();
        let required = vec![name.clone()];
        shape.objects = vec![Rc::new(ObjectShape { required, ..ObjectShape::default() })];
        self.leaf(shape)
    }

    /// The objects of a shape, and all values that are not objects.
    pub(super) fn only_objects(&mut self, shape: ObjectShape) -> FormulaId {
        let mut whole = self.any_shape();
        whole.objects = vec![Rc::new(shape)];
        self.leaf(whole)
    }
}

fn names(shape: &ObjectShape) -> Vec<Rc<str>> {
    shape.properties.iter().map(|(name, _)| name.clone()).collect()
}

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

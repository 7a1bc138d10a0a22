//! Schemas -> formulas.
//!
//! Each keyword of a schema object is a formula over shapes of one type and over other schemas. The schema is
//! the conjunction of them, in the order of the text. Nothing is expanded here, so the depth of schemas does
//! not matter.

mod parts;
mod scalar;
mod unevaluated;

use super::{
    Decimal,
    algebra::{Algebra, FormulaId, Formulas},
    dialect::Dialect,
    document::{NodeId, Value},
    error::{Checked, PendingError},
    keywords::{Role, role},
    resolve::AnchorScope,
};

/// A schema object that is being read.
#[derive(Debug, Clone, Copy)]
pub(super) struct SchemaSite {
    pub(super) node: NodeId,
    pub(super) scope: AnchorScope,
    pub(super) dialect: Dialect,
}

/// Keywords that are read together with another one.
const READ_BESIDE: &[&str] = &[
    "then",
    "else",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "properties",
    "patternProperties",
    "additionalProperties",
    "required",
    "minProperties",
    "maxProperties",
    "items",
    "prefixItems",
    "additionalItems",
    "minItems",
    "maxItems",
    "minContains",
    "maxContains",
    "nullable",
    "x-kubernetes-int-or-string",
    "unevaluatedProperties",
    "unevaluatedItems",
];

impl Algebra<'_> {
    /// The formula of a schema, read once.
    pub(super) fn formula_of(&mut self, node: NodeId, scope: AnchorScope) -> Checked<FormulaId> {
        if let Some(&known) = self.read.get(&(node, scope)) {
            return Ok(known);
        }
        let formula = match self.resolver.documents.value(node) {
            Value::Bool(true) => Formulas::ANY,
            Value::Bool(false) => Formulas::NEVER,
            Value::Object(_) => {
                let site = SchemaSite { node, scope, dialect: self.resolver.dialect(node) };
                self.object_formula(site)?
            }
            _ => {
                return Err(PendingError::new(
                    super::SchemaErrorKind::Invalid,
                    node,
                    None,
                    "a schema is an object, true or false",
                ));
            }
        };
        self.read.insert((node, scope), formula);
        Ok(formula)
    }

    fn object_formula(&mut self, site: SchemaSite) -> Checked<FormulaId> {
        if site.dialect == Dialect::TooOld {
            return Err(PendingError::too_old(site.node));
        }
        let documents = &self.resolver.documents;
        if documents.member(site.node, "$ref").is_some() && site.dialect.ref_stands_alone() {
            let target = self.resolver.reference(site.node, "$ref", site.scope)?;
            return Ok(self.schema(target, site.scope));
        }
        let unevaluated = ["unevaluatedProperties", "unevaluatedItems"]
            .into_iter()
            .any(|keyword| site.dialect.knows(keyword) && documents.member(site.node, keyword).is_some());
        if unevaluated {
            return self.with_unevaluated(site);
        }
        self.keywords(site, &|_| true)
    }

    /// Reads the keywords of a schema object that `wanted` selects.
    pub(super) fn keywords(&mut self, site: SchemaSite, wanted: &dyn Fn(&str) -> bool) -> Checked<FormulaId> {
        let Value::Object(members) = self.resolver.documents.value(site.node).clone() else {
            return Ok(Formulas::ANY);
        };
        let mut parts = Vec::new();
        let mut groups = Groups::default();
        for (keyword, value) in &members {
            if !site.dialect.knows(keyword) {
                self.ignored.insert(keyword.to_string());
                continue;
            }
            if wanted(keyword) {
                self.keyword(site, keyword, *value, &mut groups, &mut parts)?;
            }
        }
        Ok(self.formulas.and(parts))
    }

    /// Reads one keyword. Keywords that have a meaning only together are read when the first of them is met.
    fn keyword(
        &mut self,
        site: SchemaSite,
        keyword: &str,
        value: NodeId,
        groups: &mut Groups,
        parts: &mut Vec<FormulaId>,
    ) -> Checked<()> {
        match keyword {
            "type" => parts.push(self.types(site, value)?),
            "enum" => parts.push(self.enumeration(site, value)?),
            "const" => parts.push(self.value(value)),
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" if groups.bounds.first() => {
                parts.push(self.bounds(site)?);
            }
            "multipleOf" => parts.push(self.multiples(site, value)?),
            "minLength" | "maxLength" if groups.length.first() => parts.push(self.lengths(site)?),
            "pattern" => parts.push(self.pattern(site, value)?),
            "format" => parts.push(self.format(site, value)?),
            "properties"
            | "patternProperties"
            | "additionalProperties"
            | "required"
            | "minProperties"
            | "maxProperties"
                if groups.members.first() =>
            {
                parts.push(self.members(site)?);
            }
            "propertyNames" => parts.push(self.property_names(site, value)?),
            "dependentRequired" | "dependentSchemas" | "dependencies" => {
                parts.push(self.dependent(site, value)?);
            }
            "items" | "prefixItems" | "additionalItems" | "minItems" | "maxItems" if groups.items.first() => {
                parts.push(self.items(site)?);
            }
            "contains" => parts.push(self.contains(site, value)?),
            "uniqueItems" => parts.push(self.unique(site, value)?),
            "$ref" => {
                let target = self.resolver.reference(site.node, "$ref", site.scope)?;
                parts.push(self.schema(target, site.scope));
            }
            "$dynamicRef" => {
                let target = self.resolver.reference(site.node, "$dynamicRef", site.scope)?;
                parts.push(self.schema(target, site.scope));
            }
            "$recursiveRef" => {
                let target = self.resolver.reference(site.node, "$recursiveRef", site.scope)?;
                parts.push(self.schema(target, site.scope));
            }
            "allOf" => {
                let schemas = self.schemas(site, "allOf", value)?;
                parts.push(self.formulas.and(schemas));
            }
            "anyOf" => {
                let schemas = self.schemas(site, "anyOf", value)?;
                parts.push(self.formulas.or(schemas));
            }
            "oneOf" => {
                let schemas = self.schemas(site, "oneOf", value)?;
                parts.push(self.formulas.exactly_one(schemas));
            }
            "not" => {
                let schema = self.schema(value, site.scope);
                parts.push(self.formulas.not(schema));
            }
            "if" => parts.push(self.conditional(site, value)?),
            "x-kubernetes-int-or-string" if self.is_true(value) && site.dialect == Dialect::Tolerant => {
                parts.push(self.integer_or_string());
            }
            _ => match role(keyword) {
                Role::Asserts if READ_BESIDE.contains(&keyword) => {}
                // A keyword that restricts values is never dropped.
                Role::Asserts => return Err(PendingError::not_read(site.node, keyword)),
                Role::Names => {}
                Role::Remarks | Role::Unknown => {
                    self.ignored.insert(keyword.to_owned());
                }
            },
        }
        Ok(())
    }

    /// The value under `keyword`, if the dialect has that keyword.
    pub(super) fn sibling(&self, site: SchemaSite, keyword: &str) -> Option<NodeId> {
        self.resolver.documents.member(site.node, keyword).filter(|_| site.dialect.knows(keyword))
    }

    /// The exact value of a number as written.
    pub(super) fn decimal(&self, node: NodeId, text: &str) -> Checked<Decimal> {
        Decimal::parse(text).map_err(|error| PendingError::of_leaf(node, None, error))
    }

    /// The number under a keyword.
    pub(super) fn number(&self, site: SchemaSite, keyword: &'static str) -> Checked<Option<Decimal>> {
        let Some(node) = self.sibling(site, keyword) else { return Ok(None) };
        match self.resolver.documents.value(node) {
            Value::Number(text) => self.decimal(node, text).map(Some),
            _ => Err(PendingError::invalid(site.node, keyword, "the value must be a number")),
        }
    }

    /// The count under a keyword.
    pub(super) fn count(&self, site: SchemaSite, keyword: &'static str) -> Checked<Option<u64>> {
        let Some(number) = self.number(site, keyword)? else { return Ok(None) };
        if number.is_negative() && !number.is_zero() {
            return Err(PendingError::invalid(site.node, keyword, "the count must not be negative"));
        }
        let whole = number.to_u64();
        whole.map(Some).ok_or_else(|| {
            PendingError::invalid(
                site.node,
                keyword,
                "the count must be a whole number below 2 to the power of 64",
            )
        })
    }
}

/// A group of keywords that are read together.
#[derive(Debug, Default)]
struct KeywordGroup {
    read: bool,
}

impl KeywordGroup {
    /// True for the first call only.
    fn first(&mut self) -> bool {
        !std::mem::replace(&mut self.read, true)
    }
}

#[derive(Debug, Default)]
struct Groups {
    bounds: KeywordGroup,
    length: KeywordGroup,
    members: KeywordGroup,
    items: KeywordGroup,
}

impl Algebra<'_> {
    /// The schemas of the array under a keyword.
    fn schemas(&mut self, site: SchemaSite, keyword: &'static str, value: NodeId) -> Checked<Vec<FormulaId>> {
        match self.resolver.documents.value(value).clone() {
            Value::Array(schemas) if !schemas.is_empty() => {
                Ok(schemas.into_iter().map(|schema| self.schema(schema, site.scope)).collect())
            }
            _ => Err(PendingError::invalid(
                site.node,
                keyword,
                "the schemas must be in an array that is not empty",
            )),
        }
    }

    /// The formula of `if`, `then` and `else`: (condition and `then`) or (not condition and `else`).
    fn conditional(&mut self, site: SchemaSite, value: NodeId) -> Checked<FormulaId> {
        let condition = self.schema(value, site.scope);
        let mut branch =
            |keyword| self.sibling(site, keyword).map_or(Formulas::ANY, |node| self.schema(node, site.scope));
        let (then, otherwise) = (branch("then"), branch("else"));
        if then == Formulas::ANY && otherwise == Formulas::ANY {
            return Ok(Formulas::ANY);
        }
        let with = self.formulas.and([condition, then]);
        let not = self.formulas.not(condition);
        let without = self.formulas.and([not, otherwise]);
        Ok(self.formulas.or([with, without]))
    }
}

//! The keywords `unevaluatedProperties` and `unevaluatedItems`.
//!
//! They see what the other keywords of their schema object have evaluated, which depends on which
//! alternatives hold. So a schema object is split into *cases*: a formula, and what is evaluated wherever
//! that formula holds. The more alternatives hold, the more is evaluated, and the more evaluated, the more
//! allowed. So the union over all sets of alternatives is exact without saying that the other alternatives do
//! not hold.

use std::rc::Rc;

use super::{
    super::{
        algebra::{Algebra, ArrayShape, FormulaId, Formulas, KeysId, ObjectShape},
        document::{NodeId, Value},
        error::{Checked, PendingError},
        resolve::AnchorScope,
    },
    SchemaSite,
};

/// Limit on the cases of one schema object.
const MOST_CASES: usize = 512;
/// Limit on the levels of references and combinations that are looked through.
const MOST_LEVELS: usize = 64;

/// Keywords that apply schemas to the value itself, and so evaluate what these evaluate.
const IN_PLACE: &[&str] =
    &["$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "if", "dependentSchemas"];

/// The members and items that have been evaluated.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct EvaluatedParts {
    all_members: bool,
    names: Vec<Rc<str>>,
    sets: Vec<KeysId>,
    all_items: bool,
    places: usize,
    /// Sets of items that have been evaluated.
    matching: Vec<FormulaId>,
}

impl EvaluatedParts {
    fn join(&mut self, other: &Self) {
        self.all_members |= other.all_members;
        for name in &other.names {
            if !self.names.contains(name) {
                self.names.push(name.clone());
            }
        }
        for &set in &other.sets {
            if !self.sets.contains(&set) {
                self.sets.push(set);
            }
        }
        self.all_items |= other.all_items;
        self.places = self.places.max(other.places);
        for &formula in &other.matching {
            if !self.matching.contains(&formula) {
                self.matching.push(formula);
            }
        }
    }
}

#[derive(Debug, Clone)]
struct Case {
    holds: FormulaId,
    seen: EvaluatedParts,
}

impl Algebra<'_> {
    /// Reads a schema object that asks for what was not evaluated.
    pub(super) fn with_unevaluated(&mut self, site: SchemaSite) -> Checked<FormulaId> {
        let mut alternatives = Vec::new();
        for case in self.cases_of_site(site, 0)? {
            alternatives.push(case.holds);
        }
        Ok(self.formulas.or(alternatives))
    }

    /// Applies the `unevaluated...` keywords of the schema object to a case.
    fn close(&mut self, site: SchemaSite, mut case: Case) -> Case {
        if let Some(node) = self.sibling(site, "unevaluatedProperties") {
            let value = self.schema(node, site.scope);
            if !case.seen.all_members && value != Formulas::ANY {
                let keys = self.keys.rest(case.seen.names.clone(), case.seen.sets.clone());
                let shape = ObjectShape { every: vec![(keys, value)], ..ObjectShape::default() };
                let rest = self.only_objects(shape);
                case.holds = self.formulas.and([case.holds, rest]);
            } else if self.options.is_closed() && value == Formulas::ANY {
                let open = self.only_objects(ObjectShape { open: true, ..ObjectShape::default() });
                case.holds = self.formulas.and([case.holds, open]);
            }
            case.seen.all_members = true;
        }
        if let Some(node) = self.sibling(site, "unevaluatedItems") {
            let value = self.schema(node, site.scope);
            if !case.seen.all_items && value != Formulas::ANY {
                let rest = self.formulas.or(case.seen.matching.iter().copied().chain([value]));
                let prefix = vec![Formulas::ANY; case.seen.places];
                let items = self.only_arrays(ArrayShape { prefix, rest, ..ArrayShape::any() });
                case.holds = self.formulas.and([case.holds, items]);
            }
            case.seen.all_items = true;
        }
        case
    }

    fn cases(&mut self, node: NodeId, scope: AnchorScope, level: usize) -> Checked<Vec<Case>> {
        let scope = self.resolver.enter(scope, node);
        if level > MOST_LEVELS {
            return Err(self.too_large("too many levels of schemas below `unevaluated...`"));
        }
        match self.resolver.documents.value(node) {
            Value::Object(_) => {
                let site = SchemaSite { node, scope, dialect: self.resolver.dialect(node) };
                self.cases_of_site(site, level)
            }
            _ => Ok(vec![Case { holds: self.schema(node, scope), seen: EvaluatedParts::default() }]),
        }
    }

    fn cases_of_site(&mut self, site: SchemaSite, level: usize) -> Checked<Vec<Case>> {
        let Value::Object(members) = self.resolver.documents.value(site.node).clone() else {
            return Ok(Vec::new());
        };
        let alone = site.dialect.ref_stands_alone() && self.sibling(site, "$ref").is_some();
        let holds =
            if alone { Formulas::ANY } else { self.keywords(site, &|keyword| !IN_PLACE.contains(&keyword))? };
        let mut cases =
            vec![Case { holds, seen: if alone { EvaluatedParts::default() } else { self.seen_here(site)? } }];
        for (keyword, value) in &members {
            if !site.dialect.knows(keyword) || (alone && &**keyword != "$ref") {
                continue;
            }
            let more = self.cases_of_keyword(site, keyword, *value, level)?;
            if let Some(more) = more {
                cases = self.both(&cases, &more)?;
            }
        }
        Ok(cases.into_iter().map(|case| self.close(site, case)).collect())
    }

    /// The cases of a keyword that applies schemas at the same place; `None` for other keywords.
    fn cases_of_keyword(
        &mut self,
        site: SchemaSite,
        keyword: &str,
        value: NodeId,
        level: usize,
    ) -> Checked<Option<Vec<Case>>> {
        let keyword = match IN_PLACE.iter().find(|&&known| known == keyword) {
            Some(keyword) => *keyword,
            None => return Ok(None),
        };
        Ok(Some(match keyword {
            "$ref" | "$dynamicRef" | "$recursiveRef" => {
                let target = self.resolver.reference(site.node, keyword, site.scope)?;
                self.cases(target, site.scope, level + 1)?
            }
            "allOf" => {
                // All branches hold, so a case has seen what each of them has.
                let mut whole = vec![Case { holds: Formulas::ANY, seen: EvaluatedParts::default() }];
                for node in self.list(site, keyword, value)? {
                    let more = self.cases(node, site.scope, level + 1)?;
                    whole = self.both(&whole, &more)?;
                }
                whole
            }
            "anyOf" => {
                // Each set of branches that hold is a case of its own, since it may have seen other members.
                let mut whole: Vec<Case> = Vec::new();
                for node in self.list(site, keyword, value)? {
                    let more = self.cases(node, site.scope, level + 1)?;
                    let both = self.both(&whole, &more)?;
                    whole.extend(more);
                    whole.extend(both);
                    whole = self.merged(whole)?;
                }
                whole
            }
            "oneOf" => {
                // The one branch that holds has seen the members; all others fail.
                let schemas = self.list(site, keyword, value)?;
                let formulas: Vec<_> = schemas.iter().map(|&node| self.schema(node, site.scope)).collect();
                let mut whole = Vec::new();
                for (index, &node) in schemas.iter().enumerate() {
                    let others = formulas.iter().enumerate().filter(|&(other, _)| other != index);
                    let others: Vec<_> = others.map(|(_, &other)| self.formulas.not(other)).collect();
                    let others = self.formulas.and(others);
                    for mut case in self.cases(node, site.scope, level + 1)? {
                        case.holds = self.formulas.and([case.holds, others]);
                        whole.push(case);
                    }
                }
                self.merged(whole)?
            }
            "if" => self.cases_of_conditional(site, value, level)?,
            _ => self.cases_of_dependent(site, value, level)?,
        }))
    }

    fn cases_of_conditional(&mut self, site: SchemaSite, value: NodeId, level: usize) -> Checked<Vec<Case>> {
        let condition = self.schema(value, site.scope);
        let mut whole = self.cases(value, site.scope, level + 1)?;
        if let Some(then) = self.sibling(site, "then") {
            let then = self.cases(then, site.scope, level + 1)?;
            whole = self.both(&whole, &then)?;
        }
        let not = self.formulas.not(condition);
        let mut otherwise = vec![Case { holds: not, seen: EvaluatedParts::default() }];
        if let Some(node) = self.sibling(site, "else") {
            let more = self.cases(node, site.scope, level + 1)?;
            otherwise = self.both(&otherwise, &more)?;
        }
        whole.extend(otherwise);
        self.merged(whole)
    }

    fn cases_of_dependent(&mut self, site: SchemaSite, value: NodeId, level: usize) -> Checked<Vec<Case>> {
        let Value::Object(members) = self.resolver.documents.value(value).clone() else {
            return Err(PendingError::invalid(site.node, "dependentSchemas", "the value must be an object"));
        };
        let mut whole = vec![Case { holds: Formulas::ANY, seen: EvaluatedParts::default() }];
        for (name, node) in members {
            let with = self.has_member(&Rc::from(&*name));
            let without = self.formulas.not(with);
            let mut cases = vec![Case { holds: without, seen: EvaluatedParts::default() }];
            for mut case in self.cases(node, site.scope, level + 1)? {
                case.holds = self.formulas.and([with, case.holds]);
                cases.push(case);
            }
            whole = self.both(&whole, &cases)?;
        }
        Ok(whole)
    }

    fn list(&self, site: SchemaSite, keyword: &'static str, value: NodeId) -> Checked<Vec<NodeId>> {
        match self.resolver.documents.value(value) {
            Value::Array(schemas) => Ok(schemas.clone()),
            _ => Err(PendingError::invalid(site.node, keyword, "the schemas must be in an array")),
        }
    }

    /// The members and items that the keywords of the schema object itself evaluate.
    fn seen_here(&mut self, site: SchemaSite) -> Checked<EvaluatedParts> {
        let mut seen = EvaluatedParts {
            names: self.named(site, "properties")?.into_iter().map(|(name, _)| name).collect(),
            all_members: self.sibling(site, "additionalProperties").is_some(),
            ..EvaluatedParts::default()
        };
        for (pattern, _) in self.named(site, "patternProperties")? {
            seen.sets.push(self.keys_of_pattern(site, &pattern)?);
        }
        let (prefix, _) = self.places(site)?;
        seen.places = prefix.len();
        seen.all_items = match self.sibling(site, "items").map(|node| self.resolver.documents.value(node)) {
            Some(Value::Array(_)) => self.sibling(site, "additionalItems").is_some(),
            Some(_) => true,
            None => false,
        };
        // Only 2020-12 counts items that `contains` matched as evaluated.
        if let Some(node) = self.sibling(site, "contains").filter(|_| site.dialect.knows("prefixItems")) {
            seen.matching.push(self.schema(node, site.scope));
        }
        Ok(seen)
    }

    /// The conjunctions of a case of each side.
    fn both(&mut self, left: &[Case], right: &[Case]) -> Checked<Vec<Case>> {
        let mut pairs = Vec::new();
        for one in left {
            for other in right {
                self.spend(10)?;
                let mut seen = one.seen.clone();
                seen.join(&other.seen);
                pairs.push(Case { holds: self.formulas.and([one.holds, other.holds]), seen });
            }
        }
        self.merged(pairs)
    }

    /// Merges cases that have evaluated the same.
    fn merged(&mut self, cases: Vec<Case>) -> Checked<Vec<Case>> {
        let mut merged: Vec<Case> = Vec::new();
        for case in cases.into_iter().filter(|case| case.holds != Formulas::NEVER) {
            match merged.iter_mut().find(|known| known.seen == case.seen) {
                Some(known) => known.holds = self.formulas.or([known.holds, case.holds]),
                None => merged.push(case),
            }
        }
        if merged.len() > MOST_CASES {
            return Err(self.too_large("too many alternatives beside `unevaluated...`"));
        }
        Ok(merged)
    }
}

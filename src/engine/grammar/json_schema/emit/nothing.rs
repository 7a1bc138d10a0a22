//! Explanations of schemas that allow no value, and the test whether a grammar has a text.

use std::rc::Rc;

use hashbrown::HashSet;

use super::MOST_ALIASES;
use crate::{
    grammar::{
        AnyOrder, Expr, Grammar,
        any_order::OrderRules,
        errors::quoted,
        json_schema::{
            algebra::{Algebra, Depth, Formula, FormulaId, Formulas, ObjectShape},
            document::{NodeId, Value},
            error::{PendingError, SchemaErrorKind},
            numbers::Decimal,
        },
    },
    ids::ExprId,
};

/// Limit on the schemas named in a message.
const MOST_NAMED: usize = 8;

/// Keywords of which the first may not be more than the second, and the types that they are about.
const BOUNDS: [(&[&str], &str, &str); 7] = [
    (&["string"], "minLength", "maxLength"),
    (&["number", "integer"], "minimum", "maximum"),
    (&["number", "integer"], "exclusiveMinimum", "maximum"),
    (&["number", "integer"], "minimum", "exclusiveMaximum"),
    (&["number", "integer"], "exclusiveMinimum", "exclusiveMaximum"),
    (&["array"], "minItems", "maxItems"),
    (&["object"], "minProperties", "maxProperties"),
];

impl Algebra<'_> {
    /// The problem that no value is valid, naming the schemas that contradict each other.
    ///
    /// Descends from the start along required members and items that have no value.
    pub(in super::super) fn nothing_allowed(&mut self, root: FormulaId) -> Box<PendingError> {
        if let Some(problem) = self.impossible_member(root) {
            return problem;
        }
        let mut here = root;
        for _ in 0..MOST_ALIASES {
            here = self.without_aliases(here).unwrap_or(here);
            let Ok(shape) = self.expand(here) else { break };
            let below = match (&shape.objects[..], &shape.arrays[..]) {
                ([object], []) => {
                    let values = self.required_values(object);
                    values.into_iter().find(|&value| self.is_surely_empty(value, Depth::ITEM))
                }
                ([], [array]) if array.min > 0 => Some(array.item(0)),
                _ => None,
            };
            match below {
                Some(below) if below != here && below != Formulas::NEVER => here = below,
                _ => break,
            }
        }
        let mut nodes = Vec::new();
        self.schemas_of(here, &mut nodes);
        let node = nodes.first().copied().unwrap_or_default();
        let why = self.crossed_bounds(&self.schemas_in_all(here));
        let why =
            why.unwrap_or("what is asked for contradicts itself, or would have to be endless".to_owned());
        let reason = format!("no value is valid: {why}");
        let mut problem = PendingError::new(SchemaErrorKind::NoInstance, node, None, reason);
        problem.more =
            nodes.into_iter().skip(1).map(|node| (node, "together with this".to_owned())).collect();
        for (node, label) in &mut problem.more {
            *label = format!("together with {}", self.resolver.documents.pointer(*node));
        }
        problem
    }

    /// Names a least value above a greatest one in schemas that all hold, where one of them asks for the type
    /// that both are about: then no other keyword matters.
    fn crossed_bounds(&self, nodes: &[NodeId]) -> Option<String> {
        let documents = &self.resolver.documents;
        let bound = |keyword: &str| {
            nodes.iter().find_map(|&node| match documents.value(documents.member(node, keyword)?) {
                Value::Number(text) => Some((Decimal::parse(text).ok()?, text)),
                _ => None,
            })
        };
        let is_of = |node: NodeId, types: &[&str]| {
            let kind = documents.member(node, "type").and_then(|kind| documents.string(kind));
            kind.is_some_and(|kind| types.contains(&kind))
        };
        BOUNDS.into_iter().filter(|(types, ..)| nodes.iter().any(|&node| is_of(node, types))).find_map(
            |(_, least, most)| {
                let ((low, low_text), (high, high_text)) = (bound(least)?, bound(most)?);
                let is_open = least.starts_with("exclusive") || most.starts_with("exclusive");
                let crosses = low > high || is_open && low == high;
                crosses.then(|| format!("`{least}` is {low_text}, and `{most}` {high_text}"))
            },
        )
    }

    /// The problem of a required member without a value, if one is found.
    ///
    /// Searches required members and items, where the schema leaves no choice.
    fn impossible_member(&mut self, root: FormulaId) -> Option<Box<PendingError>> {
        let (mut open, mut seen) = (vec![root], HashSet::new());
        while let Some(id) = open.pop() {
            let id = self.without_aliases(id).unwrap_or(id);
            if seen.len() == MOST_ALIASES || !seen.insert(id) {
                continue;
            }
            let Ok(shape) = self.expand(id) else { continue };
            let has_others = shape.null
                || shape.booleans != [false; 2]
                || !shape.numbers.is_empty()
                || !shape.strings.is_empty();
            match (&shape.objects[..], &shape.arrays[..]) {
                _ if has_others => {}
                ([], [array]) if array.min > 0 => open.push(array.item(0)),
                (objects, []) => {
                    let names: Vec<_> = objects.iter().map(|object| self.impossible_name(object)).collect();
                    let first = names.iter().flatten().next();
                    if names.iter().all(Option::is_some)
                        && let Some(problem) = self.missing_member(id, first.map(|name| &**name))
                    {
                        return Some(problem);
                    }
                    if let [object] = objects {
                        open.extend(self.required_values(object).into_iter().rev());
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// The first required name whose member has no value.
    fn impossible_name(&mut self, object: &ObjectShape) -> Option<Rc<str>> {
        let values = self.required_values(object);
        let first = values.iter().position(|&value| value == Formulas::NEVER)?;
        object.required.get(first).cloned()
    }

    /// The problem that a member of a set's objects is required and cannot exist, with the keywords that say
    /// so. Without `name`, it is the first member of which the keywords alone say that.
    fn missing_member(&self, objects: FormulaId, name: Option<&str>) -> Option<Box<PendingError>> {
        let nodes = self.schemas_in_all(objects);
        let documents = &self.resolver.documents;
        let required =
            |node: NodeId| match documents.member(node, "required").map(|list| documents.value(list)) {
                Some(Value::Array(names)) => &names[..],
                _ => &[],
            };
        let names = nodes.iter().flat_map(|&node| required(node).iter().map(move |&one| (node, one)));
        let named = names.filter_map(|(node, one)| Some((node, documents.string(one)?)));
        let mut named = named.filter(|(_, one)| name.is_none_or(|name| name == *one));
        let (at, name, why) = match name {
            Some(name) => {
                let at = named.next().map(|(node, _)| node);
                (at, name, self.forbidden(&nodes, name))
            }
            // Values of other types need no members.
            None if nodes.iter().any(|&node| self.is_about_others(node)) => return None,
            None => {
                let found = named.find_map(|(node, one)| Some((node, one, self.forbidden(&nodes, one)?)));
                let (node, one, why) = found?;
                (Some(node), one, Some(why))
            }
        };
        let shown = quoted(name);
        let (reason, place) = match why {
            Some((place, Some(keyword))) => {
                (format!("{shown} must be there, and `{keyword}` allows no such member"), Some(place))
            }
            Some((place, None)) => {
                (format!("{shown} must be there, and its schema allows no value"), Some(place))
            }
            None => (format!("{shown} must be there, and no value is allowed for it"), None),
        };
        let node = at.or(nodes.first().copied()).unwrap_or_default();
        let mut problem =
            PendingError::new(SchemaErrorKind::NoInstance, node, at.map(|_| "required"), reason);
        problem.more = place.map(|place| (place, documents.pointer(place))).into_iter().collect();
        Some(problem.with_hint(format!("list {shown} under `properties`, or do not require it")))
    }

    /// True if a schema asks for something besides objects, or for single values.
    fn is_about_others(&self, node: NodeId) -> bool {
        let documents = &self.resolver.documents;
        let asks = |keyword: &str| documents.member(node, keyword).is_some();
        let kind = documents.member(node, "type").map(|kind| documents.value(kind));
        let names_objects = match kind {
            None => true,
            Some(Value::Array(kinds)) => kinds.iter().any(|&kind| documents.string(kind) == Some("object")),
            Some(kind) => matches!(kind, Value::String(kind) if **kind == *"object"),
        };
        !names_objects || asks("enum") || asks("const")
    }

    /// The place where schemas, all of which hold, forbid a member: its own schema, or a keyword that
    /// excludes its key.
    fn forbidden(&self, nodes: &[NodeId], name: &str) -> Option<(NodeId, Option<&'static str>)> {
        let documents = &self.resolver.documents;
        let is_false = |node: NodeId| matches!(documents.value(node), Value::Bool(false));
        let own = |node: NodeId| documents.member(documents.member(node, "properties")?, name);
        if let Some(own) = nodes.iter().find_map(|&node| own(node).filter(|&own| is_false(own))) {
            return Some((own, None));
        }
        let forbids = |node: NodeId, keyword: &'static str| {
            let is_listed = own(node).is_some() || documents.member(node, "patternProperties").is_some();
            let value = documents.member(node, keyword)?;
            (is_false(value) && !is_listed).then_some((value, Some(keyword)))
        };
        let found = |keyword: &'static str| nodes.iter().find_map(|&node| forbids(node, keyword));
        ["additionalProperties", "unevaluatedProperties"].into_iter().find_map(found)
    }

    /// The schemas that hold for all values of a formula, in order.
    fn schemas_in_all(&self, id: FormulaId) -> Vec<NodeId> {
        let (mut nodes, mut open) = (Vec::new(), vec![id]);
        while let Some(id) = open.pop() {
            match self.formulas.get(id) {
                &Formula::Schema { node, scope, negated: false }
                    if nodes.len() < MOST_NAMED && !nodes.contains(&node) =>
                {
                    nodes.push(node);
                    open.extend(self.read.get(&(node, scope)));
                }
                Formula::And(parts) => open.extend(parts.iter().rev()),
                _ => {}
            }
        }
        nodes
    }

    /// The schemas in a formula, in order.
    fn schemas_of(&mut self, id: FormulaId, nodes: &mut Vec<NodeId>) {
        let mut open = vec![id];
        while let Some(id) = open.pop() {
            match self.formulas.get(id).clone() {
                Formula::Schema { node, scope, .. } => {
                    if nodes.len() < MOST_NAMED && !nodes.contains(&node) {
                        nodes.push(node);
                        if let Some(&meaning) = self.read.get(&(node, scope)) {
                            open.push(meaning);
                        }
                    }
                }
                Formula::Value { node, .. } => {
                    if nodes.len() < MOST_NAMED && !nodes.contains(&node) {
                        nodes.push(node);
                    }
                }
                Formula::And(parts) | Formula::Or(parts) | Formula::One { of: parts, .. } => {
                    open.extend(parts.iter().rev());
                }
                Formula::Any | Formula::Never | Formula::Leaf { .. } => {}
            }
        }
    }
}

// The rules that have a text are the least fixpoint of "an alternative has a text if all of its parts have
// one".

/// True if a list in any order has a text, given which expressions have one.
fn may_come(of: &AnyOrder, has: impl Fn(&ExprId) -> bool) -> bool {
    OrderRules::new(of, |part| has(&of.parts[part].expr), has(&of.separator)).has_list()
}

/// True if the start rule has a text. A worklist of expressions whose parts have changed; linear in the
/// grammar but for long sequences, which are looked at once for each part.
///
/// First each expression learns its parents, then every expression is looked at once, and again whenever a
/// part of it is found to have a text.
pub(super) fn has_text(grammar: &Grammar) -> bool {
    let mut exprs = vec![false; grammar.exprs().len()];
    let mut rules = vec![false; grammar.rules().len()];
    let mut users: Vec<Vec<ExprId>> = vec![Vec::new(); rules.len()];
    let mut parents: Vec<Vec<ExprId>> = vec![Vec::new(); exprs.len()];
    let mut open = Vec::new();
    for (id, expr) in grammar.exprs() {
        match expr {
            Expr::Rule(rule) => users[rule.index()].push(id),
            Expr::Sequence(parts) | Expr::Alternatives(parts) => {
                parts.iter().for_each(|part| parents[part.index()].push(id));
            }
            Expr::Repeat { part, .. } => parents[part.index()].push(id),
            Expr::AnyOrder(parts) => parts.exprs().for_each(|part| parents[part.index()].push(id)),
            Expr::Pattern(_) => {}
        }
        open.push(id);
    }
    let mut bodies: Vec<Vec<usize>> = vec![Vec::new(); exprs.len()];
    for rule in grammar.rules() {
        bodies[grammar.rule_body(rule).index()].push(rule.index());
    }
    // Lists in any order wait until all else is known, since each test of one is a search.
    let (mut lists, mut waits) = (Vec::new(), vec![false; exprs.len()]);
    let is_list = |id: ExprId| matches!(grammar.expr(id), Expr::AnyOrder(_));
    loop {
        let id = match open.pop() {
            Some(id) if is_list(id) => {
                if !std::mem::replace(&mut waits[id.index()], true) {
                    lists.push(id);
                }
                continue;
            }
            Some(id) => id,
            None => match lists.pop() {
                Some(id) => id,
                None => break,
            },
        };
        waits[id.index()] = false;
        if exprs[id.index()] {
            continue;
        }
        let has = |part: &ExprId| exprs[part.index()];
        let holds = match grammar.expr(id) {
            Expr::Rule(rule) => rules[rule.index()],
            Expr::Sequence(parts) => parts.iter().all(has),
            Expr::Alternatives(parts) => parts.iter().any(has),
            Expr::Repeat { part, min, .. } => *min == 0 || has(part),
            Expr::AnyOrder(parts) => may_come(parts, has),
            Expr::Pattern(_) => true,
        };
        if !holds {
            continue;
        }
        exprs[id.index()] = true;
        open.extend(&parents[id.index()]);
        for &rule in &bodies[id.index()] {
            if !std::mem::replace(&mut rules[rule], true) {
                open.extend(&users[rule]);
            }
        }
    }
    rules[grammar.root().index()]
}

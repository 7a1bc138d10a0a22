//! Objects under conditions, as lists with a decision diagram over their members.
//!
//! The condition is taken apart member by member (Shannon expansion): which class of values the member has,
//! or that it is absent, replaces what the condition says of it. What is left is a state; equal conditions
//! have equal ids, so independent conditions stay a product and the states are few. The diagram is then
//! reduced from its ends.

use std::rc::Rc;

use hashbrown::{HashMap, HashSet};

use super::{
    SchemaEmitter,
    plan::{MOST_KEYS, MOST_LISTED, MemberAlternative},
    space::Punctuation,
};
use crate::{
    grammar::{
        any_order::{AnyOrder, AnyOrderPart},
        decisions::{DecisionDiagram, DecisionNode, ListEnd},
        json_schema::{
            StringSet,
            algebra::{
                Algebra, ConditionId, FormulaId, Formulas, Keys, KeysId, ObjectShape, Statement, ValueClass,
            },
            error::Checked,
            options::{DuplicateKeys, Order},
        },
    },
    ids::{ExprId, as_index, saturating_u32},
};

/// Limit on what an object notes of the members under keys of kinds: the marks of a list.
const MOST_MARKS: usize = 8;

/// A member under a name.
#[derive(Debug)]
pub(super) struct DecidedMember {
    pub(super) key: Rc<str>,
    /// The sets of values that statements speak of.
    pub(super) sets: Vec<FormulaId>,
    pub(super) classes: Vec<ValueClass>,
}

/// Members under the keys of a language.
#[derive(Debug)]
pub(super) struct DecidedRegion {
    keys: Rc<StringSet>,
    /// The values that its members may have, each with the marks that they leave.
    ways: Vec<(FormulaId, u8)>,
}

/// A mark says that some member has a key that these statements speak of and a value outside of the set.
type LeftMark = (FormulaId, Vec<KeysId>);

/// An object that is ready to be written.
#[derive(Debug)]
pub(in super::super) struct DecidedObject {
    pub(super) members: Vec<DecidedMember>,
    pub(super) regions: Vec<DecidedRegion>,
    /// The values of each part that a name has; their numbers are those of the diagram.
    pub(super) parts: Vec<(u32, FormulaId)>,
    pub(super) diagram: DecisionDiagram,
    /// True if the object without members is among them.
    may_be_empty: bool,
}

impl SchemaEmitter<'_, '_> {
    /// The objects of a shape with a condition.
    pub(super) fn decided_object(&mut self, shape: &Rc<ObjectShape>, level: u32) -> Checked<ExprId> {
        let object = self.algebra.decided_object(shape)?;
        self.note_keys(object.regions.iter().map(|region| &region.keys));
        let frame = self.object_frame(level);
        let mut parts = Vec::new();
        for &(name, value) in &object.parts {
            let key = self.key(&object.members[as_index(name)].key)?;
            let (expr, _) = self.member(key, MemberAlternative { value, found: 0 }, level)?;
            parts.push(AnyOrderPart { expr, name: Some(name), marks: 0 });
        }
        for region in &object.regions {
            let key = self.string_set(&region.keys)?;
            self.key_sets.insert(Rc::as_ptr(&region.keys));
            for &(value, marks) in &region.ways {
                let (expr, _) = self.member(key, MemberAlternative { value, found: 0 }, level)?;
                parts.push(AnyOrderPart { expr, name: None, marks });
            }
        }
        let mut ways = Vec::new();
        if object.may_be_empty {
            ways.push(self.mark(frame.empty, frame.level)?);
        }
        if !parts.is_empty() {
            let separator = self.mark(Punctuation::Comma, frame.level)?;
            let mut all = AnyOrder::new(Vec::new(), Vec::new(), separator);
            (all.parts, all.required) = (parts, vec![false; object.members.len()]);
            all.decisions = Some(Box::new(object.diagram.clone()));
            let all = self.list_of(all)?;
            let (open, close) = (self.mark(frame.open, level)?, self.mark(frame.close, level)?);
            ways.push(self.sequence(vec![open, all, close])?);
        }
        self.alternatives(ways)
    }
}

impl Algebra<'_> {
    /// Turns an object shape with a condition into members and a diagram. Memoised by the shape's address,
    /// which the memory keeps alive.
    pub(in super::super) fn decided_object(&mut self, shape: &Rc<ObjectShape>) -> Checked<Rc<DecidedObject>> {
        if let Some((_, known)) = self.diagrams.get(&Rc::as_ptr(shape)) {
            return Ok(known.clone());
        }
        let made = Rc::new(self.decided_new(shape)?);
        self.diagrams.insert(Rc::as_ptr(shape), (shape.clone(), made.clone()));
        Ok(made)
    }

    fn decided_new(&mut self, shape: &ObjectShape) -> Checked<DecidedObject> {
        let mut whole = self.condition_of_shape(shape)?;
        let statements = self.conditions.statements(whole);
        let names = self.names_of(shape, &statements);
        let ordered = if self.options.order == Order::Schema { names.len() } else { 0 };
        let mut members: Vec<DecidedMember> = Vec::new();
        for key in names.iter().cloned() {
            members.push(self.decided_member(key, &statements)?);
        }
        let kinds = self.key_kinds(shape, &statements, names)?;
        let (mut regions, mut marks, mut others) = (Vec::new(), Vec::<LeftMark>::new(), Some(0));
        for (keys, inside) in kinds {
            let count = match self.options.duplicate_keys {
                DuplicateKeys::Refuse => keys.count(MOST_KEYS),
                DuplicateKeys::Allow => None,
            };
            let few = count.filter(|&count| count <= MOST_LISTED);
            if let Some(listed) = few.and_then(|count| keys.as_finite(count)) {
                for key in listed {
                    members.push(self.decided_member(key.into(), &statements)?);
                }
                continue;
            }
            others = others.zip(count).map(|(others, count)| others + count);
            let said: Vec<(KeysId, FormulaId)> =
                statements.iter().filter_map(every).filter(|&(set, _)| self.covers(set, &inside)).collect();
            let region = self.decided_region(whole, keys, &said, &mut marks)?;
            regions.extend((!region.ways.is_empty()).then_some(region));
        }
        if let (Some(others), false) = (others, regions.is_empty()) {
            // When all keys have come there is no comma that leads on.
            let most = self.conditions.says(Statement::AtLeast((members.len() + others + 1) as u64)).not();
            whole = self.conditions.all([whole, most]);
        }
        let levels = levels(&members, &self.clauses(whole));
        let diagram = self.expanded(whole, &members, (&levels, &marks))?;
        let ordered = u32::try_from(ordered).unwrap_or(0);
        self.reduced(diagram, members, regions, ordered)
    }

    /// The keys that have a name: declared, required, spoken of, or left out of the sets of other keys.
    fn names_of(&self, shape: &ObjectShape, statements: &[Statement]) -> Vec<Rc<str>> {
        let (mut names, mut known) = (Vec::new(), HashSet::new());
        let mut add = |name: &Rc<str>| {
            if known.insert(name.clone()) {
                names.push(name.clone());
            }
        };
        shape.properties.iter().for_each(|(name, _)| add(name));
        shape.required.iter().for_each(&mut add);
        for statement in statements {
            match statement {
                Statement::Value(name, _) | Statement::Present(name) => add(name),
                Statement::Every(keys, _) => match self.keys.get(*keys) {
                    Keys::Rest { names, .. } => names.iter().for_each(&mut add),
                    Keys::Strings(_) => {}
                },
                Statement::AtLeast(_) => {}
            }
        }
        names
    }

    fn decided_member(&mut self, key: Rc<str>, statements: &[Statement]) -> Checked<DecidedMember> {
        let mut sets: Vec<FormulaId> = Vec::new();
        self.spend(statements.len())?;
        for statement in statements {
            let set = match *statement {
                Statement::Value(ref name, set) if *name == key => set,
                Statement::Every(keys, set) if !sets.contains(&set) && self.keys.contains(keys, &key) => set,
                _ => continue,
            };
            if set != Formulas::NEVER && !sets.contains(&set) {
                sets.push(set);
            }
        }
        let classes = self.classes(&sets)?;
        Ok(DecidedMember { key, sets, classes })
    }

    /// The languages of the keys without a name, and in which languages of the schema each lies.
    fn key_kinds(
        &mut self,
        shape: &ObjectShape,
        statements: &[Statement],
        names: Vec<Rc<str>>,
    ) -> Checked<Vec<(Rc<StringSet>, Vec<KeysId>)>> {
        let sets: Vec<KeysId> = statements.iter().filter_map(every).map(|(keys, _)| keys).collect();
        let mut kinds = self.key_languages(&sets, names.into_iter().collect())?;
        // A closed object has only the members that the schema mentions.
        if self.options.is_closed() && shape.is_closed() {
            kinds
                .retain(|(_, inside)| !inside.is_empty() || sets.iter().any(|&set| self.covers(set, inside)));
        }
        Ok(kinds)
    }

    /// The values of the members of a region. What the whole condition says of all of them in any case is
    /// kept at once; the rest leaves marks.
    fn decided_region(
        &mut self,
        whole: ConditionId,
        keys: Rc<StringSet>,
        said: &[(KeysId, FormulaId)],
        marks: &mut Vec<LeftMark>,
    ) -> Checked<DecidedRegion> {
        let always = self.conditions.parts(whole);
        let (mut base, mut sets) = (Vec::new(), Vec::<FormulaId>::new());
        for &(set, value) in said {
            let says = self.conditions.says(Statement::Every(set, value));
            if always.contains(&says) {
                base.push(value);
            } else if !sets.contains(&value) {
                sets.push(value);
            }
        }
        let base = self.formulas.and(base);
        let asked: Vec<FormulaId> = sets.iter().copied().filter(|&set| set != Formulas::NEVER).collect();
        let mut ways = Vec::new();
        for class in self.classes(&asked)? {
            let value = self.formulas.and([base, class.value]);
            if value == Formulas::NEVER {
                continue;
            }
            let mut found = 0_u8;
            for &set in &sets {
                let at = asked.iter().position(|&asked| asked == set);
                if at.is_some_and(|at| class.inside[at]) {
                    continue;
                }
                let of: Vec<KeysId> =
                    said.iter().filter(|&&(_, value)| value == set).map(|&(keys, _)| keys).collect();
                let mark = (set, of);
                let bit = marks.iter().position(|known| *known == mark).unwrap_or_else(|| {
                    marks.push(mark);
                    marks.len() - 1
                });
                if bit >= MOST_MARKS {
                    return Err(self.too_large(&format!(
                        "more than {MOST_MARKS} conditions on members under keys of some kind"
                    )));
                }
                found |= 1 << bit;
            }
            ways.push((value, found));
        }
        Ok(DecidedRegion { keys, ways })
    }

    /// The names that each clause of a condition speaks of.
    fn clauses(&self, whole: ConditionId) -> Vec<Vec<Rc<str>>> {
        let names = |part: ConditionId| {
            let mut names = Vec::new();
            for statement in self.conditions.statements(part) {
                if let Statement::Value(name, _) | Statement::Present(name) = statement
                    && !names.contains(&name)
                {
                    names.push(name);
                }
            }
            names
        };
        self.conditions.clauses(whole).into_iter().map(names).collect()
    }

    /// The values of some classes, as a set of the schema where there is one.
    fn value_of_classes(&mut self, member: &DecidedMember, ways: &[usize]) -> FormulaId {
        let is_one = |at: usize| ways.contains(&(at + 1));
        if ways.len() == member.classes.len() {
            return Formulas::ANY;
        }
        for (set, &value) in member.sets.iter().enumerate() {
            let agrees = |inside: bool| {
                let mut classes = member.classes.iter().enumerate();
                classes.all(|(at, class)| (class.inside[set] == inside) == is_one(at))
            };
            if agrees(true) {
                return self.conditions.called(value);
            }
            if agrees(false) {
                let value = self.conditions.called(value);
                return self.formulas.not(value);
            }
        }
        self.formulas.or(ways.iter().map(|&way| member.classes[way - 1].value))
    }
}

impl DecidedMember {
    pub(super) fn is_inside(&self, class: &ValueClass, set: FormulaId) -> bool {
        set == Formulas::ANY
            || self.sets.iter().position(|&known| known == set).is_some_and(|at| class.inside[at])
    }
}

/// A statement about the members under some keys.
fn every(statement: &Statement) -> Option<(KeysId, FormulaId)> {
    match *statement {
        Statement::Every(keys, value) => Some((keys, value)),
        _ => None,
    }
}

/// The order in which members are asked for. Those that many clauses speak of come first, as they decide the
/// others; then clause by clause, so that few are open at once.
fn levels(members: &[DecidedMember], clauses: &[Vec<Rc<str>>]) -> Vec<usize> {
    let mut counts: HashMap<&Rc<str>, usize> = HashMap::new();
    clauses.iter().flatten().for_each(|name| *counts.entry(name).or_insert(0) += 1);
    let often = (clauses.len() / 2).max(2);
    let mut shared: Vec<(&Rc<str>, usize)> = clauses
        .iter()
        .flatten()
        .map(|name| (name, counts[name]))
        .filter(|&(_, count)| count > often)
        .collect();
    shared.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    let places: HashMap<&Rc<str>, usize> =
        members.iter().enumerate().map(|(place, member)| (&member.key, place)).collect();
    let mut seen = HashSet::new();
    let named = shared.into_iter().map(|(name, _)| name).chain(clauses.iter().flatten());
    let named = named.filter_map(|name| places.get(name).copied());
    named.chain(0..members.len()).filter(|&place| seen.insert(place)).collect()
}

/// Limit on the edges of one diagram before it is reduced, and on nodes times counts after that. A text that
/// stands before a member looks at each edge about once.
const MOST_EDGES: usize = 200_000;

impl Algebra<'_> {
    /// Expands a condition member by member, in the order of `levels`.
    fn expanded(
        &mut self,
        whole: ConditionId,
        members: &[DecidedMember],
        (levels, marks): (&[usize], &[LeftMark]),
    ) -> Checked<Expanded> {
        let mut made = Expanded { nodes: Vec::new(), levels: levels.to_vec(), ends: Vec::new() };
        let (mut states, mut edges) = (vec![whole], 0);
        for &name in levels {
            let member = &members[name];
            let (mut next, mut places) = (Vec::new(), HashMap::new());
            let mut nodes: Vec<Vec<usize>> = vec![Vec::new(); states.len()];
            for way in 0..=member.classes.len() {
                let class = way.checked_sub(1).map(|way| &member.classes[way]);
                let keys = &self.keys;
                let decide = |statement: &Statement| match (statement, class) {
                    (Statement::Value(name, _), None) if *name == member.key => Some(true),
                    (Statement::Present(name), class) if *name == member.key => Some(class.is_some()),
                    (Statement::Value(name, set), Some(class)) if *name == member.key => {
                        Some(member.is_inside(class, *set))
                    }
                    (Statement::Every(set, of), Some(class))
                        if !member.is_inside(class, *of) && keys.contains(*set, &member.key) =>
                    {
                        Some(false)
                    }
                    _ => None,
                };
                let (mut known, mut looked) = (HashMap::new(), 0);
                for (state, node) in states.iter().zip(&mut nodes) {
                    let to = self.conditions.resolved(*state, &decide, &mut known, &mut looked);
                    let place = *places.entry(to).or_insert_with(|| {
                        next.push(to);
                        next.len() - 1
                    });
                    node.push(place);
                }
                self.spend(looked)?;
            }
            edges += states.len() * (member.classes.len() + 1);
            if edges > MOST_EDGES {
                return Err(self.too_large("the schema's conditions make too many states of an object"));
            }
            made.nodes.push(nodes);
            states = next;
        }
        for state in states {
            let end = self.end(state, marks)?;
            made.ends.push(end);
        }
        Ok(made)
    }

    /// The ways in which an object may end with a condition on its marks and the number of its members.
    fn end(&mut self, state: ConditionId, marks: &[LeftMark]) -> Checked<Vec<ListEnd>> {
        if state == ConditionId::NEVER {
            return Ok(Vec::new());
        }
        let statements = self.conditions.statements(state);
        let mut counts: Vec<u64> = vec![0];
        counts.extend(statements.into_iter().filter_map(|statement| match statement {
            Statement::AtLeast(count) => Some(count),
            _ => None,
        }));
        counts.sort_unstable();
        counts.dedup();
        let mut ways = Vec::new();
        for found in (0..=u8::MAX).take(1 << marks.len()) {
            for (at, &min) in counts.iter().enumerate() {
                let decide = |statement: &Statement| match statement {
                    Statement::AtLeast(count) => Some(min >= *count),
                    Statement::Every(keys, set) => {
                        let breaks = |(bit, mark): (usize, &LeftMark)| {
                            found >> bit & 1 == 1 && mark.0 == *set && mark.1.contains(keys)
                        };
                        Some(!marks.iter().enumerate().any(breaks))
                    }
                    Statement::Value(..) | Statement::Present(_) => None,
                };
                let (mut known, mut looked) = (HashMap::new(), 1);
                let held = self.conditions.resolved(state, &decide, &mut known, &mut looked);
                self.spend(looked)?;
                if held == ConditionId::ALWAYS {
                    let max = counts.get(at + 1).map(|next| next - 1);
                    ways.push(ListEnd { marks: found, min, max });
                }
            }
        }
        Ok(ways)
    }

    /// Reduces a diagram from its ends: nodes with equal edges become one, and classes of values that no node
    /// tells apart become one part.
    fn reduced(
        &mut self,
        made: Expanded,
        members: Vec<DecidedMember>,
        regions: Vec<DecidedRegion>,
        ordered: u32,
    ) -> Checked<DecidedObject> {
        let mut built = Built::default();
        let mut below: Vec<Option<usize>> = made.ends.iter().map(|ways| built.end(ways)).collect();
        let mut empty: Vec<bool> =
            made.ends.iter().map(|ways| ways.iter().any(|end| end.marks == 0 && end.min == 0)).collect();
        for (nodes, &name) in made.nodes.iter().zip(&made.levels).rev() {
            empty = nodes.iter().map(|node| empty[node[0]]).collect();
            // The places that each way leads to, node by node.
            let ways = 0..=members[name].classes.len();
            let leads: Vec<Vec<Option<usize>>> =
                ways.map(|way| nodes.iter().map(|node| below[node[way]]).collect()).collect();
            let (mut kinds, mut known) = (Vec::<Vec<usize>>::new(), HashMap::new());
            for (way, to) in leads.iter().enumerate().skip(1) {
                if to.iter().all(Option::is_none) {
                    continue;
                }
                let kind = *known.entry(to).or_insert_with(|| {
                    kinds.push(Vec::new());
                    kinds.len() - 1
                });
                kinds[kind].push(way);
            }
            let first = built.parts.len();
            for kind in &kinds {
                let value = self.value_of_classes(&members[name], kind);
                built.parts.push((name, value));
            }
            let node = |index: usize| {
                let parts = kinds.iter().enumerate();
                let parts = parts.filter_map(|(at, kind)| Some((first + at, leads[kind[0]][index]?)));
                (name, leads[0][index], parts.collect::<Vec<_>>())
            };
            below = (0..nodes.len()).map(|index| built.node(node(index))).collect();
        }
        let (diagram, parts) = built.finish(below.first().copied().flatten(), ordered);
        let told_apart = diagram.ends.iter().flatten().map(|end| end.min).max().unwrap_or(0);
        if told_apart.saturating_mul(diagram.nodes.len() as u64) > MOST_EDGES as u64 {
            return Err(self.too_large("conditions and counts make too many states of an object"));
        }
        let may_be_empty = empty.first().copied().unwrap_or(false);
        Ok(DecidedObject { members, regions, parts, diagram, may_be_empty })
    }
}

/// A diagram before it is reduced: for each level, each state's places of the next level, by the way that the
/// member goes: absent first, then its classes.
struct Expanded {
    levels: Vec<usize>,
    nodes: Vec<Vec<Vec<usize>>>,
    ends: Vec<Vec<ListEnd>>,
}

/// A reduced diagram, from its ends on; places are counted from there.
#[derive(Default)]
struct Built {
    places: Vec<DiagramPlace>,
    known: HashMap<DiagramPlace, usize>,
    /// The name and the value of each part.
    parts: Vec<(usize, FormulaId)>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum DiagramPlace {
    End(Vec<ListEnd>),
    Node(usize, Option<usize>, Vec<(usize, usize)>),
}

impl Built {
    fn place(&mut self, place: DiagramPlace) -> usize {
        let places = &mut self.places;
        *self.known.entry(place).or_insert_with_key(|place| {
            places.push(place.clone());
            places.len() - 1
        })
    }

    fn end(&mut self, ways: &[ListEnd]) -> Option<usize> {
        (!ways.is_empty()).then(|| self.place(DiagramPlace::End(ways.to_vec())))
    }

    fn node(&mut self, (name, absent, parts): (usize, Option<usize>, Vec<(usize, usize)>)) -> Option<usize> {
        (absent.is_some() || !parts.is_empty()).then(|| self.place(DiagramPlace::Node(name, absent, parts)))
    }

    /// Numbers the places that the start leads to: nodes from the start on, then ends. Returns also the parts
    /// that they ask for.
    fn finish(self, start: Option<usize>, ordered: u32) -> (DecisionDiagram, Vec<(u32, FormulaId)>) {
        let mut used = vec![false; self.places.len()];
        start.into_iter().for_each(|start| used[start] = true);
        let mut asked = vec![false; self.parts.len()];
        // Places come after those that they lead to.
        for (place, what) in self.places.iter().enumerate().rev() {
            let DiagramPlace::Node(_, absent, parts) = what else { continue };
            if !used[place] {
                continue;
            }
            absent.iter().for_each(|&to| used[to] = true);
            for &(part, to) in parts {
                (asked[part], used[to]) = (true, true);
            }
        }
        let is_node = |place: &usize| matches!(self.places[*place], DiagramPlace::Node(..));
        let all = || (0..self.places.len()).rev().filter(|&place| used[place]);
        let order = all().filter(is_node).chain(all().filter(|place| !is_node(place)));
        let numbers: HashMap<usize, u32> = order.clone().zip(0..).collect();
        let parts: Vec<usize> = (0..asked.len()).filter(|&part| asked[part]).collect();
        let part_numbers: HashMap<usize, u32> = parts.iter().copied().zip(0..).collect();
        let (mut nodes, mut ends) = (Vec::new(), Vec::new());
        for place in order {
            match &self.places[place] {
                DiagramPlace::End(ways) => ends.push(ways.clone()),
                DiagramPlace::Node(name, absent, parts) => nodes.push(DecisionNode {
                    name: saturating_u32(*name),
                    absent: absent.map(|to| numbers[&to]),
                    parts: parts.iter().map(|(part, to)| (part_numbers[part], numbers[to])).collect(),
                }),
            }
        }
        let named = parts.into_iter().map(|part| (saturating_u32(self.parts[part].0), self.parts[part].1));
        (DecisionDiagram::new(nodes, ends, ordered), named.collect())
    }
}

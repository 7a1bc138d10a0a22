//! Conditions -> decision diagrams.

use hashbrown::HashMap;

use super::decided::{DecidedMember, DecidedObject, DecidedRegion, LeftMark};
use crate::{
    grammar::{
        decisions::{DecisionDiagram, DecisionNode, ListEnd},
        json_schema::{
            algebra::{Algebra, ConditionId, FormulaId, Statement},
            error::Checked,
        },
    },
    ids::saturating_u32,
};

/// Limit on the edges of one diagram before it is reduced, and on nodes times counts after that. A text that
/// stands before a member looks at each edge about once.
const MOST_EDGES: usize = 200_000;

impl Algebra<'_> {
    /// Expands a condition member by member, in the order of `levels`.
    pub(super) fn expanded(
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
    pub(super) fn reduced(
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
pub(super) struct Expanded {
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

//! Objects: members in order, then those under other keys.

use super::{
    Emitter,
    plan::{Plan, Region, Way},
    space::Mark,
    states::{Automaton, Frame, State, Steps},
};
use crate::{
    grammar::json_schema::{
        algebra::{Formulas, ObjectShape},
        error::{Checked, Problem},
        options::Order,
    },
    ids::ExprId,
};

/// Members of an object whose orders are written out one by one.
const MOST_PERMUTED: usize = 8;

/// An object being written.
struct Members {
    plan: Plan,
    /// The expressions of each member's ways, once they are wanted.
    named: Vec<Option<Vec<(ExprId, u64)>>>,
    /// Those of all other members.
    others: Option<Vec<(ExprId, u64)>>,
    any_order: bool,
    level: u32,
}

impl Emitter<'_, '_> {
    /// The objects of a shape.
    pub(super) fn object(&mut self, shape: &ObjectShape, level: u32, name: &str) -> Checked<ExprId> {
        if shape.max.is_some_and(|max| max < shape.min) {
            return self.alternatives(Vec::new());
        }
        let plan = self.algebra.plan(shape)?;
        let free = plan.members.len() > 1 || !plan.members.is_empty() && !plan.regions.is_empty();
        let any_order = self.algebra.options.order == Order::Any && free;
        if any_order && plan.members.len() > MOST_PERMUTED {
            let reason = format!("more than {MOST_PERMUTED} members in any order are not supported");
            return Err(Problem::unsupported(self.node, "properties", reason)
                .with_hint("ask for the order of the schema: `--order schema`"));
        }
        let named = plan.members.iter().map(|_| None).collect();
        let mut members = Members { plan, named, others: None, any_order, level };
        self.list(&mut members, Frame::object(level), name)
    }

    /// Key, colon and value.
    fn member(&mut self, key: ExprId, way: Way, level: u32) -> Checked<(ExprId, u64)> {
        let colon = self.mark(Mark::Colon, level)?;
        let value = self.value(way.value, level + 1)?;
        Ok((self.sequence(vec![key, colon, value])?, way.found))
    }

    fn region(&mut self, region: &Region, level: u32) -> Checked<Vec<(ExprId, u64)>> {
        let key = self.string_set(&region.keys)?;
        region.ways.iter().map(|&way| self.member(key, way, level)).collect()
    }
}

impl Members {
    fn is_used(&self, state: State, index: usize) -> bool {
        if self.any_order {
            state.used >> index & 1 == 1
        } else {
            index < usize::try_from(state.used).unwrap_or(0)
        }
    }

    fn may_end(&self, state: State) -> bool {
        let complete = self
            .plan
            .members
            .iter()
            .enumerate()
            .all(|(index, member)| !member.required || self.is_used(state, index));
        complete && state.found == self.plan.wanted && state.count >= self.plan.min
    }

    /// The state after one more member.
    fn counted(&self, mut state: State, found: u64) -> State {
        let enough = self.plan.max.unwrap_or(self.plan.min);
        state.count = (state.count + 1).min(enough);
        state.found |= found;
        state
    }

    fn named(&mut self, emitter: &mut Emitter<'_, '_>, index: usize) -> Checked<Vec<(ExprId, u64)>> {
        if let Some(known) = &self.named[index] {
            return Ok(known.clone());
        }
        let member = &self.plan.members[index];
        let key = emitter.key(&member.key)?;
        let ways = member.ways.iter().filter(|way| way.value != Formulas::NEVER);
        let ways: Vec<_> = ways.map(|&way| emitter.member(key, way, self.level)).collect::<Checked<_>>()?;
        self.named[index] = Some(ways.clone());
        Ok(ways)
    }

    fn others(&mut self, emitter: &mut Emitter<'_, '_>) -> Checked<Vec<(ExprId, u64)>> {
        if let Some(known) = &self.others {
            return Ok(known.clone());
        }
        let mut others = Vec::new();
        for region in &self.plan.regions {
            others.extend(emitter.region(region, self.level)?);
        }
        self.others = Some(others.clone());
        Ok(others)
    }
}

impl Automaton for Members {
    fn steps(&mut self, emitter: &mut Emitter<'_, '_>, state: State) -> Checked<Steps> {
        let mut steps = Steps { end: self.may_end(state), ..Steps::default() };
        if self.plan.max.is_some_and(|max| state.count >= max) {
            return Ok(steps);
        }
        let count = self.plan.members.len();
        let at = usize::try_from(state.used).unwrap_or(count);
        if !self.any_order && at < count {
            let required = self.plan.members[at].required;
            let passed = State { used: state.used + 1, ..state };
            for (part, found) in self.named(emitter, at)? {
                steps.parts.push((part, self.counted(passed, found)));
            }
            steps.skip = (!required).then_some(passed);
            return Ok(steps);
        }
        if self.any_order {
            for index in (0..count).filter(|&index| !self.is_used(state, index)).collect::<Vec<_>>() {
                let passed = State { used: state.used | 1 << index, ..state };
                for (part, found) in self.named(emitter, index)? {
                    steps.parts.push((part, self.counted(passed, found)));
                }
            }
        }
        let others = self.others(emitter)?;
        if others.is_empty() {
            return Ok(steps);
        }
        if !self.any_order && state.found == self.plan.wanted {
            let plain: Vec<ExprId> = others.iter().map(|&(part, _)| part).collect();
            let part = emitter.alternatives(plain)?;
            let min = self.plan.min.saturating_sub(state.count);
            steps.tail = Some((part, min, self.plan.max.map(|max| max - state.count)));
            return Ok(steps);
        }
        for (part, found) in others {
            steps.parts.push((part, self.counted(state, found)));
        }
        Ok(steps)
    }
}

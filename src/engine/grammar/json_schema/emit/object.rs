//! Objects: members in order, then members under other keys.

use std::rc::Rc;

use super::{
    SchemaEmitter,
    plan::{MOST_SOME, MemberAlternative, ObjectPlan, Region},
    space::Punctuation,
    states::{ListAutomaton, ListFrame, ListState, ListSteps},
};
use crate::{
    grammar::{
        DistinctKeys,
        any_order::{AnyOrder, AnyOrderPart},
        json_schema::{
            StringSet, ValueSpelling, ValueStyle,
            algebra::{Formulas, ObjectShape},
            error::Checked,
            leaf::LeafError,
            options::{DuplicateKeys, Order},
        },
    },
    ids::ExprId,
};

/// An object that is being written.
struct Members {
    plan: ObjectPlan,
    /// The expressions of each named member's alternatives, made on first use.
    named: Vec<Option<Vec<(ExprId, u64)>>>,
    /// The expressions of all other members.
    others: Option<Vec<(ExprId, u64)>>,
    level: u32,
}

/// Turns the alternatives of a member, each with the bits of the wanted members that it is, into parts of a
/// list in any order.
fn parts_of(ways: Vec<(ExprId, u64)>, name: Option<u32>) -> Result<Vec<AnyOrderPart>, LeafError> {
    let part = |(expr, found)| marks(found).map(|marks| AnyOrderPart { expr, name, marks });
    ways.into_iter().map(part).collect()
}

/// The bits of wanted members as the marks of a list in any order, which has [`MOST_SOME`].
fn marks(found: u64) -> Result<u8, LeafError> {
    let what = "members of an object that are wanted under keys of some kind";
    u8::try_from(found).map_err(|_| LeafError::Budget { what, limit: MOST_SOME })
}

impl SchemaEmitter<'_, '_> {
    /// The objects of a shape.
    pub(super) fn object(&mut self, shape: &Rc<ObjectShape>, level: u32, name: &str) -> Checked<ExprId> {
        if shape.condition.is_some() {
            return self.decided_object(shape, level);
        }
        if shape.max.is_some_and(|max| max < shape.min) {
            return self.alternatives(Vec::new());
        }
        let plan = self.algebra.plan(shape)?;
        if plan.max.is_some_and(|max| max < plan.min) {
            // There are fewer keys than required members.
            return self.alternatives(Vec::new());
        }
        let others = plan.regions.len() + plan.listed.len();
        let free = plan.members.len() + others > 1 && plan.members.len() + plan.listed.len() > 0;
        self.note_keys(plan.regions.iter().map(|region| &region.keys));
        if !shape.properties.is_empty() {
            self.note_open(&plan);
        }
        let any_order = self.algebra.options.order == Order::Any && free;
        let named = plan.members.iter().chain(&plan.listed).map(|_| None).collect();
        let mut members = Members { plan, named, others: None, level };
        let frame = self.object_frame(level);
        if any_order { self.any_order(&mut members, frame) } else { self.list(&mut members, frame, name) }
    }

    /// Writes objects with their members in any order.
    fn any_order(&mut self, members: &mut Members, frame: ListFrame) -> Checked<ExprId> {
        let mut parts = Vec::new();
        for (name, index) in (0_u32..).zip(0..members.named.len()) {
            let ways = members.named(self, index)?;
            parts.extend(self.algebra.fitting(parts_of(ways, Some(name)))?);
        }
        let others = members.others(self)?;
        parts.extend(self.algebra.fitting(parts_of(others, None))?);
        let plan = &members.plan;
        let mut ways = Vec::new();
        if members.may_end(ListState::default()) {
            ways.push(self.mark(frame.empty, frame.level)?);
        }
        if !parts.is_empty() {
            let required = plan.members.iter().chain(&plan.listed).map(|member| member.required).collect();
            let (wanted, min, max) = (plan.wanted, plan.min, plan.max);
            let separator = self.mark(Punctuation::Comma, frame.level)?;
            let mut all = AnyOrder::new(Vec::new(), Vec::new(), separator);
            (all.parts, all.required, all.min, all.max) = (parts, required, min, max);
            all.marks = self.algebra.fitting(marks(wanted))?;
            let all = self.list_of(all)?;
            let open = self.mark(frame.open, frame.level)?;
            let close = self.mark(frame.close, frame.level)?;
            ways.push(self.sequence(vec![open, all, close])?);
        }
        self.alternatives(ways)
    }

    /// Notes that no key may come twice, if the grammar does not say so itself.
    pub(super) fn note_keys<'k>(&mut self, regions: impl Iterator<Item = &'k Rc<StringSet>>) {
        if self.algebra.options.duplicate_keys == DuplicateKeys::Refuse {
            for keys in regions {
                let rule = self
                    .distinct_keys
                    .get_or_insert(DistinctKeys { may_run_out: false, are_terminals: true });
                rule.may_run_out |= keys.may_run_out();
            }
        }
    }

    /// Notes that an object takes any value under further keys, unless the schema at work says so itself.
    fn note_open(&mut self, plan: &ObjectPlan) {
        let is_any = |region: &Region| region.ways.iter().any(|way| way.value == Formulas::ANY);
        let documents = &self.algebra.resolver.documents;
        let says = |keyword: &&str| documents.member(self.node, keyword).is_some();
        let is_said = ["additionalProperties", "unevaluatedProperties"].iter().any(says);
        if plan.regions.iter().any(is_any) && !is_said && documents.document(self.node) == 0 {
            self.open_objects.push(self.node);
        }
    }

    /// The brackets of objects.
    pub(super) fn object_frame(&self, level: u32) -> ListFrame {
        let [open, close, empty] = if self.in_call {
            [Punctuation::OpenCall, Punctuation::CloseCall, Punctuation::EmptyCall]
        } else {
            [Punctuation::OpenObject, Punctuation::CloseObject, Punctuation::EmptyObject]
        };
        ListFrame { open, close, empty, level, distinct: false }
    }

    /// Writes a member: key, colon and value.
    pub(super) fn member(
        &mut self,
        key: ExprId,
        way: MemberAlternative,
        level: u32,
    ) -> Checked<(ExprId, u64)> {
        let colon = if self.in_call { Punctuation::Equals } else { Punctuation::Colon };
        let colon = self.mark(colon, level)?;
        let value = self.value(way.value, level + 1)?;
        Ok((self.sequence(vec![key, colon, value])?, way.found))
    }

    fn region(&mut self, region: &Region, level: u32) -> Checked<Vec<(ExprId, u64)>> {
        let keys = match self.key_ends().map(|ends| format!(r"^$|[\s{}]", regex_syntax::escape(ends))) {
            Some(others) => Rc::new(self.algebra.fitting(region.keys.without(&others))?),
            None => region.keys.clone(),
        };
        let key = if self.in_call {
            let spelling = ValueSpelling { style: ValueStyle::Delimited(""), ..self.spelling };
            let common = self.algebra.automata.common;
            let names = keys.emit_with(common, &mut self.builder, spelling, self.span);
            let names = self.algebra.fitting(names)?;
            self.as_rule("names", names)?
        } else {
            self.key_sets.insert(Rc::as_ptr(&keys));
            self.string_set(&keys)?
        };
        region.ways.iter().map(|&way| self.member(key, way, level)).collect()
    }
}

impl Members {
    fn is_used(&self, state: ListState, index: usize) -> bool {
        index < usize::try_from(state.used).unwrap_or(0)
    }

    fn may_end(&self, state: ListState) -> bool {
        let complete = self
            .plan
            .members
            .iter()
            .enumerate()
            .all(|(index, member)| !member.required || self.is_used(state, index));
        complete && state.found == self.plan.wanted && state.count >= self.plan.min
    }

    /// The state after one more member.
    fn counted(&self, mut state: ListState, found: u64) -> ListState {
        let enough = self.plan.max.unwrap_or(self.plan.min);
        state.count = (state.count + 1).min(enough);
        state.found |= found;
        state
    }

    fn named(&mut self, emitter: &mut SchemaEmitter<'_, '_>, index: usize) -> Checked<Vec<(ExprId, u64)>> {
        if let Some(known) = &self.named[index] {
            return Ok(known.clone());
        }
        let members = self.plan.members.len();
        let member = match index.checked_sub(members) {
            Some(listed) => &self.plan.listed[listed],
            None => &self.plan.members[index],
        };
        let key = emitter.key(&member.key)?;
        let ways = member.ways.iter().filter(|way| way.value != Formulas::NEVER);
        let ways: Vec<_> = ways.map(|&way| emitter.member(key, way, self.level)).collect::<Checked<_>>()?;
        self.named[index] = Some(ways.clone());
        Ok(ways)
    }

    fn others(&mut self, emitter: &mut SchemaEmitter<'_, '_>) -> Checked<Vec<(ExprId, u64)>> {
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

impl ListAutomaton for Members {
    fn steps(&mut self, emitter: &mut SchemaEmitter<'_, '_>, state: ListState) -> Checked<ListSteps> {
        let mut steps = ListSteps { end: self.may_end(state), ..ListSteps::default() };
        if self.plan.max.is_some_and(|max| state.count >= max) {
            return Ok(steps);
        }
        // Keys with a place of their own come first, in order: `used` counts those that are passed.
        let count = self.plan.members.len();
        let at = usize::try_from(state.used).unwrap_or(count);
        if at < count {
            let required = self.plan.members[at].required;
            let passed = ListState { used: state.used + 1, ..state };
            for (part, found) in self.named(emitter, at)? {
                steps.parts.push((part, self.counted(passed, found)));
            }
            steps.skip = (!required).then_some(passed);
            return Ok(steps);
        }
        // All wanted keys are found: the rest is a list in any order, in which each listed key comes once.
        let mut others = self.others(emitter)?;
        if !self.plan.listed.is_empty() && state.found == self.plan.wanted {
            let mut parts = emitter.algebra.fitting(parts_of(others, None))?;
            for (name, index) in (0_u32..).zip(count..self.named.len()) {
                let ways = self.named(emitter, index)?;
                parts.extend(emitter.algebra.fitting(parts_of(ways, Some(name)))?);
            }
            let min = self.plan.min.saturating_sub(state.count);
            steps.list = Some((parts, min, self.plan.max.map(|max| max - state.count)));
            return Ok(steps);
        }
        for index in count..self.named.len() {
            others.extend(self.named(emitter, index)?);
        }
        if others.is_empty() {
            return Ok(steps);
        }
        // All wanted keys are found: the rest is a plain repetition.
        if state.found == self.plan.wanted {
            let plain: Vec<ExprId> = others.iter().map(|&(part, _)| part).collect();
            let part = emitter.alternatives(plain)?;
            let min = self.plan.min.saturating_sub(state.count);
            steps.tail = Some((part, min, self.plan.max.map(|max| max - state.count)));
            return Ok(steps);
        }
        // A wanted key is missing: the next state remembers what each part brings.
        for (part, found) in others {
            steps.parts.push((part, self.counted(state, found)));
        }
        Ok(steps)
    }
}

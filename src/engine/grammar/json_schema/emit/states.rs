//! Rules for lists with commas whose parts depend on those before: members of objects, items of arrays.
//!
//! The caller describes the list as a finite automaton, state by state. Each state becomes two right-linear
//! rules: `step`, its possible parts, and `next`, what follows a part that led to it. Parts that lead back to
//! the same state are written as repetition, so that long lists do not pile up in the parser. A list of `a`s
//! and then at most one `b` is
//!
//! ```text
//! list   = "[]" | "[" step0          step0 = a next0 | b next1
//! next0  = ("," a)* ( "]" | "," b next1 )            next1 = "]"
//! ```

use hashbrown::HashMap;

use super::{SchemaEmitter, space::Punctuation};
use crate::{
    grammar::{
        any_order::{AnyOrder, AnyOrderPart},
        json_schema::error::Checked,
    },
    ids::ExprId,
};

/// Limit on the states of one object or array.
const MOST_STATES: usize = 20_000;

/// A state of a list, as numbers that the caller gives a meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct ListState {
    /// The members passed: their number, or a bit for each.
    pub(super) used: u64,
    /// The number of parts so far, as far as it matters.
    pub(super) count: u64,
    /// The wanted things found: a bit or a count for each.
    pub(super) found: u64,
}

/// The possible continuations in a state.
#[derive(Debug, Default)]
pub(super) struct ListSteps {
    /// True if the list may end.
    pub(super) end: bool,
    /// The possible parts, each with the state after it.
    pub(super) parts: Vec<(ExprId, ListState)>,
    /// A state whose parts are possible too, as if it had been reached already.
    pub(super) skip: Option<ListState>,
    /// The rest of the list, instead of all of the above: copies of one part, with their least and greatest
    /// number.
    pub(super) tail: Option<(ExprId, u64, Option<u64>)>,
    /// The rest of the list, instead of all of the above: parts in any order, with their least and greatest
    /// number. It may also be empty.
    pub(super) list: Option<(Vec<AnyOrderPart>, u64, Option<u64>)>,
}

/// The brackets of a list at a level.
#[derive(Debug, Clone, Copy)]
pub(super) struct ListFrame {
    pub(super) open: Punctuation,
    pub(super) close: Punctuation,
    pub(super) empty: Punctuation,
    pub(super) level: u32,
    /// True if the marks behind items stand only after new ones.
    pub(super) distinct: bool,
}

impl ListFrame {
    pub(super) fn array(level: u32, distinct: bool) -> Self {
        let (open, close, empty) = (Punctuation::OpenArray, Punctuation::CloseArray, Punctuation::EmptyArray);
        Self { open, close, empty, level, distinct }
    }
}

/// A list as an automaton: gives the continuations of a state.
pub(super) trait ListAutomaton {
    fn steps(&mut self, emitter: &mut SchemaEmitter<'_, '_>, state: ListState) -> Checked<ListSteps>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum ListKind {
    /// The continuations after a part that led to the state.
    Next,
    /// The parts that are possible in the state.
    Step,
}

/// The rules mentioned so far, and those that still need a body.
struct Rules {
    base: String,
    names: HashMap<(ListKind, ListState), String>,
    open: Vec<(ListKind, ListState)>,
}

impl SchemaEmitter<'_, '_> {
    /// Writes the list that an automaton describes from its start state on, with its brackets.
    pub(super) fn list(
        &mut self,
        automaton: &mut dyn ListAutomaton,
        frame: ListFrame,
        base: &str,
    ) -> Checked<ExprId> {
        let mut rules = Rules { base: base.to_owned(), names: HashMap::new(), open: Vec::new() };
        let start = ListState::default();
        // The empty list has a terminal of its own for both brackets.
        let steps = automaton.steps(self, start)?;
        let mut ways = Vec::new();
        if steps.end || steps.tail.is_some_and(|(_, min, _)| min == 0) {
            ways.push(self.mark(frame.empty, frame.level)?);
        }
        let parts = self.parts(&mut rules, start, &steps, frame)?;
        if !parts.is_empty() {
            let open = self.mark(frame.open, frame.level)?;
            let filled = self.alternatives(parts)?;
            ways.push(self.sequence(vec![open, filled])?);
        }
        // A worklist: each body may mention states that have no body yet.
        while let Some((kind, state)) = rules.open.pop() {
            if rules.names.len() > MOST_STATES {
                return Err(self
                    .algebra
                    .too_large(&format!("counts and keys make more than {MOST_STATES} states")));
            }
            let steps = automaton.steps(self, state)?;
            let body = match kind {
                ListKind::Next => self.next_body(&mut rules, state, &steps, frame)?,
                ListKind::Step => {
                    let parts = self.parts(&mut rules, state, &steps, frame)?;
                    self.alternatives(parts)?
                }
            };
            let name = rules.names[&(kind, state)].clone();
            self.define(&name, body)?;
        }
        self.alternatives(ways)
    }

    /// The alternatives that begin with a part in a state; each reaches to the end of the list.
    fn parts(
        &mut self,
        rules: &mut Rules,
        state: ListState,
        steps: &ListSteps,
        frame: ListFrame,
    ) -> Checked<Vec<ExprId>> {
        if let Some((part, min, max)) = steps.tail {
            if max == Some(0) {
                return Ok(Vec::new());
            }
            let rest = self.tail(part, min.saturating_sub(1), max.map(|max| max - 1), frame)?;
            return Ok(vec![self.sequence(vec![part, rest])?]);
        }
        if let Some(list) = &steps.list {
            return self.rest_in_any_order(list, frame);
        }
        let mut ways = Vec::new();
        for &(part, to) in &steps.parts {
            let next = self.state_rule(rules, ListKind::Next, to)?;
            ways.push(self.sequence(vec![part, next])?);
        }
        if let Some(to) = steps.skip.filter(|&to| to != state) {
            ways.push(self.state_rule(rules, ListKind::Step, to)?);
        }
        Ok(ways)
    }

    /// The body of a `next` rule: what follows a part that led to `state`.
    fn next_body(
        &mut self,
        rules: &mut Rules,
        state: ListState,
        steps: &ListSteps,
        frame: ListFrame,
    ) -> Checked<ExprId> {
        if let Some((part, min, max)) = steps.tail {
            return self.tail(part, min, max, frame);
        }
        let (loops, others): (Vec<_>, Vec<_>) = steps.parts.iter().copied().partition(|&(_, to)| to == state);
        let mut ways = Vec::new();
        if steps.end {
            ways.push(self.mark_of(frame.close, frame)?);
        }
        let more =
            ListSteps { parts: others, skip: steps.skip, list: steps.list.clone(), ..ListSteps::default() };
        let more = self.parts(rules, state, &more, frame)?;
        if !more.is_empty() {
            let more = self.alternatives(more)?;
            let comma = self.mark_of(Punctuation::Comma, frame)?;
            ways.push(self.sequence(vec![comma, more])?);
        }
        let rest = self.alternatives(ways)?;
        if loops.is_empty() {
            return Ok(rest);
        }
        let again = self.alternatives(loops.into_iter().map(|(part, _)| part).collect())?;
        let comma = self.mark_of(Punctuation::Comma, frame)?;
        let again = self.sequence(vec![comma, again])?;
        let again = self.repeat(again, 0, None)?;
        self.sequence(vec![again, rest])
    }

    /// Parts in any order, and the end of the list.
    fn rest_in_any_order(
        &mut self,
        (parts, min, max): &(Vec<AnyOrderPart>, u64, Option<u64>),
        frame: ListFrame,
    ) -> Checked<Vec<ExprId>> {
        if *max == Some(0) || parts.is_empty() {
            return Ok(Vec::new());
        }
        let names = parts.iter().filter_map(|part| part.name).max().map_or(0, |name| name as usize + 1);
        let separator = self.mark_of(Punctuation::Comma, frame)?;
        let mut list = AnyOrder::new(Vec::new(), Vec::new(), separator);
        (list.parts, list.required, list.min, list.max) = (parts.clone(), vec![false; names], *min, *max);
        let parts = vec![self.list_of(list)?, self.mark_of(frame.close, frame)?];
        Ok(vec![self.sequence(parts)?])
    }

    /// The tail of a list: `min` to `max` copies of a part, each behind a comma, and the closing bracket.
    fn tail(&mut self, part: ExprId, min: u64, max: Option<u64>, frame: ListFrame) -> Checked<ExprId> {
        let comma = self.mark_of(Punctuation::Comma, frame)?;
        let one = self.sequence(vec![comma, part])?;
        let more = self.repeat(one, min, max)?;
        let close = self.mark_of(frame.close, frame)?;
        self.sequence(vec![more, close])
    }

    fn state_rule(&mut self, rules: &mut Rules, kind: ListKind, state: ListState) -> Checked<ExprId> {
        let name = match rules.names.get(&(kind, state)) {
            Some(name) => name.clone(),
            None => {
                let suffix = if kind == ListKind::Next { "after" } else { "at" };
                let name = self.name(&format!("{}.{suffix}", rules.base));
                rules.names.insert((kind, state), name.clone());
                rules.open.push((kind, state));
                name
            }
        };
        self.rule_ref(&name)
    }
}

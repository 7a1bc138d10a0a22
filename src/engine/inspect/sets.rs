//! Views of parser sets, and their sizes along a text.

use std::collections::{BTreeSet, HashSet, VecDeque};

use crate::{
    ids::{SetId, StateId, TerminalId},
    lower::Lowered,
    machine::StateAutomaton,
    parser::Predicted,
    session::Constraint,
};

/// The amount of state at one place of a text, and the cost of getting there.
///
/// On a grammar that costs nothing but lookups in the long run, `work`, `known_sets` and `known_states` come
/// to rest and the others stay small, however long the text. Numbers that grow with the text cost more and
/// more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[non_exhaustive]
pub struct StateSizes {
    /// Number of threads: terminals begun at some place of the text and not given up yet.
    pub threads: usize,
    /// Threads at the same state of a terminal as another one that began elsewhere: the text may be split in
    /// more than one way.
    pub doubled: usize,
    /// Terminals that may begin here.
    pub starting: usize,
    /// Parser sets that threads began in, and the one in which the next would.
    pub sets: usize,
    /// Items of these sets that were predicted in earlier ones.
    pub items: usize,
    /// Sets in the machine's arena.
    pub known_sets: usize,
    /// Constraint states in the machine's arena.
    pub known_states: usize,
    /// Parser items completed, merged and predicted so far by the machine, which sessions share.
    pub work: u64,
}

/// Parser sets around one place of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SetsView {
    /// The sets: those of the present state first, then the ones they come from, then others in the arena.
    pub sets: Vec<SetView>,
    /// Number of sets in the machine's arena.
    pub known_sets: usize,
}

/// A parser set.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SetView {
    /// The set's number in the machine's arena.
    pub number: u32,
    /// Threads of the present state that began in it.
    pub threads: usize,
    /// Would the next terminal begin in it?
    pub boundary: bool,
    /// Is a text that ends here complete?
    pub complete: bool,
    /// Items, as many as were asked for: first those predicted in earlier sets.
    pub items: Vec<ItemView>,
    /// Number of all its items.
    pub item_count: usize,
    /// Number of its items that were predicted in earlier sets.
    pub kernel_items: usize,
    /// The terminals that may follow, with the set each leads to if that is memoised.
    pub accepts: Vec<(TerminalId, Option<u32>)>,
}

/// An item of a parser set.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ItemView {
    /// The dotted rule, `a ::= b . c`.
    pub dotted: String,
    /// The place where the rule was predicted.
    pub origin: ItemOrigin,
}

/// The place where the rule of an item was predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ItemOrigin {
    /// The rule was predicted before any text.
    Start,
    /// The rule was predicted in the set with this number.
    Set(u32),
    /// The rule was predicted in the item's own set.
    Here,
}

impl Constraint {
    /// Returns the amount of state here. Linear in the threads.
    #[must_use]
    pub fn state_sizes(&self) -> StateSizes {
        self.look(|_, machine, state| sizes(machine, state))
    }

    /// Returns the parser sets of the present state and around it: at most `most_sets`, with `most_items`
    /// items each.
    #[must_use]
    pub fn parser_sets(&self, most_sets: usize, most_items: usize) -> SetsView {
        self.look(|program, machine, state| {
            let order = nearest_first(machine, state, most_sets);
            let view = |&set: &SetId| view(&program.lowered, machine, state, set, most_items);
            SetsView { sets: order.iter().map(view).collect(), known_sets: machine.parser().len() }
        })
    }
}

/// Counts the sizes of a state of `machine`.
pub(super) fn sizes(machine: &StateAutomaton, state: Option<StateId>) -> StateSizes {
    let (known_sets, known_states) = machine.sizes();
    let work = machine.parser().effort();
    let Some(state) = state else {
        return StateSizes { known_sets, known_states, work, ..Default::default() };
    };
    let threads = machine.threads(state);
    let mut scans: Vec<_> = threads.iter().map(|thread| thread.scan).collect();
    scans.sort_unstable();
    let sets = live(machine, state);
    StateSizes {
        threads: threads.len(),
        doubled: scans.chunk_by(|a, b| a == b).filter(|equal| equal.len() > 1).map(<[_]>::len).sum(),
        starting: machine.boundary(state).map_or(0, |set| machine.parser().accepts(set).len()),
        sets: sets.len(),
        items: sets.iter().map(|&set| machine.parser().kernel_len(set)).sum(),
        known_sets,
        known_states,
        work,
    }
}

/// Returns the sets that a state consists of.
fn live(machine: &StateAutomaton, state: StateId) -> BTreeSet<SetId> {
    machine.threads(state).iter().map(|thread| thread.set).chain(machine.boundary(state)).collect()
}

/// Orders sets by relevance: the state's, then by how many origins away they are, then the others.
fn nearest_first(machine: &StateAutomaton, state: Option<StateId>, most: usize) -> Vec<SetId> {
    let parser = machine.parser();
    let mut open: VecDeque<SetId> = state.map(|state| live(machine, state)).into_iter().flatten().collect();
    let mut seen: HashSet<SetId> = open.iter().copied().collect();
    let mut order = Vec::new();
    let mut rest = (0_u32..).take(parser.len()).map(SetId::new);
    while order.len() < most {
        match open.pop_front() {
            Some(set) => {
                order.push(set);
                open.extend(parser.origins_of(set).filter(|&origin| seen.insert(origin)));
            }
            None => match rest.next() {
                Some(set) => open.extend(seen.insert(set).then_some(set)),
                None => break,
            },
        }
    }
    order
}

/// Describes a set, with its first `most_items` items.
fn view(
    lowered: &Lowered,
    machine: &StateAutomaton,
    state: Option<StateId>,
    set: SetId,
    most_items: usize,
) -> SetView {
    let parser = machine.parser();
    let item = |(dot, predicted)| ItemView {
        dotted: lowered.show(dot),
        origin: match predicted {
            Predicted::AtStart => ItemOrigin::Start,
            Predicted::In(set) => ItemOrigin::Set(set.raw()),
            Predicted::Here => ItemOrigin::Here,
        },
    };
    let threads = state.map_or(&[][..], |state| machine.threads(state));
    SetView {
        number: set.raw(),
        threads: threads.iter().filter(|thread| thread.set == set).count(),
        boundary: state.is_some_and(|state| machine.boundary(state) == Some(set)),
        complete: parser.is_complete(set),
        items: parser.items(&lowered.cfg, set).take(most_items).map(item).collect(),
        item_count: parser.items(&lowered.cfg, set).count(),
        kernel_items: parser.kernel_len(set),
        accepts: parser.known_shifts(set).map(|(terminal, to)| (terminal, to.map(SetId::raw))).collect(),
    }
}

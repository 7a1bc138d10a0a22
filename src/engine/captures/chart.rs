//! Earley's recogniser on a transition network, which keeps for each item all links by which it was reached.
//!
//! An item says that a part that began at `origin` has reached a node at `at`. Items are in the order in
//! which they were found, which does not depend on hashes, and every link leads to an earlier one. So the
//! first link of an item is a parse of it, whatever cycles the grammar has.

use std::collections::BTreeMap;

use hashbrown::HashMap;

use super::{
    facts::NetworkFacts,
    network::{NetNode, Network, Node, PartId},
};
use crate::{
    grammar::{LengthBounded, Spelled, any_order::Chosen, spelled::TextAt},
    ids::{as_index, number},
    limits::{Budget, LimitExceeded},
};

/// An item of a [`Chart`].
pub(super) type ItemId = u32;

/// The id of no item.
pub(super) const NONE: ItemId = ItemId::MAX;

/// Number of ways looked at in vain that count as one item.
const WAYS_A_UNIT: usize = 64;

/// A place in the text, in bytes.
type Offset = u32;

/// A link to an item: the item before it in its part, and the end of the call in between, if there was one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Link {
    /// The item before, or [`NONE`] if the part begins here.
    pub(super) before: ItemId,
    /// The end of the part that was called, or [`NONE`].
    pub(super) child: ItemId,
}

/// A part that has been read up to a node (an Earley item).
#[derive(Debug, Clone, Copy)]
pub(super) struct ChartItem {
    pub(super) node: NetNode,
    pub(super) origin: Offset,
    /// The memory of a [`Node::Repeat`] or [`Node::List`]: a count, or a number of [`Memories`].
    memory: u32,
    pub(super) at: Offset,
    /// The link that was found first.
    pub(super) first: Link,
    /// The head of the list of other links in [`Chart::more`].
    more: u32,
}

/// The extent of the text: whole, or only the beginning of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    Whole,
    Beginning,
}

/// A packed parse forest: all ways to read a text.
#[derive(Debug)]
pub(super) struct Chart {
    items: Vec<ChartItem>,
    more: Vec<(Link, u32)>,
    /// The items that have called a part at a place.
    callers: HashMap<(PartId, Offset), Vec<ItemId>>,
    /// The items from which bytes beyond the end of the text may be read.
    pub(super) open: Vec<ItemId>,
    /// The end of the start rule at the end of the text.
    pub(super) end: Option<ItemId>,
}

impl Chart {
    /// Reads `text`, which has less than 2^32 bytes, in all ways.
    pub(super) fn new(
        network: &Network,
        facts: &NetworkFacts,
        text: &[u8],
        extent: Extent,
        budget: &mut Spending,
    ) -> Result<Self, LimitExceeded> {
        let chart = Self {
            items: Vec::new(),
            more: Vec::new(),
            callers: HashMap::new(),
            open: Vec::new(),
            end: None,
        };
        let mut reader = ChartReader {
            network,
            facts,
            text,
            extent,
            budget,
            chart,
            here: 0,
            cursor: 0,
            known: HashMap::new(),
            pending: BTreeMap::new(),
            chosen: Memories::default(),
        };
        reader.read()?;
        Ok(reader.chart)
    }

    pub(super) fn item(&self, item: ItemId) -> &ChartItem {
        &self.items[as_index(item)]
    }

    /// The number of items.
    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    /// All links to an item.
    pub(super) fn links(&self, item: ItemId) -> impl Iterator<Item = Link> + '_ {
        let item = self.item(item);
        let mut next = item.more;
        let others = std::iter::from_fn(move || {
            let &(link, after) = self.more.get(next as usize)?;
            next = after;
            Some(link)
        });
        std::iter::once(item.first).chain(others)
    }

    /// The items that have called a part at a place.
    pub(super) fn callers(&self, part: PartId, at: Offset) -> &[ItemId] {
        self.callers.get(&(part, at)).map_or(&[], Vec::as_slice)
    }
}

/// The budget of one text.
#[derive(Debug)]
pub(super) struct Spending {
    left: usize,
    limit: usize,
}

impl Spending {
    pub(super) fn new(limit: usize) -> Self {
        Self { left: limit, limit }
    }

    /// Counts items and links that are made.
    pub(super) fn spend(&mut self, units: usize) -> Result<(), LimitExceeded> {
        let exceeded = || LimitExceeded::new(Budget::Captures, "items and links of a parse", self.limit);
        self.left = self.left.checked_sub(units).ok_or_else(exceeded)?;
        Ok(())
    }
}

/// The states of lists in any order, as numbers.
#[derive(Debug, Default)]
struct Memories {
    all: Vec<Chosen>,
    /// The last number. There are at most as many as items, which have numbers.
    last: u32,
    numbers: HashMap<(usize, Chosen), u32>,
}

impl Memories {
    fn number(&mut self, list: usize, chosen: Chosen) -> u32 {
        let Self { all, last, numbers } = self;
        *numbers.entry((list, chosen)).or_insert_with_key(|(_, chosen)| {
            all.push(chosen.clone());
            *last += 1;
            *last
        })
    }

    /// The state with a number; 0 is the state before any part.
    fn get(&self, memory: u32) -> Option<&Chosen> {
        self.all.get((memory as usize).checked_sub(1)?)
    }
}

/// An item that is about to be added.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    node: NetNode,
    origin: Offset,
    memory: u32,
    link: Link,
}

struct ChartReader<'n, 't> {
    network: &'n Network,
    facts: &'n NetworkFacts,
    text: &'t [u8],
    extent: Extent,
    budget: &'n mut Spending,
    chart: Chart,
    here: Offset,
    /// The item that is looked at; those before it are done.
    cursor: usize,
    /// The items of the current place.
    known: HashMap<(NetNode, Offset, u32), ItemId>,
    pending: BTreeMap<Offset, Vec<Arrival>>,
    chosen: Memories,
}

impl ChartReader<'_, '_> {
    fn read(&mut self) -> Result<(), LimitExceeded> {
        let network = self.network;
        let root = network.part(network.root);
        let link = Link { before: NONE, child: NONE };
        self.pending.insert(0, vec![Arrival { node: root.start, origin: 0, memory: 0, link }]);
        while let Some((here, arrivals)) = self.pending.pop_first() {
            self.here = here;
            self.known.clear();
            self.cursor = self.chart.items.len();
            for arrival in arrivals {
                self.arrive(arrival)?;
            }
            while let Some(&item) = self.chart.items.get(self.cursor) {
                self.step(number(self.cursor, "items of a parse")?, item)?;
                self.cursor += 1;
            }
        }
        if self.here as usize == self.text.len() {
            self.chart.end = self.known.get(&(root.end, 0, 0)).copied();
        }
        Ok(())
    }

    /// Adds an item at the current place, unless the next byte cannot follow there.
    fn arrive(&mut self, arrival: Arrival) -> Result<(), LimitExceeded> {
        let Arrival { node, origin, memory, link } = arrival;
        if !self.may_go_on(node, self.here) {
            return Ok(());
        }
        self.budget.spend(1)?;
        match self.known.get(&(node, origin, memory)) {
            Some(&item) => {
                let more = number(self.chart.more.len(), "links of a parse")?;
                let item = &mut self.chart.items[as_index(item)];
                self.chart.more.push((link, item.more));
                item.more = more;
            }
            None => {
                let id = number(self.chart.items.len(), "items of a parse")?;
                self.known.insert((node, origin, memory), id);
                let at = self.here;
                self.chart.items.push(ChartItem { node, origin, memory, at, first: link, more: NONE });
            }
        }
        Ok(())
    }

    /// True if the next byte of the text, or its end, can follow at a node.
    fn may_go_on(&self, node: NetNode, at: Offset) -> bool {
        match (self.text.get(at as usize), self.extent) {
            (None, Extent::Beginning) => self.facts.is_productive(node),
            (next, _) => self.facts.admits(node, next.copied()),
        }
    }

    /// Counts ways that were looked at, most of which may lead nowhere.
    fn spend_on_ways(&mut self, ways: usize) -> Result<(), LimitExceeded> {
        self.budget.spend(ways / WAYS_A_UNIT)
    }

    /// Moves the item to a node, `bytes` further on.
    fn go(&mut self, id: ItemId, item: ChartItem, node: NetNode, bytes: usize) -> Result<(), LimitExceeded> {
        let link = Link { before: id, child: NONE };
        let arrival = Arrival { node, origin: item.origin, memory: item.memory, link };
        if bytes == 0 {
            return self.arrive(arrival);
        }
        let to = number(as_index(self.here) + bytes, "bytes of a text")?;
        if self.may_go_on(node, to) {
            self.budget.spend(1)?;
            self.pending.entry(to).or_default().push(arrival);
        }
        Ok(())
    }

    /// Reads a length-bounded string.
    fn bounded(
        &mut self,
        id: ItemId,
        item: ChartItem,
        bounded: &LengthBounded,
        next: NetNode,
    ) -> Result<(), LimitExceeded> {
        let by = (|state| bounded.accepts(state), |state, byte| bounded.step(state, byte));
        self.string((id, item), 0, by, next)
    }

    /// Reads a string that is spelled lazily.
    fn spelled(
        &mut self,
        id: ItemId,
        item: ChartItem,
        spelled: &Spelled,
        next: NetNode,
    ) -> Result<(), LimitExceeded> {
        let by = (|at| at == TextAt::End, |at, byte| spelled.follow(at, byte));
        self.string((id, item), TextAt::Start, by, next)
    }

    /// Reads a string by its automaton. It ends with the closing quote, so no text is a prefix of another.
    fn string<S: Copy>(
        &mut self,
        (id, item): (ItemId, ChartItem),
        mut state: S,
        (accepts, step): (impl Fn(S) -> bool, impl Fn(S, u8) -> Option<S>),
        next: NetNode,
    ) -> Result<(), LimitExceeded> {
        let rest = &self.text[as_index(self.here)..];
        for length in 0.. {
            if accepts(state) {
                return self.go(id, item, next, length);
            }
            let Some(&byte) = rest.get(length) else {
                self.chart.open.push(id);
                break;
            };
            let Some(to) = step(state, byte) else { break };
            // Reading long strings over and over again is counted as work.
            self.budget.spend(usize::from(length % 64 == 63))?;
            state = to;
        }
        Ok(())
    }

    /// Earley's scanner for nodes that read text; other nodes go to the predictor and the completer.
    fn step(&mut self, id: ItemId, item: ChartItem) -> Result<(), LimitExceeded> {
        let network = self.network;
        let rest = &self.text[as_index(self.here)..];
        match network.node(item.node) {
            Node::Ways(ways) => {
                self.spend_on_ways(ways.len())?;
                for &way in ways {
                    self.go(id, item, way, 0)?;
                }
            }
            Node::Text(text, next) => {
                if rest.starts_with(text) {
                    self.go(id, item, *next, text.len())?;
                } else if text.starts_with(rest) {
                    self.chart.open.push(id);
                }
            }
            Node::Character(class, next) => match first_character(rest) {
                Ok(character) => {
                    if character.is_some_and(|character| {
                        let ranges = class.ranges();
                        let at = ranges.partition_point(|range| range.end() < character);
                        ranges.get(at).is_some_and(|range| range.start() <= character)
                    }) {
                        self.go(id, item, *next, character.map_or(0, char::len_utf8))?;
                    }
                }
                Err(EndsEarly) => self.chart.open.push(id),
            },
            Node::Byte(class, next) => match rest.first() {
                Some(byte) => {
                    if class.ranges().iter().any(|range| (range.start()..=range.end()).contains(byte)) {
                        self.go(id, item, *next, 1)?;
                    }
                }
                None => self.chart.open.push(id),
            },
            Node::Substrings(text, next) => {
                // The ends in `text` of the occurrences of what has been read so far.
                let mut places: Vec<usize> =
                    (0..=text.len()).filter(|&at| text.is_char_boundary(at)).collect();
                for length in 0.. {
                    self.budget.spend(places.len() / 64)?;
                    if places.first().is_some_and(|&at| text.is_char_boundary(at)) {
                        self.go(id, item, *next, length)?;
                    }
                    let Some(byte) = rest.get(length) else {
                        if places.iter().any(|&at| at < text.len()) {
                            self.chart.open.push(id);
                        }
                        break;
                    };
                    places.retain(|&at| text.as_bytes().get(at) == Some(byte));
                    if places.is_empty() {
                        break;
                    }
                    places.iter_mut().for_each(|at| *at += 1);
                }
            }
            Node::LengthBounded(bounded, next) => self.bounded(id, item, bounded, *next)?,
            Node::Spelled(spelled, next) => self.spelled(id, item, spelled, *next)?,
            Node::Automaton(automaton, next) => {
                let states = automaton.states();
                let mut state = &states[0];
                for length in 0.. {
                    if state.accepts {
                        self.go(id, item, *next, length)?;
                    }
                    let Some(byte) = rest.get(length) else {
                        if !state.edges.is_empty() {
                            self.chart.open.push(id);
                        }
                        break;
                    };
                    let at = state.edges.partition_point(|edge| edge.last < *byte);
                    let Some(edge) = state.edges.get(at).filter(|edge| edge.first <= *byte) else { break };
                    // Reading long texts over and over again is counted as work.
                    self.budget.spend(usize::from(length % 64 == 63))?;
                    state = &states[as_index(edge.to)];
                }
            }
            Node::Repeat { min, out, .. } => {
                if item.memory >= *min {
                    self.go(id, ChartItem { memory: 0, ..item }, *out, 0)?;
                }
                self.call(id, item)?;
            }
            Node::Separator { list, out, .. } => {
                let lists = &network.lists[*list];
                if self.chosen.get(item.memory).is_some_and(|chosen| lists.choice.may_end(chosen)) {
                    self.go(id, ChartItem { memory: 0, ..item }, *out, 0)?;
                }
                self.call(id, item)?;
            }
            Node::Call(..) | Node::List { .. } => self.call(id, item)?,
            Node::End => self.complete(id, item)?,
        }
        Ok(())
    }

    /// Earley's predictor: begins all parts that the item may call.
    fn call(&mut self, id: ItemId, item: ChartItem) -> Result<(), LimitExceeded> {
        let network = self.network;
        self.spend_on_ways(network.calls(item.node).len())?;
        for &part in network.calls(item.node) {
            let begins = self.may_go_on(network.part(part).start, self.here);
            if !begins || self.after(item, part, true).is_none() {
                continue;
            }
            self.budget.spend(1)?;
            self.chart.callers.entry((part, self.here)).or_default().push(id);
            let part = network.part(part);
            if !self.known.contains_key(&(part.start, self.here, 0)) {
                let link = Link { before: NONE, child: NONE };
                self.arrive(Arrival { node: part.start, origin: self.here, memory: 0, link })?;
            } else if let Some(&end) = self.known.get(&(part.end, self.here, 0))
                && (end as usize) < self.cursor
            {
                // The part has already ended, without reading anything.
                self.return_to(id, end)?;
            }
        }
        Ok(())
    }

    /// Earley's completer: a part has ended, so the items that called it go on.
    fn complete(&mut self, id: ItemId, item: ChartItem) -> Result<(), LimitExceeded> {
        let part = self.network.owner(item.node);
        let mut next = 0;
        while let Some(&caller) = self.chart.callers(part, item.origin).get(next) {
            next += 1;
            self.return_to(caller, id)?;
        }
        Ok(())
    }

    /// Lets a caller go on behind a part that has ended here.
    fn return_to(&mut self, caller: ItemId, child: ItemId) -> Result<(), LimitExceeded> {
        let called = *self.chart.item(child);
        let item = *self.chart.item(caller);
        let part = self.network.owner(called.node);
        let Some(memory) = self.after(item, part, called.origin < self.here) else { return Ok(()) };
        let node = self.network.after_call(item.node);
        self.arrive(Arrival { node, origin: item.origin, memory, link: Link { before: caller, child } })
    }

    /// The memory of an item after a call of `part`; `None` if it may not call it, or if the part would have
    /// to read something and did not.
    fn after(&mut self, item: ChartItem, part: PartId, has_read: bool) -> Option<u32> {
        match *self.network.node(item.node) {
            Node::Repeat { min, max, .. } => {
                let room = max.is_none_or(|max| item.memory < max);
                let counts = item.memory < max.unwrap_or(min);
                (room && (has_read || item.memory < min)).then_some(item.memory + u32::from(counts))
            }
            Node::List { list, .. } => {
                let of = &self.network.lists[list];
                let index = of.parts.binary_search(&part).ok()?;
                let chosen = match self.chosen.get(item.memory) {
                    Some(before) => of.choice.after(before, index)?,
                    None => of.choice.after(&of.choice.start(), index)?,
                };
                Some(self.chosen.number(list, chosen))
            }
            _ => Some(item.memory),
        }
    }
}

/// The error that the text ends before its first character does.
struct EndsEarly;

/// The first character of a text; `None` if its first bytes are not UTF-8.
fn first_character(text: &[u8]) -> Result<Option<char>, EndsEarly> {
    let first = &text[..text.len().min(4)];
    let valid = match std::str::from_utf8(first) {
        Ok(valid) => valid,
        Err(error) if error.valid_up_to() > 0 => {
            std::str::from_utf8(&first[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(error) if error.error_len().is_none() && text.len() < 4 => return Err(EndsEarly),
        Err(_) => return Ok(None),
    };
    valid.chars().next().map_or(Err(EndsEarly), |character| Ok(Some(character)))
}

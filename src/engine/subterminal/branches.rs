//! Makes the children of tree nodes one by one, as the parser asks for them (lazy evaluation).
//!
//! Far more terminals may follow another somewhere in a grammar than at one place of a text. After the colon
//! of one key of a schema comes one kind of value, and after colons in general come all kinds. So while a
//! text is written, a child is made when the parser first accepts its terminal. Trees that are grown ahead
//! have all children.

use std::ops::Range;

use hashbrown::HashMap;

use super::terminal_entry::TerminalEntry;
use super::tree::{Forest, Grow, TreeInputs, TreeNodeId, follows_in_common};
use crate::limits::{LimitExceeded, Work};
use crate::{automata::ByteSet, ids::TerminalId};

/// Number of exits up to which all trie nodes below them are listed, whatever may follow.
const FEW_EXITS: usize = 256;

/// The continuations at the exits of a node, and the children that were asked for.
#[derive(Debug)]
pub(crate) struct Branches {
    entrances: TerminalEntry,
    made: HashMap<TerminalId, Branch>,
}

/// The result of asking for a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Branch {
    Node(TreeNodeId),
    /// No token reaches its terminal.
    Nothing,
    /// The child is not made, and making it is not allowed now.
    Unmade,
}

impl Branches {
    /// Does no token continue past the node's terminal?
    pub(crate) fn is_empty(&self) -> bool {
        self.entrances.bytes().is_empty()
    }

    /// Memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + self.entrances.heap_bytes() + self.made.allocation_size()
    }
}

/// The roots of each terminal's trees that have children of their own. Where states in the middle of a count
/// may end at few places, as white space may, all of them have mostly the same children: no token goes on
/// past the bound.
#[derive(Debug, Default)]
pub(crate) struct Siblings {
    of: HashMap<TerminalId, Vec<Sibling>>,
    /// By the contents of a node, the contents of one that has the same children.
    places: HashMap<NodeContents, NodeContents>,
}

/// The key of what the children of a node depend on; see [`Forest::contents`].
type NodeContents = (TerminalId, usize);

#[derive(Debug)]
struct Sibling {
    root: TreeNodeId,
    /// Where tokens go on from it, once that was compared.
    entrances: Option<TerminalEntry>,
}

/// Number of roots of a terminal that are compared.
const MOST_SIBLINGS: usize = 64;

impl Siblings {
    /// Returns the contents that a node's children are kept by: its own, or those of another root of its
    /// terminal with the same children. Of a tree grown ahead its children are added to those `known`.
    pub(crate) fn place(
        &mut self,
        (forest, node): (&Forest, TreeNodeId),
        known: &mut HashMap<NodeContents, Range<u32>>,
        inputs: TreeInputs<'_>,
        work: &mut Work,
    ) -> Result<NodeContents, LimitExceeded> {
        let contents = forest.contents(node);
        if let Some(&place) = self.places.get(&contents) {
            return Ok(place);
        }
        let sibling = self.sibling(forest, inputs, node, work)?;
        let place = forest.contents(sibling);
        if let Some(children) = forest.made(sibling) {
            known.insert(place, children);
        }
        self.places.insert(contents, place);
        Ok(place)
    }

    /// Returns a root with the same children as this node, itself if there is none.
    fn sibling(
        &mut self,
        forest: &Forest,
        inputs: TreeInputs<'_>,
        node: TreeNodeId,
        work: &mut Work,
    ) -> Result<TreeNodeId, LimitExceeded> {
        if !forest.is_root(node) || forest.reach(node).exits().total() > FEW_EXITS {
            return Ok(node);
        }
        let siblings = self.of.entry(forest.terminal(node)).or_insert_with(|| {
            let grown = forest.grown_roots(inputs, forest.terminal(node));
            grown.take(MOST_SIBLINGS).map(|root| Sibling { root, entrances: None }).collect()
        });
        // Most terminals have one such root, so that nothing is compared.
        let own = if siblings.is_empty() { None } else { Some(forest.entrances(inputs, node, work)?) };
        for sibling in &mut *siblings {
            if sibling.entrances.is_none() {
                sibling.entrances = Some(forest.entrances(inputs, sibling.root, work)?);
            }
            if sibling.entrances == own {
                return Ok(sibling.root);
            }
        }
        if siblings.len() < MOST_SIBLINGS {
            siblings.push(Sibling { root: node, entrances: own });
        }
        Ok(node)
    }

    /// Memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let lists = self.of.values().flatten();
        let of = |sibling: &Sibling| {
            let entrances = sibling.entrances.as_ref().map_or(0, TerminalEntry::heap_bytes);
            size_of::<Sibling>() + entrances
        };
        self.of.allocation_size() + self.places.allocation_size() + lists.map(of).sum::<usize>()
    }
}

impl Forest {
    /// Returns the branches of a node, none made yet. `None` where all its children should be made at once:
    /// few terminals follow, and grammars share what they do.
    pub(crate) fn branches(
        &mut self,
        inputs: TreeInputs<'_>,
        node: TreeNodeId,
        work: &mut Work,
    ) -> Result<Option<Branches>, LimitExceeded> {
        let terminal = self.terminal(node);
        if self.is_root(node) && follows_in_common(inputs, terminal).is_some() {
            return Ok(None);
        }
        let exits = self.reach(node).exits();
        let entrances = if exits.total() <= FEW_EXITS {
            TerminalEntry::new(inputs.trie, exits, &ByteSet::ALL, work)?
        } else {
            self.entrances(inputs, node, work)?
        };
        let branches = Branches { entrances, made: HashMap::new() };
        self.bytes += branches.bytes();
        Ok(Some(branches))
    }

    /// Returns where tokens go on with terminals that may follow a node's; all its children depend on this
    /// alone.
    fn entrances(
        &self,
        inputs: TreeInputs<'_>,
        node: TreeNodeId,
        work: &mut Work,
    ) -> Result<TerminalEntry, LimitExceeded> {
        work.spend(inputs.tables.len() / 8)?;
        let mut wanted = ByteSet::default();
        let follow = inputs.follow.of(self.terminal(node));
        follow.for_each(|next| wanted.union_with(inputs.tables[next.index()].begins()));
        TerminalEntry::new(inputs.trie, self.reach(node).exits(), &wanted, work)
    }

    /// Returns the child of the node of these branches for a terminal that follows it.
    pub(crate) fn branch(
        &mut self,
        inputs: TreeInputs<'_>,
        branches: &mut Branches,
        terminal: TerminalId,
        may: Grow,
        work: &mut Work,
    ) -> Result<Branch, LimitExceeded> {
        let table = &inputs.tables[terminal.index()];
        if !table.begins().meets(branches.entrances.bytes()) {
            return Ok(Branch::Nothing);
        }
        if let Some(&made) = branches.made.get(&terminal) {
            return Ok(made);
        }
        if may == Grow::No || !self.has_room() {
            return Ok(Branch::Unmade);
        }
        let reach = branches.entrances.cross(inputs.trie, table, work)?;
        let made = match reach.is_empty() {
            true => Branch::Nothing,
            false => Branch::Node(self.push(terminal, reach.into())?),
        };
        branches.made.insert(terminal, made);
        Ok(made)
    }
}

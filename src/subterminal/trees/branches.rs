//! Makes the children of tree nodes one by one, as the parser asks for them (lazy evaluation).
//!
//! Far more terminals may follow another somewhere in a grammar than at one place of a text. After the colon
//! of one key of a schema comes one kind of value, and after colons in general come all kinds. So while a
//! text is written, a child is made when the parser first accepts its terminal. Trees that are grown ahead
//! have all children.

use hashbrown::HashMap;

use super::tree::{Forest, Grow, TreeInputs, TreeNodeId, follows_in_common};
use crate::{
    automata::byte_set::ByteSet,
    ids::TerminalId,
    limits::{LimitExceeded, Work},
    subterminal::tables::TerminalEntry,
};

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
        let wanted = if exits.total() <= FEW_EXITS {
            ByteSet::ALL
        } else {
            work.spend(inputs.tables.len() / 8)?;
            let mut wanted = ByteSet::default();
            inputs
                .follow
                .of(terminal)
                .for_each(|next| wanted.union_with(inputs.tables[next.index()].begins()));
            wanted
        };
        let entrances = TerminalEntry::new(inputs.trie, exits, &wanted, work)?;
        let branches = Branches { entrances, made: HashMap::new() };
        self.bytes += branches.bytes();
        Ok(Some(branches))
    }

    /// Returns the child of a node for a terminal that follows it.
    pub(crate) fn branch(
        &mut self,
        inputs: TreeInputs<'_>,
        (node, branches): (TreeNodeId, &mut Branches),
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
        let reach = match table.counted_crossing(inputs.trie, self.reach(node).exits(), work)? {
            Some(reach) => reach,
            None => branches.entrances.cross(inputs.trie, table, work)?,
        };
        let made = match reach.is_empty() {
            true => Branch::Nothing,
            false => Branch::Node(self.push(terminal, reach.into())?),
        };
        branches.made.insert(terminal, made);
        Ok(made)
    }
}

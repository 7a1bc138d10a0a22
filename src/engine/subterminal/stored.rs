//! Serialises trees and tables. Reading checks that they are trees over the same inputs; that they belong to
//! the grammar is up to the seal around them.

use std::sync::Arc;

use hashbrown::HashMap;

use super::{
    rows::TokenRow,
    table::{TableRow, TerminalTable},
    tree::{Children, Forest, NODES, TreeInputs, TreeNode, TreeNodeId},
};
use crate::{
    ids::{ScanStateId, TerminalId, as_index},
    store::{PayloadReader, PayloadWriter, StoreError},
    vocab::ByteTrie,
};

/// Marks `Children::Unknown`, and a row that is not made: past every number of a node or row.
const UNKNOWN: u32 = u32::MAX;

impl Forest {
    /// Writes all trees.
    pub(crate) fn write(&self, writer: &mut PayloadWriter) {
        writer.count(self.nodes.len());
        for node in &*self.nodes {
            writer.u32(node.terminal.raw());
            let (first, last) = match &node.children {
                Children::Unknown => (UNKNOWN, UNKNOWN),
                Children::Made(children) => (children.start, children.end),
            };
            writer.u32(first);
            writer.u32(last);
            node.reach.write(writer);
        }
        let mut roots: Vec<_> = self.roots.iter().map(|(state, root)| (state.raw(), root.raw())).collect();
        roots.sort_unstable();
        writer.u32s(roots.iter().map(|&(state, _)| state));
        writer.u32s(roots.iter().map(|&(_, root)| root));
    }

    /// Reads the format of [`write`](Self::write).
    ///
    /// # Errors
    /// If the bytes are no trees over these inputs.
    pub(crate) fn read(
        reader: &mut PayloadReader<'_>,
        inputs: TreeInputs<'_>,
        max_bytes: usize,
    ) -> Result<Self, StoreError> {
        let mut forest = Self::new(max_bytes);
        // A node takes 16 bytes at least.
        let count = reader.count(16)?;
        for node in 0..count {
            let terminal = TerminalId::new(reader.u32()?);
            if terminal.index() >= inputs.tables.len() {
                return Err(StoreError::malformed("a tree with a terminal that there is not"));
            }
            let children = match (reader.u32()?, reader.u32()?) {
                (UNKNOWN, UNKNOWN) => Children::Unknown,
                (first, last) if first <= last && last as usize <= node => Children::Made(first..last),
                _ => return Err(StoreError::malformed("a tree's node with children that there are not")),
            };
            let reach = Arc::new(TokenRow::read(reader, inputs.trie)?);
            forest.bytes += size_of::<TreeNode>() + reach.bytes();
            forest.own.0 += reach.bytes();
            let node = TreeNode { terminal, state: None, reach, children };
            let too_many = |_| StoreError::malformed("more nodes of trees than there are numbers");
            forest.nodes.push(node, NODES).map_err(too_many)?;
        }
        let (states, roots) = (reader.u32s()?, reader.u32s()?);
        if states.len() != roots.len() || !states.windows(2).all(|pair| pair[0] < pair[1]) {
            return Err(StoreError::malformed("roots of trees out of order"));
        }
        forest.roots = HashMap::with_capacity(states.len());
        for (state, root) in states.into_iter().zip(roots) {
            let state = ScanStateId::new(state);
            let node = forest.nodes.get_mut(root as usize);
            let is_state = state.index() < inputs.scanner.state_count();
            let node = node.filter(|node| is_state && node.terminal == inputs.scanner.terminal(state));
            let another = || StoreError::malformed("the root of a tree for another scanner state");
            node.ok_or_else(another)?.state = Some(state);
            forest.roots.insert(state, TreeNodeId::new(root));
        }
        Ok(forest)
    }
}

impl TerminalTable {
    /// Serialises the rows that are made, each once, for the cache folder.
    pub(super) fn write(&self) -> Vec<u8> {
        let (mut rows, mut numbers, mut states) = (Vec::new(), HashMap::new(), Vec::new());
        for row in self.rows() {
            // There are no more rows than states, which have numbers.
            let next = u32::try_from(rows.len()).unwrap_or(UNKNOWN);
            states.push(row.get().map_or(UNKNOWN, |TableRow { reach, .. }| {
                *numbers.entry(Arc::as_ptr(reach)).or_insert_with(|| {
                    rows.push(reach);
                    next
                })
            }));
        }
        let mut writer = PayloadWriter::default();
        writer.u32s(states.into_iter());
        writer.count(rows.len());
        rows.into_iter().for_each(|row| row.write(&mut writer));
        writer.finish()
    }

    /// Fills the table from the format of [`write`](Self::write). Rows that are there stay.
    pub(super) fn read(&self, reader: &mut PayloadReader<'_>, trie: &ByteTrie) -> Result<(), StoreError> {
        let states = reader.u32s()?;
        if states.len() != self.dfa().len() {
            return Err(StoreError::malformed("a table with another number of states"));
        }
        // A row takes 9 bytes at least.
        let count = reader.count(9)?;
        let read = || TokenRow::read(reader, trie).map(Arc::new);
        let rows = std::iter::repeat_with(read).take(count).collect::<Result<Vec<_>, _>>()?;
        for (row, number) in self.rows().iter().zip(states).filter(|(_, number)| *number != UNKNOWN) {
            let missing = || StoreError::malformed("a state with a row that there is not");
            let reach = rows.get(as_index(number)).ok_or_else(missing)?;
            let bytes = if Arc::strong_count(reach) == 1 { reach.bytes() } else { 0 };
            if row.set(TableRow::new(Arc::clone(reach))).is_ok() {
                self.add_bytes(bytes);
            }
        }
        Ok(())
    }
}

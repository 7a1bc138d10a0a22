//! Crosses from one terminal into the next: the tokens that go on where a terminal may end.
//!
//! The trie nodes right below the exits are grouped by their byte once, for all terminals that may follow.
//! Each of these then walks only the nodes with a byte that it begins with. Linear in the exits and the nodes
//! walked.

use super::crossing::Crossing;
use super::rows::{Ranges, TokenRow};
use super::table::{ENTER_WORK, TerminalTable, walking};
use crate::ids::{TrieNodeId, number};
use crate::limits::{LimitExceeded, Work};
use crate::{automata::ByteSet, vocab::ByteTrie};

/// The trie nodes right below a terminal's exits, by their byte.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TerminalEntry {
    /// The trie nodes, grouped by byte.
    nodes: Vec<u32>,
    /// Bytes that have any node.
    bytes: ByteSet,
    /// Start of each byte's nodes, in the order of the bytes, and the end of the last ones.
    starts: Box<[u32]>,
}

impl TerminalEntry {
    /// Finds the nodes with a `wanted` byte, either from the children of every exit, or from all trie nodes
    /// with such a byte, whichever is fewer.
    pub(super) fn new(
        trie: &ByteTrie,
        exits: &Ranges,
        wanted: &ByteSet,
        work: &mut Work,
    ) -> Result<Self, LimitExceeded> {
        let nodes_with = |byte: u8| if wanted.contains(byte) { trie.nodes_with(byte) } else { &[] };
        // Estimate both ways; an exit has few children on average.
        let children = exits.total().saturating_mul(CHILDREN_OF_AN_EXIT);
        // Counts only as far as needed to see which is fewer.
        let mut by_bytes = 0;
        for byte in 0..=u8::MAX {
            if by_bytes > children {
                break;
            }
            by_bytes += nodes_with(byte).len();
        }
        work.spend(100 + exits.total() + children.min(by_bytes) / 2)?;
        let mut first = [0; 257];
        // From the exits: their children, sorted by byte (counting sort).
        if children < by_bytes {
            let mut found: Vec<(u8, u32)> = Vec::new();
            for exit in exits.iter().flatten() {
                let exit = TrieNodeId::new(exit);
                let (mut next, last) = (exit.raw() + 1, trie.end(exit).raw());
                while next < last {
                    let child = TrieNodeId::new(next);
                    let byte = trie.byte(child);
                    if wanted.contains(byte) {
                        first[usize::from(byte) + 1] += 1;
                        found.push((byte, next));
                    }
                    next = trie.end(child).raw();
                }
            }
            (0..256).for_each(|byte| first[byte + 1] += first[byte]);
            let (mut next, mut nodes) = (first, vec![0; found.len()]);
            for (byte, node) in found {
                let at = &mut next[usize::from(byte)];
                nodes[*at as usize] = node;
                *at += 1;
            }
            return Ok(Self::of(nodes, &first));
        }
        // From the bytes: all nodes with a wanted one, if the parent is an exit.
        let mut is_exit = vec![0_u64; trie.len().div_ceil(64)];
        exits.iter().flatten().for_each(|exit| is_exit[exit as usize / 64] |= 1 << (exit % 64));
        let below_an_exit = |&&node: &&u32| {
            let parent = trie.parent(TrieNodeId::new(node)).index();
            is_exit[parent / 64] >> (parent % 64) & 1 == 1
        };
        let mut nodes: Vec<u32> = Vec::new();
        for byte in 0..=u8::MAX {
            nodes.extend(nodes_with(byte).iter().filter(below_an_exit));
            first[usize::from(byte) + 1] = number(nodes.len(), "nodes of a vocabulary's trie")?;
        }
        Ok(Self::of(nodes, &first))
    }

    /// Groups nodes of which those of byte `b` are `nodes[first[b] .. first[b + 1]]`.
    fn of(nodes: Vec<u32>, first: &[u32; 257]) -> Self {
        let has_nodes = |byte: &u8| first[usize::from(*byte)] < first[usize::from(*byte) + 1];
        let count = (0..=u8::MAX).filter(has_nodes).count();
        let (mut bytes, mut starts) = (ByteSet::default(), Vec::with_capacity(count + 1));
        for byte in (0..=u8::MAX).filter(has_nodes) {
            bytes.insert(byte);
            starts.push(first[usize::from(byte)]);
        }
        starts.push(first[256]);
        Self { nodes, bytes, starts: starts.into() }
    }

    /// Returns the effect of a terminal on the tokens that enter it here.
    pub(super) fn cross(
        &self,
        trie: &ByteTrie,
        table: &TerminalTable,
        work: &mut Work,
    ) -> Result<TokenRow, LimitExceeded> {
        work.spend(table.first().len() / 4)?;
        let first = table.first().iter();
        let entered = first.flat_map(|&(byte, state)| self.with(byte).iter().map(move |&node| (node, state)));
        table.enter(trie, entered, work)
    }

    /// Returns the bytes of these nodes.
    pub(super) fn bytes(&self) -> &ByteSet {
        &self.bytes
    }

    /// Memory on the heap, in bytes.
    pub(super) fn heap_bytes(&self) -> usize {
        size_of_val(&*self.nodes) + size_of_val(&*self.starts)
    }

    /// Returns the nodes of a byte. They ascend, except where an exit lies below another exit.
    fn with(&self, byte: u8) -> &[u32] {
        if !self.bytes.contains(byte) {
            return &[];
        }
        let rank = self.bytes.rank(byte);
        &self.nodes[self.starts[rank] as usize..self.starts[rank + 1] as usize]
    }
}

/// Average number of children of an exit, for choosing how to find them.
const CHILDREN_OF_AN_EXIT: usize = 4;

impl TerminalTable {
    /// Returns the effect of the terminal on the tokens at and below trie nodes that it has just entered,
    /// each in a state. Linear in the nodes walked and the tokens found.
    pub(crate) fn enter(
        &self,
        trie: &ByteTrie,
        entered: impl Iterator<Item = (u32, u32)>,
        work: &mut Work,
    ) -> Result<TokenRow, LimitExceeded> {
        let dfa = self.dfa().of_a_walk();
        let mut crossing = Crossing::new(trie, &dfa, self.loops());
        let mut paid = 0;
        for (node, state) in entered {
            crossing.at(TrieNodeId::new(node), dfa.same_as(self.dfa(), state));
            let walked = walking(crossing.walked);
            work.spend(walked - paid)?;
            paid = walked;
        }
        let reach = TokenRow::new(trie, crossing.stays, crossing.exits);
        work.spend(ENTER_WORK + reach.work())?;
        Ok(reach)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ids::TokenId, subterminal::shortcuts::reference_rows_tests::dfa};

    /// Each byte with which a terminal begins is found, entered or not.
    #[test]
    fn each_byte_looked_for_takes_work() {
        let trie = ByteTrie::new(1, std::iter::once((&b"a"[..], TokenId::new(0))));
        let [few, many] = ["a", "[a-h]"].map(|pattern| {
            let table = TerminalTable::new(dfa(pattern), None);
            let work = &mut Work::unlimited();
            let entrances =
                TerminalEntry::new(&trie, &Ranges::new(), table.begins(), &mut Work::unlimited()).unwrap();
            entrances.cross(&trie, &table, work).unwrap();
            work.spent()
        });
        assert!(few < many, "{few} and {many} units");
    }

    #[test]
    fn work_is_that_of_the_shorter_search() {
        // In each the same byte comes after another one.
        let tokens: Vec<[u8; 2]> = (b'A'..=b'Z').map(|byte| [byte, b'!']).collect();
        let ids = tokens.iter().zip(0..).map(|(token, id)| (&token[..], TokenId::new(id)));
        let trie = ByteTrie::new(tokens.len(), ids);
        for count in [1, tokens.len()] {
            let mut exits = Ranges::new();
            for exit in tokens.iter().take(count).filter_map(|token| trie.root_child(token[0])) {
                exits.push(exit.raw()..exit.raw() + 1);
            }
            let work = &mut Work::unlimited();
            let wanted = std::iter::once(b'!').collect();
            let entrances = TerminalEntry::new(&trie, &exits, &wanted, work).unwrap();
            assert_eq!(entrances.with(b'!').len(), count);
            let look = tokens.len().min(CHILDREN_OF_AN_EXIT * count);
            assert!(work.spent() <= 100 + count + look, "{} units", work.spent());
        }
    }
}

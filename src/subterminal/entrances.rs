//! From one terminal into the next: the tokens that go on where a terminal may end.

use super::{ranges::Ranges, reach::Reach, table::TerminalTable};
use crate::{
    ids::TrieNodeId,
    limits::{LimitExceeded, Work},
    vocab::ByteTrie,
};

/// The trie nodes right below a terminal's exits, by their byte.
pub(super) struct Entrances {
    by_byte: Vec<Vec<u32>>,
}

impl Entrances {
    /// Those that any of some terminals can enter, given by the bytes with which they begin. Either looks at
    /// the children of every exit, or at every trie node with a byte that is asked for, whichever is less to
    /// look at.
    pub(super) fn new<'a>(
        trie: &ByteTrie,
        exits: &Ranges,
        firsts: impl Iterator<Item = &'a [(u8, u32)]>,
        work: &mut Work,
    ) -> Result<Self, LimitExceeded> {
        let mut wanted = [false; 256];
        firsts.flatten().for_each(|&(byte, _)| wanted[usize::from(byte)] = true);
        let nodes_with = |byte: u8| if wanted[usize::from(byte)] { trie.nodes_with(byte) } else { &[] };
        let by_bytes: usize = (0..=u8::MAX).map(|byte| nodes_with(byte).len()).sum();
        let mut by_byte: Vec<Vec<u32>> = vec![Vec::new(); 256];
        let children = exits.total().saturating_mul(CHILDREN_OF_AN_EXIT);
        work.spend(100 + exits.total() + children.min(by_bytes) / 2)?;
        if children < by_bytes {
            for exit in exits.iter().flatten() {
                let exit = TrieNodeId::new(exit);
                let (mut next, last) = (exit.raw() + 1, trie.end(exit).raw());
                while next < last {
                    let child = TrieNodeId::new(next);
                    by_byte[usize::from(trie.byte(child))].push(next);
                    next = trie.end(child).raw();
                }
            }
            return Ok(Self { by_byte });
        }
        let mut is_exit = vec![0_u64; trie.len().div_ceil(64)];
        exits.iter().flatten().for_each(|exit| is_exit[exit as usize / 64] |= 1 << (exit % 64));
        for byte in 0..=u8::MAX {
            let below_an_exit = |&&node: &&u32| {
                let parent = trie.parent(TrieNodeId::new(node)).index();
                is_exit[parent / 64] >> (parent % 64) & 1 == 1
            };
            by_byte[usize::from(byte)] = nodes_with(byte).iter().filter(below_an_exit).copied().collect();
        }
        Ok(Self { by_byte })
    }

    /// What a terminal does to the tokens that enter it here.
    pub(super) fn cross(
        &self,
        trie: &ByteTrie,
        table: &TerminalTable,
        work: &mut Work,
    ) -> Result<Reach, LimitExceeded> {
        work.spend(table.first().len() / 4)?;
        let first = table.first().iter();
        let entered = first.flat_map(|&(byte, state)| self.with(byte).iter().map(move |&node| (node, state)));
        table.enter(trie, entered, work)
    }

    /// Ascending, but for what lies below an exit that is below an exit.
    fn with(&self, byte: u8) -> &[u32] {
        &self.by_byte[usize::from(byte)]
    }
}

/// Children that an exit has on average, for choosing how to find them.
const CHILDREN_OF_AN_EXIT: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ids::TokenId, subterminal::kin_tests::dfa};

    /// Entered or not, each byte with which a terminal begins is looked for.
    #[test]
    fn bytes_that_are_looked_for_take_work() {
        let trie = ByteTrie::new(1, std::iter::once((&b"a"[..], TokenId::new(0))));
        let [few, many] = ["a", "[a-h]"].map(|pattern| {
            let table = TerminalTable::new(dfa(pattern), None);
            let work = &mut Work::unlimited();
            let first = std::iter::once(table.first());
            let entrances = Entrances::new(&trie, &Ranges::new(), first, &mut Work::unlimited()).unwrap();
            entrances.cross(&trie, &table, work).unwrap();
            work.spent()
        });
        assert!(few < many, "{few} and {many} units");
    }

    #[test]
    fn work_is_that_of_the_shorter_look() {
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
            let entrances = Entrances::new(&trie, &exits, std::iter::once(&[(b'!', 0)][..]), work).unwrap();
            assert_eq!(entrances.with(b'!').len(), count);
            let look = tokens.len().min(CHILDREN_OF_AN_EXIT * count);
            assert!(work.spent() <= 100 + count + look, "{} units", work.spent());
        }
    }
}

//! One terminal against the tokens below a trie node. Does not depend on the grammar.

use crate::{
    ids::{ScanStateId, TokenId, TrieNodeId},
    scanner::Scanner,
    vocab::ByteTrie,
};

/// Walks the trie below `from` with the scanner in `state`.
///
/// Calls `stay` with the tokens that end inside the terminal (or just as it may end), and `exit` with
/// every node where the terminal may end while tokens go on. Linear in the trie nodes that the terminal
/// can reach.
pub(crate) fn cross(
    scanner: &Scanner,
    trie: &ByteTrie,
    state: ScanStateId,
    from: TrieNodeId,
    mut stay: impl FnMut(&[TokenId]),
    mut exit: impl FnMut(TrieNodeId),
) {
    let last = trie.end(from);
    let mut path: Vec<(TrieNodeId, ScanStateId)> = vec![(last, state)];
    let mut node = TrieNodeId::new(from.raw() + 1);
    while node < last {
        // The innermost subtree on the path that `node` is in is its parent's.
        while path.last().is_some_and(|&(end, _)| end <= node) {
            path.pop();
        }
        let Some(&(_, state)) = path.last() else { return };
        let Some(state) = scanner.step(state, trie.byte(node)) else {
            node = trie.end(node);
            continue;
        };
        stay(trie.tokens(node));
        if trie.has_children(node) {
            if scanner.accepts(state) {
                exit(node);
            }
            path.push((trie.end(node), state));
        }
        node = TrieNodeId::new(node.raw() + 1);
    }
}

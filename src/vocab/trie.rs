//! The vocabulary as a byte trie, one array in depth-first order.
//!
//! Invariant: node 0 is the root (the empty string); a node's descendants are the nodes
//! `node + 1 .. node.end`, so skipping a subtree is one jump.

use crate::ids::{TokenId, TrieNodeId};

/// One node.
#[derive(Debug, Clone, Copy)]
struct Node {
    byte: u8,
    /// One past the last node of the subtree.
    end: u32,
    /// The node's tokens are `tokens[first_token .. nodes[next].first_token]` of the trie.
    first_token: u32,
}

/// All tokens with bytes, by their bytes.
#[derive(Debug)]
pub(crate) struct ByteTrie {
    nodes: Vec<Node>,
    tokens: Vec<TokenId>,
}

impl ByteTrie {
    /// The root: the empty string.
    pub(crate) const ROOT: TrieNodeId = TrieNodeId::new(0);

    /// The trie of `(bytes, token)` pairs; pairs with empty bytes are left out. Sorts them:
    /// `O(n log n)` comparisons.
    pub(crate) fn new<'a>(tokens: impl IntoIterator<Item = (&'a [u8], TokenId)>) -> Self {
        let mut sorted: Vec<(&[u8], TokenId)> =
            tokens.into_iter().filter(|(bytes, _)| !bytes.is_empty()).collect();
        sorted.sort_unstable();
        let root = Node { byte: 0, end: 0, first_token: 0 };
        let mut trie = Self { nodes: vec![root], tokens: Vec::with_capacity(sorted.len()) };
        let mut path: Vec<usize> = vec![0];
        let mut previous: &[u8] = &[];
        for (bytes, token) in sorted {
            let shared = previous.iter().zip(bytes).take_while(|(a, b)| a == b).count();
            trie.close(&mut path, shared);
            for &byte in &bytes[shared..] {
                path.push(trie.nodes.len());
                let first_token = index_u32(trie.tokens.len());
                trie.nodes.push(Node { byte, end: 0, first_token });
            }
            trie.tokens.push(token);
            previous = bytes;
        }
        trie.close(&mut path, 0);
        trie.nodes[0].end = index_u32(trie.nodes.len());
        trie
    }

    /// Ends the subtrees on `path` below depth `depth`.
    fn close(&mut self, path: &mut Vec<usize>, depth: usize) {
        while path.len() > depth + 1 {
            if let Some(node) = path.pop() {
                self.nodes[node].end = index_u32(self.nodes.len());
            }
        }
    }

    /// Number of nodes.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The last byte of the node's string (0 at the root).
    pub(crate) fn byte(&self, node: TrieNodeId) -> u8 {
        self.nodes[node.index()].byte
    }

    /// One past the last node of the subtree.
    pub(crate) fn end(&self, node: TrieNodeId) -> TrieNodeId {
        TrieNodeId::new(self.nodes[node.index()].end)
    }

    /// Does any token go on past this node?
    pub(crate) fn has_children(&self, node: TrieNodeId) -> bool {
        self.nodes[node.index()].end > node.raw() + 1
    }

    /// The tokens that are exactly the node's string.
    pub(crate) fn tokens(&self, node: TrieNodeId) -> &[TokenId] {
        let first = self.nodes[node.index()].first_token as usize;
        let last =
            self.nodes.get(node.index() + 1).map_or(self.tokens.len(), |next| next.first_token as usize);
        &self.tokens[first..last]
    }
}

/// Trie sizes are bounded by the vocabulary builder.
fn index_u32(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subtrees_and_tokens() {
        let tokens: [(&[u8], u32); 6] = [(b"b", 0), (b"ab", 1), (b"abc", 2), (b"a", 3), (b"ab", 4), (b"", 5)];
        let trie = ByteTrie::new(tokens.map(|(bytes, id)| (bytes, TokenId::new(id))));
        // Depth first: root, a, ab, abc, b.
        assert_eq!(trie.len(), 5);
        let bytes: Vec<u8> = (1..5).map(|n| trie.byte(TrieNodeId::new(n))).collect();
        assert_eq!(bytes, b"abcb");
        assert_eq!(trie.end(TrieNodeId::new(1)), TrieNodeId::new(4));
        assert_eq!(trie.end(ByteTrie::ROOT), TrieNodeId::new(5));
        assert_eq!(trie.tokens(TrieNodeId::new(2)), [TokenId::new(1), TokenId::new(4)]);
        assert_eq!(trie.tokens(ByteTrie::ROOT), []);
        assert!(trie.has_children(TrieNodeId::new(2)) && !trie.has_children(TrieNodeId::new(4)));
    }
}

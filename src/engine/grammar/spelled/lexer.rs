//! The automaton that reads one character in its spellings, byte by byte, and ends in the character's class.

use crate::grammar::automaton::{Edge, State};

/// Reads one character of a JSON string, byte by byte. Node 0 is between characters, all others are inside of
/// one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CharacterLexer {
    /// The number of classes of characters. An edge to a lower number ends a character of that class; other
    /// edges lead to a node, by its number plus this.
    classes: u32,
    nodes: Box<[LexerNode]>,
}

#[derive(Debug, PartialEq, Eq)]
struct LexerNode {
    /// The edges, ascending.
    edges: Box<[Edge]>,
    /// The classes that can be reached, ascending, each with the fewest bytes.
    ends: Box<[(u32, u8)]>,
}

/// The effect of a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ByteEffect {
    /// The end of a character of this class.
    Class(u32),
    /// A move to this node inside of a character.
    Inside(u32),
}

impl CharacterLexer {
    /// Makes a lexer of the edges of the first byte and of the states inside of a character. An edge to a
    /// number below `classes` ends a character of that class; other edges lead to a state, by its position in
    /// `inside` plus `classes`, which must come earlier in the list. Linear in the edges times the classes.
    pub(super) fn new(classes: u32, first: Vec<Edge>, inside: &[State]) -> Self {
        let mut lexer = Self { classes, nodes: Box::default() };
        let mut nodes: Vec<LexerNode> = Vec::with_capacity(inside.len() + 1);
        nodes.push(LexerNode { edges: Box::default(), ends: Box::default() });
        for edges in inside.iter().map(|state| state.edges.clone()).chain([first]) {
            // States inside of a character are numbered from 1, as 0 is the one between characters.
            let moved = |edge: Edge| Edge { to: edge.to + u32::from(edge.to >= classes), ..edge };
            let mut edges: Vec<Edge> = edges.into_iter().map(moved).collect();
            edges.sort_unstable_by_key(|edge| edge.first);
            let ends = lexer.ends(&edges, &nodes);
            nodes.push(LexerNode { edges: edges.into(), ends });
        }
        // The node between characters was made last, as it leads to the others.
        if let Some(first) = nodes.pop() {
            nodes[0] = first;
        }
        lexer.nodes = nodes.into();
        lexer
    }

    fn ends(&self, edges: &[Edge], nodes: &[LexerNode]) -> Box<[(u32, u8)]> {
        let mut ends: Vec<(u32, u8)> = Vec::new();
        for edge in edges {
            match edge.to.checked_sub(self.classes) {
                None => ends.push((edge.to, 1)),
                Some(node) => {
                    let further = nodes[node as usize].ends.iter();
                    ends.extend(further.map(|&(class, bytes)| (class, bytes.saturating_add(1))));
                }
            }
        }
        ends.sort_unstable();
        ends.dedup_by_key(|(class, _)| *class);
        ends.into()
    }

    /// The number of classes.
    pub(super) fn classes(&self) -> u32 {
        self.classes
    }

    /// The number of nodes.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The effect of a byte at a node. A binary search.
    pub(super) fn read(&self, node: u32, byte: u8) -> Option<ByteEffect> {
        let edges = &self.nodes[node as usize].edges;
        let at = edges.partition_point(|edge| edge.last < byte);
        edges.get(at).filter(|edge| edge.first <= byte).map(|edge| self.of(edge.to))
    }

    fn of(&self, to: u32) -> ByteEffect {
        to.checked_sub(self.classes).map_or(ByteEffect::Class(to), ByteEffect::Inside)
    }

    /// The edges of a node: first and last byte, and their effect.
    pub(super) fn edges(&self, node: u32) -> impl Iterator<Item = (u8, u8, ByteEffect)> {
        self.nodes[node as usize].edges.iter().map(|edge| (edge.first, edge.last, self.of(edge.to)))
    }

    /// The classes that can be reached from a node, ascending, each with the fewest bytes.
    pub(super) fn ends_of(&self, node: u32) -> &[(u32, u8)] {
        &self.nodes[node as usize].ends
    }

    /// A class for each byte, and the number of classes. Every node treats the bytes of one class alike;
    /// quotes are a class of their own. Linear in the bytes of all edges.
    pub(super) fn byte_classes(&self) -> (Box<[u8; 256]>, usize) {
        let mut signatures = [0_u64; 256];
        for (at, node) in (1..).zip(&*self.nodes) {
            for edge in &*node.edges {
                for byte in edge.first..=edge.last {
                    let signature = &mut signatures[usize::from(byte)];
                    *signature = crate::automata::mix(*signature ^ at << 32, u64::from(edge.to));
                }
            }
        }
        // Each class is known by its least byte, and there is a number for each new class.
        let (mut known, mut classes) = (Vec::new(), Box::new([0_u8; 256]));
        let signature = |byte: u8| (byte == b'"', signatures[usize::from(byte)]);
        for byte in 0..=u8::MAX {
            let of = (0..=u8::MAX).zip(&known).find(|(_, least)| signature(**least) == signature(byte));
            classes[usize::from(byte)] = match of {
                Some((class, _)) => class,
                None => {
                    known.push(byte);
                    // A new class has a number above that of all bytes before; there are as many numbers as
                    // bytes.
                    let before = classes[..usize::from(byte)].iter().max();
                    before.map_or(0, |last| last + 1)
                }
            };
        }
        (classes, known.len())
    }

    /// A hash of the lexer.
    pub(super) fn hash(&self) -> u64 {
        let edges = self.nodes.iter().flat_map(|node| &*node.edges);
        let word = |edge: &Edge| u64::from(edge.to) << 16 | u64::from(edge.first) << 8 | u64::from(edge.last);
        edges.map(word).fold(u64::from(self.classes), crate::automata::mix)
    }

    /// All numbers that tell the lexer from others, for comparison.
    pub(super) fn words(&self) -> impl Iterator<Item = u32> {
        let edges = |node: &'_ LexerNode| {
            let bytes = |edge: &Edge| u32::from(edge.first) << 8 | u32::from(edge.last);
            let words: Vec<u32> = node.edges.iter().flat_map(|edge| [bytes(edge), edge.to]).collect();
            words.into_iter().chain([u32::MAX])
        };
        [self.classes].into_iter().chain(self.nodes.iter().flat_map(edges))
    }

    /// Memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let node = |node: &LexerNode| size_of_val(&*node.edges) + size_of_val(&*node.ends);
        size_of_val(&*self.nodes) + self.nodes.iter().map(node).sum::<usize>()
    }
}

//! Static facts about the nodes of a network: FIRST and FOLLOW sets, and which parts can derive themselves.
//!
//! A byte of lookahead keeps a chart linear where a grammar is deterministic: without it the end of a list
//! written by right recursion would be tried behind each of its items.

use regex_syntax::{
    hir::{ClassBytes, ClassUnicode},
    utf8::Utf8Sequences,
};

use super::network::{NetNode, Network, Node, PartId};
use crate::{
    automata::{ByteSet, components},
    ids::as_index,
};

/// The bytes that may follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Next {
    bytes: ByteSet,
    /// True if the text may end.
    end: bool,
}

impl Next {
    fn extend(&mut self, other: &Self) {
        self.bytes.union_with(&other.bytes);
        self.end |= other.end;
    }
}

/// The facts about a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Fact {
    /// True if there is a way to the end of its part.
    productive: bool,
    /// True if there is such a way that reads nothing.
    nullable: bool,
    /// The first bytes that are read within its part (FIRST).
    first: ByteSet,
}

/// The facts about a network.
#[derive(Debug)]
pub(super) struct NetworkFacts {
    of_nodes: Vec<Fact>,
    /// The bytes that may come next at each node.
    next: Vec<Next>,
    /// True for parts that can derive themselves, with nothing read beside.
    cyclic: Vec<bool>,
}

impl NetworkFacts {
    /// Computes the fixpoints with work lists: linear in the network, times the bytes that a set may have.
    pub(super) fn new(network: &Network) -> Self {
        let of_nodes = of_nodes(network);
        let follow = follow(network, &of_nodes);
        let next = of_nodes.iter().zip(0..).map(|(fact, node)| {
            let mut next = Next { bytes: fact.first, end: false };
            // A repeat whose count is reached is over.
            if fact.nullable || matches!(network.node(node), Node::Repeat { .. }) {
                next.extend(&follow[as_index(network.owner(node))]);
            }
            next
        });
        Self { next: next.collect(), cyclic: cyclic(network, &of_nodes), of_nodes }
    }

    /// True if a text may go on like this at the node: by this byte, or by its end.
    pub(super) fn admits(&self, node: NetNode, byte: Option<u8>) -> bool {
        let next = &self.next[as_index(node)];
        self.is_productive(node) && byte.map_or(next.end, |byte| next.bytes.contains(byte))
    }

    /// True if there is a way from the node to the end of its part.
    pub(super) fn is_productive(&self, node: NetNode) -> bool {
        self.of_nodes[as_index(node)].productive
    }

    /// True if the part can derive itself, with nothing read beside.
    pub(super) fn is_cyclic(&self, part: PartId) -> bool {
        self.cyclic[as_index(part)]
    }
}

/// The successors of a node within its part, without calls.
fn steps(network: &Network, node: NetNode) -> Vec<NetNode> {
    match network.node(node) {
        Node::Ways(ways) => ways.clone(),
        Node::Text(_, next)
        | Node::Character(_, next)
        | Node::Byte(_, next)
        | Node::Automaton(_, next)
        | Node::Substrings(_, next)
        | Node::LengthBounded(_, next)
        | Node::Spelled(_, next)
        | Node::Call(_, next) => vec![*next],
        Node::Repeat { .. } | Node::List { .. } | Node::Separator { .. } | Node::End => Vec::new(),
    }
}

fn of_nodes(network: &Network) -> Vec<Fact> {
    let count = network.nodes().len();
    let leads: Vec<ByteSet> = network.nodes().iter().map(lead).collect();
    // The nodes whose facts depend on each node's.
    let mut told: Vec<Vec<NetNode>> = vec![Vec::new(); count];
    for node in (0..).take(count) {
        let called = network.calls(node).iter().map(|&part| network.part(part).start);
        steps(network, node).into_iter().chain(called).for_each(|of| told[as_index(of)].push(node));
    }
    let mut facts = vec![Fact::default(); count];
    let mut open: Vec<NetNode> = (0..).take(count).collect();
    let mut waits = vec![true; count];
    while let Some(node) = open.pop() {
        waits[as_index(node)] = false;
        let fact = fact(network, node, &facts, &leads[as_index(node)]);
        if std::mem::replace(&mut facts[as_index(node)], fact) != fact {
            for &user in &told[as_index(node)] {
                if !std::mem::replace(&mut waits[as_index(user)], true) {
                    open.push(user);
                }
            }
        }
    }
    facts
}

/// The bytes that a node itself may read first.
fn lead(node: &Node) -> ByteSet {
    let mut bytes = ByteSet::default();
    match node {
        Node::Text(text, _) => bytes.extend(text.first().copied()),
        Node::Character(class, _) => leads_of(class, &mut bytes),
        Node::Byte(class, _) => bytes_of(class, &mut bytes),
        Node::Automaton(automaton, _) => {
            automaton.states()[0].edges.iter().for_each(|edge| bytes.extend(edge.first..=edge.last));
        }
        Node::LengthBounded(..) | Node::Spelled(..) => bytes.extend([b'"']),
        Node::Substrings(text, _) => {
            bytes.extend(
                (0..text.len()).filter(|&at| text.is_char_boundary(at)).map(|at| text.as_bytes()[at]),
            );
        }
        _ => {}
    }
    bytes
}

fn leads_of(class: &ClassUnicode, bytes: &mut ByteSet) {
    for range in class.ranges() {
        for sequence in Utf8Sequences::new(range.start(), range.end()) {
            sequence.as_slice().iter().take(1).for_each(|range| bytes.extend(range.start..=range.end));
        }
    }
}

fn bytes_of(class: &ClassBytes, bytes: &mut ByteSet) {
    class.ranges().iter().for_each(|range| bytes.extend(range.start()..=range.end()));
}

fn fact(network: &Network, node: NetNode, facts: &[Fact], lead: &ByteSet) -> Fact {
    let of = |node: NetNode| facts[as_index(node)];
    let part = |part: PartId| facts[as_index(network.part(part).start)];
    let after_read = |next: NetNode| {
        let productive = of(next).productive && *lead != ByteSet::default();
        Fact { productive, nullable: false, first: if productive { *lead } else { ByteSet::default() } }
    };
    match network.node(node) {
        Node::Ways(ways) => ways.iter().fold(Fact::default(), |all, &way| either(all, of(way))),
        Node::Text(_, next) | Node::Character(_, next) | Node::Byte(_, next) => after_read(*next),
        Node::Automaton(automaton, next) if automaton.states()[0].accepts => {
            either(after_read(*next), of(*next))
        }
        Node::Automaton(_, next) | Node::LengthBounded(_, next) | Node::Spelled(_, next) => after_read(*next),
        Node::Substrings(_, next) => either(after_read(*next), of(*next)),
        Node::Call(called, next) => both(part(*called), of(*next)),
        Node::Repeat { part: body, min, .. } => {
            let skips = *min == 0 || part(*body).nullable;
            let skipped = Fact { productive: skips, nullable: skips, first: ByteSet::default() };
            either(skipped, part(*body))
        }
        Node::List { list, .. } => {
            let parts = &network.lists[*list].parts;
            parts.iter().fold(Fact::default(), |all, &one| either(all, part(one)))
        }
        Node::Separator { list, .. } => {
            let ended = Fact { productive: true, nullable: true, first: ByteSet::default() };
            either(ended, part(network.lists[*list].separator))
        }
        Node::End => Fact { productive: true, nullable: true, first: ByteSet::default() },
    }
}

/// The facts about the place where a node goes on after a call; a repeat may be over there.
fn after(network: &Network, node: NetNode, facts: &[Fact]) -> Fact {
    let fact = facts[as_index(network.after_call(node))];
    match network.node(node) {
        Node::Repeat { .. } => Fact { productive: true, nullable: true, ..fact },
        _ => fact,
    }
}

fn either(mut one: Fact, other: Fact) -> Fact {
    one.productive |= other.productive;
    one.nullable |= other.nullable;
    one.first.union_with(&other.first);
    one
}

fn both(mut one: Fact, next: Fact) -> Fact {
    if !(one.productive && next.productive) {
        return Fact::default();
    }
    if one.nullable {
        one.first.union_with(&next.first);
    }
    one.nullable &= next.nullable;
    one
}

/// The FOLLOW set of each part.
fn follow(network: &Network, facts: &[Fact]) -> Vec<Next> {
    let parts = network.parts().len();
    let mut follow = vec![Next::default(); parts];
    follow[as_index(network.root)].end = true;
    // For each part, the parts that end where it does, so that its FOLLOW set is part of theirs.
    let mut ends_with: Vec<Vec<PartId>> = vec![Vec::new(); parts];
    for node in (0..).take(network.nodes().len()) {
        let after = after(network, node, facts);
        if !after.productive {
            continue;
        }
        for &part in network.calls(node) {
            follow[as_index(part)].bytes.union_with(&after.first);
            if after.nullable {
                ends_with[as_index(network.owner(node))].push(part);
            }
        }
    }
    let mut open: Vec<PartId> = (0..).take(parts).collect();
    while let Some(part) = open.pop() {
        let more = follow[as_index(part)];
        for &last in &ends_with[as_index(part)] {
            let before = follow[as_index(last)];
            follow[as_index(last)].extend(&more);
            if follow[as_index(last)] != before {
                open.push(last);
            }
        }
    }
    follow
}

/// The parts that may call themselves where they began, and end where that call does.
fn cyclic(network: &Network, facts: &[Fact]) -> Vec<bool> {
    let parts = network.parts().len();
    let mut alone: Vec<Vec<usize>> = vec![Vec::new(); parts];
    let mut seen = vec![false; network.nodes().len()];
    for (part, alone) in network.parts().iter().zip(&mut alone) {
        // The nodes that can be reached without reading anything.
        let mut open = vec![part.start];
        while let Some(node) = open.pop() {
            if std::mem::replace(&mut seen[as_index(node)], true) {
                continue;
            }
            let calls = network.calls(node).iter().map(|&part| as_index(part));
            let once = match network.node(node) {
                Node::Repeat { min, .. } => *min <= 1 || facts[as_index(node)].nullable,
                _ => after(network, node, facts).nullable,
            };
            if once {
                alone.extend(calls.clone());
            }
            let reads_nothing = |part: usize| facts[as_index(network.parts()[part].start)].nullable;
            match network.node(node) {
                Node::Ways(ways) => open.extend(ways),
                Node::Automaton(automaton, next) if automaton.states()[0].accepts => open.push(*next),
                Node::Substrings(_, next) => open.push(*next),
                Node::Repeat { out, .. } => open.push(*out),
                Node::Separator { out, .. } => open.push(*out),
                _ => {}
            }
            if calls.clone().any(reads_nothing) {
                open.push(network.after_call(node));
            }
        }
    }
    let mut cyclic = vec![false; parts];
    for component in components(parts, 0..parts, |part| alone[part].clone()) {
        let own = component.len() > 1 || component.iter().any(|&part| alone[part].contains(&part));
        component.into_iter().for_each(|part| cyclic[part] = own);
    }
    cyclic
}

//! Grammar -> recursive transition network, whose nodes read the text and call other parts of the network.
//!
//! A *part* can be called: it is a rule, a named group, or something that needs a memory or bounds of its own
//! (counted repeats and their bodies, lists in any order). Within a part, the successors of a node are in the
//! order in which a backtracking matcher tries them. For example, `r = "a"* x` is
//!
//! ```text
//! part r:  0: ways [1, 2]    1: text "a" -> 0    2: call x -> end
//! ```
//!
//! Invariant: no cycle of nodes within a part reads nothing. The body of a repeat that may read nothing is a
//! part of its own, and a repeat goes round by an empty body only to reach its least count.

use std::sync::Arc;

use regex_syntax::hir::{Class, ClassBytes, ClassUnicode, Hir, HirKind};

use crate::{
    grammar::{
        AnyOrder, Automaton, Expr, Grammar, LengthBounded, PatternKind, Spelled, any_order::OrderRules,
    },
    ids::{ExprId, Numbered, RuleId, as_index},
    limits::{Budget, LimitExceeded},
};

/// A node of the network.
pub(super) type NetNode = u32;
/// A part of the network.
pub(super) type PartId = u32;

/// A node: what happens at a place of the grammar.
#[derive(Debug)]
pub(super) enum Node {
    /// Goes on to one of these, in order of preference.
    Ways(Vec<NetNode>),
    /// Reads these bytes, of which there is at least one.
    Text(Box<[u8]>, NetNode),
    /// Reads a character.
    Character(ClassUnicode, NetNode),
    /// Reads a byte.
    Byte(ClassBytes, NetNode),
    /// Reads a text of the automaton, preferably the longest.
    Automaton(Automaton, NetNode),
    /// Reads a substring of the text, in whole characters, preferably the longest.
    Substrings(Arc<str>, NetNode),
    /// Reads a length-bounded string.
    LengthBounded(LengthBounded, NetNode),
    /// Reads a string that is spelled lazily.
    Spelled(Spelled, NetNode),
    /// Reads a part.
    Call(PartId, NetNode),
    /// Reads a part `min` to `max` times. The item's memory counts, only up to `min` if there is no `max`.
    Repeat { part: PartId, min: u32, max: Option<u32>, greedy: bool, out: NetNode },
    /// Reads a part of the list with this number; the memory says which parts have come.
    List { list: usize, separator: NetNode },
    /// Reads the separator of a list, or ends it.
    Separator { list: usize, again: NetNode, out: NetNode },
    /// The end of a part.
    End,
}

/// A part, which can be called.
#[derive(Debug)]
pub(super) struct NetworkPart {
    /// The first node.
    pub(super) start: NetNode,
    /// The last node.
    pub(super) end: NetNode,
    /// The names of its captures, as indices of [`Network::names`].
    pub(super) names: Vec<usize>,
    /// True if it is left out at the end of a capture.
    pub(super) ignored: bool,
}

/// Parts in any order.
#[derive(Debug)]
pub(super) struct NetworkList {
    pub(super) choice: OrderRules,
    /// The parts, ascending.
    pub(super) parts: Vec<PartId>,
    pub(super) separator: PartId,
}

/// The network of a grammar.
#[derive(Debug)]
pub(super) struct Network {
    nodes: Numbered<Node>,
    /// The part of each node.
    owners: Vec<PartId>,
    parts: Numbered<NetworkPart>,
    pub(super) lists: Vec<NetworkList>,
    pub(super) names: Vec<String>,
    pub(super) root: PartId,
}

impl Network {
    /// Makes the network of `grammar`, in which these rules are captured under these names. Linear.
    pub(super) fn new(
        grammar: &Grammar,
        captured: &[(RuleId, &str)],
        most: usize,
    ) -> Result<Self, LimitExceeded> {
        let network = Self {
            nodes: Numbered::default(),
            owners: Vec::new(),
            parts: Numbered::default(),
            lists: Vec::new(),
            names: Vec::new(),
            root: grammar.root().raw(),
        };
        let most = most.min(as_index(u32::MAX) - 1);
        let mut builder = Builder { grammar, network, work: Vec::new(), reads: reads(grammar), most };
        for _ in grammar.rules() {
            builder.part();
        }
        for &(rule, name) in captured {
            let name = builder.name(name);
            let names = &mut builder.network.parts[rule.index()].names;
            if !names.contains(&name) {
                names.push(name);
            }
        }
        for rule in grammar.ignored() {
            builder.network.parts[rule.index()].ignored = true;
        }
        for rule in grammar.rules() {
            let NetworkPart { start, end, .. } = builder.network.parts[rule.index()];
            builder.todo(NodeSource::Expr(grammar.rule_body(rule)), start, end);
            builder.work_off()?;
        }
        let mut network = builder.network;
        network.shorten();
        Ok(network)
    }

    pub(super) fn node(&self, node: NetNode) -> &Node {
        &self.nodes[as_index(node)]
    }

    pub(super) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub(super) fn part(&self, part: PartId) -> &NetworkPart {
        &self.parts[as_index(part)]
    }

    pub(super) fn parts(&self) -> &[NetworkPart] {
        &self.parts
    }

    /// The part of a node.
    pub(super) fn owner(&self, node: NetNode) -> PartId {
        self.owners[as_index(node)]
    }

    /// The parts that a node may call.
    pub(super) fn calls(&self, node: NetNode) -> &[PartId] {
        match self.node(node) {
            Node::Call(part, _) | Node::Repeat { part, .. } => std::slice::from_ref(part),
            Node::List { list, .. } => &self.lists[*list].parts,
            Node::Separator { list, .. } => std::slice::from_ref(&self.lists[*list].separator),
            _ => &[],
        }
    }

    /// The node at which a node goes on after a call.
    pub(super) fn after_call(&self, node: NetNode) -> NetNode {
        match *self.node(node) {
            Node::Call(_, next) => next,
            Node::List { separator, .. } => separator,
            Node::Separator { again, .. } => again,
            _ => node,
        }
    }

    /// Bypasses nodes with only one successor.
    fn shorten(&mut self) {
        let mut past: Vec<NetNode> = self.nodes.numbers().collect();
        let mut path = Vec::new();
        for node in 0..past.len() {
            // Such nodes form no cycle, since a cycle reads something.
            let mut last = past[node];
            while let Node::Ways(ways) = &self.nodes[as_index(last)]
                && let [only] = ways[..]
            {
                path.push(last);
                last = past[as_index(only)];
            }
            path.drain(..).for_each(|on_the_way| past[as_index(on_the_way)] = last);
        }
        let to = |node: &mut NetNode| *node = past[as_index(*node)];
        for node in &mut *self.nodes {
            match node {
                Node::Ways(ways) => ways.iter_mut().for_each(to),
                Node::Text(_, next)
                | Node::Character(_, next)
                | Node::Byte(_, next)
                | Node::Automaton(_, next)
                | Node::Substrings(_, next)
                | Node::LengthBounded(_, next)
                | Node::Spelled(_, next)
                | Node::Call(_, next) => to(next),
                Node::Repeat { out, .. } => to(out),
                Node::List { .. } | Node::Separator { .. } | Node::End => {}
            }
        }
        self.parts.iter_mut().for_each(|part| to(&mut part.start));
    }
}

/// The source of a stretch of nodes.
#[derive(Debug, Clone, Copy)]
enum NodeSource<'g> {
    Expr(ExprId),
    Hir(&'g Hir),
}

struct Builder<'g> {
    grammar: &'g Grammar,
    network: Network,
    /// The stretches still to be made, from one existing node to another.
    work: Vec<(NodeSource<'g>, NetNode, NetNode)>,
    /// True for expressions that surely read a byte.
    reads: Vec<bool>,
    most: usize,
}

impl<'g> Builder<'g> {
    fn node(&mut self, owner: PartId) -> NetNode {
        // Once they are used up, the first stands in for others, and `work_off` ends in an error.
        let Ok(node) = self.network.nodes.push(Node::Ways(Vec::new()), "places") else { return 0 };
        self.network.owners.push(owner);
        node
    }

    fn part(&mut self) -> PartId {
        // A part has two nodes of its own, so that these are used up first.
        let new = NetworkPart { start: 0, end: 0, names: Vec::new(), ignored: false };
        let Ok(part) = self.network.parts.push(new, "parts") else { return 0 };
        let (start, end) = (self.node(part), self.node(part));
        self.set(end, Node::End);
        let made = &mut self.network.parts[as_index(part)];
        (made.start, made.end) = (start, end);
        part
    }

    /// A new part that reads `source`.
    fn part_of(&mut self, source: NodeSource<'g>) -> PartId {
        let part = self.part();
        let NetworkPart { start, end, .. } = self.network.parts[as_index(part)];
        self.todo(source, start, end);
        part
    }

    fn name(&mut self, name: &str) -> usize {
        let names = &mut self.network.names;
        names.iter().position(|known| known == name).unwrap_or_else(|| {
            names.push(name.to_owned());
            names.len() - 1
        })
    }

    fn set(&mut self, node: NetNode, is: Node) {
        self.network.nodes[as_index(node)] = is;
    }

    fn todo(&mut self, source: NodeSource<'g>, from: NetNode, to: NetNode) {
        self.work.push((source, from, to));
    }

    fn work_off(&mut self) -> Result<(), LimitExceeded> {
        let grammar = self.grammar;
        while let Some((source, from, to)) = self.work.pop() {
            match source {
                NodeSource::Expr(expr) => self.expr(grammar.expr(expr), from, to),
                NodeSource::Hir(hir) => self.hir(hir, from, to),
            }
            if self.network.nodes.len() > self.most {
                return Err(LimitExceeded::new(Budget::Symbols, "places of a grammar", self.most));
            }
        }
        Ok(())
    }

    fn expr(&mut self, expr: &'g Expr, from: NetNode, to: NetNode) {
        match expr {
            Expr::Pattern(pattern) => match pattern.kind() {
                PatternKind::Expression(hir) => self.todo(NodeSource::Hir(hir), from, to),
                PatternKind::Automaton(automaton) => {
                    self.set(from, Node::Automaton(automaton.clone(), to));
                }
                PatternKind::Substrings(text) => self.set(from, Node::Substrings(Arc::clone(text), to)),
                PatternKind::LengthBounded(bounded) => {
                    self.set(from, Node::LengthBounded(bounded.clone(), to))
                }
                PatternKind::Spelled(spelled) => self.set(from, Node::Spelled(spelled.clone(), to)),
            },
            Expr::Rule(rule) => self.set(from, Node::Call(rule.raw(), to)),
            Expr::Sequence(parts) => self.sequence(parts.iter().copied().map(NodeSource::Expr), from, to),
            Expr::Alternatives(parts) => {
                self.alternatives(parts.iter().copied().map(NodeSource::Expr), from, to);
            }
            Expr::Repeat { part, min, max } => {
                self.repeat(NodeSource::Expr(*part), (*min, *max), true, from, to);
            }
            Expr::AnyOrder(list) => self.list(list, from, to),
        }
    }

    fn hir(&mut self, hir: &'g Hir, from: NetNode, to: NetNode) {
        match hir.kind() {
            HirKind::Empty => self.set(from, Node::Ways(vec![to])),
            HirKind::Literal(literal) => self.set(from, Node::Text(literal.0.clone(), to)),
            HirKind::Class(Class::Unicode(class)) => self.set(from, Node::Character(class.clone(), to)),
            HirKind::Class(Class::Bytes(class)) => self.set(from, Node::Byte(class.clone(), to)),
            // Patterns have no look-around.
            HirKind::Look(_) => {}
            HirKind::Repetition(repeat) => {
                let counts = (repeat.min, repeat.max);
                self.repeat(NodeSource::Hir(&repeat.sub), counts, repeat.greedy, from, to);
            }
            HirKind::Capture(group) => match &group.name {
                Some(name) => {
                    let name = self.name(name);
                    let part = self.part_of(NodeSource::Hir(&group.sub));
                    self.network.parts[as_index(part)].names.push(name);
                    self.set(from, Node::Call(part, to));
                }
                None => self.todo(NodeSource::Hir(&group.sub), from, to),
            },
            HirKind::Concat(parts) => self.sequence(parts.iter().map(NodeSource::Hir), from, to),
            HirKind::Alternation(parts) => self.alternatives(parts.iter().map(NodeSource::Hir), from, to),
        }
    }

    fn sequence(&mut self, parts: impl ExactSizeIterator<Item = NodeSource<'g>>, from: NetNode, to: NetNode) {
        let owner = self.network.owner(from);
        let (mut at, mut left) = (from, parts.len());
        if left == 0 {
            self.set(from, Node::Ways(vec![to]));
        }
        for part in parts {
            left -= 1;
            let next = if left == 0 { to } else { self.node(owner) };
            self.todo(part, at, next);
            at = next;
        }
    }

    fn alternatives(&mut self, parts: impl Iterator<Item = NodeSource<'g>>, from: NetNode, to: NetNode) {
        let owner = self.network.owner(from);
        let mut ways = Vec::new();
        for part in parts {
            let way = self.node(owner);
            self.todo(part, way, to);
            ways.push(way);
        }
        self.set(from, Node::Ways(ways));
    }

    /// True if the source surely reads a byte.
    fn reads(&self, source: NodeSource<'_>) -> bool {
        match source {
            NodeSource::Expr(expr) => self.reads[expr.index()],
            NodeSource::Hir(hir) => hir.properties().minimum_len().is_none_or(|least| least > 0),
        }
    }

    fn repeat(
        &mut self,
        source: NodeSource<'g>,
        (min, max): (u32, Option<u32>),
        greedy: bool,
        from: NetNode,
        to: NetNode,
    ) {
        let owner = self.network.owner(from);
        let ways = |body, out| Node::Ways(if greedy { vec![body, out] } else { vec![out, body] });
        match (min, max) {
            (_, Some(0)) => self.set(from, Node::Ways(vec![to])),
            (1, Some(1)) => self.todo(source, from, to),
            (0, Some(1)) => {
                let body = self.node(owner);
                self.set(from, ways(body, to));
                self.todo(source, body, to);
            }
            (0, None) if self.reads(source) => {
                let body = self.node(owner);
                self.set(from, ways(body, to));
                self.todo(source, body, from);
            }
            (1, None) if self.reads(source) => {
                let (body, again) = (self.node(owner), self.node(owner));
                self.set(from, Node::Ways(vec![body]));
                self.set(again, ways(body, to));
                self.todo(source, body, again);
            }
            _ => {
                let (repeat, part) = (self.part(), self.part_of(source));
                let NetworkPart { start, end: out, .. } = self.network.parts[as_index(repeat)];
                self.set(start, Node::Repeat { part, min, max, greedy, out });
                self.set(from, Node::Call(repeat, to));
            }
        }
    }

    fn list(&mut self, of: &AnyOrder, from: NetNode, to: NetNode) {
        let whole = self.part();
        let NetworkPart { start, end: out, .. } = self.network.parts[as_index(whole)];
        let parts = of.parts.iter().map(|part| self.part_of(NodeSource::Expr(part.expr))).collect();
        let separator_part = self.part_of(NodeSource::Expr(of.separator));
        let choice = OrderRules::new(of, |_| true, true);
        if choice.has_list() {
            let list = self.network.lists.len();
            let separator = self.node(whole);
            self.network.lists.push(NetworkList { choice, parts, separator: separator_part });
            self.set(start, Node::List { list, separator });
            self.set(separator, Node::Separator { list, again: start, out });
        }
        self.set(from, Node::Call(whole, to));
    }
}

/// True for expressions that surely read a byte. Rules are followed only one level deep, so this is linear
/// and no fixpoint.
fn reads(grammar: &Grammar) -> Vec<bool> {
    let mut reads = vec![false; grammar.exprs().len()];
    for _ in 0..2 {
        for (id, expr) in grammar.exprs() {
            reads[id.index()] = match expr {
                Expr::Pattern(pattern) => match pattern.kind() {
                    PatternKind::Expression(hir) => {
                        hir.properties().minimum_len().is_none_or(|least| least > 0)
                    }
                    PatternKind::Automaton(automaton) => !automaton.states()[0].accepts,
                    PatternKind::Substrings(_) => false,
                    // They have at least two quotes.
                    PatternKind::LengthBounded(_) | PatternKind::Spelled(_) => true,
                },
                Expr::Rule(rule) => reads[grammar.rule_body(*rule).index()],
                Expr::Sequence(parts) => parts.iter().any(|part| reads[part.index()]),
                Expr::Alternatives(parts) => parts.iter().all(|part| reads[part.index()]),
                Expr::Repeat { part, min, .. } => *min > 0 && reads[part.index()],
                Expr::AnyOrder(list) => list.parts.iter().all(|part| reads[part.expr.index()]),
            };
        }
    }
    reads
}

//! Views of the terminals: their source, their size, the tokens that lie inside them, their automata and
//! their subterminal trees.

use std::{collections::HashSet, ops::RangeInclusive, sync::Arc};

use super::Inspection;
use crate::grammar::{
    Span,
    spelled::{MayNumber, Unfolded},
};
use crate::ids::{RuleId, TerminalId, TokenId, TrieNodeId, numbered};
use crate::scanner::{NONE, TerminalDfa};
use crate::subterminal::{Forest, TreeNodeId};
use crate::vocab::{ByteTrie, TokenSet};

/// Number of steps of a scanner state over a trie node that [`Inspection::tokens_inside`] makes at most.
const MAX_STEPS: usize = 20_000_000;

/// A terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TerminalView {
    /// The terminal's number.
    pub terminal: TerminalId,
    /// The name of its rule, or its text.
    pub name: String,
    /// The rule in which it first occurs.
    pub rule: RuleId,
    /// The part of the grammar text that it was first made from; empty if lowering wrote that part anew.
    pub span: Span,
    /// Number of states of its DFA.
    pub states: usize,
    /// Number of byte classes of its DFA.
    pub byte_classes: usize,
    /// Are its texts of bounded length?
    pub finite: bool,
    /// The rules whose productions use it, ascending.
    pub users: Vec<RuleId>,
}

impl Inspection {
    /// The terminals, by number.
    pub fn terminals(&self) -> impl ExactSizeIterator<Item = TerminalView> + '_ {
        let lowered = &self.program().lowered;
        numbered(lowered.scanner.dfas()).map(|(number, dfa)| {
            let terminal = TerminalId::new(number);
            let origin = &lowered.provenance.terminals[terminal.index()];
            TerminalView {
                terminal,
                name: lowered.terminal_name(terminal),
                rule: origin.rule,
                span: origin.span,
                states: dfa.len(),
                byte_classes: dfa.class_count(),
                finite: dfa.is_finite(),
                users: self.marks.users(terminal).to_vec(),
            }
        })
    }

    /// Returns the tokens that can lie wholly inside a terminal, wherever in it they begin: they need no
    /// parser. `None` if there is no such terminal, or the search would take over 20 million steps (about 0.1
    /// s).
    #[must_use]
    pub fn tokens_inside(&self, terminal: TerminalId) -> Option<TokenSet> {
        let scanner = &self.program().lowered.scanner;
        if terminal.index() >= scanner.terminal_count() {
            return None;
        }
        let dfa = &*scanner.dfa(terminal).of_a_walk();
        let states: Vec<u32> = match (dfa.bounded(), dfa.spelled()) {
            (Some((bounded, _)), _) => bounded.reached(MAX_STEPS / 256)?,
            (_, Some((spelled, _))) => {
                let number = |at| spelled.number(at, MayNumber::Yes).ok();
                spelled.reached(MAX_STEPS / 256)?.into_iter().map(number).collect::<Option<_>>()?
            }
            // What is a substring behind another is one by itself.
            _ => (0..).take(if dfa.is_table() { dfa.len() } else { 1 }).collect(),
        };
        inside(dfa, self.program().vocabulary.trie(), states, self.program().vocabulary.size())
    }
}

/// Returns the tokens that any of the states of one terminal can read wholly: one walk of the trie with all
/// states at once, which soon become few.
fn inside(dfa: &TerminalDfa, trie: &ByteTrie, all: Vec<u32>, size: usize) -> Option<TokenSet> {
    let mut tokens = TokenSet::empty(size);
    let last = trie.end(ByteTrie::ROOT);
    let mut path: Vec<(TrieNodeId, Vec<u32>)> = vec![(last, all)];
    let mut node = TrieNodeId::new(ByteTrie::ROOT.raw() + 1);
    let mut steps = 0;
    while node < last {
        while path.last().is_some_and(|(end, _)| *end <= node) {
            path.pop();
        }
        let (_, states) = path.last()?;
        steps += states.len();
        if steps > MAX_STEPS {
            return None;
        }
        let byte = trie.byte(node);
        let mut next: Vec<u32> = states.iter().filter_map(|&state| dfa.step(state, byte)).collect();
        next.sort_unstable();
        next.dedup();
        if next.is_empty() {
            node = trie.end(node);
            continue;
        }
        trie.tokens_at(trie.own_tokens(node)).iter().for_each(|&token| tokens.insert(token));
        path.push((trie.end(node), next));
        node = TrieNodeId::new(node.raw() + 1);
    }
    Some(tokens)
}

/// An inclusive range of bytes.
pub type ByteRange = RangeInclusive<u8>;

/// A terminal's minimal DFA. State 0 is the start; from every state the terminal can still end.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AutomatonView {
    /// The states, by number.
    pub states: Vec<StateView>,
}

/// A state of a DFA.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StateView {
    /// May the terminal end here?
    pub accepting: bool,
    /// The transitions, one for each next state, in order of that state's number.
    pub transitions: Vec<TransitionView>,
}

/// A transition of a DFA.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransitionView {
    /// The bytes, as ascending ranges that do not touch.
    pub bytes: Vec<ByteRange>,
    /// The next state.
    pub to: u32,
}

impl Inspection {
    /// Returns the DFA of a terminal, if there is one of this number and its states are in a table, as all
    /// are but those of the substrings of long texts and of strings of counted characters. 256 lookups for
    /// each state.
    #[must_use]
    pub fn automaton(&self, terminal: TerminalId) -> Option<AutomatonView> {
        let scanner = &self.program().lowered.scanner;
        let dfa = (terminal.index() < scanner.terminal_count()).then(|| scanner.dfa(terminal))?;
        if !dfa.is_table() {
            return None;
        }
        let state = |(row, accepting): (&[u32], &bool)| {
            let mut transitions: Vec<TransitionView> = Vec::new();
            for byte in 0..=u8::MAX {
                let to = row[usize::from(dfa.classes()[usize::from(byte)])];
                if to == NONE {
                    continue;
                }
                let at = transitions.binary_search_by_key(&to, |transition| transition.to);
                let at = at.unwrap_or_else(|at| {
                    transitions.insert(at, TransitionView { bytes: Vec::new(), to });
                    at
                });
                add(&mut transitions[at].bytes, byte);
            }
            StateView { accepting: *accepting, transitions }
        };
        let rows = dfa.transitions().chunks_exact(dfa.class_count());
        Some(AutomatonView { states: rows.zip(dfa.accepting()).map(state).collect() })
    }
}

/// Adds a byte above all others.
fn add(ranges: &mut Vec<ByteRange>, byte: u8) {
    match ranges.last_mut() {
        Some(last) if last.end().checked_add(1) == Some(byte) => *last = *last.start()..=byte,
        _ => ranges.push(byte..=byte),
    }
}

/// The tree of a scanner state.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TreeView {
    /// The terminal that the text is inside of.
    pub terminal: TerminalId,
    /// The state of its DFA.
    pub scanner_state: u32,
    /// Nodes: sequences of terminals that tokens spell, the state's own terminal first.
    pub nodes: usize,
    /// Number of terminals in the longest sequence.
    pub depth: usize,
    /// Tokens in all nodes; a token counts once for each way to spell it.
    pub tokens: usize,
    /// Number of places inside tokens where a node's terminal may end and another begin, in all nodes.
    pub exits: usize,
    /// Memory, in bytes; what trees share counts for the first of them.
    pub bytes: usize,
    /// Nodes whose children were not made because memory ran out: masks walk the vocabulary there.
    pub open: usize,
}

/// A node of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TreeNodeView {
    /// Index of the parent in the list; `None` for the root.
    pub parent: Option<usize>,
    /// The last terminal of its sequence.
    pub terminal: TerminalId,
    /// Tokens that end inside that terminal or just as it may end.
    pub tokens: usize,
    /// The first few of them.
    pub examples: Vec<TokenId>,
    /// Places inside tokens where the terminal may end and another begin.
    pub exits: usize,
    /// Children; `None` if they were not made.
    pub children: Option<usize>,
}

/// Number of tokens given as examples of a node.
const MOST_EXAMPLES: usize = 5;

impl Inspection {
    /// Lists the trees, by terminal and scanner state. [Grows](crate::CompiledGrammar::grow_trees) those not
    /// yet there.
    #[must_use]
    pub fn trees(&self) -> Vec<TreeView> {
        let Some(forest) = self.forest() else { return Vec::new() };
        let scanner = &self.program().lowered.scanner;
        let (mut nodes_seen, mut rows_seen) = (HashSet::new(), HashSet::new());
        let view = |(state, root)| {
            let mut view = TreeView {
                terminal: scanner.terminal(state),
                scanner_state: scanner.local(state),
                nodes: 0,
                depth: 0,
                tokens: 0,
                exits: 0,
                bytes: 0,
                open: 0,
            };
            let mut open = vec![(root, 1)];
            while let Some((node, depth)) = open.pop() {
                let reach = forest.reach(node);
                view.nodes += 1;
                view.depth = view.depth.max(depth);
                view.tokens += reach.tokens().len();
                view.exits += reach.exits().total();
                if nodes_seen.insert(node) {
                    let (_, contents) = forest.contents(node);
                    let own = if rows_seen.insert(contents) { reach.bytes() } else { 0 };
                    view.bytes += Forest::NODE_BYTES + own;
                }
                match forest.made(node) {
                    Some(children) => open.extend(children.map(|child| (forest.child(child).1, depth + 1))),
                    None => view.open += 1,
                }
            }
            view
        };
        forest.trees().into_iter().map(view).collect()
    }

    /// Returns the first nodes of a tree, parents before children, at most `most`; `None` if there is no such
    /// scanner state. [Grows](crate::CompiledGrammar::grow_trees) all trees if they are not there.
    #[must_use]
    pub fn tree(&self, terminal: TerminalId, scanner_state: u32, most: usize) -> Option<Vec<TreeNodeView>> {
        let scanner = &self.program().lowered.scanner;
        let forest = self.forest()?;
        let is_it = |state| scanner.terminal(state) == terminal && scanner.local(state) == scanner_state;
        let (_, root) = forest.trees().into_iter().find(|(state, _)| is_it(*state))?;
        let mut nodes: Vec<TreeNodeView> = Vec::new();
        let mut open: std::collections::VecDeque<(Option<usize>, TreeNodeId)> = [(None, root)].into();
        while nodes.len() < most
            && let Some((parent, node)) = open.pop_front()
        {
            let reach = forest.reach(node);
            let children = forest.made(node);
            let here = nodes.len();
            nodes.push(TreeNodeView {
                parent,
                terminal: forest.terminal(node),
                tokens: reach.tokens().len(),
                examples: reach.tokens().iter().take(MOST_EXAMPLES).collect(),
                exits: reach.exits().total(),
                children: children.as_ref().map(ExactSizeIterator::len),
            });
            // No more than can still be shown.
            let room = most.saturating_sub(nodes.len() + open.len());
            open.extend(
                children.into_iter().flatten().take(room).map(|child| (Some(here), forest.child(child).1)),
            );
        }
        Some(nodes)
    }

    fn forest(&self) -> Option<&Arc<Forest>> {
        self.grammar.grow_trees();
        self.program().grown.get()
    }
}

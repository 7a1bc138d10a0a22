//! Views of the terminals: their source, their size, and the tokens that lie inside them.

use super::Inspection;
use crate::{
    grammar::{
        Span,
        spelled::{MayNumber, Unfolded},
    },
    ids::{RuleId, TerminalId, TrieNodeId, numbered},
    scanner::TerminalDfa,
    vocab::{ByteTrie, TokenSet},
};

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

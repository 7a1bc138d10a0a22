//! Facts about the productions that all views share: recursion, and the users of terminals.

use crate::{
    automata::components,
    ids::{RuleId, TerminalId},
    lower::{AfterDot, Cfg, Lowered},
};

/// Facts about nonterminals and terminals, by number.
#[derive(Debug)]
pub(super) struct SymbolFacts {
    /// Can a text of the nonterminal begin with one of itself?
    pub(super) left_recursive: Vec<bool>,
    /// Can it end with one of itself?
    pub(super) right_recursive: Vec<bool>,
    /// Can it be nothing but itself?
    pub(super) cyclic: Vec<bool>,
    /// Nonterminals of one number lead to each other.
    pub(super) component: Vec<usize>,
    /// Nonterminals of one number can begin with each other.
    pub(super) left_component: Vec<usize>,
    /// Nonterminals of one number can end with each other.
    pub(super) right_component: Vec<usize>,
    /// The rules whose productions use the terminal, ascending.
    users: Vec<Vec<RuleId>>,
}

impl SymbolFacts {
    /// Computes all facts. Linear in the productions.
    pub(super) fn new(lowered: &Lowered) -> Self {
        let cfg = &lowered.cfg;
        let edges = Edges::new(cfg);
        let mut users: Vec<Vec<RuleId>> = vec![Vec::new(); lowered.scanner.terminal_count()];
        let mut uses: Vec<Vec<usize>> = vec![Vec::new(); cfg.nonterminal_count()];
        for (dot, slot) in cfg.dots() {
            match slot {
                AfterDot::Terminal(terminal) => users[terminal.index()].push(lowered.rule_of(cfg.lhs(dot))),
                AfterDot::Nonterminal(used) => uses[cfg.lhs(dot).index()].push(used.index()),
                AfterDot::End(_) => {}
            }
        }
        for rules in &mut users {
            rules.sort_unstable();
            rules.dedup();
        }
        let (left_recursive, left_component) = on_cycles(&edges.left);
        let (right_recursive, right_component) = on_cycles(&edges.right);
        let ((cyclic, _), (_, component)) = (on_cycles(&edges.unit), on_cycles(&uses));
        Self { left_recursive, right_recursive, cyclic, component, left_component, right_component, users }
    }

    /// The rules whose productions use the terminal.
    pub(super) fn users(&self, terminal: TerminalId) -> &[RuleId] {
        &self.users[terminal.index()]
    }
}

/// True for a symbol that may be empty.
pub(super) fn is_nullable(cfg: &Cfg, slot: AfterDot) -> bool {
    matches!(slot, AfterDot::Nonterminal(symbol) if cfg.is_nullable(symbol))
}

/// The nonterminals that each nonterminal can begin with, end with, or be.
struct Edges {
    left: Vec<Vec<usize>>,
    right: Vec<Vec<usize>>,
    unit: Vec<Vec<usize>>,
}

impl Edges {
    /// Finds the corners of all productions. Linear.
    fn new(cfg: &Cfg) -> Self {
        let none = || vec![Vec::new(); cfg.nonterminal_count()];
        let mut edges = Self { left: none(), right: none(), unit: none() };
        let mut row: Vec<AfterDot> = Vec::new();
        for number in cfg.nonterminals() {
            for &first in cfg.productions(number) {
                row.clear();
                row.extend(cfg.symbols(first));
                let nullable = |slot: &&AfterDot| is_nullable(cfg, **slot);
                // Symbols up to the first, and from the last, that cannot be empty.
                let head = (row.iter().take_while(nullable).count() + 1).min(row.len());
                let tail = row.len() - (row.iter().rev().take_while(nullable).count() + 1).min(row.len());
                let corner = |slot: &AfterDot| match slot {
                    AfterDot::Nonterminal(symbol) => Some(symbol.index()),
                    _ => None,
                };
                edges.left[number.index()].extend(row[..head].iter().filter_map(corner));
                edges.right[number.index()].extend(row[tail..].iter().filter_map(corner));
                edges.unit[number.index()].extend(row[tail.min(head)..head].iter().filter_map(corner));
            }
        }
        edges
    }
}

/// Marks the nodes that lie on a cycle, and numbers the strongly connected components.
fn on_cycles(edges: &[Vec<usize>]) -> (Vec<bool>, Vec<usize>) {
    let (mut found, mut component_of) = (vec![false; edges.len()], vec![0; edges.len()]);
    let components = components(edges.len(), 0..edges.len(), |node| edges[node].clone());
    for (number, component) in components.iter().enumerate() {
        for &node in component {
            found[node] = component.len() > 1 || edges[node].contains(&node);
            component_of[node] = number;
        }
    }
    (found, component_of)
}

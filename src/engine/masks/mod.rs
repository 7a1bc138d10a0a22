//! Masks: the tokens that may follow, made by subterminal trees and kept in bounded memory. The maker follows
//! the trees as far as the parser accepts, and unites the tokens met there.
//!
//! *Invariant:* a mask is what its state's threads and the parser say, whether it is made or found. What
//! readers of JSON take from it is not here: these masks are the grammar's, and all texts share them.
//!
//! Below it are the program, the parser and the trees. Above it is the machine, which asks for the masks of
//! its states, and where trees take too much work walks the trie instead: that walk steps the machine, so it
//! is there (`machine/trie_walk.rs`).

mod cache;

use std::{ops::Range, sync::Arc};

use hashbrown::{HashMap, HashSet, hash_map::Entry};

use crate::ids::{SetId, StateId, TerminalId, TokenId};
use crate::limits::{Budget, LimitExceeded, Work};
use crate::program::{Program, Thread};
use crate::subterminal::{
    Branch, Branches, Forest, Grow, Lookahead, Siblings, TokenList, TreeInputs, TreeNodeId,
};
use crate::{parser::Parser, vocab::TokenSet};

pub(crate) use cache::{Enclosed, GrammarMask, MaskCache, SharedEnclosed};

/// Tree nodes that one mask makes at most, at about 2 us each: trees that tokens can cross in very many ways
/// grow over several masks.
const GROWTH: usize = 4_000;

/// Work of a place that the parser reaches in a tree.
const VISIT_WORK: usize = 8;

/// Work that trees may take for each trie node before the trie is walked instead. About what that walk costs,
/// so that trying trees in vain at most doubles it, and enough for two rows of terminals that most tokens go
/// on in, with their children.
const TREE_WORK_OF_NODE: usize = 2;

/// Exponential back-off: each failure of trees halves the work for the next mask, at most this many times.
/// Trees that are there already need little.
const MOST_FAILURES: u32 = 5;

/// Makes masks; keeps the trees.
#[derive(Debug)]
pub(crate) struct MaskMaker {
    forest: Forest,
    /// Have the trees grown ahead been taken over?
    grown: bool,
    /// Children of nodes by what alone they depend on, the terminal and the address of the contents: nodes
    /// that agree in both share their children.
    known: HashMap<(TerminalId, usize), Range<u32>>,
    /// Children that are made one by one, by the same key; `None` if a node has all at once.
    branches: HashMap<(TerminalId, usize), Option<Box<Branches>>>,
    siblings: Siblings,
    /// By terminal: do tokens [spell](TreeInputs::spells) it, character by character?
    spelling: HashMap<TerminalId, bool>,
    // Scratch.
    open: Vec<Visit>,
    seen: HashSet<Visit>,
    reached: Vec<TreeNodeId>,
    recipe: Vec<usize>,
    /// Number of the last mask that reached each tree node.
    marks: Vec<u32>,
    mask: u32,
    /// Masks for which trees recently took too much work; a success cancels a failure.
    failures: u32,
}

/// A tree node reached by a parser: its terminal was started in `set`, and `left` more terminals may follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Visit {
    node: TreeNodeId,
    set: SetId,
    left: u32,
}

/// A request for a mask.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MaskRequest<'a> {
    pub(crate) state: StateId,
    /// Threads of the state, sorted by set and scanner state.
    pub(crate) threads: &'a [Thread],
    /// Tokens that may follow besides: those of the end of text, or none.
    pub(crate) also: &'a [TokenId],
}

impl MaskMaker {
    pub(crate) fn new(shared: &Program) -> Self {
        Self {
            forest: Forest::new(shared.limits.tree_bytes),
            grown: false,
            known: HashMap::new(),
            branches: HashMap::new(),
            siblings: Siblings::default(),
            spelling: HashMap::new(),
            open: Vec::new(),
            seen: HashSet::new(),
            reached: Vec::new(),
            recipe: Vec::new(),
            marks: Vec::new(),
            mask: 0,
            failures: 0,
        }
    }

    /// Memory of its own trees, in bytes, without what tables of terminals have as well.
    pub(crate) fn tree_bytes(&self) -> usize {
        let trees = if self.grown { self.forest.list_bytes() } else { self.forest.own_bytes() };
        let branches = self.branches.values().flatten().map(|branches| branches.bytes()).sum::<usize>();
        trees + branches + self.siblings.bytes()
    }

    /// Makes the set of tokens that may follow and files it under the state. Tokens that stay in a terminal
    /// need no parser; an edge is followed only if the parser can shift (paper, 3.4). `None` where trees do
    /// not pay: the terminals there follow each other in too many ways.
    pub(crate) fn make(
        &mut self,
        shared: &Program,
        parser: &mut Parser,
        asked: &MaskRequest<'_>,
        masks: &mut MaskCache,
        work: &mut Work,
    ) -> Result<Option<Arc<TokenSet>>, LimitExceeded> {
        if shared.limits.tree_work == 0 {
            return Ok(None);
        }
        let nodes = shared.vocabulary.trie().len();
        let whole = shared.limits.tree_work + nodes * TREE_WORK_OF_NODE;
        // Small vocabularies have trees even of these.
        if nodes > shared.limits.tree_work && self.is_spelling(shared, asked.threads) {
            return Ok(None);
        }
        let most = whole >> self.failures;
        let mut part = Work::new(work.left().min(most));
        let made = self.by_trees(shared, parser, asked, masks, &mut part);
        work.spend_part(&part)?;
        let had_all = part.limit() == most;
        let made = match made {
            Err(limit) if limit.budget() == Budget::StepWork => None,
            made => made?,
        };
        self.failures = match made {
            Some(_) => self.failures.saturating_sub(1),
            // At the end of a piece there may have been too little work to tell.
            None if had_all => (self.failures + 1).min(MOST_FAILURES),
            None => self.failures,
        };
        Ok(made)
    }

    /// Would trees that are still to be grown have a node for every character of most tokens? With a large
    /// vocabulary that costs more than it saves.
    fn is_spelling(&mut self, shared: &Program, threads: &[Thread]) -> bool {
        if shared.lookahead != Lookahead::Unbounded || shared.grown.get().is_some() {
            return false;
        }
        let terminals = threads.iter().map(|thread| shared.lowered.scanner.terminal(thread.scan));
        let spelling = &mut self.spelling;
        terminals.into_iter().any(|it| *spelling.entry(it).or_insert_with(|| shared.inputs().spells(it)))
    }

    /// Makes the mask by trees; `None` if memory or work runs out.
    fn by_trees(
        &mut self,
        shared: &Program,
        parser: &mut Parser,
        asked: &MaskRequest<'_>,
        masks: &mut MaskCache,
        work: &mut Work,
    ) -> Result<Option<Arc<TokenSet>>, LimitExceeded> {
        if !self.grown
            && let Some(grown) = shared.grown.get()
        {
            self.forest = Forest::clone(grown);
            self.grown = true;
            self.known.clear();
            self.branches.clear();
            self.siblings = Siblings::default();
            self.marks.clear();
            masks.forget_recipes();
        }
        self.next_mask();
        let result = self.reach(shared, parser, asked.threads, work).and_then(|is_all| {
            if is_all { self.union(shared, asked, masks, work).map(Some) } else { Ok(None) }
        });
        self.open.clear();
        self.seen.clear();
        self.reached.clear();
        result
    }

    /// Unites the tokens of the nodes that were reached. Most texts come to the same nodes again in other
    /// states.
    fn union(
        &mut self,
        shared: &Program,
        &MaskRequest { state, also, .. }: &MaskRequest<'_>,
        masks: &mut MaskCache,
        work: &mut Work,
    ) -> Result<Arc<TokenSet>, LimitExceeded> {
        /// No address, for the tokens besides: they are all that the end of text has.
        const ALSO: usize = 0;
        let Self { forest, reached, recipe, .. } = self;
        recipe.clear();
        let adds = |node: &&TreeNodeId| !forest.reach(**node).tokens().is_empty();
        recipe.extend(reached.iter().filter(adds).map(|&node| forest.contents(node).1));
        recipe.extend((!also.is_empty()).then_some(ALSO));
        recipe.sort_unstable();
        recipe.dedup();
        if let Some(mask) = masks.made_of(state, recipe) {
            return Ok(mask);
        }
        let mask = match reached[..] {
            [node] if also.is_empty() => match forest.reach(node).tokens() {
                TokenList::Many(tokens) => Some(Arc::clone(tokens)),
                TokenList::Few(_) => None,
            },
            _ => None,
        };
        let mask = match mask {
            Some(mask) => mask,
            None => {
                work.spend(reached.iter().map(|&node| union_work(forest.reach(node).tokens())).sum())?;
                let mut mask = union(forest, reached, shared.vocabulary.size());
                also.iter().for_each(|&token| mask.insert(token));
                mask.settle();
                Arc::new(mask)
            }
        };
        Ok(masks.keep_made(state, mask, recipe))
    }

    /// Follows the trees as far as the parser accepts and notes the nodes that it reaches. Returns whether
    /// all nodes were there, or could be grown within memory and the growth of one mask.
    fn reach(
        &mut self,
        shared: &Program,
        parser: &mut Parser,
        threads: &[Thread],
        work: &mut Work,
    ) -> Result<bool, LimitExceeded> {
        let (inputs, cfg) = (shared.inputs(), &shared.lowered.cfg);
        let left = match shared.lookahead {
            Lookahead::Terminals(k) => k,
            // No token spans as many terminals: each takes a byte.
            Lookahead::Unbounded => u32::MAX,
        };
        for &Thread { set, scan } in threads {
            let node = self.forest.root(inputs, scan, work)?;
            self.visit(Visit { node, set, left });
        }
        let most_nodes = self.forest.len() + GROWTH;
        while let Some(Visit { node, set, left }) = self.open.pop() {
            work.spend(VISIT_WORK)?;
            self.mark(node);
            if left == 0 || self.forest.reach(node).exits().is_empty() {
                continue;
            }
            let may = if self.forest.len() < most_nodes { Grow::Yes } else { Grow::No };
            if self.has_branches(inputs, node, work)? {
                if !self.enter_branches(shared, parser, (node, set, left), may, work)? {
                    return Ok(false);
                }
                continue;
            }
            let children = self.children(inputs, node, may, work)?;
            if children.as_ref().is_some_and(std::ops::Range::is_empty) {
                continue;
            }
            let Some(set) = parser.shift(cfg, set, self.forest.terminal(node), work)? else { continue };
            let left = next_left(left);
            let Some(children) = children else { return Ok(false) };
            work.spend(2 * children.len())?;
            for child in children {
                let (terminal, node) = self.forest.child(child);
                if parser.accepts_terminal(set, terminal) {
                    self.visit(Visit { node, set, left });
                }
            }
        }
        Ok(true)
    }

    /// Are the children of this node made one by one?
    fn has_branches(
        &mut self,
        inputs: TreeInputs<'_>,
        node: TreeNodeId,
        work: &mut Work,
    ) -> Result<bool, LimitExceeded> {
        if self.forest.made(node).is_some() {
            return Ok(false);
        }
        let place = self.siblings.place((&self.forest, node), &mut self.known, inputs, work)?;
        if self.known.contains_key(&place) {
            return Ok(false);
        }
        Ok(match self.branches.entry(place) {
            Entry::Occupied(known) => known.get().is_some(),
            Entry::Vacant(unknown) => {
                unknown.insert(self.forest.branches(inputs, node, work)?.map(Box::new)).is_some()
            }
        })
    }

    /// Visits those children that the parser accepts, of a node whose children are made one by one. Returns
    /// whether they were there or could be made.
    fn enter_branches(
        &mut self,
        shared: &Program,
        parser: &mut Parser,
        (node, set, left): (TreeNodeId, SetId, u32),
        may: Grow,
        work: &mut Work,
    ) -> Result<bool, LimitExceeded> {
        let place = self.siblings.place((&self.forest, node), &mut self.known, shared.inputs(), work)?;
        let Some(Some(branches)) = self.branches.get_mut(&place) else { return Ok(true) };
        if branches.is_empty() {
            return Ok(true);
        }
        let (inputs, cfg) = (shared.inputs(), &shared.lowered.cfg);
        let Some(set) = parser.shift(cfg, set, self.forest.terminal(node), work)? else { return Ok(true) };
        let accepts = parser.accepts(set);
        work.spend(1 + accepts.len())?;
        for &terminal in accepts {
            match self.forest.branch(inputs, branches, terminal, may, work)? {
                Branch::Nothing => {}
                Branch::Unmade => return Ok(false),
                Branch::Node(child) => {
                    let visit = Visit { node: child, set, left: next_left(left) };
                    note(&mut self.seen, &mut self.open, visit);
                }
            }
        }
        Ok(true)
    }

    /// Returns the node's children, which nodes with equal contents share.
    fn children(
        &mut self,
        inputs: TreeInputs<'_>,
        node: TreeNodeId,
        may: Grow,
        work: &mut Work,
    ) -> Result<Option<Range<u32>>, LimitExceeded> {
        if let Some(made) = self.forest.made(node) {
            return Ok(Some(made));
        }
        let place = self.siblings.place((&self.forest, node), &mut self.known, inputs, work)?;
        if let Some(known) = self.known.get(&place) {
            self.forest.share(node, known.clone());
            return Ok(Some(known.clone()));
        }
        let children = self.forest.children(inputs, node, may, work)?;
        if let Some(children) = &children {
            self.known.insert(place, children.clone());
        }
        Ok(children)
    }

    fn visit(&mut self, visit: Visit) {
        note(&mut self.seen, &mut self.open, visit);
    }

    fn next_mask(&mut self) {
        self.mask = self.mask.wrapping_add(1);
        if self.mask == 0 {
            self.marks.clear();
            self.mask = 1;
        }
    }

    fn mark(&mut self, node: TreeNodeId) {
        if node.index() >= self.marks.len() {
            self.marks.resize(self.forest.len(), 0);
        }
        if std::mem::replace(&mut self.marks[node.index()], self.mask) != self.mask {
            self.reached.push(node);
        }
    }
}

/// Notes a visit that is still to be made, unless it was noted before.
fn note(seen: &mut HashSet<Visit>, open: &mut Vec<Visit>, visit: Visit) {
    if seen.insert(visit) {
        open.push(visit);
    }
}

/// Units of work for adding these tokens to a mask.
fn union_work(tokens: &TokenList) -> usize {
    match tokens {
        TokenList::Few(tokens) => 1 + tokens.len() / 8,
        TokenList::Many(set) => 1 + set.size() / 1_024,
    }
}

/// Unites the tokens of these nodes.
fn union(forest: &Forest, nodes: &[TreeNodeId], size: usize) -> TokenSet {
    let sets = || nodes.iter().map(|&node| forest.reach(node).tokens());
    let few = || {
        sets().filter_map(|tokens| match tokens {
            TokenList::Few(tokens) => Some(&**tokens),
            TokenList::Many(_) => None,
        })
    };
    let mut many = sets().filter_map(|tokens| match tokens {
        TokenList::Many(set) => Some(set),
        TokenList::Few(_) => None,
    });
    let Some(first) = many.next() else {
        let mut all = Vec::with_capacity(few().map(<[TokenId]>::len).sum());
        few().for_each(|tokens| all.extend_from_slice(tokens));
        return TokenSet::of(all, size);
    };
    let mut mask = TokenSet::clone(first);
    many.for_each(|set| mask.union_with(set));
    few().flatten().for_each(|&token| mask.insert(token));
    mask
}

/// Counts `left` down by one terminal; `u32::MAX` means unbounded and stays.
fn next_left(left: u32) -> u32 {
    if left == u32::MAX { left } else { left - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Compiler, Grammar, Limits, Syntax, Vocabulary};

    /// Makes a text's first mask by trees and counts the work. Tokens are bytes and some pairs of them.
    fn made(grammar: &str, limits: Limits) -> (Option<Vec<TokenId>>, usize) {
        let mut builder = Vocabulary::builder().all_bytes().end_of_text(TokenId::new(256));
        for (pair, id) in ["((", "()", "(x", "x)", "xx"].into_iter().zip(257..) {
            builder = builder.token(TokenId::new(id), pair);
        }
        let grammar = Grammar::parse(Syntax::Gbnf, grammar, &limits).unwrap();
        let compiler = Compiler::new(builder.build().unwrap()).limits(limits);
        let compiled = compiler.compile(&grammar).unwrap();
        let program = compiled.program();
        let mut parser = Parser::new(&program.lowered.cfg, &program.limits, &mut Work::unlimited()).unwrap();
        let set = parser.start();
        let scan = |terminal: &TerminalId| program.lowered.scanner.start(*terminal);
        let threads = parser.accepts(set).iter().map(|terminal| Thread { set, scan: scan(terminal) });
        let mut threads: Vec<Thread> = threads.collect();
        threads.sort_unstable();
        let work = &mut Work::unlimited();
        let asked = MaskRequest { state: StateId::new(0), threads: &threads, also: &[] };
        let masks = &mut MaskCache::new(1 << 20);
        let mask = MaskMaker::new(program).make(program, &mut parser, &asked, masks, work).unwrap();
        (mask.map(|mask| mask.iter().collect()), work.spent())
    }

    #[test]
    fn trees_hold_tokens_of_several_terminals() {
        let (mask, _) = made(r#"root ::= "(" root ")" | "x""#, Limits::default());
        let ids = [u32::from(b'('), u32::from(b'x'), 257, 259];
        assert_eq!(mask, Some(ids.map(TokenId::new).to_vec()));
    }

    #[test]
    fn masks_by_trees_stop_at_their_work_limit() {
        let grammar = r#"root ::= [^x] root "x" | [^y] root "y" | [^z] root "z" | "a""#;
        let limits = |tree_work| Limits { tree_work, ..Limits::default() };
        // Each of three walks over the trie, with sorting what it finds, is more than a unit a node.
        let (mask, work) = made(grammar, limits(10));
        assert_eq!(mask, None);
        assert!(work < 600, "{work} units");
        assert!(made(grammar, limits(10_000)).0.is_some());
    }

    #[test]
    fn uniting_an_empty_list_costs_work() {
        assert_eq!(union_work(&TokenList::Few([].into())), 1);
    }
}

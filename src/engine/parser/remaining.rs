//! What can follow a set: the least number of bytes to a complete text, and whether all of it is of one kind.
//!
//! A text is completed by finishing an item of the set's kernel, then an item that waited for it in its
//! origin, and so on up to the start: a shortest path (Dijkstra's algorithm) over pairs of a completed
//! nonterminal and its origin, where each step costs the shortest rest of a production. Predictions of the
//! set are the beginning of such a rest.

use std::{cmp::Reverse, collections::BinaryHeap};

use hashbrown::{HashMap, HashSet};

use super::core::{Item, RuleStart};
use super::parser::Parser;
use crate::ids::{SetId, TerminalId};
use crate::lower::{Cfg, DottedRule, NonterminalId, Prices};

/// A nonterminal that has just been completed, and the set where it was predicted.
type Completed = (NonterminalId, SetId);

/// A memo of the distances of an arena's sets.
#[derive(Debug, Default)]
pub(crate) struct Remaining {
    known: HashMap<Completed, u64>,
}

/// A node and the path to it: its cost, the node (`None`: the end of the text), and the node before.
type Reached = (u64, Option<Completed>, Option<Completed>);

/// A search in progress.
struct Search {
    /// Cost of the cheapest path to each node so far, and the node before.
    best: HashMap<Completed, (u64, Option<Completed>)>,
    heap: BinaryHeap<Reverse<Reached>>,
}

impl Search {
    /// Records a path to a node, if it is the cheapest so far.
    fn reach(&mut self, place: Option<Completed>, cost: u64, via: Option<Completed>) {
        if let Some(place) = place {
            let known = self.best.entry(place).or_insert((u64::MAX, None));
            if known.0 <= cost {
                return;
            }
            *known = (cost, via);
        }
        self.heap.push(Reverse((cost, place, via)));
    }
}

impl Parser {
    /// Returns the fewest bytes with which the text is complete after `set`. `rests` has the shortest rest of
    /// the production after each dot. Counts the nodes it looked at in `visits`.
    ///
    /// `O(n log n)` for `n` items reached; less when some of them were met before.
    pub(crate) fn remaining(
        &self,
        cfg: &Cfg,
        rests: &[u64],
        set: SetId,
        found: &mut Remaining,
        visits: &mut usize,
    ) -> u64 {
        if self.is_complete(set) {
            return 0;
        }
        let mut search = Search { best: HashMap::new(), heap: BinaryHeap::new() };
        let lists = self.sets().lists();
        let prices = Prices { cfg, rests };
        let lhs = |dot: DottedRule| cfg.lhs(lists.plain(cfg, dot));
        // A completed item is a node by what it completes and where; that of the start has none: the text
        // ends.
        let place =
            |dot: DottedRule, origin: SetId| (origin != Item::START.origin).then(|| (lhs(dot), origin));
        // Finishing any item of the kernel is a first step.
        for item in self.sets().kernel(set) {
            search.reach(place(item.dot, item.origin), lists.rest(prices, item.dot), None);
        }
        while let Some(Reverse((cost, here, via))) = search.heap.pop() {
            *visits += 1;
            let Some(here) = here else {
                remember(&search, via, cost, found);
                return cost;
            };
            // A cheaper path was found after this entry was made.
            if search.best.get(&here).is_some_and(|best| best.0 < cost) {
                continue;
            }
            // The shortest rest from here is known from an earlier search.
            if let Some(&rest) = found.known.get(&here) {
                search.reach(None, cost.saturating_add(rest), Some(here));
                continue;
            }
            let (nonterminal, set) = here;
            let core = self.sets().core(set);
            // The rules that wait for the nonterminal where it was predicted are completed next.
            for (dot, begun) in core.waiting_for_nonterminal(nonterminal).map(|at| core.nonterminal_rule(at))
            {
                *visits += 1;
                let cost = cost.saturating_add(lists.rest_after(prices, dot, nonterminal));
                if begun == RuleStart::Here {
                    search.reach(Some((lhs(dot), set)), cost, Some(here));
                    continue;
                }
                for at in self.sets().with_dot(set, dot) {
                    *visits += 1;
                    search.reach(place(dot, self.sets().item(at).origin), cost, Some(here));
                }
            }
        }
        u64::MAX
    }
}

/// Memoises the distances of the nodes on the path of a finished search.
fn remember(search: &Search, mut via: Option<Completed>, total: u64, found: &mut Remaining) {
    while let Some(place) = via {
        let Some(&(cost, before)) = search.best.get(&place) else { return };
        found.known.insert(place, total - cost);
        via = before;
    }
}

// Whether all that can follow a set is of one kind is decided by a search. What follows is the rest of an
// item's production, then, of an item that waited for it in its origin, the rest behind it, and so on up to
// the start: a graph search over (nonterminal just completed, origin). Every item of a set leads to a
// sentence, since the grammar is reduced, so one rest of another kind decides.

/// Rests of productions that have been completed, and the places whose rests are yet to be looked at.
struct Tail<'a> {
    cfg: &'a Cfg,
    /// Answers by dot: is the rest of its production of the kind?
    rests: &'a [bool],
    seen: HashSet<(NonterminalId, SetId)>,
    open: Vec<(NonterminalId, SetId)>,
}

impl Tail<'_> {
    /// Is the rest after a dot of the kind? A list of parts in any order counts as if it were not.
    fn holds(&self, dot: DottedRule) -> bool {
        let is_list = || self.cfg.lists().of_symbol(self.cfg.lhs(dot)).is_some();
        self.rests.get(dot.index()).is_some_and(|&holds| holds) && !is_list()
    }

    /// Notes that a production begun in `origin` is completed.
    fn complete(&mut self, nonterminal: NonterminalId, origin: SetId) {
        if origin != Item::START.origin && self.seen.insert((nonterminal, origin)) {
            self.open.push((nonterminal, origin));
        }
    }

    /// Completes the production of an item whose dot, in `set`, moves over one symbol. Returns whether its
    /// rest is of the kind.
    fn move_on(&mut self, parser: &Parser, set: SetId, (dot, begun): (DottedRule, RuleStart)) -> bool {
        if dot.index() >= self.cfg.dot_count() || !self.holds(dot.next()) {
            return false;
        }
        let lhs = self.cfg.lhs(dot);
        if begun == RuleStart::Here {
            self.complete(lhs, set);
        } else {
            for at in parser.sets().with_dot(set, dot) {
                self.complete(lhs, parser.sets().item(at).origin);
            }
        }
        true
    }
}

impl Parser {
    /// Is every symbol that can follow `set`, or, if one is given, that terminal in it, of a kind? `rests`
    /// says by dot whether all symbols in the rest of its production are. No is also the answer where a list
    /// of parts in any order may go on.
    ///
    /// Linear in the items that it looks at, and it ends at the first rest of another kind.
    pub(crate) fn follows_only(
        &self,
        cfg: &Cfg,
        rests: &[bool],
        set: SetId,
        after: Option<TerminalId>,
    ) -> bool {
        let mut tail = Tail { cfg, rests, seen: HashSet::new(), open: Vec::new() };
        let core = self.sets().core(set);
        match after {
            Some(terminal) => {
                let mut waiting = core.waiting_for_terminal(terminal).unwrap_or_default();
                if !waiting.all(|at| tail.move_on(self, set, core.terminal_rule(at))) {
                    return false;
                }
            }
            None => {
                for &Item { dot, origin } in self.sets().kernel(set) {
                    if dot.index() >= cfg.dot_count() || !tail.holds(dot) {
                        return false;
                    }
                    tail.complete(cfg.lhs(dot), origin);
                }
            }
        }
        while let Some((nonterminal, set)) = tail.open.pop() {
            let core = self.sets().core(set);
            let mut waiting = core.waiting_for_nonterminal(nonterminal);
            if !waiting.all(|at| tail.move_on(self, set, core.nonterminal_rule(at))) {
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Grammar, Limits, Syntax, Terminals,
        limits::Work,
        lower::{lower, rests},
    };

    /// Nodes are looked at once, even if many paths lead there, each shorter than the one before, and many
    /// rules wait.
    #[test]
    fn a_shortest_path_search_visits_each_node_once() {
        const WAYS: usize = 20;
        let tail = "c".repeat(2 * WAYS);
        let rule = |way: usize| {
            let end = ")".repeat(WAYS - way);
            format!("w{way} ::= x \"{way:02}\" t\nx{way} ::= \"{end}\" | \"[\" x{way} \"]\"\n")
        };
        let rules: String = (0..WAYS).map(rule).collect();
        let list = |part: &dyn Fn(usize) -> String| (0..WAYS).map(part).collect::<Vec<_>>().join(" | ");
        let (waiting, ways) = (list(&|way| format!("w{way}")), list(&|way| format!("\"(\" x x{way}")));
        let text =
            format!("root ::= {waiting}\nx ::= {ways} | \"a\"\nt ::= \"{tail}\" | \"[\" t \"]\"\n{rules}");
        let limits = Limits::default();
        let grammar = Grammar::parse(Syntax::Gbnf, &text, &limits).unwrap();
        let lowered = lower(&grammar, Terminals::Written, &limits).unwrap();
        let (cfg, scanner) = (&lowered.cfg, &lowered.scanner);
        let work = &mut Work::unlimited();
        let mut parser = Parser::new(cfg, &limits, work).unwrap();
        let mut set = parser.start();
        for byte in *b"(a" {
            let begins = |terminal: &&_| scanner.takes(scanner.start(**terminal), byte);
            let terminal = *parser.accepts(set).iter().find(begins).unwrap();
            set = parser.shift(cfg, set, terminal, work).unwrap().unwrap();
        }
        let lengths: Vec<u64> = scanner.dfas().iter().map(|dfa| u64::from(dfa.distances()[0])).collect();
        let rests = rests(cfg, &lengths);
        let mut visits = 0;
        let bytes = parser.remaining(cfg, &rests, set, &mut Remaining::default(), &mut visits);
        assert_eq!(bytes, 1 + 2 + 2 * WAYS as u64);
        assert!(visits < 10 * WAYS, "{visits} places");
    }
}

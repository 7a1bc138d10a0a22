//! Decides whether all that can follow a set is of one kind.
//!
//! What follows is the rest of an item's production, then, of an item that waited for it in its origin, the
//! rest behind it, and so on up to the start: a graph search over (nonterminal just completed, origin). Every
//! item of a set leads to a sentence, since the grammar is reduced, so one rest of another kind decides.

use hashbrown::HashSet;

use super::{core::RuleStart, item::Item, parser::Parser};
use crate::{
    ids::{SetId, TerminalId},
    lower::{Cfg, DottedRule, NonterminalId},
};

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

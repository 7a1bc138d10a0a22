//! Lists of parts in any order: dotted rules that know which parts have come.
//!
//! An item of such a list is a dotted rule and an interned set of the parts that have come. Both together
//! have one number, past the dots of the grammar, so items, sets and cores work as for any other rule. A list
//! is one item however long it grows, and the same one whatever the order was. Part sets are interned when
//! texts need them.

use crate::{
    automata::HashIndex,
    grammar::any_order::Chosen,
    ids::{as_index, number},
    limits::{Budget, LimitExceeded, Work},
    lower::{AfterDot, AnyOrderList, Cfg, DottedRule, NonterminalId, Prices},
};

/// An item's position in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListPosition {
    /// The item is after a part, with more to come.
    Between,
    /// The item is after a separator.
    Again,
}

/// The dotted rules of lists that texts came to, except for those before the first part, which the grammar
/// has.
#[derive(Debug, Default)]
pub(super) struct OpenLists {
    /// The list and the parts that have come; two dots each, one for each position.
    states: Vec<(u32, Chosen)>,
    index: HashIndex,
    bytes: usize,
}

impl OpenLists {
    /// Memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes + self.index.bytes()
    }

    /// Splits a dot past the grammar's into the number of its state, and its position.
    fn split(cfg: &Cfg, dot: DottedRule) -> Option<(usize, ListPosition)> {
        let over = (dot.0 as usize).checked_sub(cfg.dot_count())?;
        Some((over / 2, if over % 2 == 0 { ListPosition::Between } else { ListPosition::Again }))
    }

    /// Returns the dot of a state in a position. That of [`Again`](ListPosition::Again) is the one after that
    /// of [`Between`](ListPosition::Between).
    fn dot(cfg: &Cfg, state: usize, place: ListPosition) -> Result<DottedRule, LimitExceeded> {
        let over = 2 * state + usize::from(place == ListPosition::Again);
        number(cfg.dot_count() + over, "dots of members in any order").map(DottedRule)
    }

    /// Returns the grammar's own dotted rule, without the parts that have come.
    pub(super) fn plain(&self, cfg: &Cfg, dot: DottedRule) -> DottedRule {
        let Some((state, place)) = Self::split(cfg, dot) else { return dot };
        let list = cfg.lists().get(self.states[state].0);
        if place == ListPosition::Between { list.between } else { list.again }
    }

    /// Returns the parts that have come, of a dot past the grammar's.
    pub(super) fn chosen(&self, cfg: &Cfg, dot: DottedRule) -> Option<&Chosen> {
        Self::split(cfg, dot).map(|(state, _)| &self.states[state].1)
    }

    /// Returns the symbol after a dot. If it is any part of a list, only those of [`parts`](Self::parts) may
    /// come.
    pub(super) fn slot(&self, cfg: &Cfg, dot: DottedRule) -> AfterDot {
        cfg.slot(self.plain(cfg, dot))
    }

    /// Calls `with` for each part that may come after a dot, and returns whether it is before a part at all.
    pub(super) fn parts(
        &self,
        cfg: &Cfg,
        dot: DottedRule,
        mut with: impl FnMut(NonterminalId) -> Result<(), LimitExceeded>,
    ) -> Result<bool, LimitExceeded> {
        let Some((list, chosen)) = self.before_part(cfg, dot) else { return Ok(false) };
        let start;
        let chosen = match chosen {
            Some(chosen) => chosen,
            None => {
                start = list.choice.start();
                &start
            }
        };
        for (&symbol, able) in list.parts.iter().zip(list.choice.possible(chosen)) {
            if able {
                with(symbol)?;
            }
        }
        Ok(true)
    }

    /// Returns the list of a dot before a part of it, and the parts that have come, if any have.
    fn before_part<'s, 'c>(
        &'s self,
        cfg: &'c Cfg,
        dot: DottedRule,
    ) -> Option<(&'c AnyOrderList, Option<&'s Chosen>)> {
        if cfg.lists().is_empty() {
            return None;
        }
        match Self::split(cfg, dot) {
            Some((_, ListPosition::Between)) => None,
            Some((state, ListPosition::Again)) => {
                let (list, chosen) = &self.states[state];
                Some((cfg.lists().get(*list), Some(chosen)))
            }
            None => {
                let AfterDot::Nonterminal(symbol) = cfg.slot(dot) else { return None };
                let list = cfg.lists().of_any_part(symbol)?;
                Some((cfg.lists().get(list), None))
            }
        }
    }

    /// Returns the dots after `symbol`, which `dot` waits for: one, but after a part of a list up to two.
    pub(super) fn after(
        &mut self,
        cfg: &Cfg,
        dot: DottedRule,
        symbol: AfterDot,
        work: &mut Work,
    ) -> Result<[Option<DottedRule>; 2], LimitExceeded> {
        if let Some((_, ListPosition::Between)) = Self::split(cfg, dot) {
            return Ok([Some(dot.next()), None]);
        }
        let Some((list, chosen)) = self.before_part(cfg, dot) else { return Ok([Some(dot.next()), None]) };
        let AfterDot::Nonterminal(part) = symbol else { return Ok([None; 2]) };
        let Some((number, part)) = cfg.lists().of_part(part) else { return Ok([None; 2]) };
        work.spend(8 + list.choice.work())?;
        let after = match chosen {
            Some(chosen) => list.choice.after(chosen, part),
            None => list.choice.after(&list.choice.start(), part),
        };
        let Some(after) = after else { return Ok([None; 2]) };
        let end = list.choice.may_end(&after).then_some(list.end);
        let between = if list.choice.may_go_on(&after) {
            Some(Self::dot(cfg, self.intern(cfg, number, &after)?, ListPosition::Between)?)
        } else {
            None
        };
        Ok([end, between])
    }

    /// Re-interns a dot of `other` here.
    pub(super) fn adopt(
        &mut self,
        cfg: &Cfg,
        other: &Self,
        dot: DottedRule,
    ) -> Result<DottedRule, LimitExceeded> {
        let Some((state, place)) = Self::split(cfg, dot) else { return Ok(dot) };
        let (list, chosen) = &other.states[state];
        Self::dot(cfg, self.intern(cfg, *list, chosen)?, place)
    }

    /// Returns the number of a list with these chosen parts; makes one if there is none.
    fn intern(&mut self, cfg: &Cfg, list: u32, chosen: &Chosen) -> Result<usize, LimitExceeded> {
        let hash = self.index.hash(&(list, chosen));
        let is_it = |state: u32| {
            let (other, known) = &self.states[as_index(state)];
            *other == list && known == chosen
        };
        if let Some(known) = self.index.find(hash, is_it) {
            return Ok(known as usize);
        }
        let id = self.states.len();
        let fits = u32::try_from(cfg.dot_count() + 2 * id + 1).is_ok_and(|dot| dot < u32::MAX);
        let number = u32::try_from(id).ok().filter(|_| fits).ok_or_else(|| {
            LimitExceeded::new(Budget::ParserBytes, "sets of members in any order", u32::MAX as usize)
        })?;
        self.bytes += size_of::<(u32, Chosen)>() + chosen.words().count() * size_of::<u64>();
        self.states.push((list, chosen.clone()));
        self.index.insert(hash, number);
        Ok(id)
    }

    /// Length of the shortest rest of the production that a dot is in.
    pub(super) fn rest(&self, prices: Prices<'_>, dot: DottedRule) -> u64 {
        let Some((state, place)) = Self::split(prices.cfg, dot) else { return prices.rests[as_index(dot.0)] };
        let (list, chosen) = &self.states[state];
        let list = prices.cfg.lists().get(*list);
        // A list that may end has ended too, so its rest counts as empty.
        if place == ListPosition::Between {
            prices.to_end(list, chosen)
        } else {
            prices.least_from(list, chosen)
        }
    }

    /// Length of the shortest rest after `symbol`, which `dot` waits for.
    pub(super) fn rest_after(&self, prices: Prices<'_>, dot: DottedRule, symbol: NonterminalId) -> u64 {
        let cfg = prices.cfg;
        if let Some((_, ListPosition::Between)) = Self::split(cfg, dot) {
            return self.rest(prices, dot.next());
        }
        let Some((list, chosen)) = self.before_part(cfg, dot) else {
            return prices.rests[as_index(dot.next().0)];
        };
        let after = cfg.lists().of_part(symbol).and_then(|(_, part)| match chosen {
            Some(chosen) => list.choice.after(chosen, part),
            None => list.choice.after(&list.choice.start(), part),
        });
        after.map_or(u64::MAX, |after| prices.to_end(list, &after))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Grammar, Limits, Syntax, Terminals,
        grammar::any_order::{AnyOrder, OrderRules},
        ids::ExprId,
        lower::lower,
        parser::core::Cores,
    };

    #[test]
    fn memory_of_lists_is_that_of_their_part_sets() {
        let limits = Limits::default();
        let grammar = Grammar::parse(Syntax::Gbnf, r#"root ::= "x""#, &limits).unwrap();
        let cfg = lower(&grammar, Terminals::Folded, &limits).unwrap().cfg;
        let part = ExprId::new(0);
        let choice = OrderRules::new(&AnyOrder::new(vec![(part, false); 3], vec![], part), |_| true, true);
        let one = choice.after(&choice.start(), 0).unwrap();
        let both = choice.after(&one, 1).unwrap();
        // No core yet, so lists are all there is.
        let mut cores = Cores::new(&cfg);
        for (chosen, count) in [(&one, 1), (&both, 2), (&one, 2)] {
            cores.lists_mut().intern(&cfg, 0, chosen).unwrap();
            let words = 3 * size_of::<u64>();
            let sets = count * (size_of::<(u32, Chosen)>() + words);
            assert_eq!(cores.bytes(), sets + cores.lists().index.bytes());
        }
    }
}

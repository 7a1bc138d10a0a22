//! Parts in any order: members of objects, which no context-free grammar of reasonable size can list.

pub(crate) use super::decisions::Chosen;
use super::decisions::{DecisionDiagram, Decisions};
use crate::ids::{ExprId, as_index, as_u64, saturating_usize};

/// One or more parts in any order, with a separator between neighbours.
///
/// Parts have *names*: at most one part of each name may come, and one must if the name is required. Parts
/// without a name may come any number of times. Parts may also carry *marks*, all of which must have been
/// found at the end. Neither parts nor the separator may match the empty text; a grammar in which they do is
/// not compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AnyOrder {
    /// The parts that may come.
    pub parts: Vec<AnyOrderPart>,
    /// The separator between two parts.
    pub separator: ExprId,
    /// The flag of each name: true if a part of that name must come.
    pub required: Vec<bool>,
    /// The bits of the marks that must be found.
    pub marks: u8,
    /// The least number of parts; 0 counts as 1.
    pub min: u64,
    /// The greatest number of parts.
    pub max: Option<u64>,
    /// The parts that may come together. A list with a diagram has no required names, marks and counts of its
    /// own: the diagram's ends say them.
    pub decisions: Option<Box<DecisionDiagram>>,
}

/// One of the parts of [`AnyOrder`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnyOrderPart {
    /// The part's expression.
    pub expr: ExprId,
    /// The part's name, as an index of [`AnyOrder::required`]; `None` if it may come any number of times.
    pub name: Option<u32>,
    /// The bits of the marks that it carries.
    pub marks: u8,
}

impl AnyOrder {
    /// A list of parts that may come once, each with a name of its own and `true` if it must come, and of any
    /// number of `others`.
    #[must_use]
    pub fn new(named: Vec<(ExprId, bool)>, others: Vec<ExprId>, separator: ExprId) -> Self {
        let required = named.iter().map(|&(_, required)| required).collect();
        let named = (0..).zip(named).map(|(name, (expr, _))| (expr, Some(name)));
        let others = others.into_iter().map(|expr| (expr, None));
        let parts = named.chain(others).map(|(expr, name)| AnyOrderPart { expr, name, marks: 0 }).collect();
        Self { parts, separator, required, marks: 0, min: 0, max: None, decisions: None }
    }

    /// The expressions of the list, the separator last.
    pub fn exprs(&self) -> impl Iterator<Item = ExprId> + '_ {
        self.parts.iter().map(|part| part.expr).chain([self.separator])
    }

    /// Replaces every expression.
    #[must_use]
    pub fn map(&self, mut by: impl FnMut(ExprId) -> ExprId) -> Self {
        let parts = self.parts.iter().map(|part| AnyOrderPart { expr: by(part.expr), ..*part }).collect();
        let (required, decisions) = (self.required.clone(), self.decisions.clone());
        Self { parts, separator: by(self.separator), required, decisions, ..*self }
    }
}

/// The names, marks and counts of an [`AnyOrder`], which decide what parts may come when.
#[derive(Debug, Clone)]
pub(crate) struct OrderRules {
    /// The name and the marks of each part.
    parts: Vec<(Option<u32>, u8)>,
    /// The parts of each name; below, those without a name.
    by_name: Vec<Vec<usize>>,
    unnamed: Vec<usize>,
    required: Vec<bool>,
    marks: u8,
    min: u64,
    max: Option<u64>,
    decisions: Option<Box<Decisions>>,
}

impl OrderRules {
    /// The choice among the parts that `keep` selects; at most one part if there is no separator.
    pub(crate) fn new(of: &AnyOrder, keep: impl Fn(usize) -> bool, separated: bool) -> Self {
        let kept = of.parts.iter().enumerate().filter(|&(index, _)| keep(index));
        let parts: Vec<_> = kept.map(|(_, part)| (part.name, part.marks)).collect();
        let mut by_name = vec![Vec::new(); of.required.len()];
        let mut unnamed = Vec::new();
        for (index, &(name, _)) in parts.iter().enumerate() {
            name.map_or(&mut unnamed, |name| &mut by_name[as_index(name)]).push(index);
        }
        let max = if separated { of.max } else { Some(of.max.map_or(1, |max| max.min(1))) };
        // A list has at least one part in any case.
        let min = if of.min <= 1 { 0 } else { of.min };
        let decisions = of.decisions.as_ref().map(|diagram| {
            let mut places = vec![None; of.parts.len()];
            let kept = (0..of.parts.len()).filter(|&index| keep(index));
            kept.enumerate().for_each(|(place, index)| places[index] = Some(place));
            Box::new(Decisions::new(
                diagram,
                |part| places.get(as_index(part)).copied().flatten(),
                &parts,
                separated,
            ))
        });
        Self { parts, by_name, unnamed, required: of.required.clone(), marks: of.marks, min, max, decisions }
    }

    /// The list itself, with these expressions as its parts.
    #[cfg(feature = "oracle")]
    pub(crate) fn with(&self, exprs: &[ExprId], separator: ExprId) -> AnyOrder {
        let parts = self.parts.iter().zip(exprs);
        AnyOrder {
            parts: parts.map(|(&(name, marks), &expr)| AnyOrderPart { expr, name, marks }).collect(),
            separator,
            required: self.required.clone(),
            marks: self.marks,
            min: self.min,
            max: self.max,
            decisions: self.decisions.as_ref().map(|decisions| Box::new(decisions.diagram().clone())),
        }
    }

    /// The state before any part.
    pub(crate) fn start(&self) -> Chosen {
        if self.decisions.is_some() {
            return Decisions::start(self.required.len());
        }
        Chosen { used: vec![0; self.required.len().div_ceil(64)].into(), count: 0, marks: 0 }
    }

    /// All numbers that tell the value from others.
    pub(crate) fn words(&self) -> impl Iterator<Item = u64> + '_ {
        let parts = self
            .parts
            .iter()
            .map(|&(name, marks)| u64::from(marks) << 32 | u64::from(name.map_or(0, |name| name + 1)));
        let numbers = [u64::from(self.marks), self.min, self.max.map_or(0, |max| max + 1)];
        let length = as_u64(self.parts.len());
        let decisions = self.decisions.iter().flat_map(|decisions| decisions.words());
        let required = self.required.iter().map(|&must| must.into());
        numbers.into_iter().chain([length]).chain(parts).chain(required).chain(decisions)
    }

    /// The work of finding the parts that may come, in parts looked at.
    pub(crate) fn work(&self) -> usize {
        self.len() + self.decisions.as_ref().map_or(0, |decisions| decisions.edges())
    }

    /// The parts that may come next. Linear in the names, as [`after`](Self::after) for each part, but for
    /// diagrams, where all parts take one search.
    pub(crate) fn possible(&self, chosen: &Chosen) -> Vec<bool> {
        match &self.decisions {
            Some(decisions) => decisions.possible(chosen),
            None => (0..self.len()).map(|part| self.after(chosen, part).is_some()).collect(),
        }
    }

    /// The number of parts.
    pub(crate) fn len(&self) -> usize {
        self.parts.len()
    }

    /// True if there is any list at all.
    pub(crate) fn has_list(&self) -> bool {
        let start = self.start();
        self.least(&start, |_| 0, 0).is_some()
            && (0..self.len()).any(|part| self.after(&start, part).is_some())
    }

    /// True if the list may end.
    pub(crate) fn may_end(&self, chosen: &Chosen) -> bool {
        if let Some(decisions) = &self.decisions {
            return decisions.may_end(chosen);
        }
        let complete = (0..).zip(&self.required).all(|(name, &required)| !required || chosen.is_used(name));
        complete && chosen.count >= self.min && chosen.marks & self.marks == self.marks
    }

    /// True if some part may come next.
    pub(crate) fn may_go_on(&self, chosen: &Chosen) -> bool {
        match &self.decisions {
            Some(_) => self.possible(chosen).contains(&true),
            None => (0..self.len()).any(|part| self.after(chosen, part).is_some()),
        }
    }

    /// The state after one more part; `None` if the part may not come, or if no list goes on like this.
    /// Linear in the names; if marks or a greatest number matter, a product of these and the names.
    pub(crate) fn after(&self, chosen: &Chosen, part: usize) -> Option<Chosen> {
        if let Some(decisions) = &self.decisions {
            return decisions.after(chosen, part);
        }
        let (name, marks) = self.parts[part];
        if self.max.is_some_and(|max| chosen.count >= max) {
            return None;
        }
        let mut after = chosen.clone();
        if let Some(name) = name.map(|name| name as usize) {
            if chosen.is_used(name) {
                return None;
            }
            after.used[name / 64] |= 1 << (name % 64);
        }
        after.marks |= marks & self.marks;
        after.count = (chosen.count + 1).min(self.max.unwrap_or(self.min));
        // Without these, a further part rules out no list.
        let free = self.max.is_none() && self.marks == 0;
        (free || self.least(&after, |_| 0, 0).is_some()).then_some(after)
    }

    /// The least sum of prices of parts with which the list may end, each with a separator before it; `None`
    /// if it cannot end. Linear in the names and parts; if marks matter, a product of these and the parts.
    pub(crate) fn least(&self, chosen: &Chosen, price: impl Fn(usize) -> u64, separator: u64) -> Option<u64> {
        if let Some(decisions) = &self.decisions {
            return decisions.cheapest(chosen, &|part| price(part).saturating_add(separator), 0);
        }
        let (sum, count) = self.least_rest(chosen, price, separator, 0)?;
        Some(sum.saturating_add(count.saturating_mul(separator)))
    }

    /// The least sum if a part comes next, without a separator before it.
    pub(crate) fn least_from(
        &self,
        chosen: &Chosen,
        price: impl Fn(usize) -> u64,
        separator: u64,
    ) -> Option<u64> {
        if let Some(decisions) = &self.decisions {
            let sum = decisions.cheapest(chosen, &|part| price(part).saturating_add(separator), 1)?;
            return Some(sum.saturating_sub(separator));
        }
        let (sum, count) = self.least_rest(chosen, price, separator, 1)?;
        Some(sum.saturating_add((count - 1).saturating_mul(separator)))
    }

    /// The cheapest way to end the list with at least `needed` more parts: the sum of their prices without
    /// separators, and their number.
    fn least_rest(
        &self,
        chosen: &Chosen,
        price: impl Fn(usize) -> u64,
        separator: u64,
        needed: u64,
    ) -> Option<(u64, u64)> {
        let room = self.max.map_or(u64::MAX, |max| max - chosen.count.min(max));
        let need = self.min.saturating_sub(chosen.count).max(needed);
        let missing = self.marks & !chosen.marks;
        if missing != 0 {
            return self.least_with_marks(chosen, &price, separator, (missing, need));
        }
        // Required parts come once each, at their lowest price; the others only fill up the number of parts.
        let cheapest = |parts: &[usize]| parts.iter().map(|&part| price(part)).min();
        let (mut sum, mut count, mut others) = (0_u64, 0_u64, Vec::new());
        for (name, &required) in self.required.iter().enumerate() {
            if chosen.is_used(name) {
                continue;
            }
            match cheapest(&self.by_name[name]) {
                Some(price) if required => (sum, count) = (sum.saturating_add(price), count + 1),
                None if required => return None,
                price => others.extend(price),
            }
        }
        if count.max(need) > room {
            return None;
        }
        if count < need {
            // A part that may come again is the filler once it is cheaper than all that may come only once.
            let fill = usize::try_from(need - count).ok()?;
            others.sort_unstable();
            let again = cheapest(&self.unnamed);
            let once: Vec<u64> =
                others.into_iter().filter(|&one| again.is_none_or(|again| one < again)).take(fill).collect();
            let rest = u64::try_from(fill - once.len()).ok()?;
            sum = once.iter().fold(sum, |sum, &price| sum.saturating_add(price));
            if rest > 0 {
                sum = sum.saturating_add(again?.saturating_mul(rest));
            }
            count = need;
        }
        Some((sum, count))
    }

    /// The cheapest way if marks are missing, by dynamic programming over the marks found and the number of
    /// parts. Parts beyond those that have a name or find a mark are copies of the cheapest that has none, so
    /// the table does not grow with the number of parts that the list needs.
    fn least_with_marks(
        &self,
        chosen: &Chosen,
        price: &impl Fn(usize) -> u64,
        separator: u64,
        (missing, need): (u8, u64),
    ) -> Option<(u64, u64)> {
        let open = |name: &usize| !chosen.is_used(*name);
        let names: Vec<usize> = (0..self.required.len()).filter(open).collect();
        let room = self.max.map_or(u64::MAX, |max| max - chosen.count.min(max));
        if need > room {
            return None;
        }
        let finders = missing.count_ones() as usize;
        let required = names.iter().filter(|&&name| self.required[name]).count();
        // More parts than these are never of use.
        let most = saturating_usize(need).max(required + finders);
        let most = most.min(names.len() + finders).min(saturating_usize(room));
        let width = most + 1;
        let mut best = vec![u64::MAX; (usize::from(missing) + 1) * width];
        best[0] = 0;
        let within: Vec<usize> =
            (0..=missing).filter(|marks| marks & !missing == 0).map(usize::from).collect();
        let add = |best: &mut [u64], from: &[u64], parts: &[usize]| {
            for (&marks, count) in within.iter().flat_map(|marks| (0..most).map(move |count| (marks, count)))
            {
                let sum = from[marks * width + count];
                for &part in parts.iter().filter(|_| sum != u64::MAX) {
                    let to = (marks | usize::from(self.parts[part].1 & missing)) * width + count + 1;
                    best[to] = best[to].min(sum.saturating_add(price(part)).min(u64::MAX - 1));
                }
            }
        };
        for name in names {
            let from = best.clone();
            if self.required[name] {
                best.fill(u64::MAX);
            }
            add(&mut best, &from, &self.by_name[name]);
        }
        // Each round allows one more part without a name.
        for _ in 0..finders {
            let from = best.clone();
            add(&mut best, &from, &self.unnamed);
        }
        let filler = self.unnamed.iter().map(|&part| price(part)).min();
        let full = best[usize::from(missing) * width..][..width].iter().zip(0_u64..);
        let sums = full.filter(|&(&sum, _)| sum != u64::MAX).filter_map(|(&sum, count)| {
            let more = match need.saturating_sub(count) {
                0 => 0,
                rest => filler?.saturating_mul(rest),
            };
            Some((sum.saturating_add(more), count.max(need)))
        });
        sums.min_by_key(|&(sum, count)| sum.saturating_add(separator.saturating_mul(count)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PRICES: [u64; 5] = [3, 1, 4, 1, 5];

    /// The list of parts with these names and marks.
    fn choice(parts: &[(u32, u8)], required: u8, marks: u8, min: u64, room: Option<u64>) -> OrderRules {
        let part = |&(name, marks): &(u32, u8)| AnyOrderPart {
            expr: ExprId::new(0),
            name: (name < 3).then_some(name),
            marks,
        };
        let of = AnyOrder {
            parts: parts.iter().map(part).collect(),
            separator: ExprId::new(0),
            required: (0..3).map(|name| required >> name & 1 == 1).collect(),
            marks,
            min,
            max: room.map(|room| min + room),
            decisions: None,
        };
        OrderRules::new(&of, |_| true, true)
    }

    /// What a list costs that needs very many parts is known without a place for each.
    #[test]
    fn the_least_price_of_very_many_parts_is_found() {
        let min = 1_000_000_000_000_000;
        let choice = choice(&[(0, 1), (3, 2), (4, 0)], 0, 3, min, None);
        let least = choice.least(&choice.start(), |part| PRICES[part], 1);
        // The two with marks, and the cheapest without a name for all others; each with its separator.
        assert_eq!(least, Some(3 + 1 + (min - 2) + min));
    }

    proptest! {
        /// The least sum equals the minimum over each part that may come next and the rest after it.
        #[test]
        fn the_least_price_is_the_minimum_over_next_parts(
            parts in proptest::collection::vec((0..5_u32, 0..4_u8), 1..=5),
            required in 0..8_u8, marks in 0..4_u8, min in 0..9_u64, room in proptest::option::of(0..4_u64),
            separator in 0..3_u64, taken in proptest::collection::vec(0..5_usize, 0..3),
        ) {
            let choice = choice(&parts, required, marks, min, room);
            let mut chosen = choice.start();
            for part in taken {
                if let Some(after) = (part < parts.len()).then(|| choice.after(&chosen, part)).flatten() {
                    chosen = after;
                }
            }
            let price = |part: usize| PRICES[part];
            let ways = (0..parts.len()).filter_map(|part| {
                let after = choice.after(&chosen, part)?;
                Some(price(part) + choice.least(&after, price, separator)?)
            });
            prop_assert_eq!(choice.least_from(&chosen, price, separator), ways.min());
        }
    }
}

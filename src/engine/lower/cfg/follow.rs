//! The FOLLOW sets of terminals: which terminals can directly follow which in a sentence.
//!
//! Method: FIRST and FOLLOW as for LL parsers, by fixpoints over rows of bits. They bound the children of a
//! tree's node from above; the parser decides which of them may come at a place. Grammars for which that is
//! too much work get no sets, and any terminal may follow any.

use super::{AfterDot, Cfg, DottedRule};
use crate::ids::TerminalId;

/// Number of bits of the sets of terminals, for all nonterminals and terminals together, up to which they are
/// computed. A byte for eight.
const MAX_BITS: usize = 1 << 27;
/// Number of words of such sets that are united before the computation is given up. About 1 ns each.
const MAX_WORDS: usize = 1 << 26;

/// The terminals that can directly follow each terminal.
#[derive(Debug)]
pub(crate) struct Follow {
    terminals: usize,
    /// Rows of bits; `None` if they were too many to compute, so that any terminal may follow any.
    rows: Option<Bits>,
}

impl Follow {
    /// Computes FIRST and FOLLOW sets to a fixpoint: the productions times the terminals, for each change of
    /// direction in which symbols stand at each other's ends. Where that is too much, any terminal may follow
    /// any.
    pub(crate) fn new(cfg: &Cfg, terminals: usize) -> Self {
        let bits = (cfg.nonterminal_count() * 2).saturating_add(terminals).saturating_mul(terminals);
        let rows = (bits <= MAX_BITS).then(|| rows(cfg, terminals)).flatten();
        Self { terminals, rows }
    }

    /// Memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.rows.as_ref().map_or(0, |rows| size_of_val(&*rows.words))
    }

    /// The terminals that can follow `terminal`, ascending.
    pub(crate) fn of(&self, terminal: TerminalId) -> impl Iterator<Item = TerminalId> + '_ {
        // Words of 64 terminals without any are skipped at once.
        let word =
            move |at: usize| self.rows.as_ref().map_or(u64::MAX, |rows| rows.word(terminal.index(), at));
        let words = (0..self.terminals.div_ceil(64)).map(move |at| (at, word(at)));
        let bits = words.filter(|(_, word)| *word != 0).flat_map(|(at, word)| {
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| 64 * at + bit)
        });
        bits.take_while(|next| *next < self.terminals).filter_map(TerminalId::from_index)
    }
}

fn rows(cfg: &Cfg, terminals: usize) -> Option<Bits> {
    let productions: Vec<DottedRule> = cfg.first_dots().collect();
    let mut words = MAX_WORDS;
    // FIRST: the terminals that each nonterminal can begin with.
    let mut first = Bits::new(cfg.nonterminal_count(), terminals);
    to_fixpoint(&productions, cfg.nonterminal_count(), |visit| {
        let (lhs, mut dot, mut grown) = (cfg.lhs(visit.start).index(), visit.start, false);
        if !visit.is_due(leading(cfg, visit.start)) {
            return Some(false);
        }
        loop {
            words = words.checked_sub(first.width)?;
            match cfg.slot(dot) {
                AfterDot::Terminal(terminal) => grown |= first.insert(lhs, terminal.index()),
                AfterDot::Nonterminal(next) => {
                    grown |= first.union_within(lhs, next.index());
                    if cfg.is_nullable(next) {
                        dot = dot.next();
                        continue;
                    }
                }
                AfterDot::End(_) => {}
            }
            return Some(visit.grew(lhs, grown));
        }
    })?;
    // FOLLOW: the terminals that can come right after each nonterminal, and after each terminal.
    let mut after = Bits::new(cfg.nonterminal_count(), terminals);
    let mut rows = Bits::new(terminals, terminals);
    let mut next = Bits::new(1, terminals);
    to_fixpoint(&productions, cfg.nonterminal_count(), |visit| {
        let (lhs, mut grown, mut dot) = (cfg.lhs(visit.start).index(), false, cfg.end(visit.start));
        if !visit.is_due(std::iter::once(lhs)) {
            return Some(false);
        }
        // From the end backwards; `next` has what may come after the symbol before the dot.
        next.copy(0, &after, lhs);
        while dot != visit.start {
            words = words.checked_sub(2 * first.width)?;
            dot = dot.previous();
            match cfg.slot(dot) {
                AfterDot::Terminal(terminal) => {
                    rows.union(terminal.index(), &next, 0);
                    next.clear(0);
                    next.insert(0, terminal.index());
                }
                AfterDot::Nonterminal(symbol) => {
                    grown |= visit.grew(symbol.index(), after.union(symbol.index(), &next, 0));
                    if !cfg.is_nullable(symbol) {
                        next.clear(0);
                    }
                    next.union(0, &first, symbol.index());
                }
                AfterDot::End(_) => {}
            }
        }
        Some(grown)
    })?;
    Some(rows)
}

/// The nonterminals on which the first set of a production depends: the first, and those after nullable ones.
fn leading(cfg: &Cfg, start: DottedRule) -> impl Iterator<Item = usize> + '_ {
    let mut dot = Some(start);
    std::iter::from_fn(move || match cfg.slot(dot?) {
        AfterDot::Nonterminal(symbol) => {
            dot = dot.filter(|_| cfg.is_nullable(symbol)).map(DottedRule::next);
            Some(symbol.index())
        }
        _ => None,
    })
}

/// A visit of a production, with the times of the last visit and of the last growth of rows.
struct Visit<'a> {
    start: DottedRule,
    now: &'a mut u64,
    seen: &'a mut u64,
    /// Time of the last growth of each nonterminal's row.
    grew: &'a mut [u64],
}

impl Visit<'_> {
    /// Is a visit due: is it the first, or has the row of one of these nonterminals grown since the last? If
    /// so, begins it.
    fn is_due(&mut self, mut rows: impl Iterator<Item = usize>) -> bool {
        let is_due = *self.seen == 0 || rows.any(|row| self.grew[row] > *self.seen);
        if is_due {
            *self.now += 1;
            *self.seen = *self.now;
        }
        is_due
    }

    /// Records that the row of a nonterminal has grown, if so.
    fn grew(&mut self, row: usize, has_grown: bool) -> bool {
        if has_grown {
            *self.now += 1;
            self.grew[row] = *self.now;
        }
        has_grown
    }
}

/// Visits all productions, forwards and backwards in turn, until nothing grows. `None` when a visit gives up.
fn to_fixpoint(
    productions: &[DottedRule],
    nonterminals: usize,
    mut visit: impl FnMut(&mut Visit<'_>) -> Option<bool>,
) -> Option<()> {
    let (mut now, mut seen) = (0, vec![0; productions.len()]);
    let mut grew = vec![0; nonterminals];
    let forth = 0..productions.len();
    loop {
        let mut grown = false;
        for at in forth.clone().chain(forth.clone().rev()) {
            let start = productions[at];
            grown |= visit(&mut Visit { start, now: &mut now, seen: &mut seen[at], grew: &mut grew })?;
        }
        if !grown {
            return Some(());
        }
    }
}

/// A matrix of bits.
#[derive(Debug)]
struct Bits {
    words: Vec<u64>,
    width: usize,
}

impl Bits {
    fn new(rows: usize, columns: usize) -> Self {
        let width = columns.div_ceil(64);
        Self { words: vec![0; rows * width], width }
    }

    fn word(&self, row: usize, at: usize) -> u64 {
        self.words[row * self.width + at]
    }

    fn insert(&mut self, row: usize, column: usize) -> bool {
        let word = &mut self.words[row * self.width + column / 64];
        let before = *word;
        *word |= 1 << (column % 64);
        *word != before
    }

    /// Unites a row with one of `other`. Returns whether that changed anything.
    fn union(&mut self, row: usize, other: &Self, from: usize) -> bool {
        let (to, from) = (row * self.width, from * self.width);
        let mut grown = false;
        for (word, more) in
            self.words[to..to + self.width].iter_mut().zip(&other.words[from..from + self.width])
        {
            grown |= more & !*word != 0;
            *word |= more;
        }
        grown
    }

    fn clear(&mut self, row: usize) {
        self.words[row * self.width..(row + 1) * self.width].fill(0);
    }

    fn copy(&mut self, row: usize, other: &Self, from: usize) {
        let to = row * self.width..(row + 1) * self.width;
        self.words[to].copy_from_slice(&other.words[from * self.width..(from + 1) * self.width]);
    }

    /// Unites a row with another of the same matrix. Returns whether that changed anything.
    fn union_within(&mut self, row: usize, from: usize) -> bool {
        let (to, from) = (row * self.width, from * self.width);
        let mut grown = false;
        for at in 0..self.width {
            let more = self.words[from + at];
            grown |= more & !self.words[to + at] != 0;
            self.words[to + at] |= more;
        }
        grown
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Grammar, Limits, Syntax,
        lower::{Terminals, lower},
    };

    fn follow(text: &str) -> Vec<(String, Vec<String>)> {
        let limits = Limits { fold_states: 0, ..Limits::default() };
        let grammar = Grammar::parse(Syntax::Gbnf, text, &limits).unwrap();
        let lowered = lower(&grammar, Terminals::Folded, &limits).unwrap();
        let names = lowered.terminal_names();
        let follow = Follow::new(&lowered.cfg, names.len());
        let mut rows: Vec<_> = (0..names.len())
            .map(|terminal| {
                let next = follow.of(TerminalId::from_index(terminal).unwrap());
                let mut next: Vec<_> = next.map(|next| names[next.index()].clone()).collect();
                next.sort();
                (names[terminal].clone(), next)
            })
            .collect();
        rows.sort();
        rows
    }

    #[test]
    fn follow_sets_are_those_of_the_grammar() {
        let row = |terminal: &str, next: &[&str]| {
            let quoted = |text: &str| format!("{text:?}");
            (quoted(terminal), next.iter().map(|next| quoted(next)).collect::<Vec<_>>())
        };
        assert_eq!(
            follow(
                r#"root ::= "(" list? ")"   list ::= item ("," item)*
                item ::= "x" | root | opt "!"   opt ::= "?"?"#
            ),
            [
                row("!", &[")", ","]),
                row("(", &["!", "(", ")", "?", "x"]),
                row(")", &[")", ","]),
                row(",", &["!", "(", "?", "x"]),
                row("?", &["!"]),
                row("x", &[")", ","]),
            ]
        );
    }
}

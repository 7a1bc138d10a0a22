//! Shortest texts: of terminals, of nonterminals, and before a nonterminal in a sentence.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

use crate::{
    grammar::spelled::Unfolded,
    ids::as_index,
    lower::{
        AfterDot, AnyOrderList, Cfg, DottedRule, Lowered, NEVER, NonterminalId, NonterminalUses, shortest,
    },
    scanner::TerminalDfa,
};

/// Length beyond which texts are not made, in bytes.
pub(super) const MAX_TEXT: usize = 4_096;

/// The text of a symbol that is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Want {
    /// The shortest.
    Shortest,
    /// The shortest that is not empty, if there is one.
    NotEmpty,
}

/// Shortest texts of everything in a grammar.
#[derive(Debug)]
pub(super) struct Yields<'g> {
    lowered: &'g Lowered,
    terminals: Vec<Vec<u8>>,
    /// Length of each nonterminal's shortest text, and its production.
    shortest: Vec<(u64, DottedRule)>,
    /// Length of each nonterminal's shortest non-empty text, its production, and the dot before the symbol
    /// that must not be empty, if all may be.
    not_empty: Vec<(u64, DottedRule, Option<DottedRule>)>,
    /// Occurrence of each nonterminal with the least text before it: first dot of the production, and dot
    /// before it.
    context: Vec<Option<(DottedRule, DottedRule)>>,
}

impl<'g> Yields<'g> {
    /// Computes all lengths. `O(n log n)` for `n` symbols in productions, and linear in the terminals'
    /// states.
    pub(super) fn new(lowered: &'g Lowered) -> Self {
        let dfas = lowered.scanner.dfas();
        let terminals: Vec<Vec<u8>> =
            dfas.iter().map(|dfa| shortest_text(dfa, 0).unwrap_or_default()).collect();
        let uses = NonterminalUses::new(&lowered.cfg);
        let lengths: Vec<u64> =
            terminals.iter().map(|text| u64::try_from(text.len()).unwrap_or(NEVER)).collect();
        let shortest = shortest(&lowered.cfg, &lengths, &uses);
        let not_empty = not_empty(&lowered.cfg, &lengths, &shortest, &uses);
        let context = contexts(&lowered.cfg, &lengths, &shortest);
        Self { lowered, terminals, shortest, not_empty, context }
    }

    /// Appends the wanted text of a symbol. `None` if it is too long.
    pub(super) fn push(&self, slot: AfterDot, want: Want, text: &mut Vec<u8>) -> Option<()> {
        let cfg = &self.lowered.cfg;
        // A stack instead of recursion, since grammars can be deep.
        let mut open = vec![(slot, want)];
        while let Some((slot, want)) = open.pop() {
            let nonterminal = match slot {
                AfterDot::Terminal(terminal) => {
                    text.extend_from_slice(&self.terminals[terminal.index()]);
                    if text.len() > MAX_TEXT {
                        return None;
                    }
                    continue;
                }
                AfterDot::Nonterminal(nonterminal) => nonterminal.index(),
                AfterDot::End(_) => continue,
            };
            let (length, first) = self.shortest[nonterminal];
            if let Some(list) = cfg.lists().of_symbol(cfg.lhs(first)).filter(|_| length <= MAX_TEXT as u64) {
                let start = open.len();
                open.extend(self.shortest_list(cfg.lists().get(list)).map(|slot| (slot, Want::Shortest)));
                open[start..].reverse();
                continue;
            }
            // `not_empty` has another production than `shortest`, and maybe a symbol that must not be empty.
            let (first, special) = match want {
                Want::NotEmpty if length == 0 && self.not_empty[nonterminal].0 != NEVER => {
                    let (_, first, special) = self.not_empty[nonterminal];
                    (first, special)
                }
                _ if length == 0 => continue,
                _ => (first, None),
            };
            if length != NEVER && length > MAX_TEXT as u64 || open.len() > MAX_TEXT {
                return None;
            }
            let start = open.len();
            let mut dot = first;
            for slot in cfg.symbols(first) {
                let want = if special == Some(dot) { Want::NotEmpty } else { Want::Shortest };
                open.push((slot, want));
                dot = dot.next();
            }
            open[start..].reverse();
        }
        Some(())
    }

    /// Returns the symbols of the shortest text of a list in any order.
    fn shortest_list(&self, list: &AnyOrderList) -> impl Iterator<Item = AfterDot> {
        let separator = self.lowered.cfg.slot(list.between);
        let length = match separator {
            AfterDot::Terminal(separator) => {
                u64::try_from(self.terminals[separator.index()].len()).unwrap_or(NEVER)
            }
            AfterDot::Nonterminal(separator) | AfterDot::End(separator) => self.shortest[separator.index()].0,
        };
        let parts = list.shortest(|part| self.shortest[list.parts[part].index()].0, length);
        let parts = parts.into_iter().map(|part| AfterDot::Nonterminal(list.parts[part]));
        parts.flat_map(move |part| [separator, part]).skip(1)
    }

    /// Appends the texts of a production's symbols from `from` up to `to`.
    pub(super) fn push_row(
        &self,
        from: DottedRule,
        to: DottedRule,
        want: Want,
        text: &mut Vec<u8>,
    ) -> Option<()> {
        let mut dot = from;
        while dot < to {
            self.push(self.lowered.cfg.slot(dot), want, text)?;
            dot = dot.next();
        }
        Some(())
    }

    /// Returns a shortest text after which `nonterminal` may begin.
    pub(super) fn before(&self, nonterminal: NonterminalId) -> Option<Vec<u8>> {
        let mut path = Vec::new();
        let mut at = nonterminal;
        while let Some((first, dot)) = self.context[at.index()] {
            path.push((first, dot));
            at = self.lowered.cfg.lhs(dot);
            if path.len() > MAX_TEXT {
                return None;
            }
        }
        let mut text = Vec::new();
        for &(first, dot) in path.iter().rev() {
            self.push_row(first, dot, Want::Shortest, &mut text)?;
        }
        Some(text)
    }
}

/// Finds the shortest non-empty text of each nonterminal: if a production's symbols may all be empty, one of
/// them must not be.
fn not_empty(
    cfg: &Cfg,
    terminals: &[u64],
    shortest: &[(u64, DottedRule)],
    uses: &NonterminalUses,
) -> Vec<(u64, DottedRule, Option<DottedRule>)> {
    let mut found: Vec<(u64, DottedRule, Option<DottedRule>)> =
        vec![(NEVER, Cfg::START, None); cfg.nonterminal_count()];
    let mut heap = BinaryHeap::new();
    let mut empty = Vec::with_capacity(uses.firsts.len());
    for &first in &uses.firsts {
        let length = cfg.symbols(first).fold(0_u64, |sum, slot| {
            sum.saturating_add(match slot {
                AfterDot::Terminal(terminal) => terminals[terminal.index()],
                AfterDot::Nonterminal(symbol) | AfterDot::End(symbol) => shortest[symbol.index()].0,
            })
        });
        empty.push(length == 0);
        if length > 0 && length < NEVER {
            heap.push(Reverse((length, cfg.lhs(first).index(), first, None)));
        }
    }
    while let Some(Reverse((length, nonterminal, first, special))) = heap.pop() {
        if found[nonterminal].0 != NEVER {
            continue;
        }
        found[nonterminal] = (length, first, special);
        for &number in uses.productions[nonterminal].iter().filter(|number| empty[as_index(**number)]) {
            let first = uses.firsts[as_index(number)];
            let is_use =
                |slot: AfterDot| matches!(slot, AfterDot::Nonterminal(at) if at.index() == nonterminal);
            let place = cfg.symbols(first).position(is_use).unwrap_or(0);
            let special = (0..place).fold(first, |dot, _| dot.next());
            heap.push(Reverse((length, cfg.lhs(first).index(), first, Some(special))));
        }
    }
    found
}

/// Finds the occurrence of each nonterminal with the least text before it, counted from the start (Dijkstra).
fn contexts(
    cfg: &Cfg,
    terminals: &[u64],
    shortest: &[(u64, DottedRule)],
) -> Vec<Option<(DottedRule, DottedRule)>> {
    let mut via = vec![None; cfg.nonterminal_count()];
    let mut done = vec![false; cfg.nonterminal_count()];
    let mut best = vec![NEVER; cfg.nonterminal_count()];
    let mut heap = BinaryHeap::from([Reverse((0_u64, NonterminalId(0)))]);
    best[0] = 0;
    while let Some(Reverse((before, lhs))) = heap.pop() {
        if std::mem::replace(&mut done[lhs.index()], true) {
            continue;
        }
        for &first in cfg.productions(lhs) {
            let (mut dot, mut length) = (first, before);
            for slot in cfg.symbols(first) {
                length = length.saturating_add(match slot {
                    AfterDot::Terminal(terminal) => terminals[terminal.index()],
                    AfterDot::Nonterminal(symbol) | AfterDot::End(symbol) => {
                        if length < best[symbol.index()] {
                            best[symbol.index()] = length;
                            via[symbol.index()] = Some((first, dot));
                            heap.push(Reverse((length, symbol)));
                        }
                        shortest[symbol.index()].0
                    }
                });
                dot = dot.next();
            }
        }
    }
    via
}

/// Returns a shortest text from `state` to the end, in letters that are easy to read if there is a choice.
fn shortest_text(dfa: &TerminalDfa, state: u32) -> Option<Vec<u8>> {
    match (dfa.bounded(), dfa.spelled()) {
        (Some((bounded, _)), _) if state == 0 => Some(bounded.shortest()),
        (_, Some((spelled, _))) => Some(spelled.shortest_from(spelled.at(state))),
        _ => path(dfa, state, |state| dfa.accepts(state)),
    }
}

/// Returns a shortest non-empty text that leads from `from` to a state that is `wanted`.
pub(super) fn path(dfa: &TerminalDfa, from: u32, wanted: impl Fn(u32) -> bool) -> Option<Vec<u8>> {
    let bytes = representatives(dfa.classes());
    let mut came: Vec<Option<(u32, u8)>> = vec![None; dfa.len()];
    let mut open = VecDeque::from([from]);
    while let Some(state) = open.pop_front() {
        for &byte in &bytes {
            let Some(to) = dfa.step(state, byte).filter(|&to| came[as_index(to)].is_none()) else { continue };
            came[as_index(to)] = Some((state, byte));
            if wanted(to) {
                return Some(back(&came, from, to));
            }
            open.push_back(to);
        }
    }
    None
}

/// Returns the bytes by which the search came to `to`.
fn back(came: &[Option<(u32, u8)>], from: u32, to: u32) -> Vec<u8> {
    let mut text = Vec::new();
    let mut at = to;
    while let Some((before, byte)) = came[as_index(at)] {
        text.push(byte);
        at = before;
        if at == from {
            break;
        }
    }
    text.reverse();
    text
}

/// Lists a byte of each class, easy ones first: letters, digits, then other ASCII.
pub(super) fn representatives(classes: &[u8; 256]) -> Vec<u8> {
    let order = (b'a'..=b'z').chain(b'0'..=b'9').chain(b' '..=b'~').chain(0..=u8::MAX);
    let mut seen = [false; 256];
    order
        .filter(|&byte| !std::mem::replace(&mut seen[usize::from(classes[usize::from(byte)])], true))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Grammar, Limits, Syntax, Terminals, lower::lower};

    /// Returns the shortest text, the shortest non-empty one, and the shortest text before a rule.
    fn texts(grammar: &str, rule: &str) -> [String; 3] {
        let limits = Limits { fold_states: 0, ..Limits::default() };
        let lowered =
            lower(&Grammar::parse(Syntax::Gbnf, grammar, &limits).unwrap(), Terminals::Folded, &limits)
                .unwrap();
        let yields = Yields::new(&lowered);
        let count = u32::try_from(lowered.cfg.nonterminal_count()).unwrap();
        let number = (1..count).map(NonterminalId).find(|&number| lowered.name(number) == rule).unwrap();
        let text = |want| {
            let mut text = Vec::new();
            yields.push(AfterDot::Nonterminal(number), want, &mut text).unwrap();
            text
        };
        [text(Want::Shortest), text(Want::NotEmpty), yields.before(number).unwrap()]
            .map(|text| String::from_utf8(text).unwrap())
    }

    #[test]
    fn shortest_texts_of_nonterminals_are_found() {
        let grammar = r#"root ::= "<<" a | "<" b "!" c   a ::= "x" a "y" | c c | "long"
            b ::= "(" b ")" | "[" a "]"   c ::= "" | d d   d ::= e | "seven"   e ::= c | "23" | c "1" c"#;
        assert_eq!(texts(grammar, "a"), ["", "1", "<<"]);
        assert_eq!(texts(grammar, "b"), ["[]", "[]", "<"]);
        assert_eq!(texts(grammar, "c"), ["", "1", "<<"]);
        assert_eq!(texts(grammar, "e")[1], "1");
        // Recursion without an end that is shorter, and a rule that is never empty.
        let grammar = r#"root ::= "0" list | list   list ::= "a" | list "," list | "(" root ")""#;
        assert_eq!(texts(grammar, "root"), ["a", "a", ""]);
    }

    #[test]
    fn example_texts_prefer_letters() {
        let grammar = r#"root ::= [^"] t   t ::= [!-~] [0-9.] [ \t]"#;
        assert_eq!(texts(grammar, "root")[0], "aa0 ");
    }

    #[test]
    fn long_texts_are_given_up() {
        let limits = Limits::default();
        let text = r#"root ::= "(" x ")" x{9000} | "(" root "b"   x ::= "a" | "(" x"#;
        let lowered =
            lower(&Grammar::parse(Syntax::Gbnf, text, &limits).unwrap(), Terminals::Folded, &limits).unwrap();
        let yields = Yields::new(&lowered);
        assert_eq!(
            yields.push(AfterDot::Nonterminal(NonterminalId(1)), Want::Shortest, &mut Vec::new()),
            None
        );
    }
}

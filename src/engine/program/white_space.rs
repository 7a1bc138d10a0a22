//! Decides whether all texts of a terminal, or all texts of the rest of a production, are white space.

use hashbrown::HashSet;

use crate::lower::{AfterDot, Cfg, Lowered, NonterminalId};
use crate::scanner::TerminalDfa;

/// State of the automaton of white space between two characters.
const BETWEEN: u8 = 0;

/// The automaton of white space in UTF-8: the state after one more byte, [`BETWEEN`] where a character of
/// Unicode's property `White_Space` is whole; `None` where no such character goes on like this.
fn step(state: u8, byte: u8) -> Option<u8> {
    Some(match (state, byte) {
        (BETWEEN, 0x09..=0x0D | 0x20) => BETWEEN,
        // U+0085, U+00A0.
        (BETWEEN, 0xC2) => 1,
        (1, 0x85 | 0xA0) => BETWEEN,
        // U+1680.
        (BETWEEN, 0xE1) => 2,
        (2, 0x9A) => 3,
        (3, 0x80) => BETWEEN,
        // U+2000 to U+200A, U+2028, U+2029, U+202F, U+205F.
        (BETWEEN, 0xE2) => 4,
        (4, 0x80) => 5,
        (5, 0x80..=0x8A | 0xA8 | 0xA9 | 0xAF) => BETWEEN,
        (4, 0x81) => 6,
        (6, 0x9F) => BETWEEN,
        // U+3000.
        (BETWEEN, 0xE3) => 7,
        (7, 0x80) => 3,
        _ => return None,
    })
}

/// Is every text with which the terminal can end from `state` on white space, or nothing? A search over the
/// product of both automata, which ends at the first other byte. A terminal whose states are made as needed
/// counts as another text if it goes on at all.
pub(crate) fn is_blank(dfa: &TerminalDfa, state: u32) -> bool {
    if !dfa.is_table() {
        return !dfa.goes_on(state);
    }
    let mut seen: HashSet<(u32, u8)> = HashSet::from_iter([(state, BETWEEN)]);
    let mut open = vec![(state, BETWEEN)];
    while let Some((state, space)) = open.pop() {
        // A terminal that may end inside a character has other texts.
        if space != BETWEEN && dfa.accepts(state) {
            return false;
        }
        for byte in 0..=u8::MAX {
            let Some(to) = dfa.step(state, byte) else { continue };
            match step(space, byte) {
                Some(next) if seen.insert((to, next)) => open.push((to, next)),
                Some(_) => {}
                None => return false,
            }
        }
    }
    true
}

/// Answers by dot: is every text of the rest of its production white space?
#[derive(Debug)]
pub(crate) struct BlankRests(Vec<bool>);

impl BlankRests {
    /// Linear in the grammar, and in the states of those terminals that begin with white space.
    pub(super) fn new(lowered: &Lowered) -> Self {
        let (cfg, scanner) = (&lowered.cfg, &lowered.scanner);
        let terminals: Vec<bool> = scanner.dfas().iter().map(|dfa| is_blank(dfa, 0)).collect();
        let blank = blank_nonterminals(cfg, &terminals);
        let slots: Vec<AfterDot> = cfg.dots().map(|(_, slot)| slot).collect();
        let mut rests = vec![true; slots.len()];
        let mut rest = true;
        for (rest_of, slot) in rests.iter_mut().zip(slots).rev() {
            rest = match slot {
                AfterDot::Terminal(terminal) => rest && terminals[terminal.index()],
                AfterDot::Nonterminal(nonterminal) => rest && blank[nonterminal.index()],
                AfterDot::End(_) => true,
            };
            *rest_of = rest;
        }
        Self(rests)
    }

    /// The answers, by dot.
    pub(crate) fn by_dot(&self) -> &[bool] {
        &self.0
    }

    /// Memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.0.len()
    }
}

/// Tells of each nonterminal whether every text of it is white space. One that has another spreads to all
/// that use it.
fn blank_nonterminals(cfg: &Cfg, terminals: &[bool]) -> Vec<bool> {
    let mut users: Vec<Vec<NonterminalId>> = vec![Vec::new(); cfg.nonterminal_count()];
    let mut open: Vec<NonterminalId> = Vec::new();
    for (dot, slot) in cfg.dots() {
        match slot {
            AfterDot::Nonterminal(used) => users[used.index()].push(cfg.lhs(dot)),
            AfterDot::Terminal(terminal) if !terminals[terminal.index()] => open.push(cfg.lhs(dot)),
            AfterDot::Terminal(_) | AfterDot::End(_) => {}
        }
    }
    let mut blank = vec![true; cfg.nonterminal_count()];
    while let Some(nonterminal) = open.pop() {
        if std::mem::replace(&mut blank[nonterminal.index()], false) {
            open.extend(&users[nonterminal.index()]);
        }
    }
    blank
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_automaton_has_the_characters_of_white_space() {
        for character in '\0'..=char::MAX {
            let bytes = character.to_string().into_bytes();
            let end = bytes.iter().try_fold(BETWEEN, |state, &byte| step(state, byte));
            assert_eq!(end == Some(BETWEEN), character.is_whitespace(), "{character:?}");
        }
    }

    #[test]
    fn no_text_of_other_bytes_is_white_space() {
        for first in 0..=u8::MAX {
            for second in 0..=u8::MAX {
                for third in 0..=u8::MAX {
                    let bytes = [first, second, third];
                    let end = bytes.iter().try_fold(BETWEEN, |state, &byte| step(state, byte));
                    let blank = std::str::from_utf8(&bytes).is_ok_and(|text| text.trim().is_empty());
                    assert_eq!(end == Some(BETWEEN), blank, "{bytes:?}");
                }
            }
        }
    }
}

//! Warms a machine up before a grammar's first text: a rehearsal.
//!
//! Most work of a place's first mask serves other places too: rows of automata, trees, comparisons of
//! terminals with common ones. So a machine's first mask comes with the masks along a few made-up texts,
//! tokenised by longest match. A text continues with the terminal that was begun least often so far (a
//! rotor-router walk). It closes brackets last, but those with some members first: so all objects come in
//! turn, not all members of the first.
//!
//! The work allowed grows with the grammar's size, since masks of small grammars are quick anyway. Sessions
//! that share the machine wait meanwhile, a few milliseconds once.

use super::state_automaton::StateAutomaton;
use crate::{
    ids::{TerminalId, as_index},
    limits::{LimitExceeded, Work},
    program::Program,
    scanner::{NONE, Scanner, TerminalDfa},
    vocab::ByteTrie,
};

/// Bytes of a made-up text, and of a terminal in it.
const MOST_TEXT: usize = 2_048;
const MOST_OF_A_TERMINAL: usize = 64;

/// Work of spelling a terminal, and number of byte classes that one unit looks at.
const SPELLING_WORK: usize = 32;
const CLASSES_OF_A_UNIT: usize = 8;

/// Number of members or items after which a bracket is closed as soon as possible.
const MOST_MEMBERS: usize = 8;

/// Number of terminals in a row that were all begun before, after which a text ends.
const MOST_STALE: usize = 8;

impl StateAutomaton {
    /// Makes the masks along made-up texts, within the grammar's share of work. Does not change any result.
    pub(super) fn rehearse(&mut self, program: &Program) {
        let most = worth(program);
        // With greedy lexing masks are walks of the vocabulary, which have little in common.
        if most == 0 || program.lowered.greedy {
            return;
        }
        // Masks are made whole. One that ran out of work would later be made by a walk of the trie: slower.
        let work = &mut Work::new(most.saturating_add(program.limits.step_work));
        let rehearsed = Rehearsal::new(program, most).run(self, work);
        tracing::debug!(most, units = work.spent(), whole = rehearsed.is_ok(), "rehearsed a grammar");
    }
}

/// Units of work for a rehearsal. They grow with the cube of the grammar's size: with the number of places,
/// with the terminals that each looks at, and with the time that compiling took.
fn worth(program: &Program) -> usize {
    let (most, whole) = (program.limits.rehearsal, program.limits.rehearsal_size);
    let size = program.lowered.scanner.bytes() + program.lowered.cfg.bytes();
    if size >= whole {
        return most;
    }
    // Of 1,024 parts. The product has more bits than a `usize` where there is no bound.
    let share = (size as u128 * 1_024 / whole as u128).pow(3);
    usize::try_from((most as u128 * share) >> 30).unwrap_or(most)
}

/// A rehearsal in progress.
struct Rehearsal<'p> {
    program: &'p Program,
    /// Units of work after which no further mask is made.
    most: usize,
    /// How often each terminal was begun, and its spelling, once that was needed.
    begun: Vec<u32>,
    spelt: Vec<Option<Vec<u8>>>,
}

impl<'p> Rehearsal<'p> {
    fn new(program: &'p Program, most: usize) -> Self {
        let terminals = program.lowered.scanner.terminal_count();
        Self { program, most, begun: vec![0; terminals], spelt: vec![None; terminals] }
    }

    /// Follows texts from the start as long as each begins a terminal that none before it did.
    fn run(&mut self, machine: &mut StateAutomaton, work: &mut Work) -> Result<(), LimitExceeded> {
        loop {
            let (text, is_new) = self.make_up(machine, work)?;
            if !is_new || !self.follow(machine, &text, work)? {
                return Ok(());
            }
        }
    }

    /// Makes the masks along a text. Returns whether work and memory are left for more.
    fn follow(
        &self,
        machine: &mut StateAutomaton,
        text: &[u8],
        work: &mut Work,
    ) -> Result<bool, LimitExceeded> {
        let (mut state, mut rest) = (machine.start(), text);
        while !rest.is_empty() {
            if work.spent() >= self.most || !machine.has_room(self.program) {
                return Ok(false);
            }
            machine.mask(self.program, state, work)?;
            let token = longest_token(self.program.vocabulary.trie(), rest);
            let (to, taken) = machine.walk(self.program, state, &rest[..token], work)?;
            if taken == 0 {
                break;
            }
            (state, rest) = (to, &rest[taken..]);
        }
        Ok(true)
    }

    /// Makes up a text; returns whether it begins a terminal that no earlier text did. It may end anywhere.
    fn make_up(
        &mut self,
        machine: &mut StateAutomaton,
        work: &mut Work,
    ) -> Result<(Vec<u8>, bool), LimitExceeded> {
        let program = self.program;
        let scanner = &program.lowered.scanner;
        let (mut text, mut is_new, mut stale) = (Vec::new(), false, 0);
        let (mut state, mut members) = (machine.start(), MemberCounts::default());
        while text.len() < MOST_TEXT && stale < MOST_STALE {
            let Some(set) = machine.boundary(state) else { break };
            let accepts = machine.parser().accepts(set);
            work.spend(accepts.len())?;
            let Some(next) = self.least_begun(scanner, accepts, members.are_enough(), work)? else {
                break;
            };
            let begun = &mut self.begun[next.index()];
            (is_new, stale) = if *begun == 0 { (true, 0) } else { (is_new, stale + 1) };
            *begun += 1;
            let spelt = self.spelt(scanner, next, work)?;
            let (to, taken) = machine.walk(program, state, spelt, work)?;
            text.extend_from_slice(&spelt[..taken]);
            members.note(&spelt[..taken]);
            if taken < spelt.len() || taken == 0 {
                break;
            }
            state = to;
        }
        Ok((text, is_new))
    }

    /// Returns the terminal that was begun least often. A closing bracket comes before all others, or only if
    /// there is no other.
    fn least_begun(
        &mut self,
        scanner: &Scanner,
        accepts: &[TerminalId],
        closing_first: bool,
        work: &mut Work,
    ) -> Result<Option<TerminalId>, LimitExceeded> {
        let mut least = None;
        for &terminal in accepts {
            let closes = self.closes(scanner, terminal, work)?;
            let rank = (closes != closing_first, self.begun[terminal.index()]);
            if rank == (false, 0) {
                return Ok(Some(terminal));
            }
            if least.is_none_or(|(known, _)| rank < known) {
                least = Some((rank, terminal));
            }
        }
        Ok(least.map(|(_, terminal)| terminal))
    }

    fn closes(
        &mut self,
        scanner: &Scanner,
        terminal: TerminalId,
        work: &mut Work,
    ) -> Result<bool, LimitExceeded> {
        Ok(matches!(self.spelt(scanner, terminal, work)?.last(), Some(b')' | b']' | b'}')))
    }

    /// Returns the plain spelling of a terminal; the first use makes it.
    fn spelt(
        &mut self,
        scanner: &Scanner,
        terminal: TerminalId,
        work: &mut Work,
    ) -> Result<&[u8], LimitExceeded> {
        let spelt = &mut self.spelt[terminal.index()];
        if spelt.is_none() {
            let dfa = scanner.dfa(terminal);
            let text = spell(dfa);
            work.spend(SPELLING_WORK + text.len() * dfa.class_count() / CLASSES_OF_A_UNIT)?;
            *spelt = Some(text);
        }
        Ok(spelt.as_deref().unwrap_or_default())
    }
}

/// Number of members or items of each open bracket of a text, the innermost last. Apparent brackets in
/// strings count too.
#[derive(Debug, Default)]
struct MemberCounts(Vec<usize>);

impl MemberCounts {
    /// Counts the brackets and commas of a further text.
    fn note(&mut self, text: &[u8]) {
        for byte in text {
            match byte {
                b'{' | b'[' | b'(' => self.0.push(0),
                b'}' | b']' | b')' => drop(self.0.pop()),
                b',' => self.0.last_mut().into_iter().for_each(|members| *members += 1),
                _ => {}
            }
        }
    }

    /// Has the innermost bracket as many members as it should?
    fn are_enough(&self) -> bool {
        self.0.last().is_some_and(|members| *members >= MOST_MEMBERS)
    }
}

/// Returns the length of the longest token that the text begins with, in bytes; 1 if there is none.
fn longest_token(trie: &ByteTrie, text: &[u8]) -> usize {
    let mut longest = 1;
    let mut node = text.first().and_then(|&byte| trie.root_child(byte));
    for length in 1..=text.len() {
        let Some(here) = node else { break };
        if !trie.own_tokens(here).is_empty() {
            longest = length;
        }
        node = text.get(length).and_then(|&byte| trie.child(here, byte));
    }
    longest
}

/// Spells a terminal in a plain way: no state twice, letters before signs, an end as soon as there are two
/// bytes, and a single letter where letters change nothing, as in a string. A comma or colon is followed by a
/// space if one may follow. Incomplete where that leads nowhere; empty for the substrings of a text.
fn spell(dfa: &TerminalDfa) -> Vec<u8> {
    if let Some((_, unbounded)) = dfa.bounded() {
        // As far as it goes within the bounds.
        let mut text = spell(unbounded);
        let states = text.iter().scan(0, |state, &byte| {
            *state = dfa.step(*state, byte)?;
            Some(*state)
        });
        let within = states.count();
        text.truncate(within);
        return text;
    }
    if !dfa.is_table() {
        return Vec::new();
    }
    let class = |byte: u8| usize::from(dfa.classes()[usize::from(byte)]);
    let mut met = vec![false; dfa.class_count()];
    let is_first_of_its_class = |byte: &u8| !std::mem::replace(&mut met[class(*byte)], true);
    let ways: Vec<(u8, usize)> =
        plain_bytes().filter(is_first_of_its_class).map(|byte| (byte, class(byte))).collect();
    let (mut text, mut state) = (Vec::new(), 0);
    let mut seen = vec![state];
    while !dfa.accepting()[as_index(state)] || text.is_empty() {
        let row = dfa.row(state);
        if row[class(b'e')] == state {
            text.push(b'e');
        }
        let mut new = ways.iter().filter(|(_, class)| row[*class] != NONE && !seen.contains(&row[*class]));
        let ends = |(_, class): &&(u8, usize)| text.len() > 1 && dfa.accepting()[as_index(row[*class])];
        let next = new.clone().find(ends).or_else(|| new.next());
        let Some(&(byte, class)) = next else { break };
        if text.len() >= MOST_OF_A_TERMINAL {
            break;
        }
        text.push(byte);
        state = row[class];
        seen.push(state);
    }
    if matches!(text.last(), Some(b',' | b':')) && dfa.step(state, b' ').is_some() {
        text.push(b' ');
    }
    text
}

/// Lists all bytes, plain ones first.
fn plain_bytes() -> impl Iterator<Item = u8> {
    let letters = (b'a'..=b'z').chain(b'0'..=b'9').chain(b'A'..=b'Z');
    let signs = (b'!'..=b'~').filter(|byte| !byte.is_ascii_alphanumeric() && *byte != b'\\');
    letters.chain(signs).chain(0..=b' ').chain([b'\\']).chain(0x7f..=u8::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Compiler, Grammar, Limits, Syntax, TokenId, Vocabulary, scanner};

    const JSON: &str = r#"
        root ::= object
        object ::= "{" (member ("," member)*)? "}"
        member ::= string ":" value
        value ::= object | "[" (value ("," value)*)? "]" | string | "true" | "false" | "null" | [0-9]+
        string ::= "\"" [^"]* "\""
    "#;

    fn program(limits: Limits) -> Arc<Program> {
        let words = ["true", "\":", "{\"", "e\""].into_iter().zip(257..);
        let builder = Vocabulary::builder().all_bytes().end_of_text(TokenId::new(256));
        let builder = words.fold(builder, |builder, (word, id)| builder.token(TokenId::new(id), word));
        let grammar = Grammar::parse(Syntax::Gbnf, JSON, &Limits::default()).unwrap();
        let compiled = Compiler::new(builder.build().unwrap()).limits(limits).compile(&grammar).unwrap();
        Arc::clone(compiled.program())
    }

    #[test]
    fn rehearsed_texts_begin_all_terminals_but_closing_ones() {
        let program = program(Limits::default());
        let mut machine = StateAutomaton::new(&program).unwrap();
        let mut rehearsal = Rehearsal::new(&program, usize::MAX);
        rehearsal.run(&mut machine, &mut Work::unlimited()).unwrap();
        let scanner = &program.lowered.scanner;
        for terminal in (0..scanner.terminal_count()).filter_map(TerminalId::from_index) {
            let closes = rehearsal.closes(scanner, terminal, &mut Work::unlimited()).unwrap();
            let spelt = rehearsal.spelt[terminal.index()].as_deref().map(String::from_utf8_lossy);
            assert!(rehearsal.begun[terminal.index()] > 0 || closes, "{spelt:?}");
        }
    }

    /// Counts the constraint states of a machine after the first mask.
    fn states(limits: Limits) -> usize {
        let program = program(limits);
        let mut machine = StateAutomaton::new(&program).unwrap();
        let start = machine.start();
        machine.asked_mask(&program, start, &mut Work::unlimited()).unwrap();
        machine.sizes().1
    }

    #[test]
    fn a_rehearsal_keeps_to_its_budgets() {
        let with = |rehearsal, rehearsal_size| Limits { rehearsal, rehearsal_size, ..Limits::default() };
        let none = states(with(0, 0));
        let all = states(with(usize::MAX, 0));
        assert!(all > none + 10, "{all} and {none} states");
        // Hardly anything for a grammar of this size, and no more than there is memory for.
        let made_up = states(with(1, 0));
        assert!(states(with(600_000, usize::MAX)) <= made_up && made_up < all);
        assert!(states(Limits { mask_bytes: 0, ..with(usize::MAX, 0) }) <= made_up);
    }

    #[test]
    fn terminals_are_spelt_plainly() {
        for (pattern, text) in [
            (r#""[^"\\]*""#, r#""e""#),
            (r#""(?:[^"n]|n[^"n])*""#, r#""e""#),
            ("name", "name"),
            (r"(?:\\u006e|n)ame", "name"),
            ("-?[0-9]+", "0"),
            (r"[ \n]*:[ ]*", ": "),
            ("[0-9]{4}-[0-9]{2}", "0000-00"),
        ] {
            let hir = regex_syntax::parse(pattern).unwrap();
            let dfa = scanner::build(&hir, 1_000, &Limits::default()).unwrap().unwrap();
            assert_eq!(String::from_utf8(spell(&dfa)).unwrap(), text, "{pattern}");
        }
    }
}

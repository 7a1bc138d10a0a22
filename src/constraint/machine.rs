//! Bytes through threads: the automaton of constraint states, built as texts visit it.
//!
//! One machine is shared by the sessions of a compiled grammar, so what one text has found out, the next
//! looks up. Whatever it memoises follows from the grammar alone: results do not depend on who asked first.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use super::{
    cache::MaskCache,
    mask::MaskMaker,
    program::Program,
    thread::{Move, States, Thread},
};
use crate::{
    ids::{ScanStateId, SetId, StateId},
    limits::LimitExceeded,
    parser::Parser,
    subterminal::Lookahead,
    vocab::TokenSet,
};

/// Parser sets, constraint states, trees and masks of one compiled grammar.
#[derive(Debug)]
pub(crate) struct Machine {
    parser: Parser,
    states: States,
    maker: MaskMaker,
    masks: MaskCache,
    start: StateId,
    /// Scratch: threads and ended sets of the state in the making.
    threads: Vec<Thread>,
    ended: Vec<SetId>,
}

impl Machine {
    /// A machine that knows the start.
    pub(crate) fn new(shared: &Program) -> Result<Self, LimitExceeded> {
        let parser = Parser::new(&shared.lowered.cfg, &shared.limits)?;
        let mut states = States::new(shared.lowered.scanner.byte_class_count(), &shared.limits);
        let start = states.intern(&[], Some(parser.start()))?;
        let maker = MaskMaker::new(shared);
        let masks = MaskCache::new(shared.vocabulary.size(), shared.limits.mask_bytes);
        Ok(Self { parser, states, maker, masks, start, threads: Vec::new(), ended: Vec::new() })
    }

    /// The state before any text.
    pub(crate) fn start(&self) -> StateId {
        self.start
    }

    /// Is any budget of this machine more than half used? Then new sessions had better get a new one.
    pub(crate) fn is_worn(&self, shared: &Program) -> bool {
        let limits = &shared.limits;
        self.parser.len() > limits.sets / 2
            || self.parser.item_count() > limits.arena_items / 2
            || self.states.len() > limits.states / 2
    }

    /// Parser sets, their items, and constraint states.
    pub(crate) fn sizes(&self) -> (usize, usize, usize) {
        (self.parser.len(), self.parser.item_count(), self.states.len())
    }

    /// Is the text complete in this state?
    pub(crate) fn is_complete(&self, state: StateId) -> bool {
        self.states.get(state).boundary.is_some_and(|set| self.parser.is_complete(set))
    }

    pub(crate) fn threads(&self, state: StateId) -> &[Thread] {
        &self.states.get(state).threads
    }

    pub(crate) fn boundary(&self, state: StateId) -> Option<SetId> {
        self.states.get(state).boundary
    }

    pub(crate) fn parser(&self) -> &Parser {
        &self.parser
    }

    pub(super) fn parser_mut(&mut self) -> &mut Parser {
        &mut self.parser
    }

    /// The state after one more byte, or `None` if no text goes on like this. One lookup when it was asked before.
    pub(crate) fn step(
        &mut self,
        shared: &Program,
        state: StateId,
        byte: u8,
    ) -> Result<Option<StateId>, LimitExceeded> {
        let class = shared.lowered.scanner.byte_class(byte);
        match self.states.memo(state, class) {
            Move::To(to) => return Ok(Some(to)),
            Move::Dead => return Ok(None),
            Move::Unknown => {}
        }
        let to = self.step_afresh(shared, state, byte)?;
        self.states.set_memo(state, class, to.map_or(Move::Dead, Move::To));
        Ok(to)
    }

    /// The state after several bytes, and how many of them could follow.
    pub(super) fn walk(
        &mut self,
        shared: &Program,
        mut state: StateId,
        bytes: &[u8],
    ) -> Result<(StateId, usize), LimitExceeded> {
        for (at, &byte) in bytes.iter().enumerate() {
            match self.step(shared, state, byte)? {
                Some(to) => state = to,
                None => return Ok((state, at)),
            }
        }
        Ok((state, bytes.len()))
    }

    fn step_afresh(
        &mut self,
        shared: &Program,
        state: StateId,
        byte: u8,
    ) -> Result<Option<StateId>, LimitExceeded> {
        let scanner = &shared.lowered.scanner;
        let from = self.states.get(state);
        let mut threads = std::mem::take(&mut self.threads);
        threads.clear();
        let step = |set: SetId, scan: ScanStateId| Some(Thread { set, scan: scanner.step(scan, byte)? });
        threads.extend(from.threads.iter().filter_map(|thread| step(thread.set, thread.scan)));
        if let Some(set) = from.boundary {
            let started = self.parser.accepts(set).iter();
            threads.extend(started.filter_map(|&terminal| step(set, scanner.start(terminal))));
        }
        threads.sort_unstable();
        threads.dedup();
        let to = self.settle(shared, &threads);
        self.threads = threads;
        to
    }

    /// The state of these threads, after the boundary is worked out.
    fn settle(&mut self, shared: &Program, threads: &[Thread]) -> Result<Option<StateId>, LimitExceeded> {
        if threads.is_empty() {
            return Ok(None);
        }
        if threads.len() > shared.limits.threads {
            return Err(LimitExceeded::new("threads of one constraint state", shared.limits.threads));
        }
        let (scanner, cfg) = (&shared.lowered.scanner, &shared.lowered.cfg);
        self.ended.clear();
        for thread in threads.iter().filter(|thread| scanner.accepts(thread.scan)) {
            self.ended.extend(self.parser.shift(cfg, thread.set, scanner.terminal(thread.scan))?);
        }
        self.ended.sort_unstable();
        self.ended.dedup();
        let boundary = match self.ended[..] {
            [] => None,
            [set] => Some(set),
            _ => Some(self.parser.merge(cfg, &self.ended)?),
        };
        self.states.intern(threads, boundary).map(Some)
    }

    /// The states that are here what `states` are in `other`: what a session needs to go on in this machine.
    /// Linear in the parser sets that the states refer to, and the ones those do.
    pub(super) fn adopt(
        &mut self,
        program: &Program,
        other: &Self,
        states: impl Iterator<Item = StateId>,
    ) -> Result<HashMap<StateId, StateId>, LimitExceeded> {
        let states: HashSet<StateId> = states.collect();
        let mut needed: HashSet<SetId> = HashSet::new();
        let mut open: Vec<SetId> = Vec::new();
        for state in states.iter().map(|state| other.states.get(*state)) {
            open.extend(state.threads.iter().map(|thread| thread.set).chain(state.boundary));
        }
        while let Some(set) = open.pop() {
            if needed.insert(set) {
                open.extend(other.parser.origins_of(set));
            }
        }
        // A set refers to older ones only, so in order of age all it refers to is here already.
        let mut needed: Vec<SetId> = needed.into_iter().collect();
        needed.sort_unstable();
        let mut sets: HashMap<SetId, SetId> = HashMap::new();
        for set in needed {
            let here = self.parser.adopt(&program.lowered.cfg, &other.parser, set, &sets)?;
            sets.insert(set, here);
        }
        let here = |set: SetId| sets.get(&set).copied().unwrap_or(set);
        let mut adopted = HashMap::with_capacity(states.len());
        for state in states {
            let from = other.states.get(state);
            let rename = |thread: &Thread| Thread { set: here(thread.set), scan: thread.scan };
            let mut threads: Vec<Thread> = from.threads.iter().map(rename).collect();
            threads.sort_unstable();
            adopted.insert(state, self.states.intern(&threads, from.boundary.map(here))?);
        }
        Ok(adopted)
    }

    /// The tokens that may follow, end of text included. Cached by state.
    pub(super) fn mask(&mut self, shared: &Program, state: StateId) -> Result<Arc<TokenSet>, LimitExceeded> {
        if let Some(mask) = self.masks.get(state) {
            return Ok(mask);
        }
        let here = self.states.get(state);
        self.threads.clear();
        self.threads.extend_from_slice(&here.threads);
        if let Some(set) = here.boundary {
            let scanner = &shared.lowered.scanner;
            let started = self.parser.accepts(set).iter();
            self.threads.extend(started.map(|&terminal| Thread { set, scan: scanner.start(terminal) }));
        }
        let also = if self.is_complete(state) { shared.vocabulary.end_of_text() } else { &[] };
        let mask = self.maker.make(shared, &mut self.parser, &self.threads, also)?;
        Ok(self.masks.keep(state, mask))
    }

    /// Is the lookahead unbounded, so that "the bytes can follow" means "the token is in the mask"?
    pub(super) fn is_exact(shared: &Program) -> bool {
        shared.lookahead == Lookahead::Unbounded
    }
}

#[cfg(test)]
mod tests {
    use crate::{Compiler, Grammar, Limits, Syntax, TokenId, Vocabulary};

    /// Parser sets and items, and constraint states, after `text`.
    fn sizes(grammar: &str, text: &str) -> (usize, usize, usize) {
        let bytes = (0..=u8::MAX).map(|byte| (TokenId::new(u32::from(byte)), [byte]));
        let vocabulary = bytes
            .fold(Vocabulary::builder(), |builder, (id, bytes)| builder.token(id, bytes))
            .end_of_text(TokenId::new(256))
            .build()
            .unwrap();
        let grammar = Grammar::parse(Syntax::Gbnf, grammar, &Limits::default()).unwrap();
        let compiled = Compiler::new(vocabulary).compile(&grammar).unwrap();
        let mut constraint = compiled.constraint();
        assert_eq!(constraint.advance_bytes(text.as_bytes()).unwrap(), text.len());
        assert!(constraint.is_complete());
        constraint.machine_sizes()
    }

    /// Text of any length comes back to the same sets: the steady state costs lookups only.
    #[test]
    fn lists_do_not_grow_the_machine() {
        for (grammar, item) in [
            (r#"root ::= x | x "," root   x ::= "(" x ")" | [a-z]"#, "(a),"),
            (r#"root ::= x | root "," x   x ::= "(" x ")" | [a-z]"#, "((b)),"),
            (r#"root ::= x ("," x)*   x ::= "(" x ")" | [a-z]"#, "c,"),
            (r#"root ::= root "," root | x   x ::= "(" x ")" | [a-z]"#, "(d),"),
            (
                r#"root ::= l ws   l ::= x ws ("," ws x ws)*   x ::= "(" ws x ws ")" ws | [a-z]  ws ::= ([ ] ws)?"#,
                "( e )  , ",
            ),
        ] {
            let text = |count: usize| item.repeat(count) + "z";
            assert_eq!(sizes(grammar, &text(10)), sizes(grammar, &text(1000)), "{grammar}");
        }
    }
}

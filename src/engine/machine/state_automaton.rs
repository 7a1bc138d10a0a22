//! A lazy automaton over constraint states: a subset construction on threads, built as texts visit it.
//!
//! One machine is shared by the sessions of a compiled grammar, so what one text has found out, the next
//! looks up. Whatever it memoises follows from the grammar alone: results do not depend on who asked first.

use std::{collections::VecDeque, sync::Arc};

use hashbrown::{HashMap, HashSet};

use super::memos::{Context, Contexts, Memory, RefusalCache, TrieWalk};
use super::states::{Move, States};
use crate::ids::{ScanStateId, SetId, StateId, TokenId};
use crate::limits::{LimitExceeded, Work};
use crate::masks::{Enclosed, MaskCache, MaskMaker, MaskRequest, SharedEnclosed};
use crate::program::{Program, Thread};
use crate::{grammar::any_order::Chosen, lower::Lowered, parser::Parser, split_mix::mixed, vocab::TokenSet};

/// Number of unfinished trie walks that are kept, so that this many texts can wait for a mask at once.
const KEPT_WALKS: usize = 8;
/// Number of masks with the tokens of classes that are kept, besides the masks that they are made of.
const WIDENED: usize = 256;

/// Work of a step of a terminal's automaton: while the automata fit into the processor's caches, and past
/// [`MANY_TERMINALS`], when they do not.
const LOOKUP_WORK: usize = 2;
const FAR_LOOKUP_WORK: usize = 5;
const MANY_TERMINALS: usize = 1 << 12;

/// Parser sets, constraint states, trees and masks of one compiled grammar.
#[derive(Debug)]
pub(crate) struct StateAutomaton {
    parser: Parser,
    pub(crate) states: States,
    maker: MaskMaker,
    /// Walks that ran out of work, the oldest first.
    walks: VecDeque<(StateId, TrieWalk)>,
    pub(crate) masks: MaskCache,
    /// Masks with the tokens of classes, by state.
    widened: HashMap<StateId, Arc<TokenSet>>,
    pub(super) contexts: Contexts,
    /// States that lose threads where an item repeats one before it, and what is left of them.
    after_repeats: HashMap<StateId, Option<StateId>>,
    /// Memo of the tokens that readers refused, by state.
    pub(crate) refusals: RefusalCache,
    /// The bytes that may follow, by state.
    ways: HashMap<StateId, Arc<[u8]>>,
    /// The tokens of digits behind which nothing else may begin, by state.
    unended: HashMap<StateId, Arc<[TokenId]>>,
    start: StateId,
    /// Are masks to be made ahead of the first one?
    rehearses: bool,
    /// Scratch: threads and ended sets of the state in the making.
    threads: Vec<Thread>,
    ended: Vec<SetId>,
}

impl StateAutomaton {
    /// Creates a machine that knows only the start state.
    pub(crate) fn new(shared: &Program) -> Result<Self, LimitExceeded> {
        let work = &mut Work::of_a_step(&shared.limits);
        let parser = Parser::new(&shared.lowered.cfg, &shared.limits, work)?;
        let mut states = States::new(shared.lowered.scanner.byte_class_count(), &shared.limits);
        let start = states.intern(&[], Some(parser.start()))?;
        let maker = MaskMaker::new(shared);
        let masks = MaskCache::new(shared.limits.mask_bytes);
        Ok(Self {
            parser,
            states,
            maker,
            walks: VecDeque::new(),
            masks,
            widened: HashMap::new(),
            contexts: Contexts::default(),
            after_repeats: HashMap::new(),
            refusals: RefusalCache::default(),
            ways: HashMap::new(),
            unended: HashMap::new(),
            start,
            rehearses: true,
            threads: Vec::new(),
            ended: Vec::new(),
        })
    }

    /// The state before any text.
    pub(crate) fn start(&self) -> StateId {
        self.start
    }

    /// Is any budget of this machine more than half used? Then new sessions should get a new machine.
    pub(crate) fn is_worn(&self, shared: &Program) -> bool {
        self.is_past(2, shared)
    }

    /// Is every budget at most a quarter used, and the mask cache half empty?
    pub(super) fn has_room(&self, shared: &Program) -> bool {
        !self.is_past(1, shared) && self.masks.is_half_empty(shared.vocabulary.size())
    }

    /// Is more than this many quarters of any budget used?
    fn is_past(&self, quarters: usize, shared: &Program) -> bool {
        self.parser.bytes(&shared.lowered.cfg) > shared.limits.parser_bytes / 4 * quarters
            || self.states.bytes() > shared.limits.state_bytes / 4 * quarters
    }

    /// Memory of everything that the machine holds.
    pub(super) fn memory(&self, shared: &Program) -> Memory {
        Memory {
            parser_sets: self.parser.bytes(&shared.lowered.cfg),
            states: self.states.bytes(),
            trees: self.maker.tree_bytes(),
            masks: self.masks.bytes() + self.refusals.bytes(),
            ..Memory::of_a_machine()
        }
    }

    /// Parser sets and constraint states.
    pub(crate) fn sizes(&self) -> (usize, usize) {
        (self.parser.len(), self.states.len())
    }

    /// Is the text complete in this state?
    pub(crate) fn is_complete(&self, state: StateId) -> bool {
        self.states.boundary(state).is_some_and(|set| self.parser.is_complete(set))
    }

    pub(crate) fn threads(&self, state: StateId) -> &[Thread] {
        self.states.threads(state)
    }

    pub(crate) fn boundary(&self, state: StateId) -> Option<SetId> {
        self.states.boundary(state)
    }

    pub(crate) fn parser(&self) -> &Parser {
        &self.parser
    }

    pub(crate) fn parser_mut(&mut self) -> &mut Parser {
        &mut self.parser
    }

    /// Returns the state after one more byte, or `None` if no text goes on so. A lookup once memoised.
    pub(crate) fn step(
        &mut self,
        shared: &Program,
        state: StateId,
        byte: u8,
        work: &mut Work,
    ) -> Result<Option<StateId>, LimitExceeded> {
        let class = shared.lowered.scanner.byte_class(byte);
        match self.states.memo(state, class) {
            Move::To(to) => return Ok(Some(to)),
            Move::Dead => return Ok(None),
            Move::Unknown => {}
        }
        let to = self.step_afresh(shared, state, byte, work)?;
        self.states.set_memo(state, class, to.map_or(Move::Dead, Move::To)).map(|()| work.keep())?;
        Ok(to)
    }

    /// Returns the state after as many of the bytes as can follow, and their number.
    pub(crate) fn walk(
        &mut self,
        shared: &Program,
        mut state: StateId,
        bytes: &[u8],
        work: &mut Work,
    ) -> Result<(StateId, usize), LimitExceeded> {
        for (at, &byte) in bytes.iter().enumerate() {
            match self.step(shared, state, byte, work)? {
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
        work: &mut Work,
    ) -> Result<Option<StateId>, LimitExceeded> {
        let scanner = &shared.lowered.scanner;
        let mut threads = std::mem::take(&mut self.threads);
        threads.clear();
        let step = |threads: &mut Vec<Thread>, set: SetId, scan: ScanStateId| {
            let to = scanner.step(scan, byte).map_err(|limit| *limit)?;
            threads.extend(to.map(|scan| Thread { set, scan }));
            Ok::<_, LimitExceeded>(())
        };
        let from = self.states.threads(state);
        let mut tried = from.len();
        from.iter().try_for_each(|thread| step(&mut threads, thread.set, thread.scan))?;
        let goes_on = shared.lowered.greedy && !threads.is_empty();
        if let Some(set) = self.states.boundary(state).filter(|_| !goes_on) {
            let accepts = self.parser.accepts(set);
            tried += accepts.len();
            accepts.iter().try_for_each(|&terminal| step(&mut threads, set, scanner.start(terminal)))?;
        }
        threads.sort_unstable();
        threads.dedup();
        let to =
            work.spend(lookup_work(shared) * tried + 4).and_then(|()| self.settle(shared, &threads, work));
        self.threads = threads;
        to
    }

    /// Returns what is left of a state when the item that may end there repeats an earlier one: terminals
    /// that stand only after new items may no longer come next. `None` if then nothing can follow.
    ///
    /// In the new state the terminals that may come next are threads at their starts and replace the
    /// boundary.
    pub(crate) fn after_repeat(
        &mut self,
        shared: &Program,
        state: StateId,
        work: &mut Work,
    ) -> Result<Option<StateId>, LimitExceeded> {
        let Some(set) = self.states.boundary(state) else { return Ok(Some(state)) };
        if let Some(&known) = self.after_repeats.get(&state) {
            return Ok(known);
        }
        let (scanner, after_new) = (&shared.lowered.scanner, &shared.lowered.after_new);
        let accepts = self.parser.accepts(set);
        work.spend(lookup_work(shared) * accepts.len() + 4)?;
        let left = if accepts.iter().any(|terminal| after_new[terminal.index()]) {
            let goes_on = |thread: &&Thread| scanner.goes_on(thread.scan);
            let mut threads: Vec<Thread> =
                self.states.threads(state).iter().filter(goes_on).copied().collect();
            let others = accepts.iter().filter(|terminal| !after_new[terminal.index()]);
            threads.extend(others.map(|&terminal| Thread { set, scan: scanner.start(terminal) }));
            threads.sort_unstable();
            threads.dedup();
            if threads.is_empty() { None } else { Some(self.states.intern(&threads, None)?) }
        } else {
            Some(state)
        };
        self.after_repeats.insert(state, left);
        Ok(left)
    }

    /// Returns the bytes that may follow, ascending. 256 steps, the first time.
    pub(crate) fn ways(
        &mut self,
        shared: &Program,
        state: StateId,
        work: &mut Work,
    ) -> Result<Arc<[u8]>, LimitExceeded> {
        if let Some(known) = self.ways.get(&state) {
            return Ok(Arc::clone(known));
        }
        let mut ways = Vec::new();
        for byte in 0..=u8::MAX {
            ways.extend(self.step(shared, state, byte, work)?.map(|_| byte));
        }
        let ways: Arc<[u8]> = ways.into();
        self.ways.insert(state, Arc::clone(&ways));
        Ok(ways)
    }

    /// Returns the tokens of digits that may follow and after which no other terminal may begin. The first
    /// time each of them is walked.
    pub(crate) fn unended(
        &mut self,
        shared: &Program,
        state: StateId,
        work: &mut Work,
    ) -> Result<Arc<[TokenId]>, LimitExceeded> {
        if let Some(known) = self.unended.get(&state) {
            return Ok(Arc::clone(known));
        }
        let mut unended = Vec::new();
        for &token in &shared.vocabulary.item_ends().digits {
            let bytes = shared.vocabulary.bytes(token).unwrap_or_default();
            work.spend(bytes.len())?;
            let (to, taken) = self.walk(shared, state, bytes, work)?;
            unended.extend((taken == bytes.len() && !self.may_begin(to)).then_some(token));
        }
        let unended: Arc<[TokenId]> = unended.into();
        self.unended.insert(state, Arc::clone(&unended));
        Ok(unended)
    }

    /// Is the text in a terminal that stands only after new items?
    pub(crate) fn is_after_new_item(&self, shared: &Program, state: StateId) -> bool {
        let Lowered { scanner, after_new, .. } = &shared.lowered;
        self.states.threads(state).iter().any(|thread| after_new[scanner.terminal(thread.scan).index()])
    }

    /// May another terminal come in this state?
    pub(crate) fn may_begin(&self, state: StateId) -> bool {
        self.states.boundary(state).is_some_and(|set| self.parser.accepts(set).iter().next().is_some())
    }

    /// Returns the state of a text that may be in any of these states: the union of their threads.
    pub(super) fn merge(
        &mut self,
        shared: &Program,
        states: &[StateId],
        work: &mut Work,
    ) -> Result<StateId, LimitExceeded> {
        if let [state] = states {
            return Ok(*state);
        }
        let all = states.iter().flat_map(|&state| self.states.threads(state));
        let mut threads: Vec<Thread> = all.copied().collect();
        threads.sort_unstable();
        threads.dedup();
        work.spend(4 * threads.len() + 8)?;
        self.ended.clear();
        self.ended.extend(states.iter().filter_map(|&state| self.states.boundary(state)));
        let boundary = self.merge_ended(shared, work)?;
        self.states.intern(&threads, boundary)
    }

    /// Merges the parser sets in which terminals have ended into the boundary.
    fn merge_ended(&mut self, shared: &Program, work: &mut Work) -> Result<Option<SetId>, LimitExceeded> {
        self.ended.sort_unstable();
        self.ended.dedup();
        Ok(match self.ended[..] {
            [] => None,
            [set] => Some(set),
            _ => Some(self.parser.merge(&shared.lowered.cfg, &self.ended, work)?),
        })
    }

    /// Interns the state of these threads, with its boundary worked out.
    fn settle(
        &mut self,
        shared: &Program,
        threads: &[Thread],
        work: &mut Work,
    ) -> Result<Option<StateId>, LimitExceeded> {
        if threads.is_empty() {
            return Ok(None);
        }
        let (scanner, cfg) = (&shared.lowered.scanner, &shared.lowered.cfg);
        self.ended.clear();
        work.spend(lookup_work(shared) * threads.len())?;
        for thread in threads.iter().filter(|thread| scanner.accepts(thread.scan)) {
            work.spend(4)?;
            self.ended.extend(self.parser.shift(cfg, thread.set, scanner.terminal(thread.scan), work)?);
        }
        let boundary = self.merge_ended(shared, work)?;
        self.states.intern(threads, boundary).map(Some)
    }

    /// Copies states from another machine: all `needed`, then `wanted` in order until half of the work is
    /// spent. Returns the new id of each. `None` if work runs out, or too little memory would be left. Linear
    /// in the parser sets that the states refer to, directly or not.
    pub(crate) fn adopt(
        &mut self,
        program: &Program,
        other: &Self,
        needed: impl IntoIterator<Item = StateId>,
        wanted: impl IntoIterator<Item = StateId>,
        work: &mut Work,
    ) -> Option<HashMap<StateId, StateId>> {
        let mut sets: HashMap<SetId, SetId> = HashMap::new();
        let mut adopted = HashMap::new();
        for state in needed {
            let here = self.adopt_state(program, other, state, &mut sets, work).ok()?;
            adopted.insert(state, here);
        }
        if self.is_past(3, program) {
            return None;
        }
        for state in wanted {
            if adopted.contains_key(&state) {
                continue;
            }
            if self.is_past(3, program) || work.is_half_spent() {
                break;
            }
            let Ok(here) = self.adopt_state(program, other, state, &mut sets, work) else { break };
            adopted.insert(state, here);
        }
        Some(adopted)
    }

    fn adopt_state(
        &mut self,
        program: &Program,
        other: &Self,
        state: StateId,
        sets: &mut HashMap<SetId, SetId>,
        work: &mut Work,
    ) -> Result<StateId, LimitExceeded> {
        let threads = other.states.threads(state);
        let boundary = other.states.boundary(state);
        let mut needed: Vec<SetId> = Vec::new();
        let mut open: Vec<SetId> = threads.iter().map(|thread| thread.set).chain(boundary).collect();
        let mut seen: HashSet<SetId> = HashSet::new();
        while let Some(set) = open.pop() {
            if !sets.contains_key(&set) && seen.insert(set) {
                needed.push(set);
                work.spend(8 + 4 * other.parser.kernel_len(set))?;
                open.extend(other.parser.origins_of(set));
            }
        }
        // A set refers to older ones only, so in order of age all it refers to is here already.
        needed.sort_unstable();
        for set in needed {
            let here = self.parser.adopt(&program.lowered.cfg, &other.parser, set, sets, work)?;
            sets.insert(set, here);
        }
        let here = |set: SetId| sets.get(&set).copied().unwrap_or(set);
        let rename = |thread: &Thread| Thread { set: here(thread.set), scan: thread.scan };
        let mut threads: Vec<Thread> = threads.iter().map(rename).collect();
        threads.sort_unstable();
        work.spend(4 * threads.len() + 8)?;
        self.states.intern(&threads, boundary.map(here))
    }

    /// Skips the masks ahead of the first one.
    pub(super) fn skip_rehearsal(&mut self) {
        self.rehearses = false;
    }

    /// Returns the [mask](Self::mask) that a session asks for; rehearses before the first one.
    pub(crate) fn asked_mask(
        &mut self,
        shared: &Program,
        state: StateId,
        work: &mut Work,
    ) -> Result<Arc<TokenSet>, LimitExceeded> {
        if std::mem::take(&mut self.rehearses) {
            self.rehearse(shared);
        }
        self.mask(shared, state, work)
    }

    /// The tokens that may follow, end of text included. Cached by state.
    pub(super) fn mask(
        &mut self,
        shared: &Program,
        state: StateId,
        work: &mut Work,
    ) -> Result<Arc<TokenSet>, LimitExceeded> {
        if shared.classes.is_empty() {
            return self.spelled_mask(shared, state, work);
        }
        if let Some(known) = self.widened.get(&state) {
            return Ok(Arc::clone(known));
        }
        let mask = Arc::new(shared.widened(&*self.spelled_mask(shared, state, work)?));
        if self.widened.len() == WIDENED {
            self.widened.clear();
        }
        self.widened.insert(state, Arc::clone(&mask));
        Ok(mask)
    }

    /// Returns the tokens of the state's mask that span strings. Cached with the mask.
    pub(crate) fn enclosed(&mut self, shared: &Program, state: StateId, mask: &TokenSet) -> SharedEnclosed {
        let make = |mask: &TokenSet| Enclosed::shared(shared.vocabulary.quoted(), mask);
        self.masks.enclosed(state, make).unwrap_or_else(|| make(mask))
    }

    /// Returns the mask with the bytes of a class as one token.
    fn spelled_mask(
        &mut self,
        shared: &Program,
        state: StateId,
        work: &mut Work,
    ) -> Result<Arc<TokenSet>, LimitExceeded> {
        if let Some(mask) = self.masks.get(state) {
            return Ok(mask);
        }
        self.threads.clear();
        self.threads.extend_from_slice(self.states.threads(state));
        if let Some(set) = self.states.boundary(state) {
            let scanner = &shared.lowered.scanner;
            let started = self.parser.accepts(set).iter();
            self.threads.extend(started.map(|&terminal| Thread { set, scan: scanner.start(terminal) }));
        }
        let also = if self.is_complete(state) { shared.vocabulary.end_of_text() } else { &[] };
        // Trees know what each terminal takes, not whether another one goes on.
        if !shared.lowered.greedy && !self.walks.iter().any(|(walked, _)| *walked == state) {
            let asked = MaskRequest { state, threads: &self.threads, also };
            if let Some(mask) = self.maker.make(shared, &mut self.parser, &asked, &mut self.masks, work)? {
                return Ok(mask);
            }
        }
        let mut mask = self.walk_trie(shared, state, work)?;
        also.iter().for_each(|&token| mask.insert(token));
        mask.settle();
        Ok(self.masks.keep(state, Arc::new(mask)))
    }

    /// Makes a mask by a walk over the trie: exact, and its cost is bounded by the trie's nodes times the
    /// distinct thread sets. A walk that runs out of work is kept, and the next call resumes it.
    fn walk_trie(
        &mut self,
        shared: &Program,
        state: StateId,
        work: &mut Work,
    ) -> Result<TokenSet, LimitExceeded> {
        let begun = self.walks.iter().position(|(walked, _)| *walked == state);
        let begun = begun.and_then(|at| self.walks.remove(at));
        let mut walk = begun.map_or_else(|| TrieWalk::new(self, shared, state), |(_, walk)| walk);
        match walk.go_on(self, shared, work) {
            Ok(()) => Ok(walk.into_mask()),
            Err(limit) => {
                if self.walks.len() >= KEPT_WALKS {
                    self.walks.pop_front();
                }
                self.walks.push_back((state, walk));
                Err(limit)
            }
        }
    }
}

fn lookup_work(shared: &Program) -> usize {
    if shared.lowered.scanner.terminal_count() < MANY_TERMINALS { LOOKUP_WORK } else { FAR_LOOKUP_WORK }
}

// A [`Context`] is the place of a text in the grammar with its stack forgotten: the key under which counts of
// tokens are filed (paper, 3.6).
//
// Invariant: a context follows from the text and the compiled grammar alone. It is made of terminals,
// scanner states and dotted rules, which lowering numbers in the grammar's order, never of the numbers of
// sets and states, which depend on what was met first. So it means the same in every run and on every
// machine.

/// One hash for a set of hashes.
fn of_set(mut hashes: Vec<u64>) -> u64 {
    hashes.sort_unstable();
    hashes.dedup();
    hashes.into_iter().fold(0, mixed)
}

impl Context {
    /// Computes the context of a state of `machine`. Linear in its threads and the kernels of their parser
    /// sets.
    fn work_out(program: &Program, machine: &StateAutomaton, state: StateId) -> Self {
        const BEGUN: u64 = 1;
        let scanner = &program.lowered.scanner;
        let parser = machine.parser();
        let mut alpha = Vec::new();
        let mut beta = Vec::new();
        let kernel = |set: SetId, salt: u64| {
            let dots = parser.kernel_dots(&program.lowered.cfg, set).map(|(dot, chosen)| {
                let words = chosen.into_iter().flat_map(Chosen::words);
                words.fold(u64::from(dot.0), mixed)
            });
            mixed(of_set(dots.collect()), salt)
        };
        for thread in machine.threads(state) {
            let (terminal, name) = (scanner.terminal(thread.scan), scanner.name(thread.scan));
            alpha.push(mixed(mixed(BEGUN, terminal.raw().into()), name));
            beta.push(kernel(thread.set, BEGUN));
        }
        if let Some(set) = machine.boundary(state) {
            alpha.extend(parser.accepts(set).iter().map(|terminal| mixed(0, terminal.raw().into())));
            alpha.push(u64::from(parser.is_complete(set)));
            beta.push(kernel(set, 0));
        }
        Self { alpha: of_set(alpha), beta: of_set(beta) }
    }
}

impl StateAutomaton {
    /// Returns the state's key for counts of tokens. Cached by state.
    pub(crate) fn context(&mut self, shared: &Program, state: StateId) -> Context {
        let known = self.contexts.get(state);
        known.unwrap_or_else(|| {
            let context = Context::work_out(shared, self, state);
            self.contexts.keep(state, context);
            context
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Compiler, Grammar, Limits, Syntax, Vocabulary};

    #[test]
    fn every_terminal_tried_takes_work() {
        let names: Vec<String> = ('a'..='z').map(String::from).collect();
        let rule = |name: &String| format!("{name} ::= \"{name}\" {name} \"!\" | \"{name}\"\n");
        let rules: String = names.iter().map(rule).collect();
        let grammar = format!("root ::= {}\n{rules}", names.join(" | "));
        let grammar = Grammar::parse(Syntax::Gbnf, &grammar, &Limits::default()).unwrap();
        let vocabulary = Vocabulary::builder().all_bytes().end_of_text(TokenId::new(256)).build().unwrap();
        let compiled = Compiler::new(vocabulary).compile(&grammar).unwrap();
        let program = compiled.program();
        let mut machine = StateAutomaton::new(program).unwrap();
        let start = machine.start();
        let terminals = machine.boundary(start).map_or(0, |set| machine.parser().accepts(set).len());
        assert!(terminals >= names.len());
        let work = &mut Work::unlimited();
        assert_eq!(machine.step(program, start, b'?', work).unwrap(), None);
        assert!(work.spent() >= LOOKUP_WORK * terminals, "{} units", work.spent());
    }

    /// Parser sets and constraint states after `text`.
    fn sizes(grammar: &str, text: &str) -> (usize, usize) {
        let vocabulary = Vocabulary::builder().all_bytes().end_of_text(TokenId::new(256)).build().unwrap();
        let grammar = Grammar::parse(Syntax::Gbnf, grammar, &Limits::default()).unwrap();
        let compiled = Compiler::new(vocabulary).compile(&grammar).unwrap();
        let mut constraint = compiled.constraint();
        assert_eq!(constraint.advance_bytes(text.as_bytes()).unwrap(), text.len());
        assert!(constraint.is_complete());
        constraint.machine_sizes()
    }

    /// Text of any length comes back to the same sets: the steady state costs lookups only.
    #[test]
    fn long_lists_add_no_states() {
        for (grammar, item) in [
            (r#"root ::= x | x "," root   x ::= "(" x ")" | [a-z]"#, "(a),"),
            (r#"root ::= x | root "," x   x ::= "(" x ")" | [a-z]"#, "((b)),"),
            (r#"root ::= x ("," x)*   x ::= "(" x ")" | [a-z]"#, "c,"),
            (r#"root ::= root "," root | x   x ::= "(" x ")" | [a-z]"#, "(d),"),
            (
                r#"root ::= l w   l ::= x w ("," w x w)*   x ::= "(" w x w ")" w | [a-z]   w ::= ([ ] w)?"#,
                "( e )  , ",
            ),
        ] {
            let text = |count: usize| item.repeat(count) + "z";
            assert_eq!(sizes(grammar, &text(10)), sizes(grammar, &text(1000)), "{grammar}");
        }
    }
}

#[cfg(test)]
mod context_tests {
    use super::*;
    use crate::{Compiler, Constraint, Grammar, Limits, Syntax, TokenId, Vocabulary};

    const GRAMMAR: &str = r#"root ::= v   v ::= "[" (v ("," v)*)? "]" | n   n ::= [0-9]+ ("." [0-9]+)?"#;

    fn session() -> Constraint {
        let vocabulary = Vocabulary::builder().all_bytes().end_of_text(TokenId::new(256)).build().unwrap();
        let grammar = Grammar::parse(Syntax::Gbnf, GRAMMAR, &Limits::default()).unwrap();
        Compiler::new(vocabulary).compile(&grammar).unwrap().constraint()
    }

    fn after(session: &Constraint, text: &str) -> Context {
        let mut session = session.clone();
        assert_eq!(session.advance_bytes(text.as_bytes()).unwrap(), text.len());
        session.context()
    }

    #[test]
    fn contexts_do_not_depend_on_earlier_texts() {
        let texts = ["[", "[[1.5", "[1,[2,3],", "[[[]],4", "17", "[1,2]"];
        let (one, other) = (session(), session());
        let forwards = texts.map(|text| after(&one, text));
        let mut backwards = texts;
        backwards.reverse();
        let mut found = backwards.map(|text| after(&other, text));
        found.reverse();
        assert_eq!(forwards, found);
    }

    #[test]
    fn contexts_differ_in_all_but_the_stack() {
        let session = session();
        // A first and a later element of a list are at different places of its rule.
        assert_eq!(after(&session, "[[2,3,"), after(&session, "[[[[4,[5],"));
        let different = ["", "[", "[1", "[1.", "[1.5", "[1,", "[]", "1"].map(|text| after(&session, text));
        for (at, one) in different.iter().enumerate() {
            assert!(!different[..at].contains(one), "{at}");
        }
    }
}

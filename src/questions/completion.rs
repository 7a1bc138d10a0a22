//! The shortest text that completes another: exact distances by shortest paths over threads and parser sets,
//! then a walk along them for the fewest tokens.
//!
//! Invariant: the distance of a state, in bytes, to the nearest complete text is exact; so a step is on a
//! shortest way if and only if it lessens the distance by one.

mod distinct;
mod greedy;

use hashbrown::HashMap;

use crate::{
    ids::{SetId, StateId, TokenId, TrieNodeId},
    json_readers::JsonReaders,
    limits::{Budget, LimitExceeded, Work},
    machine::StateAutomaton,
    parser::Remaining,
    program::Program,
    vocab::ByteTrie,
};

const BUDGET: Budget = Budget::CompletionVisits;

/// Units of work that a visit may take where the parser has to make new sets.
const UNITS_OF_A_VISIT: usize = 10;

/// Once one sixteenth of the budget is used, the search continues byte by byte instead of token by token. The
/// completion is still the shortest, but others of its length may have fewer tokens.
const TOKENS: usize = 16;

/// Once one eighth of the budget is used, the search keeps one state for each length.
const BYTES: usize = 8;

/// A text that completes another; see
/// [`Constraint::shortest_completion`](crate::Constraint::shortest_completion).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Completion {
    /// The fewest bytes there can be. Empty if the text is complete already.
    pub bytes: Vec<u8>,
    /// Tokens that spell them; `None` where the vocabulary has none for some byte.
    pub tokens: Option<Vec<TokenId>>,
    /// Is `tokens` proven to be the least number of tokens among all completions of this length? False where
    /// there were too many completions to search.
    pub fewest: bool,
}

/// A way to a state: the number of its bytes that are in no token, the number of its tokens and such bytes,
/// and its last step.
#[derive(Debug, Clone, Copy)]
struct CompletionPath {
    cost: (u32, u32),
    from: StateId,
    piece: CompletionStep,
}

/// A step of a way.
#[derive(Debug, Clone, Copy)]
enum CompletionStep {
    Token(TokenId),
    Byte(u8),
}

/// One search from a state.
pub(super) struct CompletionSearch<'m> {
    pub(super) machine: &'m mut StateAutomaton,
    pub(super) program: &'m Program,
    remaining: Remaining,
    distances: HashMap<StateId, u64>,
    visits: usize,
    /// Budget of the moves that no text has made before.
    pub(super) work: Work,
    /// The best way to each state met, and the states met by their distance in bytes from the first.
    ways: HashMap<StateId, CompletionPath>,
    fronts: Vec<Vec<StateId>>,
    /// Was no way left out in the search for the fewest tokens?
    whole: bool,
}

impl StateAutomaton {
    /// Finds the shortest text that completes the one that led to `state`; see [`Completion`]. `None` only
    /// with greedy lexing: then there may be none.
    pub(super) fn completion(
        &mut self,
        program: &Program,
        state: StateId,
    ) -> Result<Option<Completion>, LimitExceeded> {
        let mut search = CompletionSearch::new(self, program);
        let found = match program.lowered.greedy {
            true => search.greedily(state),
            false => search.run(state).map(Some),
        };
        found.map_err(|limit| as_visits(program, limit))
    }

    /// Finds the shortest completion that repeats no key and no item that the readers know.
    pub(super) fn completion_with_readers(
        &mut self,
        program: &Program,
        state: StateId,
        readers: &JsonReaders,
    ) -> Result<Option<Vec<u8>>, LimitExceeded> {
        let found = CompletionSearch::new(self, program).past_readers(state, readers);
        found.map_err(|limit| as_visits(program, limit))
    }
}

/// Reports work that a search has used up as the limit of its visits.
fn as_visits(program: &Program, limit: LimitExceeded) -> LimitExceeded {
    if limit.budget() == Budget::StepWork { too_many(program) } else { limit }
}

impl<'m> CompletionSearch<'m> {
    /// Prepares a search whose work is bounded by the limit of visits.
    fn new(machine: &'m mut StateAutomaton, program: &'m Program) -> Self {
        Self {
            machine,
            program,
            remaining: Remaining::default(),
            distances: HashMap::new(),
            visits: 0,
            work: Work::new(program.limits.completion_visits.saturating_mul(UNITS_OF_A_VISIT)),
            ways: HashMap::new(),
            fronts: Vec::new(),
            whole: true,
        }
    }

    /// Finds the cheapest of the shortest texts: breadth-first, all states after one more byte at a time.
    fn run(&mut self, start: StateId) -> Result<Completion, LimitExceeded> {
        let distance = self.distance(start)?;
        let limit = self.program.limits.completion_visits;
        let Some(length) = usize::try_from(distance).ok().filter(|&length| length < limit) else {
            return Err(LimitExceeded::new(BUDGET, "bytes of the shortest completion", limit));
        };
        self.fronts = vec![Vec::new(); length + 1];
        self.fronts[0].push(start);
        for at in 0..length {
            for state in std::mem::take(&mut self.fronts[at]) {
                // Every state is on a shortest way, so one that leads on is enough.
                if self.have_spent(BYTES) && !self.fronts[at + 1].is_empty() {
                    self.whole = false;
                    break;
                }
                self.leave(state, at)?;
            }
        }
        // Of several complete states, the one with the best way; of equals the one met first.
        let cost = |state: &StateId| self.ways.get(state).map(|way| way.cost);
        let end = self.fronts[length].iter().copied().min_by_key(cost);
        Ok(self.follow_back(start, end.unwrap_or(start)))
    }

    /// Is at least the `one_in`-th part of the budget used?
    fn have_spent(&self, one_in: usize) -> bool {
        self.visits >= self.program.limits.completion_visits / one_in
            || self.work.spent() >= self.work.limit() / one_in
    }

    /// Returns the fewest bytes from `state` to a complete text, over every split into terminals.
    pub(super) fn distance(&mut self, state: StateId) -> Result<u64, LimitExceeded> {
        if let Some(&known) = self.distances.get(&state) {
            return Ok(known);
        }
        let (program, lengths) = (self.program, self.program.lengths());
        let (cfg, scanner) = (&program.lowered.cfg, &program.lowered.scanner);
        let mut best = u64::MAX;
        if let Some(set) = self.machine.boundary(state) {
            best = self.remaining_after(set)?;
        }
        for thread in self.machine.threads(state).to_vec() {
            let scan = lengths.scan(scanner, thread.scan);
            if scan >= best {
                continue;
            }
            let terminal = scanner.terminal(thread.scan);
            if let Some(set) = self.machine.parser_mut().shift(cfg, thread.set, terminal, &mut self.work)? {
                best = best.min(scan.saturating_add(self.remaining_after(set)?));
            }
        }
        self.distances.insert(state, best);
        Ok(best)
    }

    fn remaining_after(&mut self, set: SetId) -> Result<u64, LimitExceeded> {
        let (cfg, rests) = (&self.program.lowered.cfg, &self.program.lengths().rests);
        let parser = self.machine.parser();
        let bytes = parser.remaining(cfg, rests, set, &mut self.remaining, &mut self.visits);
        self.visit()?;
        Ok(bytes)
    }

    pub(super) fn visit(&mut self) -> Result<(), LimitExceeded> {
        self.visits += 1;
        if self.visits > self.program.limits.completion_visits {
            return Err(too_many(self.program));
        }
        Ok(())
    }

    /// Returns the state after `byte`, if that is on a shortest way.
    fn nearer(&mut self, state: StateId, byte: u8) -> Result<Option<StateId>, LimitExceeded> {
        self.visit()?;
        let distance = self.distance(state)?;
        let Some(to) = self.machine.step(self.program, state, byte, &mut self.work)? else {
            return Ok(None);
        };
        Ok((self.distance(to)? < distance).then_some(to))
    }

    /// Continues the search from a state `at` bytes from the first: by every token on a shortest way, or,
    /// when [`TOKENS`] says so, by single bytes.
    fn leave(&mut self, from: StateId, at: usize) -> Result<(), LimitExceeded> {
        let (trie, scanner) = (self.program.vocabulary.trie(), &self.program.lowered.scanner);
        // Bytes of one class lead to one state.
        let mut by_class = vec![None; scanner.byte_class_count()];
        for byte in 0..=u8::MAX {
            let class = scanner.byte_class(byte);
            let to = match by_class[class] {
                Some(known) => known,
                None => *by_class[class].insert(self.nearer(from, byte)?),
            };
            let Some(to) = to else { continue };
            match trie.root_child(byte) {
                Some(node) => {
                    let piece =
                        token_at(trie, node).map_or(CompletionStep::Byte(byte), CompletionStep::Token);
                    self.reach(from, piece, to, at + 1);
                    if self.have_spent(TOKENS) {
                        self.whole = false;
                    } else {
                        self.go_down(from, node, to, at + 1)?;
                    }
                }
                None => self.reach(from, CompletionStep::Byte(byte), to, at + 1),
            }
        }
        Ok(())
    }

    /// Continues from a state by all tokens below a trie node whose bytes led to `to`.
    fn go_down(
        &mut self,
        from: StateId,
        node: TrieNodeId,
        to: StateId,
        at: usize,
    ) -> Result<(), LimitExceeded> {
        let trie = self.program.vocabulary.trie();
        let mut open = vec![(node, to, at)];
        while let Some((node, state, at)) = open.pop() {
            if at + 1 >= self.fronts.len() {
                continue;
            }
            let mut child = TrieNodeId::new(node.raw() + 1);
            while child < trie.end(node) {
                if let Some(to) = self.nearer(state, trie.byte(child))? {
                    if let Some(token) = token_at(trie, child) {
                        self.reach(from, CompletionStep::Token(token), to, at + 1);
                    }
                    open.push((child, to, at + 1));
                }
                child = trie.end(child);
            }
        }
        Ok(())
    }

    /// Records a way to a state that is `at` bytes from the first.
    fn reach(&mut self, from: StateId, piece: CompletionStep, to: StateId, at: usize) {
        let (raw, pieces) = self.ways.get(&from).map_or((0, 0), |way| way.cost);
        let cost = (raw + u32::from(matches!(piece, CompletionStep::Byte(_))), pieces + 1);
        let way = CompletionPath { cost, from, piece };
        match self.ways.get_mut(&to) {
            Some(known) if known.cost <= cost => {}
            Some(known) => *known = way,
            None => {
                self.ways.insert(to, way);
                self.fronts[at].push(to);
            }
        }
    }

    /// Returns the completion that leads from `start` to `end`.
    fn follow_back(&self, start: StateId, end: StateId) -> Completion {
        let mut pieces = Vec::new();
        let mut state = end;
        while state != start
            && let Some(way) = self.ways.get(&state)
        {
            pieces.push(way.piece);
            state = way.from;
        }
        pieces.reverse();
        let mut completion = Completion { bytes: Vec::new(), tokens: Some(Vec::new()), fewest: self.whole };
        for piece in pieces {
            match piece {
                CompletionStep::Token(token) => {
                    let bytes = self.program.vocabulary.bytes(token).unwrap_or_default();
                    completion.bytes.extend_from_slice(bytes);
                    if let Some(tokens) = &mut completion.tokens {
                        tokens.push(token);
                    }
                }
                CompletionStep::Byte(byte) => {
                    completion.bytes.push(byte);
                    completion.tokens = None;
                }
            }
        }
        completion
    }
}

fn too_many(program: &Program) -> LimitExceeded {
    LimitExceeded::new(BUDGET, "places looked at for a completion", program.limits.completion_visits)
}

/// The first token that is exactly the node's string.
fn token_at(trie: &ByteTrie, node: TrieNodeId) -> Option<TokenId> {
    trie.tokens_at(trie.own_tokens(node)).first().copied()
}

#[cfg(test)]
mod tests {
    use crate::{Compiler, Grammar, Limits, Syntax, TokenId, Vocabulary};

    /// Tokens past the shortest completion are not looked at, so they cost nothing.
    #[test]
    fn tokens_past_the_shortest_completion_cost_no_visits() {
        let mut builder = Vocabulary::builder().all_bytes().end_of_text(TokenId::new(256));
        for (byte, id) in (0..=u8::MAX).zip(257..) {
            builder = builder.token(TokenId::new(id), [b'a', byte]);
        }
        let mut limits = Limits::default();
        let grammar = Grammar::parse(Syntax::Gbnf, r#"root ::= "a""#, &limits).unwrap();
        // Fewer than there are such tokens.
        limits.completion_visits = 200;
        let compiler = Compiler::new(builder.build().unwrap()).limits(limits);
        let completion = compiler.compile(&grammar).unwrap().constraint().shortest_completion().unwrap();
        assert_eq!(completion.tokens, Some(vec![TokenId::new(u32::from(b'a'))]));
    }
}

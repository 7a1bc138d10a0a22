//! The shortest text that completes another: exact distances by shortest paths over threads and parser sets,
//! then a walk along them for the fewest tokens.
//!
//! Invariant: the distance of a state, in bytes, to the nearest complete text is exact; so a step is on a
//! shortest way if and only if it lessens the distance by one.

use std::{cmp::Reverse, collections::BinaryHeap};

use hashbrown::{HashMap, HashSet};

use crate::ids::{SetId, StateId, TokenId, TrieNodeId};
use crate::limits::{Budget, LimitExceeded, Work};
use crate::machine::{StateAutomaton, lock};
use crate::program::{Program, ResolvedClass};
use crate::session::{Constraint, StepError, StepErrorKind, TextPosition};
use crate::vocab::{ByteTrie, Vocabulary};
use crate::{json_readers::JsonReaders, parser::Remaining, special};

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
struct CompletionSearch<'m> {
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
    fn completion_with_readers(
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

// The shortest completion that repeats no key and no item is found by A* over pairs of constraint state
// and JSON readers, byte by byte. The lower bound is the state's
// distance to a complete text when repeats are allowed.

/// A node of the search, with the node and byte that led to it.
struct DetourNode {
    state: StateId,
    readers: JsonReaders,
    from: Option<(usize, u8)>,
    length: u64,
}

impl CompletionSearch<'_> {
    /// Returns the bytes of the shortest such completion; `None` if there is none. Costs a visit for each
    /// node that is nearer than that, and each byte.
    fn past_readers(
        &mut self,
        start: StateId,
        readers: &JsonReaders,
    ) -> Result<Option<Vec<u8>>, LimitExceeded> {
        let mut stops = vec![DetourNode { state: start, readers: readers.clone(), from: None, length: 0 }];
        // Of equally near nodes the longest text is first: keys differ in many ways, and one is enough.
        let mut open = BinaryHeap::from([(Reverse(self.distance(start)?), 0, Reverse(0))]);
        let mut seen = HashSet::new();
        while let Some((_, _, Reverse(at))) = open.pop() {
            let (state, length) = (stops[at].state, stops[at].length);
            if self.machine.is_complete(state) {
                return Ok(Some(text_to_stop(&stops, at)));
            }
            if !seen.insert((state, stops[at].readers.place())) {
                continue;
            }
            for byte in 0..=u8::MAX {
                self.visit()?;
                let (program, work) = (self.program, &mut self.work);
                if self.machine.step(program, state, byte, work)?.is_none() {
                    continue;
                }
                let before = &stops[at].readers;
                let led = self.machine.step_with_readers(program, (state, before), byte, work)?;
                let Some((to, readers)) = led else { continue };
                let rest = self.distance(to)?;
                if rest < u64::MAX {
                    let all = Reverse(rest.saturating_add(length + 1));
                    open.push((all, length + 1, Reverse(stops.len())));
                    stops.push(DetourNode { state: to, readers, from: Some((at, byte)), length: length + 1 });
                }
            }
        }
        Ok(None)
    }
}

/// Returns the bytes on the way to a node.
fn text_to_stop(stops: &[DetourNode], mut at: usize) -> Vec<u8> {
    let mut text = Vec::new();
    while let Some((before, byte)) = stops[at].from {
        text.push(byte);
        at = before;
    }
    text.reverse();
    text
}

// Greedy lexing ends a terminal only where nothing else could go on, so the distance of a state cannot be
// computed thread by thread. The distance over all splits into terminals is a lower bound, since greedy
// lexing only removes texts. Method: A* over states, byte by byte, with that bound.

/// The distance of a state from the start in bytes, and the last step there.
type GreedyPath = (u64, Option<(StateId, u8)>);

impl CompletionSearch<'_> {
    /// Returns the shortest completion, of equally short ones a fixed one; `None` if there is none. Costs a
    /// visit for each state that is nearer than that, and each class of bytes.
    fn greedily(&mut self, start: StateId) -> Result<Option<Completion>, LimitExceeded> {
        let scanner = &self.program.lowered.scanner;
        let mut bytes: Vec<u8> = (0..=u8::MAX).collect();
        bytes.sort_by_key(|&byte| scanner.byte_class(byte));
        bytes.dedup_by_key(|byte| scanner.byte_class(*byte));
        let mut ways: HashMap<StateId, GreedyPath> = HashMap::from([(start, (0, None))]);
        let mut open = BinaryHeap::from([Reverse((self.distance(start)?, 0_u64, start))]);
        while let Some(Reverse((_, length, state))) = open.pop() {
            if self.machine.is_complete(state) {
                let text = text_to_state(&ways, state);
                let tokens = fewest_tokens(&self.program.vocabulary, &text);
                return Ok(Some(Completion { bytes: text, tokens, fewest: false }));
            }
            if ways.get(&state).is_some_and(|&(known, _)| known < length) {
                continue;
            }
            for &byte in &bytes {
                self.visit()?;
                let Some(to) = self.machine.step(self.program, state, byte, &mut self.work)? else {
                    continue;
                };
                let distance = self.distance(to)?;
                let nearer = ways.get(&to).is_none_or(|&(known, _)| length + 1 < known);
                if distance < u64::MAX && nearer {
                    ways.insert(to, (length + 1, Some((state, byte))));
                    open.push(Reverse((distance.saturating_add(length + 1), length + 1, to)));
                }
            }
        }
        Ok(None)
    }
}

/// Returns the bytes on the way to `state`.
fn text_to_state(ways: &HashMap<StateId, GreedyPath>, mut state: StateId) -> Vec<u8> {
    let mut text = Vec::new();
    while let Some(&(_, Some((before, byte)))) = ways.get(&state) {
        text.push(byte);
        state = before;
    }
    text.reverse();
    text
}

/// Splits `text` into the fewest tokens (dynamic programming); `None` if none spell it. `O(n m)` for tokens
/// of at most `m` bytes.
fn fewest_tokens(vocabulary: &Vocabulary, text: &[u8]) -> Option<Vec<TokenId>> {
    let trie = vocabulary.trie();
    // For each place: the number of tokens to the end, the first of them, and where that one ends.
    let mut ways: Vec<Option<(usize, TokenId, usize)>> = vec![None; text.len()];
    for at in (0..text.len()).rev() {
        let mut node = trie.root_child(text[at]);
        let mut end = at + 1;
        while let Some(here) = node {
            let rest = ways.get(end).map_or(Some(0), |way| way.map(|(count, ..)| count));
            if let Some((token, rest)) = token_at(trie, here).zip(rest)
                && ways[at].is_none_or(|(count, ..)| rest + 1 < count)
            {
                ways[at] = Some((rest + 1, token, end));
            }
            node = text.get(end).and_then(|&byte| trie.child(here, byte));
            end += 1;
        }
    }
    let (mut tokens, mut at) = (Vec::new(), 0);
    while at < text.len() {
        let (_, token, end) = ways[at]?;
        tokens.push(token);
        at = end;
    }
    Some(tokens)
}

// The machine finds the shortest text that the grammar allows. In a session it may be changed: where it would
// repeat a key, it is changed at its first repeat; where that does not help, or it would repeat an item,
// another one is searched byte by byte. Classes of tokens are replaced by the shortest of their tokens.

impl Constraint {
    /// The shortest text that makes this one complete: exactly as few bytes as can be. Among equally short
    /// ones, one of the fewest tokens, as far as a sixteenth of the budget goes ([`Completion::fewest`] says
    /// whether it did); of those a fixed one. If it would repeat a key or an item that must be distinct,
    /// another one is found, which may be a few bytes longer. Empty if the text is complete already. Nothing
    /// moves; [`advance_bytes`](Self::advance_bytes) appends it.
    ///
    /// Costs shortest paths over the open parser sets (Dijkstra's algorithm, over shortest texts of symbols
    /// by Knuth's), and lookups for each byte and each token on a way.
    ///
    /// # Errors
    /// When a budget is used up, above all [`Limits::completion_visits`](crate::Limits::completion_visits):
    /// the shortest text may be exponentially longer than the grammar. With [greedy
    /// lexing](crate::Syntax::LarkGreedy) also if no text completes this one.
    pub fn shortest_completion(&mut self) -> Result<Completion, StepError> {
        match self.here {
            TextPosition::In(mut state) => {
                let found =
                    self.run(&mut state, |machine, program, state, _| machine.completion(program, state))?;
                let found = found.ok_or_else(|| StepError::new(StepErrorKind::NoCompletion))?;
                let found = self.program.without_classes(found);
                let found = self.with_new_keys(found)?;
                self.with_new_items(found)
            }
            TextPosition::Ended(_) => {
                Ok(Completion { tokens: Some(Vec::new()), fewest: true, ..Completion::default() })
            }
        }
    }

    /// Returns a completion in which no key comes twice: the given one if it has none. Otherwise its bytes up
    /// to the first byte that makes the key new, or else the shortest completion that a search byte by byte
    /// finds.
    fn with_new_keys(&mut self, found: Completion) -> Result<Completion, StepError> {
        let Some(keys) = &self.readers.keys else { return Ok(found) };
        let read = keys.clone().read(&found.bytes)?;
        if read == found.bytes.len() {
            return Ok(found);
        }
        let mut other = self.fork();
        let mut bytes = found.bytes[..read].to_vec();
        // Possibly no new key begins with the bytes of this one.
        if other.advance_bytes(&bytes)? < bytes.len() {
            return self.completion_with_readers();
        }
        // The keys that have come are finitely many, so bytes that are no quote lead away from them.
        let next = other.next_bytes()?.into_iter().find(|&byte| byte != b'"' && byte != b'\\');
        let Some(byte) = next else { return self.completion_with_readers() };
        other.advance_bytes(&[byte])?;
        bytes.push(byte);
        bytes.extend_from_slice(&other.shortest_completion()?.bytes);
        Ok(Completion { tokens: self.program.tokens_of(&bytes), bytes, fewest: false })
    }

    /// A completion that the readers of keys and items allow, found byte by byte.
    fn completion_with_readers(&mut self) -> Result<Completion, StepError> {
        let mut state = self.here.state();
        let readers = self.readers.clone();
        let bytes = self.run(&mut state, |machine, program, state, _| {
            machine.completion_with_readers(program, state, &readers)
        })?;
        let bytes = bytes.ok_or_else(|| StepError::new(StepErrorKind::NoCompletion))?;
        Ok(Completion { tokens: self.program.tokens_of(&bytes), bytes, fewest: false })
    }

    /// Returns a completion in which no item comes again that must not: the given one if it has none, else
    /// the shortest that a search byte by byte finds.
    fn with_new_items(&mut self, found: Completion) -> Result<Completion, StepError> {
        if self.readers.items.is_none() {
            return Ok(found);
        }
        // Behind an item that repeats one, the machine knows nothing of where it may not end.
        if let Ok((state, _)) = self.along(&found.bytes)?
            && lock(&self.machine).is_complete(state)
        {
            return Ok(found);
        }
        self.completion_with_readers()
    }
}

impl Program {
    /// Returns the fewest tokens that spell bytes; `None` if the vocabulary lacks some, or if the grammar
    /// asks for special tokens, whose names are more than their bytes. Linear in the bytes times the longest
    /// token.
    fn tokens_of(&self, bytes: &[u8]) -> Option<Vec<TokenId>> {
        if !self.asked.specials.is_empty() {
            return None;
        }
        fewest_tokens(&self.vocabulary, bytes)
    }

    /// Puts a token in place of each class in a completion; there may be a shorter one then.
    fn without_classes(&self, mut completion: Completion) -> Completion {
        for class in &self.classes {
            let tokens = completion.tokens.iter_mut().flatten().filter(|token| **token == class.id);
            tokens.for_each(|token| *token = class.shortest);
        }
        let bytes = std::mem::take(&mut completion.bytes);
        let mut rest = &bytes[..];
        while let [first, ..] = rest {
            // A name is taken whole: its second mark does not begin another.
            let class = self.classes.iter().find(|class| rest.starts_with(&class.spelled));
            let name = || self.asked.specials.iter().find(|name| is_spelled(rest, name));
            let (text, taken) = if *first != special::MARK {
                (&rest[..1], 1)
            } else if let Some(class) = class {
                completion.fewest = false;
                (self.text_of_shortest(class), class.spelled.len())
            } else {
                let taken = name().map_or(1, |name| name.len() + 2);
                (&rest[..taken], taken)
            };
            completion.bytes.extend_from_slice(text);
            rest = &rest[taken..];
        }
        completion
    }

    /// Returns the text of the shortest token of a class.
    fn text_of_shortest<'p>(&'p self, class: &'p ResolvedClass) -> &'p [u8] {
        let (token, given) = (class.shortest, &self.asked.vocabulary);
        let text = self.vocabulary.bytes(token).or_else(|| given.bytes(token));
        text.or_else(|| class.name(token, given)).unwrap_or_default()
    }
}

/// Does a text begin with the special token of this name, as grammars have it?
fn is_spelled(text: &[u8], name: &str) -> bool {
    let inner = text.get(1..name.len() + 1);
    inner == Some(name.as_bytes()) && text.get(name.len() + 1) == Some(&special::MARK)
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

//! Traces of operations on constraints, held against the oracle and against constraints that came straight to
//! the same place.

mod world;

use std::collections::HashMap;

use domino::{CompiledGrammar, Constraint, Lookahead, StepErrorKind, TokenId, TokenSet};

use super::{bytes::Bytes, walk};
use world::World;

/// Operations of one trace.
const OPERATIONS: usize = 48;
/// Constraints alive at once.
const TRAVELLERS: usize = 4;
/// Length of a text to which nothing is added, so that the oracle stays quick.
const LONGEST: usize = 48;

/// Fails if a trace goes wrong.
pub fn check(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    let Some(world) = World::new(&mut bytes) else { return };
    let Some(oracle) = &world.language.oracle else { return };
    let Some(compiled) = walk::compile(&world.compiler(), &world.language.grammar, Some(oracle)) else {
        return;
    };
    world.grow(&compiled);
    let mut trace = Trace {
        world: &world,
        compiled: &compiled,
        truth: Truth::new(&world, oracle),
        travellers: vec![Traveller { constraint: compiled.constraint(), steps: Vec::new(), remembered: 0 }],
    };
    for _ in 0..OPERATIONS {
        if bytes.is_empty() {
            break;
        }
        trace.operation(&mut bytes);
    }
    // Compiling again takes as long as all the rest.
    trace.finish(data.len().is_multiple_of(4));
}

/// Answers by the oracle.
struct Truth<'w> {
    world: &'w World,
    session: domino::oracle::Session<'w>,
    tokens: domino::oracle::SortedTokens,
    text: Vec<u8>,
    masks: HashMap<Vec<u8>, TokenSet>,
}

impl<'w> Truth<'w> {
    fn new(world: &'w World, oracle: &'w domino::oracle::Oracle) -> Self {
        let tokens = domino::oracle::SortedTokens::new(&world.vocabulary);
        Self { world, session: oracle.session(), tokens, text: Vec::new(), masks: HashMap::new() }
    }

    /// Moves the oracle to a viable text.
    fn at(&mut self, text: &[u8]) -> &mut domino::oracle::Session<'w> {
        let shared = self.text.iter().zip(text).take_while(|(a, b)| a == b).count();
        while self.session.len() > shared {
            self.session.pop();
        }
        assert!(
            self.session.push_all(&text[shared..]),
            "what was taken is not viable: {:?}",
            text.escape_ascii().to_string()
        );
        self.text = text.to_vec();
        &mut self.session
    }

    fn mask(&mut self, text: &[u8]) -> TokenSet {
        if let Some(mask) = self.masks.get(text) {
            return mask.clone();
        }
        self.at(text);
        let mask = self.session.mask(&self.tokens);
        self.masks.insert(text.to_vec(), mask.clone());
        mask
    }

    fn is_complete(&mut self, text: &[u8]) -> bool {
        self.at(text).is_complete()
    }

    /// Number of bytes of `more` that can follow `text`.
    fn viable(&mut self, text: &[u8], more: &[u8]) -> usize {
        let session = self.at(text);
        let taken = more.iter().take_while(|&&byte| session.push(byte)).count();
        for _ in 0..taken {
            session.pop();
        }
        taken
    }

    /// True if `token` can follow `text`.
    fn allows(&mut self, text: &[u8], token: TokenId) -> bool {
        match self.world.vocabulary.bytes(token) {
            Some(bytes) => self.viable(text, bytes) == bytes.len(),
            None => self.world.vocabulary.is_end_of_text(token) && self.is_complete(text),
        }
    }
}

/// One step forward.
#[derive(Debug, Clone)]
enum Step {
    Token(TokenId),
    Bytes(Vec<u8>),
}

/// A constraint, with the steps that it took and did not undo.
#[derive(Clone)]
struct Traveller {
    constraint: Constraint,
    steps: Vec<Step>,
    /// Number of the last steps that it must remember; fewer if budgets are tight.
    remembered: usize,
}

impl Traveller {
    fn push(&mut self, step: Step, world: &World) {
        self.steps.push(step);
        self.remembered = (self.remembered + 1).min(world.history);
    }

    fn text(&self, world: &World) -> Vec<u8> {
        let bytes = |step: &Step| match step {
            Step::Token(token) => world.vocabulary.bytes(*token).unwrap_or_default().to_vec(),
            Step::Bytes(bytes) => bytes.clone(),
        };
        self.steps.iter().flat_map(bytes).collect()
    }

    fn is_ended(&self, world: &World) -> bool {
        matches!(self.steps.last(), Some(Step::Token(token)) if world.vocabulary.is_end_of_text(*token))
    }
}

struct Trace<'w> {
    world: &'w World,
    compiled: &'w CompiledGrammar,
    truth: Truth<'w>,
    travellers: Vec<Traveller>,
}

impl Trace<'_> {
    fn operation(&mut self, bytes: &mut Bytes<'_>) {
        let at = bytes.below(self.travellers.len());
        let world = self.world;
        let (text, ended) = (self.travellers[at].text(world), self.travellers[at].is_ended(world));
        let size = world.vocabulary.size();
        match bytes.below(12) {
            0..=2 => {
                let Some(mask) = self.mask(at, &text, ended) else { return };
                let Some(token) = mask.iter().nth(bytes.below(mask.len().clamp(1, 256))) else { return };
                self.advance(at, &text, ended, token);
            }
            3 => self.advance(at, &text, ended, walk::id(bytes.below(size + 2))),
            4 => self.rollback(at, bytes.below(5)),
            5 => drop(self.mask(at, &text, ended)),
            6 => self.allows(at, &text, ended, walk::id(bytes.below(size + 2))),
            7 => {
                let twin = self.travellers[at].clone();
                self.travellers.insert(0, twin);
                self.travellers.truncate(TRAVELLERS);
            }
            8 => self.forced(at, &text, ended),
            9 => {
                let count = bytes.below(6);
                self.advance_bytes(at, &text, ended, bytes.take(count));
            }
            10 => {
                let token = walk::id(bytes.below(size));
                let taken = world.vocabulary.bytes(token).unwrap_or_default();
                self.advance_bytes(at, &text, ended, &taken[..bytes.below(taken.len() + 1)]);
            }
            _ => self.next_bytes(at, &text, ended),
        }
        let at = at.min(self.travellers.len() - 1);
        self.look(at);
    }

    /// The answer of a call; `None` for a budget's error, which is allowed if the budgets are tight.
    fn answer<T>(&self, answer: Result<T, domino::StepError>) -> Option<T> {
        let answer = walk::unless_limited(answer);
        assert!(answer.is_some() || self.world.is_tight, "a budget is used up");
        answer
    }

    fn mask(&mut self, at: usize, text: &[u8], ended: bool) -> Option<TokenSet> {
        let mask = self.travellers[at].constraint.mask().cloned();
        let mask = self.answer(mask)?;
        self.check_mask(&mask, text, ended);
        Some(mask)
    }

    fn check_mask(&mut self, mask: &TokenSet, text: &[u8], ended: bool) {
        if ended {
            assert!(mask.is_empty());
            return;
        }
        let vocabulary = &self.world.vocabulary;
        let exact = self.truth.mask(text);
        if self.world.lookahead == Lookahead::Unbounded {
            walk::assert_same(mask, &exact, vocabulary, text);
        } else {
            assert!(mask.is_subset(&exact), "{mask:?}, but exact is {exact:?}");
            for &token in vocabulary.end_of_text() {
                assert_eq!(mask.contains(token), exact.contains(token), "end of text");
            }
            for (token, bytes) in vocabulary.text_tokens() {
                assert!(bytes.len() > 1 || mask.contains(token) == exact.contains(token), "{token}");
            }
        }
    }

    fn allows(&mut self, at: usize, text: &[u8], ended: bool, token: TokenId) {
        let answer = self.travellers[at].constraint.allows(token);
        let Some(allowed) = self.answer(answer) else { return };
        if self.world.lookahead == Lookahead::Unbounded {
            assert_eq!(allowed, !ended && self.truth.allows(text, token), "allows({token})");
        }
        if let Some(mask) = self.mask(at, text, ended) {
            assert_eq!(allowed, mask.contains(token), "allows({token}) and the mask");
        }
    }

    fn forced(&mut self, at: usize, text: &[u8], ended: bool) {
        let answer = self.travellers[at].constraint.forced();
        let Some(forced) = self.answer(answer) else { return };
        if let Some(mask) = self.mask(at, text, ended) {
            let only = if mask.len() == 1 { mask.iter().next() } else { None };
            assert_eq!(forced, only);
        }
    }

    fn advance(&mut self, at: usize, text: &[u8], ended: bool, token: TokenId) {
        let more = self.world.vocabulary.bytes(token).unwrap_or_default().len();
        if text.len() + more > LONGEST {
            return;
        }
        let can_follow = !ended && self.truth.allows(text, token);
        let traveller = &mut self.travellers[at];
        match traveller.constraint.advance(token) {
            Ok(()) => {
                assert!(can_follow, "{token} was taken");
                traveller.push(Step::Token(token), self.world);
            }
            Err(error) => match error.kind() {
                StepErrorKind::Refused(refused) => assert!(!can_follow && *refused == token, "{error}"),
                StepErrorKind::Limit(_) => assert!(self.world.is_tight, "{error}"),
                kind => panic!("{kind:?}: {error}"),
            },
        }
    }

    fn advance_bytes(&mut self, at: usize, text: &[u8], ended: bool, more: &[u8]) {
        if text.len() + more.len() > LONGEST {
            return;
        }
        let viable = if ended { 0 } else { self.truth.viable(text, more) };
        let answer = self.travellers[at].constraint.advance_bytes(more);
        let Some(taken) = self.answer(answer) else { return };
        assert_eq!(taken, viable, "of {:?}", more.escape_ascii().to_string());
        if taken == more.len() && !ended {
            self.travellers[at].push(Step::Bytes(more.to_vec()), self.world);
        }
    }

    fn rollback(&mut self, at: usize, steps: usize) {
        let traveller = &mut self.travellers[at];
        let taken = traveller.steps.len();
        match traveller.constraint.rollback(steps).map_err(|error| error.kind().clone()) {
            Ok(()) => {
                traveller.remembered =
                    traveller.remembered.checked_sub(steps).expect("so many are remembered");
                traveller.steps.truncate(taken - steps);
            }
            Err(StepErrorKind::HistoryTooShort(held)) => assert!(steps > taken && held == taken),
            Err(StepErrorKind::HistoryForgotten(held)) => {
                assert!(held < steps && steps <= taken);
                assert!(held == traveller.remembered || (self.world.is_tight && held < traveller.remembered));
                traveller.remembered = held;
            }
            Err(kind) => panic!("{kind:?}"),
        }
    }

    fn next_bytes(&mut self, at: usize, text: &[u8], ended: bool) {
        let answer = self.travellers[at].constraint.next_bytes();
        let Some(next) = self.answer(answer) else { return };
        let session = self.truth.at(text);
        let exact: Vec<u8> =
            (0..=u8::MAX).filter(|&byte| !ended && session.push(byte) && session.pop()).collect();
        assert_eq!(next, exact, "after {:?}", text.escape_ascii().to_string());
    }

    /// Checks all that is cheap to ask, after every operation.
    fn look(&mut self, at: usize) {
        let traveller = &self.travellers[at];
        let text = traveller.text(self.world);
        assert_eq!(traveller.constraint.steps(), traveller.steps.len());
        assert_eq!(traveller.constraint.is_ended(), traveller.is_ended(self.world));
        let complete = traveller.constraint.is_complete();
        assert_eq!(complete, self.truth.is_complete(&text), "after {:?}", text.escape_ascii().to_string());
        assert!(complete || !traveller.is_ended(self.world));
    }

    /// Checks every traveller against one that came straight there, and, if `anew`, against one of the same
    /// grammar compiled anew.
    fn finish(&mut self, anew: bool) {
        let compiler = self.world.roomy_compiler();
        let again = || compiler.compile(&self.world.language.grammar).expect("compiled with tighter budgets");
        let anew = anew.then(again);
        for at in 0..self.travellers.len() {
            let (text, ended) =
                (self.travellers[at].text(self.world), self.travellers[at].is_ended(self.world));
            for compiled in [Some(self.compiled), anew.as_ref()].into_iter().flatten() {
                let mut straight = compiled.constraint();
                if !straight_to(&mut straight, &self.travellers[at].steps) {
                    assert!(self.world.is_tight, "a budget is used up");
                    continue;
                }
                if !self.world.is_tight && std::ptr::eq(compiled, self.compiled) {
                    assert_eq!(straight.threads(), self.travellers[at].constraint.threads());
                }
                assert_eq!(straight.is_complete(), self.travellers[at].constraint.is_complete());
                let mask = straight.mask().cloned();
                if let (Some(mask), Some(own)) = (self.answer(mask), self.mask(at, &text, ended)) {
                    walk::assert_same(&own, &mask, &self.world.vocabulary, &text);
                }
            }
            self.rollback(at, self.travellers[at].remembered);
            let (text, ended) =
                (self.travellers[at].text(self.world), self.travellers[at].is_ended(self.world));
            self.mask(at, &text, ended);
        }
    }
}

/// Takes `steps`; returns `false` if a budget stands in the way.
fn straight_to(constraint: &mut Constraint, steps: &[Step]) -> bool {
    steps.iter().all(|step| match step {
        Step::Token(token) => walk::unless_limited(constraint.advance(*token)).is_some(),
        Step::Bytes(bytes) => match walk::unless_limited(constraint.advance_bytes(bytes)) {
            Some(taken) => {
                assert_eq!(taken, bytes.len());
                true
            }
            None => false,
        },
    })
}

//! Promise 5, exact rollback: after any steps forth and back, the constraint equals one that came straight
//! here, and clones are independent.

use domino::{CompiledGrammar, Compiler, Constraint, Limits, StepErrorKind, TokenId};
use proptest::prelude::*;

use super::generate::{Case, World, case, config};

/// One step forward.
#[derive(Clone)]
enum Step {
    Token(TokenId),
    Bytes(Vec<u8>),
}

/// A constraint, and the same one without its steps back.
#[derive(Clone)]
struct Traveller {
    constraint: Constraint,
    steps: Vec<Step>,
    /// Number of steps that can be undone, at most `window`.
    kept: usize,
    window: usize,
}

impl Traveller {
    fn text(&self, world: &World) -> Vec<u8> {
        let bytes = |step: &Step| match step {
            Step::Token(token) => world.vocabulary.bytes(*token).unwrap_or_default().to_vec(),
            Step::Bytes(bytes) => bytes.clone(),
        };
        self.steps.iter().flat_map(bytes).collect()
    }

    fn check(&mut self, world: &World, compiled: &CompiledGrammar) {
        let mut straight = compiled.constraint();
        for step in &self.steps {
            match step {
                Step::Token(token) => straight.advance(*token).unwrap(),
                Step::Bytes(bytes) => assert_eq!(straight.advance_bytes(bytes).unwrap(), bytes.len()),
            }
        }
        assert_eq!(self.constraint.is_complete(), straight.is_complete());
        assert_eq!(self.constraint.is_ended(), straight.is_ended());
        assert_eq!(self.constraint.threads(), straight.threads());
        let text = self.text(world);
        let mask = self.constraint.mask().unwrap();
        assert_eq!(mask, straight.mask().unwrap());
        if straight.is_ended() {
            assert!(mask.is_empty());
        } else {
            assert_eq!(mask, &world.oracle.mask(&text, &world.vocabulary));
        }
    }

    fn forth(&mut self, world: &World, choice: u16) {
        let mask = self.constraint.mask().unwrap().clone();
        let Some(token) = world.choose(&mask, choice) else { return };
        self.kept = self.window.min(self.kept + 1);
        match world.vocabulary.bytes(token).filter(|_| choice.is_multiple_of(5)) {
            Some(bytes) => {
                assert_eq!(self.constraint.advance_bytes(bytes).unwrap(), bytes.len());
                self.steps.push(Step::Bytes(bytes.to_vec()));
            }
            None => {
                self.constraint.advance(token).unwrap();
                self.steps.push(Step::Token(token));
            }
        }
    }

    fn back(&mut self, steps: usize) {
        if steps > self.steps.len() {
            let error = self.constraint.rollback(steps).unwrap_err();
            assert_eq!(error.kind(), &StepErrorKind::HistoryTooShort(self.steps.len()));
        } else if steps > self.kept {
            let error = self.constraint.rollback(steps).unwrap_err();
            assert_eq!(error.kind(), &StepErrorKind::HistoryForgotten(self.kept));
        } else {
            self.constraint.rollback(steps).unwrap();
            self.kept -= steps;
            self.steps.truncate(self.steps.len() - steps);
        }
        assert_eq!(self.constraint.steps(), self.steps.len());
    }

    /// Tries steps that cannot be taken, which leave no trace in the history.
    fn stumble(&mut self, world: &World, choice: u16) {
        let token = TokenId::from_index(usize::from(choice) % world.vocabulary.size()).unwrap();
        if !self.constraint.allows(token).unwrap() {
            self.constraint.advance(token).unwrap_err();
            if let Some(bytes) = world.vocabulary.bytes(token) {
                assert!(self.constraint.advance_bytes(bytes).unwrap() < bytes.len());
            }
        }
    }
}

fn travel(case: &Case, window: Option<usize>) {
    let world = case.build();
    let mut limits = Limits::default();
    limits.history = window.unwrap_or(limits.history);
    let window = limits.history;
    let Some(compiled) = world.compile_with(Compiler::new(world.vocabulary.clone()).limits(limits)) else {
        return;
    };
    let start = Traveller { constraint: compiled.constraint(), steps: Vec::new(), kept: 0, window };
    let mut travellers = vec![start.clone(), start];
    for &choice in &case.choices {
        let (what, choice) = (choice % 10, choice / 10);
        let at = usize::from(choice) % travellers.len();
        let traveller = &mut travellers[at];
        match what {
            0..5 => traveller.forth(&world, choice),
            5 | 6 => traveller.back(usize::from(choice / 2) % 4),
            7 => traveller.back(traveller.steps.len() + usize::from(choice % 4 == 0)),
            8 => traveller.stumble(&world, choice),
            _ => {
                let twin = traveller.clone();
                travellers.insert(0, twin);
                travellers.truncate(4);
            }
        }
        let at = at.min(travellers.len() - 1);
        travellers[at].check(&world, &compiled);
    }
    for traveller in &mut travellers {
        traveller.check(&world, &compiled);
        traveller.back(traveller.steps.len());
        traveller.check(&world, &compiled);
    }
}

proptest! {
    #![proptest_config(config(100))]

    #[test]
    fn rollback_restores_the_constraint_exactly(case in case(30)) {
        travel(&case, None);
    }

    #[test]
    fn the_last_steps_can_be_undone(case in case(30), window in 0..5_usize) {
        travel(&case, Some(window));
    }
}

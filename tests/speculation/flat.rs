//! Drafts of a model that takes several tokens at the cost of one, as a card does: as long as guesses are
//! likely, and no longer than a pass has room.

use std::num::NonZeroUsize;

use domino::{
    TokenId,
    decode::{Decoder, Sampling},
    model::{Model, ScriptedError, ScriptedModel},
    proposer::{DraftLength, Drafter, Guess, Pass, Propose, Site},
};

use super::{compiled, vocabulary};
use crate::support::delegate::delegate_model;

const NO_NOISE: domino::proposer::Noise<'static> = &|_, _| 0.0;
const SIXTEEN: NonZeroUsize = NonZeroUsize::new(16).unwrap();

/// A proposer of a known text, and the acceptance that it says.
#[derive(Debug, Clone)]
struct Knows {
    text: Vec<TokenId>,
    acceptance: f64,
}

impl Propose for Knows {
    fn guess(&mut self, site: &mut Site<'_>) -> Option<Guess> {
        let token = self.text.get(site.tokens().len() - 1).copied()?;
        Some(Guess { token, acceptance: self.acceptance })
    }
}

fn drafter(acceptance: f64, text: &[TokenId]) -> Drafter {
    Drafter::new(Box::new(Knows { text: text.to_vec(), acceptance }), DraftLength::Auto)
}

/// The length of a first draft after measured passes of this many seconds.
fn first(acceptance: f64, at_once: NonZeroUsize, seconds: f64, room: usize) -> usize {
    let mut drafter = drafter(acceptance, &[TokenId::new(1); 80]);
    drafter.set_at_once(at_once);
    for tokens in 1..=16 {
        drafter.passed(Pass::whole(tokens), seconds);
    }
    drafter.draft(&mut Site::new(None, &mut vec![TokenId::new(1)], 0.0, NO_NOISE), room).tokens.len()
}

#[test]
fn drafts_go_on_while_guesses_are_likely_and_the_pass_has_room() {
    for seconds in [1e-4, 5.0] {
        // Tokens that are reached with less than three per cent are not worth a guess.
        for (acceptance, length) in [(0.02, 0), (0.3, 2), (0.5, 5), (0.7, 9), (0.8, 15), (0.85, 15)] {
            assert_eq!(first(acceptance, SIXTEEN, seconds, 60), length, "{acceptance}");
        }
        // Sixteen more tokens for the price of one pay where they are right often enough.
        assert_eq!(first(0.9, SIXTEEN, seconds, 60), 31);
        assert_eq!(first(0.999, SIXTEEN, seconds, 60), 60);
        assert_eq!(first(0.999, SIXTEEN, seconds, 7), 7);
    }
    let eight = NonZeroUsize::new(8).unwrap();
    assert_eq!(first(0.8, eight, 0.01, 60), 7);
}

/// A scripted model that says how many tokens it takes at once.
struct Flat {
    model: ScriptedModel,
    at_once: NonZeroUsize,
}

impl Model for Flat {
    type Error = ScriptedError;

    delegate_model!(model, forward);

    fn tokens_at_once(&self) -> NonZeroUsize {
        self.at_once
    }
}

fn decoder(at_once: NonZeroUsize) -> Decoder<Flat> {
    let model = ScriptedModel::new(40, 256, 4);
    Decoder::builder(Flat { model, at_once })
        .vocabulary(vocabulary())
        .constraint(compiled("root ::= [a-h]{90}").constraint())
        .sampling(Sampling::with_temperature(0.5).unwrap())
        .max_new_tokens(100)
        .build()
        .unwrap()
}

/// The length of a text's first draft. The prompt is one token, so its pass has one.
fn first_draft(decoder: &mut Decoder<Flat>, text: &[TokenId], acceptance: f64) -> usize {
    decoder.set_drafter(Some(drafter(acceptance, text)));
    let mut steps = decoder.steps(&[TokenId::new(1)]);
    steps.next().unwrap().unwrap();
    steps.drafted().len()
}

#[test]
fn a_decoder_drafts_by_what_its_model_says() {
    for (acceptance, flat, steep) in [(0.7, 9, 6), (0.5, 5, 3), (0.8, 15, 10)] {
        for (at_once, length) in [(SIXTEEN, flat), (NonZeroUsize::MIN, steep)] {
            let mut decoder = decoder(at_once);
            let plain = decoder.generate(&[TokenId::new(1)]).unwrap();
            assert!(plain.tokens.len() > 40, "a long text: {}", plain.tokens.len());
            let drafted = first_draft(&mut decoder, &plain.tokens, acceptance);
            assert_eq!(drafted, length, "{acceptance} {at_once}");
            // And the text is the same.
            decoder.set_drafter(Some(drafter(acceptance, &plain.tokens)));
            assert_eq!(decoder.generate(&[TokenId::new(1)]).unwrap().tokens, plain.tokens);
        }
    }
}

#[test]
fn calibration_measures_one_pass_where_all_cost_the_same() {
    for (at_once, passes) in [(SIXTEEN, 1), (NonZeroUsize::MIN, 18)] {
        let mut decoder = decoder(at_once);
        decoder.set_drafter(Some(drafter(0.5, &[])));
        let before = decoder.model().model.passes();
        decoder.calibrate().unwrap();
        // A prompt, and each pass twice, or once if it is long.
        let made = usize::try_from(decoder.model().model.passes() - before).unwrap() - 1;
        assert!((passes..=2 * passes).contains(&made), "{made} passes");
        let cost = decoder.drafter().unwrap().pass_cost().clone();
        assert!(cost.unmeasured(true).is_empty() && cost.seconds(Pass::whole(1)) > 0.0);
        decoder.calibrate().unwrap();
        assert_eq!(*decoder.drafter().unwrap().pass_cost(), cost, "it is known by now");
    }
}

//! Drafts of a second model: lossless, right if it is the same model, and correct after refused tokens.

use std::sync::{Arc, Mutex};

use domino::{
    TokenId, TokenSet, Vocabulary,
    decode::{
        BatchDecoder, BatchEvent, DecodeOptions, Decoder, DraftMask, DraftModel, DraftModelErrorKind,
        DraftTally, Generation, Penalties, Sampling,
    },
    model::{Fault, Logits, Model, OneByOne, Rows, ScriptedModel},
    proposer::{BestOf, DraftLength, Drafter, Drawn, Guess, Lookup, Propose, Seen, Site},
};
use proptest::prelude::*;

use super::{LISTS, compiled, vocabulary};
use crate::support::delegate::delegate_model;

const PROMPT: [TokenId; 2] = [TokenId::new(1), TokenId::new(25)];
const SEED: u64 = 11;

fn scripted(seed: u64) -> ScriptedModel {
    ScriptedModel::new(40, 256, seed)
}

fn drafting<M: Model + 'static>(model: M) -> DraftModel<M> {
    DraftModel::new(model, &vocabulary(), &vocabulary()).unwrap()
}

/// Decodes a text with seed [`SEED`], with drafts of four tokens if there is a draft model, and returns how
/// it guessed.
fn decode(
    options: &DecodeOptions,
    constrained: bool,
    draft: Option<DraftModel<ScriptedModel>>,
) -> (Generation, Option<DraftTally>) {
    let mut builder = Decoder::builder(scripted(SEED)).vocabulary(vocabulary()).options(options.clone());
    if constrained {
        builder = builder.constraint(compiled(LISTS).constraint());
    }
    let shared = draft.map(|draft| Arc::new(Mutex::new(draft)));
    if let Some(draft) = &shared {
        let length = DraftLength::up_to(4, 0.0).unwrap();
        builder = builder.drafter(Drafter::new(Box::new(Arc::clone(draft)), length));
    }
    let generation = builder.build().unwrap().generate(&PROMPT).unwrap();
    (generation, shared.map(|draft| draft.lock().unwrap().tally()))
}

fn options(sampling: Sampling, seed: u64) -> DecodeOptions {
    let mut options = DecodeOptions::default();
    options.sampling = sampling;
    options.seed = seed;
    options.max_new_tokens = 40;
    options
}

/// The model as its own draft model is right whatever the temperature, the cuts and the penalties: equal
/// distributions and equal noise give equal tokens.
#[test]
fn a_model_drafting_for_itself_is_always_right() {
    let heats = [0.0, 0.3, 0.8, 1.0, 1.7, 5.0].map(|heat| Sampling::with_temperature(heat).unwrap());
    let hot = Sampling::with_temperature(1.3).unwrap();
    let cuts = [hot.top_k(3).unwrap(), hot.top_p(0.7).unwrap(), hot.min_p(0.1).unwrap()];
    for (sampling, penalised) in heats.into_iter().chain(cuts).flat_map(|one| [(one, false), (one, true)]) {
        for (seed, constrained) in (0..6).map(|seed| (seed, seed % 3 > 0)) {
            let mut options = options(sampling, seed);
            if penalised {
                options.penalties = Penalties::none().repeat(1.3).unwrap().frequency(0.5).unwrap();
            }
            let (plain, _) = decode(&options, constrained, None);
            let (found, tally) = decode(&options, constrained, Some(drafting(scripted(SEED))));
            let (stats, tally) = (found.stats, tally.unwrap());
            assert_eq!((&found.tokens, found.finish), (&plain.tokens, plain.finish));
            assert_eq!(stats.accepted, stats.drafted, "{sampling:?}");
            assert_eq!((tally.right, tally.judged > 0 || stats.tokens < 3), (tally.judged, true));
            assert!(stats.tokens < 9 || stats.passes * 3 < stats.tokens * 2, "{stats:?}");
        }
    }
}

/// The draft model's mask changes no text, and makes drafts longer.
#[test]
fn the_mask_of_a_draft_model_changes_acceptance_only() {
    let (mut with, mut without) = (DraftTally::default(), DraftTally::default());
    let mut drafted = [0, 0];
    for seed in 0..20 {
        let options = options(Sampling::with_temperature(0.8).unwrap(), seed);
        let (plain, _) = decode(&options, true, None);
        for (at, (mask, all)) in
            [(DraftMask::On, &mut with), (DraftMask::Off, &mut without)].into_iter().enumerate()
        {
            let (found, tally) = decode(&options, true, Some(drafting(scripted(SEED)).mask(mask)));
            assert_eq!((&found.tokens, found.finish), (&plain.tokens, plain.finish));
            let tally = tally.unwrap();
            all.judged += tally.judged;
            all.right += tally.right;
            drafted[at] += found.stats.drafted;
        }
    }
    assert_eq!(with.right, with.judged);
    assert!(2 * without.right < without.judged, "{without:?}");
    assert!(drafted[1] * 4 < drafted[0] * 3, "{drafted:?}");
}

/// Acceptance of another model's guesses is learnt from how often they are right.
#[test]
fn acceptance_of_a_draft_models_guesses_is_learnt() {
    let all = {
        let mut all = TokenSet::empty(40);
        (1..28).for_each(|id| all.insert(TokenId::new(id)));
        all
    };
    let draw = |row: &[f32], tokens: &[TokenId], _: Option<&TokenSet>| {
        let sampler = domino::decode::Sampler::new(Sampling::with_temperature(1.0).unwrap(), 5);
        let token = sampler.draw(row, &all, tokens.len()).ok()?;
        Some(Drawn { token, margin: 2.0 })
    };
    let mut draft = drafting(scripted(3));
    let mut guess = |rounds: usize, right_in: usize| {
        let mut acceptance = 0.0;
        for round in 0..rounds {
            let mut tokens = vec![PROMPT[0]; 2 + round % 8];
            let mut site = Site::new(None, &mut tokens, 1.0, &|_, _| 0.0).drawing(&draw);
            let guess = draft.guess(&mut site).unwrap();
            let drawn = if round % right_in == 0 { guess.token } else { TokenId::new(guess.token.raw() ^ 1) };
            draft.observe(&mut site, Seen::new(drawn, None));
            acceptance = guess.acceptance;
        }
        acceptance
    };
    assert!(guess(2000, 1) > 0.97);
    assert!((guess(2000, 2) - 0.5).abs() < 0.03);
    assert!((guess(2000, 5) - 0.2).abs() < 0.03);
}

/// Checks that a guess depends on the text before it alone: it is that of a draft model which has read
/// nothing else.
fn check_rollback(steps: &[(usize, Vec<u32>)], constrained: bool) {
    let draw = |row: &[f32], _: &[TokenId], allowed: Option<&TokenSet>| {
        let best = |one: &(f32, u32), other: &(f32, u32)| one.0.total_cmp(&other.0);
        let allowed = |id: u32| allowed.is_none_or(|allowed| allowed.contains(TokenId::new(id)));
        let row = row.iter().copied().zip(0..28).filter(|&(_, id)| allowed(id));
        let (logit, id) = row.max_by(best)?;
        // A model that has read another text nearly always has other logits.
        Some(Drawn { token: TokenId::new(id), margin: f64::from(logit.abs()) })
    };
    let grammar = compiled(LISTS);
    let mut kept = drafting(scripted(SEED));
    let mut text = PROMPT.to_vec();
    let guess = |draft: &mut DraftModel<ScriptedModel>, text: &mut Vec<TokenId>| -> Option<Guess> {
        let mut constraint = grammar.constraint();
        for &token in &text[PROMPT.len()..] {
            if constraint.advance(token).is_err() {
                break;
            }
        }
        let constraint = constrained.then_some(&constraint);
        draft.guess(&mut Site::new(constraint, text, 0.0, &|_, _| 0.0).drawing(&draw))
    };
    for (cut, more) in steps {
        let length = PROMPT.len().max(text.len() - (*cut).min(text.len()));
        text.truncate(length);
        text.extend(more.iter().map(|&id| TokenId::new(id)));
        let found = guess(&mut kept, &mut text);
        assert_eq!(found, guess(&mut drafting(scripted(SEED)), &mut text));
    }
}

proptest! {
    #[test]
    fn a_draft_model_after_refused_tokens_equals_a_fresh_one(
        steps in prop::collection::vec((0..6_usize, prop::collection::vec(1..28_u32, 0..5)), 1..20),
        constrained: bool,
    ) {
        check_rollback(&steps, constrained);
    }
}

/// A draft model that fails, or whose context is short, guesses nothing there, and the text is the same.
#[test]
fn a_draft_model_that_fails_guesses_nothing() {
    let options = options(Sampling::with_temperature(1.0).unwrap(), 3);
    let (plain, _) = decode(&options, false, None);
    assert!(plain.tokens.len() > 20);
    for draft in [
        scripted(SEED).fault(8, Fault::Pass).fault(12, Fault::NotANumber).fault(15, Fault::Impossible),
        ScriptedModel::new(40, 12, SEED),
        ScriptedModel::new(40, 1, SEED),
    ] {
        let (found, tally) = decode(&options, false, Some(drafting(draft)));
        assert_eq!(found.tokens, plain.tokens);
        let tally = tally.unwrap();
        assert_eq!(tally.right, tally.judged);
        assert!(tally.guessed < plain.tokens.len());
    }
}

/// A draft model that counts the tokens it reads.
#[derive(Debug)]
struct Counts(ScriptedModel, Arc<Mutex<usize>>);

impl Model for Counts {
    type Error = domino::model::ScriptedError;

    delegate_model!(0);

    fn forward(&mut self, tokens: &[TokenId], rows: Rows<'_>) -> Result<Logits, Self::Error> {
        *self.1.lock().unwrap() += tokens.len();
        self.0.forward(tokens, rows)
    }
}

/// A draft model reads each token of the text once, and tokens of drafts that were refused; a single allowed
/// token is known without a pass.
#[test]
fn a_draft_model_reads_no_token_twice() {
    let read = Arc::new(Mutex::new(0));
    let draft = drafting(Counts(scripted(SEED), Arc::clone(&read)));
    let length = DraftLength::up_to(4, 0.0).unwrap();
    let mut decoder = Decoder::builder(scripted(SEED))
        .vocabulary(vocabulary())
        .options(options(Sampling::with_temperature(1.0).unwrap(), 1))
        .drafter(Drafter::new(Box::new(draft), length))
        .build()
        .unwrap();
    let text = decoder.generate(&PROMPT).unwrap();
    assert_eq!(text.stats.accepted, text.stats.drafted);
    assert!(*read.lock().unwrap() <= PROMPT.len() + text.tokens.len());
    *read.lock().unwrap() = 0;
    let forced = compiled(r#"root ::= "abc" "d""#);
    let vocabulary = vocabulary();
    let mut tokens = PROMPT.to_vec();
    let mut constraint = forced.constraint();
    constraint.advance_text(b"abc").unwrap();
    let mut draft = drafting(Counts(scripted(SEED), Arc::clone(&read)));
    let guess = draft.guess(&mut Site::new(Some(&constraint), &mut tokens, 1.0, &|_, _| 0.0)).unwrap();
    assert_eq!((vocabulary.bytes(guess.token), guess.acceptance), (Some(&b"d"[..]), 1.0));
    assert_eq!(*read.lock().unwrap(), 0);
}

/// Texts of a batch, each with a draft model of its own beside other proposers, have the tokens they have
/// alone.
#[test]
fn texts_of_a_batch_with_draft_models_are_those_alone() {
    let model = OneByOne::new((0..3).map(|_| scripted(SEED)).collect());
    let mut batch = BatchDecoder::new(model, vocabulary()).unwrap();
    let mut expected = std::collections::BTreeMap::new();
    for seed in 0..7 {
        let options = options(Sampling::with_temperature(1.0).unwrap(), seed);
        let draft = drafting(scripted(if seed % 2 == 0 { SEED } else { seed }));
        let proposer = BestOf::new(vec![Box::new(Lookup::default())]).with_expensive(Box::new(draft));
        let length = if seed < 4 { DraftLength::Auto } else { DraftLength::up_to(3, 0.0).unwrap() };
        let drafter = Drafter::new(Box::new(proposer), length);
        let constraint = Some(compiled(LISTS).constraint());
        let id = batch.add_with_drafter(&PROMPT, constraint, &options, drafter).unwrap();
        expected.insert(id, decode(&options, true, None).0.tokens);
    }
    while !batch.is_empty() {
        for event in batch.step() {
            match event {
                BatchEvent::Finished { sequence, generation } => {
                    assert_eq!(Some(generation.tokens), expected.remove(&sequence));
                }
                BatchEvent::Failed { error, .. } => panic!("{error}"),
                _ => {}
            }
        }
    }
    assert!(expected.is_empty());
}

#[test]
fn draft_models_of_other_vocabularies_are_refused() {
    let refused = |model: ScriptedModel, own: &Vocabulary| {
        DraftModel::new(model, own, &vocabulary()).unwrap_err().kind().clone()
    };
    let other =
        Vocabulary::builder().token(TokenId::new(1), "z").end_of_text(TokenId::new(0)).build().unwrap();
    let kind = refused(scripted(1), &other);
    assert!(
        matches!(kind, DraftModelErrorKind::OtherToken { token, .. } if token == TokenId::new(1)),
        "{kind:?}"
    );
    let kind = refused(ScriptedModel::new(20, 64, 1), &vocabulary());
    assert_eq!(kind, DraftModelErrorKind::RowsTooShort { vocabulary: 28, rows: 20 });
}

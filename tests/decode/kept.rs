//! Decoding with a model whose rows stay on its device gives the same texts as with rows that come back.

use std::sync::{Arc, Mutex};

use domino::{
    TokenId,
    decode::{DecodeErrorKind, DecodeOptions, Decoder, Generation, Masking, Penalties, Sampling},
    model::{
        Kept, KeptRows, Logits, Model, Rows, ScriptedError, ScriptedModel,
        candle::{Format, LoadOptions, ModelError, Placement, RandomModel, TensorModel},
    },
    proposer::{CountProposer, DraftLength, Drafter, Learning, Prior},
};

use super::{
    replay::Recites,
    run::{compile, compiled, model, prompt, samplings, shipped, vocabulary},
};
use crate::support::delegate::delegate_model;

/// A tensor model that counts its passes, and may keep its rows to itself.
struct Probe {
    model: TensorModel,
    keeps: bool,
    begun: usize,
    forwarded: usize,
}

impl Probe {
    fn new(keeps: bool) -> Self {
        let mut random = RandomModel::preset("13m", Format::F32).unwrap();
        (random.layers, random.vocabulary) = (1, vocabulary().size().next_multiple_of(16) + 16);
        let mut options = LoadOptions::default();
        options.context = Some(64);
        let model = TensorModel::random(&random, &options, Placement::CPU).unwrap();
        Self { model, keeps, begun: 0, forwarded: 0 }
    }
}

impl Model for Probe {
    type Error = ModelError;

    delegate_model!(model);

    fn forward(&mut self, tokens: &[TokenId], rows: Rows<'_>) -> Result<Logits, ModelError> {
        self.forwarded += 1;
        self.model.forward(tokens, rows)
    }

    fn begin(&mut self, tokens: &[TokenId], rows: Rows<'_>) -> Result<Option<Kept<ModelError>>, ModelError> {
        if !self.keeps {
            return Ok(None);
        }
        self.begun += 1;
        self.model.begin(tokens, rows)
    }
}

/// Writes a text with these options; also returns the passes that were begun and those that were waited for.
fn write(keeps: bool, grammar: Option<&str>, options: &DecodeOptions) -> (Generation, usize, usize) {
    draft(keeps, grammar, options, None)
}

/// Writes a text with drafts.
fn draft(
    keeps: bool,
    grammar: Option<&str>,
    options: &DecodeOptions,
    drafter: Option<Drafter>,
) -> (Generation, usize, usize) {
    let mut builder = Decoder::builder(Probe::new(keeps)).vocabulary(vocabulary()).options(options.clone());
    if let Some(drafter) = drafter {
        builder = builder.drafter(drafter);
    }
    if let Some(grammar) = grammar {
        builder = builder.constraint(shipped(grammar));
    }
    let mut decoder = builder.build().unwrap();
    let generation = decoder.generate(&prompt()).unwrap();
    let Probe { begun, forwarded, .. } = *decoder.model();
    (generation, begun, forwarded)
}

#[test]
fn texts_are_the_same_with_rows_on_the_device() {
    let mut options = DecodeOptions::default();
    options.max_new_tokens = 20;
    for grammar in [None, Some("json"), Some("arithmetic")] {
        for sampling in samplings() {
            (options.sampling, options.seed) = (sampling, 7);
            let (kept, begun, forwarded) = write(true, grammar, &options);
            let (whole, none, passes) = write(false, grammar, &options);
            assert_eq!((kept.tokens, kept.finish), (whole.tokens, whole.finish), "{grammar:?} {sampling:?}");
            assert_eq!((begun, forwarded, none), (passes, 0, 0), "{grammar:?}");
            let counts = |stats: &domino::decode::DecodeStats| {
                [stats.passes, stats.draws, stats.own_draws, stats.interventions, stats.masks]
            };
            assert_eq!(counts(&kept.stats), counts(&whole.stats), "{grammar:?} {sampling:?}");
        }
    }
}

#[test]
fn drafts_are_verified_with_rows_on_the_device() {
    let mut options = DecodeOptions::default();
    options.max_new_tokens = 24;
    let length = DraftLength::up_to(4, 0.0).unwrap();
    let (mut drafted, mut accepted) = (0, 0);
    for grammar in [None, Some("json"), Some("arithmetic")] {
        for sampling in samplings() {
            (options.sampling, options.seed) = (sampling, 11);
            let mut recited = write(false, grammar, &options).0.tokens;
            // Some guesses are wrong.
            recited.iter_mut().skip(4).step_by(5).for_each(|token| *token = TokenId::new(65));
            let recites = || Drafter::new(Box::new(Recites(recited.clone())), length);
            let (kept, begun, forwarded) = draft(true, grammar, &options, Some(recites()));
            let (whole, none, passes) = draft(false, grammar, &options, Some(recites()));
            assert_eq!(
                (&kept.tokens, kept.finish),
                (&whole.tokens, whole.finish),
                "{grammar:?} {sampling:?}"
            );
            assert_eq!((begun, forwarded, none), (passes, 0, 0), "{grammar:?}");
            assert_eq!(kept.stats.accepted, whole.stats.accepted, "{grammar:?} {sampling:?}");
            assert_eq!(kept.stats.masks, whole.stats.masks, "{grammar:?} {sampling:?}");
            drafted += kept.stats.drafted;
            accepted += kept.stats.accepted;
        }
    }
    assert!(accepted > 100 && drafted > accepted, "{accepted} of {drafted}");
}

/// Priors learn the same from the model's probabilities where rows stay on the device.
#[test]
fn priors_learn_the_same_with_rows_on_the_device() {
    let text = std::fs::read_to_string(format!("{}/grammars/json.gbnf", env!("DOMINO_ROOT")));
    let grammar = compiled(&text.unwrap());
    let mut options = DecodeOptions::default();
    options.max_new_tokens = 24;
    for sampling in [Sampling::greedy(), Sampling::with_temperature(1.0).unwrap()] {
        options.sampling = sampling;
        let learnt = [true, false].map(|keeps| {
            let learner = CountProposer::new(Prior::new(&grammar), Learning::Online);
            let learner = Arc::new(Mutex::new(learner));
            let length = DraftLength::up_to(3, 0.0).unwrap();
            let mut texts = Vec::new();
            for seed in 0..4 {
                options.seed = seed;
                let drafter = Drafter::new(Box::new(Arc::clone(&learner)), length);
                texts.push(draft(keeps, Some("json"), &options, Some(drafter)).0.tokens);
            }
            let prior = learner.lock().unwrap().prior().clone();
            (texts, prior)
        });
        let [(kept, of_kept), (whole, of_whole)] = &learnt;
        assert_eq!(kept, whole, "{sampling:?}");
        assert!(of_kept == of_whole, "{sampling:?}");
    }
}

#[test]
fn rows_are_fetched_where_their_numbers_are_needed() {
    let options = |change: fn(&mut DecodeOptions)| {
        let mut options = DecodeOptions::default();
        options.max_new_tokens = 5;
        change(&mut options);
        options
    };
    for options in [
        options(|options| options.logprobs = Some(2)),
        options(|options| options.penalties = Penalties::none().repeat(1.3).unwrap()),
        options(|options| options.masking = Masking::Always),
        options(|options| options.masking = Masking::Opportunistic),
    ] {
        let (kept, begun, forwarded) = write(true, Some("json"), &options);
        let (whole, ..) = write(false, Some("json"), &options);
        assert_eq!((kept.tokens, kept.logprobs), (whole.tokens, whole.logprobs), "{options:?}");
        assert!(begun == 0 && forwarded > 0, "{options:?}");
    }
}

/// A scripted model whose rows are lost when they are asked for.
struct Losing(ScriptedModel);

/// Rows that a device has lost.
struct Lost;

impl KeptRows for Lost {
    type Error = ScriptedError;

    fn rows(&self) -> usize {
        1
    }

    fn row(&self, _index: usize) -> Result<Vec<f32>, ScriptedError> {
        Err(ScriptedError::Scripted)
    }
}

impl Model for Losing {
    type Error = ScriptedError;

    delegate_model!(0, forward);

    fn begin(
        &mut self,
        tokens: &[TokenId],
        rows: Rows<'_>,
    ) -> Result<Option<Kept<ScriptedError>>, ScriptedError> {
        self.0.forward(tokens, rows)?;
        Ok(Some(Box::new(Lost)))
    }
}

#[test]
fn rows_that_are_lost_end_the_run() {
    let mut decoder = Decoder::builder(Losing(model(1)))
        .vocabulary(vocabulary())
        .constraint(compile("root ::= [a-z]*"))
        .build()
        .unwrap();
    let mut steps = decoder.steps(&prompt());
    let error = steps.next().unwrap().unwrap_err();
    assert_eq!(*error.kind(), DecodeErrorKind::Model);
    assert!(steps.next().is_none() && steps.tokens().is_empty());
}

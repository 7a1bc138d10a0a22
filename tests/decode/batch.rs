//! Several sequences with one model, scripted: each is what it is alone.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use domino::{
    Constraint, TokenId, TrailingSpace,
    decode::{
        BatchDecoder, BatchEvent, BuildErrorKind, DecodeErrorKind, DecodeOptions, Decoder, Finish,
        Generation, Masking, Penalties, SequenceId, StopStrings,
    },
    model::{Fault, OneByOne, ScriptedModel},
    proposer::{BestOf, DraftLength, Drafter, Guess, Lookup, Propose, Seen, Site},
};
use proptest::prelude::*;

use super::{
    draw::at,
    run::{bytes, compile, model, prompt, samplings, shipped, vocabulary},
};

type Batch = BatchDecoder<OneByOne<ScriptedModel>>;

fn batch(places: usize) -> Batch {
    BatchDecoder::new(OneByOne::new(vec![model(6); places]), vocabulary()).unwrap()
}

/// Settings of a sequence to be run.
#[derive(Debug, Clone)]
struct Request {
    prompt: Vec<TokenId>,
    constraint: Option<Constraint>,
    options: DecodeOptions,
    drafts: bool,
}

/// A drafter that repeats earlier text, and sometimes guesses impossible tokens.
fn drafter(prompt: &[TokenId]) -> Drafter {
    let unknown = prompt.len().is_multiple_of(3).then(|| Box::new(Unknown) as Box<dyn Propose>);
    let lookup: Box<dyn Propose> = Box::new(Lookup::default());
    let length = DraftLength::up_to(1 + prompt.len() % 5, 0.0).unwrap();
    Drafter::new(Box::new(BestOf::new(unknown.into_iter().chain([lookup]).collect())), length)
}

/// A proposer that knows nothing.
#[derive(Debug)]
struct Unknown;

impl Propose for Unknown {
    fn guess(&mut self, site: &mut Site<'_>) -> Option<Guess> {
        let position = u32::try_from(site.tokens().len()).unwrap();
        Some(Guess { token: TokenId::new(position * 37 % 300), acceptance: 0.9 })
    }
}

impl Request {
    fn alone(&self) -> Generation {
        let mut builder = Decoder::builder(model(6)).vocabulary(vocabulary()).options(self.options.clone());
        if let Some(constraint) = &self.constraint {
            builder = builder.constraint(constraint.clone());
        }
        builder.build().unwrap().generate(&self.prompt).unwrap()
    }

    fn add(&self, batch: &mut Batch) -> SequenceId {
        let constraint = self.constraint.clone();
        if self.drafts {
            let drafter = drafter(&self.prompt);
            return batch.add_with_drafter(&self.prompt, constraint, &self.options, drafter).unwrap();
        }
        batch.add(&self.prompt, constraint, &self.options).unwrap()
    }
}

/// Runs all sequences to their ends, and adds their generations; tokens must come one by one.
fn drain(batch: &mut Batch, ended: &mut BTreeMap<SequenceId, Generation>) {
    let mut tokens: BTreeMap<SequenceId, Vec<TokenId>> = BTreeMap::new();
    while !batch.is_empty() {
        for event in batch.step() {
            match event {
                BatchEvent::Token { sequence, step } => tokens.entry(sequence).or_default().push(step.token),
                BatchEvent::Finished { sequence, generation } => {
                    let told = tokens.remove(&sequence).unwrap_or_default();
                    assert!(generation.tokens.ends_with(&told));
                    assert!(ended.insert(sequence, generation).is_none());
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

/// Compares all results that do not depend on time.
fn same(one: &Generation, other: &Generation) {
    assert_eq!((&one.tokens, &one.text, one.finish), (&other.tokens, &other.text, other.finish));
    assert_eq!((&one.logprobs, &one.completion), (&other.logprobs, &other.completion));
    let counts = |generation: &Generation| {
        let stats = generation.stats;
        [stats.prompt_tokens, stats.tokens, stats.draws, stats.interventions, stats.masks]
    };
    assert_eq!(counts(one), counts(other));
    // A pass gives one token beside those accepted, or none where the last accepted ends the text: by a stop
    // string, or because nothing can follow, so that no end is drawn.
    let given = |generation: &Generation| generation.stats.passes + generation.stats.accepted;
    let unused = usize::from(
        one.stats.accepted > 0 && one.finish != Finish::Length && one.stats.draws == one.stats.tokens,
    );
    assert!((given(other)..=given(other) + unused).contains(&given(one)), "{:?}", one.stats);
}

fn few() -> impl Strategy<Value = Vec<Request>> {
    let request = (
        proptest::collection::vec(0..200_u32, 1..12),
        0..5_usize,
        (0..samplings().len(), any::<u64>(), 0..30_usize),
        (0..3_usize, any::<bool>(), any::<bool>(), any::<bool>()),
    );
    let request =
        request.prop_map(|(tokens, grammar, (sampling, seed, most), (masking, penal, close, drafts))| {
            let mut options = DecodeOptions::default();
            (options.sampling, options.seed, options.max_new_tokens) = (samplings()[sampling], seed, most);
            options.masking = [Masking::Ahead, Masking::Always, Masking::Opportunistic][masking];
            options.logprobs = penal.then_some(2);
            options.close = close;
            options.stop = StopStrings::new(["a\"", "9"]).unwrap();
            if penal {
                options.penalties = Penalties::none().repeat(1.3).unwrap();
            }
            let names = ["json", "arithmetic", "email", "iso8601"];
            let constraint = names.get(grammar).map(|name| shipped(name));
            let drafts = drafts && constraint.is_some();
            Request { prompt: tokens.into_iter().map(TokenId::new).collect(), constraint, options, drafts }
        });
    proptest::collection::vec(request, 0..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Independence of what shares passes, of the number of places, and of the time of joining.
    #[test]
    fn texts_are_those_written_alone(requests in few(), later in few(), places in 1..5_usize, steps in 0..9) {
        let mut batch = batch(places);
        let mut expected = BTreeMap::new();
        let mut ended = BTreeMap::new();
        for request in &requests {
            expected.insert(request.add(&mut batch), request.alone());
        }
        for _ in 0..steps {
            for event in batch.step() {
                if let BatchEvent::Finished { sequence, generation } = event {
                    ended.insert(sequence, generation);
                }
            }
        }
        for request in &later {
            expected.insert(request.add(&mut batch), request.alone());
        }
        drain(&mut batch, &mut ended);
        prop_assert_eq!(ended.len(), expected.len());
        for (one, other) in ended.values().zip(expected.values()) {
            same(one, other);
        }
        prop_assert!(batch.step().is_empty());
    }
}

#[test]
fn passes_are_shared_and_free_places_are_reused() {
    let letters = compile("root ::= [a-z]*");
    let mut options = DecodeOptions::default();
    options.sampling = at(1.0);
    let mut batch = batch(2);
    // x x x x x and y y, then z in the place of y: as many passes as the longest way.
    for (most, seed) in [(5, 1), (2, 2), (3, 3)] {
        (options.max_new_tokens, options.seed) = (most, seed);
        let forever = compile("root ::= [a-z]{100}");
        batch.add(&prompt(), Some(if most == 5 { letters.clone() } else { forever }), &options).unwrap();
    }
    let mut ended = BTreeMap::new();
    drain(&mut batch, &mut ended);
    let lengths: Vec<usize> = ended.values().map(|generation| generation.tokens.len()).collect();
    assert_eq!(lengths[1..], [2, 3]);
    assert_eq!(batch.passes(), 5);
}

#[test]
fn an_error_in_one_sequence_ends_that_one_only() {
    let good = || Request {
        prompt: prompt(),
        constraint: Some(shipped("paper/json")),
        options: options(),
        drafts: false,
    };
    let mut batch = batch(3);
    let first = good().add(&mut batch);
    let add = |batch: &mut Batch, prompt: &[TokenId]| batch.add(prompt, None, &options()).unwrap();
    let unknown = add(&mut batch, &[TokenId::new(3), TokenId::new(100_000)]);
    let empty = add(&mut batch, &[]);
    let long = add(&mut batch, &bytes(&"x".repeat(161)).collect::<Vec<_>>());
    let last = good().add(&mut batch);
    let (mut failed, mut ended) = (BTreeMap::new(), BTreeMap::new());
    while !batch.is_empty() {
        for event in batch.step() {
            match event {
                BatchEvent::Failed { sequence, error, generation } => {
                    assert!(generation.tokens.is_empty());
                    failed.insert(sequence, error.kind().clone());
                }
                BatchEvent::Finished { sequence, generation } => drop(ended.insert(sequence, generation)),
                _ => {}
            }
        }
    }
    assert_eq!(failed.len(), 3);
    assert_eq!(failed[&unknown], DecodeErrorKind::Model);
    assert_eq!(failed[&empty], DecodeErrorKind::EmptyPrompt);
    assert_eq!(failed[&long], DecodeErrorKind::PromptTooLong { tokens: 161, context: 160 });
    assert_eq!(ended.len(), 2);
    same(&ended[&first], &good().alone());
    same(&ended[&last], &good().alone());
}

fn options() -> DecodeOptions {
    let mut options = DecodeOptions::default();
    (options.sampling, options.max_new_tokens, options.trailing_space) = (at(1.0), 20, TrailingSpace::Keep);
    options
}

#[test]
fn a_model_fault_in_one_sequence_ends_that_one_only() {
    // The second place goes wrong at position 6; what was made until then stands.
    for fault in [Fault::Pass, Fault::NotANumber] {
        let models = vec![model(6), model(6).fault(6, fault)];
        let mut batch = BatchDecoder::new(OneByOne::new(models), vocabulary()).unwrap();
        let constraint = Some(shipped("paper/json"));
        let request = Request { prompt: prompt(), constraint, options: options(), drafts: false };
        let (well, ill) = (request.add(&mut batch), request.add(&mut batch));
        let mut seen = Vec::new();
        while !batch.is_empty() {
            for event in batch.step() {
                match event {
                    BatchEvent::Failed { sequence, generation, .. } => {
                        assert_eq!(generation.tokens, request.alone().tokens[..3]);
                        seen.push((sequence, false));
                    }
                    BatchEvent::Finished { sequence, generation } => {
                        same(&generation, &request.alone());
                        seen.push((sequence, true));
                    }
                    _ => {}
                }
            }
        }
        assert_eq!(seen, [(ill, false), (well, true)]);
    }
}

#[test]
fn sequences_can_be_cancelled() {
    let mut batch = batch(1);
    let constraint = Some(shipped("paper/json"));
    let request = Request { prompt: prompt(), constraint, options: options(), drafts: false };
    let (running, waiting) = (request.add(&mut batch), request.add(&mut batch));
    batch.step();
    batch.step();
    assert_eq!(batch.len(), 2);
    assert_eq!(batch.settled_text(waiting), Some(&b""[..]));
    assert!(!batch.settled_text(running).unwrap().is_empty());
    let cut = batch.cancel(running).unwrap();
    assert_eq!((cut.tokens.as_slice(), cut.finish), (&request.alone().tokens[..2], Finish::Length));
    assert!(batch.cancel(running).is_none() && batch.settled_text(running).is_none());
    let mut ended = BTreeMap::new();
    drain(&mut batch, &mut ended);
    same(&ended[&waiting], &request.alone());
}

#[test]
fn closed_sequences_are_completed_and_cancelled_ones_are_cut() {
    let sentence = compile("root ::= [a-z]{30} \"!\"");
    let mut request =
        Request { prompt: prompt(), constraint: Some(sentence.clone()), options: options(), drafts: false };
    // Cancelling does not complete the text, as reaching a limit would.
    for close in [false, true] {
        request.options.close = close;
        let mut batch = batch(2);
        let ids: [SequenceId; 5] = std::array::from_fn(|_| request.add(&mut batch));
        let [running, cut, waiting, cut_waiting, after] = ids;
        for _ in 0..4 {
            batch.step();
        }
        let before = request.alone().tokens[..4].to_vec();
        for (sequence, tokens) in [(running, &before[..]), (waiting, &[])] {
            let Some(BatchEvent::Finished { sequence: told, generation }) = batch.close(sequence) else {
                panic!("{sequence:?} has not ended");
            };
            assert_eq!(
                (told, generation.finish, generation.tokens.as_slice()),
                (sequence, Finish::Closed, tokens)
            );
            let completion = generation.completion.unwrap();
            assert!(generation.complete && generation.text.ends_with(&completion.bytes));
            assert_eq!(generation.text, [vocabulary().concat(tokens), completion.bytes].concat());
            let mut whole = sentence.clone();
            whole.advance_bytes(&generation.text).unwrap();
            assert!(whole.is_complete());
            assert!(batch.close(sequence).is_none() && batch.cancel(sequence).is_none());
        }
        for (sequence, tokens) in [(cut, &before[..]), (cut_waiting, &[])] {
            let generation = batch.cancel(sequence).unwrap();
            assert_eq!((generation.finish, generation.tokens.as_slice()), (Finish::Length, tokens));
            assert_eq!((generation.text, generation.completion), (vocabulary().concat(tokens), None));
        }
        // The remaining request takes a free place and is not affected.
        let mut ended = BTreeMap::new();
        drain(&mut batch, &mut ended);
        assert_eq!(ended.len(), 1);
        same(&ended[&after], &request.alone());
    }
}

#[test]
fn closing_without_a_constraint_is_ending() {
    let request = Request { prompt: prompt(), constraint: None, options: options(), drafts: false };
    let mut batch = batch(1);
    let sequence = request.add(&mut batch);
    batch.step();
    let Some(BatchEvent::Finished { generation, .. }) = batch.close(sequence) else { panic!("not ended") };
    assert_eq!((generation.finish, generation.complete, generation.completion), (Finish::Closed, true, None));
    assert_eq!(generation.tokens, request.alone().tokens[..1]);
}

#[test]
fn vocabularies_that_do_not_fit_the_model_are_refused() {
    let small = OneByOne::new(vec![ScriptedModel::new(100, 20, 0)]);
    let error = BatchDecoder::new(small, vocabulary()).unwrap_err();
    assert!(matches!(error.kind(), BuildErrorKind::VocabularyTooLarge { model: 100, .. }));
    let other = vocabulary().with_end_of_text([TokenId::new(256)]).unwrap();
    let mut batch = BatchDecoder::new(OneByOne::new(vec![model(0)]), other).unwrap();
    let error = batch.add(&prompt(), Some(shipped("paper/json")), &options()).unwrap_err();
    assert_eq!(*error.kind(), BuildErrorKind::OtherVocabulary);
    let error = BatchDecoder::new(OneByOne::<ScriptedModel>::new(Vec::new()), vocabulary()).unwrap_err();
    assert_eq!(*error.kind(), BuildErrorKind::NoSequences);
}

/// Events of a batch with drafts, in order and without times; passes are shared by `threads` threads.
fn happenings(requests: &[Request], places: usize, threads: usize) -> Vec<String> {
    let told = |event: BatchEvent| match event {
        BatchEvent::Token { sequence, step } => format!("{sequence:?} {step:?}"),
        BatchEvent::Finished { sequence, generation } | BatchEvent::Failed { sequence, generation, .. } => {
            format!("{sequence:?} {:?} {:?}", generation.tokens, generation.finish)
        }
        other => panic!("{other:?}"),
    };
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(|| {
        let mut batch = batch(places);
        requests.iter().for_each(|request| _ = request.add(&mut batch));
        let mut all = Vec::new();
        while !batch.is_empty() {
            all.extend(batch.step().into_iter().map(told));
        }
        all
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    #[test]
    fn events_of_a_batch_do_not_depend_on_threads(requests in few(), places in 1..6_usize) {
        let one = happenings(&requests, places, 1);
        prop_assert_eq!(&one, &happenings(&requests, places, 2));
        prop_assert_eq!(&one, &happenings(&requests, places, 5));
    }
}

/// A proposer that records which sequence asked.
#[derive(Debug, Default)]
struct Register {
    asked: Vec<TokenId>,
}

impl Propose for Register {
    fn guess(&mut self, site: &mut Site<'_>) -> Option<Guess> {
        self.asked.push(site.tokens()[0]);
        // Work for other threads, during which this one may take up theirs: while the register is locked.
        rayon::join(std::thread::yield_now, std::thread::yield_now);
        None
    }

    fn observe(&mut self, site: &mut Site<'_>, seen: Seen<'_>) {
        self.guess(site);
        self.asked.push(seen.token);
    }

    fn learns(&self) -> bool {
        true
    }
}

#[test]
fn sequences_that_share_a_proposer_ask_it_in_turn() {
    let asked = |threads: usize| {
        let register = Arc::new(Mutex::new(Register::default()));
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(|| {
            let mut batch = batch(4);
            for first in 1..=4 {
                let prompt = [TokenId::new(first), TokenId::new(60)];
                let proposer = BestOf::new(vec![Box::new(Arc::clone(&register))]);
                let drafter = Drafter::new(Box::new(proposer), DraftLength::up_to(3, 0.0).unwrap());
                assert!(drafter.is_shared());
                let json = Some(shipped("paper/json"));
                batch.add_with_drafter(&prompt, json, &options(), drafter).unwrap();
            }
            drain(&mut batch, &mut BTreeMap::new());
        });
        std::mem::take(&mut register.lock().unwrap().asked)
    };
    let one = asked(1);
    assert_eq!(one[..8].iter().step_by(2).map(|token| token.raw()).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert_eq!(one, asked(4));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    /// Independence of drafts whose length depends on clocks, of sharing, and of the number of threads.
    #[test]
    fn drafts_of_any_length_change_no_text(requests in few(), places in 1..6_usize, threads in 1..5_usize) {
        let mut batch = batch(places);
        let mut expected = BTreeMap::new();
        for request in &requests {
            let proposers: Vec<Box<dyn Propose>> = vec![Box::new(Unknown), Box::new(Lookup::default())];
            let mut proposer: Box<dyn Propose> = Box::new(BestOf::new(proposers));
            if request.prompt.len() % 4 == 0 {
                proposer = Box::new(Arc::new(Mutex::new(proposer)));
            }
            let fixed = DraftLength::up_to(4, 0.5).unwrap();
            let length = if request.prompt.len() % 5 == 0 { fixed } else { DraftLength::Auto };
            let drafter = Drafter::new(proposer, length);
            let (constraint, options) = (request.constraint.clone(), &request.options);
            let added = batch.add_with_drafter(&request.prompt, constraint, options, drafter).unwrap();
            expected.insert(added, request.alone());
        }
        let mut ended = BTreeMap::new();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| drain(&mut batch, &mut ended));
        prop_assert_eq!(ended.len(), expected.len());
        for (one, other) in ended.values().zip(expected.values()) {
            same(one, other);
        }
    }
}

/// A proposer that records whether a pool's thread asks.
#[derive(Debug, Clone, Default)]
struct Askers(Arc<Mutex<Vec<bool>>>);

impl Propose for Askers {
    fn guess(&mut self, _: &mut Site<'_>) -> Option<Guess> {
        self.0.lock().unwrap().push(rayon::current_thread_index().is_some());
        None
    }
}

#[test]
fn unshared_proposers_are_asked_by_the_threads_of_passes() {
    for shared in [false, true] {
        let askers = Askers::default();
        let mut batch = batch(2);
        for _ in 0..2 {
            let own: Box<dyn Propose> = Box::new(askers.clone());
            let proposer = if shared { Box::new(Arc::new(Mutex::new(own))) } else { own };
            let drafter = Drafter::new(proposer, DraftLength::up_to(1, 0.0).unwrap());
            batch.add_with_drafter(&prompt(), Some(shipped("paper/json")), &options(), drafter).unwrap();
        }
        drain(&mut batch, &mut BTreeMap::new());
        // A pool of one thread gives no task to others, so the stepping thread asks.
        let pooled = !shared && rayon::current_num_threads() > 1;
        let askers = askers.0.lock().unwrap();
        assert!(!askers.is_empty() && askers.iter().all(|asker| *asker == pooled), "{shared}: {askers:?}");
    }
}

//! Speculation in mistral.rs: texts are those of the same engine without drafts and of the stock engine.
//!
//! A longer run: `DOMINO_MISTRALRS=300 cargo test --release -p domino-mistralrs speculation`.

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use domino::{
    CompiledGrammar,
    decode::{Sampler, Sampling},
    proposer::{Learning, Prior},
};
use domino_mistralrs::{
    AttachError, GrammarLogitsProcessor, GrammarSpeculativeLoader, Guesses, LoadError, RequestError,
    RequestWatch, Speculation, SpeculativeRequest,
};
use mistralrs_core::{MemoryGpuConfig, PagedAttentionConfig, Response, SamplingParams, StopTokens};
use tokio::sync::mpsc::Receiver;

use super::engine::{Answer, Engine, GRAMMARS, PROMPTS, RUNTIME, alone, answers, complete, load, loader};

static STOCK: LazyLock<Engine> = LazyLock::new(|| Engine::stock(false));
static SPECULATIVE: LazyLock<(Engine, Speculation)> = LazyLock::new(|| speculative(8));

fn speculative(gamma: usize) -> (Engine, Speculation) {
    let loader = GrammarSpeculativeLoader::with_gamma(loader(), gamma);
    let speculation = loader.speculation();
    assert_eq!(speculation.gamma(), gamma);
    let pipeline = load(&loader).expect("the shipped model, speculative");
    (Engine::of(pipeline, false), speculation)
}

fn params(max_len: usize, temperature: f64) -> SamplingParams {
    SamplingParams { temperature: Some(temperature), max_len: Some(max_len), ..SamplingParams::neutral() }
}

/// A sampling for each number.
fn sampling(number: usize, max_len: usize) -> SamplingParams {
    let drawn = params(max_len, [1.0, 0.6, 1.4][number % 3]);
    match number % 6 {
        0 => params(max_len, 0.0),
        1 | 2 => drawn,
        3 => SamplingParams { top_k: Some(20), ..drawn },
        4 => SamplingParams { top_p: Some(0.9), ..drawn },
        _ => SamplingParams { min_p: Some(0.05), ..drawn },
    }
}

/// The domino sampling that equals upstream's.
fn own(params: &SamplingParams) -> Sampling {
    let temperature = params.temperature.expect("a temperature");
    if temperature == 0.0 {
        return Sampling::greedy();
    }
    let mut sampling = Sampling::with_temperature(temperature).expect("a temperature");
    if let Some(k) = params.top_k {
        sampling = sampling.top_k(k).expect("a number");
    }
    if let Some(p) = params.top_p {
        sampling = sampling.top_p(p).expect("a share");
    }
    if let Some(p) = params.min_p {
        sampling = sampling.min_p(p).expect("a share");
    }
    sampling
}

/// A grammar, guesses for its texts, and its name.
struct Kind {
    name: &'static str,
    grammar: CompiledGrammar,
    guesses: Guesses,
}

fn kinds(learning: Learning) -> Vec<Kind> {
    let (engine, speculation) = &*SPECULATIVE;
    let tokenizer = speculation.tokenizer().expect("loaded");
    let kind = |&name: &&'static str| {
        let grammar = engine.grammar(name);
        let guesses = Guesses::new(&grammar, &tokenizer, Prior::new(&grammar), learning);
        Kind { name, grammar, guesses }
    };
    GRAMMARS.iter().map(kind).collect()
}

async fn attach(
    prompt: &str,
    params: SamplingParams,
    what: SpeculativeRequest,
    stream: bool,
) -> (RequestWatch, Receiver<Response>) {
    let (engine, speculation) = &*SPECULATIVE;
    let (mut request, receiver) = engine.request(prompt, params);
    request.is_streaming = stream;
    let watch = speculation.attach(&mut request, what).await.expect("a request that can be attached");
    engine.send(request);
    (watch, receiver)
}

async fn run(prompt: &str, params: SamplingParams, what: SpeculativeRequest) -> (RequestWatch, Answer) {
    let (watch, receiver) = attach(prompt, params, what, false).await;
    let answer = answers(receiver).await.remove(0);
    assert_eq!(watch.error(), None);
    (watch, answer)
}

/// An answer of the stock engine with draws by `processor`, numbered from the prompt on as in the decoder.
async fn stock(prompt: &str, params: SamplingParams, processor: GrammarLogitsProcessor) -> Answer {
    let watch = processor.watch();
    let plain = SamplingParams { temperature: Some(0.0), top_k: Some(1), top_p: None, min_p: None, ..params };
    let (mut request, receiver) = STOCK.request(prompt, plain);
    request.logits_processors = Some(vec![Arc::new(processor)]);
    STOCK.send(request);
    let answer = answers(receiver).await.remove(0);
    assert_eq!(watch.error(), None);
    answer
}

/// Checks that draws rarely differ. Rows of a pass over several tokens can differ in their last bits from
/// those of passes over one, so a draw between nearly equal tokens can: in one text of a hundred at most.
fn few(flips: usize, cases: usize) -> bool {
    flips <= 1 + cases / 100
}

#[test]
fn texts_are_the_same_with_and_without_drafts() {
    let _alone = alone();
    let cases = std::env::var("DOMINO_MISTRALRS").map_or(18, |count| count.parse().expect("a number"));
    let kinds = kinds(Learning::Online);
    // Engines are loaded outside of tasks: loading blocks.
    LazyLock::force(&STOCK);
    let (mut drafted, mut accepted, mut passes, mut tokens) = (0, 0, 0, 0);
    let (mut flips, mut stock_flips) = (Vec::new(), Vec::new());
    RUNTIME.block_on(async {
        for number in 0..cases {
            let kind = &kinds[number % kinds.len()];
            let (prompt, params) = (PROMPTS[number / 2 % PROMPTS.len()], sampling(number / 3, 32));
            let seed = number as u64;
            let what = || SpeculativeRequest::new(kind.grammar.constraint()).seed(seed);
            let (watch, plain) = run(prompt, params.clone(), what()).await;
            let (sampler, first) = (Sampler::new(own(&params), seed), watch.stats().prompt_tokens);
            assert!(complete(&kind.grammar, &plain.text).is_some(), "{}: {plain:?}", kind.name);
            // The first run learns, the second one knows what comes.
            for _ in 0..2 {
                let (watch, found) = run(prompt, params.clone(), what().guesses(&kind.guesses)).await;
                let stats = watch.stats();
                drafted += stats.drafted;
                accepted += stats.accepted;
                passes += stats.passes;
                tokens += stats.tokens;
                if found != plain {
                    flips.push(format!("{} {number}: {plain:?} / {found:?}", kind.name));
                }
            }
            let draws = GrammarLogitsProcessor::new(kind.grammar.constraint()).draw_by(sampler, first);
            let found = stock(prompt, params, draws).await;
            if found != plain {
                stock_flips.push(format!("{} {number}: {plain:?} / {found:?}", kind.name));
            }
        }
    });
    println!(
        "{cases} cases: {} differ with drafts, {} from the stock engine; {accepted} of {drafted} accepted, \
         {tokens} tokens in {passes} passes",
        flips.len(),
        stock_flips.len()
    );
    assert!(few(flips.len(), 2 * cases), "{}", flips.join("\n"));
    assert!(few(stock_flips.len(), cases), "{}", stock_flips.join("\n"));
    assert!(accepted > 2 * cases && passes < tokens, "{accepted} of {drafted} in {passes} passes");
}

#[test]
fn eight_texts_at_once_are_those_one_by_one() {
    let _alone = alone();
    let kinds = Arc::new(kinds(Learning::Fixed));
    let alone = |number: usize, kinds: Arc<Vec<Kind>>| async move {
        let kind = &kinds[number % kinds.len()];
        let what =
            SpeculativeRequest::new(kind.grammar.constraint()).seed(number as u64).guesses(&kind.guesses);
        // The same prompt for all, so that their lengths are the same all along.
        run(PROMPTS[0], sampling(number, 24), what).await.1
    };
    let one_by_one: Vec<Answer> =
        (0..8).map(|number| RUNTIME.block_on(alone(number, Arc::clone(&kinds)))).collect();
    let at_once: Vec<Answer> = RUNTIME.block_on(async {
        let running: Vec<_> = (0..8).map(|number| tokio::spawn(alone(number, Arc::clone(&kinds)))).collect();
        let mut answers = Vec::new();
        for task in running {
            answers.push(task.await.expect("no panic"));
        }
        answers
    });
    assert_eq!(at_once, one_by_one);
}

/// Limits hold within drafts. Upstream would take all of an accepted draft after a text has ended.
#[test]
fn lengths_and_stop_strings_hold_within_drafts() {
    let _alone = alone();
    let (engine, speculation) = &*SPECULATIVE;
    // One text, which is learnt the first time, so that drafts are long and right.
    let grammar = engine.regex("one two three four five six seven eight nine ten eleven twelve\\.");
    let tokenizer = speculation.tokenizer().unwrap();
    let guesses = Guesses::new(&grammar, &tokenizer, Prior::new(&grammar), Learning::Online);
    let drafted = |params: SamplingParams, stream: bool| {
        RUNTIME.block_on(async {
            let what = SpeculativeRequest::new(grammar.constraint()).guesses(&guesses);
            let (watch, mut receiver) = attach(PROMPTS[0], params, what, stream).await;
            let mut received = Answer { text: String::new(), finish: String::new() };
            // Every answer is read. Upstream steps a text that ended in its first step once more, also stock.
            while let Some(response) = receiver.recv().await {
                let (text, finish) = match response {
                    Response::CompletionDone(done) => {
                        (done.choices[0].text.clone(), Some(done.choices[0].finish_reason.clone()))
                    }
                    Response::CompletionChunk(chunk) => {
                        (chunk.choices[0].text.clone(), chunk.choices[0].finish_reason.clone())
                    }
                    _ => panic!("another kind of answer"),
                };
                if received.finish.is_empty() {
                    received.text.push_str(&text);
                    received.finish = finish.unwrap_or_default();
                } else {
                    assert_eq!((watch.stats().tokens, text.as_str()), (1, ""), "after the end");
                }
            }
            assert_eq!(watch.error(), None);
            (received, watch.stats())
        })
    };
    drafted(params(100, 0.0), false);
    let (whole, stats) = drafted(params(100, 0.0), false);
    assert_eq!(whole.text, "one two three four five six seven eight nine ten eleven twelve.", "{stats:?}");
    assert!(stats.passes * 3 < stats.tokens, "{stats:?}");
    for stream in [false, true] {
        for length in 1..=stats.tokens {
            let (answer, stats) = drafted(params(length, 0.0), stream);
            assert_eq!((answer.finish.as_str(), stats.tokens), ("length", length));
            assert!(whole.text.starts_with(&answer.text), "{answer:?}");
        }
        for stop in ["five", "seven eight", "t", "e s"] {
            let stop_toks = Some(StopTokens::Seqs(vec![stop.to_owned()]));
            let (answer, _) = drafted(SamplingParams { stop_toks, ..params(100, 0.0) }, stream);
            assert_eq!(answer.finish, "stop", "{stop}");
            let cut = &whole.text[..whole.text.find(stop).unwrap()];
            // A stream has shown the stop string by the time that the engine sees it.
            let text = if stream { &answer.text[..cut.len()] } else { answer.text.as_str() };
            assert_eq!(text, cut, "{stop}, stream {stream}");
        }
    }
}

#[test]
fn requests_without_a_grammar_keep_their_sampling() {
    let _alone = alone();
    let greedy = |engine: &Engine| {
        let (request, receiver) = engine.request(PROMPTS[3], params(24, 0.0));
        (request, receiver)
    };
    let (request, receiver) = greedy(&STOCK);
    STOCK.send(request);
    let plain = RUNTIME.block_on(answers(receiver)).remove(0);
    let drawn = |temperature: f64, seed: u64| {
        let what = SpeculativeRequest::unconstrained().seed(seed);
        RUNTIME.block_on(run(PROMPTS[3], params(24, temperature), what)).1
    };
    assert_eq!(drawn(0.0, 1), plain);
    let texts: Vec<Answer> = (0..4).map(|seed| drawn(1.2, seed)).collect();
    assert!(texts.iter().any(|text| *text != plain) && texts.windows(2).any(|pair| pair[0] != pair[1]));
    assert_eq!(drawn(1.2, 0), texts[0]);
    // Penalties are the engine's.
    let penalised = |engine_params: SamplingParams| SamplingParams {
        frequency_penalty: Some(1.0),
        repetition_penalty: Some(1.3),
        ..engine_params
    };
    let (mut request, receiver) = greedy(&STOCK);
    request.sampling_params = penalised(request.sampling_params);
    STOCK.send(request);
    let plain = RUNTIME.block_on(answers(receiver)).remove(0);
    let what = SpeculativeRequest::unconstrained();
    assert_eq!(RUNTIME.block_on(run(PROMPTS[3], penalised(params(24, 0.0)), what)).1, plain);
}

/// Clients that go away in the middle of drafts leave the engine as it was.
#[test]
fn streams_that_nobody_reads_end_and_leave_no_trace() {
    let _alone = alone();
    let kinds = kinds(Learning::Fixed);
    let kind = &kinds[0];
    let what = || SpeculativeRequest::new(kind.grammar.constraint()).seed(3).guesses(&kind.guesses);
    let (_, before) = RUNTIME.block_on(run(PROMPTS[0], params(32, 1.0), what()));
    for read in 0..4 {
        RUNTIME.block_on(async {
            let (_, mut receiver) = attach(PROMPTS[0], params(300, 1.0), what(), true).await;
            for _ in 0..read {
                receiver.recv().await.expect("a chunk");
            }
        });
    }
    // Cancelled, and answered all the same.
    RUNTIME.block_on(async {
        let (watch, receiver) = attach(PROMPTS[0], params(300, 1.0), what(), false).await;
        watch.cancel();
        let answer = answers(receiver).await.remove(0);
        assert_eq!(answer.finish, "stop");
        assert_eq!(watch.error(), None);
    });
    let (_, after) = RUNTIME.block_on(run(PROMPTS[0], params(32, 1.0), what()));
    assert_eq!(after, before);
    assert_eq!(RUNTIME.block_on(idle()), None);
}

/// Waits for the turn to end, soon after the answer; returns the silence.
async fn idle() -> Option<Duration> {
    let speculation = &SPECULATIVE.1;
    for _ in 0..200 {
        speculation.silence()?;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    speculation.silence()
}

#[test]
fn learnt_priors_can_be_kept() {
    let _alone = alone();
    let (engine, speculation) = &*SPECULATIVE;
    let grammar = engine.grammar("json");
    let tokenizer = speculation.tokenizer().unwrap();
    let guesses = Guesses::new(&grammar, &tokenizer, Prior::new(&grammar), Learning::Online);
    let request = |guesses: &Guesses| {
        let what = SpeculativeRequest::new(grammar.constraint()).seed(5).guesses(guesses);
        RUNTIME.block_on(run(PROMPTS[0], params(32, 0.0), what))
    };
    let (_, text) = request(&guesses);
    let learnt = guesses.prior();
    assert!(!learnt.is_empty());
    let kept = Prior::from_bytes(&learnt.to_bytes(), &grammar).unwrap();
    let knowing = Guesses::new(&grammar, &tokenizer, kept, Learning::Fixed);
    let (watch, again) = request(&knowing);
    assert_eq!(again, text);
    let stats = watch.stats();
    assert!(stats.passes * 2 < stats.tokens, "{stats:?}");
    assert_eq!(knowing.prior().to_bytes(), learnt.to_bytes());
}

#[test]
fn requests_that_cannot_be_served_are_refused_and_unchanged() {
    let _alone = alone();
    let (engine, speculation) = &*SPECULATIVE;
    let refused = |change: fn(&mut mistralrs_core::NormalRequest)| {
        let (mut request, _receiver) = engine.request(PROMPTS[0], params(8, 0.5));
        change(&mut request);
        let error = RUNTIME
            .block_on(speculation.attach(&mut request, SpeculativeRequest::unconstrained()))
            .expect_err("refused");
        assert!(request.sampling_params.temperature.is_some_and(|temperature| temperature > 0.0));
        error
    };
    assert_eq!(refused(|request| request.sampling_params.n_choices = 2), AttachError::Choices(2));
    assert_eq!(refused(|request| request.return_logprobs = true), AttachError::Logprobs);
    assert_eq!(
        refused(|request| request.constraint = mistralrs_core::Constraint::Regex("a".to_owned())),
        AttachError::OtherConstraint
    );
    assert!(matches!(
        refused(|request| request.sampling_params.temperature = Some(f64::INFINITY)),
        AttachError::Sampling(_)
    ));
    let unloaded = GrammarSpeculativeLoader::new(loader()).speculation();
    let (mut request, _receiver) = engine.request(PROMPTS[0], params(8, 0.5));
    let error = RUNTIME.block_on(unloaded.attach(&mut request, SpeculativeRequest::unconstrained()));
    assert_eq!(error.map(|_| ()), Err(AttachError::NotLoaded));
}

#[test]
fn models_that_cannot_be_loaded_are_typed_errors() {
    let told = |error: anyhow::Error| error.downcast::<LoadError>().expect("a typed error");
    // A test run that takes too long is taken to hang.
    let hasty = GrammarSpeculativeLoader::new(loader()).test_limit(Duration::ZERO);
    assert_eq!(told(load(&hasty).err().expect("no time")), LoadError::Hangs(Duration::ZERO));
    assert_eq!(hasty.speculation().vocabulary().err(), Some(AttachError::NotLoaded));
    let pages = PagedAttentionConfig::new(
        None,
        MemoryGpuConfig::ContextSize(64),
        mistralrs_core::PagedCacheType::Auto,
    )
    .expect("a configuration");
    let paged = mistralrs_core::Loader::load_model_from_hf(
        &GrammarSpeculativeLoader::new(loader()),
        None,
        mistralrs_core::TokenSource::None,
        &mistralrs_core::ModelDType::F32,
        &mistralrs_candle::Device::Cpu,
        true,
        mistralrs_core::DeviceMapSetting::dummy(),
        None,
        Some(pages),
    );
    assert!(matches!(told(paged.err().expect("no pages")), LoadError::Unsupported(_)));
}

/// A processor that does not return makes the engine hang, which is noticed and ends with the processor.
#[test]
fn an_engine_that_hangs_is_noticed() {
    const SILENCE: Duration = Duration::from_millis(300);
    let (engine, speculation) = speculative(2);
    let grammar = engine.regex("[a-z]{2,9}");
    let (release, held) = std::sync::mpsc::channel::<()>();
    let held = std::sync::Mutex::new(held);
    // Nothing is ever sent: this waits until the other end is gone.
    let hangs = move |row: &mistralrs_candle::Tensor, _: &[u32]| {
        held.lock().unwrap().recv().unwrap_err();
        Ok(row.clone())
    };
    RUNTIME.block_on(async {
        assert_eq!(speculation.silence(), None);
        let (mut request, receiver) = engine.request(PROMPTS[0], params(8, 0.0));
        let what = SpeculativeRequest::new(grammar.constraint());
        let watch = speculation.attach(&mut request, what).await.unwrap();
        request.logits_processors.as_mut().unwrap().push(Arc::new(hangs));
        engine.send(request);
        speculation.hung(SILENCE).await;
        assert!(speculation.silence().unwrap() >= SILENCE);
        drop(release);
        let answer = answers(receiver).await.remove(0);
        assert_eq!((complete(&grammar, &answer.text), watch.error()), (Some(true), None));
        // The turn ends soon after the answer.
        while speculation.silence().is_some() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
}

/// The prefix cache keeps the target's cache alone. If it is on against the advice, an error says so.
#[test]
fn a_prefix_cache_is_noticed() {
    let loader = GrammarSpeculativeLoader::with_gamma(loader(), 4);
    let speculation = loader.speculation();
    let engine = Engine::of(load(&loader).expect("the shipped model, speculative"), true);
    let grammar = engine.grammar("json");
    let run = |prompt: &str| {
        RUNTIME.block_on(async {
            let (mut request, receiver) = engine.request(prompt, params(8, 0.0));
            let what = SpeculativeRequest::new(grammar.constraint());
            let watch = speculation.attach(&mut request, what).await.expect("a request that can be attached");
            engine.send(request);
            (watch, answers(receiver).await.remove(0))
        })
    };
    run("A text about nothing at all: ");
    let (watch, _) = run("A text about nothing at all: and more");
    assert_eq!(watch.error(), Some(RequestError::OutOfStep));
}

//! The engines, and one text from one of them.

use std::{
    path::Path,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, anyhow, bail};
use candle_core::{Device, Tensor};
use domino::{
    CompiledGrammar, TokenId, Vocabulary,
    decode::{Decoder, Sampler, Sampling},
    mistralrs::{GrammarLogitsProcessor, GrammarSpeculativeLoader, Guesses, Speculation, SpeculativeRequest},
    model::candle::{CandleModel, LoadOptions},
    proposer::PassCost,
    vocab::Tokenizer,
};
use mistralrs_core::{
    Constraint, DefaultSchedulerMethod, DeviceMapSetting, Loader, MistralRs, MistralRsBuilder, ModelDType,
    NormalLoaderBuilder, NormalRequest, NormalSpecificConfig, Request, RequestMessage, Response,
    SamplingParams, SchedulerConfig, TokenSource,
};
use rustix::time::{ClockId, clock_gettime};
use tokio::{runtime::Runtime, sync::mpsc::channel};

/// What is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    /// mistral.rs as it is.
    Unconstrained,
    /// mistral.rs with its own constraint, llguidance.
    Llguidance,
    /// mistral.rs with domino's masks.
    Masks,
    /// mistral.rs with domino's masks and drafts.
    Drafts,
    /// Domino's own runner, unconstrained.
    Own,
}

impl Kind {
    pub(crate) const ALL: [Self; 5] =
        [Self::Unconstrained, Self::Llguidance, Self::Masks, Self::Drafts, Self::Own];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Unconstrained => "unconstrained",
            Self::Llguidance => "llguidance",
            Self::Masks => "masks",
            Self::Drafts => "drafts",
            Self::Own => "own runner, unconstrained",
        }
    }
}

/// A grammar, in both notations, and its prompts.
pub(crate) struct Task {
    pub(crate) prompts: Vec<Vec<TokenId>>,
    pub(crate) grammar: CompiledGrammar,
    pub(crate) guesses: Guesses,
    pub(crate) lark: Option<String>,
    pub(crate) tokens: usize,
    pub(crate) temperature: f64,
}

/// What a text took.
#[derive(Debug, Default)]
pub(crate) struct Run {
    /// Tokens after the first, end of text included.
    pub(crate) count: usize,
    /// From the end of the prompt's pass.
    pub(crate) seconds: f64,
    /// Of all threads, in the same time.
    pub(crate) processor_seconds: f64,
    /// What was drawn, where domino draws.
    pub(crate) tokens: Vec<TokenId>,
    pub(crate) passes: usize,
    pub(crate) drafted: usize,
    pub(crate) accepted: usize,
}

/// When it was, by both clocks.
#[derive(Debug, Clone, Copy)]
struct Moment(Instant, Duration);

impl Moment {
    fn now() -> Self {
        let used = clock_gettime(ClockId::ProcessCPUTime);
        let (seconds, rest) = (u64::try_from(used.tv_sec), u32::try_from(used.tv_nsec));
        Self(Instant::now(), Duration::new(seconds.unwrap_or_default(), rest.unwrap_or_default()))
    }

    /// Seconds since then, and of processors.
    fn elapsed(self) -> (f64, f64) {
        let now = Self::now();
        ((now.0 - self.0).as_secs_f64(), now.1.saturating_sub(self.1).as_secs_f64())
    }
}

/// A stock engine, one with speculation, and domino's runner, all with the same model.
pub(crate) struct Engines {
    runtime: Runtime,
    stock: Arc<MistralRs>,
    speculative: Arc<MistralRs>,
    speculation: Speculation,
    own: Decoder<CandleModel>,
    vocabulary: Vocabulary,
    tokenizer: Tokenizer,
}

impl Engines {
    pub(crate) fn load(model: &Path, gamma: Option<usize>) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let loader = GrammarSpeculativeLoader::new(loader(model)?);
        let loader = match gamma {
            Some(gamma) => GrammarSpeculativeLoader::with_gamma(self::loader(model)?, gamma),
            None => loader,
        };
        let speculation = loader.speculation();
        let speculative = engine(&runtime, &loader)?;
        let stock = engine(&runtime, &*self::loader(model)?)?;
        let (vocabulary, tokenizer) = (speculation.vocabulary()?, speculation.tokenizer()?);
        let own = CandleModel::load(model, &LoadOptions::default())?;
        let own = Decoder::builder(own).vocabulary(vocabulary.clone()).build()?;
        Ok(Self { runtime, stock, speculative, speculation, own, vocabulary, tokenizer })
    }

    pub(crate) fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// What passes with drafts were seen to take.
    pub(crate) fn pass_cost(&self) -> PassCost {
        self.speculation.pass_cost()
    }

    pub(crate) fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// A text after the prompt of this number, with it as seed; `None` if it cannot be asked for.
    pub(crate) fn run(&mut self, kind: Kind, task: &Task, number: usize) -> anyhow::Result<Option<Run>> {
        let prompt = &task.prompts[number % task.prompts.len()];
        let sampling = Sampling::with_temperature(task.temperature)?;
        if matches!(kind, Kind::Own) {
            return self.run_own(prompt, sampling, task.tokens, number).map(Some);
        }
        let (sender, mut receiver) = channel(task.tokens + 16);
        let messages = RequestMessage::CompletionTokens(prompt.iter().map(|token| token.raw()).collect());
        let params = SamplingParams {
            temperature: Some(task.temperature),
            max_len: Some(task.tokens),
            ..SamplingParams::neutral()
        };
        let engine = if matches!(kind, Kind::Drafts) { &self.speculative } else { &self.stock };
        let mut request =
            NormalRequest::new_simple(messages, params, sender, engine.next_request_id(), None, None);
        let sampler = Sampler::new(sampling, number as u64);
        let mut watch = None;
        match kind {
            Kind::Unconstrained | Kind::Own => {}
            Kind::Llguidance => match &task.lark {
                Some(lark) => request.constraint = Constraint::Lark(lark.clone()),
                None => return Ok(None),
            },
            Kind::Masks => {
                let processor = GrammarLogitsProcessor::new(task.grammar.constraint()).draw_by(sampler, 0);
                watch = Some(processor.watch());
                request.logits_processors = Some(vec![Arc::new(processor)]);
                // Of the one token that is left.
                request.sampling_params.temperature = Some(0.0);
            }
            Kind::Drafts => {
                let what = SpeculativeRequest::new(task.grammar.constraint())
                    .guesses(&task.guesses)
                    .draw_by(sampler, 0);
                watch = Some(self.runtime.block_on(self.speculation.attach(&mut request, what))?);
            }
        }
        // The first row that is drawn from is the prompt's last; but drafts are asked for first.
        let (first, before) = (Arc::new(OnceLock::new()), usize::from(matches!(kind, Kind::Drafts)));
        let (noted, calls) = (Arc::clone(&first), AtomicUsize::new(0));
        let clock = move |row: &Tensor, _: &[u32]| {
            if calls.fetch_add(1, Ordering::Relaxed) == before {
                noted.get_or_init(Moment::now);
            }
            Ok(row.clone())
        };
        request.logits_processors.get_or_insert_default().push(Arc::new(clock));
        engine.send_request(Request::Normal(Box::new(request))).map_err(|error| anyhow!("{error}"))?;
        let response = self.runtime.block_on(receiver.recv()).context("the engine has died")?;
        let Response::CompletionDone(done) = response else {
            bail!("{}: another kind of answer", kind.name())
        };
        let (seconds, processor_seconds) = first.get().context("no token was drawn")?.elapsed();
        let count = done.usage.completion_tokens.saturating_sub(1);
        let mut run = Run { count, seconds, processor_seconds, ..Run::default() };
        if let Some(watch) = watch {
            if let Some(error) = watch.error() {
                return Err(error.into());
            }
            let stats = watch.stats();
            run.tokens = watch.tokens();
            (run.passes, run.drafted, run.accepted) = (stats.passes, stats.drafted, stats.accepted);
        }
        Ok(Some(run))
    }

    fn run_own(
        &mut self,
        prompt: &[TokenId],
        sampling: Sampling,
        most: usize,
        number: usize,
    ) -> anyhow::Result<Run> {
        let options = self.own.options_mut();
        (options.sampling, options.max_new_tokens, options.seed) = (sampling, most, number as u64);
        let mut steps = self.own.steps(prompt);
        let mut first = None;
        for step in steps.by_ref() {
            step?;
            first.get_or_insert_with(Moment::now);
        }
        let (seconds, processor_seconds) = first.map_or((0.0, 0.0), Moment::elapsed);
        // End of text takes a pass too.
        let passes = steps.stats().passes;
        Ok(Run { count: passes.saturating_sub(1), seconds, processor_seconds, passes, ..Run::default() })
    }
}

fn loader(model: &Path) -> anyhow::Result<Box<dyn Loader>> {
    let folder = Some(model.display().to_string());
    NormalLoaderBuilder::new(NormalSpecificConfig::default(), None, None, folder, false, None).build(None)
}

/// An engine with 32-bit numbers.
fn engine(runtime: &Runtime, loader: &dyn Loader) -> anyhow::Result<Arc<MistralRs>> {
    let pipeline = loader.load_model_from_hf(
        None,
        TokenSource::None,
        &ModelDType::F32,
        &Device::Cpu,
        true,
        DeviceMapSetting::dummy(),
        None,
        None,
    )?;
    let method = DefaultSchedulerMethod::Fixed(std::num::NonZeroUsize::MIN);
    let builder = MistralRsBuilder::new(pipeline, SchedulerConfig::DefaultScheduler { method }, false, None);
    Ok(runtime.block_on(builder.with_no_prefix_cache(true).build()))
}

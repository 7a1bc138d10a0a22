//! Runs mistral.rs' engine for one text at a time, as domino's own decoder does, so that the two can be
//! compared.

mod stopped;

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use mistralrs_candle::Device;
use mistralrs_core::{
    Constraint as EngineConstraint, DefaultSchedulerMethod, DeviceMapSetting, GGUFLoaderBuilder,
    GGUFSpecificConfig, Loader, MistralRs, MistralRsBuilder, ModelDType, NormalLoaderBuilder, NormalRequest,
    NormalSpecificConfig, Request, RequestMessage, Response, SamplingParams, SchedulerConfig, TokenSource,
};
use tokio::{runtime::Runtime, sync::mpsc::Receiver};

use self::stopped::Stopped;
use super::{AttachError, GrammarSpeculativeLoader, Guesses, LoadError, Speculation, SpeculativeRequest};
use super::{
    EngineVocabularyError, GrammarLogitsProcessor, RequestError, RequestWatch, free::FreeLogitsProcessor,
};
use domino::{
    Constraint,
    decode::{DecodeOptions, Finish, Generation, Sampler},
    ids::TokenId,
    vocab::{Tokenizer, Vocabulary},
};

/// Time without tokens after which the caller is asked whether to go on.
const PATIENCE: Duration = Duration::from_millis(50);
/// Longest time of a pass, after which the engine counts as hanging.
const HUNG: Duration = Duration::from_secs(600);

/// An engine of mistral.rs with a model on the CPU, for one text at a time.
pub struct EngineRunner {
    runtime: Runtime,
    engine: Arc<MistralRs>,
    vocabulary: Vocabulary,
    tokenizer: Tokenizer,
    speculation: Option<Speculation>,
}

/// Reason why mistral.rs' engine cannot be had, or gave no text.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunnerError {
    /// The system gives no threads for a runtime.
    #[error("the engine's threads cannot be started: {0}")]
    Threads(#[source] std::io::Error),
    /// mistral.rs cannot load the model.
    #[error("mistral.rs cannot load the model: {0}")]
    Load(String),
    /// The model cannot be loaded for speculation.
    #[error(transparent)]
    Speculation(#[from] LoadError),
    /// The tokens of the engine cannot be used.
    #[error(transparent)]
    Vocabulary(#[from] EngineVocabularyError),
    /// The engine cannot do what is asked for.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// The engine refused the request, or failed.
    #[error("mistral.rs: {0}")]
    Engine(String),
    /// The text was ended early.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The engine gives no sign of life.
    #[error("mistral.rs has given no sign of life for {0:?}")]
    Hangs(Duration),
}

/// Number of rows of an engine's passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum EngineDrafts {
    /// One row: nothing is drafted.
    #[default]
    None,
    /// Chooses the number of rows that pays.
    Auto,
    /// A fixed number of rows, whether it pays or not.
    Rows(usize),
}

/// The constraint that a text is written under.
#[derive(Clone, Copy)]
enum Under<'a> {
    Nothing,
    Ours(&'a Constraint),
    Guessed(&'a Constraint, &'a Guesses),
    Engine(&'a EngineConstraint),
}

impl<'a> Under<'a> {
    /// Our own constraint, if there is one.
    fn constraint(self) -> Option<&'a Constraint> {
        match self {
            Self::Ours(constraint) => Some(constraint),
            Self::Guessed(constraint, _) => Some(constraint),
            Self::Nothing | Self::Engine(_) => None,
        }
    }
}

/// An answer to the question whether to go on with a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GoOn {
    /// Goes on until the text ends.
    Yes,
    /// Ends the text here.
    No,
}

impl EngineRunner {
    /// Loads the model of a folder, or of a GGUF file, on the CPU, with 32-bit floats where it is not
    /// quantised; for speculation, if drafts are wanted.
    ///
    /// # Errors
    /// If the engine cannot load it.
    pub fn load(path: &Path, drafts: EngineDrafts) -> Result<Self, RunnerError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(RunnerError::Threads)?;
        let target = loader(path).map_err(|error| RunnerError::Load(format!("{error:#}")))?;
        let (loader, speculation) = around(target, drafts);
        let loaded = loader.load_model_from_hf(
            None,
            TokenSource::None,
            &ModelDType::F32,
            &Device::Cpu,
            true,
            DeviceMapSetting::dummy(),
            None,
            None,
        );
        let pipeline = loaded.map_err(load_error)?;
        let (vocabulary, tokenizer) = {
            let pipeline = runtime.block_on(pipeline.lock());
            (super::vocabulary(&*pipeline)?, super::tokenizer(&*pipeline)?)
        };
        let method = DefaultSchedulerMethod::Fixed(std::num::NonZeroUsize::MIN);
        let engine =
            MistralRsBuilder::new(pipeline, SchedulerConfig::DefaultScheduler { method }, false, None)
                .with_no_prefix_cache(true);
        let engine = runtime.block_on(engine.build());
        Ok(Self { runtime, engine, vocabulary, tokenizer, speculation })
    }

    /// The vocabulary of the model, for which grammars must be compiled.
    #[must_use]
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// The tokenizer of the model.
    #[must_use]
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// Generates a text after `prompt`, under `constraint` if there is one. Tokens are drawn as domino's own
    /// decoder draws them (sampling, seed, positions). Penalties, [`close`](DecodeOptions::close) and
    /// [`logprobs`](DecodeOptions::logprobs) of the options are ignored. `progress` sees the tokens as they
    /// come, and says whether to go on.
    ///
    /// # Errors
    /// If the engine or the constraint fails.
    pub fn generate(
        &self,
        prompt: &[TokenId],
        constraint: Option<&Constraint>,
        options: &DecodeOptions,
        progress: impl FnMut(&[TokenId]) -> GoOn,
    ) -> Result<Generation, RunnerError> {
        self.write(prompt, constraint.map_or(Under::Nothing, Under::Ours), options, progress)
    }

    /// Generates a text as [`generate`](Self::generate) does, with drafts by `guesses` if the model was
    /// loaded for speculation.
    ///
    /// # Errors
    /// If the engine or the constraint fails.
    pub fn generate_with_guesses(
        &self,
        prompt: &[TokenId],
        constraint: &Constraint,
        guesses: &Guesses,
        options: &DecodeOptions,
        progress: impl FnMut(&[TokenId]) -> GoOn,
    ) -> Result<Generation, RunnerError> {
        self.write(prompt, Under::Guessed(constraint, guesses), options, progress)
    }

    /// Generates a text as [`generate`](Self::generate) does, under a constraint of the engine itself, which
    /// knows nothing of drafts. Where the masks are equal, so are the draws: the engine draws again if it
    /// refuses a token.
    ///
    /// # Errors
    /// If the engine fails, or refuses the constraint.
    pub fn generate_by_engine(
        &self,
        prompt: &[TokenId],
        constraint: &EngineConstraint,
        options: &DecodeOptions,
        progress: impl FnMut(&[TokenId]) -> GoOn,
    ) -> Result<Generation, RunnerError> {
        self.write(prompt, Under::Engine(constraint), options, progress)
    }

    fn write(
        &self,
        prompt: &[TokenId],
        under: Under<'_>,
        options: &DecodeOptions,
        mut progress: impl FnMut(&[TokenId]) -> GoOn,
    ) -> Result<Generation, RunnerError> {
        let begun = Instant::now();
        let constraint = under.constraint();
        let mut stop = Stopped::new(options, &self.vocabulary, constraint);
        let (watch, mut receiver) = self.start(prompt, under, options)?;
        let (mut ended, mut chunks) = (false, 0);
        while !ended {
            if let Some(response) = self.receive(&mut receiver)? {
                ended = end_of(response)?;
                chunks += 1;
            }
            let mut tokens = watch.tokens();
            if matches!(under, Under::Engine(_)) && !ended {
                // The last token may yet be refused, unless it was sent.
                tokens.truncate(chunks.max(tokens.len().saturating_sub(1)));
            }
            stop.search(&tokens);
            if progress(stop.kept(&tokens)) == GoOn::No || stop.found.is_some() {
                watch.cancel();
            }
        }
        if let Some(error) = watch.error() {
            return Err(error.into());
        }
        let tokens = watch.tokens();
        stop.search(&tokens);
        let kept = stop.kept(&tokens).to_vec();
        let mut stats = watch.stats();
        stats.total_time = begun.elapsed();
        (stats.prompt_tokens, stats.tokens) = (prompt.len(), kept.len());
        let finish = match stop.found {
            Some(_) => Finish::StopString,
            None if watch.has_ended() => Finish::Stop,
            None => Finish::Length,
        };
        let complete = constraint.map_or(finish != Finish::Length, |constraint| {
            let mut constraint = constraint.fork();
            constraint.advance_text(&stop.text).unwrap_or(false) && constraint.is_complete()
        });
        Ok(Generation::of_engine(kept, stop.text, finish, complete, stats))
    }

    /// Sends a request to the engine.
    fn start(
        &self,
        prompt: &[TokenId],
        under: Under<'_>,
        options: &DecodeOptions,
    ) -> Result<(RequestWatch, Receiver<Response>), RunnerError> {
        let (sender, receiver) = tokio::sync::mpsc::channel(1_024);
        let messages = RequestMessage::CompletionTokens(prompt.iter().map(|token| token.raw()).collect());
        // Processors draw and leave one token in each row; the engine takes the likeliest, which is that one.
        let params = SamplingParams {
            temperature: Some(0.0),
            max_len: Some(options.max_new_tokens),
            ..SamplingParams::deterministic()
        };
        let id = self.engine.next_request_id();
        let mut request = NormalRequest::new_simple(messages, params, sender, id, None, None);
        request.is_streaming = true;
        let sampler = Sampler::new(options.sampling, options.seed);
        if let Some(speculation) = &self.speculation {
            let attached = attached(under, options)?.draw_by(sampler, prompt.len()).masking(options.masking);
            let watch = self.runtime.block_on(speculation.attach(&mut request, attached))?;
            self.send(request)?;
            return Ok((watch, receiver));
        }
        let watch = match under.constraint() {
            Some(constraint) => {
                let constraint = constraint.fork().trailing_space(options.trailing_space);
                let processor = GrammarLogitsProcessor::new(constraint).draw_by(sampler, prompt.len());
                let processor = processor.masking(options.masking);
                let watch = processor.watch();
                request.logits_processors = Some(vec![Arc::new(processor)]);
                watch
            }
            None => {
                if let Under::Engine(constraint) = under {
                    request.constraint = constraint.clone();
                }
                let processor = FreeLogitsProcessor::new(sampler, prompt.len(), &self.vocabulary);
                let watch = processor.watch();
                request.logits_processors = Some(vec![Arc::new(processor)]);
                watch
            }
        };
        self.send(request)?;
        Ok((watch, receiver))
    }

    fn send(&self, request: NormalRequest) -> Result<(), RunnerError> {
        self.engine
            .send_request(Request::Normal(Box::new(request)))
            .map_err(|error| RunnerError::Engine(error.to_string()))
    }

    /// Time since the last sign of life, of an engine that gives such signs.
    fn silence(&self) -> Duration {
        if let Some(silence) = self.speculation.as_ref().and_then(Speculation::silence) {
            return silence;
        }
        Duration::ZERO
    }

    /// Receives the next response; `None` if nothing comes within [`PATIENCE`].
    fn receive(&self, receiver: &mut Receiver<Response>) -> Result<Option<Response>, RunnerError> {
        let next = self.runtime.block_on(async { tokio::time::timeout(PATIENCE, receiver.recv()).await });
        match next {
            Ok(Some(response)) => Ok(Some(response)),
            Ok(None) => Err(RunnerError::Engine("the engine has died".to_owned())),
            Err(_) => {
                let silence = self.silence();
                if silence > HUNG { Err(RunnerError::Hangs(silence)) } else { Ok(None) }
            }
        }
    }
}

/// Wraps the loader for drafts, if these are wanted.
fn around(target: Box<dyn Loader>, drafts: EngineDrafts) -> (Box<dyn Loader>, Option<Speculation>) {
    let loader = match drafts {
        EngineDrafts::None => return (target, None),
        EngineDrafts::Auto => GrammarSpeculativeLoader::new(target),
        EngineDrafts::Rows(rows) => GrammarSpeculativeLoader::with_gamma(target, rows),
    };
    let speculation = loader.speculation();
    (Box::new(loader), Some(speculation))
}

fn load_error(error: anyhow::Error) -> RunnerError {
    let error = match error.downcast::<LoadError>() {
        Ok(error) => return RunnerError::Speculation(error),
        Err(error) => error,
    };
    RunnerError::Load(format!("{error:#}"))
}

/// Makes the request of an engine with speculation.
fn attached(under: Under<'_>, options: &DecodeOptions) -> Result<SpeculativeRequest, RunnerError> {
    if let Under::Engine(_) = under {
        let message = "an engine for speculation heeds no constraint of its own";
        return Err(RunnerError::Engine(message.to_owned()));
    }
    let constraint = under.constraint().map(Constraint::fork);
    let constraint = constraint.map(|constraint| constraint.trailing_space(options.trailing_space));
    let what = constraint.map_or_else(SpeculativeRequest::unconstrained, SpeculativeRequest::new);
    Ok(match under {
        Under::Guessed(_, guesses) => what.guesses(guesses),
        _ => what,
    })
}

fn loader(path: &Path) -> anyhow::Result<Box<dyn Loader>> {
    let is_gguf = path.extension().is_some_and(|extension| extension == "gguf");
    if let (true, Some(folder), Some(name)) = (is_gguf, path.parent(), path.file_name()) {
        let (folder, name) = (folder.display().to_string(), name.to_string_lossy().into_owned());
        let folder = if folder.is_empty() { ".".to_owned() } else { folder };
        let config = GGUFSpecificConfig::default();
        return Ok(GGUFLoaderBuilder::new(None, None, folder, vec![name], config, false, None).build());
    }
    let folder = Some(path.display().to_string());
    NormalLoaderBuilder::new(NormalSpecificConfig::default(), None, None, folder, false, None).build(None)
}

/// True if the response ends a stream.
fn end_of(response: Response) -> Result<bool, RunnerError> {
    let failed = |message: String| Err(RunnerError::Engine(message));
    match response {
        Response::CompletionChunk(chunk) => {
            Ok(chunk.choices.iter().any(|choice| choice.finish_reason.is_some()))
        }
        Response::InternalError(error) | Response::ValidationError(error) => failed(error.to_string()),
        Response::CompletionModelError(error, _) => failed(error),
        _ => failed("an answer of another kind".to_owned()),
    }
}

impl std::fmt::Debug for EngineRunner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("EngineRunner");
        debug.field("speculation", &self.speculation);
        debug.finish_non_exhaustive()
    }
}

//! The loader: a target, a null draft, and upstream's speculative pipeline of both.

use std::{sync::Arc, time::Duration};

use mistralrs_candle::Device;
use mistralrs_core::{
    DeviceMapSetting, IsqType, Loader, ModelCategory, ModelKind, ModelPaths, PagedAttentionConfig, Pipeline,
    SpeculativeConfig, SpeculativePipeline, TokenSource, TryIntoDType,
};
use tokio::sync::Mutex;

use super::{
    error::LoadError,
    null_draft::{self, DraftShape},
    processor::EngineFacts,
    second_permit::{Owned, Sole},
    self_test,
    speculation::{LoadedEngine, Speculation},
    widths::Widths,
};
use domino::{ids::as_index, proposer::DraftLength};

type SharedPipeline = Arc<Mutex<dyn Pipeline + Send + Sync>>;

/// Default of the most rows of a pass.
const GAMMA: usize = 16;
/// Most rows of a pass.
const MOST: usize = 64;
/// Default of the time that the test run may take.
const TEST_LIMIT: Duration = Duration::from_secs(120);

/// Loads what another loader of text models loads (safetensors, GGUF, with quantisation in place), and makes
/// mistral.rs verify several tokens in one pass (speculative decoding). Drafts come from domino, by place in
/// the grammar.
///
/// ```no_run
/// # async fn f(target: Box<dyn mistralrs_core::Loader>, request: &mut mistralrs_core::NormalRequest)
/// # -> Result<(), Box<dyn std::error::Error>> {
/// use domino::{Compiler, Grammar, Limits, Syntax, proposer::{Learning, Prior}};
/// use domino_mistralrs::{GrammarSpeculativeLoader, Guesses, SpeculativeRequest};
///
/// let loader = GrammarSpeculativeLoader::new(target);
/// let speculation = loader.speculation();
/// // .. load with it and build the engine, without prefix cache; then, once per grammar:
/// let grammar = Grammar::parse(Syntax::Gbnf, "root ::= [a-z]+", &Limits::default())?;
/// let grammar = Compiler::new(speculation.vocabulary()?).compile(&grammar)?;
/// let guesses =
///     Guesses::new(&grammar, &speculation.tokenizer()?, Prior::new(&grammar), Learning::Online);
/// // .. and for each request, before it is sent:
/// let what = SpeculativeRequest::new(grammar.constraint()).guesses(&guesses).seed(7);
/// let watch = speculation.attach(request, what).await?;
/// # Ok(()) }
/// ```
///
/// # Limits
/// It serves models of text with an ordinary cache: no PagedAttention, no sliding window shorter than the
/// context, no recurrent layers. The engine must be built without prefix cache, and every request
/// [attached](Speculation::attach): by itself, the engine would always draw the likeliest token, and mix up
/// the caches of requests that run at once. It serves one request at a time, in the order of their
/// attachment. A pass is over the tokens of its draft and one more, and drafts are as long as pays by
/// measured times of passes. A text that cannot be guessed costs as much as without speculation, plus the
/// stand-in for a draft model, which upstream asks at least once a pass.
///
/// Loading makes a test run of a few tokens: where upstream's pipeline would hang, that is an error.
pub struct GrammarSpeculativeLoader {
    target: Box<dyn Loader>,
    gamma: usize,
    limit: Duration,
    speculation: Speculation,
}

impl GrammarSpeculativeLoader {
    /// Wraps the loader of a model, with passes of up to 16 tokens.
    #[must_use]
    pub fn new(target: Box<dyn Loader>) -> Self {
        Self::build(target, GAMMA, DraftLength::Auto)
    }

    /// Wraps the loader of a model, with passes of up to `gamma` tokens, clamped to 2 to 64. Drafts are as
    /// long as there are guesses, whether it pays or not.
    #[must_use]
    pub fn with_gamma(target: Box<dyn Loader>, gamma: usize) -> Self {
        let gamma = gamma.clamp(2, MOST);
        let length = DraftLength::up_to(gamma - 1, 0.0).unwrap_or_default();
        Self::build(target, gamma, length)
    }

    fn build(target: Box<dyn Loader>, gamma: usize, length: DraftLength) -> Self {
        Self { target, gamma, limit: TEST_LIMIT, speculation: Speculation::new(gamma, length) }
    }

    /// Limits the time of the test run. Default: two minutes.
    #[must_use]
    pub fn test_limit(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// The handle that requests are attached by, once a model is loaded.
    #[must_use]
    pub fn speculation(&self) -> Speculation {
        self.speculation.clone()
    }

    /// Makes the speculative pipeline around a loaded target.
    fn around(&self, target: SharedPipeline, device: &Device) -> Result<SharedPipeline, LoadError> {
        let (model, own_tokenizer, shape, tokenizer) = {
            let target = target.try_lock().map_err(|_| LoadError::NotSole)?;
            let (model, shape, tokenizer) = self.examine(&*target)?;
            (model, crate::tokenizer(&*target)?, shape, tokenizer)
        };
        let draft = null_draft::load(&shape, &tokenizer, device)?;
        let widths = Widths::<SpeculativePipeline>::up_to(self.gamma);
        let soles = [Sole::of(&target), Sole::of(&draft)];
        let of_width = |&gamma: &usize| {
            let [target, draft] =
                [&target, &draft].map(|pipeline| Arc::clone(pipeline) as Arc<Mutex<dyn Pipeline>>);
            SpeculativePipeline::new(target, draft, SpeculativeConfig { gamma })
                .map(|pipeline| (gamma, pipeline))
                .map_err(|error| LoadError::Pipeline(error.to_string()))
        };
        let mut pipelines: Vec<_> = widths.iter().map(of_width).collect::<Result<_, _>>()?;
        drop((target, draft));
        for sole in soles {
            sole.admit_two(pipelines.len()).map_err(|Owned| LoadError::NotSole)?;
        }
        let (first, pipeline) = pipelines.remove(0);
        let pipeline = Arc::new(Mutex::new(pipeline));
        let widths = Widths::new(&pipeline, first, pipelines);
        self.speculation.set(Some(LoadedEngine { model, tokenizer: own_tokenizer, widths }));
        let tested: Arc<Mutex<dyn Pipeline>> = Arc::clone(&pipeline) as _;
        if let Err(error) = self_test::run(&tested, &self.speculation, self.limit) {
            self.speculation.set(None);
            return Err(error);
        }
        Ok(pipeline)
    }

    /// Reads the facts needed about the target; refuses models whose caches upstream's pipeline cannot roll
    /// back.
    fn examine(
        &self,
        target: &dyn Pipeline,
    ) -> Result<(EngineFacts, DraftShape, Arc<mistralrs_tokenizers::Tokenizer>), LoadError> {
        let metadata = target.get_metadata();
        let context = metadata.max_seq_len;
        if !matches!(target.category(), ModelCategory::Text) {
            return Err(LoadError::Unsupported("it is no model of text"));
        }
        if metadata.is_xlora || metadata.no_kv_cache {
            return Err(LoadError::Unsupported("it is X-LoRA, or has no cache"));
        }
        if target.cache().is_hybrid() {
            return Err(LoadError::Unsupported("it has recurrent layers"));
        }
        if metadata.sliding_window.is_some_and(|window| window < context) {
            return Err(LoadError::Unsupported("its attention has a sliding window"));
        }
        let config =
            metadata.model_metadata.as_ref().ok_or(LoadError::Unsupported("its cache is not known"))?;
        if config.k_head_dim() != config.v_head_dim() {
            return Err(LoadError::Unsupported("its keys and values are of different sizes"));
        }
        let tokenizer = target.tokenizer().ok_or(LoadError::Unsupported("it has no tokenizer"))?;
        // Upstream panics when it reads back its own copy of such a GGUF file's tokenizer.
        if matches!(tokenizer.get_model(), mistralrs_tokenizers::ModelWrapper::Unigram(_)) {
            return Err(LoadError::Unsupported(
                "its tokenizer is of the Unigram kind, as in GGUF files of Llama models",
            ));
        }
        let vocabulary = crate::vocabulary(target)?;
        let highest = tokenizer.get_vocab(true).into_values().max().unwrap_or(0);
        let tokens = vocabulary.size().max(as_index(highest) + 1);
        let shape = DraftShape {
            tokens,
            kv_heads: config.num_kv_heads(),
            head_dim: config.k_head_dim(),
            context: context + self.gamma,
            dtype: metadata.activation_dtype,
        };
        let model = EngineFacts { vocabulary, gamma: self.gamma, context };
        Ok((model, shape, tokenizer))
    }
}

/// Refuses a paged cache, which the null draft does not have.
fn refuse_pages(config: Option<&PagedAttentionConfig>) -> Result<(), LoadError> {
    match config {
        Some(_) => Err(LoadError::Unsupported("PagedAttention is asked for")),
        None => Ok(()),
    }
}

// Upstream's trait demands errors of `anyhow`.
impl Loader for GrammarSpeculativeLoader {
    fn load_model_from_hf(
        &self,
        revision: Option<String>,
        token_source: TokenSource,
        dtype: &dyn TryIntoDType,
        device: &Device,
        silent: bool,
        mapper: DeviceMapSetting,
        in_situ_quant: Option<IsqType>,
        paged_attn_config: Option<PagedAttentionConfig>,
    ) -> anyhow::Result<SharedPipeline> {
        refuse_pages(paged_attn_config.as_ref())?;
        let target = self.target.load_model_from_hf(
            revision,
            token_source,
            dtype,
            device,
            silent,
            mapper,
            in_situ_quant,
            None,
        )?;
        Ok(self.around(target, device)?)
    }

    fn load_model_from_path(
        &self,
        paths: &Box<dyn ModelPaths>,
        dtype: &dyn TryIntoDType,
        device: &Device,
        silent: bool,
        mapper: DeviceMapSetting,
        in_situ_quant: Option<IsqType>,
        paged_attn_config: Option<PagedAttentionConfig>,
    ) -> anyhow::Result<SharedPipeline> {
        refuse_pages(paged_attn_config.as_ref())?;
        let target =
            self.target.load_model_from_path(paths, dtype, device, silent, mapper, in_situ_quant, None)?;
        Ok(self.around(target, device)?)
    }

    fn get_id(&self) -> String {
        self.target.get_id()
    }

    fn get_kind(&self) -> ModelKind {
        self.target.get_kind()
    }
}

impl std::fmt::Debug for GrammarSpeculativeLoader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GrammarSpeculativeLoader")
            .field("target", &self.target.get_id())
            .field("gamma", &self.gamma)
            .finish_non_exhaustive()
    }
}

//! Loads the model into mistral.rs.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context;
use domino::{
    Vocabulary,
    grammar::tools::Spelling,
    mistralrs::{GrammarSpeculativeLoader, Speculation},
};
use mistralrs_candle::Device;
use mistralrs_core::{
    DefaultSchedulerMethod, DeviceMapMetadata, DeviceMapSetting, GGUFLoaderBuilder, GGUFSpecificConfig,
    Loader, MistralRs, MistralRsBuilder, ModelDType, NormalLoaderBuilder, NormalSpecificConfig,
    SchedulerConfig, TokenSource, parse_isq_value,
};

use super::{
    args::{DraftSize, Dtype, Serve},
    guessing::{Guessing, prior_files},
};
use crate::{failure::BadInput, model, tools};

/// A model that runs.
pub(crate) struct Engine {
    pub(crate) state: Arc<MistralRs>,
    pub(crate) vocabulary: Vocabulary,
    /// What clients call it.
    pub(crate) name: String,
    /// Tokens of a text, its prompt included.
    pub(crate) context: usize,
    /// How it writes calls of functions, if that is known.
    pub(crate) spelling: Option<Spelling>,
    /// May it think before it answers, as its chat template shows?
    pub(crate) thinks: bool,
    /// Where requests get their turn, if it verifies several tokens a pass.
    pub(crate) speculation: Option<Speculation>,
}

/// Where the model is, after looking whether it can be one.
pub(crate) fn find(command: &Serve) -> Result<PathBuf, BadInput> {
    let path = model::locate(command.model.as_deref())?;
    if let Some(template) = &command.chat_template {
        let known = template.extension().is_some_and(|extension| extension == "jinja" || extension == "json");
        if !known || !template.is_file() {
            return Err(BadInput::new(format!("{} is no chat template", template.display()))
                .hint("--chat-template takes a file that ends in .jinja or .json"));
        }
    }
    if path.is_file() {
        return match path.extension() {
            Some(extension) if extension == "gguf" && command.isq.is_none() => Ok(path),
            Some(extension) if extension == "gguf" => {
                Err(BadInput::new("a GGUF file has its own numbers").hint("leave --isq out"))
            }
            _ => Err(BadInput::new(format!("{} is no model", path.display()))
                .hint("--model takes a model's folder or a GGUF file (*.gguf)")),
        };
    }
    for needed in ["config.json", "tokenizer.json"] {
        if !path.join(needed).is_file() {
            return Err(BadInput::new(format!("{} has no {needed}", path.display())).hint(
                "a model's folder has config.json, tokenizer.json, tokenizer_config.json and *.safetensors",
            ));
        }
    }
    if !["tokenizer_config.json", "generation_config.json"].iter().any(|file| path.join(file).is_file()) {
        return Err(BadInput::new(format!("{} has no tokenizer_config.json", path.display())).hint(
            "without it nobody knows which token ends a text; it comes with the model's other files (eos_token, \
             chat_template)",
        ));
    }
    Ok(path)
}

/// Loads it, and what guesses for it. Blocks while it reads the weights.
pub(crate) async fn load(command: &Serve, path: &Path) -> anyhow::Result<(Engine, Option<Guessing>)> {
    let isq = command.isq.as_deref().map(|isq| parse_isq_value(isq, Some(&Device::Cpu))).transpose();
    let isq = isq.map_err(|error| {
        BadInput::new(format!("--isq: {error}"))
            .hint("--isq takes bits (2 to 8) or a kind, such as q4k or q8_0")
    })?;
    let dtype = match command.dtype {
        Dtype::Auto => ModelDType::Auto,
        Dtype::F32 => ModelDType::F32,
        Dtype::F16 => ModelDType::F16,
        Dtype::Bf16 => ModelDType::BF16,
    };
    let bad = |error: anyhow::Error| BadInput::new(format!("{}: {error:#}", path.display()));
    let priors = match &command.speculation {
        Some(speculation) => prior_files(speculation.prior.as_deref(), path)?,
        None => Vec::new(),
    };
    let mut loader = loader(command, path).map_err(bad)?;
    let mut speculation = None;
    if let Some(asked) = &command.speculation {
        let around = match asked.size {
            DraftSize::Auto => GrammarSpeculativeLoader::new(loader),
            // A row more than guessed tokens.
            DraftSize::Tokens(tokens) => {
                GrammarSpeculativeLoader::with_gamma(loader, tokens.get().saturating_add(1))
            }
        }
        .test_limit(command.limits.stall);
        speculation = Some(around.speculation());
        loader = Box::new(around);
    }
    let map = DeviceMapSetting::Map(DeviceMapMetadata::dummy());
    let pipeline = loader
        .load_model_from_hf(None, TokenSource::None, &dtype, &Device::Cpu, true, map, isq, None)
        .map_err(bad)?;
    let vocabulary = match &speculation {
        Some(speculation) => speculation.vocabulary()?,
        None => domino::mistralrs::vocabulary(&*pipeline.lock().await)
            .map_err(|error| BadInput::new(format!("{}: {error}", path.display())))?,
    };
    let guessing = match speculation.as_ref().zip(command.speculation.as_ref()) {
        Some((speculation, asked)) => Some(Guessing::new(speculation.tokenizer()?, asked, &priors)?),
        None => None,
    };
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let scheduler =
        SchedulerConfig::DefaultScheduler { method: DefaultSchedulerMethod::Fixed(command.limits.running) };
    let state = MistralRsBuilder::new(pipeline, scheduler, false, None)
        .with_model_id(name.clone())
        // On the CPU mistralrs-core 0.8.1 drops none of the caches it keeps of prompts (`evict_caches` counts those on
        // cards only): memory would grow with every request. And drafts do not go together with them.
        .with_no_prefix_cache(true)
        .build()
        .await;
    let context =
        state.max_sequence_length(None).ok().flatten().context("the model has no context length")?;
    // A pass writes past the text by as many tokens as a draft has.
    let context = context.saturating_sub(speculation.as_ref().map_or(0, Speculation::gamma));
    let template = template(command, path);
    let spelling = command.tool_spelling.unwrap_or_else(|| Spelling::of_chat_template(&template));
    let thinks = template.contains("<think>") || spelling == Some(Spelling::Harmony);
    Ok((Engine { state, vocabulary, name, context, spelling, thinks, speculation }, guessing))
}

/// The model's chat template; nothing if it has none in a file of its own.
fn template(command: &Serve, path: &Path) -> String {
    let inside = |file: &str| path.join(file);
    let files = match &command.chat_template {
        Some(template) => vec![template.clone()],
        None => ["chat_template.jinja", "chat_template.json", "tokenizer_config.json"].map(inside).to_vec(),
    };
    files.iter().find_map(|file| tools::template_of(file).ok()).unwrap_or_default()
}

fn loader(command: &Serve, path: &Path) -> anyhow::Result<Box<dyn Loader>> {
    let template = command.chat_template.as_ref().map(|path| path.display().to_string());
    // mistral.rs takes a local folder where it takes a name on the hub, and then asks no network.
    let text = |path: &Path| path.to_str().map(str::to_owned).context("its path is not UTF-8");
    if path.is_file() {
        let file = path.file_name().unwrap_or_default();
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let config = GGUFSpecificConfig::default();
        let files = vec![text(Path::new(file))?];
        return Ok(GGUFLoaderBuilder::new(template, None, text(folder)?, files, config, false, None).build());
    }
    let config = NormalSpecificConfig::default();
    let (jinja, json) = match template {
        Some(template) if template.ends_with(".jinja") => (Some(template), None),
        template => (None, template),
    };
    NormalLoaderBuilder::new(config, json, None, Some(text(path)?), false, jinja).build(None)
}

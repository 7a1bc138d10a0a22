//! Loads a model into mistral.rs.

use std::{path::Path, sync::Arc};

use anyhow::Context;
use domino_cli::BadInput;
use domino_cli::texts::{Pulse, TextModel, WantedTexts};
use mistralrs_candle::Device;
use mistralrs_core::{
    AutoLoaderBuilder, DefaultSchedulerMethod, DeviceMapMetadata, DeviceMapSetting, EmbeddingSpecificConfig,
    GGUFLoaderBuilder, GGUFSpecificConfig, Loader, MistralRsBuilder, ModelDType, MultimodalSpecificConfig,
    NormalSpecificConfig, SchedulerConfig, TokenSource,
};
use tokio::sync::Semaphore;

use super::{OwnFlags, drafting::RequestDrafts, writer::MistralEngine};

/// Loads the model. Blocks while it reads the weights.
pub(super) async fn load(
    flags: &OwnFlags,
    path: &Path,
    wanted: &WantedTexts,
    pulse: &Arc<Pulse>,
) -> Result<TextModel, BadInput> {
    let bad = |error: anyhow::Error| BadInput::new(format!("{}: {error:#}", path.display()));
    let device = match flags.card {
        None => Device::Cpu,
        Some(index) => Device::new_cuda(index).map_err(|error| bad(error.into()))?,
    };
    let (dtype, isq) = (ModelDType::from(flags.dtype), flags.isq(&device)?);
    let (loader, drafting) = RequestDrafts::around(loader(wanted, path).map_err(bad)?, wanted.drafts, pulse);
    let map = DeviceMapSetting::Map(DeviceMapMetadata::dummy());
    let pipeline = loader
        .load_model_from_hf(None, TokenSource::None, &dtype, &device, true, map, isq, None)
        .map_err(bad)?;
    let vocabulary = match drafting.vocabulary().map_err(|error| bad(error.into()))? {
        Some(vocabulary) => vocabulary,
        None => domino_mistralrs::vocabulary(&*pipeline.lock().await).map_err(|error| bad(error.into()))?,
    };
    let method = DefaultSchedulerMethod::Fixed(wanted.texts);
    let scheduler = SchedulerConfig::DefaultScheduler { method };
    let state = MistralRsBuilder::new(pipeline, scheduler, false, None)
        // On the CPU mistralrs-core 0.8.1 drops none of the caches it keeps of prompts (`evict_caches` counts
        // those on cards only): memory would grow with every request. And drafts do not go together with
        // them.
        .with_no_prefix_cache(true)
        .build()
        .await;
    let context = state.max_sequence_length(None).ok().flatten();
    let context = context.context("the model has no context length").map_err(bad)?;
    // A pass writes past the text by as many tokens as a draft has.
    let context = context.saturating_sub(drafting.rows());
    let (turns, pulse) = (Arc::new(Semaphore::new(wanted.texts.get())), Arc::clone(pulse));
    let engine = MistralEngine { state, vocabulary: vocabulary.clone(), drafting, turns, pulse };
    Ok(TextModel { engine: Arc::new(engine), vocabulary, context })
}

fn loader(wanted: &WantedTexts, path: &Path) -> anyhow::Result<Box<dyn Loader>> {
    let template = wanted.chat_template.as_ref().map(|path| path.display().to_string());
    // mistral.rs takes a local folder where it takes a name on the hub, and then asks no network.
    let text = |path: &Path| path.to_str().map(str::to_owned).context("its path is not UTF-8");
    if path.is_file() {
        let file = path.file_name().unwrap_or_default();
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let config = GGUFSpecificConfig::default();
        let files = vec![text(Path::new(file))?];
        return Ok(GGUFLoaderBuilder::new(template, None, text(folder)?, files, config, false, None).build());
    }
    let (jinja, json) = match template {
        Some(template) if template.ends_with(".jinja") => (Some(template), None),
        template => (None, template),
    };
    // The model's config.json says of what kind it is; models that see images too write text as others do.
    let (normal, multimodal) = (NormalSpecificConfig::default(), MultimodalSpecificConfig::default());
    let embedding = EmbeddingSpecificConfig::default();
    let builder =
        AutoLoaderBuilder::new(normal, multimodal, embedding, json, None, text(path)?, false, jinja);
    Ok(builder.build())
}

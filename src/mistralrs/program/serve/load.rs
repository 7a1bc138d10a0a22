//! Loads a model into mistral.rs.

use std::{path::Path, sync::Arc};

use anyhow::Context;
use mistralrs_candle::Device;
use mistralrs_core::{
    DefaultSchedulerMethod, DeviceMapMetadata, DeviceMapSetting, GGUFLoaderBuilder, GGUFSpecificConfig,
    Loader, MistralRsBuilder, ModelDType, NormalLoaderBuilder, NormalSpecificConfig, SchedulerConfig,
    TokenSource, parse_isq_value,
};
use tokio::sync::Semaphore;

use super::{drafting::RequestDrafts, writer::MistralEngine};
use crate::serve::{
    args::{Dtype, EngineArgs},
    bounds::Pulse,
};
use crate::{flags::EngineName, terminal::failure::BadInput};

/// Loads the model. Blocks while it reads the weights.
pub(in super::super) async fn load(
    args: &EngineArgs,
    path: &Path,
    pulse: &Arc<Pulse>,
) -> anyhow::Result<MistralEngine> {
    let bad = |error: anyhow::Error| BadInput::new(format!("{}: {error:#}", path.display()));
    let device = match args.card.and_then(|place| place.card) {
        None => Device::Cpu,
        Some(index) => Device::new_cuda(index).map_err(|error| bad(error.into()))?,
    };
    let isq = args.isq.as_deref().map(|isq| parse_isq_value(isq, Some(&device))).transpose();
    let isq = isq.map_err(|error| {
        BadInput::new(format!("--isq: {error}"))
            .hint("--isq takes bits (2 to 8) or a kind, such as q4k or q8_0")
    })?;
    let dtype = match args.dtype {
        None | Some(Dtype::Auto) => ModelDType::Auto,
        Some(Dtype::F32) => ModelDType::F32,
        Some(Dtype::F16) => ModelDType::F16,
        Some(Dtype::Bf16) => ModelDType::BF16,
    };
    let (loader, drafting) = RequestDrafts::around(loader(args, path).map_err(bad)?, args, pulse);
    let map = DeviceMapSetting::Map(DeviceMapMetadata::dummy());
    let pipeline = loader
        .load_model_from_hf(None, TokenSource::None, &dtype, &device, true, map, isq, None)
        .map_err(bad)?;
    let vocabulary = match drafting.vocabulary()? {
        Some(vocabulary) => vocabulary,
        None => domino::mistralrs::vocabulary(&*pipeline.lock().await)
            .map_err(|error| BadInput::new(format!("{}: {error}", path.display())))?,
    };
    let texts = args.texts(EngineName::Mistralrs);
    let scheduler = SchedulerConfig::DefaultScheduler { method: DefaultSchedulerMethod::Fixed(texts) };
    let state = MistralRsBuilder::new(pipeline, scheduler, false, None)
        // On the CPU mistralrs-core 0.8.1 drops none of the caches it keeps of prompts (`evict_caches` counts
        // those on cards only): memory would grow with every request. And drafts do not go together with
        // them.
        .with_no_prefix_cache(true)
        .build()
        .await;
    let context =
        state.max_sequence_length(None).ok().flatten().context("the model has no context length")?;
    // A pass writes past the text by as many tokens as a draft has.
    let context = context.saturating_sub(drafting.rows());
    let turns = Arc::new(Semaphore::new(texts.get()));
    Ok(MistralEngine { state, vocabulary, context, drafting, turns, pulse: Arc::clone(pulse) })
}

fn loader(args: &EngineArgs, path: &Path) -> anyhow::Result<Box<dyn Loader>> {
    let template = args.chat_template.as_ref().map(|path| path.display().to_string());
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

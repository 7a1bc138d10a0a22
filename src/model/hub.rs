//! Models on the Hugging Face hub: which files to fetch, and where they lie afterwards.
//!
//! The `hf-hub` crate does the fetching and knows the layout of the cache. Invariant: a model that is
//! complete in the cache is used without asking the network. This file knows nothing of what is in the files.

use std::{
    collections::BTreeSet,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    str::FromStr,
};

use hf_hub::{
    Cache, CacheRepo, Repo, RepoType,
    api::{
        Progress,
        sync::{ApiBuilder, ApiError, ApiRepo},
    },
};
use serde::Deserialize;

use crate::ids::as_u64;

const CONFIG: &str = "config.json";
const TOKENIZER: &str = "tokenizer.json";
const SINGLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";
/// Files that are fetched where the hub has them.
const OPTIONAL: [&str; 2] = ["generation_config.json", "tokenizer_config.json"];

/// A model on the hub, written `OWNER/NAME`, `OWNER/NAME@REVISION` or, for a GGUF file,
/// `OWNER/NAME:FILE.gguf` or `OWNER/NAME@REVISION:FILE.gguf`.
///
/// ```
/// use domino::model::hub::HubModel;
///
/// let model: HubModel = "Qwen/Qwen2.5-0.5B-Instruct".parse()?;
/// assert_eq!(model.to_string(), "Qwen/Qwen2.5-0.5B-Instruct");
/// assert!("models/domino-small/model.safetensors".parse::<HubModel>().is_err());
/// # Ok::<(), domino::model::hub::HubError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HubModel {
    id: String,
    revision: String,
    file: Option<String>,
}

/// Address of the hub, and place of the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HubOptions {
    /// Absolute path of the cache, which all programs of the hub share.
    pub cache: PathBuf,
    /// Address of the hub.
    pub endpoint: String,
    /// Use only what is in the cache.
    pub offline: bool,
}

impl HubOptions {
    /// Options by the environment, as the hub's own programs read it: the cache from `HF_HUB_CACHE`, or else
    /// `hub` in `HF_HOME`, or else `huggingface/hub` in `XDG_CACHE_HOME` or in `.cache` at home; the address
    /// from `HF_ENDPOINT`; offline by `HF_HUB_OFFLINE`.
    #[must_use]
    pub fn from_env() -> Self {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let path = |name: &str| set(name).map(PathBuf::from);
        let home = || path("XDG_CACHE_HOME").or_else(|| std::env::home_dir().map(|home| home.join(".cache")));
        let cache = path("HF_HUB_CACHE")
            .or_else(|| path("HF_HOME").map(|home| home.join("hub")))
            .or_else(|| home().map(|home| home.join("huggingface").join("hub")))
            .unwrap_or_else(|| std::env::temp_dir().join("huggingface").join("hub"));
        let endpoint = set("HF_ENDPOINT").and_then(|endpoint| endpoint.into_string().ok());
        let no = ["0", "false", "no", "off"];
        let offline = set("HF_HUB_OFFLINE")
            .is_some_and(|value| !no.contains(&value.to_string_lossy().to_lowercase().as_str()));
        Self {
            cache: std::path::absolute(&cache).unwrap_or(cache),
            endpoint: endpoint.unwrap_or_else(|| "https://huggingface.co".into()),
            offline,
        }
    }
}

impl Default for HubOptions {
    fn default() -> Self {
        Self::from_env()
    }
}

/// Progress of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HubProgress {
    /// Name of the file.
    pub file: String,
    /// Bytes fetched, those of earlier attempts included.
    pub done: u64,
    /// Bytes of the whole file.
    pub total: u64,
}

/// Kinds of [`HubError`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum HubErrorKind {
    /// The text does not name a model on the hub.
    InvalidId,
    /// The model is not in the cache, and the hub cannot be asked or does not answer.
    Unreachable,
    /// The hub has no such model or revision, or does not show it to everyone.
    NoSuchModel,
    /// The model lacks the file of this name.
    MissingFile(String),
    /// The file of this name could not be fetched or kept.
    Failed(String),
}

/// A model that could not be fetched.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct HubError {
    kind: HubErrorKind,
    message: String,
    hint: Option<String>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl HubError {
    /// The kind of error.
    #[must_use]
    pub fn kind(&self) -> &HubErrorKind {
        &self.kind
    }

    /// A way to mend it.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    fn new(kind: HubErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, source: None }
    }

    fn because(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }
}

impl FromStr for HubModel {
    type Err = HubError;

    fn from_str(text: &str) -> Result<Self, HubError> {
        let invalid = || {
            let message = format!("{text:?} is not a model on the hub: OWNER/NAME[@REVISION][:FILE.gguf]");
            HubError::new(HubErrorKind::InvalidId, message)
        };
        let (rest, file) = match text.split_once(':') {
            Some((rest, file)) => (rest, Some(file)),
            None => (text, None),
        };
        let (id, revision) = rest.split_once('@').unwrap_or((rest, "main"));
        let (owner, name) = id.split_once('/').ok_or_else(invalid)?;
        let is_gguf = |file: &str| file.to_ascii_lowercase().ends_with(".gguf");
        let named = is_name(owner) && is_name(name) && revision.split('/').all(is_name);
        if !named || file.is_some_and(|file| !is_gguf(file) || !file.split('/').all(is_name)) {
            return Err(invalid());
        }
        Ok(Self { id: id.into(), revision: revision.into(), file: file.map(Into::into) })
    }
}

impl fmt::Display for HubModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.id)?;
        if self.revision != "main" {
            write!(f, "@{}", self.revision)?;
        }
        self.file.iter().try_for_each(|file| write!(f, ":{file}"))
    }
}

/// True for a part of an id or a path. It cannot lead out of the cache.
fn is_name(name: &str) -> bool {
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !name.is_empty() && !name.starts_with('.') && name.len() <= 200 && name.chars().all(fine)
}

#[derive(Deserialize)]
struct Index {
    weight_map: std::collections::BTreeMap<String, String>,
}

/// The shards that an index names.
fn shards(index: &Path) -> Option<BTreeSet<String>> {
    let index: Index = serde_json::from_str(&std::fs::read_to_string(index).ok()?).ok()?;
    let files: BTreeSet<String> = index.weight_map.into_values().collect();
    files.iter().all(|file| is_name(file)).then_some(files)
}

/// The files of a GGUF model in parts: those named like `model-00001-of-00003.gguf`, or else the one.
fn parts(file: &str) -> Vec<String> {
    let whole = || vec![file.to_owned()];
    let Some((stem, count)) = file
        .get(..file.len().saturating_sub(".gguf".len()))
        .and_then(|stem| stem.rsplit_once("-of-"))
        .and_then(|(stem, count)| Some((stem, count.parse::<u32>().ok().filter(|&n| n < 1000)?)))
    else {
        return whole();
    };
    match stem.rsplit_once('-') {
        Some((stem, part)) if part.len() == 5 && part.parse::<u32>().is_ok() => {
            (1..=count).map(|part| format!("{stem}-{part:05}-of-{count:05}.gguf")).collect()
        }
        _ => whole(),
    }
}

impl HubModel {
    /// The model's folder or GGUF file, if all of it is in the cache. Does not ask the network.
    #[must_use]
    pub fn cached(&self, options: &HubOptions) -> Option<PathBuf> {
        let cache = self.cache(options);
        if let Some(file) = &self.file {
            return parts(file)
                .iter()
                .map(|part| cache.get(part))
                .collect::<Option<Vec<_>>>()?
                .into_iter()
                .next();
        }
        cache.get(TOKENIZER)?;
        let config = cache.get(CONFIG)?;
        let whole = match cache.get(INDEX).filter(|_| cache.get(SINGLE).is_none()) {
            Some(index) => shards(&index)?.iter().all(|shard| cache.get(shard).is_some()),
            None => cache.get(SINGLE).is_some(),
        };
        whole.then(|| config.parent().map(Path::to_owned))?
    }

    /// Fetches what is missing and returns the model's place in the cache; `progress` is called now and then.
    /// Fetching a file goes on where an earlier attempt stopped.
    ///
    /// # Errors
    /// If the hub cannot be reached, does not have the model or a file of it, or a file cannot be kept.
    pub fn fetch(
        &self,
        options: &HubOptions,
        progress: &mut dyn FnMut(&HubProgress),
    ) -> Result<PathBuf, HubError> {
        if let Some(path) = self.cached(options) {
            return Ok(path);
        }
        if options.offline {
            return Err(self.unreachable(options, "HF_HUB_OFFLINE is set"));
        }
        // The crate `hf-hub` panics on answers that the real hub never gives.
        catch_unwind(AssertUnwindSafe(|| self.ask(options, progress))).unwrap_or_else(|_| {
            Err(HubError::new(
                HubErrorKind::Unreachable,
                format!("{} does not answer like a hub", options.endpoint),
            ))
        })
    }

    fn ask(&self, options: &HubOptions, progress: &mut dyn FnMut(&HubProgress)) -> Result<PathBuf, HubError> {
        let api = ApiBuilder::from_cache(Cache::new(options.cache.clone()))
            .with_endpoint(options.endpoint.trim_end_matches('/').to_owned())
            .with_progress(false)
            .with_retries(3);
        let api = api.build().map_err(|error| self.unreachable(options, "no client").because(error))?;
        let api = api.repo(self.repo());
        let info = api.info().map_err(|error| self.failure(options, None, error))?;
        let there: BTreeSet<&str> = info.siblings.iter().map(|file| file.rfilename.as_str()).collect();
        let mut get = |name: &str| self.get(&api, options, name, &mut *progress);
        if let Some(file) = &self.file {
            let parts = parts(file);
            if let Some(missing) = parts.iter().find(|part| !there.contains(part.as_str())) {
                return Err(self.missing(missing, &there));
            }
            let paths: Vec<PathBuf> = parts.iter().map(|part| get(part)).collect::<Result<_, _>>()?;
            return paths.into_iter().next().ok_or_else(|| self.missing(file, &there));
        }
        if let Some(name) = [CONFIG, TOKENIZER].into_iter().find(|name| !there.contains(name)) {
            return Err(self.missing(name, &there));
        }
        let config = get(CONFIG)?;
        for name in OPTIONAL.into_iter().filter(|name| there.contains(name)).chain([TOKENIZER]) {
            get(name)?;
        }
        if there.contains(SINGLE) {
            get(SINGLE)?;
        } else if there.contains(INDEX) {
            let index = get(INDEX)?;
            let shards = shards(&index).ok_or_else(|| {
                HubError::new(HubErrorKind::Failed(INDEX.into()), format!("{self}: {INDEX} names no weights"))
            })?;
            for shard in shards {
                get(&shard)?;
            }
        } else {
            return Err(self.missing(SINGLE, &there));
        }
        config.parent().map(Path::to_owned).ok_or_else(|| self.missing(CONFIG, &there))
    }

    /// The path of one file, fetched if it is not in the cache.
    fn get(
        &self,
        api: &ApiRepo,
        options: &HubOptions,
        name: &str,
        progress: &mut dyn FnMut(&HubProgress),
    ) -> Result<PathBuf, HubError> {
        if let Some(path) = self.cache(options).get(name) {
            return Ok(path);
        }
        tracing::info!("fetching {name} of {self}");
        let watch =
            DownloadWatch { told: HubProgress { file: name.to_owned(), done: 0, total: 0 }, progress };
        api.download_with_progress(name, watch).map_err(|error| self.failure(options, Some(name), error))
    }

    fn repo(&self) -> Repo {
        Repo::with_revision(self.id.clone(), RepoType::Model, self.revision.clone())
    }

    fn cache(&self, options: &HubOptions) -> CacheRepo {
        Cache::new(options.cache.clone()).repo(self.repo())
    }

    /// The error for a hub that cannot be asked. It says which files to put where.
    fn unreachable(&self, options: &HubOptions, why: &str) -> HubError {
        let files = match &self.file {
            Some(file) => format!("get {} and name it with --model", parts(file).join(" and ")),
            None => format!(
                "put {CONFIG}, {TOKENIZER} and {SINGLE} (or {INDEX} and its shards) of {} in a folder and \
                 name it with --model",
                self.id
            ),
        };
        let message =
            format!("{self} is not in {}, and the hub cannot be asked: {why}", options.cache.display());
        let hint = format!("{files}, or set HF_HOME to the home of a cache that has the model");
        HubError { hint: Some(hint), ..HubError::new(HubErrorKind::Unreachable, message) }
    }

    /// The error for a file that the hub does not have.
    fn missing(&self, name: &str, there: &BTreeSet<&str>) -> HubError {
        let gguf: Vec<String> = there
            .iter()
            .filter(|file| file.to_ascii_lowercase().ends_with(".gguf"))
            .map(|file| format!("{}:{file}", self.id))
            .collect();
        let message = format!("{self} has no {name}");
        let hint = (!gguf.is_empty()).then(|| format!("it has {}", gguf.join(", ")));
        HubError { hint, ..HubError::new(HubErrorKind::MissingFile(name.to_owned()), message) }
    }

    /// The error of a request about the model (`name` is `None`) or one of its files.
    fn failure(&self, options: &HubOptions, name: Option<&str>, error: ApiError) -> HubError {
        let text = error.to_string();
        // The crate does not export the type that holds the status.
        let status = text.rsplit_once("http status: ").map(|(_, status)| status.trim());
        match (name, status) {
            (None, Some("401" | "403" | "404")) => {
                let message = format!("the hub shows no model {self}");
                let hint = format!(
                    "if it is not public, accept its terms and put an access token into {}",
                    Cache::new(options.cache.clone()).token_path().display()
                );
                let error = HubError::new(HubErrorKind::NoSuchModel, message).because(error);
                HubError { hint: Some(hint), ..error }
            }
            (None, _) | (Some(_), None) if matches!(error, ApiError::RequestError(_)) => {
                self.unreachable(options, &text).because(error)
            }
            (name, _) => {
                let name = name.unwrap_or(CONFIG);
                let message = format!("{name} of {self} could not be fetched: {text}");
                HubError::new(HubErrorKind::Failed(name.to_owned()), message).because(error)
            }
        }
    }
}

/// Passes the progress that `hf-hub` reports on to the caller.
struct DownloadWatch<'a> {
    told: HubProgress,
    progress: &'a mut dyn FnMut(&HubProgress),
}

impl Progress for DownloadWatch<'_> {
    fn init(&mut self, size: usize, _filename: &str) {
        self.told.total = as_u64(size);
        self.told.done = 0;
        (self.progress)(&self.told);
    }

    fn update(&mut self, size: usize) {
        self.told.done = self.told.done.saturating_add(as_u64(size));
        (self.progress)(&self.told);
    }

    fn finish(&mut self) {}
}

//! The model that a command runs, as it is stored on the CPU or as tensors on a device, and `--model`: its
//! files are found given a folder, a GGUF file or the name of a model on the hub.
//!
//! Its tokenizer is loaded here too. Vocabularies are read from the model, from a tokenizer's files, or from
//! the cache.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use domino::decode::{DecodeError, DecodeErrorKind, Finish};
use domino::model::candle::{
    CandleBatch, CandleModel, LoadOptions, ModelError, Placement, RandomModel, TensorModel,
};
use domino::model::hub::{HubModel, HubOptions, HubProgress};
use domino::model::{BatchModel, GraphCounts, Kept, Logits, Model, Rows};
use domino::{TokenId, Vocabulary, store::CacheFolder, vocab::Tokenizer};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::engine::{self, EngineModel, ModelTraits, OtherBatch, OtherEngine, OtherModel, WantedModel};
use crate::terminal::failure::{BadInput, remark};
use crate::terminal::progress;

/// The folder of the model that is used if none is named, found in the places of [`default_model`].
const DEFAULT_MODEL: &str = "models/domino-small";

/// The variable that names a model where no flag does.
const VARIABLE: &str = "DOMINO_MODEL";

/// Finds the files of the model `name`, fetched from the hub if need be. If there is no name, it is the model
/// that the variable `DOMINO_MODEL` names, or else the default model.
pub(crate) fn locate(name: Option<&Path>) -> Result<PathBuf, BadInput> {
    match (name, of_variable()) {
        (Some(name), _) => locate_named(name),
        (None, Some(name)) => locate_named(&name).map_err(|error| error.about(VARIABLE)),
        (None, None) => default_model(),
    }
}

/// The model that the variable `DOMINO_MODEL` names. As all variables, one that is set to nothing is not set.
pub(crate) fn of_variable() -> Option<PathBuf> {
    std::env::var_os(VARIABLE).filter(|name| !name.is_empty()).map(PathBuf::from)
}

/// Finds the files of the model `path`.
fn locate_named(path: &Path) -> Result<PathBuf, BadInput> {
    let is_gguf = is_gguf(path);
    if path.is_dir() {
        return Ok(only_gguf(path).unwrap_or_else(|| path.to_owned()));
    }
    if path.exists() && is_gguf {
        return Ok(path.to_owned());
    }
    if path.exists() {
        return Err(BadInput::new(format!("{} is neither a folder nor a GGUF file", path.display()))
            .hint("--model takes a model's folder or a GGUF file (*.gguf)"));
    }
    let hub = path.to_str().and_then(|name| name.parse::<HubModel>().ok());
    match hub {
        Some(model) => fetch(&model),
        None => Err(BadInput::new(format!("there is no {}", path.display())).hint(
            "--model takes a model's folder, a GGUF file, or OWNER/NAME for a model on the Hugging Face hub",
        )),
    }
}

fn is_gguf(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gguf"))
}

/// The only GGUF file of a folder that is no checkpoint itself.
fn only_gguf(folder: &Path) -> Option<PathBuf> {
    if folder.join("config.json").exists() {
        return None;
    }
    let paths = std::fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let mut files = paths.filter(|path| is_gguf(path));
    files.next().filter(|_| files.next().is_none())
}

/// Finds the model in the hub's cache, and downloads it if it is not there.
fn fetch(model: &HubModel) -> Result<PathBuf, BadInput> {
    let mut bar: Option<(String, ProgressBar)> = None;
    let people = progress::wanted();
    let mut show = |progress: &HubProgress| {
        if !people {
            return;
        }
        let fresh = bar.as_ref().is_none_or(|(file, _)| *file != progress.file);
        if fresh {
            let new = ProgressBar::with_draw_target(Some(progress.total), ProgressDrawTarget::stderr());
            let style = "{msg} [{wide_bar}] {bytes}/{total_bytes} {bytes_per_sec} ({eta})";
            if let Ok(style) = ProgressStyle::with_template(style) {
                new.set_style(style);
            }
            bar = Some((progress.file.clone(), new.with_message(progress.file.clone())));
        }
        if let Some((_, bar)) = &bar {
            bar.set_position(progress.done);
        }
    };
    model.fetch(&HubOptions::from_env(), &mut show).map_err(|error| {
        let bad = BadInput::new(error.to_string());
        match error.hint() {
            Some(hint) => bad.hint(hint),
            None => bad,
        }
    })
}

/// Finds the first folder `models/domino-small`: in the current folder, beside the program or up to three
/// folders above it, or in the package when run by cargo.
pub(crate) fn default_model() -> Result<PathBuf, BadInput> {
    let program = std::env::current_exe().ok();
    let above = program.iter().flat_map(|program| program.ancestors().skip(1).take(4)).map(Path::to_path_buf);
    // The package of a program is in the repository, three folders down.
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let package = package.iter().flat_map(|folder| folder.ancestors().take(4)).map(Path::to_path_buf);
    let mut places = std::iter::once(PathBuf::new()).chain(above).chain(package);
    places
        .find_map(|place| {
            Some(place.join(DEFAULT_MODEL)).filter(|folder| folder.join("config.json").is_file())
        })
        .ok_or_else(|| {
            BadInput::new(format!("no model given, and no folder {DEFAULT_MODEL} here or beside the program"))
                .hint(format!(
                    "name one with --model or DOMINO_MODEL: a folder, a GGUF file, or OWNER/NAME on the \
                     Hugging Face hub, such as Qwen/Qwen2.5-0.5B-Instruct; or get the folder \
                     {DEFAULT_MODEL} from domino's repository: it is not in the package"
                ))
        })
}

/// A tokenizer or a model whose tokens are meant.
#[derive(Debug)]
pub(crate) enum TokensOf {
    /// The path of a tokenizer's files.
    Tokenizer(PathBuf),
    /// A model; `None` for the default model.
    Model(Option<PathBuf>),
}

impl TokensOf {
    /// Finds the files. Those of a model on the hub are downloaded if they are not there.
    pub(crate) fn locate(&self) -> Result<PathBuf, BadInput> {
        match self {
            Self::Tokenizer(path) => Ok(path.clone()),
            Self::Model(name) => locate(name.as_deref()),
        }
    }

    /// Reads the vocabulary.
    pub(crate) fn vocabulary(&self, cache: &CacheFolder) -> Result<Vocabulary, BadInput> {
        vocabulary(&self.locate()?, cache)
    }
}

/// Reads the vocabulary of a `tokenizer.json` or of a folder with one.
pub(crate) fn vocabulary(path: &Path, cache: &CacheFolder) -> Result<Vocabulary, BadInput> {
    progress::during(format!("reading {}", path.display()), || {
        Vocabulary::from_tokenizer_file_cached(path, cache)
    })
    .map_err(|error| BadInput::new(error.to_string()))
}

/// The ways to run a model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum RunBy {
    /// Our own products on the CPU, with weights as they are stored.
    Stored,
    /// Tensors, on this device and in this precision.
    Tensors(Placement),
    /// The other engine of the program, with this number of threads on the CPU.
    Other { threads: Option<NonZeroUsize> },
}

impl RunBy {
    /// The device of a model that runs as tensors.
    pub(crate) fn tensors(self) -> Option<Placement> {
        match self {
            Self::Tensors(place) => Some(place),
            Self::Stored | Self::Other { .. } => None,
        }
    }
}

/// Warns where `--quantize` has changed nothing: matrices that are quantised already, as those of most GGUF
/// files are, stay as they are. Reads the heads of the weights once more.
pub(crate) fn tell_idle_quantising(path: &Path, options: &LoadOptions) {
    let Some(format) = options.quantize else { return };
    let mut plain = options.clone();
    plain.quantize = None;
    let sizes = [options, &plain].map(|options| CandleModel::estimate(path, options));
    // The same number of bytes means the same formats, since blocks of any format are smaller than floats.
    if let [Ok(quantised), Ok(stored)] = sizes
        && quantised.weights == stored.weights
    {
        let why = format!("the matrices of {} are quantised already", path.display());
        remark!("warning:", "--quantize {format} changes nothing: {why}");
        remark!("hint:", "leave it out, or name a model in floats");
    }
}

/// Says that a text may have fewer tokens than the model was made for, where nobody has asked for that.
pub(crate) fn tell_context(context: usize, made_for: usize, options: &LoadOptions) {
    if options.context.is_none() && context < made_for {
        let more = "--context asks for more";
        remark!("note:", "room for {context} tokens, the model was made for {made_for}; {more}");
    }
}

/// A loaded model.
pub(crate) type Runner = OtherModel;

/// A loaded model for several texts at once, and what runs its passes.
pub(crate) type BatchRunner = OtherBatch;
pub(crate) type AnyBatch = Box<dyn BatchModel<Error = ModelError>>;

/// Takes a model of our own, with which drafts may be made.
fn own<M: Model<Error = ModelError> + 'static>(model: M, made_for: impl Fn(&M) -> usize) -> Runner {
    let traits = ModelTraits { made_for: made_for(&model), no_drafts: None };
    Runner { model: Box::new(model), traits }
}

/// Asks the other engine for a model. There is one where flags have led here.
fn of_other<T>(
    options: &LoadOptions,
    threads: Option<NonZeroUsize>,
    load: impl FnOnce(&dyn OtherEngine, &WantedModel) -> Result<T, BadInput>,
) -> Result<T, BadInput> {
    let engine = engine::other().ok_or_else(|| BadInput::new("this program has no other engine"))?;
    load(engine, &WantedModel { context: options.context, threads })
}

impl Runner {
    pub(crate) fn load(path: &Path, options: &LoadOptions, by: RunBy) -> Result<Self, BadInput> {
        let loaded = match by {
            RunBy::Stored => CandleModel::load(path, options).map(|model| own(model, CandleModel::made_for)),
            RunBy::Tensors(place) => {
                TensorModel::load(path, options, place).map(|model| own(model, TensorModel::made_for))
            }
            RunBy::Other { threads } => {
                return of_other(options, threads, |engine, wanted| engine.load(path, wanted));
            }
        };
        loaded.map_err(|error| bad_model(&error))
    }

    #[cfg_attr(not(feature = "experiments"), expect(dead_code, reason = "for commands that measure"))]
    pub(crate) fn random(
        model: &RandomModel,
        options: &LoadOptions,
        tensors: Option<Placement>,
    ) -> Result<Self, ModelError> {
        match tensors {
            None => CandleModel::random(model, options).map(|model| own(model, CandleModel::made_for)),
            Some(place) => {
                TensorModel::random(model, options, place).map(|model| own(model, TensorModel::made_for))
            }
        }
    }
}

impl Model for Runner {
    type Error = ModelError;

    fn position(&self) -> usize {
        self.model.position()
    }

    fn context(&self) -> usize {
        self.model.context()
    }

    fn vocabulary_size(&self) -> usize {
        self.model.vocabulary_size()
    }

    fn tokens_at_once(&self) -> NonZeroUsize {
        self.model.tokens_at_once()
    }

    fn forward(&mut self, tokens: &[TokenId], rows: Rows) -> Result<Logits, ModelError> {
        self.model.forward(tokens, rows)
    }

    fn begin(&mut self, tokens: &[TokenId], rows: Rows<'_>) -> Result<Option<Kept<ModelError>>, ModelError> {
        self.model.begin(tokens, rows)
    }

    fn graphs(&self) -> Option<GraphCounts> {
        self.model.graphs()
    }

    fn truncate(&mut self, position: usize) -> Result<(), ModelError> {
        self.model.truncate(position)
    }
}

impl BatchRunner {
    /// Loads the model of a folder or a file for this many texts at once.
    pub(crate) fn load(
        path: &Path,
        texts: NonZeroUsize,
        options: &LoadOptions,
        by: RunBy,
    ) -> Result<Self, BadInput> {
        if let RunBy::Other { threads } = by {
            return of_other(options, threads, |engine, wanted| engine.load_batch(path, texts, wanted));
        }
        if let Some(place) = by.tensors() {
            let model = TensorModel::load_batch(path, texts, options, place);
            let model = model.map_err(|error| bad_model(&error))?;
            let traits = ModelTraits { made_for: model.made_for(), no_drafts: None };
            return Ok(Self { model: Box::new(model), traits });
        }
        let model = CandleBatch::load(path, texts, options).map_err(|error| bad_model(&error))?;
        tell_idle_quantising(path, options);
        let traits = ModelTraits { made_for: model.made_for(), no_drafts: None };
        Ok(Self { model: Box::new(model), traits })
    }
}

impl<M: ?Sized> EngineModel<M> {
    /// The reason why nothing may be drafted with this model; `None`: drafts may be made.
    pub(crate) fn no_drafts(&self) -> Option<&str> {
        self.traits.no_drafts.as_deref()
    }
}

/// May drafts be made, if this is the reason against them? Says so where drafts were asked for.
pub(crate) fn may_draft(no_drafts: Option<&str>, asked: bool) -> bool {
    if let Some(why) = no_drafts.filter(|_| asked) {
        remark!("note:", "nothing is drafted: {why}");
    }
    no_drafts.is_none()
}

/// The value of `finish` in JSON.
pub(crate) fn finish_name(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "stop",
        Finish::OnlySpace => "only_space",
        Finish::StopString => "stop_string",
        Finish::Thought => "thought",
        _ => "length",
    }
}

/// Makes the error of a prompt that is too long bad input of the user's.
pub(crate) fn step_error(error: DecodeError) -> anyhow::Error {
    match error.kind() {
        DecodeErrorKind::PromptTooLong { .. } => BadInput::new(error.to_string())
            .hint("--context asks for more room, up to what the model was made for (`domino model`)")
            .into(),
        _ => error.into(),
    }
}

/// Loads the model of a folder or a file.
pub(crate) fn load(folder: &Path, options: &LoadOptions, by: RunBy) -> Result<Runner, BadInput> {
    let runner =
        progress::during(format!("loading {}", folder.display()), || Runner::load(folder, options, by))?;
    tell_idle_quantising(folder, options);
    tell_context(runner.context(), runner.traits.made_for, options);
    Ok(runner)
}

/// Makes the error of a model that cannot be used bad input.
pub(crate) fn bad_model(error: &(dyn std::error::Error + 'static)) -> BadInput {
    let bad = BadInput::new(error.to_string());
    match error.downcast_ref::<ModelError>().is_some_and(ModelError::is_of_other_kind) {
        true => bad.hint(ELSEWHERE),
        false => bad,
    }
}

/// The hint for a model that our own runner does not read.
const ELSEWHERE: &str = "llama.cpp reads more kinds of GGUF files: the program domino-llama-cpp has the same \
                         commands (docs/llama-cpp.md)";

/// Reads the tokenizer of a model, and shows that it takes time.
pub(crate) fn read_tokenizer(folder: &Path) -> Result<Tokenizer, BadInput> {
    progress::during("reading the tokenizer", || Tokenizer::from_tokenizer_file(folder))
        .map_err(|error| bad_model(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_one_gguf_file_is_that_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let located = || locate(Some(path)).unwrap();
        assert_eq!(located(), path);
        let file = path.join("some.gguf");
        std::fs::write(&file, "").unwrap();
        std::fs::write(path.join("README.md"), "").unwrap();
        assert_eq!(located(), file);
        std::fs::write(path.join("config.json"), "{}").unwrap();
        assert_eq!(located(), path);
        std::fs::remove_file(path.join("config.json")).unwrap();
        std::fs::write(path.join("other.GGUF"), "").unwrap();
        assert_eq!(located(), path);
    }
}

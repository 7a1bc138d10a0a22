//! `--model`: finds the files of a model, given a folder, a GGUF file or the name of a model on the hub.
//! Vocabularies are read from there, from a tokenizer's files, or from the cache.

use std::path::{Path, PathBuf};

use domino::model::hub::{HubModel, HubOptions, HubProgress};
use domino::{Vocabulary, store::CacheFolder};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::{terminal::failure::BadInput, terminal::progress};

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
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
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

//! `domino model`: describes a model without loading it.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use domino::model::candle::{FormatShare, KvFormat, ModelDescription, available_memory};
use domino::{Vocabulary, chat::ChatTemplate, grammar::tools::Spelling, store::CacheFolder};
use indicatif::{BinaryBytes, HumanCount};
use serde_json::{Value, json};

use crate::terminal::failure::{BadInput, Exit};
use crate::{session::model, terminal};

/// Limit on the special tokens that people are shown.
const SHOWN: usize = 8;
/// Number of tokens for which the size of the key-value cache is printed.
const TOKENS: usize = 1_000;
/// The formats of the key-value cache whose sizes are printed.
const CACHES: [KvFormat; 3] = [KvFormat::F32, KvFormat::F16, KvFormat::Q8_0];

/// Show what a model is: its shape, formats, vocabulary, chat template, context and memory.
///
/// Nothing but the heads of its files is read. Shares of formats are of the parameters. The memory of a run
/// is that of the weights and of the cache, and some more for the passes.
///
/// With --json one object is printed: model, engines (that read it: domino, llama.cpp), architecture, name,
/// parameters, layers, hidden, intermediate, heads, kv_heads, head_dim, context, window (null: layers see
/// all), tied_embeddings, formats (a list of format, parameters, share and bytes), vocabulary (size, rows of
/// the output product, special: a list of id and name, end_of_text: ids, bos: a name or null), chat_template
/// (null, or family, tools, tool_spelling and bytes, or error), and memory (weights, cache: by --kv for 1,000
/// tokens, available; all in bytes). Of a GGUF file that domino's own runner does not read there are model,
/// engines, unread (why not), vocabulary and chat_template.
#[derive(Debug, Args)]
pub(crate) struct LowModel {
    /// The model, as for `domino generate`: a folder, a GGUF file, or OWNER/NAME on the Hugging Face hub.
    #[arg(value_name = "DIR|FILE|ID", conflicts_with = "model")]
    place: Option<PathBuf>,
    /// The model, by a flag as other commands take it.
    #[arg(long, short = 'm', value_name = "DIR|FILE|ID")]
    model: Option<PathBuf>,
}

/// The printed facts of a model.
struct ModelTold {
    name: String,
    /// The shape by the files, or the reason why our own runner cannot read them.
    description: Result<ModelDescription, String>,
    is_gguf: bool,
    vocabulary: Vocabulary,
    template: Result<Option<ChatTemplate>, String>,
}

/// Prints the description.
pub(crate) fn run(command: &LowModel, json: bool, cache: &CacheFolder) -> anyhow::Result<Exit> {
    let name = command.place.as_deref().or(command.model.as_deref());
    let folder = model::locate(name)?;
    let told = ModelTold {
        name: name.unwrap_or_else(|| short(&folder)).display().to_string(),
        description: description(&folder)?,
        is_gguf: folder.is_file(),
        vocabulary: model::vocabulary(&folder, cache)?,
        template: ChatTemplate::of_model(&folder, false).map_err(|error| error.to_string()),
    };
    let mut out = terminal::stdout();
    if json {
        writeln!(out, "{}", told.object())?;
    } else {
        writeln!(out, "{}", told.name)?;
        for (what, text) in told.lines() {
            writeln!(out, "  {what:<14} {text}")?;
        }
    }
    Ok(Exit::Success)
}

/// Reads the description. If our own runner does not read this kind of GGUF file, the error takes its place:
/// the file says more than that.
fn description(folder: &Path) -> Result<Result<ModelDescription, String>, BadInput> {
    match ModelDescription::of_model(folder) {
        Ok(description) => Ok(Ok(description)),
        Err(error) if folder.is_file() && error.is_of_other_kind() => Ok(Err(error.to_string())),
        Err(error) => Err(model::bad_model(&error)),
    }
}

/// The last part of a path: output does not reveal the folders of the default model.
fn short(folder: &Path) -> &Path {
    folder.file_name().map_or(folder, Path::new)
}

impl ModelTold {
    fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = match &self.description {
            Ok(description) => shape(description),
            Err(unread) => vec![("domino", unread.clone())],
        };
        lines.push(("engines", self.engines().join(", ")));
        lines.push(("vocabulary", self.tokens()));
        lines.push(("chat template", self.template()));
        if let Ok(description) = &self.description {
            let caches = CACHES.map(|kv| match description.cache(kv, TOKENS) {
                Some(bytes) => format!("{} ({kv})", BinaryBytes(bytes)),
                None => format!("too much ({kv})"),
            });
            let weights = BinaryBytes(description.memory);
            lines.push(("memory", format!("weights {weights}, and for 1,000 tokens {}", caches.join(", "))));
        }
        lines
    }

    /// Names the engines that read the model. Whether llama.cpp does is known when it loads it.
    fn engines(&self) -> Vec<&'static str> {
        let own = self.description.is_ok().then_some("domino");
        own.into_iter().chain(self.is_gguf.then_some("llama.cpp")).collect()
    }

    fn tokens(&self) -> String {
        let special: Vec<&str> = self.vocabulary.special_tokens().map(|(_, name)| name).collect();
        let shown = special.iter().take(SHOWN).copied().collect::<Vec<_>>().join(" ");
        let more = match special.len().saturating_sub(SHOWN) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let ends: Vec<&str> = self.ends().collect();
        let size = HumanCount(self.vocabulary.size() as u64);
        format!(
            "{size} tokens, {} special: {shown}{more}; a text ends with {}",
            special.len(),
            ends.join(" or ")
        )
    }

    /// Names the tokens that end a text.
    fn ends(&self) -> impl Iterator<Item = &str> {
        let ends = self.vocabulary.end_of_text();
        self.vocabulary.special_tokens().filter(|(id, _)| ends.contains(id)).map(|(_, name)| name)
    }

    fn template(&self) -> String {
        match &self.template {
            Err(error) => format!("cannot be used: {error}"),
            Ok(None) => "none".to_owned(),
            Ok(Some(template)) => {
                let family = template.family().unwrap_or("yes, of no known family");
                let calls = match Spelling::of_chat_template(template.source()) {
                    Some(spelling) => format!("; calls are spelled as {spelling}"),
                    None => String::new(),
                };
                let tools = if template.shows_tools() { "; shows tools" } else { "" };
                format!("{family}{tools}{calls}")
            }
        }
    }

    fn object(&self) -> Value {
        let mut object = json!({ "model": self.name, "engines": self.engines() });
        match &self.description {
            Ok(description) => terminal::extend(&mut object, described(description)),
            Err(unread) => object["unread"] = unread.as_str().into(),
        }
        let special: Vec<Value> = self
            .vocabulary
            .special_tokens()
            .map(|(id, name)| json!({ "id": id.raw(), "name": name }))
            .collect();
        let ends: Vec<u32> = self.vocabulary.end_of_text().iter().map(|id| id.raw()).collect();
        let (template, bos) = match &self.template {
            Err(error) => (json!({ "error": error }), None),
            Ok(None) => (Value::Null, None),
            Ok(Some(template)) => {
                let spelling = Spelling::of_chat_template(template.source()).map(|own| own.to_string());
                let value = json!({
                    "family": template.family(), "tools": template.shows_tools(), "tool_spelling": spelling,
                    "bytes": template.source().len(),
                });
                (value, template.token("bos_token"))
            }
        };
        let rows = self.description.as_ref().ok().map(|description| description.vocabulary);
        object["vocabulary"] = json!({
            "size": self.vocabulary.size(), "rows": rows, "special": special, "end_of_text": ends, "bos": bos,
        });
        object["chat_template"] = template;
        if let Ok(description) = &self.description {
            object["memory"] = memory(description);
        }
        object
    }
}

/// Lines about a shape for people, with names.
fn shape(description: &ModelDescription) -> Vec<(&'static str, String)> {
    let ModelDescription { layers, hidden, intermediate, heads, kv_heads, head_dim, .. } = description;
    let tied = if description.tied { ", embeddings tied" } else { "" };
    let architecture = description.architecture.as_deref().unwrap_or("unknown");
    let named = description.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
    vec![
        ("architecture", format!("{architecture}{named}")),
        ("parameters", HumanCount(description.parameters()).to_string()),
        (
            "shape",
            format!(
                "{layers} layers, hidden {hidden}, intermediate {intermediate}, {heads} heads of {head_dim} \
                 ({kv_heads} of keys and values){tied}"
            ),
        ),
        ("formats", formats(description)),
        ("context", context(description)),
    ]
}

fn formats(description: &ModelDescription) -> String {
    let all = description.parameters().max(1);
    let share = |part: u64| {
        let thousandths = part.saturating_mul(1_000) / all;
        format!("{}.{}%", thousandths / 10, thousandths % 10)
    };
    let formats = description.formats.iter();
    formats.map(|one| format!("{} {}", one.format, share(one.parameters))).collect::<Vec<_>>().join(", ")
}

fn context(description: &ModelDescription) -> String {
    let context = format!("{} tokens", HumanCount(description.context as u64));
    match description.window {
        Some(window) => format!("{context}, of which some layers see {}", HumanCount(window as u64)),
        None => context,
    }
}

/// The fields of an object about the shape of a model.
fn described(description: &ModelDescription) -> Value {
    let all = description.parameters().max(1);
    #[expect(clippy::cast_precision_loss, reason = "a share of parameters")]
    let format = |one: &FormatShare| {
        json!({
            "format": one.format.to_string(), "parameters": one.parameters,
            "share": one.parameters as f64 / all as f64, "bytes": one.bytes,
        })
    };
    let formats: Vec<Value> = description.formats.iter().map(format).collect();
    let ModelDescription { layers, hidden, intermediate, heads, kv_heads, .. } = description;
    json!({
        "architecture": description.architecture, "name": description.name,
        "parameters": description.parameters(), "layers": layers, "hidden": hidden,
        "intermediate": intermediate, "heads": heads, "kv_heads": kv_heads,
        "head_dim": description.head_dim, "context": description.context, "window": description.window,
        "tied_embeddings": description.tied, "formats": formats,
    })
}

/// The memory of a run, in bytes.
fn memory(description: &ModelDescription) -> Value {
    let caches: serde_json::Map<String, Value> =
        CACHES.iter().map(|kv| (kv.to_string(), description.cache(*kv, TOKENS).into())).collect();
    json!({ "weights": description.memory, "cache": caches, "available": available_memory() })
}

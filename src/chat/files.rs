//! The places where models keep chat templates: a GGUF file, or files beside `tokenizer.json`.

use std::path::Path;

use serde_json::Value as Json;

use super::{error::ChatError, error::ChatErrorKind, template::ChatTemplate};
use domino_engine::gguf::{Gguf, GgufErrorKind, is_gguf};

/// The name of the template for general conversations, and of the one for conversations with tools.
const DEFAULT: &str = "default";
const TOOLS: &str = "tool_use";

/// The templates of a model, by name, and its special tokens.
#[derive(Debug, Default)]
struct TemplatesFound {
    templates: Vec<(String, String)>,
    tokens: Vec<(String, String)>,
    place: String,
}

impl TemplatesFound {
    /// Picks a template: with tools the one for tools, if there is one; else the default, else the first.
    fn template(self, with_tools: bool) -> Result<Option<ChatTemplate>, ChatError> {
        let named = |wanted: &str| self.templates.iter().find(|(name, _)| name == wanted);
        let tools = with_tools.then(|| named(TOOLS)).flatten();
        let Some((_, source)) = tools.or_else(|| named(DEFAULT)).or(self.templates.first()) else {
            return Ok(None);
        };
        let template = ChatTemplate::parse(source.as_str()).map_err(|error| error.at(&self.place))?;
        let template = template.at_place(self.place.clone());
        Ok(Some(
            self.tokens
                .into_iter()
                .fold(template, |template, (name, token)| template.with_token(name, token)),
        ))
    }

    /// Adds the value of a `chat_template` in JSON: a text, or several by name.
    fn add(&mut self, value: &Json) {
        match value {
            Json::String(text) => self.templates.push((DEFAULT.to_owned(), text.clone())),
            Json::Array(several) => self.templates.extend(several.iter().filter_map(|one| {
                Some((one.get("name")?.as_str()?.to_owned(), one.get("template")?.as_str()?.to_owned()))
            })),
            Json::Object(several) => self.templates.extend(
                several.iter().filter_map(|(name, text)| Some((name.clone(), text.as_str()?.to_owned()))),
            ),
            _ => {}
        }
    }
}

impl ChatTemplate {
    /// The chat template of a model: of a GGUF file (`tokenizer.chat_template`), or of a folder.
    ///
    /// In a folder `chat_template.jinja` takes precedence over `chat_template` in `tokenizer_config.json` and
    /// in `chat_template.json`; special tokens are those of `tokenizer_config.json` and
    /// `special_tokens_map.json`. Of several templates the one called `tool_use` is taken `with_tools`, else
    /// the one called `default`. `None` if the model has no template.
    ///
    /// # Errors
    /// If a file cannot be read or is damaged, or if the template cannot be used.
    pub fn of_model(path: impl AsRef<Path>, with_tools: bool) -> Result<Option<Self>, ChatError> {
        let path = path.as_ref();
        let found = if is_gguf(path) { of_gguf(path)? } else { of_folder(path)? };
        found.template(with_tools)
    }

    /// The chat template in a file: Jinja, or JSON with a member `chat_template` such as
    /// `tokenizer_config.json`, whose special tokens are taken too. Otherwise special tokens are those of
    /// `model`, if it is given.
    ///
    /// # Errors
    /// As [`of_model`](Self::of_model), and if JSON has no such member.
    pub fn of_file(
        path: impl AsRef<Path>,
        model: Option<&Path>,
        with_tools: bool,
    ) -> Result<Self, ChatError> {
        let path = path.as_ref();
        let mut found = match model {
            Some(model) if is_gguf(model) => of_gguf(model)?,
            Some(model) => of_folder(model)?,
            None => TemplatesFound::default(),
        };
        found.templates.clear();
        found.place = path.display().to_string();
        let text = read(path)?;
        match serde_json::from_str::<Json>(&text) {
            Ok(config) if config.is_object() => {
                found.add(&config["chat_template"]);
                add_tokens(&mut found, &config);
            }
            _ => found.templates.push((DEFAULT.to_owned(), text)),
        }
        let place = found.place.clone();
        found.template(with_tools)?.ok_or_else(|| {
            let message = "there is no `chat_template` in it";
            ChatError::new(ChatErrorKind::Malformed, message).at(&place)
        })
    }
}

fn read(path: &Path) -> Result<String, ChatError> {
    std::fs::read_to_string(path).map_err(|error| {
        ChatError::new(ChatErrorKind::Io, format!("cannot read it: {error}")).at(&path.display())
    })
}

fn of_gguf(path: &Path) -> Result<TemplatesFound, ChatError> {
    let gguf = Gguf::open(path).map_err(|error| {
        let kind = match error.kind {
            GgufErrorKind::Missing | GgufErrorKind::Unreadable => ChatErrorKind::Io,
            GgufErrorKind::Damaged => ChatErrorKind::Malformed,
        };
        ChatError::new(kind, error.to_string())
    })?;
    let mut found = TemplatesFound { place: path.display().to_string(), ..TemplatesFound::default() };
    let text = |key: &str| gguf.get(key).and_then(|value| value.as_str()).map(str::to_owned);
    for (name, key) in [(DEFAULT, ""), (TOOLS, ".tool_use")] {
        let own = text(&format!("tokenizer.chat_template{key}"));
        found.templates.extend(own.map(|template| (name.to_owned(), template)));
    }
    let names = gguf.get("tokenizer.ggml.tokens").and_then(|tokens| tokens.as_strings()).unwrap_or_default();
    for (name, key) in
        [("bos_token", "bos"), ("eos_token", "eos"), ("unk_token", "unknown"), ("pad_token", "padding")]
    {
        let id = gguf.get(&format!("tokenizer.ggml.{key}_token_id")).and_then(|id| id.as_u64());
        let token = id.and_then(|id| names.get(usize::try_from(id).ok()?));
        found.tokens.extend(token.map(|token| (name.to_owned(), token.clone())));
    }
    Ok(found)
}

fn of_folder(path: &Path) -> Result<TemplatesFound, ChatError> {
    let folder = if path.is_dir() { path } else { path.parent().unwrap_or(Path::new("")) };
    let mut found = TemplatesFound { place: folder.display().to_string(), ..TemplatesFound::default() };
    let jinja = folder.join("chat_template.jinja");
    if jinja.is_file() {
        found.templates.push((DEFAULT.to_owned(), read(&jinja)?));
        found.place = jinja.display().to_string();
    }
    let tools = folder.join("additional_chat_templates").join("tool_use.jinja");
    if tools.is_file() {
        found.templates.push((TOOLS.to_owned(), read(&tools)?));
    }
    // Later files add only what earlier ones lack.
    for name in ["special_tokens_map.json", "tokenizer_config.json", "chat_template.json"] {
        let file = folder.join(name);
        if !file.is_file() {
            continue;
        }
        let config: Json = serde_json::from_str(&read(&file)?).map_err(|error| {
            ChatError::new(ChatErrorKind::Malformed, format!("not JSON: {error}")).at(&file.display())
        })?;
        if found.templates.is_empty() && name != "special_tokens_map.json" {
            found.add(&config["chat_template"]);
            found.place = file.display().to_string();
        }
        add_tokens(&mut found, &config);
    }
    Ok(found)
}

/// Adds the special tokens of a configuration: `bos_token` and the like, each a text or an object with one.
fn add_tokens(found: &mut TemplatesFound, config: &Json) {
    for (name, value) in config.as_object().into_iter().flatten().filter(|(name, _)| name.ends_with("_token"))
    {
        let token = value.as_str().or_else(|| value.get("content")?.as_str());
        if let Some(token) = token {
            found.tokens.push((name.clone(), token.to_owned()));
        }
    }
}

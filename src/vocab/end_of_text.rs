//! Which tokens end a text: what a model's folder says, or else well-known names.

use std::path::Path;

use serde_json::Value;

use super::{
    error::{VocabularyError, VocabularyErrorKind},
    tokenizer_json::{Tokens, read_file},
};
use crate::ids::TokenId;

/// Names under which models end a text or their turn.
const NAMES: [&str; 19] = [
    "</s>",
    "<eos>",
    "<EOS>",
    "[EOS]",
    "<|eos|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|eot|>",
    "<|end|>",
    "<|return|>",
    "<|endofturn|>",
    "<|end_of_turn|>",
    "<end_of_turn>",
    "<end_of_utterance>",
    "<|END_OF_TURN_TOKEN|>",
    "<｜end▁of▁sentence｜>",
];

/// The special tokens with a well-known name.
pub(super) fn by_well_known_names(specials: &[(TokenId, String)]) -> Vec<TokenId> {
    let known = specials.iter().filter(|(_, name)| NAMES.contains(&name.as_str()));
    known.map(|(id, _)| *id).collect()
}

/// What the configuration files of a model's folder say, in the order in which they count: the first
/// that says anything. Empty if none does.
pub(super) fn by_configuration(folder: &Path, tokens: &Tokens) -> Result<Vec<TokenId>, VocabularyError> {
    for (file, key) in [
        ("generation_config.json", "eos_token_id"),
        ("config.json", "eos_token_id"),
        ("tokenizer_config.json", "eos_token"),
    ] {
        let path = folder.join(file);
        if !path.is_file() {
            continue;
        }
        let config: Value = serde_json::from_str(&read_file(&path)?).map_err(|error| {
            let message = format!("{}: not JSON: {error}", path.display());
            VocabularyError::new(VocabularyErrorKind::NotJson, message)
        })?;
        let ids = ids(&config[key], tokens).ok_or_else(|| {
            let message = format!("{}: `{key}` is {}, which names no token", path.display(), config[key]);
            VocabularyError::new(VocabularyErrorKind::Malformed, message)
        })?;
        if !ids.is_empty() {
            return Ok(ids);
        }
    }
    Ok(Vec::new())
}

/// The ids meant by an id, a name, an object with a name as `content`, or a list of such; `None` if one
/// of them means no token.
fn ids(value: &Value, tokens: &Tokens) -> Option<Vec<TokenId>> {
    match value {
        Value::Null => Some(Vec::new()),
        Value::Number(number) => Some(vec![TokenId::new(u32::try_from(number.as_u64()?).ok()?)]),
        Value::String(name) => Some(vec![by_name(name, tokens)?]),
        Value::Object(object) => ids(object.get("content")?, tokens),
        Value::Array(items) => {
            let each: Option<Vec<_>> = items.iter().map(|item| ids(item, tokens)).collect();
            Some(each?.concat())
        }
        Value::Bool(_) => None,
    }
}

fn by_name(name: &str, tokens: &Tokens) -> Option<TokenId> {
    let special = tokens.specials.iter().find(|(_, special)| special == name).map(|(id, _)| *id);
    let text = || tokens.texts.iter().find(|(_, bytes)| bytes == name.as_bytes()).map(|(id, _)| *id);
    special.or_else(text)
}

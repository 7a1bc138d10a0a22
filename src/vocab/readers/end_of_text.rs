//! Finds the tokens that end a text, by the configuration of a model's folder, or else by well-known names.

use serde_json::Value;

use super::sources::FileContents;
use crate::{
    ids::TokenId,
    vocab::{
        builder::VocabularyBuilder,
        error::{VocabularyError, VocabularyErrorKind},
    },
};

/// Names of tokens that end a text or a turn.
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

/// Files of a model's folder that may name the tokens that end a text, and the key in each; the first that
/// names any wins.
pub(in crate::vocab) const CONFIGURATIONS: [(&str, &str); 3] = [
    ("generation_config.json", "eos_token_id"),
    ("config.json", "eos_token_id"),
    ("tokenizer_config.json", "eos_token"),
];

/// Returns the special tokens with a well-known name.
pub(in crate::vocab) fn by_well_known_names(specials: &[(TokenId, String)]) -> Vec<TokenId> {
    let known = specials.iter().filter(|(_, name)| NAMES.contains(&name.as_str()));
    known.map(|(id, _)| *id).collect()
}

/// Returns the tokens that a configuration file names under `key`; none if it has no such key.
pub(in crate::vocab) fn by_configuration(
    source: &FileContents,
    key: &str,
    tokens: &VocabularyBuilder,
) -> Result<Vec<TokenId>, VocabularyError> {
    let config: Value = serde_json::from_str(source.text()?).map_err(|error| {
        let message = format!("{}: not JSON: {error}", source.path().display());
        VocabularyError::new(VocabularyErrorKind::NotJson, message)
    })?;
    ids(&config[key], tokens).ok_or_else(|| {
        let message =
            format!("{}: `{key}` is {}, which names no token", source.path().display(), config[key]);
        VocabularyError::new(VocabularyErrorKind::Malformed, message)
    })
}

/// Resolves an id, a name, an object with a name as `content`, or a list of such; `None` if one of them means
/// no token.
fn ids(value: &Value, tokens: &VocabularyBuilder) -> Option<Vec<TokenId>> {
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

fn by_name(name: &str, tokens: &VocabularyBuilder) -> Option<TokenId> {
    let special = tokens.specials().iter().find(|(_, special)| special == name).map(|(id, _)| *id);
    let text = || tokens.tokens().find(|(_, bytes)| *bytes == name.as_bytes()).map(|(id, _)| id);
    special.or_else(text)
}

//! Reads tokens and their bytes from a Hugging Face `tokenizer.json`.
//!
//! Only the parts that spell tokens are read: the model's vocabulary, the added tokens, the decoder.

use std::{borrow::Cow, collections::HashMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};

use super::{
    end_of_text,
    spelling::{NameSpelling, unsupported},
};
use crate::{
    ids::{TokenId, as_u64},
    vocab::{
        builder::{VocabularyBuilder, id_too_large},
        error::{VocabularyError, VocabularyErrorKind},
        vocabulary::Vocabulary,
    },
};

impl Vocabulary {
    /// Reads a Hugging Face `tokenizer.json`: byte-level BPE or SentencePiece with byte fallback.
    ///
    /// The tokens that end a text are the special tokens of well-known names (`</s>`, `<|endoftext|>`,
    /// `<|im_end|>`, `<|eot_id|>`, `<eos>` and the like); [`with_end_of_text`](Self::with_end_of_text)
    /// names others. Added tokens that are not special are ordinary text. Costs about 0.1 s for 150,000
    /// tokens.
    ///
    /// # Errors
    /// If the text is not JSON, not a `tokenizer.json`, of an unsupported kind, gives one id to two
    /// tokens, has an id of 2^24 or more, no token of any bytes, or no end-of-text token.
    pub fn from_tokenizer_json(json: &str) -> Result<Self, VocabularyError> {
        build(read(json)?, Vec::new())
    }

    /// Reads it with at least one known id that ends a text.
    #[cfg(feature = "mistralrs")]
    pub(crate) fn from_tokenizer_json_with_ends(
        json: &str,
        ends: Vec<TokenId>,
    ) -> Result<Self, VocabularyError> {
        build(read(json)?, ends)
    }
}

/// Builds the vocabulary of these tokens. The tokens `ends` end a text, or if there are none, well-known
/// names do.
pub(in crate::vocab) fn build(
    tokens: VocabularyBuilder,
    ends: Vec<TokenId>,
) -> Result<Vocabulary, VocabularyError> {
    let ends = if ends.is_empty() { end_of_text::by_well_known_names(tokens.specials()) } else { ends };
    ends.into_iter().fold(tokens, VocabularyBuilder::end_of_text).build()
}

#[derive(Deserialize)]
struct File<'a> {
    #[serde(borrow)]
    model: TokenizerModel<'a>,
    added_tokens: Option<Vec<AddedToken>>,
    #[serde(default)]
    decoder: serde_json::Value,
}

/// The part of a file that prompts need besides the `tokenizers` crate.
#[cfg(feature = "tokenizers")]
#[derive(Deserialize)]
struct AddedOnly {
    added_tokens: Option<Vec<AddedToken>>,
}

#[derive(Deserialize)]
struct TokenizerModel<'a> {
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(borrow)]
    vocab: Entries<'a>,
    continuing_subword_prefix: Option<String>,
    end_of_word_suffix: Option<String>,
}

#[derive(Deserialize)]
struct AddedToken {
    id: u64,
    content: String,
    #[serde(default)]
    special: bool,
}

/// A name, in place if it is spelt without escapes.
#[derive(Deserialize)]
struct TokenName<'a>(#[serde(borrow)] Cow<'a, str>);

/// Names and ids, from `{name: id}` or `[[name, score]]`, in the order of the file. A map type would hide
/// duplicate names.
struct Entries<'a>(Vec<(Cow<'a, str>, u64)>);

impl<'de: 'a, 'a> Deserialize<'de> for Entries<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EntriesVisitor;

        impl<'de> Visitor<'de> for EntriesVisitor {
            type Value = Entries<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map from tokens to ids or a list of tokens with scores")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries<'de>, A::Error> {
                let mut entries = Vec::new();
                while let Some((TokenName(name), id)) = map.next_entry()? {
                    entries.push((name, id));
                }
                Ok(Entries(entries))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Entries<'de>, A::Error> {
                let mut entries = Vec::new();
                while let Some((TokenName(name), IgnoredAny)) =
                    list.next_element::<(TokenName<'de>, IgnoredAny)>()?
                {
                    let id = as_u64(entries.len());
                    entries.push((name, id));
                }
                Ok(Entries(entries))
            }
        }

        deserializer.deserialize_any(EntriesVisitor)
    }
}

/// Reads the tokens of a `tokenizer.json`; their ids are not yet checked against each other.
pub(in crate::vocab) fn read(json: &str) -> Result<VocabularyBuilder, VocabularyError> {
    let file: File = serde_json::from_str(json).map_err(|error| json_error(&error))?;
    check_supported(&file.model)?;
    let mut entries = file.model.vocab.0;
    let spelling = NameSpelling::new(&file.decoder)?;
    let mut tokens = Vocabulary::builder();
    let mut added: HashMap<u64, &str> = HashMap::new();
    let mut bytes = Vec::new();
    for token in file.added_tokens.iter().flatten() {
        let id = token_id(token.id)?;
        // The builder finds ids given to different tokens; the same token twice is no harm.
        if added.insert(token.id, &token.content).is_some_and(|before| before == token.content) {
            continue;
        }
        if token.special {
            tokens = tokens.special(id, &*token.content);
        } else {
            spelling.added(&token.content, &mut bytes);
            tokens.add(id, &bytes);
        }
    }
    // Most files have them in this order.
    entries.sort_by_key(|(_, id)| *id);
    entries.dedup();
    for (name, id) in &entries {
        if added.get(id).is_none_or(|added| added != name) {
            spelling.of(name, &mut bytes);
            tokens.add(token_id(*id)?, &bytes);
        }
    }
    Ok(tokens)
}

/// Returns the ids and contents of the added tokens, in the order of the file.
#[cfg(feature = "tokenizers")]
pub(in crate::vocab) fn read_added(json: &str) -> Result<Vec<(TokenId, String)>, VocabularyError> {
    let file: AddedOnly = serde_json::from_str(json).map_err(|error| json_error(&error))?;
    let added = file.added_tokens.into_iter().flatten();
    added.map(|token| Ok((token_id(token.id)?, token.content))).collect()
}

/// Converts a JSON error: broken JSON, or JSON that says something else.
fn json_error(error: &serde_json::Error) -> VocabularyError {
    match error.classify() {
        serde_json::error::Category::Data => {
            VocabularyError::new(VocabularyErrorKind::Malformed, format!("not a tokenizer.json: {error}"))
        }
        _ => VocabularyError::new(VocabularyErrorKind::NotJson, format!("not JSON: {error}")),
    }
}

fn token_id(id: u64) -> Result<TokenId, VocabularyError> {
    u32::try_from(id).map(TokenId::new).map_err(|_| id_too_large(id))
}

/// Checks that tokens are byte strings, which stand for themselves.
fn check_supported(model: &TokenizerModel) -> Result<(), VocabularyError> {
    if let Some(kind) = model.kind.as_deref()
        && !matches!(kind, "BPE" | "Unigram" | "WordLevel")
    {
        return Err(unsupported(format!(
            "tokenizers of type {kind:?} are not supported: their tokens are not byte strings"
        )));
    }
    let parts = [&model.continuing_subword_prefix, &model.end_of_word_suffix];
    if let Some(part) = parts.into_iter().flatten().find(|part| !part.is_empty()) {
        return Err(unsupported(format!(
            "tokenizers that mark parts of words by {part:?} are not supported"
        )));
    }
    Ok(())
}

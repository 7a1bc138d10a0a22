//! Hugging Face `tokenizer.json` -> tokens and their bytes.
//!
//! Only the parts that spell tokens are read: the model's vocabulary, the added tokens, the decoder. How a
//! token's name is turned into bytes is `toktrie_hf_tokenizers`' business. It is handed the names under
//! ids without holes and without added tokens, since it takes the number of tokens for the highest id and
//! every added `<...>` for a special token; real files break both.

use std::{collections::HashMap, fmt, path::Path};

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use tokenizers::{DecoderWrapper, models::wordlevel::WordLevel};
use toktrie_hf_tokenizers::ByteTokenizer;

use super::{
    end_of_text,
    error::{VocabularyError, VocabularyErrorKind},
    vocabulary::{Vocabulary, VocabularyBuilder, id_too_large},
};
use crate::ids::TokenId;

impl Vocabulary {
    /// Reads a Hugging Face `tokenizer.json`: byte-level BPE or SentencePiece with byte fallback.
    ///
    /// The tokens that end a text are the special tokens of well-known names (`</s>`, `<|endoftext|>`,
    /// `<|im_end|>`, `<|eot_id|>`, `<eos>` and the like); [`with_end_of_text`](Self::with_end_of_text)
    /// names others. Added tokens that are not special are ordinary text. Costs about 0.3 s for 150,000
    /// tokens.
    ///
    /// # Errors
    /// If the text is not JSON, not a `tokenizer.json`, of an unsupported kind, gives one id to two
    /// tokens, has an id of 2^24 or more, no token of any bytes, or no end-of-text token.
    pub fn from_tokenizer_json(json: &str) -> Result<Self, VocabularyError> {
        let tokens = read(json)?;
        let ends = end_of_text::by_well_known_names(&tokens.specials);
        tokens.into_builder(&ends).build()
    }

    /// Reads a `tokenizer.json`, or the one in a model's folder.
    ///
    /// In a folder the tokens that end a text are those of `generation_config.json` (`eos_token_id`), or
    /// else of `config.json` (`eos_token_id`), or else of `tokenizer_config.json` (`eos_token`), or else
    /// found by name as by [`from_tokenizer_json`](Self::from_tokenizer_json), which is also how it is for
    /// a single file.
    ///
    /// # Errors
    /// Those of [`from_tokenizer_json`](Self::from_tokenizer_json), and if a file cannot be read or one of
    /// the configurations is not JSON.
    pub fn from_tokenizer_file(path: impl AsRef<Path>) -> Result<Self, VocabularyError> {
        let path = path.as_ref();
        let (folder, file) = if path.is_dir() {
            (Some(path), path.join("tokenizer.json"))
        } else {
            (None, path.to_path_buf())
        };
        let at_file = |error: VocabularyError| error.at(&file.display());
        let tokens = read(&read_file(&file)?).map_err(at_file)?;
        let configured = match folder {
            Some(folder) => end_of_text::by_configuration(folder, &tokens)?,
            None => Vec::new(),
        };
        let ends = if configured.is_empty() {
            end_of_text::by_well_known_names(&tokens.specials)
        } else {
            configured
        };
        tokens.into_builder(&ends).build().map_err(at_file)
    }
}

/// The text of a file.
pub(super) fn read_file(path: &Path) -> Result<String, VocabularyError> {
    std::fs::read_to_string(path).map_err(|error| {
        VocabularyError::new(VocabularyErrorKind::Io, format!("cannot read {}: {error}", path.display()))
    })
}

/// What a `tokenizer.json` says about tokens; ids are not yet checked against each other.
pub(super) struct Tokens {
    pub(super) texts: Vec<(TokenId, Vec<u8>)>,
    pub(super) specials: Vec<(TokenId, String)>,
}

impl Tokens {
    fn into_builder(self, end_of_text: &[TokenId]) -> VocabularyBuilder {
        let mut builder = Vocabulary::builder();
        for (id, bytes) in self.texts {
            builder = builder.token(id, bytes);
        }
        for (id, name) in self.specials {
            builder = builder.special(id, name);
        }
        end_of_text.iter().fold(builder, |builder, &id| builder.end_of_text(id))
    }
}

#[derive(Deserialize)]
struct File {
    model: Model,
    added_tokens: Option<Vec<AddedToken>>,
    #[serde(default)]
    decoder: serde_json::Value,
}

/// The part of a file that prompts need besides the `tokenizers` crate.
#[derive(Deserialize)]
struct AddedOnly {
    added_tokens: Option<Vec<AddedToken>>,
}

#[derive(Deserialize)]
struct Model {
    #[serde(rename = "type")]
    kind: Option<String>,
    vocab: Entries,
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

/// Names and ids, from `{name: id}` or `[[name, score]]`, in the order of the file. A map type would hide
/// names that are there twice.
struct Entries(Vec<(String, u64)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EntriesVisitor;

        impl<'de> Visitor<'de> for EntriesVisitor {
            type Value = Entries;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map from tokens to ids or a list of tokens with scores")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some((name, IgnoredAny)) = list.next_element::<(String, IgnoredAny)>()? {
                    let id = u64::try_from(entries.len()).unwrap_or(u64::MAX);
                    entries.push((name, id));
                }
                Ok(Entries(entries))
            }
        }

        deserializer.deserialize_any(EntriesVisitor)
    }
}

/// Reads the tokens of a `tokenizer.json`.
pub(super) fn read(json: &str) -> Result<Tokens, VocabularyError> {
    let file: File = serde_json::from_str(json).map_err(|error| json_error(&error))?;
    check_supported(&file.model)?;
    let spelling = Spelling::new(&file)?;
    let mut tokens = Tokens { texts: Vec::new(), specials: Vec::new() };
    let mut added: HashMap<u64, &str> = HashMap::new();
    for token in file.added_tokens.iter().flatten() {
        let id = token_id(token.id)?;
        // The builder finds ids given to different tokens; the same token twice is no harm.
        if added.insert(token.id, &token.content).is_some_and(|before| before == token.content) {
            continue;
        }
        if token.special {
            tokens.specials.push((id, token.content.clone()));
        } else {
            tokens.texts.push((id, spelling.added(&token.content)));
        }
    }
    let mut seen: HashMap<u64, &str> = HashMap::with_capacity(file.model.vocab.0.len());
    for (name, id) in &file.model.vocab.0 {
        let known = added.get(id).is_some_and(|added| added == name);
        if known || seen.insert(*id, name).is_some_and(|before| before == name) {
            continue;
        }
        tokens.texts.push((token_id(*id)?, spelling.of(name)));
    }
    Ok(tokens)
}

/// The ids and contents of the added tokens, in the order of the file.
pub(super) fn read_added(json: &str) -> Result<Vec<(TokenId, String)>, VocabularyError> {
    let file: AddedOnly = serde_json::from_str(json).map_err(|error| json_error(&error))?;
    let added = file.added_tokens.into_iter().flatten();
    added.map(|token| Ok((token_id(token.id)?, token.content))).collect()
}

/// How a JSON error is told: broken JSON, or JSON that says something else.
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

fn unsupported(message: impl Into<String>) -> VocabularyError {
    VocabularyError::new(VocabularyErrorKind::Unsupported, message)
}

fn check_supported(model: &Model) -> Result<(), VocabularyError> {
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

/// The bytes of every name in the file.
struct Spelling<'a> {
    places: HashMap<&'a str, usize>,
    bytes: Vec<Vec<u8>>,
}

/// Put before a name that `toktrie_hf_tokenizers` would trip over, and taken off its bytes again. Every
/// decoder leaves it as it is.
const GUARD: char = '!';

impl<'a> Spelling<'a> {
    fn new(file: &'a File) -> Result<Self, VocabularyError> {
        let mut places: HashMap<&str, usize> = HashMap::with_capacity(file.model.vocab.0.len());
        let added = file.added_tokens.iter().flatten().filter(|token| !token.special);
        let names = file.model.vocab.0.iter().map(|(name, _)| name).chain(added.map(|token| &token.content));
        for name in names {
            let place = places.len();
            places.entry(name).or_insert(place);
        }
        let bytes = if places.is_empty() { Vec::new() } else { bytes_of(&places, &file.decoder)? };
        Ok(Self { places, bytes })
    }

    /// The bytes of a token of the model. A name that cannot be decoded stands for itself, as it does for
    /// the `tokenizers` crate.
    fn of(&self, name: &str) -> Vec<u8> {
        match self.places.get(name).and_then(|&place| self.bytes.get(place)) {
            Some(bytes) if !bytes.is_empty() => match bytes.strip_prefix(&[GUARD as u8]) {
                Some(rest) if is_awkward(name) => rest.to_vec(),
                _ => bytes.clone(),
            },
            _ => name.as_bytes().to_vec(),
        }
    }

    /// The bytes of an added token. It is a piece of text, so where decoding leaves UTF-8 it stands for
    /// itself.
    fn added(&self, content: &str) -> Vec<u8> {
        let bytes = self.of(content);
        let is_text = is_byte_name(content) || std::str::from_utf8(&bytes).is_ok();
        if is_text { bytes } else { content.as_bytes().to_vec() }
    }
}

/// Is this `<0xHH>`, the name of a byte?
fn is_byte_name(name: &str) -> bool {
    let digits = name.strip_prefix("<0x").and_then(|rest| rest.strip_suffix('>'));
    digits.is_some_and(|digits| digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Does this name look like a byte without being one?
fn is_awkward(name: &str) -> bool {
    name.starts_with("<0x") && !is_byte_name(name)
}

/// The bytes of all names by the decoder's rules, by place.
fn bytes_of(
    places: &HashMap<&str, usize>,
    decoder: &serde_json::Value,
) -> Result<Vec<Vec<u8>>, VocabularyError> {
    if decoder.is_null() {
        return Err(unsupported("no decoder: how tokens spell bytes is not said"));
    }
    let decoder: DecoderWrapper = serde_json::from_value(decoder.clone())
        .map_err(|error| unsupported(format!("the decoder is not known: {error}")))?;
    let vocab = places.iter().filter_map(|(name, &place)| {
        let name = if is_awkward(name) { format!("{GUARD}{name}") } else { (*name).to_owned() };
        u32::try_from(place).ok().map(|place| (name, place))
    });
    let model = WordLevel::builder()
        .vocab(vocab.collect())
        .build()
        .map_err(|error| unsupported(format!("the vocabulary is not usable: {error}")))?;
    let mut tokenizer = tokenizers::Tokenizer::new(model);
    tokenizer.with_decoder(Some(decoder));
    let tokenizer = ByteTokenizer::from_tokenizer(tokenizer)
        .map_err(|error| unsupported(format!("tokens are not byte strings: {error}")))?;
    Ok(tokenizer.token_bytes())
}

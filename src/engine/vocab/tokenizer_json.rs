//! Reads tokens and their bytes from a Hugging Face `tokenizer.json`.
//!
//! Only the parts that spell tokens are read: the model's vocabulary, the added tokens, the decoder.

use std::{borrow::Cow, collections::HashMap, fmt};

use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::builder::{VocabularyBuilder, id_too_large};
use super::error::{VocabularyError, VocabularyErrorKind};
use super::{sources::ends_by_well_known_names, vocabulary::Vocabulary};
use crate::ids::{TokenId, as_u64};

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
    #[doc(hidden)]
    pub fn from_tokenizer_json_with_ends(json: &str, ends: Vec<TokenId>) -> Result<Self, VocabularyError> {
        build(read(json)?, ends)
    }
}

/// Builds the vocabulary of these tokens. The tokens `ends` end a text, or if there are none, well-known
/// names do.
pub(super) fn build(tokens: VocabularyBuilder, ends: Vec<TokenId>) -> Result<Vocabulary, VocabularyError> {
    let ends = if ends.is_empty() { ends_by_well_known_names(tokens.specials()) } else { ends };
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
pub(super) fn read(json: &str) -> Result<VocabularyBuilder, VocabularyError> {
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
pub(super) fn read_added(json: &str) -> Result<Vec<(TokenId, String)>, VocabularyError> {
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

// The bytes that a token's name stands for are found by the decoder of its file. The `tokenizers` crate
// decodes whole texts, and puts U+FFFD where bytes are not UTF-8; tokens are bytes, so they are spelt here.
// What a decoder does to a whole text, after `Fuse`, does not matter for tokens.

/// The spelling of the names of one file.
struct NameSpelling {
    /// Texts within a name, and their replacements.
    replaced: Vec<(String, String)>,
    alphabet: NameAlphabet,
}

/// The meaning of the characters of a name.
enum NameAlphabet {
    /// Characters are text, except in names of bytes (`<0xHH>`).
    Fallback,
    /// Characters of GPT-2's byte-level alphabet: the byte of each code point.
    Bytes(Box<[Option<u8>; BYTE_CHARACTERS]>),
}

/// A `decoder` of a `tokenizer.json`, as far as it spells tokens.
#[derive(Deserialize)]
#[serde(tag = "type")]
enum NameDecoder {
    ByteFallback,
    ByteLevel,
    Fuse,
    Replace { pattern: NamePattern, content: String },
    Sequence { decoders: Vec<NameDecoder> },
    Strip,
}

#[derive(Deserialize)]
enum NamePattern {
    String(String),
    Regex(IgnoredAny),
}

impl NameSpelling {
    /// Creates the spelling that a decoder describes.
    pub(super) fn new(decoder: &serde_json::Value) -> Result<Self, VocabularyError> {
        if decoder.is_null() {
            return Err(unsupported("no decoder: how tokens spell bytes is not said"));
        }
        let decoder = NameDecoder::deserialize(decoder)
            .map_err(|error| unsupported(format!("the decoder is not known: {error}")))?;
        let mut steps = Vec::new();
        decoder.flatten(&mut steps);
        let mut replaced = Vec::new();
        let mut alphabet = None;
        for step in steps {
            let named = match step {
                NameDecoder::ByteFallback => NameAlphabet::Fallback,
                NameDecoder::ByteLevel => NameAlphabet::Bytes(byte_characters()),
                NameDecoder::Replace { pattern: NamePattern::String(from), content } if !from.is_empty() => {
                    replaced.push((from, content));
                    continue;
                }
                NameDecoder::Replace { .. } => {
                    return Err(unsupported("the decoder replaces more than a text"));
                }
                NameDecoder::Fuse => break,
                NameDecoder::Sequence { .. } | NameDecoder::Strip => continue,
            };
            if alphabet.replace(named).is_some() {
                return Err(unsupported("the decoder says twice how tokens spell bytes"));
            }
        }
        let Some(alphabet) = alphabet else {
            return Err(unsupported("tokens are not byte strings: their decoder makes no bytes"));
        };
        Ok(Self { replaced, alphabet })
    }

    /// Writes the bytes of a token of the model to `bytes`. A name that cannot be decoded stands for itself,
    /// as in the `tokenizers` crate.
    pub(super) fn of(&self, name: &str, bytes: &mut Vec<u8>) {
        bytes.clear();
        let mut text = Cow::Borrowed(name);
        for (from, to) in &self.replaced {
            if text.contains(from) {
                text = text.replace(from, to).into();
            }
        }
        match &self.alphabet {
            NameAlphabet::Fallback => bytes.extend(byte_named(&text)),
            NameAlphabet::Bytes(of) => {
                let byte = |c: char| of.get(usize::try_from(u32::from(c)).ok()?).copied().flatten();
                bytes.extend(text.chars().map_while(byte));
                if bytes.len() < text.chars().count() {
                    bytes.clear();
                }
            }
        }
        if bytes.is_empty() {
            bytes.extend_from_slice(text.as_bytes());
        }
    }

    /// Writes the bytes of an added token to `bytes`. It is a piece of text, so where decoding leaves UTF-8
    /// it stands for itself.
    pub(super) fn added(&self, content: &str, bytes: &mut Vec<u8>) {
        self.of(content, bytes);
        if byte_named(content).is_none() && std::str::from_utf8(bytes).is_err() {
            bytes.clear();
            bytes.extend_from_slice(content.as_bytes());
        }
    }
}

impl NameDecoder {
    /// Lists its steps, without the sequences around them.
    fn flatten(self, steps: &mut Vec<Self>) {
        match self {
            Self::Sequence { decoders } => decoders.into_iter().for_each(|decoder| decoder.flatten(steps)),
            step => steps.push(step),
        }
    }
}

/// Returns the byte of a name `<0xHH>`.
fn byte_named(name: &str) -> Option<u8> {
    let digits = name.strip_prefix("<0x")?.strip_suffix('>')?;
    let is_byte = digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_byte.then(|| u8::from_str_radix(digits, 16).ok())?
}

/// Number of code points up to the last one of the byte-level alphabet.
const BYTE_CHARACTERS: usize = 0x144;

/// Returns the byte of each character of GPT-2's alphabet: printable Latin-1 stands for itself, and the
/// characters from U+0100 on for all other bytes.
fn byte_characters() -> Box<[Option<u8>; BYTE_CHARACTERS]> {
    let mut bytes = Box::new([None; BYTE_CHARACTERS]);
    let mut next = 0x100;
    for byte in u8::MIN..=u8::MAX {
        if matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..) {
            bytes[usize::from(byte)] = Some(byte);
        } else {
            bytes[next] = Some(byte);
            next += 1;
        }
    }
    bytes
}

/// Creates the error for a tokenizer whose tokens are not known to be byte strings.
pub(super) fn unsupported(message: impl Into<String>) -> VocabularyError {
    VocabularyError::new(VocabularyErrorKind::Unsupported, message)
}

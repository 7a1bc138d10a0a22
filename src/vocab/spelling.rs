//! The bytes that a token's name stands for.
//!
//! How names spell bytes is `toktrie_hf_tokenizers`' business. It is asked once about each character and each name
//! of a byte (`<0xHH>`), not about each name: names are spelt character by character by all decoders that it knows,
//! and a vocabulary has a hundred times more names than characters.

use std::collections::BTreeSet;

use hashbrown::{HashMap, HashSet};
use tokenizers::{DecoderWrapper, models::wordlevel::WordLevel};
use toktrie_hf_tokenizers::ByteTokenizer;

use super::error::{VocabularyError, VocabularyErrorKind};

/// How the names of one file are spelt.
pub(super) struct Spelling {
    /// The bytes of each character of the names; those that the decoder does not know are left out.
    characters: HashMap<char, Vec<u8>>,
    /// The bytes of each name of a byte.
    bytes: HashMap<String, Vec<u8>>,
}

impl Spelling {
    /// How the decoder of a file spells these names.
    pub(super) fn new<'a>(
        names: impl Iterator<Item = &'a str>,
        decoder: &serde_json::Value,
    ) -> Result<Self, VocabularyError> {
        let mut characters: HashSet<char> = HashSet::new();
        let mut bytes: BTreeSet<&str> = BTreeSet::new();
        let mut none = true;
        for name in names {
            none = false;
            characters.extend(name.chars());
            if is_byte_name(name) {
                bytes.insert(name);
            }
        }
        if none {
            return Ok(Self { characters: HashMap::new(), bytes: HashMap::new() });
        }
        let mut asked: Vec<String> = bytes.into_iter().map(str::to_owned).collect();
        let byte_names = asked.len();
        asked.extend(characters.into_iter().map(String::from));
        let mut answers = bytes_of(&asked, decoder)?.into_iter();
        let bytes = asked.drain(..byte_names).zip(answers.by_ref()).collect();
        let spelt = asked.iter().zip(answers).filter(|(_, bytes)| !bytes.is_empty());
        let characters =
            spelt.flat_map(|(name, bytes)| name.chars().map(move |c| (c, bytes.clone()))).collect();
        Ok(Self { characters, bytes })
    }

    /// Puts the bytes of a token of the model in `bytes`. A name that cannot be decoded stands for itself, as it does
    /// for the `tokenizers` crate.
    pub(super) fn of(&self, name: &str, bytes: &mut Vec<u8>) {
        bytes.clear();
        if is_byte_name(name)
            && let Some(spelt) = self.bytes.get(name)
        {
            bytes.extend_from_slice(spelt);
            return;
        }
        for c in name.chars() {
            let Some(spelt) = self.characters.get(&c) else {
                bytes.clear();
                bytes.extend_from_slice(name.as_bytes());
                return;
            };
            bytes.extend_from_slice(spelt);
        }
    }

    /// Puts the bytes of an added token in `bytes`. It is a piece of text, so where decoding leaves UTF-8 it stands
    /// for itself.
    pub(super) fn added(&self, content: &str, bytes: &mut Vec<u8>) {
        self.of(content, bytes);
        if !is_byte_name(content) && std::str::from_utf8(bytes).is_err() {
            bytes.clear();
            bytes.extend_from_slice(content.as_bytes());
        }
    }
}

/// Is this `<0xHH>`, the name of a byte?
fn is_byte_name(name: &str) -> bool {
    let digits = name.strip_prefix("<0x").and_then(|rest| rest.strip_suffix('>'));
    digits.is_some_and(|digits| digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// The bytes of all names by the decoder's rules, in the same order; none for those that it does not know.
fn bytes_of(names: &[String], decoder: &serde_json::Value) -> Result<Vec<Vec<u8>>, VocabularyError> {
    if decoder.is_null() {
        return Err(unsupported("no decoder: how tokens spell bytes is not said"));
    }
    let decoder: DecoderWrapper = serde_json::from_value(decoder.clone())
        .map_err(|error| unsupported(format!("the decoder is not known: {error}")))?;
    let vocab = names.iter().zip(0..).map(|(name, place)| (name.clone(), place));
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

/// The error for a tokenizer whose tokens are not known to be byte strings.
pub(super) fn unsupported(message: impl Into<String>) -> VocabularyError {
    VocabularyError::new(VocabularyErrorKind::Unsupported, message)
}

//! The bytes that a token's name stands for, by the decoder of its file.
//!
//! The `tokenizers` crate decodes whole texts, and puts U+FFFD where bytes are not UTF-8; tokens are bytes,
//! so they are spelt here. What a decoder does to a whole text, after `Fuse`, does not matter for tokens.

use std::borrow::Cow;

use serde::{Deserialize, de::IgnoredAny};

use crate::vocab::error::{VocabularyError, VocabularyErrorKind};

/// The spelling of the names of one file.
pub(in crate::vocab) struct NameSpelling {
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
    pub(in crate::vocab) fn new(decoder: &serde_json::Value) -> Result<Self, VocabularyError> {
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
    pub(in crate::vocab) fn of(&self, name: &str, bytes: &mut Vec<u8>) {
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
    pub(in crate::vocab) fn added(&self, content: &str, bytes: &mut Vec<u8>) {
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
pub(in crate::vocab) fn unsupported(message: impl Into<String>) -> VocabularyError {
    VocabularyError::new(VocabularyErrorKind::Unsupported, message)
}

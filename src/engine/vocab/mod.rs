//! Tokens and their bytes. Knows nothing of grammars, which lets its tables be shared.

mod builder;
mod error;
mod gguf_tokenizer;
mod json_index;
mod sources;
mod stored;
mod token_set;
#[cfg(feature = "tokenizers")]
mod tokenizer;
mod tokenizer_json;
mod trie;
mod vocabulary;

#[cfg(feature = "tokenizers")]
pub use self::tokenizer::Tokenizer;

pub use builder::VocabularyBuilder;
pub use error::{VocabularyError, VocabularyErrorKind};
pub(crate) use json_index::{Quoted, has_bracket};
#[doc(hidden)]
pub use token_set::Contents;
pub use token_set::TokenSet;
pub(crate) use trie::{ByteTrie, ENDLESS, byte_kind};
pub use vocabulary::Vocabulary;

/// Turns pieces of UTF-8 into text; tokens may end in the middle of a character.
///
/// ```
/// use domino::vocab::Utf8Stream;
///
/// let mut stream = Utf8Stream::default();
/// assert_eq!(stream.push(b"caf\xc3"), "caf");
/// assert_eq!(stream.push(b"\xa9"), "é");
/// assert_eq!(stream.finish(), "");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Utf8Stream {
    held: Vec<u8>,
}

impl Utf8Stream {
    /// Returns the text that `bytes` completes. Bytes that no further byte can make UTF-8 become U+FFFD, as
    /// in [`String::from_utf8_lossy`] on the whole.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        self.held.extend_from_slice(bytes);
        let mut text = String::new();
        let mut rest = self.held.as_slice();
        while let Err(error) = std::str::from_utf8(rest) {
            let (valid, invalid) = rest.split_at(error.valid_up_to());
            text.push_str(&String::from_utf8_lossy(valid));
            rest = invalid;
            let Some(length) = error.error_len() else { break };
            text.push(char::REPLACEMENT_CHARACTER);
            rest = &invalid[length..];
        }
        let held = match std::str::from_utf8(rest) {
            Ok(valid) => {
                text.push_str(valid);
                0
            }
            Err(_) => rest.len(),
        };
        self.held.drain(..self.held.len() - held);
        text
    }

    /// Ends the stream: returns U+FFFD if bytes were held back.
    pub fn finish(&mut self) -> String {
        let text = String::from_utf8_lossy(&self.held).into_owned();
        self.held.clear();
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However the bytes are cut, the pieces make the lossy text of the whole.
    #[test]
    fn streamed_text_is_the_lossy_text_however_it_is_cut() {
        let texts: [&[u8]; 5] = [
            "añ€😀z".as_bytes(),
            b"\xff\xc3a\xe2\x82",
            b"\xf0\x9f\x98a\x80",
            b"\xed\xa0\x80",
            b"\xe2\x82\xe2\x82\xac",
        ];
        for text in texts {
            for first in 0..=text.len() {
                for second in first..=text.len() {
                    let mut stream = Utf8Stream::default();
                    let mut all = String::new();
                    for piece in [&text[..first], &text[first..second], &text[second..]] {
                        all += &stream.push(piece);
                        assert!(stream.held.len() < 4);
                    }
                    all += &stream.finish();
                    assert_eq!(all, String::from_utf8_lossy(text));
                }
            }
        }
    }
}

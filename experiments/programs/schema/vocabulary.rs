//! The vocabulary that a harness names in its first line.

use std::{error::Error, fs};

use domino::{TokenId, Vocabulary};
use serde::Deserialize;

/// The first line of a harness.
#[derive(Debug, Deserialize)]
pub(crate) struct Head {
    /// A file with a line for each token: id, tab, bytes in hexadecimal.
    vocab: String,
    /// The end of the text.
    eos: u32,
}

impl Head {
    /// Reads the file.
    pub(crate) fn vocabulary(&self) -> Result<Vocabulary, Box<dyn Error>> {
        let mut builder = Vocabulary::builder();
        for line in fs::read_to_string(&self.vocab)?.lines() {
            let (id, hex) = line.split_once('\t').ok_or("a line of the vocabulary has no tab")?;
            let id = id.parse()?;
            let digits = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16);
            let bytes: Vec<u8> = (0..hex.len()).step_by(2).map(digits).collect::<Result<_, _>>()?;
            if id != self.eos && !bytes.is_empty() {
                builder = builder.token(TokenId::new(id), bytes);
            }
        }
        let end = TokenId::new(self.eos);
        Ok(builder.special(end, "<end of text>").end_of_text(end).build()?)
    }
}

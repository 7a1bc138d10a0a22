//! One text at a time.

use std::{fmt, path::Path, slice};

use domino::model::{BatchInput, Logits, Model, Rows, candle::ModelError};
use domino::{TokenId, Vocabulary, VocabularyError, vocab::VocabularyErrorKind};
use llama_cpp_2::{model::LlamaModel, token::LlamaToken, token_type::LlamaTokenAttr};

use crate::sequences::{LlamaCppOptions, Sequences};

/// A model that llama.cpp runs, with a cache of one text.
pub struct LlamaCppModel {
    sequences: Sequences,
    path: std::path::PathBuf,
}

impl LlamaCppModel {
    /// Loads a GGUF file.
    ///
    /// # Errors
    /// If llama.cpp cannot load it, or there is no memory for the context.
    pub fn load(path: impl AsRef<Path>, options: &LlamaCppOptions) -> Result<Self, ModelError> {
        let path = path.as_ref().to_owned();
        Ok(Self { sequences: Sequences::load(&path, 1, options)?, path })
    }

    /// Tokens that the model was made for.
    #[must_use]
    pub fn made_for(&self) -> usize {
        self.sequences.made_for()
    }

    /// The architecture, as the file names it; empty if it does not.
    #[must_use]
    pub fn architecture(&self) -> String {
        self.sequences.architecture()
    }

    /// Can the cache forget the last tokens? Recurrent and hybrid models cannot:
    /// [`truncate`](Model::truncate) to a position between none and all is an error then, and nothing may be
    /// drafted.
    #[must_use]
    pub fn can_roll_back(&self) -> bool {
        self.sequences.can_roll_back()
    }

    /// The vocabulary: read by Domino from the file or, where Domino does not know the file's tokenizer, made
    /// of llama.cpp's pieces.
    ///
    /// # Errors
    /// If neither gives a vocabulary with a token that ends the text.
    pub fn vocabulary(&self) -> Result<Vocabulary, VocabularyError> {
        read(&self.path, self.sequences.model())
    }

    /// The vocabulary of llama.cpp's pieces: the bytes that it writes for each token. Control tokens are
    /// special, and all tokens that end a generation end a text.
    ///
    /// # Errors
    /// If no token ends the text, or none has bytes.
    pub fn vocabulary_of_pieces(&self) -> Result<Vocabulary, VocabularyError> {
        of_pieces(self.sequences.model())
    }

    /// The tokens of a text, as llama.cpp's tokenizer splits it. With `special`, the tokens that the model
    /// wants around a text are added, and names of special tokens in the text mean these.
    #[must_use]
    pub fn tokenize(&self, text: &str, special: bool) -> Vec<TokenId> {
        tokenize(self.sequences.model(), text, special)
    }
}

impl Model for LlamaCppModel {
    type Error = ModelError;

    fn position(&self) -> usize {
        self.sequences.position(0)
    }

    fn context(&self) -> usize {
        self.sequences.context()
    }

    fn vocabulary_size(&self) -> usize {
        self.sequences.vocabulary_size()
    }

    fn forward(&mut self, tokens: &[TokenId], rows: Rows<'_>) -> Result<Logits, ModelError> {
        let input = BatchInput { sequence: 0, tokens, rows };
        let mut logits = self.sequences.forward(slice::from_ref(&input))?;
        Ok(logits.pop().unwrap_or_else(|| Logits::new(Vec::new(), self.vocabulary_size().max(1))))
    }

    fn truncate(&mut self, position: usize) -> Result<(), ModelError> {
        self.sequences.truncate(0, position)
    }
}

impl fmt::Debug for LlamaCppModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LlamaCppModel").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Reads the vocabulary by Domino's reader of the file or, where it does not know the tokenizer, makes it of
/// llama.cpp's pieces.
fn read(path: &Path, model: &LlamaModel) -> Result<Vocabulary, VocabularyError> {
    match Vocabulary::from_tokenizer_file(path) {
        Err(error) if *error.kind() == VocabularyErrorKind::Unsupported => {
            tracing::info!("the vocabulary is llama.cpp's: {error}");
            of_pieces(model)
        }
        known => known,
    }
}

/// Makes the vocabulary of llama.cpp's pieces: the bytes that it would write for each token. All tokens that
/// end a generation for llama.cpp end a text.
fn of_pieces(model: &LlamaModel) -> Result<Vocabulary, VocabularyError> {
    let tokens = model.vocab();
    // Tokens without a text: padding of the vocabulary among them.
    let empty = LlamaTokenAttr::Unused | LlamaTokenAttr::Unknown;
    let mut builder = Vocabulary::builder();
    for token in tokens.tokens() {
        let Ok(id) = u32::try_from(token.0).map(TokenId::new) else { continue };
        if tokens.is_eog(token) {
            builder = builder.end_of_text(id);
        }
        let name = || tokens.token_to_piece(token, true, None);
        if tokens.is_control(token) || tokens.is_eog(token) {
            builder = builder.special(id, String::from_utf8_lossy(&name()));
        } else if !tokens.attr(token).intersects(empty) {
            builder = builder.token(id, tokens.token_to_piece(token, false, None));
        }
    }
    builder.build()
}

/// Splits a text into tokens.
fn tokenize(model: &LlamaModel, text: &str, special: bool) -> Vec<TokenId> {
    let tokens = model.vocab().tokenize(text.as_bytes(), special, special);
    tokens.into_iter().filter_map(|LlamaToken(token)| u32::try_from(token).ok()).map(TokenId::new).collect()
}

//! The vocabulary of a file, and texts as tokens by llama.cpp.

use std::path::Path;

use domino::{TokenId, Vocabulary, VocabularyError, vocab::VocabularyErrorKind};
use llama_cpp_2::{model::LlamaModel, token::LlamaToken, token_type::LlamaTokenAttr};

/// The vocabulary by Domino's reader of the file or, where it does not know the tokenizer, of llama.cpp's
/// pieces.
pub(crate) fn read(path: &Path, model: &LlamaModel) -> Result<Vocabulary, VocabularyError> {
    match Vocabulary::from_tokenizer_file(path) {
        Err(error) if *error.kind() == VocabularyErrorKind::Unsupported => {
            tracing::info!("the vocabulary is llama.cpp's: {error}");
            of_pieces(model)
        }
        known => known,
    }
}

/// The vocabulary of llama.cpp's pieces: the bytes that it would write for each token. All tokens that end a
/// generation for llama.cpp end a text.
pub(crate) fn of_pieces(model: &LlamaModel) -> Result<Vocabulary, VocabularyError> {
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

/// The tokens of a text.
pub(crate) fn tokenize(model: &LlamaModel, text: &str, special: bool) -> Vec<TokenId> {
    let tokens = model.vocab().tokenize(text.as_bytes(), special, special);
    tokens.into_iter().filter_map(|LlamaToken(token)| u32::try_from(token).ok()).map(TokenId::new).collect()
}

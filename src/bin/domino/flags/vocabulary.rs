//! Flags that say whose tokens are meant.

use std::path::PathBuf;

use clap::Args;

use crate::session::tokenizer::TokensOf;

/// Flags that say whose tokens are meant, for commands that run no model.
#[derive(Debug, Args)]
pub(crate) struct LowVocabulary {
    /// A tokenizer.json, a folder with one, or a GGUF file.
    #[arg(long, short = 't', value_name = "DIR|FILE", conflicts_with = "model")]
    tokenizer: Option<PathBuf>,
    /// The model whose tokens are meant: a folder, a GGUF file, or OWNER/NAME on the Hugging Face hub.
    ///
    /// As for `domino generate`; of the model nothing but its tokenizer is read.
    #[arg(long, short = 'm', value_name = "DIR|FILE|ID")]
    model: Option<PathBuf>,
}

impl LowVocabulary {
    /// Takes the tokens of the flags, or else of the default model.
    pub(crate) fn resolve(self) -> TokensOf {
        self.given().unwrap_or(TokensOf::Model(None))
    }

    /// Takes the tokens of the flags, if there are any.
    pub(crate) fn given(self) -> Option<TokensOf> {
        let model = self.model.map(|model| TokensOf::Model(Some(model)));
        self.tokenizer.map(TokensOf::Tokenizer).or(model)
    }
}

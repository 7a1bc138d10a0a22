//! Descriptions of models: shape, formats of the numbers, and memory.

use super::format::Format;

/// A model's shape, formats and needs, of a Hugging Face folder or a GGUF file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelDescription {
    /// The kind of model, as its files call it, such as `LlamaForCausalLM` or `qwen2`.
    pub architecture: Option<String>,
    /// Name, if the files say one.
    pub name: Option<String>,
    /// Layers.
    pub layers: usize,
    /// Numbers that stand for a token between layers.
    pub hidden: usize,
    /// Numbers inside of a layer's multilayer perceptron.
    pub intermediate: usize,
    /// Heads of queries.
    pub heads: usize,
    /// Heads of keys and values, which heads of queries share.
    pub kv_heads: usize,
    /// Numbers of a head.
    pub head_dim: usize,
    /// Rows of the output product: at least as many as there are tokens.
    pub vocabulary: usize,
    /// Tokens that the model was made for.
    pub context: usize,
    /// Tokens that some layers see, if these do not see all.
    pub window: Option<usize>,
    /// True if the output product is by the embedding.
    pub tied: bool,
    /// Formats of the numbers, the most usual one first.
    pub formats: Vec<FormatShare>,
    /// Bytes that the weights take in memory.
    pub memory: u64,
}

/// Share of a model that is stored in a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FormatShare {
    /// The format.
    pub format: Format,
    /// Parameters in it.
    pub parameters: u64,
    /// Bytes that they take in the files.
    pub bytes: u64,
}

impl ModelDescription {
    /// All parameters.
    #[must_use]
    pub fn parameters(&self) -> u64 {
        self.formats.iter().fold(0, |sum, share| sum.saturating_add(share.parameters))
    }
}

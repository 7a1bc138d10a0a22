//! Sizes and constants of a model, checked, whatever file they were read from.
//!
//! Invariant: a [`Config`] describes a model that this runner computes exactly; whatever it would have to
//! ignore or guess is an error of the reader.

use super::rope::Rope;
use crate::limits::TENSOR_ELEMENTS;

/// Sizes and constants of a model. After [`check`](Self::check) all sizes are at least one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Config {
    pub(crate) hidden: usize,
    pub(crate) intermediate: usize,
    pub(crate) layers: usize,
    pub(crate) heads: usize,
    /// Key/value heads; divides `heads`.
    pub(crate) kv_heads: usize,
    /// Size of a head, an even number.
    pub(crate) head_dim: usize,
    pub(crate) vocabulary: usize,
    /// Most tokens the model was made for.
    pub(crate) max_positions: usize,
    pub(crate) norm_epsilon: f32,
    pub(crate) rope: Rope,
    pub(crate) window: Option<Window>,
    /// True if the output matrix is the embedding.
    pub(crate) tied: bool,
    pub(crate) biases: Biases,
    /// True if the heads of queries and keys are normalised before they are rotated.
    pub(crate) head_norms: bool,
}

/// Products that add a bias.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Biases {
    pub(crate) qkv: bool,
    pub(crate) attention_out: bool,
    pub(crate) mlp: bool,
}

/// A sliding window: a token sees itself and the tokens before it, `tokens` in all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Window {
    /// Tokens that a token sees, itself included; at least one.
    pub(crate) tokens: usize,
    /// True for each layer that has the window, false for one that sees all. Layers past the end have it.
    pub(crate) layers: Vec<bool>,
}

impl Config {
    /// The window of a layer, in tokens; `None` if it sees all.
    pub(crate) fn window_of(&self, layer: usize) -> Option<usize> {
        let window = self.window.as_ref()?;
        window.layers.get(layer).copied().unwrap_or(true).then_some(window.tokens)
    }

    /// Checks the sizes against each other; the error says in words what is wrong.
    pub(crate) fn check(&self) -> Result<(), String> {
        let sizes = [
            ("the hidden size", self.hidden),
            ("the intermediate size", self.intermediate),
            ("the number of layers", self.layers),
            ("the number of heads", self.heads),
            ("the number of key/value heads", self.kv_heads),
            ("the size of a head", self.head_dim),
            ("the number of tokens", self.vocabulary),
            ("the number of positions", self.max_positions),
        ];
        for (name, size) in sizes {
            if size == 0 || u32::try_from(size).is_err() {
                return Err(format!("{name} cannot be {size}"));
            }
        }
        if !self.heads.is_multiple_of(self.kv_heads) {
            let (heads, kv_heads) = (self.heads, self.kv_heads);
            return Err(format!("{heads} heads cannot share {kv_heads} key/value heads evenly"));
        }
        if !self.head_dim.is_multiple_of(2) {
            return Err(format!("the size of a head is odd: {}", self.head_dim));
        }
        if !(0.0..1.0).contains(&self.norm_epsilon) {
            return Err(format!("the epsilon of the norms is not in 0..1: {}", self.norm_epsilon));
        }
        if self.window.as_ref().is_some_and(|window| window.tokens == 0) {
            return Err("the sliding window is empty".into());
        }
        self.rope.check()?;
        let width =
            self.heads.checked_add(2 * self.kv_heads).and_then(|heads| heads.checked_mul(self.head_dim));
        let widest = width.map(|width| width.max(2 * self.intermediate).max(self.vocabulary));
        if widest.and_then(|widest| widest.checked_mul(self.hidden)).is_none_or(|size| size > TENSOR_ELEMENTS)
        {
            return Err("the sizes make a tensor of more than 2^40 elements".into());
        }
        Ok(())
    }
}

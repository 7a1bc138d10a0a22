//! The description of a model, checked, whatever file it was read from: sizes, and what differs between
//! architectures as data; among it the frequencies of rotary position embedding.
//!
//! The scalings of rotation for long texts are those of Hugging Face's `transformers`
//! (`modeling_rope_utils`), computed in `f64` and rounded once. Scalings that depend on the length of the
//! text are refused elsewhere: a token's key would change with the tokens after it.
//!
//! Invariant: a [`Config`] describes a model that this runner computes exactly; whatever it would have to
//! ignore or guess is an error of the reader.

use std::{collections::BTreeSet, f64::consts::TAU};

use crate::limits::TENSOR_ELEMENTS;

/// Sizes of a model, and all in which it differs from others. After [`check`](Self::check) all sizes are at
/// least one.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Config {
    pub(crate) hidden: usize,
    pub(crate) intermediate: usize,
    pub(crate) layers: usize,
    pub(crate) heads: usize,
    /// Key/value heads; divides `heads`.
    pub(crate) kv_heads: usize,
    /// Size of a head, an even number.
    pub(crate) head_dim: usize,
    /// Key/value heads and the size of a head of the layers that have the window, if theirs are others.
    pub(crate) window_heads: Option<[usize; 2]>,
    /// True if the layers that see all have their keys, before norms, as values.
    pub(crate) keys_as_values: bool,
    pub(crate) shared: SharedKeys,
    /// Numbers that each layer gets of a token beside the stream, from an embedding of their own.
    pub(crate) layer_inputs: Option<usize>,
    pub(crate) vocabulary: usize,
    /// Most tokens the model was made for.
    pub(crate) max_positions: usize,
    pub(crate) norm_epsilon: f32,
    pub(crate) rope: Rope,
    /// Frequencies of the layers that have the window; those of all layers if `None`.
    pub(crate) window_rope: Option<Rope>,
    /// Layers that rotate queries and keys.
    pub(crate) rotated: LayerSet,
    /// Numbers of a head that rotate, its first ones; an even number.
    pub(crate) rotary_dim: usize,
    pub(crate) window: Option<Window>,
    /// Layers that have attention; the others convolve, or have the state of a delta net.
    pub(crate) attention: LayerSet,
    /// True if what attention gives is multiplied by the logistic function of gates, which the product of
    /// queries gives: for each head its queries, then its gates.
    pub(crate) gated: bool,
    /// Tokens that the output of a short convolution between two gates depends on, its own included.
    pub(crate) convolution: Option<usize>,
    pub(crate) delta: Option<DeltaNet>,
    /// Experts, if all layers have them in place of a multilayer perceptron.
    pub(crate) experts: Option<Experts>,
    /// True if the output matrix is the embedding.
    pub(crate) tied: bool,
    pub(crate) biases: Biases,
    pub(crate) norms: Norms,
    pub(crate) activation: Activation,
    pub(crate) scales: Scales,
}

/// Products that add a bias.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Biases {
    pub(crate) qkv: bool,
    pub(crate) attention_out: bool,
    pub(crate) mlp: bool,
}

/// Norms beside those before attention, before the multilayer perceptron and after the last layer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Norms {
    /// True if the heads of queries and keys are normalised before they are rotated.
    pub(crate) heads: bool,
    /// True if what attention and the multilayer perceptron give is normalised before it is added.
    pub(crate) after: bool,
    /// True if the heads of values are normalised, without weights.
    pub(crate) values: bool,
    /// True if the files have all weights of norms less one.
    pub(crate) less_one: bool,
}

/// The last layers, if they read the keys and values of the last layer before them that sees as far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SharedKeys {
    /// Number of these layers.
    pub(crate) layers: usize,
    /// Numbers inside of their multilayer perceptrons, if there are such layers.
    pub(crate) intermediate: usize,
}

/// Function of the gate in the multilayer perceptron.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Activation {
    #[default]
    Silu,
    /// GeLU by the hyperbolic tangent.
    GeluTanh,
    /// The logistic function, of gates of attention.
    Logistic,
}

impl Activation {
    /// The function that `config.json` calls so.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "silu" | "swish" => Some(Self::Silu),
            "gelu_pytorch_tanh" => Some(Self::GeluTanh),
            _ => None,
        }
    }
}

/// Factors, and a cap.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scales {
    /// The factor of the embedding.
    pub(crate) embedding: f32,
    /// The factor of the products of queries and keys; one by the root of the size of a head if `None`.
    pub(crate) attention: Option<f32>,
    /// The factor of what attention and the multilayer perceptron add.
    pub(crate) added: f32,
    /// True if each layer has a factor of the stream after it.
    pub(crate) by_layer: bool,
    /// The factor of the logits.
    pub(crate) logits: f32,
    /// Limit on logits, which become the cap times the hyperbolic tangent of the logit by the cap.
    pub(crate) cap: Option<f32>,
}

impl Default for Scales {
    fn default() -> Self {
        Self { embedding: 1.0, attention: None, added: 1.0, by_layer: false, logits: 1.0, cap: None }
    }
}

/// A sliding window: a token sees itself and the tokens before it, `tokens` in all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Window {
    /// Tokens that a token sees, itself included; at least one.
    pub(crate) tokens: usize,
    /// Layers that have the window; the others see all.
    pub(crate) layers: LayerSet,
}

/// A gated delta net (arXiv 2412.06464) after a short convolution: a state for each head of values, which a
/// token fades, corrects along its key and reads along its query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeltaNet {
    /// Heads of queries and keys; divides `value_heads`.
    pub(crate) key_heads: usize,
    pub(crate) value_heads: usize,
    /// Sizes of a head.
    pub(crate) key_dim: usize,
    pub(crate) value_dim: usize,
    /// Tokens that an output of the convolution depends on, its own included.
    pub(crate) width: usize,
    /// True if the tensors are as llama.cpp converts them: the heads of values that share a key lie apart, as
    /// many as there are keys, and the rates of fading are no logarithms.
    pub(crate) is_converted: bool,
}

impl DeltaNet {
    /// Numbers of the queries, keys and values of a token, which the convolution takes.
    pub(crate) fn channels(&self) -> usize {
        2 * self.key_heads * self.key_dim + self.values()
    }

    /// Numbers of the values of a token.
    pub(crate) fn values(&self) -> usize {
        self.value_heads * self.value_dim
    }

    /// The key that a head of values has.
    pub(crate) fn key_of(&self, value_head: usize) -> usize {
        match self.is_converted {
            true => value_head % self.key_heads,
            false => value_head / (self.value_heads / self.key_heads),
        }
    }
}

/// Multilayer perceptrons, of which a token goes through some.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Experts {
    pub(crate) count: usize,
    /// Experts of a token, those that a product likes best.
    pub(crate) used: usize,
    /// Numbers inside of an expert.
    pub(crate) intermediate: usize,
    /// Numbers inside of the expert that all tokens have, by a gate; zero if there is none.
    pub(crate) shared: usize,
    /// True if the shares of a token's experts are divided by their sum.
    pub(crate) normalised: bool,
}

/// The part of a layer that looks at the tokens before.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Mixer<'a> {
    Attention,
    /// A short convolution over this many tokens.
    Convolution(usize),
    Delta(&'a DeltaNet),
}

/// Some of the layers of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum LayerSet {
    #[default]
    All,
    /// All from one on.
    From(usize),
    /// All but the last of each group of this many layers.
    ButEach(usize),
    /// The last of each group of this many layers.
    Each(usize),
    /// All but these.
    But(BTreeSet<usize>),
    /// These alone.
    Only(BTreeSet<usize>),
}

impl LayerSet {
    /// True if the layer is one of them.
    pub(crate) fn has(&self, layer: usize) -> bool {
        match self {
            Self::All => true,
            Self::From(first) => layer >= *first,
            Self::ButEach(period) => !(layer + 1).is_multiple_of(*period),
            Self::Each(period) => (layer + 1).is_multiple_of(*period),
            Self::But(layers) => !layers.contains(&layer),
            Self::Only(layers) => layers.contains(&layer),
        }
    }

    /// Counts those among the first `layers` layers.
    fn count(&self, layers: usize) -> usize {
        match self {
            Self::All => layers,
            Self::From(first) => layers.saturating_sub(*first),
            Self::ButEach(period) => layers - layers / period,
            Self::Each(period) => layers / period,
            Self::But(others) => layers - others.range(..layers).count(),
            Self::Only(own) => own.range(..layers).count(),
        }
    }
}

impl Config {
    /// The window of a layer, in tokens; `None` if it sees all.
    pub(crate) fn window_of(&self, layer: usize) -> Option<usize> {
        let window = self.window.as_ref()?;
        window.layers.has(layer).then_some(window.tokens)
    }

    /// True if a layer has the heads of [`window_heads`](Self::window_heads).
    fn has_window_heads(&self, layer: usize) -> bool {
        self.window_heads.is_some() && self.window_of(layer).is_some()
    }

    /// Key/value heads of a layer, and the size of a head.
    pub(crate) fn heads_of(&self, layer: usize) -> [usize; 2] {
        let own = self.window_heads.filter(|_| self.has_window_heads(layer));
        own.unwrap_or([self.kv_heads, self.head_dim])
    }

    /// Layers, the first ones, that have keys and values of their own, or what is in place of them.
    pub(crate) fn own_keys(&self) -> usize {
        self.layers.saturating_sub(self.shared.layers)
    }

    /// The layer whose keys and values a layer reads.
    pub(crate) fn source(&self, layer: usize) -> usize {
        let sees_as_far = |other: &usize| self.window_of(*other) == self.window_of(layer);
        let own = self.own_keys();
        if layer < own { layer } else { (0..own).rev().find(sees_as_far).unwrap_or(layer) }
    }

    /// Numbers inside of a layer's multilayer perceptron.
    pub(crate) fn intermediate_of(&self, layer: usize) -> usize {
        if layer < self.own_keys() { self.intermediate } else { self.shared.intermediate }
    }

    /// True if a layer has a product for values.
    pub(crate) fn has_values(&self, layer: usize) -> bool {
        !self.keys_as_values || self.window_of(layer).is_some()
    }

    /// The part of a layer that looks at the tokens before.
    pub(crate) fn mixer(&self, layer: usize) -> Mixer<'_> {
        match (&self.delta, self.convolution) {
            _ if self.attention.has(layer) => Mixer::Attention,
            (Some(delta), _) => Mixer::Delta(delta),
            (None, Some(width)) => Mixer::Convolution(width),
            (None, None) => Mixer::Attention,
        }
    }

    /// Layers of a cache that a convolution takes: as many as have room for its inputs, which are kept in the
    /// place of keys and values.
    fn convolved(&self) -> usize {
        self.hidden.div_ceil(2 * self.kv_heads * self.head_dim)
    }

    /// The first layer of a cache that each layer takes or reads, or its number among those that have states.
    pub(crate) fn places(&self) -> Vec<usize> {
        let [[windowed, ..], ..] = self.caches()[..] else { return Vec::new() };
        // Next layers: of heads of the usual size, of those of the window, of states.
        let mut next = [0, windowed, 0];
        let mut places: Vec<usize> = Vec::new();
        for layer in 0..self.layers {
            let (kind, taken) = match self.mixer(layer) {
                Mixer::Attention => (usize::from(self.has_window_heads(layer)), 1),
                Mixer::Convolution(_) => (0, self.convolved()),
                Mixer::Delta(_) => (2, 1),
            };
            let source = places.get(self.source(layer)).copied();
            places.push(source.unwrap_or(next[kind]));
            next[kind] += if source.is_some() { 0 } else { taken };
        }
        places
    }

    /// Layers of a cache, key/value heads and the size of a head, for each size of heads; those of layers
    /// with the window last, if theirs are others.
    pub(crate) fn caches(&self) -> Vec<[usize; 3]> {
        let attention = self.attention.count(self.layers);
        let others = self.layers - attention;
        let layers = match (&self.delta, self.convolution) {
            (Some(_), _) => attention,
            (None, Some(_)) => attention + others * self.convolved(),
            (None, None) => self.own_keys(),
        };
        let window = self.window.as_ref().zip(self.window_heads);
        let window =
            window.map(|(window, [heads, size])| [window.layers.count(self.own_keys()), heads, size]);
        let all = layers - window.map_or(0, |[layers, ..]| layers);
        std::iter::once([all, self.kv_heads, self.head_dim]).chain(window).collect()
    }

    /// Layers of a cache.
    pub(crate) fn cache_layers(&self) -> usize {
        self.caches().iter().map(|[layers, ..]| layers).sum()
    }

    /// Layers that have the state of a delta net.
    pub(crate) fn state_layers(&self) -> usize {
        let states = || self.layers - self.attention.count(self.layers);
        self.delta.as_ref().map_or(0, |_| states())
    }

    /// The frequencies that a model has, each once, and how many numbers of a head rotate by them.
    pub(crate) fn ropes(&self) -> impl Iterator<Item = (&Rope, usize)> {
        let windowed = self.window_heads.map_or(self.rotary_dim, |[_, size]| size);
        std::iter::once((&self.rope, self.rotary_dim))
            .chain(self.window_rope.iter().map(move |rope| (rope, windowed)))
    }

    /// Number of the frequencies, of [`ropes`](Self::ropes), by which a layer rotates; `None` if it does not.
    pub(crate) fn rope_of(&self, layer: usize) -> Option<usize> {
        let own = self.window_rope.is_some() && self.window_of(layer).is_some();
        self.rotated.has(layer).then_some(usize::from(own))
    }

    /// Factor of the products of queries and keys.
    pub(crate) fn attention_scale(&self) -> f32 {
        #[expect(clippy::cast_precision_loss, reason = "head sizes are far below 2^24")]
        let usual = || 1.0 / (self.head_dim as f32).sqrt();
        self.scales.attention.unwrap_or_else(usual)
    }

    /// True if tensors do not compute the model, nor cards.
    pub(crate) fn is_for_cpu(&self) -> bool {
        let others = self.window_heads.is_some() || self.keys_as_values || self.shared.layers > 0;
        let more = self.layer_inputs.is_some() || self.scales.by_layer || self.norms.values;
        others || more || self.delta.is_some() || self.experts.is_some()
    }

    /// True if the model is computed as Llama's and Qwen's are, but for frequencies, windows, biases and the
    /// norms of heads.
    pub(crate) fn is_plain(&self) -> bool {
        let all = self.rotated == LayerSet::All && self.attention == LayerSet::All;
        let same = self.activation == Activation::Silu && !self.norms.after && self.window_rope.is_none();
        let whole = self.rotary_dim == self.head_dim && !self.gated && !self.is_for_cpu();
        all && same && whole && self.scales == Scales::default()
    }

    /// All sizes, with their names in messages.
    fn sizes(&self) -> impl Iterator<Item = (&'static str, usize)> {
        let [window_heads, window_head] = self.window_heads.unwrap_or([1, 1]);
        let sizes = [
            ("the hidden size", self.hidden),
            ("the intermediate size", self.intermediate),
            ("the number of layers", self.layers),
            ("the number of heads", self.heads),
            ("the number of key/value heads", self.kv_heads),
            ("the size of a head", self.head_dim),
            ("the number of tokens", self.vocabulary),
            ("the number of positions", self.max_positions),
            ("the number of key/value heads of a window", window_heads),
            ("the size of a head of a window", window_head),
            ("the number of a layer's inputs", self.layer_inputs.unwrap_or(1)),
            ("the intermediate size of layers that share keys", self.shared.intermediate.max(1)),
        ];
        let delta = self.delta.iter().flat_map(|own| {
            [
                ("the number of a state's key heads", own.key_heads),
                ("the number of a state's value heads", own.value_heads),
                ("the size of a state's key head", own.key_dim),
                ("the size of a state's value head", own.value_dim),
            ]
        });
        let experts = self.experts.iter().flat_map(|own| {
            [
                ("the number of experts", own.count),
                ("the number of a token's experts", own.used),
                ("the intermediate size of an expert", own.intermediate),
                // Zero is no expert.
                ("the intermediate size of the shared expert", own.shared.max(1)),
            ]
        });
        let width = self.convolution.or(self.delta.as_ref().map(|own| own.width));
        sizes
            .into_iter()
            .chain(delta)
            .chain(experts)
            .chain(width.map(|width| ("the width of the convolution", width)))
    }

    /// Checks the sizes against each other; the error says in words what is wrong.
    pub(crate) fn check(&self) -> Result<(), String> {
        for (name, size) in self.sizes() {
            if size == 0 || u32::try_from(size).is_err() {
                return Err(format!("{name} cannot be {size}"));
            }
        }
        let shared = self.delta.iter().map(|own| (own.value_heads, own.key_heads));
        let shared = shared.chain(self.window_heads.map(|[kv_heads, _]| (self.heads, kv_heads)));
        for (heads, kv_heads) in std::iter::once((self.heads, self.kv_heads)).chain(shared) {
            if !heads.is_multiple_of(kv_heads) {
                return Err(format!("{heads} heads cannot share {kv_heads} key/value heads evenly"));
            }
        }
        if let Some(Experts { count, used, .. }) = self.experts.as_ref().filter(|own| own.used > own.count) {
            return Err(format!("a token has {used} experts of {count}"));
        }
        let windowed = self.window_heads.map(|[_, size]| [size; 2]);
        for [rotary, size] in std::iter::once([self.rotary_dim, self.head_dim]).chain(windowed) {
            if rotary == 0 || !rotary.is_multiple_of(2) || rotary > size {
                return Err(format!("{rotary} numbers of a head of {size} rotate"));
            }
        }
        if !(0.0..1.0).contains(&self.norm_epsilon) {
            return Err(format!("the epsilon of the norms is not in 0..1: {}", self.norm_epsilon));
        }
        if self.window.as_ref().is_some_and(|window| window.tokens == 0) {
            return Err("the sliding window is empty".into());
        }
        let layers = self.window.as_ref().map(|window| &window.layers);
        let sets = [Some(&self.rotated), Some(&self.attention), layers];
        if sets.into_iter().flatten().any(|set| matches!(set, LayerSet::ButEach(0) | LayerSet::Each(0))) {
            return Err("groups of layers have no layer".into());
        }
        let far = |layers| self.window.as_ref().map_or(0, |window| window.layers.count(layers));
        let (own, all) = (self.own_keys(), self.layers);
        if own == 0 || (far(own) == 0 && far(all) > 0) || (far(own) == own && far(all) < all) {
            return Err("layers share keys that no layer has".into());
        }
        let Scales { embedding, attention, added, logits, cap, .. } = self.scales;
        let scales = [Some(embedding), attention, Some(added), Some(logits), cap];
        if let Some(scale) = scales.into_iter().flatten().find(|scale| !(scale.is_finite() && *scale > 0.0)) {
            return Err(format!("a factor is not a positive number: {scale}"));
        }
        self.ropes().try_for_each(|(rope, _)| rope.check())?;
        let fits = self.widest().is_some_and(|size| size <= TENSOR_ELEMENTS);
        fits.then_some(()).ok_or_else(|| "the sizes make a tensor of more than 2^40 elements".into())
    }

    /// Numbers of the largest matrix, of sizes below 2^32; `None` if they cannot be counted.
    fn widest(&self) -> Option<usize> {
        let sizes = std::iter::once([self.kv_heads, self.head_dim]).chain(self.window_heads);
        let mut heads = 0;
        for [kv_heads, size] in sizes {
            heads = heads.max((2 * (self.heads + kv_heads)).checked_mul(size)?);
        }
        let inputs = self.layers.checked_mul(self.layer_inputs.unwrap_or(0))?;
        let states = match &self.delta {
            Some(own) => {
                let keys = (2 * own.key_heads).checked_mul(own.key_dim)?;
                let values = (2 * own.value_heads).checked_mul(own.value_dim)?;
                keys.checked_add(values)?.checked_add(2 * own.value_heads)?
            }
            None => 0,
        };
        let experts =
            self.experts.as_ref().map_or(0, |own| (2 * own.intermediate).max(2 * own.shared).max(own.count));
        let widest = heads
            .max(states)
            .max(experts)
            .max(3 * self.hidden)
            .max(2 * self.intermediate)
            .max(2 * self.shared.intermediate)
            .max(self.vocabulary);
        Some(widest.checked_mul(self.hidden)?.max(inputs.checked_mul(self.vocabulary.max(self.hidden))?))
    }
}

/// Base and scaling of the frequencies.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Rope {
    pub(crate) theta: f64,
    pub(crate) scaling: Scaling,
}

/// Scaling of the frequencies of a model that was first made for shorter texts.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum Scaling {
    /// No scaling.
    #[default]
    None,
    /// Linear scaling: all frequencies are divided by this.
    Linear(f64),
    /// Llama 3's scaling: low frequencies are divided, high ones kept, those between interpolated.
    Llama3 {
        factor: f64,
        low: f64,
        high: f64,
        /// Positions that the model was first made for.
        original: f64,
    },
    /// YaRN: a ramp over the dimensions in place of Llama 3's over frequencies; sines and cosines are
    /// multiplied by `attention`.
    Yarn {
        factor: f64,
        beta_fast: f64,
        beta_slow: f64,
        original: f64,
        attention: f64,
        /// True if the ends of the ramp are rounded to whole dimensions.
        truncate: bool,
    },
    /// Only the first of the frequencies rotate, this share of all, and all are divided.
    Proportional { share: f64, factor: f64 },
    /// A factor for each frequency, which is divided by it.
    Factors(Vec<f32>),
}

impl Rope {
    /// Checks the numbers; the error says in words what is wrong.
    pub(crate) fn check(&self) -> Result<(), String> {
        let numbers: Vec<(&str, f64)> = match &self.scaling {
            Scaling::None | Scaling::Factors(_) => Vec::new(),
            Scaling::Linear(factor) => vec![("factor", *factor)],
            Scaling::Proportional { share, factor } => {
                vec![("factor", *factor), ("partial_rotary_factor", *share)]
            }
            Scaling::Llama3 { factor, low, high, original } => {
                if low >= high {
                    return Err(format!("the rope's low_freq_factor {low} is not below {high}"));
                }
                vec![("factor", *factor), ("low_freq_factor", *low), ("original positions", *original)]
            }
            Scaling::Yarn { factor, beta_fast, beta_slow, original, attention, .. } => vec![
                ("factor", *factor),
                ("beta_fast", *beta_fast),
                ("beta_slow", *beta_slow),
                ("original positions", *original),
                ("attention_factor", *attention),
            ],
        };
        let factors: &[f32] = match &self.scaling {
            Scaling::Factors(factors) => factors,
            _ => &[],
        };
        let factors = factors.iter().map(|&factor| ("factor", f64::from(factor)));
        let numbers = numbers.into_iter().chain(factors).chain([("theta", self.theta)]);
        match numbers.into_iter().find(|(_, number)| !(number.is_finite() && *number > 0.0)) {
            Some((name, number)) => Err(format!("the rope's {name} is not a positive number: {number}")),
            None => Ok(()),
        }
    }

    /// Angle that a position adds, in radians, for each pair of the numbers of a head that rotate.
    pub(crate) fn frequencies(&self, head_dim: usize) -> Vec<f64> {
        #[expect(clippy::cast_precision_loss, reason = "sizes of heads are far below 2^52")]
        let frequency = |pair: usize| self.theta.powf(-((2 * pair) as f64 / head_dim as f64));
        let plain = (0..head_dim / 2).map(frequency);
        match &self.scaling {
            Scaling::None => plain.collect(),
            Scaling::Linear(factor) => plain.map(|frequency| frequency / factor).collect(),
            Scaling::Proportional { share, factor } => {
                #[expect(clippy::cast_precision_loss, reason = "sizes of heads are far below 2^52")]
                let rotates = |pair: usize| (2 * (pair + 1)) as f64 <= share * head_dim as f64;
                let scale = |(pair, frequency)| if rotates(pair) { frequency / factor } else { 0.0 };
                plain.enumerate().map(scale).collect()
            }
            &Scaling::Llama3 { factor, low, high, original } => {
                let scale = |frequency: f64| {
                    // Turns within the original positions.
                    let turns = original * frequency / TAU;
                    let kept = ((turns - low) / (high - low)).clamp(0.0, 1.0);
                    frequency * (kept + (1.0 - kept) / factor)
                };
                plain.map(scale).collect()
            }
            &Scaling::Yarn { factor, beta_fast, beta_slow, original, truncate, .. } => {
                #[expect(clippy::cast_precision_loss, reason = "sizes of heads are far below 2^52")]
                let size = head_dim as f64;
                let dimension = |turns: f64| size * (original / (turns * TAU)).ln() / (2.0 * self.theta.ln());
                let (mut low, mut high) = (dimension(beta_fast), dimension(beta_slow));
                if truncate {
                    (low, high) = (low.floor(), high.ceil());
                }
                (low, high) = (low.max(0.0), high.min(size - 1.0));
                // A ramp of no width gets the width of the reference implementation.
                let width = if low == high { 0.001 } else { high - low };
                #[expect(clippy::cast_precision_loss, reason = "sizes of heads are far below 2^52")]
                let scale = |(pair, frequency): (usize, f64)| {
                    let divided = ((pair as f64 - low) / width).clamp(0.0, 1.0);
                    frequency * (divided / factor + 1.0 - divided)
                };
                plain.enumerate().map(scale).collect()
            }
            Scaling::Factors(factors) => {
                plain.zip(factors).map(|(frequency, factor)| frequency / f64::from(*factor)).collect()
            }
        }
    }

    /// Factor of sines and cosines.
    pub(crate) fn amplitude(&self) -> f64 {
        match self.scaling {
            Scaling::Yarn { attention, .. } => attention,
            _ => 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scaling_that_divides_all_is_a_linear_one() {
        let rope = |scaling| Rope { theta: 1e4, scaling };
        let linear = rope(Scaling::Linear(4.0)).frequencies(16);
        // No frequency turns as often as low_freq_factor says.
        let llama3 = Scaling::Llama3 { factor: 4.0, low: 1e6, high: 2e6, original: 64.0 };
        for other in [llama3, Scaling::Factors(vec![4.0; 8])] {
            for (a, b) in rope(other).frequencies(16).iter().zip(&linear) {
                assert!((a - b).abs() <= 1e-12 * b, "{a} {b}");
            }
        }
    }

    #[test]
    fn impossible_scalings_are_refused() {
        let llama3 = |low, high| Scaling::Llama3 { factor: 8.0, low, high, original: 64.0 };
        for scaling in [Scaling::Linear(0.0), Scaling::Linear(f64::NAN), llama3(4.0, 4.0), llama3(-1.0, 4.0)]
        {
            assert!(Rope { theta: 1e4, scaling: scaling.clone() }.check().is_err(), "{scaling:?}");
        }
        assert!(Rope { theta: 0.0, scaling: Scaling::None }.check().is_err());
        assert!(Rope { theta: 1e4, scaling: llama3(1.0, 4.0) }.check().is_ok());
    }
}

//! The transformer that all architectures share, in `f32` on the CPU: what they differ in is [`Config`].
//!
//! Invariant: a pass writes only past the end of the cache, and the caller commits. Matrices that read the
//! same input are one. This file knows no file format.

use std::iter;

use candle_core::Tensor;

use super::delta::{self, DeltaWeights};
use super::experts::{self, ExpertLayer};
use super::layer_inputs::{self, InputLayer, LayerInputs};
use super::ops::{self, HeadNorm, Rotation};
use super::products::matrix::{self, Linear, Matrix, read_matrix};
use super::{attention::Attention, kv::CpuCache};
use crate::model::error::ModelError;
use crate::model::files::config::{Activation, Config, Mixer};
use crate::model::files::weights::Weights;
use crate::model::formats::Instructions;
use crate::vocab::TokenSet;

/// A block of attention and multilayer perceptron.
#[derive(Debug)]
struct Layer {
    /// Weights of the norms.
    norms: LayerNorms<Vec<f32>>,
    /// The product for queries (with gates), keys and values, for gates and inputs of the convolution, or for
    /// all that a state takes.
    qkv: Linear,
    /// Weights of the convolution, if the layer has one in place of attention.
    taps: Option<Vec<f32>>,
    /// Weights of the delta net, if the layer has one.
    delta: Option<DeltaWeights>,
    attention_out: Linear,
    mlp: Mlp,
    /// Weights for the layer's own inputs, if it has some.
    inputs: Option<InputLayer>,
    /// The factor of the stream after the layer.
    factor: f32,
}

/// A layer's multilayer perceptron.
#[derive(Debug)]
enum Mlp {
    Dense {
        /// The product for gate and up.
        gate_up: Linear,
        down: Linear,
    },
    Experts(Box<ExpertLayer>),
}

/// The new tokens of one sequence in a pass.
#[derive(Debug)]
pub(crate) struct Part<'a> {
    /// The tokens, at least one, all in the vocabulary.
    pub(crate) tokens: &'a [u32],
    /// The cache with the tokens before them.
    pub(crate) cache: &'a mut CpuCache,
    /// Number of the last tokens whose logits are wanted; no more than there are tokens.
    pub(crate) wanted: usize,
    /// Sets of the tokens whose logits are wanted, one for each of these rows; all tokens if `None`.
    pub(crate) sets: Option<&'a [TokenSet]>,
    /// Number of the first tokens that will hardly be taken back.
    pub(crate) settled: usize,
}

/// All weights of a model and the rotation tables.
#[derive(Debug)]
pub(crate) struct Transformer {
    config: Config,
    /// The embedding: a row for each token.
    embedding: Matrix,
    /// The output matrix; the embedding if `None`.
    output: Option<Matrix>,
    inputs: Option<LayerInputs>,
    layers: Vec<Layer>,
    norm: Vec<f32>,
    /// Tables of [`Config::ropes`].
    rotations: Vec<Rotation>,
    /// The first layer of caches that each layer takes.
    places: Vec<usize>,
}

pub(crate) const EMBEDDING: &str = "model.embed_tokens.weight";
pub(crate) const OUTPUT: &str = "lm_head.weight";
pub(crate) const NORM: &str = "model.norm.weight";

/// The tensors of a product: names with their outputs, number of inputs, and whether they are biased.
pub(crate) type ProductShape = (Vec<(String, usize)>, usize, bool);

/// The products of a layer: queries, keys and values, or what is in place of them; the output; gate and up;
/// down.
pub(crate) fn products(config: &Config, layer: usize) -> [ProductShape; 4] {
    let name = |part: &str| format!("model.layers.{layer}.{part}");
    let [kv_heads, head_dim] = config.heads_of(layer);
    let (queries, keys) = (config.heads * head_dim, kv_heads * head_dim);
    let (hidden, inner, biases) = (config.hidden, config.intermediate_of(layer), config.biases);
    let product = |parts: &[(&str, usize)], inputs: usize, biased: bool| {
        (parts.iter().map(|(part, outputs)| (name(part), *outputs)).collect(), inputs, biased)
    };
    let [inputs, outputs] = match config.mixer(layer) {
        Mixer::Attention => {
            let asked = if config.gated { 2 * queries } else { queries };
            let parts = [("self_attn.q_proj", asked), ("self_attn.k_proj", keys), ("self_attn.v_proj", keys)];
            let has_keys = layer < config.own_keys();
            let own = if has_keys { 2 + usize::from(config.has_values(layer)) } else { 1 };
            let output = product(&[("self_attn.o_proj", hidden)], queries, biases.attention_out);
            [product(&parts[..own], hidden, biases.qkv), output]
        }
        Mixer::Convolution(_) => {
            let output = product(&[("conv.out_proj", hidden)], hidden, false);
            [product(&[("conv.in_proj", 3 * hidden)], hidden, false), output]
        }
        Mixer::Delta(net) => {
            let parts = [
                ("linear_attn.in_proj_qkv", net.channels()),
                ("linear_attn.in_proj_z", net.values()),
                ("linear_attn.in_proj_b", net.value_heads),
                ("linear_attn.in_proj_a", net.value_heads),
            ];
            let output = product(&[("linear_attn.out_proj", hidden)], net.values(), false);
            [product(&parts, hidden, false), output]
        }
    };
    let gate_up = product(&[("mlp.gate_proj", inner), ("mlp.up_proj", inner)], hidden, biases.mlp);
    [inputs, outputs, gate_up, product(&[("mlp.down_proj", hidden)], inner, biases.mlp)]
}

/// Something of each norm of a layer.
#[derive(Debug)]
pub(crate) struct LayerNorms<T> {
    pub(crate) attention: T,
    pub(crate) mlp: T,
    /// The norms of what attention and the multilayer perceptron give.
    pub(crate) after: Option<[T; 2]>,
    /// The norms of the heads of queries, and of keys.
    pub(crate) heads: [Option<T>; 2],
}

impl LayerNorms<(String, usize)> {
    /// Names and lengths of their weights.
    pub(crate) fn names(config: &Config, layer: usize) -> Self {
        let name = |part: &str| (format!("model.layers.{layer}.{part}.weight"), config.hidden);
        let [_, size] = config.heads_of(layer);
        let head = |part: &str| (format!("model.layers.{layer}.self_attn.{part}.weight"), size);
        let has_heads = config.norms.heads && matches!(config.mixer(layer), Mixer::Attention);
        let after = config.norms.after;
        let mlp = if after { "pre_feedforward_layernorm" } else { "post_attention_layernorm" };
        Self {
            attention: name("input_layernorm"),
            mlp: name(mlp),
            after: after.then(|| ["post_attention_layernorm", "post_feedforward_layernorm"].map(name)),
            heads: [("q_norm", has_heads), ("k_norm", has_heads && layer < config.own_keys())]
                .map(|(part, is_there)| is_there.then(|| head(part))),
        }
    }
}

impl<T> LayerNorms<T> {
    /// Makes something else of each.
    ///
    /// # Errors
    /// The first error of `make`.
    pub(crate) fn try_map<U, E>(self, mut make: impl FnMut(T) -> Result<U, E>) -> Result<LayerNorms<U>, E> {
        let after = match self.after {
            Some([one, other]) => Some([make(one)?, make(other)?]),
            None => None,
        };
        let [queries, keys] = self.heads;
        let heads = [queries.map(&mut make).transpose()?, keys.map(&mut make).transpose()?];
        Ok(LayerNorms { attention: make(self.attention)?, mlp: make(self.mlp)?, after, heads })
    }

    fn into_all(self) -> impl Iterator<Item = T> {
        let some = self.after.into_iter().flatten().chain(self.heads.into_iter().flatten());
        [self.attention, self.mlp].into_iter().chain(some)
    }
}

/// Name and length of the factor of the stream after a layer.
fn factor(layer: usize) -> (String, usize) {
    (format!("model.layers.{layer}.layer_scalar.weight"), 1)
}

/// Returns name and length of the weights of a layer's convolution, if it has one: `[hidden, width]`, the
/// newest token last.
fn taps(config: &Config, layer: usize) -> Option<(String, usize)> {
    let Mixer::Convolution(width) = config.mixer(layer) else { return None };
    Some((format!("model.layers.{layer}.conv.conv.weight"), width * config.hidden))
}

/// Reads the weights of a layer's convolution, if it has one: `[hidden, width]`, the newest token last.
///
/// # Errors
/// If the tensor is missing, has another length, or cannot be read.
pub(crate) fn read_taps(
    weights: &mut dyn Weights,
    config: &Config,
    layer: usize,
) -> Result<Option<Vec<f32>>, ModelError> {
    taps(config, layer).map(|(name, length)| weights.vector(&name, length)).transpose()
}

/// Reads the weights of a norm.
///
/// # Errors
/// If the tensor is missing, has another length, or cannot be read.
pub(crate) fn norm_weights(
    weights: &mut dyn Weights,
    config: &Config,
    (name, length): &(String, usize),
) -> Result<Vec<f32>, ModelError> {
    let less = if config.norms.less_one { 1.0 } else { 0.0 };
    Ok(weights.vector(name, *length)?.into_iter().map(|weight| weight + less).collect())
}

/// Reads the weights of the norm after the last layer, times the factor of the logits.
///
/// # Errors
/// If the tensor is missing, has another length, or cannot be read.
pub(crate) fn last_norm(weights: &mut dyn Weights, config: &Config) -> Result<Vec<f32>, ModelError> {
    let norm = norm_weights(weights, config, &(NORM.to_owned(), config.hidden))?;
    Ok(norm.into_iter().map(|weight| weight * config.scales.logits).collect())
}

/// The names and shapes of all tensors of a model.
pub(crate) fn tensors(config: &Config) -> impl Iterator<Item = (String, Vec<usize>)> {
    let of_layer = move |layer| {
        let of_state = match config.mixer(layer) {
            Mixer::Delta(net) => Some(delta::names(net, layer)),
            _ => None,
        };
        let factor = config.scales.by_layer.then(|| factor(layer));
        let of_inputs = config.layer_inputs.map(|size| layer_inputs::of_layer(config, size, layer));
        let (more, norm) = of_inputs.unzip();
        let vectors = LayerNorms::names(config, layer).into_all().chain(taps(config, layer)).chain(factor);
        let vectors = vectors.chain(of_state.into_iter().flatten());
        let vectors = vectors.chain(norm).map(|(name, length)| (name, vec![length]));
        let mut all = products(config, layer).to_vec();
        if let Some(experts) = &config.experts {
            all.truncate(2);
            all.extend(experts::products(config, experts, layer));
        }
        all.extend(more.into_iter().flatten());
        let products = all.into_iter().flat_map(|(parts, inputs, biased)| {
            parts.into_iter().flat_map(move |(name, outputs)| {
                let bias = biased.then(|| (format!("{name}.bias"), vec![outputs]));
                iter::once((format!("{name}.weight"), vec![outputs, inputs])).chain(bias)
            })
        });
        products.chain(vectors)
    };
    let matrix = |name: &str| (name.to_owned(), vec![config.vocabulary, config.hidden]);
    let output = (!config.tied).then(|| matrix(OUTPUT));
    let ends = iter::once(matrix(EMBEDDING)).chain(output).chain([(NORM.to_owned(), vec![config.hidden])]);
    let ends = ends.chain(config.layer_inputs.into_iter().flat_map(|size| layer_inputs::names(config, size)));
    ends.chain((0..config.layers).flat_map(of_layer))
}

/// Bytes that all weights take in memory. Reads none of them.
///
/// # Errors
/// If a tensor is missing, or has another shape than `config` says or an unknown number format.
pub(crate) fn size(weights: &dyn Weights, config: &Config) -> Result<u64, ModelError> {
    tensors(config).try_fold(0_u64, |bytes, (name, shape)| {
        let columns = shape.last().copied().unwrap_or(1);
        let rows = shape.iter().product::<usize>() / columns.max(1);
        let size = Matrix::size(weights.format(&name, &shape)?, rows, columns);
        Ok(bytes.saturating_add(size))
    })
}

impl Layer {
    fn load(weights: &mut dyn Weights, config: &Config, index: usize) -> Result<Self, ModelError> {
        let mut linear =
            |(parts, inputs, biased): ProductShape| Linear::load(weights, &parts, inputs, biased);
        let [qkv, attention_out, gate_up, down] = products(config, index);
        let (qkv, attention_out) = (linear(qkv)?, linear(attention_out)?);
        let mlp = match &config.experts {
            None => Mlp::Dense { gate_up: linear(gate_up)?, down: linear(down)? },
            Some(own) => Mlp::Experts(Box::new(ExpertLayer::load(weights, config, own, index)?)),
        };
        let norms = LayerNorms::names(config, index);
        let norms = norms.try_map(|named| norm_weights(weights, config, &named))?;
        let taps = read_taps(weights, config, index)?;
        let delta = DeltaWeights::load(weights, config, index)?;
        let inputs = config.layer_inputs.map(|size| InputLayer::load(weights, config, size, index));
        let inputs = inputs.transpose()?;
        let factor = match factor(index) {
            (name, length) if config.scales.by_layer => weights.vector(&name, length)?.iter().product(),
            _ => 1.0,
        };
        Ok(Self { norms, qkv, taps, delta, attention_out, mlp, inputs, factor })
    }
}

impl Transformer {
    /// Reads and converts every weight once; makes tables for `context` positions.
    ///
    /// # Errors
    /// If a tensor is missing, has another shape than `config` says, or cannot be read.
    pub(crate) fn load(
        weights: &mut dyn Weights,
        config: Config,
        context: usize,
    ) -> Result<Self, ModelError> {
        let vocabulary = config.vocabulary;
        let embedding = read_matrix(weights, &[(EMBEDDING, vocabulary)], config.hidden)?;
        let output = match config.tied {
            true => None,
            false => Some(read_matrix(weights, &[(OUTPUT, vocabulary)], config.hidden)?),
        };
        let inputs = config.layer_inputs.map(|size| LayerInputs::load(weights, &config, size)).transpose()?;
        Ok(Self {
            embedding,
            output,
            inputs,
            layers: (0..config.layers)
                .map(|index| Layer::load(weights, &config, index))
                .collect::<Result<_, _>>()?,
            norm: last_norm(weights, &config)?,
            places: config.places(),
            rotations: config.ropes().map(|(rope, size)| Rotation::new(context, size, rope)).collect(),
            config,
        })
    }

    /// Chooses the instructions; see [`Matrix::multiply_with`].
    pub(crate) fn multiply_with(&mut self, instructions: Option<Instructions>) {
        let choose = |linear: &mut Linear| linear.matrix_mut().multiply_with(instructions);
        for layer in &mut self.layers {
            [&mut layer.qkv, &mut layer.attention_out].into_iter().for_each(choose);
            match &mut layer.mlp {
                Mlp::Dense { gate_up, down } => [gate_up, down].into_iter().for_each(choose),
                Mlp::Experts(experts) => experts.linears_mut().for_each(choose),
            }
            layer.inputs.iter_mut().flat_map(InputLayer::linears_mut).for_each(choose);
        }
        self.inputs.iter_mut().map(LayerInputs::linear_mut).for_each(choose);
        self.embedding.multiply_with(instructions);
        if let Some(output) = &mut self.output {
            output.multiply_with(instructions);
        }
    }

    /// Sizes and constants.
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// Runs the tokens of all parts, each after those in its cache, writes their keys and values there, and
    /// returns the rows of logits that are wanted, part after part. Does not commit.
    ///
    /// The rows are made at the beginning of `memory`, whatever is in it.
    ///
    /// A part's rows do not depend on the other parts: products, norms and sums are made row by row, and
    /// attention sees one cache.
    ///
    /// # Errors
    /// If the tensor library fails, also when a cache is too short.
    pub(crate) fn forward(&self, parts: &mut [Part<'_>], memory: Vec<f32>) -> candle_core::Result<Vec<f32>> {
        let tokens: Vec<u32> = parts.iter().flat_map(|part| part.tokens).copied().collect();
        let Config { norm_epsilon: epsilon, activation, scales, .. } = self.config;
        let mut x = scaled(self.embedding.rows(&tokens)?, scales.embedding)?;
        let mut own = self.inputs.as_ref().map(|inputs| inputs.of(&tokens, &x)).transpose()?;
        for (index, layer) in self.layers.iter().enumerate() {
            let Some(attended) = self.attention(layer, index, &x, parts)? else { return Ok(memory) };
            x = attended;
            if index + 1 == self.config.own_keys() {
                own = own.and_then(|own| wanted(&own, parts).transpose()).transpose()?;
            }
            let hidden = ops::rms_norm(&x, &layer.norms.mlp, epsilon)?;
            let norm = layer.norms.after.as_ref().map(|[_, mlp]| mlp);
            x = match &layer.mlp {
                Mlp::Dense { gate_up, down } => {
                    self.added(&x, down, &ops::gated(&gate_up.apply(&hidden)?, activation)?, norm)?
                }
                Mlp::Experts(experts) => self.normalised(&x, experts.apply(&hidden)?, norm)?,
            };
            if let (Some(inputs), Some(own)) = (&layer.inputs, &own) {
                x = inputs.add(&x, own, index, activation)?;
            }
            x = scaled(x, layer.factor)?;
        }
        let hidden = ops::rms_norm(&x, &self.norm, epsilon)?;
        let output = self.output.as_ref().unwrap_or(&self.embedding);
        let hidden = hidden.flatten_all()?.to_vec1::<f32>()?;
        let mut sets: Vec<Option<&TokenSet>> = Vec::new();
        for part in parts {
            match part.sets {
                Some(own) => sets.extend(own.iter().map(Some)),
                None => sets.resize(sets.len() + part.wanted, None),
            }
        }
        let mut rows = matrix::product(output, &hidden, &sets, memory);
        if let Some(cap) = scales.cap {
            // Logits that are not wanted are minus infinity.
            let wanted = rows.iter_mut().filter(|logit| logit.is_finite());
            wanted.for_each(|logit| *logit = cap * (*logit / cap).tanh());
        }
        Ok(rows)
    }

    /// The stream `x` and what a product of `inputs` gives, normalised by `norm` if there is one.
    fn added(
        &self,
        x: &Tensor,
        product: &Linear,
        inputs: &Tensor,
        norm: Option<&Vec<f32>>,
    ) -> candle_core::Result<Tensor> {
        match norm {
            None if self.config.scales.added == 1.0 => product.apply_plus(inputs, x),
            _ => self.normalised(x, product.apply(inputs)?, norm),
        }
    }

    /// The stream `x` and what a part of a layer gives, normalised by `norm` if there is one.
    fn normalised(&self, x: &Tensor, given: Tensor, norm: Option<&Vec<f32>>) -> candle_core::Result<Tensor> {
        let given = match norm {
            Some(norm) => ops::rms_norm(&given, norm, self.config.norm_epsilon)?,
            None => given,
        };
        x + scaled(given, self.config.scales.added)?
    }

    /// Computes `x` (`[n, hidden]`) plus the attention of layer `index`. The last layer with keys of its own
    /// computes only the rows whose logits are wanted (`None` if none are): of the others, later passes need
    /// keys and values alone. Layers after it get only these.
    fn attention(
        &self,
        layer: &Layer,
        index: usize,
        x: &Tensor,
        parts: &mut [Part<'_>],
    ) -> candle_core::Result<Option<Tensor>> {
        let own = self.config.own_keys();
        let is_last = index + 1 == own;
        let kept = match is_last {
            true => wanted(x, parts)?,
            false => Some(x.clone()),
        };
        let qkv = layer.qkv.apply(&ops::rms_norm(x, &layer.norms.attention, self.config.norm_epsilon)?)?;
        let mut attended = Vec::with_capacity(parts.len());
        let mut start = 0;
        for part in parts {
            let held = if index < own { part.tokens.len() } else { part.wanted };
            let rows = qkv.narrow(0, start, held)?;
            start += held;
            let count = if is_last { part.wanted } else { held };
            let place = self.places[index];
            attended.extend(match (&layer.taps, &layer.delta) {
                (Some(taps), _) => self.convolve(taps, place, &rows, part.cache, count)?,
                (None, Some(delta)) => {
                    let places = [part.cache.len(), part.settled, count];
                    delta.apply(&rows, part.cache.state(place)?, places)?
                }
                (None, None) => self.attend(layer, index, &rows, part, count)?,
            });
        }
        let norm = layer.norms.after.as_ref().map(|[attention, _]| attention);
        kept.map(|kept| self.added(&kept, &layer.attention_out, &joined(attended)?, norm)).transpose()
    }

    /// Computes the attention of the last `count` tokens of one part to its cache, after writing keys and
    /// values of all its rows there, if the layer has its own; `None` if `count` is zero.
    fn attend(
        &self,
        layer: &Layer,
        index: usize,
        qkv: &Tensor,
        part: &mut Part<'_>,
        count: usize,
    ) -> candle_core::Result<Option<Tensor>> {
        let Config { heads, norm_epsilon: epsilon, .. } = self.config;
        let [kv_heads, head_dim] = self.config.heads_of(index);
        let (cache, place) = (&mut *part.cache, self.places[index]);
        let position = cache.len();
        let window = self.config.window_of(index);
        let norm = |which: usize| Some(HeadNorm { weight: layer.norms.heads[which].as_ref()?, epsilon });
        let rotation = self.config.rope_of(index).and_then(|rope| self.rotations.get(rope));

        let (queries_width, keys_width) = (heads * head_dim, kv_heads * head_dim);
        let all = if self.config.gated { 2 * queries_width } else { queries_width };
        if index < self.config.own_keys() {
            let keys = qkv.narrow(1, all, keys_width)?;
            let values = qkv.narrow(1, qkv.dim(1)? - keys_width, keys_width)?;
            let keys = ops::split_and_rotate(&keys, head_dim, norm(1), rotation, position)?;
            let ones = self.config.norms.values.then(|| vec![1.0; head_dim]);
            let norm = ones.as_ref().map(|weight| HeadNorm { weight, epsilon });
            let values = ops::split_and_rotate(&values, head_dim, norm, None, position)?;
            cache.extend(place, &keys, &values)?;
        }
        if count == 0 {
            return Ok(None);
        }
        let (keys, values) = cache.sides(place)?;
        let before = qkv.dim(0)? - count;
        let position = position + part.tokens.len() - count;
        let queries = qkv.narrow(1, 0, all)?.narrow(0, before, count)?;
        // Of each head come its queries, and then its gates.
        let part = |which: usize| {
            let heads = queries.reshape((count, heads, 2, head_dim))?.narrow(2, which, 1)?;
            heads.contiguous()?.reshape((count, queries_width))
        };
        let (queries, gates) = match self.config.gated {
            true => (part(0)?, Some(part(1)?)),
            false => (queries.clone(), None),
        };
        let queries = ops::split_and_rotate(&queries, head_dim, norm(0), rotation, position)?;
        let scale = self.config.attention_scale();
        let attended = Attention { position, first_key: 0, window }.apply(scale, &queries, [keys, values])?;
        match gates {
            Some(gates) => ops::gated(&Tensor::cat(&[gates, attended], 1)?, Activation::Logistic).map(Some),
            None => Ok(Some(attended)),
        }
    }

    /// Computes the convolution of the last `count` rows of one part (gates of the inputs, of the outputs,
    /// inputs), after writing the inputs of all its rows to its cache; `None` if `count` is zero.
    fn convolve(
        &self,
        taps: &[f32],
        place: usize,
        rows: &Tensor,
        cache: &mut CpuCache,
        count: usize,
    ) -> candle_core::Result<Option<Tensor>> {
        let hidden = self.config.hidden;
        let part = |which: usize| rows.narrow(1, which * hidden, hidden);
        let inputs = (part(0)? * part(2)?)?;
        let seen = cache.extend_rows(place, &inputs, taps.len() / hidden - 1)?;
        if count == 0 {
            return Ok(None);
        }
        let gates = part(1)?.narrow(0, rows.dim(0)? - count, count)?;
        let outputs = ops::convolution(&seen, taps, hidden, count);
        (gates * Tensor::from_vec(outputs, (count, hidden), rows.device())?).map(Some)
    }
}

/// All numbers times a factor.
fn scaled(x: Tensor, factor: f32) -> candle_core::Result<Tensor> {
    if factor == 1.0 { Ok(x) } else { x.affine(f64::from(factor), 0.0) }
}

/// Rows of `x` whose logits are wanted; `None` if there is none.
fn wanted(x: &Tensor, parts: &[Part<'_>]) -> candle_core::Result<Option<Tensor>> {
    let mut rows = Vec::with_capacity(parts.len());
    let mut end = 0;
    for part in parts {
        end += part.tokens.len();
        if part.wanted > 0 {
            rows.push(x.narrow(0, end - part.wanted, part.wanted)?);
        }
    }
    if rows.is_empty() { Ok(None) } else { joined(rows).map(Some) }
}

/// Concatenates rows, one below the other.
fn joined(mut rows: Vec<Tensor>) -> candle_core::Result<Tensor> {
    if rows.len() == 1 { Ok(rows.swap_remove(0)) } else { Tensor::cat(&rows, 0) }
}

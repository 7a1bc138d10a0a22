//! The transformer that all architectures share, as tensors, and its cache: keys and values of the
//! tokens seen, in tensors allocated once.
//!
//! Invariants: a pass writes only past the end of the cache, and the caller commits. Positions `0..len` of
//! every layer are valid; garbage past them is overwritten by the next write. So truncation only lowers
//! `len`, and a pass that fails before `commit` has changed nothing that can be seen. The numbers of the
//! stream are those of the place; norms, rotation, softmax and logits are computed in 32 bits. This file
//! knows no file format.

use candle_core::{DType, Device, Result, Tensor};

use super::factor::{Factor, Product, multiplicable};
use super::placement::Place;
use crate::model::candle::card::{LayerWeights, ModelWeights};
use crate::model::cpu::transformer::{
    EMBEDDING, LayerNorms, OUTPUT, last_norm, norm_weights, products, read_taps,
};
use crate::model::cpu::{attention::Attention, ops::Rotation, products::matrix};
use crate::model::error::ModelError;
use crate::model::files::config::{Activation, Config};
use crate::model::files::weights::Weights;

/// One block.
#[derive(Debug)]
struct Layer {
    norms: LayerNorms<Tensor>,
    /// Queries, keys, values; or gates and inputs of the convolution.
    qkv: Product,
    /// Weights of the convolution, if there is one in place of attention: for each token it sees, the newest
    /// last, a row `[1, hidden]`.
    taps: Option<Vec<Tensor>>,
    attention_out: Product,
    /// Gate, up.
    gate_up: Product,
    down: Product,
}

/// All weights of a model and the rotation tables.
#[derive(Debug)]
pub(super) struct TensorTransformer {
    config: Config,
    /// A row for each token.
    embedding: Factor,
    /// The embedding if it is tied.
    output: Factor,
    layers: Vec<Layer>,
    norm: Tensor,
    place: Place,
    /// Cosines and sines, `[context, head_dim / 2]`, of [`Config::ropes`].
    rotations: Vec<[Tensor; 2]>,
    /// The first layer of the cache that each layer takes.
    places: Vec<usize>,
}

/// The data of a pass besides weights and cache.
struct PassContext {
    position: usize,
    count: usize,
    /// Cosines and sines of the positions, of [`Config::ropes`].
    rotations: Vec<[Tensor; 2]>,
    /// The first key and what is added to the scores, for layers without a window and for those with one.
    views: [(usize, Option<Tensor>); 2],
}

impl Layer {
    fn load(
        weights: &mut dyn Weights,
        config: &Config,
        index: usize,
        place: &Place,
    ) -> std::result::Result<Self, ModelError> {
        let mut product = |which: usize| -> std::result::Result<Product, ModelError> {
            let (parts, inputs, biased) = &products(config, index)[which];
            let factor = Factor::load(weights, &matrix::matrix_names(parts), *inputs, place)?;
            let bias = biased.then(|| matrix::bias(weights, parts)).transpose()?;
            let bias = bias.map(|bias| place.vector(&bias)?.to_dtype(place.precision));
            Ok(Product { factor, bias: bias.transpose()? })
        };
        let (qkv, attention_out) = (product(0)?, product(1)?);
        let (gate_up, down) = (product(2)?, product(3)?);
        let norms = LayerNorms::names(config, index)
            .try_map(|named| Ok::<_, ModelError>(place.vector(&norm_weights(weights, config, &named)?)?))?;
        let taps = read_taps(weights, config, index)?.map(|taps| -> Result<Vec<Tensor>> {
            let taps = place.vector(&taps)?.reshape((config.hidden, taps.len() / config.hidden))?.t()?;
            taps.contiguous()?.chunk(taps.dim(0)?, 0)
        });
        Ok(Self { norms, qkv, taps: taps.transpose()?, attention_out, gate_up, down })
    }
}

impl TensorTransformer {
    /// Reads all weights and takes them to `place`; tables for `context` positions.
    ///
    /// # Errors
    /// If a tensor is missing, has another shape than `config` says, or cannot be read or taken there.
    pub(super) fn load(
        weights: &mut dyn Weights,
        config: Config,
        context: usize,
        place: &Place,
    ) -> std::result::Result<Self, ModelError> {
        let vocabulary = config.vocabulary;
        let embedding = Factor::load(weights, &[(EMBEDDING, vocabulary)], config.hidden, place)?;
        let output = match config.tied {
            true => embedding.clone(),
            false => Factor::load(weights, &[(OUTPUT, vocabulary)], config.hidden, place)?,
        };
        let table = |values: &[f32]| {
            place.vector(values).and_then(|all| all.reshape((context, config.rotary_dim / 2)))
        };
        let rotations = config.ropes().map(|(rope, size)| {
            let rotation = Rotation::new(context, size, rope);
            let (cos, sin) = rotation.tables();
            Ok::<_, ModelError>([table(cos)?, table(sin)?])
        });
        let rotations = rotations.collect::<std::result::Result<_, _>>()?;
        Ok(Self {
            embedding,
            output,
            layers: (0..config.layers)
                .map(|index| Layer::load(weights, &config, index, place))
                .collect::<std::result::Result<_, _>>()?,
            norm: place.vector(&last_norm(weights, &config)?)?,
            rotations,
            places: config.places(),
            place: place.clone(),
            config,
        })
    }

    /// Sizes and constants.
    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    /// All tensors, with those of the cache, as the card's kernels take them; `None` if weights are kept in
    /// Candle's blocks.
    pub(super) fn weights(&self, cache: &KvCache) -> Option<ModelWeights> {
        let rotation = self.rotations.first()?;
        let layers = self.layers.iter().zip(&cache.layers).map(|(layer, [keys, values])| {
            Some(LayerWeights {
                attention_norm: layer.norms.attention.clone(),
                qkv: layer.qkv.card()?,
                head_norms: layer.norms.heads.clone(),
                attention_out: layer.attention_out.card()?,
                mlp_norm: layer.norms.mlp.clone(),
                gate_up: layer.gate_up.card()?,
                down: layer.down.card()?,
                keys: keys.clone(),
                values: values.clone(),
            })
        });
        Some(ModelWeights {
            numbers: self.place.precision,
            embedding: self.embedding.card(None)?.parts.pop()?,
            output: self.output.card(None)?,
            norm: self.norm.clone(),
            rotation: rotation.clone(),
            layers: layers.collect::<Option<_>>()?,
        })
    }

    /// Runs `tokens` (at least one, all in the vocabulary) after those in the cache, writes their keys and
    /// values there, and returns the last `wanted` rows of logits (at least one, at most as many as tokens)
    /// in 32 bits. Does not commit, and does not wait.
    ///
    /// # Errors
    /// If the tensor library fails, also when the cache is too short.
    pub(super) fn forward(&self, tokens: &[u32], wanted: usize, cache: &KvCache) -> Result<Tensor> {
        let count = tokens.len();
        let pass = self.prepare(count, cache.len())?;
        let tokens = Tensor::new(tokens, &self.place.device)?;
        let Config { norm_epsilon: epsilon, intermediate, scales, .. } = self.config;
        let mut x = scaled(self.embedding.rows(&tokens, self.place.precision)?, scales.embedding)?;
        for (index, layer) in self.layers.iter().enumerate() {
            let [attention, mlp] = match &layer.norms.after {
                Some(norms) => norms.each_ref().map(Some),
                None => [None; 2],
            };
            x = self.added(&x, self.attention(layer, index, &x, cache, &pass)?, attention)?;
            let hidden = layer.gate_up.apply(&rms_norm(&x, &layer.norms.mlp, epsilon)?)?;
            let gate = hidden.narrow(1, 0, intermediate)?;
            let gate = match self.config.activation {
                Activation::Silu => gate.silu()?,
                Activation::GeluTanh => gate.gelu()?,
                Activation::Logistic => (gate.neg()?.exp()? + 1.0)?.recip()?,
            };
            let up = hidden.narrow(1, intermediate, intermediate)?;
            x = self.added(&x, layer.down.apply(&(gate * up)?)?, mlp)?;
        }
        x = x.narrow(0, count - wanted, wanted)?;
        let hidden = rms_norm(&x, &self.norm, epsilon)?;
        let logits = self.output.product(&hidden)?.to_dtype(DType::F32)?;
        match scales.cap.map(f64::from) {
            Some(cap) => (logits / cap)?.tanh()? * cap,
            None => Ok(logits),
        }
    }

    /// The stream `x` and what a part of a layer gives, normalised by `norm` if there is one.
    fn added(&self, x: &Tensor, given: Tensor, norm: Option<&Tensor>) -> Result<Tensor> {
        let given = match norm {
            Some(norm) => rms_norm(&given, norm, self.config.norm_epsilon)?,
            None => given,
        };
        x + scaled(given, self.config.scales.added)?
    }

    fn prepare(&self, count: usize, position: usize) -> Result<PassContext> {
        let view = |window: Option<usize>| {
            let first_key = window.map_or(0, |window| (position + 1).saturating_sub(window));
            let attention = Attention { position, first_key, window };
            // One query sees all keys from the first on.
            let unseen = (count > 1).then(|| self.unseen(attention, count));
            Ok::<_, candle_core::Error>((first_key, unseen.transpose()?))
        };
        let window = self.config.window.as_ref().map(|window| window.tokens);
        let rotations = self
            .rotations
            .iter()
            .map(|[cos, sin]| Ok([cos.narrow(0, position, count)?, sin.narrow(0, position, count)?]));
        Ok(PassContext {
            position,
            count,
            rotations: rotations.collect::<Result<_>>()?,
            views: [view(None)?, view(window)?],
        })
    }

    /// Minus infinity where one of `count` queries does not see a key, otherwise zero: `[count, keys]`.
    fn unseen(&self, attention: Attention, count: usize) -> Result<Tensor> {
        let keys = attention.position + count - attention.first_key;
        let mut values = vec![f32::NEG_INFINITY; count * keys];
        for (index, row) in values.chunks_exact_mut(keys).enumerate() {
            row[attention.visible(index, keys)].fill(0.0);
        }
        Tensor::from_vec(values, (count, keys), &self.place.device)
    }

    /// Computes the attention of layer `index` for the stream `x` (`[n, hidden]`).
    fn attention(
        &self,
        layer: &Layer,
        index: usize,
        x: &Tensor,
        cache: &KvCache,
        pass: &PassContext,
    ) -> Result<Tensor> {
        let Config { heads, kv_heads, head_dim, norm_epsilon: epsilon, .. } = self.config;
        let qkv = layer.qkv.apply(&rms_norm(x, &layer.norms.attention, epsilon)?)?;
        if let Some(taps) = &layer.taps {
            return layer.attention_out.apply(&self.convolve(taps, self.places[index], &qkv, cache)?);
        }
        let (queries_width, keys_width) = (heads * head_dim, kv_heads * head_dim);
        let mut queries = split(&qkv.narrow(1, 0, queries_width)?, head_dim)?;
        let mut keys = split(&qkv.narrow(1, queries_width, keys_width)?, head_dim)?;
        let values = split(&qkv.narrow(1, queries_width + keys_width, keys_width)?, head_dim)?;
        if let [Some(of_queries), Some(of_keys)] = &layer.norms.heads {
            queries = rms_norm(&queries, of_queries, epsilon)?;
            keys = rms_norm(&keys, of_keys, epsilon)?;
        }
        if let Some([cos, sin]) = self.config.rope_of(index).and_then(|rope| pass.rotations.get(rope)) {
            queries = rotate(&queries, cos, sin)?;
            keys = rotate(&keys, cos, sin)?;
        }
        let (first_key, unseen) = &pass.views[usize::from(self.config.window_of(index).is_some())];
        let (keys, values) = cache.extend(self.places[index], &keys, &values, *first_key)?;
        debug_assert_eq!(keys.dims().get(1), Some(&(pass.position + pass.count - first_key)));
        let scale = self.config.attention_scale();
        layer.attention_out.apply(&attend(&queries, [&keys, &values], scale, unseen.as_ref())?)
    }

    /// Computes the convolution of rows of gates of the inputs, gates of the outputs, and inputs, which are
    /// kept in the cache in the place of keys and values, from layer `place` of it on.
    fn convolve(&self, taps: &[Tensor], place: usize, rows: &Tensor, cache: &KvCache) -> Result<Tensor> {
        let Config { hidden, kv_heads, head_dim, .. } = self.config;
        let (count, side) = (rows.dim(0)?, kv_heads * head_dim);
        let part = |which: usize| rows.narrow(1, which * hidden, hidden);
        let inputs = (part(0)? * part(2)?)?;
        let layers = hidden.div_ceil(2 * side);
        let inputs = inputs.pad_with_zeros(1, 0, 2 * layers * side - hidden)?;
        let before = cache.len().min(taps.len() - 1);
        let mut seen = Vec::with_capacity(2 * layers);
        for layer in 0..layers {
            let of = |index: usize| split(&inputs.narrow(1, index * side, side)?, head_dim);
            let (keys, values) = (of(2 * layer)?, of(2 * layer + 1)?);
            let (keys, values) = cache.extend(place + layer, &keys, &values, cache.len() - before)?;
            for held in [keys, values] {
                seen.push(held.transpose(0, 1)?.contiguous()?.reshape((before + count, side))?);
            }
        }
        let seen = Tensor::cat(&seen, 1)?.narrow(1, 0, hidden)?.to_dtype(DType::F32)?;
        // Tokens before the first count as zero.
        let seen = seen.pad_with_zeros(0, taps.len() - 1 - before, 0)?;
        let mut sum = Tensor::zeros((count, hidden), DType::F32, rows.device())?;
        for (token, taps) in taps.iter().enumerate() {
            sum = (sum + seen.narrow(0, token, count)?.broadcast_mul(taps)?)?;
        }
        part(1)? * sum.to_dtype(rows.dtype())?
    }
}

/// Root-mean-square normalisation over the last dimension, in 32 bits; the result has the numbers of `x`.
pub(super) fn rms_norm(x: &Tensor, weight: &Tensor, epsilon: f32) -> Result<Tensor> {
    let wide = x.to_dtype(DType::F32)?.contiguous()?;
    candle_nn::ops::rms_norm(&wide, weight, epsilon)?.to_dtype(x.dtype())
}

/// All numbers times a factor.
fn scaled(x: Tensor, factor: f32) -> Result<Tensor> {
    if factor == 1.0 { Ok(x) } else { x.affine(f64::from(factor), 0.0) }
}

/// Rows `[n, heads * head_dim]` -> heads `[heads, n, head_dim]`, contiguous.
pub(super) fn split(x: &Tensor, head_dim: usize) -> Result<Tensor> {
    let (count, width) = x.dims2()?;
    x.reshape((count, width / head_dim, head_dim))?.transpose(0, 1)?.contiguous()
}

/// Rotates each pair of numbers (`i`, `i + head_dim / 2`) of heads `[heads, n, head_dim]` by the angles of
/// its row: cosines and sines `[n, head_dim / 2]`. In 32 bits.
fn rotate(x: &Tensor, cos: &Tensor, sin: &Tensor) -> Result<Tensor> {
    let wide = x.to_dtype(DType::F32)?.contiguous()?.unsqueeze(0)?;
    candle_nn::rotary_emb::rope(&wide, cos, sin)?.squeeze(0)?.to_dtype(x.dtype())
}

/// Attention of `queries` (`[heads, n, head_dim]`) to `keys` and `values` (`[kv_heads, keys, head_dim]`):
/// rows `[n, heads * head_dim]`. Neighbouring heads share a key head; the products of queries and keys count
/// `scale` times. `unseen` (`[n, keys]`) is added to the scores: minus infinity where a query does not see a
/// key.
pub(super) fn attend(
    queries: &Tensor,
    [keys, values]: [&Tensor; 2],
    scale: f32,
    unseen: Option<&Tensor>,
) -> Result<Tensor> {
    let (heads, count, head_dim) = queries.dims3()?;
    let (kv_heads, key_count, _) = keys.dims3()?;
    let group = heads / kv_heads;
    let queries = queries.reshape((kv_heads, group * count, head_dim))?;
    let scores = multiplicable(&queries)?.matmul(&multiplicable(keys)?.transpose(1, 2)?)?;
    let scores = (scores.to_dtype(queries.dtype())?.to_dtype(DType::F32)? * f64::from(scale))?;
    let scores = match unseen {
        Some(unseen) => {
            let scores = scores.reshape((kv_heads, group, count, key_count))?;
            scores.broadcast_add(unseen)?.reshape((kv_heads, group * count, key_count))?
        }
        None => scores,
    };
    let weights = candle_nn::ops::softmax_last_dim(&scores.contiguous()?)?.to_dtype(values.dtype())?;
    let attended = multiplicable(&weights)?.matmul(&multiplicable(values)?)?.to_dtype(values.dtype())?;
    let attended = attended.reshape((heads, count, head_dim))?;
    attended.transpose(0, 1)?.reshape((count, heads * head_dim))
}

/// Keys and values of all layers.
#[derive(Debug)]
pub(in crate::model::candle) struct KvCache {
    /// Keys and values of each layer, `[kv_heads, context, head_dim]`.
    layers: Vec<[Tensor; 2]>,
    context: usize,
    len: usize,
}

impl KvCache {
    /// Empty caches of `texts` texts, each for `context` tokens: `2 * layers * kv_heads * context * head_dim`
    /// numbers. Those of a layer are parts of one tensor, one text behind the other.
    ///
    /// # Errors
    /// If the tensors cannot be made.
    pub(in crate::model::candle) fn several(
        texts: usize,
        layers: usize,
        [kv_heads, context, head_dim]: [usize; 3],
        numbers: DType,
        device: &Device,
    ) -> Result<Vec<Self>> {
        let mut all: Vec<Self> =
            (0..texts).map(|_| Self { layers: Vec::with_capacity(layers), context, len: 0 }).collect();
        for _ in 0..layers {
            let zeros = || Tensor::zeros((texts * kv_heads, context, head_dim), numbers, device);
            let (keys, values) = (zeros()?, zeros()?);
            for (text, cache) in all.iter_mut().enumerate() {
                let part = |whole: &Tensor| whole.narrow(0, text * kv_heads, kv_heads);
                cache.layers.push([part(&keys)?, part(&values)?]);
            }
        }
        Ok(all)
    }

    /// Number of tokens held.
    pub(in crate::model::candle) fn len(&self) -> usize {
        self.len
    }

    /// Number of tokens that fit.
    pub(in crate::model::candle) fn context(&self) -> usize {
        self.context
    }

    /// Writes keys and values (`[kv_heads, n, head_dim]`) of the tokens after the ones held, and returns
    /// views of positions `from .. len + n` of both.
    ///
    /// # Errors
    /// If the shapes do not fit or there is no such layer.
    pub(in crate::model::candle) fn extend(
        &self,
        layer: usize,
        keys: &Tensor,
        values: &Tensor,
        from: usize,
    ) -> Result<(Tensor, Tensor)> {
        let Some([all_keys, all_values]) = self.layers.get(layer) else {
            candle_core::bail!("no layer {layer} in the cache");
        };
        let (_kv_heads, new, _head_dim) = keys.dims3()?;
        all_keys.slice_set(keys, 1, self.len)?;
        all_values.slice_set(values, 1, self.len)?;
        let count = (self.len + new).saturating_sub(from);
        Ok((all_keys.narrow(1, from, count)?, all_values.narrow(1, from, count)?))
    }

    /// Commits `count` tokens, which were written to every layer.
    pub(in crate::model::candle) fn commit(&mut self, count: usize) {
        self.len = (self.len + count).min(self.context);
    }

    /// Forgets all but the first `len` tokens; `len` is at most what is held. Constant time.
    pub(in crate::model::candle) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(value: f32, count: usize) -> Tensor {
        Tensor::full(value, (2, count, 4), &Device::Cpu).unwrap()
    }

    #[test]
    fn the_cache_holds_committed_and_not_truncated_positions() {
        let mut caches = KvCache::several(2, 1, [2, 5, 4], DType::F32, &Device::Cpu).unwrap();
        let other = caches.pop().unwrap();
        other.extend(0, &filled(7.0, 5), &filled(7.0, 5), 0).unwrap();
        let mut cache = caches.pop().unwrap();
        let (keys, _) = cache.extend(0, &filled(1.0, 3), &filled(1.0, 3), 0).unwrap();
        assert_eq!(keys.dims(), [2, 3, 4]);
        cache.commit(3);
        cache.truncate(1);
        cache.truncate(2);
        assert_eq!((cache.len(), cache.context()), (1, 5));
        let (_, values) = cache.extend(0, &filled(2.0, 1), &filled(2.0, 1), 0).unwrap();
        let values: Vec<Vec<Vec<f32>>> = values.to_vec3().unwrap();
        assert_eq!(values[1], [[1.0; 4], [2.0; 4]]);
        // Another text's keys are its own.
        let (keys, _) = other.extend(0, &filled(7.0, 1), &filled(7.0, 1), 0).unwrap();
        assert_eq!(keys.to_vec3::<f32>().unwrap(), [[[7.0; 4]], [[7.0; 4]]]);
        assert!(cache.extend(0, &filled(0.0, 5), &filled(0.0, 5), 0).is_err());
        assert!(cache.extend(1, &filled(0.0, 1), &filled(0.0, 1), 0).is_err());
    }
}

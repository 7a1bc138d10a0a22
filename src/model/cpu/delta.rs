//! The gated delta net that some layers have in place of attention (arXiv 2412.06464), and its state in a
//! cache.
//!
//! A state is a matrix for each head of values, of which no earlier one can be had again. So a pass leaves it
//! where it was, and keeps what its tokens would change. The next pass makes those changes that were not
//! taken back, by one reading of the matrix for all of them. Truncation within a pass costs nothing, and
//! nothing is copied while all drafted tokens are accepted.
//!
//! Invariants: each change is made by the same operations in the same order, whenever it is made, so rows
//! have the same bits however tokens are split into passes and whatever was taken back between them.

use candle_core::{Result, Tensor};
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::{ops, products::matrix::PARALLEL};
use crate::model::error::ModelError;
use crate::model::files::config::{Activation, Config, DeltaNet, Mixer};
use crate::model::files::weights::Weights;

/// Tokens of a pass, at most, that can be taken back without running tokens again: as many as the longest
/// draft has.
pub(crate) const KEPT: usize = 64;

/// Columns of a state that are summed at a time, in registers.
const COLUMNS: usize = 64;

/// Added to the sum of squares by which queries and keys are divided, as `transformers` does.
const EPSILON: f32 = 1e-6;

/// The weights of a layer beside its products.
#[derive(Debug)]
pub(crate) struct DeltaWeights {
    net: DeltaNet,
    /// Weights of the convolution, `[channels, width]`, the newest token last.
    taps: Vec<f32>,
    /// Minus the rate at which the state of each head of values fades, and what is added to its steps.
    rates: Vec<f32>,
    steps: Vec<f32>,
    /// Weights of the norm of the outputs, for each number of a head.
    norm: Vec<f32>,
    epsilon: f32,
}

/// Names and lengths of the weights of a layer that has the state of a delta net: taps of the convolution,
/// rates, steps, norm.
pub(crate) fn names(net: &DeltaNet, layer: usize) -> [(String, usize); 4] {
    let parts = [
        ("conv1d.weight", net.channels() * net.width),
        ("A_log", net.value_heads),
        ("dt_bias", net.value_heads),
        ("norm.weight", net.value_dim),
    ];
    parts.map(|(part, length)| (format!("model.layers.{layer}.linear_attn.{part}"), length))
}

impl DeltaWeights {
    /// Reads the weights of a layer; `None` if it has no state.
    ///
    /// # Errors
    /// If a tensor is missing, has another length, or cannot be read.
    pub(crate) fn load(
        weights: &mut dyn Weights,
        config: &Config,
        layer: usize,
    ) -> std::result::Result<Option<Self>, ModelError> {
        let Mixer::Delta(net) = config.mixer(layer) else { return Ok(None) };
        let mut read = |(name, length): (String, usize)| weights.vector(&name, length);
        let [taps, rates, steps, norm] = names(net, layer).map(&mut read);
        let mut rates = rates?;
        if !net.is_converted {
            rates.iter_mut().for_each(|rate| *rate = -rate.exp());
        }
        let (net, epsilon) = (net.clone(), config.norm_epsilon);
        Ok(Some(Self { net, taps: taps?, rates, steps: steps?, norm: norm?, epsilon }))
    }

    /// Runs the rows of one part (inputs of the convolution, gates, rates of corrections, steps), the first
    /// of which is at `position`, and returns the last `count` rows of outputs; `None` if there are none. The
    /// state sees at least the first `settled` tokens, which cannot be taken back then.
    ///
    /// # Errors
    /// If the shapes do not fit, or the state saw other tokens before.
    pub(crate) fn apply(
        &self,
        rows: &Tensor,
        state: &mut DeltaState,
        [position, settled, count]: [usize; 3],
    ) -> Result<Option<Tensor>> {
        let net = &self.net;
        let (total, width) = rows.dims2()?;
        let [channels, values, heads] = [net.channels(), net.values(), net.value_heads];
        if width != channels + values + 2 * heads {
            candle_core::bail!("{width} inputs for a state of {channels} channels");
        }
        let Some(accepted) = position.checked_sub(state.seen).filter(|&tokens| tokens <= state.last.total)
        else {
            candle_core::bail!("a state of {} tokens cannot go on at {position}", state.seen);
        };
        let data = rows.flatten_all()?.to_vec1::<f32>()?;
        let settled = settled.max(total.saturating_sub(KEPT));
        if accepted + settled > 0 {
            state.save_if_fresh();
        }
        let mut mixed = state.convolve(net, &self.taps, (&data, width), [accepted, total - settled]);
        let mut next = StateRows { total, ..StateRows::default() };
        for (mixed, row) in mixed.chunks_exact_mut(channels).zip(data.chunks_exact(width)) {
            normalise(net, mixed);
            let (corrections, steps) = row[channels + values..].split_at(heads);
            next.corrections.extend(corrections.iter().map(|x| 1.0 / (1.0 + (-x).exp())));
            let softplus = |x: f32| if x > 20.0 { x } else { x.exp().ln_1p() };
            let faded = steps.iter().zip(&self.steps).zip(&self.rates);
            next.fades.extend(faded.map(|((step, bias), rate)| (rate * softplus(step + bias)).exp()));
        }
        next.mixed = mixed;
        let outputs = state.run(net, accepted, settled, next);
        state.seen = position + settled;
        state.is_fresh |= settled > 0;
        (count > 0).then(|| self.gated(&outputs, &data[(total - count) * width..], total)).transpose()
    }

    /// Normalises the outputs (`[heads, total, value_dim]`) of the last rows, those of `data`, and multiplies
    /// them by their gates.
    fn gated(&self, outputs: &[f32], data: &[f32], total: usize) -> Result<Tensor> {
        let net = &self.net;
        let [channels, values, size] = [net.channels(), net.values(), net.value_dim];
        let width = channels + values + 2 * net.value_heads;
        let count = data.len() / width;
        let mut rows = Vec::with_capacity(count * 2 * values);
        for (index, row) in (total - count..).zip(data.chunks_exact(width)) {
            rows.extend_from_slice(&row[channels..channels + values]);
            for head in outputs.chunks_exact(total * size) {
                let own = &head[index * size..][..size];
                let scale = ops::norm_scale(own, self.epsilon);
                rows.extend(own.iter().zip(&self.norm).map(|(x, weight)| x * scale * weight));
            }
        }
        let rows = Tensor::from_vec(rows, (count, 2 * values), &candle_core::Device::Cpu)?;
        ops::gated(&rows, Activation::Silu)
    }
}

/// Divides each head of queries and keys by its length, and queries by the root of its size.
fn normalise(net: &DeltaNet, mixed: &mut [f32]) {
    #[expect(clippy::cast_precision_loss, reason = "sizes of heads are far below 2^24")]
    let query = 1.0 / (net.key_dim as f32).sqrt();
    for (index, head) in mixed[..2 * net.key_heads * net.key_dim].chunks_exact_mut(net.key_dim).enumerate() {
        let squares: f32 = ops::sum_of_squares(head);
        let scale = 1.0 / (squares + EPSILON).sqrt();
        let scale = if index < net.key_heads { scale * query } else { scale };
        head.iter_mut().for_each(|x| *x *= scale);
    }
}

/// The state of a layer after some tokens, and what the tokens of the last pass change in it after these.
#[derive(Debug, Default)]
pub(crate) struct DeltaState {
    /// `[value_heads, key_dim, value_dim]`; empty before the first pass.
    matrices: Vec<f32>,
    /// Tokens that the matrices have seen.
    seen: usize,
    /// Inputs of the convolution: of the last tokens that were seen, and of those after them.
    inputs: Vec<f32>,
    /// The tokens of the last pass that the matrices have not seen.
    last: StateRows,
    /// An earlier state, to begin at where more is taken back than the last pass.
    saved: Option<Box<SavedState>>,
    /// True if the state is one to save before it is changed: after many tokens that were seen at once.
    is_fresh: bool,
}

/// A copy of a state.
#[derive(Debug)]
struct SavedState {
    matrices: Vec<f32>,
    seen: usize,
    /// Inputs of the convolution of the last tokens that were seen.
    inputs: Vec<f32>,
}

/// Tokens of a pass, and what they do to a state.
#[derive(Debug, Default)]
struct StateRows {
    /// Tokens.
    total: usize,
    /// Queries, keys and values, `[total, channels]`.
    mixed: Vec<f32>,
    /// How much of a correction is made, and what is left of the state before it: of each head of values,
    /// `[total, value_heads]`.
    corrections: Vec<f32>,
    fades: Vec<f32>,
    /// The corrections, `[value_heads, total, value_dim]`, once they are computed.
    changes: Vec<f32>,
}

impl StateRows {
    /// The query, the key and the value that a head of values has of a token.
    fn token(&self, net: &DeltaNet, head: usize, token: usize) -> [&[f32]; 3] {
        let mixed = &self.mixed[token * net.channels()..][..net.channels()];
        let (keys, values) = mixed.split_at(2 * net.key_heads * net.key_dim);
        let (queries, keys) = keys.split_at(net.key_heads * net.key_dim);
        let key = net.key_of(head) * net.key_dim;
        let value = &values[head * net.value_dim..][..net.value_dim];
        [&queries[key..][..net.key_dim], &keys[key..][..net.key_dim], value]
    }
}

impl DeltaState {
    /// Bytes of a state, of its copy, and of the tokens that can be taken back.
    pub(crate) fn bytes(net: &DeltaNet) -> usize {
        let matrices = net.value_heads.saturating_mul(net.key_dim).saturating_mul(net.value_dim);
        let rows = (KEPT + net.width).saturating_mul(2 * net.channels() + net.values() + 2 * net.value_heads);
        (2 * matrices).saturating_add(rows).saturating_mul(size_of::<f32>())
    }

    /// True if a pass can go on after `len` tokens.
    pub(crate) fn reaches(&self, len: usize) -> bool {
        len.checked_sub(self.seen).is_some_and(|tokens| tokens <= self.last.total)
    }

    /// Tokens of the saved state, at most `len`; zero if there is none.
    pub(crate) fn saved(&self, len: usize) -> usize {
        self.saved.as_ref().map(|saved| saved.seen).filter(|&seen| seen <= len).unwrap_or_default()
    }

    /// Goes back to the saved state, or to the one before any token.
    pub(crate) fn go_back(&mut self, to_saved: bool) {
        let saved = self.saved.take();
        self.matrices.clear();
        self.inputs.clear();
        (self.seen, self.is_fresh, self.last) = (0, false, StateRows::default());
        if let Some(saved) = saved.filter(|_| to_saved) {
            self.matrices.extend_from_slice(&saved.matrices);
            self.inputs.extend_from_slice(&saved.inputs);
            self.seen = saved.seen;
            self.saved = Some(saved);
        }
    }

    /// Copies a state after many tokens before it is changed: where texts go on from it, each begins here.
    fn save_if_fresh(&mut self) {
        if std::mem::take(&mut self.is_fresh) {
            let row = self.last.mixed.len().checked_div(self.last.total).unwrap_or_default();
            let inputs = self.inputs[..self.inputs.len() - self.last.total * row].to_vec();
            let (matrices, seen) = (self.matrices.clone(), self.seen);
            self.saved = Some(Box::new(SavedState { matrices, seen, inputs }));
        }
    }

    /// Convolves the rows of `data`, which begin with the inputs, after those of accepted tokens, and keeps
    /// the inputs that the tokens after them need, and these if the last `kept` are taken back.
    fn convolve(
        &mut self,
        net: &DeltaNet,
        taps: &[f32],
        (data, width): (&[f32], usize),
        [accepted, kept]: [usize; 2],
    ) -> Vec<f32> {
        let channels = net.channels();
        let mut inputs = std::mem::take(&mut self.inputs);
        inputs.truncate(inputs.len() - (self.last.total - accepted) * channels);
        let rows = data.chunks_exact(width);
        let count = rows.len();
        rows.for_each(|row| inputs.extend_from_slice(&row[..channels]));
        let mut mixed = ops::convolution(&inputs, taps, channels, count);
        ops::silu(&mut mixed);
        let old = inputs.len().saturating_sub((kept + net.width - 1) * channels);
        self.inputs = inputs[old..].to_vec();
        mixed
    }

    /// Makes the changes of accepted tokens, runs the tokens of a pass, and keeps what those after the first
    /// `settled` do. Returns the outputs, `[value_heads, total, value_dim]`.
    fn run(&mut self, net: &DeltaNet, accepted: usize, settled: usize, next: StateRows) -> Vec<f32> {
        let size = net.key_dim * net.value_dim;
        self.matrices.resize(net.value_heads * size, 0.0);
        let kept = (next.total - settled) * net.value_dim;
        let mut outputs = vec![0.0; next.total * net.values()];
        let mut changes = vec![0.0; net.value_heads * kept];
        let mut changed = changes.chunks_exact_mut(kept.max(1));
        let heads =
            self.matrices.chunks_exact_mut(size).zip(outputs.chunks_exact_mut(next.total * net.value_dim));
        let heads = heads.enumerate().map(|(head, (matrix, outputs))| {
            let changes = changed.next().unwrap_or_default();
            HeadRun { net, head, accepted, settled, last: &self.last, next: &next, matrix, outputs, changes }
        });
        if (accepted + next.total) * net.value_heads * size >= PARALLEL {
            heads.collect::<Vec<_>>().into_par_iter().for_each(|head| Arch::new().dispatch(head));
        } else {
            heads.for_each(|head| Arch::new().dispatch(head));
        }
        self.last = StateRows {
            total: next.total - settled,
            mixed: next.mixed[settled * net.channels()..].to_vec(),
            corrections: next.corrections[settled * net.value_heads..].to_vec(),
            fades: next.fades[settled * net.value_heads..].to_vec(),
            changes,
        };
        outputs
    }
}

/// The tokens of a pass in one head.
struct HeadRun<'a> {
    net: &'a DeltaNet,
    head: usize,
    /// Tokens of `last` whose changes are made, and of `next` that the matrix sees.
    accepted: usize,
    settled: usize,
    last: &'a StateRows,
    next: &'a StateRows,
    matrix: &'a mut [f32],
    outputs: &'a mut [f32],
    changes: &'a mut [f32],
}

impl WithSimd for HeadRun<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let Self { net, head, accepted, settled, last, next, matrix, outputs, changes } = self;
        let size = net.value_dim;
        let fade = |rows: &StateRows, token: usize| rows.fades[token * net.value_heads + head];
        let taken = last.changes.get(head * last.total * size..).unwrap_or_default();
        let taken = taken.chunks_exact(size).take(accepted).enumerate();
        let taken: Vec<Change<'_>> = taken
            .map(|(token, change)| (fade(last, token), last.token(net, head, token)[1], change))
            .collect();
        for (number, row) in matrix.chunks_exact_mut(size).enumerate().take_while(|_| !taken.is_empty()) {
            changed(row, number, &taken);
        }
        let mut scratch: Vec<f32> = Vec::new();
        let mut own = vec![0.0; size];
        for (token, output) in outputs.chunks_exact_mut(size).enumerate() {
            let [query, key, value] = next.token(net, head, token);
            let fade = fade(next, token);
            let is_last = token + 1 == next.total;
            if token == settled && !is_last {
                scratch.extend_from_slice(matrix);
            }
            let matrix = if scratch.is_empty() { &mut *matrix } else { &mut scratch[..] };
            product(matrix, None, key, &mut own);
            let correction = next.corrections[token * net.value_heads + head];
            own.iter_mut().zip(value).for_each(|(own, value)| *own = correction * (value - fade * *own));
            if is_last && token >= settled {
                // The last one needs no matrix of its own.
                product(matrix, Some((fade, key, &own)), query, output);
            } else {
                for (row, key) in matrix.chunks_exact_mut(size).zip(key) {
                    faded(row, fade, *key, &own);
                }
                product(matrix, None, query, output);
            }
            if let Some(index) = token.checked_sub(settled) {
                changes[index * size..][..size].copy_from_slice(&own);
            }
        }
    }
}

/// A change that a token makes in a matrix: what is left of it, the key, and what is added along that.
type Change<'a> = (f32, &'a [f32], &'a [f32]);

/// Fades a row of a matrix, and adds a change times its number of the key.
#[inline(always)]
fn faded(row: &mut [f32], fade: f32, key: f32, change: &[f32]) {
    for (x, change) in row.iter_mut().zip(change) {
        *x = fade * *x + key * change;
    }
}

/// Makes changes to a row, all while some of its numbers are in registers.
#[inline(always)]
fn changed(row: &mut [f32], number: usize, changes: &[Change<'_>]) {
    let (blocks, rest) = row.as_chunks_mut::<COLUMNS>();
    let whole = blocks.len() * COLUMNS;
    for (block, row) in blocks.iter_mut().enumerate() {
        let mut own = *row;
        for (fade, key, change) in changes {
            faded(&mut own, *fade, key[number], &change[block * COLUMNS..][..COLUMNS]);
        }
        *row = own;
    }
    changes.iter().for_each(|(fade, key, change)| faded(rest, *fade, key[number], &change[whole..]));
}

/// Sums the rows of a matrix, as they are after a change, each times its factor. Makes no change.
#[inline(always)]
fn product(matrix: &[f32], change: Option<Change<'_>>, factors: &[f32], out: &mut [f32]) {
    let size = out.len();
    let (blocks, rest) = out.as_chunks_mut::<COLUMNS>();
    let whole = blocks.len() * COLUMNS;
    for (block, out) in blocks.iter_mut().enumerate() {
        *out = sums(matrix, size, change, factors, block * COLUMNS);
    }
    for (column, out) in rest.iter_mut().enumerate() {
        [*out] = sums(matrix, size, change, factors, whole + column);
    }
}

/// Computes [`product`] for some columns from `first` on.
#[inline(always)]
fn sums<const N: usize>(
    matrix: &[f32],
    size: usize,
    change: Option<Change<'_>>,
    factors: &[f32],
    first: usize,
) -> [f32; N] {
    let mut sums = [0.0; N];
    for (number, (row, factor)) in matrix.chunks_exact(size).zip(factors).enumerate() {
        let mut own = [0.0; N];
        own.copy_from_slice(&row[first..first + N]);
        if let Some((fade, key, change)) = change {
            faded(&mut own, fade, key[number], &change[first..first + N]);
        }
        for lane in 0..N {
            sums[lane] += factor * own[lane];
        }
    }
    sums
}

#[cfg(test)]
#[path = "delta_tests.rs"]
mod tests;

//! Multilayer perceptrons of which each token goes through some, on the CPU.
//!
//! Invariant: what a row gets does not depend on the rows beside it. An expert multiplies the rows that chose
//! it, each by itself, and a row's sum has its experts in the order of their numbers.

use candle_core::{Result, Tensor};

use super::ops;
use super::products::matrix::Linear;
use super::transformer::ProductShape;
use crate::model::error::ModelError;
use crate::model::files::config::{Activation, Config, Experts};
use crate::model::files::weights::Weights;

/// Gate and up, and down.
#[derive(Debug)]
struct Expert {
    gate_up: Linear,
    down: Linear,
}

/// The experts of a layer.
#[derive(Debug)]
pub(crate) struct ExpertLayer {
    description: Experts,
    activation: Activation,
    /// The product by which experts are chosen.
    router: Linear,
    experts: Vec<Expert>,
    /// The expert that all tokens have, and the product for its gate.
    shared: Option<(Expert, Linear)>,
}

/// The products of a layer's experts: the one that chooses; of each expert gate and up, and down; those of
/// the shared one, and its gate.
pub(crate) fn products(config: &Config, own: &Experts, layer: usize) -> Vec<ProductShape> {
    let hidden = config.hidden;
    let name = |part: &str| format!("model.layers.{layer}.mlp.{part}");
    let expert = |of: &str, inner: usize| {
        let part = |part: &str, outputs| (name(&format!("{of}.{part}")), outputs);
        let gate_up = (vec![part("gate_proj", inner), part("up_proj", inner)], hidden, false);
        [gate_up, (vec![part("down_proj", hidden)], inner, false)]
    };
    let mut products = vec![(vec![(name("gate"), own.count)], hidden, false)];
    products.extend((0..own.count).flat_map(|index| expert(&format!("experts.{index}"), own.intermediate)));
    if own.shared > 0 {
        products.extend(expert("shared_expert", own.shared));
        products.push((vec![(name("shared_expert_gate"), 1)], hidden, false));
    }
    products
}

impl ExpertLayer {
    /// Reads the experts of a layer.
    ///
    /// # Errors
    /// If a tensor is missing, has another shape, or cannot be read.
    pub(crate) fn load(
        weights: &mut dyn Weights,
        config: &Config,
        own: &Experts,
        layer: usize,
    ) -> std::result::Result<Self, ModelError> {
        let products = products(config, own, layer);
        let mut all = Vec::with_capacity(products.len());
        for (parts, inputs, biased) in products {
            all.push(Linear::load(weights, &parts, inputs, biased)?);
        }
        let gate = if own.shared > 0 { all.pop() } else { None };
        let mut all = all.into_iter();
        let missing =
            || ModelError::from(candle_core::Error::Msg("a product of an expert is missing".into()));
        let router = all.next().ok_or_else(missing)?;
        let mut experts = Vec::with_capacity(own.count);
        while let (Some(gate_up), Some(down)) = (all.next(), all.next()) {
            experts.push(Expert { gate_up, down });
        }
        let shared = gate.and_then(|gate| Some((experts.pop()?, gate)));
        let (description, activation) = (own.clone(), config.activation);
        Ok(Self { description, activation, router, experts, shared })
    }

    /// All products.
    pub(crate) fn linears_mut(&mut self) -> impl Iterator<Item = &mut Linear> {
        let (shared, gate) = self.shared.as_mut().map(|(expert, gate)| (expert, gate)).unzip();
        let experts = self.experts.iter_mut().chain(shared);
        let products = experts.flat_map(|expert| [&mut expert.gate_up, &mut expert.down]);
        products.chain([&mut self.router]).chain(gate)
    }

    /// Maps rows `[n, hidden]` to what their experts give.
    ///
    /// # Errors
    /// If the tensor library fails.
    pub(crate) fn apply(&self, x: &Tensor) -> Result<Tensor> {
        let (count, hidden) = x.dims2()?;
        let rows = x.flatten_all()?.to_vec1::<f32>()?;
        let mut sums = vec![0.0; rows.len()];
        let mut chosen: Vec<Vec<(usize, f32)>> = vec![Vec::new(); self.experts.len()];
        for (row, logits) in self.router.apply(x)?.to_vec2::<f32>()?.into_iter().enumerate() {
            for (expert, share) in self.shares(&logits) {
                chosen[expert].push((row, share));
            }
        }
        let mut add = |outputs: Tensor, shares: &[(usize, f32)]| {
            let outputs = outputs.flatten_all()?.to_vec1::<f32>()?;
            for (output, (row, share)) in outputs.chunks_exact(hidden).zip(shares) {
                let sums = &mut sums[row * hidden..][..hidden];
                sums.iter_mut().zip(output).for_each(|(sum, x)| *sum += share * x);
            }
            Ok::<_, candle_core::Error>(())
        };
        for (expert, shares) in self.experts.iter().zip(&chosen).filter(|(_, shares)| !shares.is_empty()) {
            let own = shares.iter().flat_map(|(row, _)| &rows[row * hidden..][..hidden]).copied().collect();
            let own = Tensor::from_vec(own, (shares.len(), hidden), x.device())?;
            add(expert.apply(&own, self.activation)?, shares)?;
        }
        if let Some((expert, gate)) = &self.shared {
            let gates = gate.apply(x)?.flatten_all()?.to_vec1::<f32>()?;
            let gate = |(row, gate): (usize, f32)| (row, 1.0 / (1.0 + ops::exp(-gate)));
            let shares: Vec<(usize, f32)> = gates.into_iter().enumerate().map(gate).collect();
            add(expert.apply(x, self.activation)?, &shares)?;
        }
        Tensor::from_vec(sums, (count, hidden), x.device())
    }

    /// The experts of a row, by their numbers, with their shares: those of the largest logits, of equals the
    /// first.
    fn shares(&self, logits: &[f32]) -> Vec<(usize, f32)> {
        let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let powers: Vec<f32> = logits.iter().map(|logit| ops::exp(logit - largest)).collect();
        let mut order: Vec<usize> = (0..logits.len()).collect();
        order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]));
        order.truncate(self.description.used);
        order.sort_unstable();
        let all: f32 = match self.description.normalised {
            true => order.iter().map(|&expert| powers[expert]).sum(),
            false => powers.iter().sum(),
        };
        order.into_iter().map(|expert| (expert, powers[expert] / all)).collect()
    }
}

impl Expert {
    fn apply(&self, x: &Tensor, activation: Activation) -> Result<Tensor> {
        self.down.apply(&ops::gated(&self.gate_up.apply(x)?, activation)?)
    }
}

//! Inputs that each layer gets of a token beside the stream, on the CPU: some numbers from an embedding with
//! those of all layers, and as many from the stream before the first layer.

use candle_core::{Result, Tensor};

use super::ops;
use super::products::matrix::{Linear, Matrix, read_matrix};
use super::transformer::{ProductShape, norm_weights};
use crate::model::error::ModelError;
use crate::model::files::config::{Activation, Config};
use crate::model::files::weights::Weights;

/// The weights that make the inputs of all layers.
#[derive(Debug)]
pub(crate) struct LayerInputs {
    /// A row for each token, with the inputs of all layers.
    embedding: Matrix,
    /// The product of the stream before the first layer.
    projection: Linear,
    /// Weights of the norm of what it gives, layer by layer.
    norm: Vec<f32>,
    epsilon: f32,
}

/// The weights by which a layer adds what it makes of its inputs.
#[derive(Debug)]
pub(crate) struct InputLayer {
    /// The product of the stream by which the inputs are gated.
    gate: Linear,
    /// The product of gated inputs, which is normalised and added to the stream.
    projection: Linear,
    norm: Vec<f32>,
    epsilon: f32,
}

// Names as GGUF files have them.
const EMBEDDING: &str = "per_layer_token_embd.weight";
const PROJECTION: &str = "per_layer_model_proj";
const NORM: &str = "per_layer_proj_norm.weight";

/// Names and shapes of the tensors that make inputs of `size` numbers for each layer.
pub(crate) fn names(config: &Config, size: usize) -> [(String, Vec<usize>); 3] {
    let all = config.layers * size;
    [
        (EMBEDDING.to_owned(), vec![config.vocabulary, all]),
        (format!("{PROJECTION}.weight"), vec![all, config.hidden]),
        (NORM.to_owned(), vec![size]),
    ]
}

/// The products of a layer with `size` inputs, and name and length of its norm.
pub(crate) fn of_layer(config: &Config, size: usize, layer: usize) -> ([ProductShape; 2], (String, usize)) {
    let name = |part: &str| format!("model.layers.{layer}.{part}");
    let gate = (vec![(name("per_layer_input_gate"), size)], config.hidden, false);
    let projection = (vec![(name("per_layer_projection"), config.hidden)], size, false);
    ([gate, projection], (name("post_per_layer_input_norm.weight"), config.hidden))
}

impl LayerInputs {
    /// Reads what makes inputs of `size` numbers for each layer.
    ///
    /// # Errors
    /// If a tensor is missing, has another shape, or cannot be read.
    pub(crate) fn load(
        weights: &mut dyn Weights,
        config: &Config,
        size: usize,
    ) -> std::result::Result<Self, ModelError> {
        let all = config.layers * size;
        Ok(Self {
            embedding: read_matrix(weights, &[(EMBEDDING, config.vocabulary)], all)?,
            projection: Linear::load(weights, &[(PROJECTION.to_owned(), all)], config.hidden, false)?,
            norm: norm_weights(weights, config, &(NORM.to_owned(), size))?,
            epsilon: config.norm_epsilon,
        })
    }

    /// The product, to choose how it is made.
    pub(crate) fn linear_mut(&mut self) -> &mut Linear {
        &mut self.projection
    }

    /// Computes the inputs of all layers, a row for each token, of which `x` is the stream before the first.
    #[expect(clippy::cast_precision_loss, reason = "sizes are far below 2^52")]
    pub(crate) fn of(&self, tokens: &[u32], x: &Tensor) -> Result<Tensor> {
        let (size, all) = (self.norm.len(), self.embedding.inputs());
        let of_stream = self.projection.apply(x)?.affine((x.dim(1)? as f64).powf(-0.5), 0.0)?;
        let of_stream = of_stream.reshape((tokens.len() * all / size, size))?;
        let of_stream = ops::rms_norm(&of_stream, &self.norm, self.epsilon)?.reshape((tokens.len(), all))?;
        let of_tokens = self.embedding.rows(tokens)?.affine((size as f64).sqrt(), 0.0)?;
        (of_stream + of_tokens)?.affine(0.5_f64.sqrt(), 0.0)
    }
}

impl InputLayer {
    /// Reads what layer `layer` does with its `size` inputs.
    ///
    /// # Errors
    /// If a tensor is missing, has another shape, or cannot be read.
    pub(crate) fn load(
        weights: &mut dyn Weights,
        config: &Config,
        size: usize,
        layer: usize,
    ) -> std::result::Result<Self, ModelError> {
        let ([gate, projection], norm) = of_layer(config, size, layer);
        let mut linear =
            |(parts, inputs, biased): ProductShape| Linear::load(weights, &parts, inputs, biased);
        let (gate, projection) = (linear(gate)?, linear(projection)?);
        Ok(Self {
            gate,
            projection,
            norm: norm_weights(weights, config, &norm)?,
            epsilon: config.norm_epsilon,
        })
    }

    /// The products, to choose how they are made.
    pub(crate) fn linears_mut(&mut self) -> [&mut Linear; 2] {
        [&mut self.gate, &mut self.projection]
    }

    /// Adds to the stream `x` what layer `layer` makes of its own among the inputs of all.
    pub(crate) fn add(
        &self,
        x: &Tensor,
        all: &Tensor,
        layer: usize,
        activation: Activation,
    ) -> Result<Tensor> {
        let gates = self.gate.apply(x)?;
        let size = gates.dim(1)?;
        let gated = ops::gated(&Tensor::cat(&[gates, all.narrow(1, layer * size, size)?], 1)?, activation)?;
        x + ops::rms_norm(&self.projection.apply(&gated)?, &self.norm, self.epsilon)?
    }
}

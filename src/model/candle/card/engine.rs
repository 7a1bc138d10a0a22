//! Runs a model's passes over few tokens, by the launches of a pass over up to [`WIDTH`] of them: ten a
//! layer.
//!
//! All addresses are settled when a model is loaded, so that the same launches can be replayed as a graph;
//! what a pass is over lies in a buffer that it reads. The stream between layers, scores and sums have 32
//! bits; what products take, keys and values have the numbers of the weights.
//!
//! Invariant: rows are independent. Products are made over the whole width whatever the number of tokens, so
//! a row is the result of the same sums beside any neighbours.

use candle_core::{DType, Result, Tensor};

use super::driver::{Address, CardProduct, Driver, KernelArgument, Launch};
use super::{chooser::CardChooser, place::Where};
use crate::model::GraphCounts;
use crate::model::files::config::Config;
use crate::model::formats::Format;

/// Passes over up to [`ROWS`] tokens by kernels of our own.
///
/// It shares the cache of keys and values with Candle's tensors, which run prompts.
#[derive(Debug)]
pub(in crate::model::candle) struct CardEngine {
    /// The queue of work is in it.
    chooser: CardChooser,
    plan: PassPlan,
}

/// A token of a pass.
#[derive(Debug, Clone, Copy)]
pub(in crate::model::candle) struct CardRow {
    pub(in crate::model::candle) token: u32,
    /// The position of the token in its text.
    pub(in crate::model::candle) position: usize,
    /// The number of the text, by which its keys and values are found.
    pub(in crate::model::candle) text: usize,
}

/// The room of a cache: tokens of a text, and texts.
#[derive(Debug, Clone, Copy)]
pub(in crate::model::candle) struct CacheSize {
    pub(in crate::model::candle) context: usize,
    pub(in crate::model::candle) texts: usize,
}

/// Most tokens of a pass.
pub(in crate::model::candle) const ROWS: usize = 16;

impl CardEngine {
    /// Can the kernels compute such a model?
    pub(in crate::model::candle) fn computes(config: &Config) -> bool {
        config.is_plain() && config.head_dim <= LARGEST_HEAD
    }

    /// The engine of a model whose tensors are on `device`. Makes buffers of some MB.
    ///
    /// # Errors
    /// If this build has no kernels for the device, the device has no room, or sizes are past those of the
    /// kernels.
    pub(in crate::model::candle) fn new(
        place: Where,
        config: &Config,
        sizes: CacheSize,
        weights: &ModelWeights,
    ) -> Result<Self> {
        let device = weights.norm.device();
        let driver = place.open(device, weights.numbers)?;
        let plan = PassPlan::new(&*driver, config, sizes, weights)?;
        Ok(Self { chooser: CardChooser::new(driver, device, config.vocabulary)?, plan })
    }

    /// True if weights are in blocks, which no tensors of Candle's multiply: prompts are run here too.
    pub(in crate::model::candle) fn runs_prompts(&self) -> bool {
        let PassPlan { layers, embedding, output, .. } = &self.plan;
        let of_layers = layers.iter().flat_map(Layer::matrices).chain([output]);
        of_layers.flat_map(|matrix| &matrix.parts).chain([embedding]).any(|part| part.format.is_some())
    }

    /// Runs up to [`ROWS`] tokens: writes their keys and values to the cache. A row sees those of its text
    /// before it. Does not wait.
    ///
    /// # Errors
    /// If there are more tokens, or the device fails.
    pub(in crate::model::candle) fn pass(&self, rows: &[CardRow]) -> Result<()> {
        let words = inputs(rows)?;
        self.chooser.with_driver(|driver| {
            driver.write(self.plan.inputs(), words.len(), &mut |room| room.copy_from_slice(&words))?;
            driver.run(&|driver| self.plan.queue(driver))
        })
    }

    /// Copies `count` rows of logits of the last pass from `first` on, `[count, vocabulary]` in 32 bits: the
    /// next pass writes its rows where they are.
    ///
    /// # Errors
    /// If the device has no room.
    pub(in crate::model::candle) fn logits(&self, first: usize, count: usize) -> Result<Tensor> {
        self.plan.logits.narrow(0, first, count)?.force_contiguous()
    }

    /// Counts how passes were run; `None` where nothing records them.
    pub(in crate::model::candle) fn graphs(&self) -> Option<GraphCounts> {
        self.chooser.with_driver(|driver| driver.graphs())
    }

    /// The chooser of tokens from rows of this engine.
    pub(in crate::model::candle) fn chooser(&self) -> CardChooser {
        self.chooser.clone()
    }
}

/// Most rows of a pass; `WIDTH` of `kernels/card.cuh`.
pub(super) const WIDTH: u32 = 16;
/// Most numbers of a head; `LARGEST_HEAD` of `kernels/attention.cu`.
const LARGEST_HEAD: usize = 256;
/// Keys that a block looks at; `SPLIT` of `kernels/card.cuh`.
const SPLIT: usize = 256;
/// Outputs of a block of a product with weights in blocks; `OUTPUTS` of `kernels/blocks.cu`.
const OUTPUTS: u32 = 32;

/// Sizes of a model, as kernels take them.
#[derive(Debug, Clone, Copy)]
struct CardShape {
    hidden: i32,
    intermediate: i32,
    heads: i32,
    kv_heads: i32,
    head_dim: i32,
    context: i32,
    /// Blocks for the keys of a text.
    splits: u32,
    /// Most texts of a pass.
    texts: u32,
    epsilon: f32,
}

/// Rows of weights of a matrix in one format.
#[derive(Debug, Clone, Copy)]
struct PlacedPart {
    weights: Address,
    /// `None`: the numbers of the model.
    format: Option<Format>,
    outputs: i32,
}

/// A matrix, and what is added to its products.
#[derive(Debug)]
struct PlacedMatrix {
    parts: Vec<PlacedPart>,
    bias: Address,
}

/// A layer's addresses.
#[derive(Debug)]
struct Layer {
    attention_norm: Address,
    qkv: PlacedMatrix,
    head_norms: [Address; 2],
    attention_out: PlacedMatrix,
    mlp_norm: Address,
    gate_up: PlacedMatrix,
    down: PlacedMatrix,
    keys: Address,
    values: Address,
    /// Zero if there is none.
    window: i32,
}

/// The memory that kernels read and write in turns.
#[derive(Debug)]
struct Buffers {
    inputs: Address,
    /// The stream.
    x: Address,
    /// The rows that a product takes.
    hidden: Address,
    qkv: Address,
    queries: Address,
    parts: Address,
    attended: Address,
    /// The rows that are to be added to the stream.
    delta: Address,
    gate_up: Address,
    activated: Address,
    logits: Address,
}

/// The launches of a pass.
#[derive(Debug)]
struct PassPlan {
    sizes: CardShape,
    /// The name of the numbers, as kernels have it.
    numbers: &'static str,
    embedding: PlacedPart,
    output: PlacedMatrix,
    norm: Address,
    rotation: [Address; 2],
    layers: Vec<Layer>,
    buffers: Buffers,
    /// `[WIDTH, vocabulary]` in 32 bits.
    pub(super) logits: Tensor,
    /// The tensors that the addresses are of, which outlive all queued work.
    _kept: Vec<Tensor>,
}

impl PassPlan {
    /// Settles all addresses and makes the buffers: some MB.
    ///
    /// # Errors
    /// If the device has no room, or sizes are past those of the kernels.
    pub(super) fn new(
        driver: &dyn Driver,
        config: &Config,
        sizes: CacheSize,
        weights: &ModelWeights,
    ) -> Result<Self> {
        let mut kept = Vec::new();
        let layers = weights.layers.iter().enumerate().map(|(index, layer)| {
            let window = i32::try_from(config.window_of(index).unwrap_or_default())?;
            Layer::new(driver, layer, window, &mut kept)
        });
        let layers = layers.collect::<Result<_>>()?;
        let numbers = match weights.numbers {
            DType::F32 => "f32",
            DType::F16 => "f16",
            DType::BF16 => "bf16",
            other => candle_core::bail!("no kernels for {other:?}"),
        };
        let width = usize::try_from(WIDTH)?;
        let logits = Tensor::zeros((width, config.vocabulary), DType::F32, weights.norm.device())?;
        let sizes = CardShape::new(config, sizes)?;
        let buffers = Buffers::new(driver, config, weights, (&logits, sizes.splits), &mut kept)?;
        let mut keep = |tensor: &Tensor| {
            kept.push(tensor.clone());
            driver.address(tensor)
        };
        Ok(Self {
            sizes,
            numbers,
            embedding: PlacedPart::new(&weights.embedding, &mut keep)?,
            output: PlacedMatrix::new(&weights.output, &mut keep)?,
            norm: keep(&weights.norm)?,
            rotation: [keep(&weights.rotation[0])?, keep(&weights.rotation[1])?],
            layers,
            buffers,
            logits,
            _kept: kept,
        })
    }

    /// The address that [`inputs`] are written to.
    pub(super) fn inputs(&self) -> Address {
        self.buffers.inputs
    }

    /// Queues a pass of [`WIDTH`] rows, of which as many count as the inputs say.
    ///
    /// # Errors
    /// Those of the driver.
    pub(super) fn queue(&self, driver: &mut dyn Driver) -> Result<()> {
        let mut queue = Queue { plan: self, driver };
        queue.embed()?;
        // A product's result and bias join the stream in the norm that follows.
        let mut delta = [Address::NONE; 2];
        for layer in &self.layers {
            queue.norm(delta, layer.attention_norm)?;
            queue.attention(layer)?;
            queue.norm([self.buffers.delta, layer.attention_out.bias], layer.mlp_norm)?;
            queue.feed_forward(layer)?;
            delta = [self.buffers.delta, layer.down.bias];
        }
        queue.norm(delta, self.norm)?;
        queue.product(&self.output, self.buffers.hidden, self.buffers.logits, self.sizes.hidden)
    }
}

/// The words of a pass' inputs: how many rows count, and a token, a position and a text for each row of
/// [`WIDTH`].
///
/// # Errors
/// If there are more tokens than rows, or positions past 32 bits.
pub(super) fn inputs(rows: &[CardRow]) -> Result<Vec<u32>> {
    if rows.len() > ROWS {
        candle_core::bail!("{} tokens in a pass of {ROWS}", rows.len());
    }
    let mut words = vec![0; 1 + 3 * ROWS];
    words[0] = u32::try_from(rows.len())?;
    for (index, row) in rows.iter().enumerate() {
        let word = [row.token, u32::try_from(row.position)?, u32::try_from(row.text)?];
        (0..3).for_each(|column| words[1 + column * ROWS + index] = word[column]);
    }
    Ok(words)
}

impl CardShape {
    fn new(config: &Config, CacheSize { context, texts }: CacheSize) -> Result<Self> {
        Ok(Self {
            hidden: i32::try_from(config.hidden)?,
            intermediate: i32::try_from(config.intermediate)?,
            heads: i32::try_from(config.heads)?,
            kv_heads: i32::try_from(config.kv_heads)?,
            head_dim: i32::try_from(config.head_dim)?,
            context: i32::try_from(context)?,
            splits: u32::try_from(context.div_ceil(SPLIT))?,
            texts: u32::try_from(texts.min(ROWS))?,
            epsilon: config.norm_epsilon,
        })
    }
}

impl PlacedPart {
    fn new(part: &CardPart, keep: &mut dyn FnMut(&Tensor) -> Result<Address>) -> Result<Self> {
        let &CardPart { ref weights, format, outputs } = part;
        Ok(Self { weights: keep(weights)?, format, outputs: i32::try_from(outputs)? })
    }
}

impl PlacedMatrix {
    fn new(matrix: &CardMatrix, keep: &mut dyn FnMut(&Tensor) -> Result<Address>) -> Result<Self> {
        let parts = matrix.parts.iter().map(|part| PlacedPart::new(part, keep));
        let parts = parts.collect::<Result<_>>()?;
        Ok(Self { parts, bias: matrix.bias.as_ref().map_or(Ok(Address::NONE), keep)? })
    }
}

impl Layer {
    fn new(driver: &dyn Driver, weights: &LayerWeights, window: i32, kept: &mut Vec<Tensor>) -> Result<Self> {
        let mut keep = |tensor: &Tensor| {
            kept.push(tensor.clone());
            driver.address(tensor)
        };
        let [of_queries, of_keys] = weights.head_norms.each_ref().map(Option::as_ref);
        Ok(Self {
            attention_norm: keep(&weights.attention_norm)?,
            qkv: PlacedMatrix::new(&weights.qkv, &mut keep)?,
            head_norms: [
                of_queries.map_or(Ok(Address::NONE), &mut keep)?,
                of_keys.map_or(Ok(Address::NONE), &mut keep)?,
            ],
            attention_out: PlacedMatrix::new(&weights.attention_out, &mut keep)?,
            mlp_norm: keep(&weights.mlp_norm)?,
            gate_up: PlacedMatrix::new(&weights.gate_up, &mut keep)?,
            down: PlacedMatrix::new(&weights.down, &mut keep)?,
            keys: keep(&weights.keys)?,
            values: keep(&weights.values)?,
            window,
        })
    }

    fn matrices(&self) -> [&PlacedMatrix; 4] {
        [&self.qkv, &self.attention_out, &self.gate_up, &self.down]
    }
}

impl Buffers {
    fn new(
        driver: &dyn Driver,
        config: &Config,
        weights: &ModelWeights,
        (logits, splits): (&Tensor, u32),
        kept: &mut Vec<Tensor>,
    ) -> Result<Self> {
        let rows = usize::try_from(WIDTH)?;
        let (device, numbers) = (weights.norm.device(), weights.numbers);
        let mut room = |numbers: DType, each: usize| {
            let tensor = Tensor::zeros((rows, each), numbers, device)?;
            kept.push(tensor.clone());
            driver.address(&tensor)
        };
        let queries = config.heads * config.head_dim;
        let parts = config.heads * usize::try_from(splits)? * (config.head_dim + 2);
        Ok(Self {
            // A count, and three words a row, rounded up.
            inputs: room(DType::U32, 4)?,
            x: room(DType::F32, config.hidden)?,
            hidden: room(numbers, config.hidden)?,
            qkv: room(DType::F32, queries + 2 * config.kv_heads * config.head_dim)?,
            queries: room(DType::F32, queries)?,
            parts: room(DType::F32, parts)?,
            attended: room(numbers, queries)?,
            delta: room(DType::F32, config.hidden)?,
            gate_up: room(DType::F32, 2 * config.intermediate)?,
            activated: room(numbers, config.intermediate)?,
            logits: driver.address(logits)?,
        })
    }
}

/// A pass being queued.
struct Queue<'a> {
    plan: &'a PassPlan,
    driver: &'a mut dyn Driver,
}

impl Queue<'_> {
    fn launch(
        &mut self,
        kernel: &str,
        grid: [u32; 3],
        threads: u32,
        arguments: &[KernelArgument],
    ) -> Result<()> {
        let name = format!("{kernel}_{}", self.plan.numbers);
        self.driver.launch(&Launch { kernel: &name, grid, threads, arguments })
    }

    fn product(&mut self, matrix: &PlacedMatrix, x: Address, mut y: Address, inputs: i32) -> Result<()> {
        use KernelArgument::{Address as At, Number};
        let (rows, stride) = (i32::try_from(WIDTH)?, matrix.parts.iter().map(|part| part.outputs).sum());
        for &PlacedPart { weights, format, outputs } in &matrix.parts {
            let columns = u32::try_from(outputs)?;
            if let Some(format) = format {
                let arguments = [At(weights), At(x), At(y), Number(inputs), Number(outputs), Number(stride)];
                let blocks = columns.div_ceil(OUTPUTS);
                self.launch(&format!("product_{format}"), [blocks, 1, 1], 256, &arguments)?;
            } else {
                self.driver.product(CardProduct { weights, x, y, rows, inputs, outputs, stride })?;
            }
            y.0 += u64::from(columns) * size_of::<f32>() as u64;
        }
        Ok(())
    }

    fn embed(&mut self) -> Result<()> {
        use KernelArgument::{Address as At, Number};
        let Buffers { inputs, x, .. } = self.plan.buffers;
        let PlacedPart { weights, format, .. } = self.plan.embedding;
        let arguments = [At(inputs), At(weights), At(x), Number(self.plan.sizes.hidden)];
        let kernel = format.map_or("embed".into(), |format| format!("embed_{format}"));
        self.launch(&kernel, [WIDTH, 1, 1], 256, &arguments)
    }

    fn norm(&mut self, [delta, bias]: [Address; 2], weight: Address) -> Result<()> {
        use KernelArgument::{Address as At, Float, Number};
        let Buffers { inputs, x, hidden, .. } = self.plan.buffers;
        let CardShape { hidden: size, epsilon, .. } = self.plan.sizes;
        let arguments =
            [At(inputs), At(x), At(delta), At(bias), At(weight), At(hidden), Number(size), Float(epsilon)];
        self.launch("norm", [WIDTH, 1, 1], 512, &arguments)
    }

    fn attention(&mut self, layer: &Layer) -> Result<()> {
        let CardShape { hidden, heads, head_dim, .. } = self.plan.sizes;
        let buffers = &self.plan.buffers;
        self.product(&layer.qkv, buffers.hidden, buffers.qkv, hidden)?;
        self.heads(layer)?;
        self.scores(layer)?;
        self.product(&layer.attention_out, buffers.attended, buffers.delta, heads * head_dim)
    }

    fn heads(&mut self, layer: &Layer) -> Result<()> {
        use KernelArgument::{Address as At, Float, Number};
        let CardShape { heads, kv_heads, head_dim, context, epsilon, .. } = self.plan.sizes;
        let Buffers { inputs, qkv, queries, .. } = self.plan.buffers;
        let arguments = [
            At(inputs),
            At(qkv),
            At(layer.qkv.bias),
            At(layer.head_norms[0]),
            At(layer.head_norms[1]),
            At(self.plan.rotation[0]),
            At(self.plan.rotation[1]),
            At(queries),
            At(layer.keys),
            At(layer.values),
            Number(heads),
            Number(kv_heads),
            Number(head_dim),
            Number(context),
            Float(epsilon),
        ];
        self.launch("heads", [WIDTH, u32::try_from(heads + 2 * kv_heads)?, 1], 128, &arguments)
    }

    fn scores(&mut self, layer: &Layer) -> Result<()> {
        use KernelArgument::{Address as At, Float, Number};
        let CardShape { heads, kv_heads, head_dim, context, splits, texts, .. } = self.plan.sizes;
        let Buffers { inputs, queries, parts, attended, .. } = self.plan.buffers;
        #[expect(clippy::cast_precision_loss, reason = "heads have at most 256 numbers")]
        let scale = 1.0 / (head_dim as f32).sqrt();
        let arguments = [
            At(inputs),
            At(queries),
            At(layer.keys),
            At(layer.values),
            At(parts),
            Number(heads),
            Number(kv_heads),
            Number(head_dim),
            Number(context),
            Number(layer.window),
            Float(scale),
        ];
        let heads = u32::try_from(heads)?;
        let (kernel, grid, threads) = match (head_dim, self.plan.numbers) {
            (64 | 128 | 256, "f16" | "bf16") => ("attention_rows_", [heads, splits, texts], 256),
            _ => ("attention_", [WIDTH, heads, splits], 128),
        };
        let size = match head_dim {
            16 | 32 | 64 | 128 | 256 => head_dim.to_string(),
            _ => "any".into(),
        };
        self.launch(&format!("{kernel}{size}"), grid, threads, &arguments)?;
        let splits = Number(i32::try_from(splits)?);
        let arguments = [At(inputs), At(parts), At(attended), Number(head_dim), splits, Number(layer.window)];
        self.launch("combine", [WIDTH, heads, 1], 128, &arguments)
    }

    fn feed_forward(&mut self, layer: &Layer) -> Result<()> {
        use KernelArgument::{Address as At, Number};
        let CardShape { hidden, intermediate, .. } = self.plan.sizes;
        let buffers = &self.plan.buffers;
        self.product(&layer.gate_up, buffers.hidden, buffers.gate_up, hidden)?;
        let arguments = [
            At(buffers.inputs),
            At(buffers.gate_up),
            At(layer.gate_up.bias),
            At(buffers.activated),
            Number(intermediate),
        ];
        let blocks = u32::try_from(intermediate)?.div_ceil(256);
        self.launch("gate", [blocks, WIDTH, 1], 256, &arguments)?;
        self.product(&layer.down, buffers.activated, buffers.delta, intermediate)
    }
}

/// Rows of a matrix: `[outputs, inputs]` in the numbers of the model, or words with rows of blocks.
#[derive(Debug, Clone)]
pub(in crate::model::candle) struct CardPart {
    pub(in crate::model::candle) weights: Tensor,
    /// One of the [kernels](super::kernel_format). `None`: the numbers of the model.
    pub(in crate::model::candle) format: Option<Format>,
    pub(in crate::model::candle) outputs: usize,
}

/// A matrix, and what is added to its products.
#[derive(Debug, Clone)]
pub(in crate::model::candle) struct CardMatrix {
    pub(in crate::model::candle) parts: Vec<CardPart>,
    /// Bias, in the same numbers. `None`: there is none.
    pub(in crate::model::candle) bias: Option<Tensor>,
}

/// One block and its cache. Norms have 32 bits.
#[derive(Debug, Clone)]
pub(in crate::model::candle) struct LayerWeights {
    pub(in crate::model::candle) attention_norm: Tensor,
    /// Queries, keys, values.
    pub(in crate::model::candle) qkv: CardMatrix,
    /// Norms of the heads of queries and keys.
    pub(in crate::model::candle) head_norms: [Option<Tensor>; 2],
    pub(in crate::model::candle) attention_out: CardMatrix,
    pub(in crate::model::candle) mlp_norm: Tensor,
    /// Gate, up.
    pub(in crate::model::candle) gate_up: CardMatrix,
    pub(in crate::model::candle) down: CardMatrix,
    /// The keys of the first text, `[kv_heads, context, head_dim]`; those of other texts lie behind.
    pub(in crate::model::candle) keys: Tensor,
    pub(in crate::model::candle) values: Tensor,
}

/// All tensors of a model.
#[derive(Debug, Clone)]
pub(in crate::model::candle) struct ModelWeights {
    /// The format of keys, values and biases, and of weights that are not in blocks.
    pub(in crate::model::candle) numbers: DType,
    /// A row for each token.
    pub(in crate::model::candle) embedding: CardPart,
    pub(in crate::model::candle) output: CardMatrix,
    pub(in crate::model::candle) norm: Tensor,
    /// Cosines and sines, `[context, head_dim / 2]` in 32 bits.
    pub(in crate::model::candle) rotation: [Tensor; 2],
    pub(in crate::model::candle) layers: Vec<LayerWeights>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_has_as_many_rows_as_the_plan() {
        assert_eq!(usize::try_from(WIDTH), Ok(ROWS));
    }
}

#[cfg(test)]
mod plan_tests {
    use super::*;

    #[test]
    fn sizes_of_passes_are_those_in_the_kernels() {
        let width = format!("constexpr int WIDTH = {WIDTH};");
        assert!(include_str!("kernels/card.cuh").contains(&width));
        assert!(include_str!("kernels/card.cuh").contains(&format!("constexpr int SPLIT = {SPLIT};")));
        assert!(include_str!("kernels/blocks.cu").contains(&format!("OUTPUTS = {OUTPUTS},")));
        let head = format!("LARGEST_HEAD = {LARGEST_HEAD}");
        assert!(include_str!("kernels/attention.cu").contains(&head));
    }

    #[test]
    fn inputs_of_a_pass_are_padded_to_its_width() {
        let row = |token, position, text| CardRow { token, position, text };
        let words = inputs(&[row(7, 5, 3), row(8, 6, 2)]).unwrap();
        assert_eq!((words.len(), &words[..4], &words[17..20]), (49, &[2, 7, 8, 0][..], &[5, 6, 0][..]));
        assert_eq!(words[33..36], [3, 2, 0]);
        assert!(inputs(&[row(0, 0, 0); 17]).is_err());
        assert_eq!(inputs(&[row(1, 9, 4); 16]).unwrap()[48], 4);
    }
}

//! Options for loading a model.

use super::formats::{format::Format, instructions::Instructions, kv_format::KvFormat};

/// Options for loading a [`CandleModel`](crate::model::candle::CandleModel).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadOptions {
    /// Tokens that the cache has room for. Default on the CPU: as many as the model was made for, or that, a
    /// half, a quarter and so on, until full caches take no more than half of the memory left beside the
    /// weights, but 4096 at least; on a card at most 4096. The addresses of the cache are allocated at once,
    /// on the CPU its memory is taken as a text grows; see
    /// [`CandleModel::estimate`](crate::model::candle::CandleModel::estimate).
    pub context: Option<usize>,
    /// Tokens that all sequences of a [`CandleBatch`](crate::model::candle::CandleBatch) hold at once, at
    /// most: memory for more is not asked for, and memory that ended or shortened texts took is given back
    /// before others would take more. At least the context of one. Default: the context of each.
    pub tokens: Option<usize>,
    /// Most memory to use, in bytes; checked before any weight is read. Default: what the system says is
    /// free.
    pub memory_limit: Option<u64>,
    /// Multiplies quantised weights with exact inputs. Default: where the processor has any of
    /// [`Instructions`], inputs are rounded to eight bits in groups of 32, as llama.cpp rounds them, which
    /// takes a third of the time or less. [`TensorModel`](crate::model::candle::TensorModel) rounds them on
    /// every device, and unpacks the weights for exact products.
    pub exact_products: bool,
    /// Multiplies quantised weights with these instructions, to measure what other processors have; loading
    /// fails where the processor lacks them. Default: the best that it has. Without effect on exact products
    /// and on [`TensorModel`](crate::model::candle::TensorModel).
    pub instructions: Option<Instructions>,
    /// Quantises matrices that are stored as floats to this format, or to [`Format::Q8_0`] where their rows
    /// are no whole blocks of it (256 numbers in the K formats). Default: keep what is stored; a format of
    /// floats does the same. Only [`CandleModel`](crate::model::candle::CandleModel) and
    /// [`CandleBatch`](crate::model::candle::CandleBatch) look at it.
    pub quantize: Option<Format>,
    /// Number format of keys and values in the cache. With fewer bytes, long contexts take less memory and
    /// time, and texts differ. Only [`CandleModel`](crate::model::candle::CandleModel) and
    /// [`CandleBatch`](crate::model::candle::CandleBatch) look at it.
    pub kv: KvFormat,
}

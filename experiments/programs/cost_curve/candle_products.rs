//! Times of candle's own products, on the matrices of the shapes that `domino bench-model --random` knows.
//!
//!     cargo experiment candle_products -- 110m q8_0 [REPEATS]
//!
//! Only the products of a pass, nothing else of it: what candle's whole pass takes is more. Products of all n
//! take turns. A star marks n at which the first row has other bits than alone, in any matrix. The numbers
//! are for RESULTS.md in this folder; no test depends on them.

use std::{
    borrow::Cow,
    collections::{HashMap, hash_map::Entry},
    error::Error,
    time::Instant,
};

use candle_core::{
    Device, Module, Tensor,
    quantized::{GgmlDType, QMatMul, QStorage, QTensor},
};

const TOKENS: [usize; 5] = [1, 2, 4, 8, 16];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [shape, format] = [1, 2].map(|index| arguments.get(index).map_or("", String::as_str));
    let repeats: usize = arguments.get(3).map_or(Ok(15), |text| text.parse())?;
    let (hidden, inner, layers, keys) = match shape {
        "13m" => (256, 768, 6, 128),
        "110m" => (768, 2048, 12, 768),
        "1b" => (2048, 5632, 22, 256),
        other => return Err(format!("no shape {other:?}: 13m, 110m or 1b").into()),
    };
    let kind = match format {
        "f32" => None,
        "q8_0" => Some(GgmlDType::Q8_0),
        "q4_0" => Some(GgmlDType::Q4_0),
        "q4_k" => Some(GgmlDType::Q4K),
        "q5_k" => Some(GgmlDType::Q5K),
        "q6_k" => Some(GgmlDType::Q6K),
        other => return Err(format!("no format {other:?}: f32, q8_0, q4_0, q4_k, q5_k or q6_k").into()),
    };
    let layer = [(hidden + 2 * keys, hidden), (hidden, hidden), (2 * inner, hidden), (hidden, inner)];
    let shapes = std::iter::repeat_n(layer, layers).flatten().chain([(32_000, hidden)]);
    let mut made = HashMap::new();
    let matrices: Vec<(QMatMul, usize)> = shapes
        .map(|shape| Ok((matrix(shape, kind, &mut made)?, shape.1)))
        .collect::<candle_core::Result<_>>()?;
    drop(made);
    let most = TOKENS[TOKENS.len() - 1];
    let rows = |width: usize| Tensor::randn(0.0_f32, 1.0, (most, width), &Device::Cpu);
    let (narrow, wide) = (rows(hidden)?, rows(inner)?);
    let mut alone: Vec<Vec<f32>> = Vec::new();
    let mut others = [false; TOKENS.len()];
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); TOKENS.len()];
    for round in 0..=repeats {
        for (tokens, (times, other)) in TOKENS.into_iter().zip(times.iter_mut().zip(&mut others)) {
            let (narrow, wide) = (narrow.narrow(0, 0, tokens)?, wide.narrow(0, 0, tokens)?);
            let begun = Instant::now();
            let mut products = Vec::with_capacity(matrices.len());
            for (matrix, width) in &matrices {
                products.push(matrix.forward(if *width == hidden { &narrow } else { &wide })?);
            }
            times.push(begun.elapsed().as_secs_f64());
            if round == 0 {
                let first: Vec<Vec<f32>> =
                    products.iter().map(|product| product.get(0)?.to_vec1()).collect::<Result<_, _>>()?;
                if alone.is_empty() {
                    alone = first;
                } else {
                    *other = first != alone;
                }
            }
        }
    }
    for (tokens, (times, other)) in TOKENS.into_iter().zip(times.iter_mut().zip(others)) {
        // The first round warms up, and packs weights.
        times.remove(0);
        times.sort_by(f64::total_cmp);
        let (median, least) = (times[times.len() / 2], times[0]);
        println!(
            "candle {shape} {format}: n = {tokens:2}, median {:.3} ms, least {:.3} ms{}",
            1e3 * median,
            1e3 * least,
            if other { " *" } else { "" }
        );
    }
    Ok(())
}

/// A matrix of random weights. Matrices of one shape have the same weights, in memory of their own:
/// quantising takes longer than all the rest.
fn matrix(
    shape: (usize, usize),
    kind: Option<GgmlDType>,
    made: &mut HashMap<(usize, usize), Vec<u8>>,
) -> candle_core::Result<QMatMul> {
    let weights = || Tensor::randn(0.0_f32, 0.1, shape, &Device::Cpu);
    let Some(kind) = kind else { return Ok(QMatMul::Tensor(weights()?)) };
    let blocks = match made.entry(shape) {
        Entry::Occupied(known) => known.into_mut(),
        Entry::Vacant(unknown) => unknown.insert(QTensor::quantize(&weights()?, kind)?.data()?.into_owned()),
    };
    let storage = QStorage::from_data(Cow::Borrowed(&**blocks), &Device::Cpu, kind)?;
    QMatMul::from_qtensor(QTensor::new(storage, shape)?)
}

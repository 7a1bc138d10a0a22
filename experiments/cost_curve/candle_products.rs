//! How long candle's own products take, on the matrices of the shapes that `domino bench-model --random` knows.
//!
//!     cargo experiment candle_products -- 110m q8_0 [REPEATS]
//!
//! Only the products of a pass, nothing else of it: what candle's whole pass takes is more. The numbers are for
//! the README in this folder; no test depends on them.

use std::{error::Error, time::Instant};

use candle_core::{
    DType, Device, Module, Tensor,
    quantized::{GgmlDType, QMatMul, QTensor},
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
        other => return Err(format!("no format {other:?}: f32, q8_0, q4_0 or q4_k").into()),
    };
    let layer = [(hidden + 2 * keys, hidden), (hidden, hidden), (2 * inner, hidden), (hidden, inner)];
    let shapes = std::iter::repeat_n(layer, layers).flatten().chain([(32_000, hidden)]);
    let matrix = |shape: (usize, usize)| -> candle_core::Result<QMatMul> {
        let weights = Tensor::randn(0.0_f32, 0.1, shape, &Device::Cpu)?;
        match kind {
            Some(kind) => QMatMul::from_qtensor(QTensor::quantize(&weights, kind)?),
            None => Ok(QMatMul::Tensor(weights)),
        }
    };
    let matrices: Vec<(QMatMul, usize)> =
        shapes.map(|shape| Ok((matrix(shape)?, shape.1))).collect::<candle_core::Result<_>>()?;
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); TOKENS.len()];
    for _ in 0..=repeats {
        for (tokens, times) in TOKENS.into_iter().zip(&mut times) {
            let inputs =
                [hidden, inner].map(|width| Tensor::zeros((tokens, width), DType::F32, &Device::Cpu));
            let [narrow, wide] = inputs;
            let (narrow, wide) = (narrow?, wide?);
            let begun = Instant::now();
            for (matrix, width) in &matrices {
                matrix.forward(if *width == hidden { &narrow } else { &wide })?;
            }
            times.push(begun.elapsed().as_secs_f64());
        }
    }
    for (tokens, times) in TOKENS.into_iter().zip(&mut times) {
        // The first round warms up.
        times.remove(0);
        times.sort_by(f64::total_cmp);
        let (median, least) = (times[times.len() / 2], times[0]);
        println!(
            "candle {shape} {format}: n = {tokens:2}, median {:.3} ms, least {:.3} ms",
            1e3 * median,
            1e3 * least
        );
    }
    Ok(())
}

//! The delta net against its formulas, token by token in `f64`; and mistakes that must show.

use candle_core::Device;
use proptest::prelude::*;

use super::*;
use crate::split_mix::SplitMix64;

/// A mistake in the formulas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mistake {
    None,
    /// Tokens that were taken back stay in the state.
    Kept,
    /// The convolution sees the token before the oldest that it should see.
    Window,
    /// The outputs are not multiplied by their gates.
    Gate,
    /// Keys are as long as they come.
    Length,
    /// The state does not fade.
    Fade,
    /// Heads of values share the keys of others.
    Keys,
}

fn net(is_converted: bool) -> DeltaNet {
    DeltaNet { key_heads: 2, value_heads: 4, key_dim: 6, value_dim: 67, width: 3, is_converted }
}

fn numbers(random: &mut SplitMix64, count: usize) -> Vec<f32> {
    #[expect(clippy::cast_precision_loss, reason = "24 bits fit")]
    let number = |bits: u64| (bits >> 40) as f32 / 8_388_608.0 - 1.0;
    (0..count).map(|_| number(random.bits())).collect()
}

fn weights(random: &mut SplitMix64, net: &DeltaNet) -> DeltaWeights {
    DeltaWeights {
        taps: numbers(random, net.channels() * net.width),
        rates: numbers(random, net.value_heads).iter().map(|rate| -rate.abs()).collect(),
        steps: numbers(random, net.value_heads),
        norm: numbers(random, net.value_dim),
        net: net.clone(),
        epsilon: 1e-5,
    }
}

fn width(net: &DeltaNet) -> usize {
    net.channels() + net.values() + 2 * net.value_heads
}

/// Outputs for some rows of inputs, by the formulas.
fn formulas(own: &DeltaWeights, rows: &[f32], mistake: Mistake) -> Vec<f64> {
    let net = &own.net;
    let (keys, values) = (net.key_heads * net.key_dim, net.values());
    let rows: Vec<Vec<f64>> =
        rows.chunks(width(net)).map(|row| row.iter().map(|&x| f64::from(x)).collect()).collect();
    let silu = |x: f64| x / (1.0 + (-x).exp());
    let mut states = vec![vec![vec![0.0_f64; net.key_dim]; net.value_dim]; net.value_heads];
    let mut outputs = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let input = |channel: usize, age: usize| {
            let age = age + usize::from(mistake == Mistake::Window && age + 1 == net.width);
            index.checked_sub(age).map_or(0.0, |index| rows[index][channel])
        };
        let tap = |channel: usize, age: usize| f64::from(own.taps[(channel + 1) * net.width - 1 - age]);
        let mixed = |channel| silu((0..net.width).map(|age| input(channel, age) * tap(channel, age)).sum());
        for (head, state) in states.iter_mut().enumerate() {
            let key = if mistake == Mistake::Keys { head % 2 } else { net.key_of(head) } * net.key_dim;
            let of = |first: usize| (first..first + net.key_dim).map(mixed).collect::<Vec<f64>>();
            let length = |x: &[f64]| (x.iter().map(|x| x * x).sum::<f64>() + 1e-6).sqrt();
            let (query, key) = (of(key), of(keys + key));
            let root = 6.0_f64.sqrt() * length(&query);
            let long = if mistake == Mistake::Length { 1.0 } else { length(&key) };
            let query: Vec<f64> = query.iter().map(|x| x / root).collect();
            let key: Vec<f64> = key.iter().map(|x| x / long).collect();
            let rate = |place: usize| row[net.channels() + values + place];
            let correction = 1.0 / (1.0 + (-rate(head)).exp());
            let step = (rate(net.value_heads + head) + f64::from(own.steps[head])).exp().ln_1p();
            let fade = if mistake == Mistake::Fade { 1.0 } else { (f64::from(own.rates[head]) * step).exp() };
            let mut output = Vec::new();
            for (column, numbers) in state.iter_mut().enumerate() {
                let value = mixed(2 * keys + head * net.value_dim + column);
                let seen: f64 = numbers.iter().zip(&key).map(|(number, key)| key * fade * number).sum();
                for (number, key) in numbers.iter_mut().zip(&key) {
                    *number = fade * *number + key * correction * (value - seen);
                }
                output.push(numbers.iter().zip(&query).map(|(number, query)| query * number).sum::<f64>());
            }
            let mean = output.iter().map(|x| x * x).sum::<f64>() / 67.0;
            let gates = &row[net.channels() + head * net.value_dim..];
            outputs.extend(output.iter().zip(&own.norm).zip(gates).map(|((x, &weight), &gate)| {
                let gate = if mistake == Mistake::Gate { 1.0 } else { silu(gate) };
                x / (mean + 1e-5).sqrt() * f64::from(weight) * gate
            }));
        }
    }
    outputs
}

/// Runs rows in passes of these lengths; before each, other rows, which are taken back.
fn passes(own: &DeltaWeights, rows: &[f32], lengths: &[usize], detours: &[f32]) -> Vec<f32> {
    let width = width(&own.net);
    let mut state = DeltaState::default();
    let mut position = 0;
    let mut outputs = Vec::new();
    let tensor = |rows: &[f32]| Tensor::from_slice(rows, (rows.len() / width, width), &Device::Cpu).unwrap();
    for &length in lengths.iter().chain([&usize::MAX]) {
        let (start, end) =
            (position * width, rows.len().min(position.saturating_add(length).saturating_mul(width)));
        if start == end {
            break;
        }
        if !detours.is_empty() {
            own.apply(&tensor(detours), &mut state, [position, 0, 0]).unwrap();
        }
        let count = (end - start) / width;
        let output = own.apply(&tensor(&rows[start..end]), &mut state, [position, 0, count]).unwrap();
        outputs.extend(output.unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap());
        position += count;
    }
    outputs
}

fn distance(got: &[f32], expected: &[f64]) -> f64 {
    assert_eq!(got.len(), expected.len());
    let largest = expected.iter().fold(0.0_f64, |largest, x| largest.max(x.abs()));
    got.iter().zip(expected).fold(0.0_f64, |most, (a, b)| most.max((f64::from(*a) - b).abs())) / largest
}

#[test]
fn mistakes_in_the_formulas_show() {
    let mut random = SplitMix64::new(3);
    let own = weights(&mut random, &net(false));
    let rows = numbers(&mut random, 40 * width(&own.net));
    let (detour, rest) = rows.split_at(5 * width(&own.net));
    let got = passes(&own, rest, &[1, 9, 1, 1], detour);
    assert!(distance(&got, &formulas(&own, rest, Mistake::None)) < 1e-5);
    for mistake in [Mistake::Window, Mistake::Gate, Mistake::Length, Mistake::Fade, Mistake::Keys] {
        let distance = distance(&got, &formulas(&own, rest, mistake));
        assert!(distance > 1e-2, "{mistake:?}: {distance}");
    }
    // As if five tokens had stayed that were taken back.
    let kept = formulas(&own, &rows, Mistake::Kept);
    assert!(distance(&got, &kept[kept.len() - got.len()..]) > 1e-2);
}

proptest! {
    /// Passes of any lengths have the bits of one, whatever is taken back between them, and the numbers of
    /// the formulas.
    #[test]
    fn passes_have_the_bits_of_one(
        seed: u64,
        is_converted: bool,
        tokens in 1_usize..60,
        lengths in prop::collection::vec(1_usize..40, 0..30),
        detour in 0_usize..=KEPT,
    ) {
        let mut random = SplitMix64::new(seed);
        let own = weights(&mut random, &net(is_converted));
        let width = width(&own.net);
        let rows = numbers(&mut random, tokens * width);
        let detours = numbers(&mut random, detour * width);
        let whole = passes(&own, &rows, &[], &[]);
        prop_assert!(distance(&whole, &formulas(&own, &rows, Mistake::None)) < 1e-4);
        prop_assert_eq!(passes(&own, &rows, &lengths, &detours), whole);
    }
}

//! A smoke test: a card computes what the CPU computes, and drawing there changes nothing.
//!
//!     cargo experiment cuda_smoke --features cuda -- [DEVICE] [PRECISION] [MODEL]
//!
//!     cargo experiment cuda_smoke --features cuda -- bits ...
//!
//! DEVICE is `cuda` (default), `cuda:INDEX` or `cpu`, with which the program itself can be tried on any
//! machine. PRECISION is f32 (default), f16 or bf16. MODEL is the shipped one unless named. Exit code 1 if
//! logits differ by more than rounding explains, or, in f32, a text written with masks and draws on the
//! device is another. `bits` compares a card with itself: see `bits.rs`.

mod bits;

use std::{error::Error, path::PathBuf, process::ExitCode, time::Instant};

use domino::{
    Compiler, Constraint, Grammar, Limits, Syntax, TokenId, Vocabulary,
    decode::{Sampler, Sampling},
    model::{
        KeptRows, Model, Rows,
        candle::{CandleModel, LoadOptions, Placement, Precision, TensorModel},
    },
};

/// Largest difference of logits, relative to the largest: sums of another order, and numbers of 16 bits.
const TOLERANCES: [(Precision, f32); 3] =
    [(Precision::F32, 2e-3), (Precision::F16, 3e-2), (Precision::Bf16, 2e-1)];
/// Tokens whose logits are compared, and tokens of the text.
const COMPARED: u32 = 96;
const WRITTEN: usize = 64;
/// A grammar with long free parts and short forced ones.
const GRAMMAR: &str = "root ::= \"{\\\"name\\\": \\\"\" [a-z ]+ \"\\\", \\\"age\\\": \" [0-9]+ \"}\"\n";

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some((first, rest)) = arguments.split_first()
        && first == "bits"
    {
        return bits::run(rest);
    }
    let argument =
        |index: usize, default: &str| arguments.get(index).map_or(default, String::as_str).to_owned();
    let precision: Precision = argument(1, "f32").parse()?;
    let placement = argument(0, "cuda").parse::<Placement>()?.with_precision(precision);
    let folder = PathBuf::from(argument(2, "models/domino-small"));
    let mut options = LoadOptions::default();
    // A card's kernels round no inputs of products with quantised weights to eight bits.
    options.exact_products = true;
    let mut cpu = CandleModel::load(&folder, &options)?;
    let mut device = TensorModel::load(&folder, &options, placement)?;

    let distance = distance(&mut cpu, &mut device)?;
    let tolerance = TOLERANCES.iter().find(|(own, _)| *own == precision).map_or(0.0, |(_, most)| *most);
    println!(
        "logits on {placement} in {precision}: differ by {distance:.2e} of the largest, \
         allowed {tolerance:.0e}"
    );
    let mut fine = distance <= tolerance;

    let vocabulary = Vocabulary::from_tokenizer_file(&folder)?;
    let grammar = Grammar::parse(Syntax::Gbnf, GRAMMAR, &Limits::default())?;
    let constraint = Compiler::new(vocabulary.clone()).compile(&grammar)?.constraint();
    for sampling in [Sampling::greedy(), Sampling::with_temperature(1.0)?] {
        let sampler = Sampler::new(sampling, 1);
        let expected = write_on_cpu(&mut cpu, &sampler, constraint.clone(), &vocabulary)?;
        let got = write_on_device(&mut device, &sampler, constraint.clone(), &vocabulary)?;
        let same = expected == got;
        let kind = if sampling.is_greedy() { "greedy" } else { "drawn" };
        let text = String::from_utf8_lossy(&vocabulary.concat(&got)).into_owned();
        println!("{kind}, {} tokens, {}: {text}", got.len(), if same { "the same" } else { "another text" });
        // Rounding to 16 bits may change which of two near logits is larger.
        fine &= same || precision != Precision::F32;
    }
    Ok(if fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Largest difference of the logits of two models, relative to the largest logit.
fn distance(cpu: &mut CandleModel, device: &mut TensorModel) -> Result<f32, Box<dyn Error>> {
    let vocabulary = u32::try_from(cpu.vocabulary_size())?;
    let tokens: Vec<TokenId> =
        (0..COMPARED).map(|index| TokenId::new(index.wrapping_mul(7919) % vocabulary)).collect();
    let (mut difference, mut largest) = (0.0_f32, 0.0_f32);
    // A prompt, then short passes, then single tokens.
    let (prompt, rest) = tokens.split_at(64);
    for part in std::iter::once(prompt).chain(rest[..24].chunks(8)).chain(rest[24..].chunks(1)) {
        let (expected, got) = (cpu.forward(part, Rows::All)?, device.forward(part, Rows::All)?);
        for index in 0..part.len() {
            let (Some(a), Some(b)) = (got.row(index), expected.row(index)) else {
                return Err("a row is missing".into());
            };
            for (a, b) in a.iter().zip(b) {
                // NaN is a difference too.
                difference = if (a - b).abs() <= difference { difference } else { (a - b).abs() };
                largest = largest.max(b.abs());
            }
        }
    }
    Ok(if difference.is_nan() { f32::INFINITY } else { difference / largest })
}

/// Mask and draw after each pass, from a row in the computer's memory.
fn write_on_cpu(
    model: &mut CandleModel,
    sampler: &Sampler,
    mut constraint: Constraint,
    vocabulary: &Vocabulary,
) -> Result<Vec<TokenId>, Box<dyn Error>> {
    model.truncate(0)?;
    let mut tokens = vec![TokenId::new(0)];
    while tokens.len() <= WRITTEN {
        let logits = model.forward(&tokens[model.position()..], Rows::Last)?;
        let row = logits.last().ok_or("no row")?;
        let token = sampler.draw(row, constraint.mask()?, tokens.len())?;
        if vocabulary.end_of_text().contains(&token) {
            break;
        }
        constraint.advance(token)?;
        tokens.push(token);
    }
    Ok(tokens.split_off(1))
}

/// Draws on the device: the pass is only begun, and the mask is made while the device works.
fn write_on_device(
    model: &mut TensorModel,
    sampler: &Sampler,
    mut constraint: Constraint,
    vocabulary: &Vocabulary,
) -> Result<Vec<TokenId>, Box<dyn Error>> {
    model.truncate(0)?;
    let mut tokens = vec![TokenId::new(0)];
    let (mut launching, mut masking, mut waiting) = (0.0, 0.0, 0.0);
    while tokens.len() <= WRITTEN {
        let begun = Instant::now();
        let rows = model.launch(&tokens[model.position()..], Rows::Last)?;
        launching += begun.elapsed().as_secs_f64();
        let begun = Instant::now();
        let mask = constraint.mask()?;
        masking += begun.elapsed().as_secs_f64();
        let begun = Instant::now();
        let token = sampler.draw_kept(&rows, rows.rows() - 1, mask, tokens.len())?;
        waiting += begun.elapsed().as_secs_f64();
        if vocabulary.end_of_text().contains(&token) {
            break;
        }
        constraint.advance(token)?;
        tokens.push(token);
    }
    println!(
        "  launching {:.1} ms, masks {:.1} ms, waiting for draws {:.1} ms in all",
        1e3 * launching,
        1e3 * masking,
        1e3 * waiting
    );
    Ok(tokens.split_off(1))
}

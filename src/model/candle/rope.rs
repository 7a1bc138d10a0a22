//! Rotary position embedding: frequencies, their scalings for long texts, and the tables of a context.
//!
//! The scalings are those of Hugging Face's `transformers` (`modeling_rope_utils`), computed in `f64` and
//! rounded once. Scalings that depend on the length of the text are refused elsewhere: a token's key would
//! change with the tokens after it.

use std::f64::consts::TAU;

/// Base and scaling of the frequencies.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rope {
    pub(super) theta: f64,
    pub(super) scaling: Scaling,
}

/// Scaling of the frequencies of a model that was first made for shorter texts.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Scaling {
    /// No scaling.
    None,
    /// Linear scaling: all frequencies are divided by this.
    Linear(f64),
    /// Llama 3's scaling: low frequencies are divided, high ones kept, those between interpolated.
    Llama3 {
        factor: f64,
        low: f64,
        high: f64,
        /// Positions that the model was first made for.
        original: f64,
    },
    /// YaRN: a ramp over the dimensions in place of Llama 3's over frequencies; sines and cosines are
    /// multiplied by `attention`.
    Yarn {
        factor: f64,
        beta_fast: f64,
        beta_slow: f64,
        original: f64,
        attention: f64,
        /// True if the ends of the ramp are rounded to whole dimensions.
        truncate: bool,
    },
    /// A factor for each frequency, which is divided by it.
    Factors(Vec<f32>),
}

impl Rope {
    /// Checks the numbers; the error says in words what is wrong.
    pub(super) fn check(&self) -> Result<(), String> {
        let numbers: Vec<(&str, f64)> = match &self.scaling {
            Scaling::None | Scaling::Factors(_) => Vec::new(),
            Scaling::Linear(factor) => vec![("factor", *factor)],
            Scaling::Llama3 { factor, low, high, original } => {
                if low >= high {
                    return Err(format!("the rope's low_freq_factor {low} is not below {high}"));
                }
                vec![("factor", *factor), ("low_freq_factor", *low), ("original positions", *original)]
            }
            Scaling::Yarn { factor, beta_fast, beta_slow, original, attention, .. } => vec![
                ("factor", *factor),
                ("beta_fast", *beta_fast),
                ("beta_slow", *beta_slow),
                ("original positions", *original),
                ("attention_factor", *attention),
            ],
        };
        let factors: &[f32] = match &self.scaling {
            Scaling::Factors(factors) => factors,
            _ => &[],
        };
        let factors = factors.iter().map(|&factor| ("factor", f64::from(factor)));
        let numbers = numbers.into_iter().chain(factors).chain([("theta", self.theta)]);
        match numbers.into_iter().find(|(_, number)| !(number.is_finite() && *number > 0.0)) {
            Some((name, number)) => Err(format!("the rope's {name} is not a positive number: {number}")),
            None => Ok(()),
        }
    }

    /// Angle that a position adds, in radians, for each pair of a head's numbers.
    fn frequencies(&self, head_dim: usize) -> Vec<f64> {
        #[expect(clippy::cast_precision_loss, reason = "sizes of heads are far below 2^52")]
        let frequency = |pair: usize| self.theta.powf(-((2 * pair) as f64 / head_dim as f64));
        let plain = (0..head_dim / 2).map(frequency);
        match &self.scaling {
            Scaling::None => plain.collect(),
            Scaling::Linear(factor) => plain.map(|frequency| frequency / factor).collect(),
            &Scaling::Llama3 { factor, low, high, original } => {
                let scale = |frequency: f64| {
                    // Turns within the original positions.
                    let turns = original * frequency / TAU;
                    let kept = ((turns - low) / (high - low)).clamp(0.0, 1.0);
                    frequency * (kept + (1.0 - kept) / factor)
                };
                plain.map(scale).collect()
            }
            &Scaling::Yarn { factor, beta_fast, beta_slow, original, truncate, .. } => {
                #[expect(clippy::cast_precision_loss, reason = "sizes of heads are far below 2^52")]
                let size = head_dim as f64;
                let dimension = |turns: f64| size * (original / (turns * TAU)).ln() / (2.0 * self.theta.ln());
                let (mut low, mut high) = (dimension(beta_fast), dimension(beta_slow));
                if truncate {
                    (low, high) = (low.floor(), high.ceil());
                }
                (low, high) = (low.max(0.0), high.min(size - 1.0));
                // A ramp of no width gets the width of the reference implementation.
                let width = if low == high { 0.001 } else { high - low };
                #[expect(clippy::cast_precision_loss, reason = "sizes of heads are far below 2^52")]
                let scale = |(pair, frequency): (usize, f64)| {
                    let divided = ((pair as f64 - low) / width).clamp(0.0, 1.0);
                    frequency * (divided / factor + 1.0 - divided)
                };
                plain.enumerate().map(scale).collect()
            }
            Scaling::Factors(factors) => {
                plain.zip(factors).map(|(frequency, factor)| frequency / f64::from(*factor)).collect()
            }
        }
    }

    /// Factor of sines and cosines.
    fn amplitude(&self) -> f64 {
        match self.scaling {
            Scaling::Yarn { attention, .. } => attention,
            _ => 1.0,
        }
    }
}

/// Sine and cosine of every position's rotation: `[positions, half]` each, row-major.
#[derive(Debug)]
pub(super) struct Rotation {
    cos: Vec<f32>,
    sin: Vec<f32>,
    half: usize,
}

impl Rotation {
    /// Computes the tables for positions `0..context` and heads of `head_dim` numbers. Angles are rounded to
    /// `f32` where `transformers` rounds them.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "the models compute in f32; positions are far below 2^24"
    )]
    pub(super) fn new(context: usize, head_dim: usize, rope: &Rope) -> Self {
        let frequencies: Vec<f32> =
            rope.frequencies(head_dim).into_iter().map(|frequency| frequency as f32).collect();
        let amplitude = rope.amplitude() as f32;
        let angles: Vec<f32> = (0..context)
            .flat_map(|position| frequencies.iter().map(move |frequency| position as f32 * frequency))
            .collect();
        Self {
            cos: angles.iter().map(|angle| amplitude * angle.cos()).collect(),
            sin: angles.iter().map(|angle| amplitude * angle.sin()).collect(),
            half: head_dim / 2,
        }
    }

    /// Cosines and sines of all positions.
    pub(super) fn tables(&self) -> (&[f32], &[f32]) {
        (&self.cos, &self.sin)
    }

    /// Cosines and sines of `position`.
    pub(super) fn at(&self, position: usize) -> candle_core::Result<(&[f32], &[f32])> {
        let range = position * self.half..(position + 1) * self.half;
        match (self.cos.get(range.clone()), self.sin.get(range)) {
            (Some(cos), Some(sin)) => Ok((cos, sin)),
            _ => candle_core::bail!("position {position} is past the rotation tables"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scaling_that_divides_all_is_a_linear_one() {
        let rope = |scaling| Rope { theta: 1e4, scaling };
        let linear = rope(Scaling::Linear(4.0)).frequencies(16);
        // No frequency turns as often as low_freq_factor says.
        let llama3 = Scaling::Llama3 { factor: 4.0, low: 1e6, high: 2e6, original: 64.0 };
        for other in [llama3, Scaling::Factors(vec![4.0; 8])] {
            for (a, b) in rope(other).frequencies(16).iter().zip(&linear) {
                assert!((a - b).abs() <= 1e-12 * b, "{a} {b}");
            }
        }
    }

    #[test]
    fn impossible_numbers_are_refused() {
        let llama3 = |low, high| Scaling::Llama3 { factor: 8.0, low, high, original: 64.0 };
        for scaling in [Scaling::Linear(0.0), Scaling::Linear(f64::NAN), llama3(4.0, 4.0), llama3(-1.0, 4.0)]
        {
            assert!(Rope { theta: 1e4, scaling: scaling.clone() }.check().is_err(), "{scaling:?}");
        }
        assert!(Rope { theta: 0.0, scaling: Scaling::None }.check().is_err());
        assert!(Rope { theta: 1e4, scaling: llama3(1.0, 4.0) }.check().is_ok());
    }
}

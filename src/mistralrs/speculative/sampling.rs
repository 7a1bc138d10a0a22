//! Takes over a request's sampling from the engine, which under speculation always takes the likeliest token.

use mistralrs_core::SamplingParams;

use domino::decode::{Sampling, SamplingError};

/// Temperature below which upstream samples greedily.
const COLD: f64 = 1e-7;

/// Returns the sampling that the engine would do, and changes `params` to take the likeliest token, in the
/// cheapest way; the processor leaves only one. Penalties stay: the engine applies them before any processor.
///
/// # Errors
/// If a number is impossible; `params` is unchanged then.
pub(super) fn take(params: &mut SamplingParams) -> Result<Sampling, SamplingError> {
    let sampling = read(params)?;
    params.temperature = Some(0.0);
    params.top_k = Some(1);
    params.top_p = None;
    params.min_p = None;
    Ok(sampling)
}

/// Interprets upstream's numbers: no temperature is 1, and cuts outside of their range cut nothing.
fn read(params: &SamplingParams) -> Result<Sampling, SamplingError> {
    let temperature = params.temperature.unwrap_or(1.0);
    if temperature < COLD || params.top_k == Some(1) {
        return Ok(Sampling::greedy());
    }
    let mut sampling = Sampling::with_temperature(temperature)?;
    if let Some(k) = params.top_k.filter(|&k| k > 0) {
        sampling = sampling.top_k(k)?;
    }
    if let Some(p) = params.top_p.filter(|&p| p > 0.0 && p < 1.0) {
        sampling = sampling.top_p(p)?;
    }
    if let Some(p) = params.min_p.filter(|&p| p > 0.0 && p < 1.0) {
        sampling = sampling.min_p(p)?;
    }
    Ok(sampling)
}

/// True if the engine changes logits by the tokens before them. It does not know the tokens of a draft, so
/// only rows without a draft are right.
pub(super) fn penalises(params: &SamplingParams) -> bool {
    let is = |penalty: Option<f32>, none: f32| penalty.is_some_and(|penalty| penalty != none);
    is(params.frequency_penalty, 0.0)
        || is(params.presence_penalty, 0.0)
        || is(params.repetition_penalty, 1.0)
        || params.dry_params.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sampling_is_taken_over_as_the_engine_would_do_it() {
        let with = |change: fn(&mut SamplingParams)| {
            let mut params = SamplingParams::neutral();
            change(&mut params);
            let found = take(&mut params);
            assert_eq!((params.top_k, params.top_p, params.min_p), (Some(1), None, None));
            found.unwrap()
        };
        let warm = |t| Sampling::with_temperature(t).unwrap();
        assert_eq!(with(|_| {}), warm(1.0));
        assert_eq!(with(|params| params.temperature = Some(0.0)), Sampling::greedy());
        assert_eq!(with(|params| params.top_k = Some(1)), Sampling::greedy());
        assert_eq!(with(|params| params.top_p = Some(1.0)), warm(1.0));
        assert_eq!(with(|params| params.top_p = Some(0.5)), warm(1.0).top_p(0.5).unwrap());
        assert_eq!(
            with(|params| (params.temperature, params.top_k, params.min_p) = (Some(0.7), Some(9), Some(0.1))),
            warm(0.7).top_k(9).unwrap().min_p(0.1).unwrap()
        );
        let mut bad =
            SamplingParams { temperature: Some(f64::NAN), top_k: Some(3), ..SamplingParams::neutral() };
        assert!(take(&mut bad).is_err());
        assert_eq!(bad.top_k, Some(3));
    }
}

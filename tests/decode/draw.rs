//! Draws of single rows.

use domino::{
    TokenId,
    decode::{DrawError, Sampler, Sampling},
    vocab::TokenSet,
};
use proptest::prelude::*;
use rand::{Rng, SeedableRng, rngs::StdRng};

pub(super) fn id(raw: usize) -> TokenId {
    TokenId::from_index(raw).unwrap()
}

fn all(size: usize) -> TokenSet {
    set(size, 0..size)
}

fn set(size: usize, tokens: impl IntoIterator<Item = usize>) -> TokenSet {
    let mut set = TokenSet::empty(size);
    tokens.into_iter().for_each(|token| set.insert(id(token)));
    set
}

pub(super) fn at(temperature: f64) -> Sampling {
    Sampling::with_temperature(temperature).unwrap()
}

/// Logits of every kind: spread, equal, minus infinity, and masks from empty to full.
fn rows() -> impl Strategy<Value = (Vec<f32>, TokenSet)> {
    let logit = prop_oneof![
        4 => -20.0..20.0_f32,
        2 => prop_oneof![Just(1.5_f32), Just(0.0), Just(-0.0)],
        1 => Just(f32::NEG_INFINITY),
    ];
    (1_usize..300, 0.0..1.0_f64).prop_flat_map(move |(size, density)| {
        let mask = proptest::collection::vec(proptest::bool::weighted(density), size);
        (proptest::collection::vec(logit.clone(), size), mask).prop_map(|(row, mask)| {
            let size = row.len();
            (row, set(size, (0..size).filter(|&token| mask[token])))
        })
    })
}

/// A strategy for temperature alone, without cuts.
fn plain() -> impl Strategy<Value = Sampling> {
    prop_oneof![Just(Sampling::greedy()), (0.05..5.0_f64).prop_map(at), Just(at(1e-6)), Just(at(1e6))]
}

proptest! {
    /// The promise that opportunistic masking rests on: the unmasked draw, if allowed, is the masked draw.
    #[test]
    fn an_allowed_draw_is_the_masked_draw(
        (row, mask) in rows(), sampling in plain(), seed: u64, position in 0_usize..1000
    ) {
        let sampler = Sampler::new(sampling, seed);
        let own = sampler.draw(&row, &all(row.len()), position);
        let masked = sampler.draw(&row, &mask, position);
        if let Ok(own) = own && mask.contains(own) {
            prop_assert_eq!(masked, Ok(own));
        }
        match masked {
            Ok(token) => prop_assert!(mask.contains(token) && row[token.index()] > f32::NEG_INFINITY),
            Err(DrawError::NoneAllowed) => prop_assert!(mask.is_empty()),
            Err(DrawError::Impossible) => {
                prop_assert!(mask.iter().all(|token| row[token.index()] == f32::NEG_INFINITY));
            }
            Err(other) => prop_assert!(false, "{other}"),
        }
    }

    /// With cuts, too, the token drawn is allowed, and the cuts are made among the allowed tokens.
    #[test]
    fn cuts_keep_the_likeliest_of_the_allowed(
        (row, mask) in rows(), seed: u64, k in 1_usize..20, p in 0.01..1.0_f64, min in 0.0..1.0_f64
    ) {
        let sampler = |sampling| Sampler::new(sampling, seed);
        let mut order: Vec<TokenId> =
            mask.iter().filter(|token| row[token.index()] > f32::NEG_INFINITY).collect();
        prop_assume!(!order.is_empty());
        order.sort_by(|a, b| row[b.index()].partial_cmp(&row[a.index()]).unwrap().then(a.cmp(b)));
        let rank = |token: TokenId| order.iter().position(|&other| other == token);
        let weight = |token: TokenId| f64::from(row[token.index()] - row[order[0].index()]).exp();

        let drawn = sampler(at(1.0).top_k(k).unwrap()).draw(&row, &mask, 3).unwrap();
        prop_assert!(rank(drawn).is_some_and(|rank| rank < k), "{:?} of {k}", rank(drawn));

        let drawn = sampler(at(1.0).top_p(p).unwrap()).draw(&row, &mask, 3).unwrap();
        let total: f64 = order.iter().map(|&token| weight(token)).sum();
        let before: f64 = order
            .iter()
            .filter(|&&other| row[other.index()] > row[drawn.index()])
            .map(|&token| weight(token))
            .sum();
        prop_assert!(before < p * total * (1.0 + 1e-9));

        let drawn = sampler(at(1.0).min_p(min).unwrap()).draw(&row, &mask, 3).unwrap();
        prop_assert!(weight(drawn) >= min * (1.0 - 1e-6));

        let greedy = sampler(Sampling::greedy()).draw(&row, &mask, 3).unwrap();
        for sampling in [at(3.0).top_k(1), at(3.0).top_p(1e-9), at(3.0).min_p(1.0).and_then(|s| s.top_k(1))] {
            prop_assert_eq!(sampler(sampling.unwrap()).draw(&row, &mask, 3).unwrap(), greedy);
        }
    }

    /// Cuts leave exactly the tokens of a plain implementation: top-k first, top-p of what that leaves, with
    /// the token that reaches it, then min-p.
    #[test]
    fn cuts_keep_what_a_sort_keeps(
        row in proptest::collection::vec(prop_oneof![3 => -2.0..2.0_f32, 1 => Just(0.5_f32)], 1..40),
        seed: u64,
        k in proptest::option::of(1_usize..12),
        p in proptest::option::of(0.05..0.99_f64),
        min in prop_oneof![Just(0.0), Just(1.0), 0.01..0.9_f64],
    ) {
        let mut sampling = at(1.5).min_p(min).unwrap();
        if let Some(k) = k {
            sampling = sampling.top_k(k).unwrap();
        }
        if let Some(p) = p {
            sampling = sampling.top_p(p).unwrap();
        }
        let Some(kept) = kept_by_sorting(&row, k, p, min) else { return Ok(()) };
        let sampler = Sampler::new(sampling, seed);
        for position in 0..60 {
            let score = |token: usize| f64::from(row[token]) / 1.5 + sampler.noise(position, id(token));
            let winner = kept.iter().copied().max_by(|&a, &b| score(a).total_cmp(&score(b))).unwrap();
            prop_assert_eq!(sampler.draw(&row, &all(row.len()), position), Ok(id(winner)), "{:?}", kept);
        }
    }

    /// Cuts with bounds that exclude nothing change nothing.
    #[test]
    fn cuts_that_exclude_nothing_change_nothing(
        (row, mask) in rows(), temperature in 0.1..3.0_f64, seed: u64,
    ) {
        let plain = Sampler::new(at(temperature), seed).draw(&row, &mask, 5);
        let loose = at(temperature).top_k(row.len() + 5).unwrap().min_p(1e-300).unwrap();
        prop_assert_eq!(Sampler::new(loose, seed).draw(&row, &mask, 5), plain);
        let all = at(temperature).top_k(row.len()).unwrap().top_p(1.0).unwrap();
        prop_assert_eq!(Sampler::new(all, seed).draw(&row, &mask, 5), plain);
    }
}

/// Tokens that cuts leave at temperature 1.5, by sorting; `None` where rounding could decide.
fn kept_by_sorting(row: &[f32], k: Option<usize>, p: Option<f64>, min: f64) -> Option<Vec<usize>> {
    let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
    let mut order: Vec<usize> = (0..row.len()).collect();
    order.sort_by(|&a, &b| row[b].total_cmp(&row[a]).then(a.cmp(&b)));
    let largest = f64::from(row[order[0]]);
    let weight = |token: usize| ((f64::from(row[token]) - largest) / 1.5).exp();
    order.truncate(k.unwrap_or(order.len()));
    if let Some(p) = p {
        let total: f64 = order.iter().map(|&token| weight(token)).sum();
        let (mut sum, mut count) = (0.0, 0);
        while sum < p * total {
            sum += weight(order[count]);
            count += 1;
            if close(sum / total, p) {
                return None;
            }
        }
        order.truncate(count);
    }
    // Equally likely tokens have weight 1 exactly.
    if order.iter().any(|&token| row[token] != row[order[0]] && close(weight(token), min)) {
        return None;
    }
    order.retain(|&token| weight(token) >= min);
    Some(order)
}

#[test]
fn ties_go_to_the_lowest_id() {
    let sampler = Sampler::new(Sampling::greedy(), 0);
    let mut row = vec![0.5; 200];
    assert_eq!(sampler.draw(&row, &all(200), 0), Ok(id(0)));
    assert_eq!(sampler.draw(&row, &set(200, [150, 70, 199]), 0), Ok(id(70)));
    row[190] = 0.75;
    row[130] = 0.75;
    assert_eq!(sampler.draw(&row, &all(200), 0), Ok(id(130)));
    assert_eq!(sampler.draw(&[-0.0, 0.0], &all(2), 0), Ok(id(0)));
}

#[test]
fn padding_is_never_drawn_nor_looked_at() {
    let mut row = vec![0.0; 130];
    row[100..].fill(1e30);
    row[120] = f32::NAN;
    for sampling in [Sampling::greedy(), at(1.0), at(1.0).top_p(0.9).unwrap()] {
        let drawn = Sampler::new(sampling, 1).draw(&row, &all(100), 0).unwrap();
        assert!(drawn.index() < 100);
    }
}

#[test]
fn rows_that_are_no_logits_are_refused() {
    for (value, position) in [(f32::NAN, 0), (f32::NAN, 299), (f32::INFINITY, 256)] {
        let mut row = vec![0.0; 300];
        row[position] = value;
        for sampling in [Sampling::greedy(), at(1.0), at(1.0).top_k(3).unwrap()] {
            // Wherever it is, allowed or not.
            for mask in [all(300), set(300, [7])] {
                let error = Sampler::new(sampling, 0).draw(&row, &mask, 0).unwrap_err();
                assert_eq!(error, DrawError::NotFinite(id(position)));
            }
        }
    }
    let sampler = Sampler::new(at(1.0), 0);
    assert_eq!(sampler.draw(&[f32::NEG_INFINITY; 4], &all(4), 0), Err(DrawError::Impossible));
    assert_eq!(sampler.draw(&[0.0, f32::NEG_INFINITY], &set(2, [1]), 0), Err(DrawError::Impossible));
    assert_eq!(sampler.draw(&[0.0; 4], &set(4, []), 0), Err(DrawError::NoneAllowed));
    assert_eq!(sampler.draw(&[], &set(4, [1]), 0), Err(DrawError::NoneAllowed));
}

/// Chi-squared statistic of draws at many positions against the distribution they should have.
fn chi_squared(sampler: &Sampler, row: &[f32], mask: &TokenSet, draws: usize, expected: &[f64]) -> f64 {
    let mut counts = vec![0.0; row.len()];
    for position in 0..draws {
        counts[sampler.draw(row, mask, position).unwrap().index()] += 1.0;
    }
    #[expect(clippy::cast_precision_loss, reason = "a small count")]
    let draws = draws as f64;
    counts.iter().zip(expected).filter(|(_, share)| **share > 0.0).fold(0.0, |sum, (count, share)| {
        let expected = share * draws;
        sum + (count - expected).powi(2) / expected
    }) + counts
        .iter()
        .zip(expected)
        .filter(|(_, share)| **share == 0.0)
        .map(|(count, _)| count * 1e9)
        .sum::<f64>()
}

fn shares(row: &[f32], temperature: f64, kept: impl Fn(usize) -> bool) -> Vec<f64> {
    let weights: Vec<f64> = row
        .iter()
        .enumerate()
        .map(|(token, &logit)| if kept(token) { (f64::from(logit) / temperature).exp() } else { 0.0 })
        .collect();
    let total: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / total).collect()
}

#[test]
fn draws_have_the_distribution_of_the_logits() {
    let row = [0.0, 1.0, -1.0, 2.0, 0.5, 0.5, -3.0, 1.5];
    let mask = set(8, [0, 2, 3, 5, 7]);
    for seed in 0..5 {
        // The 0.9999 quantiles with 7, 4 and 2 degrees of freedom are 29.9, 23.5 and 18.4.
        let plain = Sampler::new(at(0.8), seed);
        let statistic = chi_squared(&plain, &row, &all(8), 20_000, &shares(&row, 0.8, |_| true));
        assert!(statistic < 29.9, "seed {seed}: {statistic}");
        let expected = shares(&row, 0.8, |token| mask.contains(id(token)));
        let statistic = chi_squared(&plain, &row, &mask, 20_000, &expected);
        assert!(statistic < 23.5, "seed {seed}: {statistic}");
        // The three likeliest of all: 3, 7, 1.
        let cut = Sampler::new(at(0.8).top_k(3).unwrap(), seed);
        let expected = shares(&row, 0.8, |token| [3, 7, 1].contains(&token));
        let statistic = chi_squared(&cut, &row, &all(8), 20_000, &expected);
        assert!(statistic < 18.4, "seed {seed}: {statistic}");
    }
}

#[test]
fn a_peaked_row_of_many_tokens_has_the_right_distribution() {
    // One token with about half of the probability, the rest even: most are skipped without their noise.
    let size = 4000;
    let mut row = vec![0.0; size];
    row[1234] = 8.3;
    let sampler = Sampler::new(at(1.0), 3);
    let draws = 4000;
    let peak =
        (0..draws).filter(|&position| sampler.draw(&row, &all(size), position) == Ok(id(1234))).count();
    let expected = shares(&row, 1.0, |_| true)[1234] * 4000.0;
    let deviation = (f64::from(u32::try_from(peak).unwrap()) - expected).abs();
    assert!(deviation < 4.0 * (4000.0_f64 * 0.25).sqrt(), "{peak} of {draws}, expected {expected}");
}

#[test]
fn seeds_and_positions_draw_independently() {
    let row = [0.0; 2];
    // Pairs (draw at n, draw at n + 1), and (seed n, seed n + 1): each of the four equally often.
    let both = all(2);
    let pair = |first: Result<TokenId, DrawError>, second: Result<TokenId, DrawError>| {
        2 * first.unwrap().index() + second.unwrap().index()
    };
    let mut by_position = [0_i32; 4];
    let mut by_seed = [0_i32; 4];
    for n in 0..4000_u32 {
        let draw = |seed: u32, position: u32| {
            Sampler::new(at(1.0), u64::from(seed)).draw(&row, &both, usize::try_from(position).unwrap())
        };
        by_position[pair(draw(9, n), draw(9, n + 1))] += 1;
        by_seed[pair(draw(n, 9), draw(n + 1, 9))] += 1;
    }
    for count in by_position.into_iter().chain(by_seed) {
        assert!((count - 1000).abs() < 120, "{by_position:?} {by_seed:?}");
    }
}

#[test]
fn draws_do_not_depend_on_what_was_drawn_before() {
    let mut random = StdRng::seed_from_u64(5);
    let row: Vec<f32> = (0..500).map(|_| random.random_range(-3.0..3.0)).collect();
    for sampling in [at(1.0), at(1.0).top_p(0.8).unwrap().top_k(100).unwrap()] {
        let sampler = Sampler::new(sampling, 42);
        let forwards: Vec<_> = (0..50).map(|position| sampler.draw(&row, &all(500), position)).collect();
        let mut backwards: Vec<_> = (0..50)
            .rev()
            .map(|position| Sampler::new(sampling, 42).draw(&row, &all(500), position))
            .collect();
        backwards.reverse();
        assert_eq!(forwards, backwards);
        assert!(forwards.iter().collect::<std::collections::HashSet<_>>().len() > 20);
    }
}

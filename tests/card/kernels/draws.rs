//! Compares choices by the kernels with those of the CPU over random rows, masks, temperatures and seeds: the
//! same token always, also of ties, and of near ties that the last bit of the noise decides.

use domino::{
    TokenId,
    decode::{DrawError, KeptDrawError, Sampler, Sampling},
    model::{
        KeptRows, Logits, RowAnswer, RowChoice,
        candle::{DeviceRows, ModelError},
    },
    vocab::TokenSet,
};
use proptest::prelude::*;

/// A row, and the tokens that may follow.
type Asked = (Vec<f32>, TokenSet);

fn id(index: usize) -> TokenId {
    TokenId::from_index(index).unwrap()
}

fn set(size: usize, tokens: impl IntoIterator<Item = usize>) -> TokenSet {
    let mut set = TokenSet::empty(size);
    tokens.into_iter().for_each(|token| set.insert(id(token)));
    set
}

fn emulated(rows: &[Vec<f32>], backwards: bool) -> DeviceRows {
    DeviceRows::emulated(&Logits::new(rows.concat(), rows[0].len()), backwards).unwrap()
}

/// Logits that spread, tie, and are no numbers; flat rows, in which noise decides.
fn row(width: usize) -> impl Strategy<Value = Vec<f32>> {
    let logit = prop_oneof![
        8 => -30.0..5.0_f32,
        2 => prop_oneof![Just(0.0_f32), Just(-0.0), Just(4.0), Just(f32::MAX), Just(f32::MIN)],
        1 => Just(f32::NEG_INFINITY),
    ];
    let wrong = prop_oneof![Just(f32::NAN), Just(-f32::NAN), Just(f32::INFINITY)];
    let spread = prop::collection::vec(logit, width);
    prop_oneof![
        6 => spread.clone(),
        2 => (-2.0..2.0_f32).prop_map(move |logit| vec![logit; width]),
        1 => Just(vec![f32::NEG_INFINITY; width]),
        1 => (spread, any::<prop::sample::Index>(), wrong).prop_map(|(mut row, at, wrong)| {
            let at = at.index(row.len());
            row[at] = wrong;
            row
        }),
    ]
}

/// Sets from empty to full, some shorter than the row, some longer.
fn allowed(width: usize) -> impl Strategy<Value = TokenSet> {
    let size = width.saturating_sub(40)..width + 40;
    let share = prop_oneof![Just(0.0), Just(1.0), 0.0..1.0_f64, 0.0..0.02_f64];
    (size, share, any::<u64>()).prop_map(|(size, share, seed)| {
        let mut state = seed;
        let mut draws = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        set(size, (0..size).filter(|_| draws() < share))
    })
}

/// Rows of one width, most of a part of a block's, some of several.
fn rows() -> impl Strategy<Value = Vec<Asked>> {
    prop_oneof![10 => 1..300_usize, 1 => 2000..7000_usize].prop_flat_map(|width| {
        let most = if width < 300 { 20 } else { 3 };
        prop::collection::vec((row(width), allowed(width)), 1..most)
    })
}

fn samplings() -> impl Strategy<Value = Sampling> {
    let temperature = prop_oneof![Just(0.0), Just(1.0), 0.05..3.0_f64, Just(1e-6), Just(1e6)];
    temperature.prop_map(|temperature| Sampling::with_temperature(temperature).unwrap())
}

/// Most tokens that are listed of a row.
const LISTED: usize = 512;

/// The allowed tokens that are less than `far` below the likeliest of them.
fn near(row: &[f32], allowed: &TokenSet, far: f32) -> Vec<(TokenId, f32)> {
    let tokens = || allowed.iter().filter(|token| token.index() < row.len());
    let top = tokens().map(|token| row[token.index()]).fold(f32::NEG_INFINITY, f32::max);
    let near = tokens().filter(|token| top - row[token.index()] < far);
    near.map(|token| (token, row[token.index()])).collect()
}

fn drawn(found: Result<TokenId, KeptDrawError<ModelError>>) -> Result<TokenId, DrawError> {
    found.map_err(|error| match error {
        KeptDrawError::Draw(error) => error,
        other => panic!("{other}"),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn choices_are_those_of_the_cpu(
        asked in rows(),
        samplings in prop::collection::vec(samplings(), 20),
        (seed, position) in (any::<u64>(), 0..100_000_usize),
        backwards: bool,
    ) {
        let logits: Vec<Vec<f32>> = asked.iter().map(|(row, _)| row.clone()).collect();
        let kept = emulated(&logits, backwards);
        let samplers: Vec<Sampler> =
            samplings.into_iter().map(|sampling| Sampler::new(sampling, seed)).collect();
        // All rows at once, each by a draw of its own.
        let choices = asked.iter().zip(&samplers).zip(position..);
        let choices: Option<Vec<_>> =
            choices.map(|(((_, allowed), sampler), position)| sampler.choice(allowed, position)).collect();
        // Some have their likelier tokens listed.
        let far = |index: usize| [None, Some(8.0), Some(0.5), None, Some(100.0)][index % 5];
        let choices: Vec<RowChoice<'_>> = choices
            .unwrap()
            .into_iter()
            .enumerate()
            .map(|(index, choice)| RowChoice { near: far(index), ..choice })
            .collect();
        let answers = kept.choose(0, &choices).unwrap().unwrap();
        prop_assert_eq!(answers.len(), asked.len());
        for (index, ((row, allowed), sampler)) in asked.iter().zip(&samplers).enumerate() {
            let expected = sampler.draw(row, allowed, position + index);
            prop_assert_eq!(answers[index].token, expected.ok(), "row {}", index);
            let near = far(index).filter(|_| expected.is_ok()).map(|far| near(row, allowed, far));
            let near = near.filter(|near| near.len() <= LISTED);
            prop_assert_eq!(&answers[index].near, &near, "row {}", index);
            // One by one, with the reason where there is no token.
            let found = drawn(sampler.draw_kept(&kept, index, allowed, position + index));
            prop_assert_eq!(found, expected, "row {}", index);
        }
    }

    /// Two tokens whose totals are as near as numbers can be: which of them wins is decided by the last bits
    /// of both logarithms, of the quotient and of the sum.
    #[test]
    fn the_last_bit_decides_as_on_the_cpu(
        (seed, position) in (any::<u64>(), 0..100_000_usize),
        (one, other) in (0..150_usize, 150..300_usize),
    ) {
        let plain = Sampler::new(Sampling::with_temperature(1.0).unwrap(), seed);
        let [first, second] = [one, other].map(|token| plain.noise(position, id(token)));
        let mut row = vec![f32::NEG_INFINITY; 300];
        // The token with less noise has a logit of one: at this temperature it makes up for the difference.
        let behind = if first < second { one } else { other };
        (row[one], row[other]) = (0.0, 0.0);
        row[behind] = 1.0;
        let kept = emulated(std::slice::from_ref(&row), false);
        let allowed = set(300, 0..300);
        let even = 1.0 / (first - second).abs();
        prop_assume!((2e-6..=5e5).contains(&even));
        for ulps in -3..=3_i64 {
            let temperature = f64::from_bits(even.to_bits().wrapping_add_signed(ulps));
            let sampler = Sampler::new(Sampling::with_temperature(temperature).unwrap(), seed);
            let expected = sampler.draw(&row, &allowed, position);
            let found = drawn(sampler.draw_kept(&kept, 0, &allowed, position));
            prop_assert_eq!(found, expected, "{} ulps", ulps);
        }
    }
}

/// Near ties are near indeed: among a few temperatures around the even one both tokens win.
#[test]
fn near_ties_turn_within_a_few_ulps() {
    let mut turned = 0;
    for seed in 0..200 {
        let plain = Sampler::new(Sampling::with_temperature(1.0).unwrap(), seed);
        let [first, second] = [3, 200].map(|token| plain.noise(7, id(token)));
        let even = 1.0 / (first - second).abs();
        let behind = if first < second { 3 } else { 200 };
        let mut row = vec![f32::NEG_INFINITY; 300];
        (row[3], row[200]) = (0.0, 0.0);
        row[behind] = 1.0;
        let winners: Vec<TokenId> = (-8..=8_i64)
            .map(|ulps| {
                let temperature = f64::from_bits(even.to_bits().wrapping_add_signed(ulps));
                let sampler = Sampler::new(Sampling::with_temperature(temperature).unwrap(), seed);
                sampler.draw(&row, &set(300, 0..300), 7).unwrap()
            })
            .collect();
        turned += usize::from(winners.iter().any(|token| *token != winners[0]));
    }
    assert!(turned > 60, "{turned} of 200");
}

/// More rows than are chosen from at once, from the middle on.
#[test]
fn many_rows_are_chosen_from_in_their_order() {
    let rows: Vec<Vec<f32>> = (0..190)
        .map(|row| (0..50_u8).map(|token| f32::from(token.wrapping_mul(37).wrapping_add(row))).collect())
        .collect();
    let kept = emulated(&rows, true);
    for sampling in [Sampling::greedy(), Sampling::with_temperature(60.0).unwrap()] {
        let sampler = Sampler::new(sampling, 5);
        let sets: Vec<TokenSet> = (0..190).map(|row| set(50, (row % 7..50).step_by(1 + row % 5))).collect();
        let choices: Vec<_> = (9..190).map(|row| sampler.choice(&sets[row], row).unwrap()).collect();
        let answers = kept.choose(9, &choices).unwrap().unwrap();
        let token = |row: usize| sampler.draw(&rows[row], &sets[row], row).ok();
        let expected: Vec<RowAnswer> =
            (9..190).map(|row| RowAnswer { token: token(row), near: None }).collect();
        assert_eq!(answers, expected, "{sampling:?}");
        // Rows that are not there.
        assert!(kept.choose(10, &choices).is_err() && kept.choose(191, &choices[..1]).is_err());
        assert!(kept.choose(190, &[]).unwrap().unwrap().is_empty());
    }
}

/// The longest rows are split over all blocks, and past 65,536 tokens each has more than its share.
#[test]
fn the_longest_rows_are_split_over_blocks() {
    let width = 131_072;
    let row: Vec<f32> = (0..width).map(|token| ((token * 7919) % 1009) as f32 / 100.0).collect();
    let kept = emulated(std::slice::from_ref(&row), false);
    for (size, step) in [(width, 1), (width, 3), (width - 1, 700), (width + 64, 2)] {
        let allowed = set(size, (0..size.min(width)).step_by(step));
        for sampling in [Sampling::greedy(), Sampling::with_temperature(0.8).unwrap()] {
            let sampler = Sampler::new(sampling, 11);
            let expected = sampler.draw(&row, &allowed, 40).unwrap();
            assert_eq!(sampler.draw_kept(&kept, 0, &allowed, 40).unwrap(), expected, "{size} {step}");
        }
    }
}

/// Cuts take the numbers of the row, and give its tokens all the same.
#[test]
fn draws_with_cuts_are_made_from_rows() {
    let row: Vec<f32> = (0..200_u8).map(|token| f32::from(token.wrapping_mul(37)) / 40.0).collect();
    let kept = emulated(std::slice::from_ref(&row), false);
    let allowed = set(200, (0..200).step_by(3));
    let plain = Sampling::with_temperature(1.0).unwrap();
    for sampling in [plain.top_k(5).unwrap(), plain.top_p(0.7).unwrap(), plain.min_p(0.1).unwrap()] {
        for seed in 0..20 {
            let sampler = Sampler::new(sampling, seed);
            assert!(sampler.choice(&allowed, 3).is_none());
            let expected = sampler.draw(&row, &allowed, 3).unwrap();
            assert_eq!(sampler.draw_kept(&kept, 0, &allowed, 3).unwrap(), expected);
        }
    }
}

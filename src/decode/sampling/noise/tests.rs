//! Draws by Gumbel noise, held against a look at every token.

use proptest::prelude::*;

use super::*;

fn sets(size: usize) -> impl Strategy<Value = TokenSet> {
    let word = prop_oneof![
        Just(0),
        Just(u64::MAX),
        any::<u64>(),
        any::<[u64; 4]>().prop_map(|words| { words.into_iter().fold(u64::MAX, |all, word| all & word) })
    ];
    (prop::collection::vec(word, size.div_ceil(WORD)), any::<bool>()).prop_map(move |(words, few)| {
        // Few tokens are held as a list, many as bits.
        let (mut set, every) = (TokenSet::empty(size), if few { 150 } else { 1 });
        let tokens = (0..size).filter(|at| words[at / WORD] >> (at % WORD) & 1 == 1).step_by(every);
        tokens.for_each(|at| set.insert(TokenId::from_index(at).unwrap()));
        set
    })
}

fn rows() -> impl Strategy<Value = Vec<f32>> {
    let logit = prop_oneof![
        8 => -30.0..5.0_f32,
        1 => Just(f32::NEG_INFINITY),
        1 => prop_oneof![Just(0.0), Just(-0.0), Just(4.0), Just(f32::MAX), Just(f32::MIN)],
    ];
    prop_oneof![
        prop::collection::vec(logit, 1..700),
        // Flat rows: then it is the noise that decides.
        (1..700_usize, -2.0..2.0_f32).prop_map(|(size, logit)| vec![logit; size]),
    ]
}

proptest! {
    /// Compares with the definition, by scores and noise of each.
    #[test]
    fn the_winner_is_that_of_comparing_one_by_one(
        (row, allowed) in rows().prop_flat_map(|row| (Just(row.clone()), sets(row.len() + 5))),
        temperature in prop_oneof![Just(1.0), 0.01..3.0_f64, Just(1e-310), Just(1e-30), Just(1e300)],
        (seed, position) in any::<(u64, u64)>(),
    ) {
        let noise = PositionNoise::new(seed, position);
        let mut all = Vec::new();
        for (index, &logit) in row.iter().enumerate() {
            let token = TokenId::from_index(index).unwrap();
            if allowed.contains(token) {
                all.push(Candidate::new(token, logit, temperature));
            }
        }
        let total = |candidate: &Candidate| candidate.score + gumbel(noise.bits(candidate.token));
        let best = all.iter().map(total).fold(f64::NEG_INFINITY, f64::max);
        let expected = all.iter().find(|candidate| total(candidate) == best).map(|best| best.token);
        // From wherever the race begins.
        for first in all.iter().step_by(37) {
            let mut race = GumbelArgmax::new(noise, *first);
            race.enter_all(&row, &allowed, temperature);
            prop_assert_eq!(Some(race.winner()), expected);
        }
    }

    /// Compares the loops as they are with those in the processor's widest registers.
    #[test]
    fn loops_in_wide_registers_change_no_bit(
        (row, allowed) in rows().prop_flat_map(|row| (Just(row.clone()), sets(row.len() + 5))),
        temperature in prop_oneof![Just(1.0), 0.01..3.0_f64, Just(1e-310), Just(1e300)],
        (seed, position) in any::<(u64, u64)>(),
    ) {
        let Contents::Bits(words) = allowed.contents() else { return Ok(()) };
        let first = Candidate::new(TokenId::new(0), row[0], temperature);
        let noise = || PositionNoise::new(seed, position);
        let [mut wide, mut plain] = [(); 2].map(|()| GumbelArgmax::new(noise(), first));
        dispatch(All { race: &mut wide, row: &row, words, temperature });
        All { race: &mut plain, row: &row, words, temperature }.run();
        prop_assert_eq!(wide.winner(), plain.winner());
        prop_assert_eq!(wide.total.to_bits(), plain.total.to_bits());
        let bits = |tops: Vec<f32>| tops.into_iter().map(f32::to_bits).collect::<Vec<_>>();
        prop_assert_eq!(bits(tops(&row, &allowed)), bits(Tops { row: &row, words }.run()));
        prop_assert_eq!(first_not_finite(&row), NotFinite { row: &row }.run());
    }

    #[test]
    fn word_tops_are_the_largest_allowed_logits(
        (row, allowed) in rows().prop_flat_map(|row| (Just(row.clone()), sets(row.len() + 5))),
    ) {
        let tops = tops(&row, &allowed);
        for (index, &top) in tops.iter().enumerate() {
            let tokens = WORD * index..row.len().min(WORD * (index + 1));
            let allowed = tokens.filter(|&at| allowed.contains(TokenId::from_index(at).unwrap()));
            let expected = allowed.map(|at| row[at]).fold(f32::NEG_INFINITY, f32::max);
            prop_assert!(top == expected, "{top} {expected}");
        }
        let mut best: Option<(TokenId, f32)> = None;
        for_each_logit(&row, &allowed, |token, logit| {
            if best.is_none_or(|(_, most)| logit > most) {
                best = Some((token, logit));
            }
        });
        prop_assert_eq!(likeliest(&row, &allowed), best);
        prop_assert_eq!(tops.len(), row.len().div_ceil(WORD));
    }

    #[test]
    fn the_first_logit_that_is_not_finite_is_found(
        mut row in rows(), at: prop::sample::Index, which in 0..3_usize,
    ) {
        prop_assert_eq!(first_not_finite(&row), None);
        let at = at.index(row.len());
        row[at] = [f32::NAN, f32::INFINITY, -f32::NAN][which];
        prop_assert_eq!(first_not_finite(&row), Some(at));
    }
}

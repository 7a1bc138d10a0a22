//! Allocations of draft tokens to sequences, held to all allocations.

use proptest::prelude::*;

use super::*;

/// Creates rising cost curves of tokens and of whole rows from increments.
fn cost(tokens: &[f64], rows: &[f64]) -> PassCost {
    let mut cost = PassCost::default();
    let mut sum = 1.0;
    for (number, more) in (1..).zip(tokens) {
        sum += more;
        cost.observe(Pass { tokens: number, whole: 0 }, sum);
    }
    let mut whole = 0.0;
    for (number, more) in (1..).zip(rows) {
        whole += more;
        cost.observe(Pass { tokens: 1, whole: number }, cost.seconds(Pass { tokens: 1, whole: 0 }) + whole);
    }
    cost
}

/// Returns the expected tokens of keeping this much of each draft, less their price.
fn net(worth: &DraftBudget<'_>, plain: Pass, drafts: &[Vec<Offered>], kept: &[usize]) -> f64 {
    let all = || drafts.iter().zip(kept).flat_map(|(draft, &kept)| &draft[..kept]);
    let added = all().fold(Pass::default(), |added, token| added + token.pass());
    all().map(|token| token.reached).sum::<f64>() - worth.price(plain, added)
}

/// Returns the best result over all lengths.
fn best(worth: &DraftBudget<'_>, plain: Pass, drafts: &[Vec<Offered>]) -> f64 {
    let mut kept = vec![0; drafts.len()];
    let mut most = 0.0_f64;
    loop {
        most = most.max(net(worth, plain, drafts, &kept));
        let Some(at) = (0..drafts.len()).find(|&at| kept[at] < drafts[at].len()) else { return most };
        kept[at] += 1;
        kept[..at].fill(0);
    }
}

fn drafts(wide: impl Strategy<Value = bool>) -> impl Strategy<Value = Vec<Vec<Offered>>> {
    let draft = prop::collection::vec((0.2..1.0_f64, wide), 0..5).prop_map(|tokens| {
        let mut reached = 1.0;
        let offered = tokens.into_iter().map(|(acceptance, wide)| {
            reached *= acceptance;
            Offered { reached, wide }
        });
        offered.collect()
    });
    prop::collection::vec(draft, 0..5)
}

fn cut(
    drafts: &[Vec<Offered>],
    cost: &PassCost,
    pace: f64,
    plain: Pass,
) -> Result<(f64, f64), TestCaseError> {
    let worth = DraftBudget { cost, pace, sequences: drafts.len(), at_once: 1 };
    let slices: Vec<&[Offered]> = drafts.iter().map(Vec::as_slice).collect();
    let Allocation { kept, gains } = worth.cut(plain, &slices);
    prop_assert!(kept.iter().zip(drafts).all(|(kept, draft)| *kept <= draft.len()));
    let found = net(&worth, plain, drafts, &kept);
    // The parts are the whole.
    prop_assert!((gains.iter().sum::<f64>() * pace - found).abs() < 1e-6, "{gains:?} {found}");
    Ok((found, best(&worth, plain, drafts)))
}

proptest! {
    #[test]
    fn cuts_of_shared_drafts_are_optimal(
        drafts in drafts(Just(true)),
        steps in prop::collection::vec(prop_oneof![Just(0.0), 0.0..1.0_f64], 40),
        (pace, plain) in (0.05..1.5_f64, 1..9_usize),
    ) {
        let (found, best) = cut(&drafts, &cost(&steps, &[]), pace, Pass::whole(plain))?;
        prop_assert!((found - best).abs() < 1e-9, "{found} {best}");
    }

    #[test]
    fn cuts_with_partial_rows_are_no_worse_than_no_drafts(
        drafts in drafts(any::<bool>()),
        (token, row, pace) in (0.0..1.0_f64, 0.0..1.0_f64, 0.05..1.5_f64),
        (plain, whole) in (1..9_usize, 1..9_usize),
    ) {
        let cost = cost(&[token; 40], &[row; 40]);
        let (found, best) = cut(&drafts, &cost, pace, Pass { tokens: plain, whole: whole.min(plain) })?;
        prop_assert!(-1e-9 < found && found <= best + 1e-9, "{found} {best}");
    }

    /// No draft is given up that would have become better.
    #[test]
    fn a_draft_given_up_could_not_have_gained(
        steps in prop::collection::vec(prop_oneof![Just(0.0), 0.0..1.0_f64], 40),
        (pace, reached, behind) in (0.05..1.5_f64, 0.0..1.0_f64, 0.0..0.5_f64),
        follow in prop::collection::vec(0.5..1.0_f64, 1..16),
        plain in 1..9_usize,
    ) {
        let cost = cost(&steps, &[]);
        let worth = DraftBudget { cost: &cost, pace, sequences: 1, at_once: 1 };
        let pass = Pass { tokens: plain, whole: 0 };
        if !worth.could_gain(pass, reached, behind, follow.len()) {
            let (mut gain, mut reached) = (0.0, reached);
            for (tokens, acceptance) in (1..).zip(follow) {
                reached *= acceptance;
                gain += reached;
                let price = worth.price(pass, Pass { tokens, whole: 0 });
                prop_assert!(gain - price <= behind + 1e-9);
            }
        }
    }
}

#[test]
fn a_draft_without_room_cannot_gain() {
    let cost = cost(&[0.0; 20], &[]);
    let worth = DraftBudget { cost: &cost, pace: 1.0, sequences: 1, at_once: 1 };
    let could = |room| worth.could_gain(Pass::whole(1), 0.5, 0.0, room);
    assert!(could(9) && could(1) && !could(0));
}

#[test]
fn the_latest_passes_count_most() {
    let mut speedup = Speedup::default();
    assert!((speedup.times() - 1.0).abs() < 1e-12);
    speedup.note(3.0, 1.0);
    assert!((speedup.times() - 7.0 / 5.0).abs() < 1e-12);
    speedup.note(2.0, 1.5);
    speedup.note(f64::NAN, 1.0);
    assert!((speedup.times() - (0.98 * 3.0 + 2.0 + 4.0) / (0.98 + 1.5 + 4.0)).abs() < 1e-12);
}

//! The cost of a pass by its number of rows.

use super::*;
use crate::ids::TokenId;

#[test]
fn rows_come_on_top_of_tokens() {
    let mut cost = PassCost::default();
    assert!((cost.relative(Pass::whole(11)) - 2.0).abs() < 1e-9);
    assert_eq!(cost.unmeasured(true).len(), 2 * CostCurve::PROBES.len());
    for (tokens, whole, seconds) in [(1, 0, 1.0), (5, 0, 1.4), (1, 1, 3.0), (5, 5, 3.8)] {
        cost.observe(Pass { tokens, whole }, seconds);
    }
    for (tokens, whole, seconds) in [(1, 1, 3.0), (3, 0, 1.2), (5, 1, 3.4), (5, 3, 3.6), (5, 5, 3.8)] {
        let got = cost.seconds(Pass { tokens, whole });
        assert!((got - seconds).abs() < 1e-9, "{tokens} {whole}: {got}");
    }
    assert!(!cost.unmeasured(true).contains(&Pass { tokens: 1, whole: 0 }));
    assert!(!cost.unmeasured(true).contains(&Pass::whole(1)));
    assert!(cost.unmeasured(false).contains(&Pass::whole(2)));
}

#[test]
fn the_cost_of_a_whole_pass_is_that_of_its_tokens() {
    let mut cost = PassCost::default();
    cost.observe(Pass::whole(1), 2.0);
    cost.observe(Pass::whole(1), 4.0);
    assert!((2.0..=4.0).contains(&cost.seconds(Pass::whole(1))), "{cost:?}");
}

#[test]
fn tokens_and_rows_are_told_apart_by_passes_over_both() {
    // What was measured first, without whole rows, is half of what tokens come to cost.
    let mut cost = PassCost::default();
    for tokens in [1, 8, 16] {
        cost.observe(Pass { tokens, whole: 0 }, 1.0 + 0.05 * f64::from(tokens as u32));
        cost.observe(Pass::whole(tokens), 1.0 + 0.15 * f64::from(tokens as u32));
    }
    let seconds = |tokens: u32, whole: u32| 1.0 + 0.1 * f64::from(tokens) + 0.1 * f64::from(whole);
    let sizes = [(8, 4), (16, 6), (12, 8), (9, 3), (8, 7), (14, 4), (16, 8), (8, 2), (12, 5)];
    for _ in 0..60 {
        for (tokens, whole) in sizes {
            let pass = Pass { tokens: tokens as usize, whole: whole as usize };
            cost.observe(pass, seconds(tokens, whole));
        }
    }
    for (tokens, whole) in sizes {
        let got = cost.seconds(Pass { tokens: tokens as usize, whole: whole as usize })
            / cost.seconds(Pass { tokens: 8, whole: 4 });
        let expected = seconds(tokens, whole) / seconds(8, 4);
        assert!((got / expected - 1.0).abs() < 0.05, "{tokens} {whole}: {got} {expected}");
    }
}

#[test]
fn a_slow_machine_is_not_an_expensive_pass() {
    let [short, long] = [1, 4].map(|tokens| Pass { tokens, whole: 0 });
    let mut cost = PassCost::default();
    cost.observe(short, 1.0);
    cost.observe(long, 1.3);
    // Long passes only, while all takes twice as long; then both.
    (0..40).for_each(|_| cost.observe(long, 2.6));
    assert!((cost.seconds(long) / cost.seconds(short) - 1.3).abs() < 1e-9, "{cost:?}");
    for _ in 0..40 {
        cost.observe(short, 2.0);
        cost.observe(long, 2.6);
    }
    assert!((cost.seconds(long) / cost.seconds(short) - 1.3).abs() < 1e-9, "{cost:?}");
    // At first mistaken, and times that scatter.
    for round in 0..60 {
        for (at, pass) in [short, long].into_iter().enumerate() {
            cost.observe(pass, 3.0 + 0.05 * f64::from((7 * round + 3 * at as u32) % 5));
        }
    }
    assert!((cost.seconds(long) / cost.seconds(short) - 1.0).abs() < 0.07, "{cost:?}");
}

#[test]
fn tokens_taken_at_once_cost_as_much_as_one() {
    let sixteen = NonZeroUsize::new(16).unwrap();
    let mut cost = PassCost::default();
    cost.observe(Pass::whole(1), 7.0);
    cost.set_at_once(sixteen);
    assert_eq!(cost.unmeasured(true), [Pass::whole(1)]);
    assert!((cost.relative(Pass::whole(16)) - 1.0).abs() < 1e-9, "what was measured is forgotten");
    // The first pass is made kernel by kernel, and then recorded; most later ones are replays.
    for (tokens, seconds) in [(1, 90.0), (9, 30.0), (1, 2.0), (16, 2.0), (5, 2.0), (17, 4.0), (40, 6.0)] {
        cost.observe(Pass { tokens, whole: tokens / 2 }, seconds);
        cost.set_at_once(sixteen);
    }
    (0..4).for_each(|_| cost.observe(Pass::whole(3), 2.0));
    for (tokens, whole, seconds) in
        [(0, 0, 2.0), (1, 0, 2.0), (1, 1, 2.0), (16, 16, 2.0), (17, 1, 4.0), (32, 3, 4.0), (65, 65, 10.0)]
    {
        let got = cost.seconds(Pass { tokens, whole });
        assert!((got - seconds).abs() < 1e-9, "{tokens} {whole}: {got}");
    }
    assert!(cost.unmeasured(true).is_empty() && cost.unmeasured(false).is_empty());
    cost.set_at_once(NonZeroUsize::MIN);
    assert_eq!(cost, PassCost::default());
}

#[test]
fn wide_sets_have_more_than_a_thirty_second() {
    let mut set = TokenSet::empty(320);
    (0..10).map(TokenId::new).for_each(|token| set.insert(token));
    assert!(!Pass::is_wide(&set));
    set.insert(TokenId::new(300));
    assert!(Pass::is_wide(&set));
}

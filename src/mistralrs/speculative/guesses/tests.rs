//! Guesses in the engine of mistral.rs, along texts.

use super::*;
use domino::{Compiler, Grammar, Limits, Syntax, decode::Sampling, vocab::Vocabulary};

/// Seconds of a pass by rows, like mistral.rs on two cores: products take twice as long over two to eight
/// rows as over one.
fn seconds(rows: usize) -> f64 {
    match rows {
        1 => 0.0126,
        2..=8 => 0.0260 + 0.0005 * f64::from(u32::try_from(rows).unwrap()),
        _ => 0.0340,
    }
}

/// Guesses for texts of `[a-d]*`, and their grammar.
fn guesses() -> (Guesses, CompiledGrammar) {
    let json = r#"{"model": {"type": "WordLevel", "vocab": {"a": 0, "b": 1, "c": 2, "d": 3},
            "unk_token": "a"}, "added_tokens": [], "normalizer": null, "pre_tokenizer": null,
            "post_processor": null, "decoder": null}"#;
    let tokenizer = Tokenizer::from_tokenizer_json(json).unwrap();
    let names = ["a", "b", "c", "d"].into_iter().zip(0..).map(|(name, id)| (TokenId::new(id), name));
    let vocabulary = names.fold(Vocabulary::builder(), |builder, (id, name)| builder.token(id, name));
    let vocabulary = vocabulary.end_of_text(TokenId::new(4)).build().unwrap();
    let grammar = Grammar::parse(Syntax::Regex, "[a-d]*", &Limits::default()).unwrap();
    let grammar = Compiler::new(vocabulary).compile(&grammar).unwrap();
    let guesses = Guesses::new(&grammar, &tokenizer, Prior::new(&grammar), Learning::Online);
    (guesses, grammar)
}

/// Time in seconds of each pass of a text, drafted as long as pays, and the tokens of its draft.
fn passes(
    guesses: &Guesses,
    grammar: &CompiledGrammar,
    cost: &SharedCost,
    text: &[TokenId],
) -> Vec<(f64, usize)> {
    let mut guesser = guesses.guesser(15, DraftLength::Auto, cost);
    let draws = CoupledDraws { sampler: Sampler::new(Sampling::greedy(), 1), first: None, prompt: 1 };
    let mut constraint = grammar.constraint();
    let (mut sequence, mut passes, mut left) = (vec![TokenId::new(0)], Vec::new(), text);
    while !left.is_empty() {
        let room = left.len() - 1;
        let draft = guesser.draft(&constraint, &mut sequence, &draws, room, <[_]>::len).to_vec();
        let accepted = draft.iter().zip(left).take_while(|(guess, token)| guess == token).count();
        let (taken, rest) = left.split_at(accepted + 1);
        for &token in taken {
            guesser.observe(&constraint, &mut sequence, &draws, token);
            constraint.advance(token).unwrap();
            sequence.push(token);
        }
        let rows = draft.len() + 1;
        guesser.verified(accepted, rows, seconds(rows));
        passes.push((seconds(rows), draft.len()));
        left = rest;
    }
    passes
}

/// Random tokens: `percent` of 100 are `a`, the others uniform.
fn noise(count: usize, percent: u64) -> Vec<TokenId> {
    let next =
        |&x: &u64| Some(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407));
    let states = std::iter::successors(Some(7_u64), next).skip(1);
    let token = |x: u64| if (x >> 33) % 100 < percent { 0 } else { u32::try_from(x >> 62).unwrap() };
    states.map(|x| TokenId::new(token(x))).take(count).collect()
}

#[test]
fn the_cost_of_narrow_passes_is_learnt_after_a_slow_start() {
    let cost = SharedCost::default();
    cost.note(1, 0.040);
    for _ in 0..20 {
        for rows in [1, 2, 4, 8, 17] {
            cost.note(rows, seconds(rows));
        }
    }
    for rows in [2, 4, 8] {
        let (found, right) = (cost.read().relative(Pass::whole(rows)), seconds(rows) / seconds(1));
        assert!((found - right).abs() < 0.01, "{rows} rows: {found}, not {right}");
    }
}

#[test]
fn costs_measured_on_a_busy_machine_are_forgotten() {
    let cost = SharedCost::default();
    (0..15).for_each(|_| _ = cost.note(4, 9.0));
    (0..SharedCost::MEMORY).for_each(|_| _ = cost.note(1, 0.01));
    assert!(cost.read().seconds(Pass::whole(4)) < 0.1);
}

#[test]
fn requests_at_once_share_what_they_learn() {
    let ((guesses, _), cost) = (guesses(), SharedCost::default());
    let (mut one, other) = (guesses.guesser(15, DraftLength::Auto, &cost), cost.clone());
    let late = guesses.guesser(15, DraftLength::Auto, &cost);
    one.verified(0, 3, 0.5);
    // Both texts are alive until here: neither must end first, nor undo what the other has found out.
    drop(late);
    assert!((other.read().seconds(Pass::whole(3)) - 0.5).abs() < 1e-9);
}

#[test]
fn drafts_that_do_not_pay_are_not_made() {
    for percent in [0, 30, 50, 60, 70, 80, 90] {
        let ((guesses, grammar), cost) = (guesses(), SharedCost::default());
        let found = passes(&guesses, &grammar, &cost, &noise(1500, percent));
        let (took, plain) = (found.iter().map(|pass| pass.0).sum::<f64>(), 1500.0 * seconds(1));
        assert!(plain / took > 0.97, "{percent} %: {took} s, and {plain} s without drafts");
        assert!(found[..50].iter().any(|pass| pass.1 > 0), "it was not even tried");
    }
}

#[test]
fn texts_that_repeat_themselves_are_drafted_for() {
    let ((guesses, grammar), cost) = (guesses(), SharedCost::default());
    let text: Vec<_> = noise(11, 0).into_iter().cycle().take(800).collect();
    let found = passes(&guesses, &grammar, &cost, &text);
    let (took, plain) = (found.iter().map(|pass| pass.0).sum::<f64>(), 800.0 * seconds(1));
    assert!(plain / took > 3.0, "{took} s, and {plain} s without drafts");
}

#[test]
fn memory_grows_with_what_is_learnt() {
    let ((guesses, grammar), cost) = (guesses(), SharedCost::default());
    let before = guesses.memory();
    passes(&guesses, &grammar, &cost, &noise(500, 0));
    let contexts: usize = guesses.prior().summary().levels.iter().map(|level| level.0).sum();
    assert!(guesses.memory() > before + 40 * contexts, "{} for {contexts}", guesses.memory());
}

//! Promise 4, lossless speculation, as far as there is any yet: a draft that is verified in one pass and
//! rolled back where it is wrong gives the tokens of the plain run, whatever the draft says. Models, masks, draws
//! and rollbacks are those that a speculating decoder will be made of.

use domino::{
    Constraint, Lookahead, TokenId,
    decode::{Decoder, Masking, Sampler, Sampling},
    model::{Model, Rows, ScriptedModel},
};
use proptest::prelude::*;

use super::generate::{Case, World, case, config};

const PROMPT: [TokenId; 2] = [TokenId::new(0), TokenId::new(1)];
const CONTEXT: usize = 64;

/// The plain run's tokens, as far as the vocabulary can say what the grammar asks for.
fn plain(world: &World, constraint: &Constraint, sampling: Sampling, seed: u64, most: usize) -> Vec<TokenId> {
    let run = |masking| {
        let mut decoder = Decoder::builder(ScriptedModel::new(world.vocabulary.size(), CONTEXT, seed))
            .vocabulary(world.vocabulary.clone())
            .constraint(constraint.clone())
            .sampling(sampling)
            .seed(seed)
            .max_new_tokens(most)
            .masking(masking)
            .build()
            .unwrap();
        let mut steps = decoder.steps(&PROMPT);
        while let Some(Ok(_)) = steps.next() {}
        steps.tokens().to_vec()
    };
    let tokens = run(Masking::Always);
    assert_eq!(tokens, run(Masking::Opportunistic));
    tokens
}

/// A draft of up to `length` tokens that the constraint allows, right about the plain run where `choice`
/// says so. The constraint is left behind the draft.
fn draft(
    world: &World,
    constraint: &mut Constraint,
    length: usize,
    truth: &[TokenId],
    choice: u16,
) -> Vec<TokenId> {
    let mut tokens = Vec::new();
    for at in 0..length {
        let choice = choice.rotate_left(u32::try_from(at).unwrap());
        let mask = constraint.mask().unwrap().clone();
        let token = match truth.get(at) {
            Some(&token) if !choice.is_multiple_of(3) => Some(token),
            _ => world.choose(&mask, choice).filter(|&token| !world.ends(token)),
        };
        let Some(token) = token else { break };
        constraint.advance(token).unwrap();
        tokens.push(token);
    }
    tokens
}

/// The run in which each pass verifies a draft; as many tokens as `truth` has, or fewer if it ends the text.
fn speculative(
    world: &World,
    mut constraint: Constraint,
    sampler: &Sampler,
    mut model: ScriptedModel,
    truth: &[TokenId],
    choices: &[u16],
) -> Vec<TokenId> {
    let mut tokens: Vec<TokenId> = Vec::new();
    let mut pending = PROMPT.to_vec();
    let mut choices = choices.iter().cycle();
    while tokens.len() < truth.len() {
        let choice = choices.next().copied().unwrap_or_default();
        let rest = &truth[tokens.len()..];
        let length = usize::from(choice % 6).min(rest.len());
        let drafted = draft(world, &mut constraint, length, rest, choice);
        constraint.rollback(drafted.len()).unwrap();
        let known = model.position() + pending.len();
        let rows = model.forward(&[&pending[..], &drafted].concat(), Rows::All).unwrap();
        for at in 0..=drafted.len() {
            let position = PROMPT.len() + tokens.len();
            let row = rows.row(pending.len() - 1 + at).unwrap();
            let token = match sampler.draw(row, constraint.mask().unwrap(), position) {
                Ok(token) if tokens.len() < truth.len() && !world.ends(token) => token,
                _ => return tokens,
            };
            constraint.advance(token).unwrap();
            tokens.push(token);
            if drafted.get(at) != Some(&token) {
                // The cache keeps what was accepted; the token that took the draft's place is not in it yet.
                model.truncate(known + at).unwrap();
                pending = vec![token];
                break;
            }
        }
    }
    tokens
}

fn check(case: &Case, greedy: bool, seed: u64) {
    let world = case.build();
    let Some(compiled) = world.compile(Lookahead::Unbounded) else { return };
    let constraint = compiled.constraint();
    let sampling = if greedy { Sampling::default() } else { Sampling::with_temperature(1.3).unwrap() };
    let truth = plain(&world, &constraint, sampling, seed, case.choices.len());
    let model = ScriptedModel::new(world.vocabulary.size(), CONTEXT, seed);
    let sampler = Sampler::new(sampling, seed);
    assert_eq!(speculative(&world, constraint, &sampler, model, &truth, &case.choices), truth);
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn drafts_do_not_change_the_text(case in case(12), greedy: bool, seed: u64) {
        check(&case, greedy, seed);
    }
}

//! Numbering of draws: a loop of one's own, the decoder and a batch write the same text by the same seed.
//!
//! The loop is that of `examples/own_loop.rs`, which `docs/library.md` shows.

use candle_core::{Device, Tensor};
use domino::{
    CompiledGrammar, TokenId,
    decode::{
        BatchDecoder, BatchEvent, ConditionalDecoder, DecodeOptions, Decoder, Masking, Sampler, Sampling,
        SequenceId,
    },
    model::{Model, OneByOne, Rows},
    proposer::{DraftLength, Drafter, Guess, Lookup, Propose, Site},
};
use proptest::prelude::*;

use super::run::{compiled, model, prompt, samplings, vocabulary};

#[path = "../../examples/own_loop.rs"]
#[expect(dead_code, unreachable_pub, reason = "it is a program by itself")]
mod own_loop;

/// Most tokens of a text.
const MOST: usize = 24;

/// A proposer of tokens that are mostly wrong.
#[derive(Debug)]
struct Wrong;

impl Propose for Wrong {
    fn guess(&mut self, site: &mut Site<'_>) -> Option<Guess> {
        let drafted = site.drafted();
        let token = site.mask()?.iter().nth(drafted)?;
        Some(Guess { token, acceptance: 0.9 })
    }
}

/// Drafters of every kind, with none first.
fn drafters() -> Vec<Option<Drafter>> {
    let length = DraftLength::up_to(3, 0.0).unwrap();
    let drafter = |proposer: Box<dyn Propose>| Some(Drafter::new(proposer, length));
    vec![None, drafter(Box::<Lookup>::default()), drafter(Box::new(Wrong))]
}

fn grammars() -> Vec<CompiledGrammar> {
    let texts = [
        r#"root ::= "{\"" [a-z]+ "\": " ("true" | "null" | [0-9]+) " "? "}""#,
        "root ::= .*",
        r#"root ::= item (", " item)*   item ::= "[]" | [a-e]{1,4}"#,
    ];
    texts.map(compiled).to_vec()
}

fn options(sampling: Sampling, seed: u64) -> DecodeOptions {
    let mut options = DecodeOptions::default();
    (options.sampling, options.seed, options.max_new_tokens) = (sampling, seed, MOST);
    options
}

/// Writes a text by the loop of the page.
fn own(
    compiled: &CompiledGrammar,
    sampling: Sampling,
    seed: u64,
    script: u64,
    prompt: &[TokenId],
) -> Vec<TokenId> {
    let sampler = Sampler::new(sampling, seed);
    let prompt: Vec<u32> = prompt.iter().copied().map(TokenId::raw).collect();
    let mut model = model(script);
    let written = own_loop::write(compiled, &sampler, &prompt, MOST, |tokens| {
        let tokens: Vec<TokenId> = tokens.iter().copied().map(TokenId::new).collect();
        let logits = model.forward(&tokens, Rows::Last).map_err(candle_core::Error::wrap)?;
        Tensor::new(logits.last().unwrap_or_default(), &Device::Cpu)
    });
    written.unwrap().into_iter().map(TokenId::new).collect()
}

/// Writes the texts of a batch, in the order of the requests.
fn batched(
    script: u64,
    requests: Vec<(Vec<TokenId>, &CompiledGrammar, DecodeOptions, Option<Drafter>)>,
) -> Vec<Vec<TokenId>> {
    let mut batch = BatchDecoder::new(OneByOne::new(vec![model(script); 2]), vocabulary()).unwrap();
    let add = |(prompt, compiled, options, drafter): (Vec<_>, &CompiledGrammar, _, _)| {
        let constraint = Some(compiled.constraint());
        match drafter {
            Some(drafter) => batch.add_with_drafter(&prompt, constraint, &options, drafter).unwrap(),
            None => batch.add(&prompt, constraint, &options).unwrap(),
        }
    };
    let order: Vec<SequenceId> = requests.into_iter().map(add).collect();
    let mut ended = std::collections::BTreeMap::new();
    while !batch.is_empty() {
        for event in batch.step() {
            match event {
                BatchEvent::Finished { sequence, generation } => {
                    ended.insert(sequence, generation.tokens);
                }
                BatchEvent::Failed { error, .. } => panic!("{error}"),
                _ => {}
            }
        }
    }
    order.iter().map(|sequence| ended.remove(sequence).expect("it has ended")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_loop_of_ones_own_writes_what_the_decoder_writes(
        which in 0_usize..3,
        sampling in 0..samplings().len(),
        (seed, script) in any::<(u64, u64)>(),
        tokens in proptest::collection::vec(0..200_u32, 1..12),
    ) {
        let (grammars, sampling) = (grammars(), samplings()[sampling]);
        let prompt: Vec<TokenId> = tokens.into_iter().map(TokenId::new).collect();
        let expected = own(&grammars[which], sampling, seed, script, &prompt);
        for masking in [Masking::Ahead, Masking::Always, Masking::Opportunistic] {
            for drafter in drafters() {
                let mut decoder = Decoder::builder(model(script))
                    .vocabulary(vocabulary())
                    .constraint(grammars[which].constraint())
                    .options(options(sampling, seed))
                    .masking(masking)
                    .build()
                    .unwrap();
                decoder.set_drafter(drafter);
                let steps: Vec<TokenId> = decoder.steps(&prompt).map(|step| step.unwrap().token).collect();
                prop_assert_eq!(&steps, &expected, "steps, {:?}", masking);
                prop_assert_eq!(&decoder.generate(&prompt).unwrap().tokens, &expected, "{:?}", masking);
            }
        }
    }

    #[test]
    fn a_batch_writes_what_loops_of_ones_own_write(
        sampling in 0..samplings().len(),
        script in any::<u64>(),
        asked in proptest::collection::vec(
            (0_usize..3, any::<u64>(), proptest::collection::vec(0..200_u32, 1..12), 0_usize..3), 1..5
        ),
    ) {
        let (grammars, sampling) = (grammars(), samplings()[sampling]);
        let (mut requests, mut expected) = (Vec::new(), Vec::new());
        for (which, seed, tokens, drafter) in asked {
            let prompt: Vec<TokenId> = tokens.into_iter().map(TokenId::new).collect();
            expected.push(own(&grammars[which], sampling, seed, script, &prompt));
            let drafter = drafters().swap_remove(drafter);
            requests.push((prompt, &grammars[which], options(sampling, seed), drafter));
        }
        prop_assert_eq!(batched(script, requests), expected);
    }

    #[test]
    fn one_particle_writes_what_the_loop_writes(
        which in 0_usize..3, (seed, script) in any::<(u64, u64)>(), length in 1_usize..9,
    ) {
        let (grammars, sampling) = (grammars(), super::draw::at(1.0));
        let prompt: Vec<TokenId> = prompt().into_iter().cycle().take(length).collect();
        let expected = own(&grammars[which], sampling, seed, script, &prompt);
        let one = OneByOne::new(vec![model(script)]);
        let constraint = grammars[which].constraint();
        let mut decoder = ConditionalDecoder::new(one, &constraint, &options(sampling, seed)).unwrap();
        let drawn = decoder.draw(&prompt, &|| true).unwrap();
        prop_assert_eq!(drawn.generation.tokens, expected);
    }
}

/// Draws numbered from the text on, without the prompt, write another text: the tests above would notice.
#[test]
fn numbers_that_leave_out_the_prompt_write_another_text() {
    let (free, sampling, prompt) = (compiled("root ::= .*"), super::draw::at(1.0), prompt());
    let sampler = Sampler::new(sampling, 7);
    let from = |first: usize| {
        let (mut model, mut constraint) = (model(7), free.constraint());
        let (mut text, mut pending) = (Vec::new(), prompt.clone());
        while text.len() < MOST {
            let logits = model.forward(&pending, Rows::Last).unwrap();
            let mask = constraint.mask().unwrap();
            let token = sampler.draw(logits.last().unwrap(), mask, first + text.len()).unwrap();
            constraint.advance(token).unwrap();
            if constraint.is_ended() {
                break;
            }
            text.push(token);
            pending = vec![token];
        }
        text
    };
    assert_eq!(from(prompt.len()), own(&free, sampling, 7, 7, &prompt));
    assert_ne!(from(0), from(prompt.len()));
}

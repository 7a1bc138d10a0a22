//! Tests that texts with drafts are the texts without, to the bit of every row, in a decoder over the card's
//! kernels in bf16.

use std::sync::{Arc, Mutex};

use domino::{
    Compiler, Constraint, Grammar, Limits, Syntax, TokenId, Vocabulary,
    decode::{Decoder, Sampling},
    model::candle::{Precision, TensorModel},
    proposer::{CountProposer, DraftLength, Drafter, Guess, Learning, Prior, Propose, Site},
};

use super::emulated;
use crate::model::runner;

/// Texts written by each of two models, each with drafts and without; `DOMINO_CARD_TEXTS` asks for more.
const TEXTS: u64 = 40;

/// A proposer of a known text's tokens, with a wrong one now and then.
#[derive(Debug)]
pub(super) struct Liar {
    pub(super) truth: Vec<TokenId>,
    pub(super) prompt: usize,
    pub(super) turn: u64,
}

impl Propose for Liar {
    fn guess(&mut self, site: &mut Site<'_>) -> Option<Guess> {
        self.turn = self.turn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let truth = self.truth.get(site.tokens().len() - self.prompt).copied()?;
        let token = if self.turn >> 61 == 0 { TokenId::new(3) } else { truth };
        Some(Guess { token, acceptance: 0.99 })
    }
}

/// A vocabulary in which each token is a number, and the last one ends a text.
pub(super) fn vocabulary(size: usize) -> Vocabulary {
    let token = |index: usize| TokenId::from_index(index).unwrap();
    let numbers = (0..size - 1)
        .fold(Vocabulary::builder(), |builder, index| builder.token(token(index), format!("{index} ")));
    numbers.end_of_text(token(size - 1)).build().unwrap()
}

/// Numbers.
pub(super) fn constraint(vocabulary: &Vocabulary) -> Constraint {
    let grammar = Grammar::parse(Syntax::Gbnf, "root ::= ([0-9]+ \" \")*", &Limits::default()).unwrap();
    Compiler::new(vocabulary.clone()).compile(&grammar).unwrap().constraint()
}

pub(super) fn decoder(name: &str) -> Decoder<TensorModel> {
    let card = emulated(&runner::fixture(name), Precision::Bf16);
    let vocabulary = vocabulary(domino::model::Model::vocabulary_size(&card));
    Decoder::builder(card)
        .constraint(constraint(&vocabulary))
        .vocabulary(vocabulary)
        .max_new_tokens(16)
        .build()
        .unwrap()
}

#[test]
fn drafts_change_no_token() {
    let texts = match std::env::var("DOMINO_CARD_TEXTS") {
        Ok(count) => count.parse().unwrap(),
        Err(_) => TEXTS,
    };
    let (mut drafted, mut accepted, mut written) = (0, 0, 0);
    for name in ["llama_gqa_head_dim", "mistral_untied_window"] {
        let mut decoder = decoder(name);
        for seed in 0..texts / 2 {
            decoder.options_mut().seed = seed;
            decoder.options_mut().sampling =
                if seed % 4 == 0 { Sampling::greedy() } else { Sampling::with_temperature(0.7).unwrap() };
            // Prompts that kernels run, and prompts that Candle's tensors run.
            let length = 2 + usize::try_from(seed % 23).unwrap();
            let prompt: Vec<TokenId> =
                (0..length).map(|index| TokenId::from_index((index * 31 + length) % 40).unwrap()).collect();
            let plain = decoder.generate(&prompt).unwrap();
            let liar = Liar { truth: plain.tokens.clone(), prompt: length, turn: seed };
            let most = usize::try_from(1 + seed % 15).unwrap();
            decoder.set_drafter(Some(Drafter::new(Box::new(liar), DraftLength::up_to(most, 0.0).unwrap())));
            let with = decoder.generate(&prompt).unwrap();
            decoder.set_drafter(None);
            assert_eq!(plain.tokens, with.tokens, "{name}, seed {seed}");
            drafted += with.stats.drafted;
            accepted += with.stats.accepted;
            written += 1;
        }
    }
    println!("{written} texts, {drafted} drafted tokens of which {accepted} were accepted");
    assert!(written > 0 && accepted > 0 && drafted > accepted, "drafts were right and wrong");
}

/// Drafts that learn have the likelier tokens of each row listed by the card.
#[test]
fn drafts_that_learn_change_no_token() {
    for name in ["llama_gqa_head_dim", "mistral_untied_window"] {
        let mut decoder = decoder(name);
        let grammar = Grammar::parse(Syntax::Gbnf, "root ::= ([0-9]+ \" \")*", &Limits::default()).unwrap();
        let compiled = Compiler::new(decoder.vocabulary().clone()).compile(&grammar).unwrap();
        for learning in [Learning::PerText, Learning::Online] {
            let learner = CountProposer::new(Prior::new(&compiled), learning);
            let learner = Arc::new(Mutex::new(learner));
            let mut drafted = 0;
            for seed in 0..6 {
                decoder.options_mut().seed = seed;
                decoder.options_mut().sampling = match seed % 2 {
                    0 => Sampling::greedy(),
                    _ => Sampling::with_temperature(0.7).unwrap(),
                };
                let prompt: Vec<TokenId> = (1..6).map(TokenId::new).collect();
                let plain = decoder.generate(&prompt).unwrap();
                let length = DraftLength::up_to(4, 0.0).unwrap();
                decoder.set_drafter(Some(Drafter::new(Box::new(Arc::clone(&learner)), length)));
                let with = decoder.generate(&prompt).unwrap();
                decoder.set_drafter(None);
                assert_eq!(plain.tokens, with.tokens, "{name}, {learning:?}, seed {seed}");
                drafted += with.stats.drafted;
            }
            assert!(drafted > 0, "{name}, {learning:?}");
        }
    }
}

//! Given texts: replayed by the decoder, and split into tokens anew.

use domino::{
    TokenId,
    decode::{BatchDecoder, BatchEvent, DecodeErrorKind, DecodeOptions, Decoder, Finish, Masking},
    model::{Model, OneByOne, Rows, ScriptedModel},
    proposer::{DraftLength, Drafter, Guess, Propose, Site},
};
use proptest::prelude::*;

use super::{
    draw::at,
    run::{bytes, compile, model, prompt, samplings, shipped, vocabulary},
};

/// A proposer that recites this text, whatever was drawn.
#[derive(Debug)]
pub(super) struct Recites(pub(super) Vec<TokenId>);

impl Propose for Recites {
    fn guess(&mut self, site: &mut Site<'_>) -> Option<Guess> {
        let at = site.tokens().len() - prompt().len();
        self.0.get(at).map(|&token| Guess { token, acceptance: 0.9 })
    }
}

/// A batch tells the log-probabilities of a prompt as a replay does, however the prompt is read, and writes
/// the text that it writes without them.
#[test]
fn log_probabilities_of_prompts_are_those_of_a_replay() {
    let decoder = || Decoder::builder(model(3)).vocabulary(vocabulary());
    let prompts = [1, 2, 3, 40, 70]
        .map(|length| (0..length).map(|at| TokenId::new(97 + at * at % 26)).collect::<Vec<TokenId>>());
    for chunk in [1, 3, 200] {
        let model = OneByOne::new(vec![model(3); 2]);
        let mut batch = BatchDecoder::new(model, vocabulary()).unwrap().prompt_chunk(chunk);
        let mut options = DecodeOptions::default();
        (options.max_new_tokens, options.logprobs, options.prompt_logprobs) = (5, Some(2), true);
        let named: Vec<_> =
            prompts.iter().map(|prompt| (batch.add(prompt, None, &options).unwrap(), prompt)).collect();
        let (mut told, mut texts) = (0, 0);
        while !batch.is_empty() {
            for event in batch.step() {
                let prompt_of = |id| named.iter().find(|(named, _)| *named == id).unwrap().1;
                match event {
                    BatchEvent::Prompt { sequence, logprobs } => {
                        let prompt = prompt_of(sequence);
                        let replayed =
                            decoder().build().unwrap().replay(&prompt[..1], &prompt[1..], 2).unwrap();
                        let wanted: Vec<_> = replayed.into_iter().map(|one| one.logprobs).collect();
                        assert_eq!(logprobs, wanted);
                        told += 1;
                    }
                    BatchEvent::Finished { sequence, generation } => {
                        let alone =
                            decoder().max_new_tokens(5).build().unwrap().generate(prompt_of(sequence));
                        assert_eq!(generation.tokens, alone.unwrap().tokens);
                        texts += 1;
                    }
                    event => assert!(matches!(event, BatchEvent::Token { .. }), "{event:?}"),
                }
            }
        }
        // A prompt of one token has no second one.
        assert_eq!((told, texts), (prompts.len() - 1, prompts.len()));
    }
}

#[test]
fn a_replay_has_the_masks_and_logprobs_of_its_run() {
    for name in ["json", "arithmetic", "call"] {
        let constraint = shipped(name);
        for (seed, sampling) in (0..).zip(samplings()) {
            let mut options = DecodeOptions::default();
            (options.sampling, options.seed, options.max_new_tokens) = (sampling, seed, 40);
            (options.masking, options.logprobs) = (Masking::Always, Some(3));
            let mut decoder = Decoder::builder(model(seed))
                .vocabulary(vocabulary())
                .constraint(constraint.clone())
                .options(options)
                .build()
                .unwrap();
            let prompt = prompt();
            let mut steps = decoder.steps(&prompt);
            let intervened: Vec<bool> = steps.by_ref().map(|step| step.unwrap().intervened).collect();
            let generation = steps.into_generation();
            let ended = generation.end_of_text;
            assert!(ended.is_none() || generation.finish == Finish::Stop);
            let tokens = [&generation.tokens[..], ended.as_slice()].concat();
            let found = decoder.replay(&prompt, &tokens, 3).unwrap();
            assert_eq!(found.len(), tokens.len());
            let mut constraint = constraint.clone();
            for (index, (found, &token)) in found.iter().zip(&tokens).enumerate() {
                if let Some(logprobs) = generation.logprobs.get(index) {
                    assert_eq!(&found.logprobs, logprobs);
                    // Cuts may make the masked draw another token, although the model's own choice is
                    // allowed.
                    assert_eq!(found.own != token, intervened[index], "{name} {sampling:?} {index}");
                }
                let mask = constraint.mask().unwrap();
                assert_eq!(found.allowed, Some(mask.len()));
                if !sampling.cuts() {
                    assert_eq!(found.own == token, mask.contains(found.own));
                }
                constraint.advance(token).unwrap();
            }
            decoder.set_constraint(None).unwrap();
            let free = decoder.replay(&prompt, &tokens, 3).unwrap();
            for (free, found) in free.iter().zip(&found) {
                assert_eq!((free.own, free.allowed, free.logprobs.kept), (found.own, None, None));
                assert_eq!(free.logprobs.taken.model.to_bits(), found.logprobs.taken.model.to_bits());
            }
        }
    }
}

#[test]
fn texts_that_cannot_be_replayed_are_errors() {
    let mut decoder = Decoder::builder(model(0))
        .vocabulary(vocabulary())
        .constraint(compile(r#"root ::= "ab" root | "." "#))
        .build()
        .unwrap();
    let text = |text: &str| bytes(text).collect::<Vec<_>>();
    let kind = |error: domino::decode::DecodeError| error.kind().clone();
    assert!(decoder.replay(&prompt(), &[], 1).unwrap().is_empty());
    assert_eq!(kind(decoder.replay(&[], &text("ab"), 1).unwrap_err()), DecodeErrorKind::EmptyPrompt);
    assert_eq!(kind(decoder.replay(&prompt(), &text("aba."), 1).unwrap_err()), DecodeErrorKind::Constraint);
    let long = text(&"ab".repeat(79));
    assert_eq!(decoder.replay(&prompt(), &long, 1).unwrap().len(), 158);
    let longer = text(&"ab".repeat(80));
    let too_long = DecodeErrorKind::TextTooLong { context: 160 };
    assert_eq!(kind(decoder.replay(&prompt(), &longer, 1).unwrap_err()), too_long);
    assert_eq!(kind(decoder.retokenize(&prompt(), "z".repeat(500).as_bytes()).unwrap_err()), too_long);
}

#[test]
fn steps_of_a_decoder_show_the_draft_of_each_pass() {
    let constraint = compile(r#"root ::= [a-z]+ "." "#);
    let written: Vec<TokenId> = bytes("abcdefgh.").collect();
    let recited: Vec<TokenId> = bytes("abcxefgh.").collect();
    let length = DraftLength::up_to(4, 0.0).unwrap();
    let mut decoder = Decoder::builder(model(0).script(3, written.clone()))
        .vocabulary(vocabulary())
        .constraint(constraint)
        .drafter(Drafter::new(Box::new(Recites(recited.clone())), length))
        .build()
        .unwrap();
    let prompt = prompt();
    let mut steps = decoder.steps(&prompt);
    let (mut passes, mut seen) = (0, Vec::new());
    loop {
        let position = steps.tokens().len();
        let step = steps.next().transpose().unwrap();
        if steps.stats().passes > passes {
            passes = steps.stats().passes;
            seen.push((position, steps.drafted().to_vec()));
        }
        if step.is_none() {
            break;
        }
    }
    assert_eq!(steps.tokens(), written);
    // No draft behind a prompt; then what was recited, of which the fourth token is another than the one
    // written.
    let expected = [(0, &recited[..0]), (1, &recited[1..5]), (4, &recited[4..8])];
    assert_eq!(seen, expected.map(|(position, draft)| (position, draft.to_vec())));
}

/// Tokens of a text by brute force: at each place the likeliest token that the rest begins with.
fn slow(seed: u64, text: &[u8]) -> Vec<TokenId> {
    let vocabulary = vocabulary();
    let (mut tokens, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let rows = model(seed).forward(&[prompt(), tokens.clone()].concat(), Rows::Last).unwrap();
        let row = rows.last().unwrap();
        let fitting = vocabulary.text_tokens().filter(|(_, bytes)| rest.starts_with(bytes));
        let best =
            fitting.reduce(|best, next| if row[next.0.index()] > row[best.0.index()] { next } else { best });
        let (token, bytes) = best.expect("all bytes are tokens");
        tokens.push(token);
        rest = &rest[bytes.len()..];
    }
    tokens
}

proptest! {
    #[test]
    fn retokenising_agrees_with_asking_every_token(
        seed in 0..1000_u64, parts in prop::collection::vec(0..16_usize, 0..20),
    ) {
        let words = [
            "{\"", "\":", "\": ", ", ", "}", " }", "true", "nul", "[]", "12", "ab",
            "\"", "]]", "\n  ", "a", "\u{e9}",
        ];
        let text: String = parts.into_iter().map(|at| words[at]).collect();
        let mut decoder = Decoder::builder(model(seed)).vocabulary(vocabulary()).build().unwrap();
        let found = decoder.retokenize(&prompt(), text.as_bytes()).unwrap();
        prop_assert_eq!(vocabulary().concat(&found), text.as_bytes());
        prop_assert_eq!(found, slow(seed, text.as_bytes()));
    }

    #[test]
    fn prefixes_are_those_that_the_text_begins_with(
        text in prop::collection::vec(any::<u8>(), 0..6), word in 0..4_usize,
    ) {
        let text = [["{\"", "\n  x", "true", "]]]"][word].as_bytes(), &text].concat();
        let vocabulary = vocabulary();
        for text in [&text[..], &text[text.len().min(4)..]] {
            let begins = vocabulary.text_tokens().filter(|(_, bytes)| text.starts_with(bytes));
            let expected: Vec<TokenId> = begins.map(|(id, _)| id).collect();
            prop_assert_eq!(vocabulary.prefixes_of(text).iter().collect::<Vec<_>>(), expected);
        }
    }
}

#[test]
fn a_model_that_prefers_long_tokens_gets_them() {
    let long = vocabulary().text_tokens().find(|(_, bytes)| bytes == b"true").unwrap().0;
    let mut decoder = Decoder::builder(ScriptedModel::new(vocabulary().size(), 20, 3).favour(4, long))
        .vocabulary(vocabulary());
    decoder = decoder.sampling(at(2.0));
    let found = decoder.build().unwrap().retokenize(&prompt(), b"[true]").unwrap();
    assert_eq!(found[1], long);
    // A token that nothing spells.
    let small = domino::Vocabulary::builder()
        .token(TokenId::new(0), "a")
        .end_of_text(TokenId::new(1))
        .build()
        .unwrap();
    let mut decoder = Decoder::builder(ScriptedModel::new(2, 20, 3)).vocabulary(small).build().unwrap();
    let error = decoder.retokenize(&[TokenId::new(0)], b"aab").unwrap_err();
    assert_eq!(error.kind(), &DecodeErrorKind::NothingAllowed { position: 3 });
}

//! Masks in a stock engine.

use std::{sync::Arc, sync::LazyLock};

use domino::{
    CompiledGrammar,
    decode::{Sampler, Sampling},
};
use domino_mistralrs::{GrammarLogitsProcessor, RequestError, RequestWatch};
use mistralrs_candle::Tensor;
use mistralrs_core::{SamplingParams, StopTokens};

use super::engine::{Answer, Engine, GRAMMARS, PROMPTS, RUNTIME, alone, answers, complete};

static ENGINE: LazyLock<Engine> = LazyLock::new(|| Engine::stock(true));

fn greedy(max_len: usize) -> SamplingParams {
    SamplingParams { temperature: Some(0.0), max_len: Some(max_len), ..SamplingParams::neutral() }
}

/// Sends a request with a processor; returns the receiver of its answers.
fn start(
    prompt: &str,
    params: SamplingParams,
    processor: GrammarLogitsProcessor,
) -> (RequestWatch, impl Future<Output = Vec<Answer>> + use<>) {
    let watch = processor.watch();
    let (mut request, receiver) = ENGINE.request(prompt, params);
    request.logits_processors = Some(vec![Arc::new(processor)]);
    ENGINE.send(request);
    (watch, answers(receiver))
}

fn generate(prompt: &str, params: SamplingParams, grammar: &CompiledGrammar) -> Vec<Answer> {
    let (watch, answers) = start(prompt, params, GrammarLogitsProcessor::new(grammar.constraint()));
    let answers = RUNTIME.block_on(answers);
    assert_eq!(watch.error(), None);
    answers
}

fn check(grammar: &CompiledGrammar, answer: &Answer, what: &str) {
    let found = complete(grammar, &answer.text);
    assert!(found.is_some(), "{what}: not in the language: {answer:?}");
    if answer.finish == "stop" {
        assert_eq!(found, Some(true), "{what}: {answer:?}");
    }
}

#[test]
fn texts_are_of_the_grammar_eight_at_once() {
    let _alone = alone();
    let grammars: Vec<_> = GRAMMARS.iter().map(|name| ENGINE.grammar(name)).collect();
    let mut stopped = 0;
    for round in 0..2 {
        let running: Vec<_> = (0..8)
            .map(|number| {
                let which = number % grammars.len();
                let mut params = greedy(24);
                params.temperature = Some([0.0, 1.0, 0.7][number % 3]);
                params.top_p = Some(0.9);
                let prompt = PROMPTS[(number + round) % PROMPTS.len()];
                let processor = GrammarLogitsProcessor::new(grammars[which].constraint());
                (which, start(prompt, params, processor))
            })
            .collect();
        for (which, (watch, answers)) in running {
            let answers = RUNTIME.block_on(answers);
            assert_eq!(watch.error(), None);
            check(&grammars[which], &answers[0], GRAMMARS[which]);
            stopped += usize::from(answers[0].finish == "stop");
            assert!(watch.stats().masks > 0);
        }
    }
    // Some end by themselves, some by length.
    assert!(stopped < 16, "all of the texts stopped");
}

#[test]
fn a_text_that_cannot_go_on_ends() {
    let _alone = alone();
    let grammar = ENGINE.regex("(yes|no), I (do|do not)\\.");
    for temperature in [0.0, 2.0] {
        let params = SamplingParams { temperature: Some(temperature), ..greedy(40) };
        let answer = generate(PROMPTS[0], params, &grammar).remove(0);
        assert_eq!(answer.finish, "stop");
        assert_eq!(complete(&grammar, &answer.text), Some(true), "{answer:?}");
    }
}

/// A prompt in the prefix cache, of which the first context has only the last tokens, changes nothing.
#[test]
fn a_cached_prompt_changes_nothing() {
    let _alone = alone();
    let grammar = ENGINE.grammar("json");
    let once = "Describe a person in JSON, please, with all that matters of a life: ";
    let first = generate(once, greedy(24), &grammar);
    for prompt in [once.to_owned(), format!("{once}\n"), format!("{once}  ")] {
        let answer = generate(&prompt, greedy(24), &grammar);
        check(&grammar, &answer[0], &prompt);
        if prompt == once {
            assert_eq!(answer, first);
        }
    }
}

#[test]
fn several_choices_are_each_of_the_grammar() {
    let _alone = alone();
    let grammar = ENGINE.grammar("arithmetic");
    let params = SamplingParams { n_choices: 3, temperature: Some(1.0), ..greedy(16) };
    let answers = generate(PROMPTS[1], params, &grammar);
    assert_eq!(answers.len(), 3);
    answers.iter().for_each(|answer| check(&grammar, answer, "a choice"));
}

#[test]
fn stop_strings_and_lengths_are_the_engine_s() {
    let _alone = alone();
    let grammar = ENGINE.regex("[a-z]{3} end [a-z]{40}");
    let stop = Some(StopTokens::Seqs(vec!["end".to_owned()]));
    let answer = generate(PROMPTS[0], SamplingParams { stop_toks: stop, ..greedy(40) }, &grammar).remove(0);
    assert_eq!((answer.finish.as_str(), answer.text.trim_end().len()), ("stop", 3), "{answer:?}");
    let answer = generate(PROMPTS[0], greedy(3), &grammar).remove(0);
    assert_eq!(answer.finish, "length");
}

/// An error ends its request and can be read afterwards; the engine and other requests go on.
#[test]
fn an_error_ends_its_request_and_can_be_read_later() {
    let _alone = alone();
    let letters = ENGINE.regex("[a-z]{20}");
    let (fine, done) = start(PROMPTS[0], greedy(16), GrammarLogitsProcessor::new(letters.constraint()));
    let processor = GrammarLogitsProcessor::new(letters.constraint());
    let watch = processor.watch();
    let digit = ENGINE.tokenizer.encode("7", false).expect("a token").pop().expect("a token");
    let meddler = move |logits: &Tensor, _: &[u32]| {
        let mut row = vec![f32::NEG_INFINITY; logits.elem_count()];
        // It meddles once: after the error only the end is left, which this does not change.
        if logits.to_vec1::<f32>()?.iter().filter(|logit| **logit > f32::NEG_INFINITY).count() > 1 {
            row[digit.index()] = 1.0;
            return Tensor::new(row, logits.device());
        }
        Ok(logits.clone())
    };
    let (mut request, receiver) = ENGINE.request(PROMPTS[0], greedy(16));
    request.logits_processors = Some(vec![Arc::new(processor), Arc::new(meddler)]);
    ENGINE.send(request);
    let failed = RUNTIME.block_on(answers(receiver)).remove(0);
    assert_eq!((failed.text.as_str(), failed.finish.as_str()), ("7", "stop"));
    assert_eq!(watch.error(), Some(RequestError::Overruled(digit)));
    check(&letters, &RUNTIME.block_on(done)[0], "beside an error");
    assert_eq!(fine.error(), None);
}

#[test]
fn a_cancelled_request_ends() {
    let _alone = alone();
    let grammar = ENGINE.regex("[a-z]{1000}");
    let processor = GrammarLogitsProcessor::new(grammar.constraint());
    processor.watch().cancel();
    let (watch, answers) = start(PROMPTS[0], greedy(500), processor);
    assert_eq!(RUNTIME.block_on(answers)[0].text, "");
    assert_eq!(watch.error(), None);
}

/// Draws by seed and position repeat, whatever else the engine has drawn.
#[test]
fn draws_by_seed_do_not_depend_on_other_requests() {
    let _alone = alone();
    let grammar = ENGINE.grammar("json");
    let run = |seed: u64| {
        let sampler = Sampler::new(Sampling::with_temperature(1.0).expect("a temperature"), seed);
        let processor = GrammarLogitsProcessor::new(grammar.constraint()).draw_by(sampler, 0);
        let (watch, answers) = start(PROMPTS[0], greedy(20), processor);
        let answer = RUNTIME.block_on(answers).remove(0);
        assert_eq!(watch.error(), None);
        check(&grammar, &answer, "by seed");
        answer
    };
    let texts: Vec<Answer> = (0..4).map(run).collect();
    assert!(texts.windows(2).any(|pair| pair[0] != pair[1]));
    for (seed, text) in (0..).zip(&texts) {
        assert_eq!(&run(seed), text, "seed {seed}");
    }
}

//! The decode loop, with a scripted model.

use domino::{
    CompiledGrammar, Compiler, Constraint, Grammar, Limits, Lookahead, StepErrorKind, Syntax, TokenId,
    TrailingSpace, Vocabulary,
    decode::{
        BuildErrorKind, DecodeErrorKind, Decoder, DrawError, Finish, Generation, Masking, Sampler, Sampling,
    },
    model::{Fault, Model, Rows, ScriptedModel},
};

use super::draw::{at, id};

const END: u32 = 256;
const BEGIN: u32 = 257;
const OTHER_END: u32 = 258;

/// A vocabulary of all bytes, two special tokens that end a text, one that does not, and some longer tokens.
pub(crate) fn vocabulary() -> Vocabulary {
    let mut builder = (0..=255_u8)
        .fold(Vocabulary::builder(), |builder, byte| builder.token(TokenId::new(byte.into()), [byte]))
        .end_of_text(TokenId::new(END))
        .special(TokenId::new(BEGIN), "<s>")
        .end_of_text(TokenId::new(OTHER_END));
    let words =
        ["{\"", "\":", "\": ", ", ", "}", " }", "true", "null", "[]", "12", "ab", "\"}", "]]", "\n  "];
    for (word, number) in words.into_iter().zip(OTHER_END + 1..) {
        builder = builder.token(TokenId::new(number), word);
    }
    builder.build().unwrap()
}

/// A scripted model whose rows are the vocabulary with padding, and whose context is 160.
pub(crate) fn model(seed: u64) -> ScriptedModel {
    ScriptedModel::new(vocabulary().size() + 17, 160, seed)
}

pub(crate) fn compile(grammar: &str) -> Constraint {
    compiled(grammar).constraint()
}

pub(crate) fn compiled(grammar: &str) -> CompiledGrammar {
    let grammar = Grammar::parse(Syntax::Gbnf, grammar, &Limits::default()).unwrap();
    Compiler::new(vocabulary()).compile(&grammar).unwrap()
}

pub(crate) fn shipped(name: &str) -> Constraint {
    let read = |folder| std::fs::read_to_string(format!("{}/{folder}/{name}.gbnf", env!("DOMINO_ROOT")));
    compile(&read("grammars/paper").or_else(|_| read("grammars")).unwrap())
}

pub(crate) fn prompt() -> Vec<TokenId> {
    [BEGIN, 97, 98].map(TokenId::new).to_vec()
}

pub(crate) fn bytes(text: &str) -> impl Iterator<Item = TokenId> {
    text.bytes().map(|byte| TokenId::new(byte.into()))
}

/// Ways of sampling, each of which must give the same tokens whenever masks are made.
pub(crate) fn samplings() -> Vec<Sampling> {
    vec![
        Sampling::greedy(),
        at(1.0),
        at(0.3),
        at(1.0).top_k(5).unwrap(),
        at(1.5).top_p(0.9).unwrap(),
        at(1.0).min_p(0.05).unwrap(),
        at(0.8).top_k(40).unwrap().top_p(0.95).unwrap().min_p(0.01).unwrap(),
    ]
}

fn generate(
    model: ScriptedModel,
    constraint: Option<&Constraint>,
    sampling: Sampling,
    seed: u64,
    masking: Masking,
) -> Generation {
    let mut builder = Decoder::builder(model)
        .vocabulary(vocabulary())
        .sampling(sampling)
        .seed(seed)
        .max_new_tokens(60)
        .masking(masking);
    if let Some(constraint) = constraint {
        builder = builder.constraint(constraint.clone());
    }
    builder.build().unwrap().generate(&prompt()).unwrap()
}

/// Checks the properties of every run.
fn check(generation: &Generation, constraint: &Constraint) {
    let mut constraint = constraint.clone();
    for &token in &generation.tokens {
        constraint.advance(token).unwrap();
    }
    if matches!(generation.finish, Finish::Stop | Finish::OnlySpace) {
        assert!(constraint.is_complete());
    } else {
        assert_eq!(generation.tokens.len(), 60);
    }
    let stats = &generation.stats;
    assert_eq!(stats.tokens, generation.tokens.len());
    assert_eq!(stats.prompt_tokens, prompt().len());
    assert_eq!(stats.passes, stats.draws);
    assert!(stats.own_draws == 0 && stats.masks == stats.draws || stats.own_draws == stats.draws);
    // A draw that ended the text is one more than its tokens.
    assert!(stats.draws == stats.tokens || stats.draws == stats.tokens + 1);
    assert!(stats.interventions <= stats.masks && stats.masks <= stats.draws);
    assert!(stats.total_time >= stats.mask_time + stats.model_time);
}

#[test]
fn outputs_are_of_the_language_and_masking_early_or_late_is_the_same() {
    for name in ["json", "arithmetic", "call", "iso8601", "email", "xml_person"] {
        let constraint = shipped(name);
        for sampling in samplings() {
            for seed in 0..4 {
                let run = |masking| generate(model(seed), Some(&constraint), sampling, seed, masking);
                let always = run(Masking::Always);
                let late = run(Masking::Opportunistic);
                let ahead = run(Masking::Ahead);
                check(&always, &constraint);
                check(&late, &constraint);
                check(&ahead, &constraint);
                assert_eq!((&ahead.tokens, ahead.finish), (&always.tokens, always.finish));
                assert_eq!(ahead.stats.own_draws, 0);
                assert_eq!(always.tokens, late.tokens, "{name}, {sampling:?}, seed {seed}");
                assert_eq!(always.finish, late.finish);
                assert_eq!(always.stats.interventions, late.stats.interventions);
                assert_eq!(always.stats.masks, always.stats.draws);
                if sampling.cuts() {
                    assert_eq!(late.stats.masks, late.stats.draws);
                } else {
                    assert_eq!(late.stats.masks, late.stats.interventions);
                }
            }
        }
    }
}

#[test]
fn masking_late_is_the_same_with_a_bounded_lookahead() {
    let path = format!("{}/grammars/json.gbnf", env!("DOMINO_ROOT"));
    let grammar = Grammar::parse(Syntax::Gbnf, &std::fs::read_to_string(path).unwrap(), &Limits::default());
    for k in 0..3 {
        let compiler = Compiler::new(vocabulary()).lookahead(Lookahead::Terminals(k));
        let constraint = compiler.compile(grammar.as_ref().unwrap()).unwrap().constraint();
        for sampling in [Sampling::greedy(), at(1.0)] {
            let always = generate(model(5), Some(&constraint), sampling, 5, Masking::Always);
            let late = generate(model(5), Some(&constraint), sampling, 5, Masking::Opportunistic);
            check(&always, &constraint);
            assert_eq!(always.tokens, late.tokens);
        }
    }
}

#[test]
fn a_run_is_a_function_of_prompt_and_seed() {
    let constraint = shipped("json");
    let mut decoder = Decoder::builder(model(1))
        .vocabulary(vocabulary())
        .constraint(constraint.clone())
        .sampling(at(1.0))
        .seed(11)
        .max_new_tokens(40)
        .build()
        .unwrap();
    let first = decoder.generate(&prompt()).unwrap();
    // Another run in between, and one given up in the middle, leave no trace.
    let other = decoder.generate(&[id(1), id(2)]).unwrap();
    assert_ne!(first.tokens, other.tokens);
    drop(decoder.steps(&[id(5)]).take(3).collect::<Vec<_>>());
    assert_eq!(decoder.generate(&prompt()).unwrap().tokens, first.tokens);
    let stream: Vec<TokenId> = decoder.steps(&prompt()).map(|step| step.unwrap().token).collect();
    assert_eq!(stream, first.tokens);
    let another_seed = generate(model(1), Some(&constraint), at(1.0), 12, Masking::Always);
    assert_ne!(another_seed.tokens, first.tokens);
}

#[test]
fn each_token_is_the_draw_of_its_row_at_its_index_in_the_whole_sequence() {
    // One pass over everything, every row judged by itself: what verifying a draft will do.
    let constraint = shipped("json");
    for sampling in samplings() {
        let tokens = generate(model(8), Some(&constraint), sampling, 3, Masking::Opportunistic).tokens;
        let text = [prompt(), tokens.clone()].concat();
        let rows = model(8).forward(&text, Rows::All).unwrap();
        let sampler = Sampler::new(sampling, 3);
        let mut constraint = constraint.clone();
        for (index, &token) in tokens.iter().enumerate() {
            let position = prompt().len() + index;
            let row = rows.row(position - 1).unwrap();
            assert_eq!(sampler.draw(row, constraint.mask().unwrap(), position), Ok(token));
            constraint.advance(token).unwrap();
        }
    }
}

#[test]
fn a_favoured_text_is_written_without_intervention() {
    let text = "{\"a\": [1, 22, null], \"b\": {}}";
    let constraint = shipped("rfc8259");
    let tokens: Vec<TokenId> = bytes(text).collect();
    let ended = tokens.iter().copied().chain([TokenId::new(OTHER_END)]);
    for masking in [Masking::Always, Masking::Opportunistic] {
        let model = model(3).script(prompt().len(), ended.clone());
        let generation = generate(model, Some(&constraint), Sampling::greedy(), 0, masking);
        check(&generation, &constraint);
        assert_eq!(generation.tokens, tokens);
        assert_eq!((generation.finish, generation.stats.interventions), (Finish::OnlySpace, 0));
        // Behind the last brace nothing but white space can follow: the model is not asked.
        assert_eq!(generation.stats.draws, tokens.len());
    }
}

#[test]
fn refusals_are_counted_and_marked() {
    // The model wants "abc", the grammar "axc" or "ayc".
    let constraint = compile(r#"root ::= "a" [xy] "c""#);
    for masking in [Masking::Always, Masking::Opportunistic] {
        let mut decoder = Decoder::builder(model(0).script(3, bytes("abc")))
            .vocabulary(vocabulary())
            .constraint(constraint.clone())
            .masking(masking)
            .build()
            .unwrap();
        let mut steps = decoder.steps(&prompt());
        let marks: Vec<bool> = steps.by_ref().map(|step| step.unwrap().intervened).collect();
        assert_eq!(marks, [false, true, false]);
        assert_eq!(steps.stats().interventions, 1);
        // Nothing can follow "axc", so no pass is made to find the end.
        assert_eq!((steps.finish(), steps.stats().passes), (Some(Finish::Stop), 3));
        assert!(steps.constraint().unwrap().is_complete());
    }
}

#[test]
fn the_limits_of_length_end_a_run() {
    let constraint = compile(r#"root ::= [a-z]*"#);
    // Every row favours a letter over the end.
    let letters = || model(0).script(3, bytes(&"x".repeat(300)));
    let decoder = |max| {
        let builder = Decoder::builder(letters()).vocabulary(vocabulary()).max_new_tokens(max);
        builder.constraint(constraint.clone()).build().unwrap()
    };
    for max in [0, 1, 7] {
        let generation = decoder(max).generate(&prompt()).unwrap();
        assert_eq!((generation.tokens.len(), generation.finish), (max, Finish::Length));
        assert_eq!(generation.stats.passes, max);
    }
    // The context holds 160 tokens; the last token drawn need not be in it.
    let generation = decoder(10_000).generate(&prompt()).unwrap();
    assert_eq!((generation.tokens.len(), generation.finish), (160 - 3 + 1, Finish::Length));
    let full: Vec<TokenId> = bytes(&"y".repeat(160)).collect();
    assert_eq!(decoder(10).generate(&full).unwrap().tokens.len(), 1);
    let error = decoder(10).generate(&[full, prompt()].concat()).unwrap_err();
    assert_eq!(*error.kind(), DecodeErrorKind::PromptTooLong { tokens: 163, context: 160 });
    assert_eq!(*decoder(10).generate(&[]).unwrap_err().kind(), DecodeErrorKind::EmptyPrompt);
}

#[test]
fn a_text_complete_at_the_limit_has_stopped() {
    let constraint = compile(r#"root ::= "abc""#);
    let builder = Decoder::builder(model(0).script(3, bytes("abc"))).vocabulary(vocabulary());
    let builder = builder.constraint(constraint).max_new_tokens(3);
    let generation = builder.build().unwrap().generate(&prompt()).unwrap();
    assert_eq!((generation.finish, generation.stats.passes), (Finish::Stop, 3));
}

#[test]
fn without_a_constraint_the_model_is_free_but_for_special_tokens() {
    // It wants <s>, padding and a letter; only the letter can be had.
    let padding = TokenId::from_index(vocabulary().size() + 3).unwrap();
    let wishes = model(2).favour(3, TokenId::new(BEGIN)).favour(4, padding).favour(5, TokenId::new(120));
    let wishes = wishes.favour(9, TokenId::new(END));
    for sampling in samplings() {
        let generation = generate(wishes.clone(), None, sampling, 1, Masking::Opportunistic);
        for &token in &generation.tokens {
            assert!(vocabulary().bytes(token).is_some(), "{token}");
        }
        if sampling.is_greedy() {
            assert_eq!(generation.tokens[2], TokenId::new(120));
            assert_eq!((generation.finish, generation.tokens.len()), (Finish::Stop, 6));
        }
        assert_eq!((generation.stats.masks, generation.stats.interventions), (0, 0));
    }
}

#[test]
fn a_broken_model_is_an_error_with_its_position() {
    let constraint = shipped("json");
    let run = |fault| {
        let mut decoder = Decoder::builder(model(0).fault(6, fault))
            .vocabulary(vocabulary())
            .constraint(constraint.clone())
            .build()
            .unwrap();
        decoder.options_mut().trailing_space = TrailingSpace::Keep;
        let mut steps = decoder.steps(&prompt());
        let error = steps.by_ref().find_map(Result::err).unwrap();
        // Earlier tokens stand, and nothing follows.
        assert_eq!((steps.tokens().len(), steps.finish()), (3, None));
        assert!(steps.next().is_none());
        error.kind().clone()
    };
    let error = DrawError::NotFinite(TokenId::from_index((vocabulary().size() + 17) / 2).unwrap());
    assert_eq!(run(Fault::NotANumber), DecodeErrorKind::Logits { position: 6, error });
    let error = DrawError::Impossible;
    assert_eq!(run(Fault::Impossible), DecodeErrorKind::Logits { position: 6, error });
    assert_eq!(run(Fault::Pass), DecodeErrorKind::Model);
}

#[test]
fn a_vocabulary_without_the_bytes_is_an_error_that_says_so() {
    let vocabulary =
        Vocabulary::builder().token(id(0), "a").token(id(1), "b").end_of_text(id(2)).build().unwrap();
    let grammar = Grammar::parse(Syntax::Gbnf, r#"root ::= "a" "c""#, &Limits::default()).unwrap();
    let constraint = Compiler::new(vocabulary.clone()).compile(&grammar).unwrap().constraint();
    let builder = Decoder::builder(ScriptedModel::new(3, 20, 0)).vocabulary(vocabulary);
    let mut decoder = builder.constraint(constraint).build().unwrap();
    let error = decoder.generate(&[id(1)]).unwrap_err();
    assert_eq!(*error.kind(), DecodeErrorKind::NothingAllowed { position: 2 });
}

#[test]
fn parts_that_do_not_belong_together_are_refused() {
    let small = ScriptedModel::new(100, 20, 0);
    let error = Decoder::builder(small.clone()).vocabulary(vocabulary()).build().unwrap_err();
    let expected = BuildErrorKind::VocabularyTooLarge { vocabulary: vocabulary().size(), model: 100 };
    assert_eq!(*error.kind(), expected);
    assert_eq!(*Decoder::builder(small).build().unwrap_err().kind(), BuildErrorKind::NoVocabulary);
    let other = vocabulary().with_end_of_text([TokenId::new(END)]).unwrap();
    let builder = Decoder::builder(model(0)).vocabulary(other).constraint(shipped("json"));
    assert_eq!(*builder.build().unwrap_err().kind(), BuildErrorKind::OtherVocabulary);
}

#[test]
fn a_constraint_out_of_budget_is_an_error_and_the_tokens_stand() {
    let mut limits = Limits::default();
    limits.parser_bytes = 4_000;
    let grammar = Grammar::parse(Syntax::Gbnf, r#"root ::= "(" root ")" | "x""#, &limits).unwrap();
    let compiled = Compiler::new(vocabulary()).limits(limits).compile(&grammar).unwrap();
    let builder = Decoder::builder(model(0).script(3, bytes(&"(".repeat(300)))).vocabulary(vocabulary());
    let mut decoder = builder.constraint(compiled.constraint()).build().unwrap();
    let mut steps = decoder.steps(&prompt());
    let error = steps.by_ref().find_map(Result::err).unwrap();
    assert_eq!(*error.kind(), DecodeErrorKind::Constraint);
    let source = std::error::Error::source(&error).unwrap();
    let step = source.downcast_ref::<domino::StepError>().unwrap();
    assert!(matches!(step.kind(), StepErrorKind::Limit(_)), "{step}");
    assert!(steps.tokens().len() > 5);
}

#[test]
fn the_cache_holds_the_prompt_and_all_tokens_but_the_last() {
    let constraint = shipped("json");
    let builder = Decoder::builder(model(4)).vocabulary(vocabulary()).constraint(constraint);
    let mut decoder = builder.sampling(at(1.0)).max_new_tokens(20).build().unwrap();
    let generation = decoder.generate(&prompt()).unwrap();
    let held = decoder.model().position();
    let all = prompt().len() + generation.tokens.len();
    assert!(held == all || held + 1 == all);
    // Going on by hand gives the row that the run saw.
    let mut model = decoder.into_model();
    model.truncate(1).unwrap();
    let rest: Vec<TokenId> = prompt().into_iter().skip(1).collect();
    assert_eq!(model.forward(&rest, Rows::All).unwrap().rows(), 2);
}

#[test]
fn a_text_that_is_closed_says_what_was_appended() {
    let mut decoder = Decoder::builder(model(1))
        .vocabulary(vocabulary())
        .constraint(compile("root ::= [a-z]{30} \"!\""))
        .build()
        .unwrap();
    let mut steps = decoder.steps(&prompt());
    steps.next().unwrap().unwrap();
    let before = steps.text().to_vec();
    assert_eq!(steps.completion(), None);
    steps.close().unwrap();
    let completion = steps.completion().unwrap().bytes.clone();
    assert!(completion.ends_with(b"!"));
    assert_eq!(steps.text(), [before, completion].concat());
}

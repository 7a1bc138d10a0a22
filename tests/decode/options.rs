//! Penalties, stop strings and log-probabilities, with a scripted model.

use domino::{
    Constraint, TokenId,
    decode::{
        DecodeOptions, Decoder, Finish, Generation, LogitBias, Masking, Penalties, Sampler, StopStrings,
    },
    model::{Model, Rows, ScriptedModel},
};
use proptest::prelude::*;

use super::{
    draw::at,
    run::{bytes, compile, model, prompt, samplings, shipped, vocabulary},
};

fn generate(model: ScriptedModel, constraint: Option<&Constraint>, options: &DecodeOptions) -> Generation {
    let mut builder = Decoder::builder(model).vocabulary(vocabulary()).options(options.clone());
    if let Some(constraint) = constraint {
        builder = builder.constraint(constraint.clone());
    }
    builder.build().unwrap().generate(&prompt()).unwrap()
}

fn stopping(strings: &[&str]) -> DecodeOptions {
    let mut options = DecodeOptions::default();
    options.stop = StopStrings::new(strings.iter().copied()).unwrap();
    options.max_new_tokens = 40;
    options
}

fn penalties() -> impl Strategy<Value = Penalties> {
    (0.5..3.0_f64, -2.0..2.0_f64, -1.0..2.0_f64, 0..40_usize).prop_map(
        |(repeat, presence, frequency, last)| {
            let penalties = Penalties::none().repeat(repeat).unwrap().presence(presence).unwrap();
            penalties.frequency(frequency).unwrap().last_tokens(last)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// With penalties and a bias, too, a run is the same whenever masks are made, and each of its tokens is
    /// the draw from its biased and penalised row by itself. Verification of drafts relies on this.
    #[test]
    fn penalised_rows_can_be_judged_one_by_one(
        penalties in penalties(), sampling in 0..samplings().len(), grammar in 0..3_usize, seed: u64,
        bias in prop::collection::vec((0..400_u32, -9.0..9.0_f32), 0..40),
    ) {
        let constraint = shipped(["json", "arithmetic", "email"][grammar]);
        let mut options = DecodeOptions::default();
        (options.penalties, options.sampling, options.seed) = (penalties, samplings()[sampling], seed);
        options.bias = LogitBias::new(bias.iter().map(|&(id, amount)| (TokenId::new(id), amount))).unwrap();
        options.max_new_tokens = 40;
        options.masking = Masking::Always;
        let always = generate(model(seed), Some(&constraint), &options);
        options.masking = Masking::Opportunistic;
        let late = generate(model(seed), Some(&constraint), &options);
        prop_assert_eq!(&always.tokens, &late.tokens);
        options.masking = Masking::Ahead;
        prop_assert_eq!(&always.tokens, &generate(model(seed), Some(&constraint), &options).tokens);
        prop_assert_eq!(always.stats.interventions, late.stats.interventions);
        let text = [prompt(), late.tokens.clone()].concat();
        let rows = model(seed).forward(&text, Rows::All).unwrap();
        let sampler = Sampler::new(options.sampling, seed);
        let mut constraint = constraint;
        for (position, &token) in text.iter().enumerate().skip(prompt().len()) {
            let biased = options.bias.apply(rows.row(position - 1).unwrap(), position);
            let row = penalties.apply(&biased, &text[..position]);
            prop_assert_eq!(sampler.draw(&row, constraint.mask().unwrap(), position), Ok(token));
            constraint.advance(token).unwrap();
        }
    }
}

#[test]
fn penalties_keep_a_model_from_repeating_itself() {
    // It wants x all the time; what it says once is penalised for good.
    let mut options = DecodeOptions::default();
    options.max_new_tokens = 12;
    let wishes = model(0).script(3, bytes("xxxxxxxxxxxx"));
    let letters = compile("root ::= [a-z]{12}");
    let plain = generate(wishes.clone(), Some(&letters), &options);
    assert_eq!(plain.text, b"xxxxxxxxxxxx");
    options.penalties = Penalties::none().presence(100.0).unwrap();
    let mut seen = generate(wishes, Some(&letters), &options).tokens;
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 12);
}

#[test]
fn a_stop_string_ends_the_text_wherever_tokens_end() {
    // "ab" is one token, and so is `": `: the stop string begins and ends inside tokens.
    let script = || {
        let token = |text: &[u8]| {
            let found = (0..vocabulary().size()).filter_map(TokenId::from_index);
            found.into_iter().find(|&token| vocabulary().bytes(token) == Some(text)).unwrap()
        };
        model(0).script(3, [token(b"x"), token(b"ab"), token(b"\": "), token(b"y"), token(b"z")])
    };
    for (strings, text, tokens) in [
        (&["b\":"][..], "xa", 3),
        (&["b\": y"], "xa", 4),
        (&["nothing", "z"], "xab\": y", 5),
        // The stop string that ends first counts; of two that end at the same byte, the longer.
        (&["\":", "b\":"], "xa", 3),
        (&["ab\": yz", "\": "], "xab", 3),
        (&["xab"], "", 2),
    ] {
        let generation = generate(script(), None, &stopping(strings));
        assert_eq!(String::from_utf8_lossy(&generation.text), text, "{strings:?}");
        assert_eq!((generation.finish, generation.tokens.len()), (Finish::StopString, tokens));
        assert_eq!(generation.stats.passes, tokens);
        assert!(generation.complete);
    }
}

#[test]
fn text_is_shown_only_when_no_stop_string_can_take_it_back() {
    let script = model(0).script(3, bytes("aabaabaac"));
    let mut decoder =
        Decoder::builder(script).vocabulary(vocabulary()).options(stopping(&["aabaac"])).build().unwrap();
    let prompt = prompt();
    let mut steps = decoder.steps(&prompt);
    let mut shown = Vec::new();
    while let Some(step) = steps.next() {
        step.unwrap();
        shown.push(String::from_utf8(steps.settled_text().to_vec()).unwrap());
    }
    assert_eq!(shown, ["", "", "", "", "", "aab", "aab", "aab", "aab"].map(str::to_owned));
    assert_eq!(steps.finish(), Some(Finish::StopString));
    // Held-back text is shown when the text ends otherwise.
    let mut cut = stopping(&["aabaac"]);
    cut.max_new_tokens = 5;
    let script = model(0).script(3, bytes("aabaabaac"));
    let mut decoder = Decoder::builder(script).vocabulary(vocabulary()).options(cut).build().unwrap();
    let mut steps = decoder.steps(&prompt);
    while steps.next().is_some() {}
    assert_eq!((steps.finish(), steps.settled_text()), (Some(Finish::Length), &b"aabaa"[..]));
}

#[test]
fn a_constraint_knows_whether_the_cut_text_is_complete() {
    for (grammar, complete) in
        [(r#"root ::= [a-z]* ("." [a-z]+)?"#, true), (r#"root ::= "ab" [a-z]* "." "cd""#, false)]
    {
        let constraint = compile(grammar);
        let script = model(0).script(3, bytes("abx.cd"));
        let mut decoder = Decoder::builder(script)
            .vocabulary(vocabulary())
            .constraint(constraint)
            .options(stopping(&["."]))
            .build()
            .unwrap();
        let prompt = prompt();
        let mut steps = decoder.steps(&prompt);
        assert!(steps.by_ref().all(|step| step.is_ok()));
        assert_eq!((steps.finish(), steps.text()), (Some(Finish::StopString), &b"abx"[..]));
        assert_eq!(steps.is_complete(), complete);
        assert_eq!(steps.constraint().unwrap().is_complete(), complete);
        assert_eq!(steps.into_generation().complete, complete);
    }
}

#[test]
fn logprobs_say_how_much_the_constraint_refuses_and_change_nothing() {
    let constraint = shipped("json");
    for masking in [Masking::Ahead, Masking::Always, Masking::Opportunistic] {
        let mut options = DecodeOptions::default();
        (options.sampling, options.masking, options.max_new_tokens) = (at(1.0), masking, 30);
        let plain = generate(model(4), Some(&constraint), &options);
        options.logprobs = Some(4);
        let looked = generate(model(4), Some(&constraint), &options);
        assert_eq!(plain.tokens, looked.tokens);
        assert!(plain.logprobs.is_empty());
        assert_eq!(looked.logprobs.len(), looked.tokens.len());
        let rows = model(4).forward(&[prompt(), looked.tokens.clone()].concat(), Rows::All).unwrap();
        let mut constraint = constraint.clone();
        for (index, (found, &token)) in looked.logprobs.iter().zip(&looked.tokens).enumerate() {
            let row = rows.row(prompt().len() + index - 1).unwrap();
            let weight = |token: TokenId| f64::from(row[token.index()]).exp();
            let all: f64 = row.iter().map(|&logit| f64::from(logit).exp()).sum();
            let mask = constraint.mask().unwrap();
            let allowed: f64 = mask.iter().map(weight).sum();
            assert_eq!(found.taken.token, token);
            for entry in [&found.taken].into_iter().chain(&found.top).chain(&found.top_allowed) {
                assert!((entry.model - (weight(entry.token) / all).ln()).abs() < 1e-6);
                assert_eq!(entry.constrained.is_some(), mask.contains(entry.token));
                let constrained = entry.constrained.unwrap_or((weight(entry.token) / allowed).ln());
                assert!((constrained - (weight(entry.token) / allowed).ln()).abs() < 1e-6);
            }
            assert_eq!((found.top.len(), found.top_allowed.len()), (4, mask.len().min(4)));
            assert!(found.top.is_sorted_by(|one, next| one.model >= next.model));
            let best = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            assert_eq!(row[found.top[0].token.index()].to_bits(), best.to_bits());
            constraint.advance(token).unwrap();
        }
    }
}

#[test]
fn cut_texts_are_completed_when_asked() {
    let constraint = compile(r#"root ::= "[" ([a-z]+ ("," [a-z]+)*)? "]""#);
    for (max, stop, text, finish) in [
        (4, None, "[abc]", Finish::Length),
        (5, None, "[abc,a]", Finish::Length),
        (40, Some(","), "[abc]", Finish::StopString),
        (40, Some("[ab"), "[]", Finish::StopString),
    ] {
        let script = || model(0).script(3, bytes("[abc,xyz]"));
        let mut options = stopping(&[]);
        options.stop = StopStrings::new(stop).unwrap();
        options.max_new_tokens = max;
        let cut = generate(script(), Some(&constraint), &options);
        assert!(!cut.complete && cut.completion.is_none());
        options.close = true;
        let closed = generate(script(), Some(&constraint), &options);
        assert_eq!((String::from_utf8_lossy(&closed.text).as_ref(), closed.finish), (text, finish));
        assert_eq!(closed.tokens, cut.tokens);
        assert!(closed.complete);
        assert_eq!([cut.text, closed.completion.unwrap().bytes].concat(), closed.text);
    }
    // Complete texts, and free ones, stay as they are.
    let mut options = stopping(&[]);
    (options.close, options.max_new_tokens) = (true, 9);
    let whole = generate(model(0).script(3, bytes("[abc,xyz]")), Some(&constraint), &options);
    assert_eq!((whole.text.as_slice(), whole.completion), (&b"[abc,xyz]"[..], None));
    let free = generate(model(0).script(3, bytes("[abc,xyz]")), None, &options);
    assert_eq!((free.text.as_slice(), free.completion), (&b"[abc,xyz]"[..], None));
}

#[test]
fn a_text_can_be_closed_at_any_time() {
    let constraint = compile(r#"root ::= "[" ([a-z]+ ("," [a-z]+)*)? "]""#);
    let script = model(0).script(3, bytes("[abc,xyz]"));
    let builder = Decoder::builder(script).vocabulary(vocabulary()).constraint(constraint);
    let mut decoder = builder.build().unwrap();
    let prompt = prompt();
    for (taken, text) in [(0, "[]"), (1, "[]"), (3, "[ab]"), (5, "[abc,a]")] {
        let mut steps = decoder.steps(&prompt);
        assert_eq!(steps.by_ref().take(taken).count(), taken);
        steps.close().unwrap();
        assert_eq!(String::from_utf8_lossy(steps.settled_text()), text);
        assert!(steps.is_complete() && steps.next().is_none());
        assert_eq!((steps.finish(), steps.tokens().len()), (Some(Finish::Closed), taken));
    }
}

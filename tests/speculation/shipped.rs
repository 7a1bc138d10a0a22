//! The shipped model with and without drafts. Its rows have the same bits in every pass, so there are no
//! ties: all tokens are the same.
//!
//! `DOMINO_SPECULATION=300 cargo test --release speculation::shipped` looks longer.

use std::path::Path;

use domino::{
    Compiler, Grammar, Limits, Syntax, TokenId, Vocabulary,
    decode::{Decoder, Penalties, Sampling},
    grammar::json_schema::{SchemaOptions, WhiteSpace},
    model::{
        Model, Rows,
        candle::{CandleModel, LoadOptions},
    },
    proposer::{BestOf, CountProposer, DraftLength, Drafter, ForcedText, Learning, Lookup, Prior},
    vocab::Tokenizer,
};

const GRAMMARS: [&str; 6] = ["json", "gsm8k", "xml_person", "rpg", "c", "arithmetic"];
const PROMPTS: [&str; 4] = [
    "A JSON file describing a person: ",
    "Q: A robe takes 2 bolts of blue fiber and half that much white fiber. How many bolts?\nA: ",
    "An XML file of a person John Smith:",
    "C program that prints fibonacci numbers:\n",
];
const TOKENS: usize = 20;

fn repository() -> &'static Path {
    Path::new(env!("DOMINO_ROOT"))
}

/// A sampling for each number.
fn sampling(number: usize) -> Sampling {
    let drawn = Sampling::with_temperature([1.0, 0.6, 1.4][number % 3]).unwrap();
    match number % 6 {
        0 => Sampling::greedy(),
        1 | 2 => drawn,
        3 => drawn.top_k(20).unwrap(),
        4 => drawn.top_p(0.9).unwrap(),
        _ => drawn.min_p(0.05).unwrap(),
    }
}

#[test]
fn texts_are_the_same_with_and_without_drafts() {
    let cases = std::env::var("DOMINO_SPECULATION").map_or(30, |count| count.parse().expect("a number"));
    let folder = repository().join("models/domino-small");
    let vocabulary = Vocabulary::from_tokenizer_file(&folder).unwrap();
    let tokenizer = Tokenizer::from_tokenizer_file(&folder).unwrap();
    let compiler = Compiler::new(vocabulary.clone());
    let model = CandleModel::load(&folder, &LoadOptions::default()).unwrap();
    let mut decoder = Decoder::builder(model).vocabulary(vocabulary.clone()).build().unwrap();
    let (mut drafted, mut accepted) = (0, 0);
    for (number, name) in GRAMMARS.into_iter().cycle().take(cases).enumerate() {
        let text = std::fs::read_to_string(repository().join(format!("grammars/{name}.gbnf"))).unwrap();
        let compiled =
            compiler.compile(&Grammar::parse(Syntax::Gbnf, &text, &Limits::default()).unwrap()).unwrap();
        let prompt = tokenizer.encode(PROMPTS[number / 2 % PROMPTS.len()], true).unwrap();
        decoder.set_constraint(Some(compiled.constraint())).unwrap();
        let options = decoder.options_mut();
        options.seed = number as u64;
        options.sampling = sampling(number / 3);
        options.max_new_tokens = TOKENS;
        options.penalties =
            if number % 4 == 3 { Penalties::none().repeat(1.2).unwrap() } else { Penalties::none() };
        let plain = decoder.generate(&prompt).unwrap();
        let length = match number % 3 {
            0 => DraftLength::Auto,
            n => DraftLength::up_to(5 * n, 0.2 / n as f64).unwrap(),
        };
        let learning = if number % 2 == 0 { Learning::Online } else { Learning::PerText };
        let proposer = BestOf::new(vec![
            Box::new(ForcedText::new(tokenizer.clone(), vocabulary.clone())),
            Box::new(CountProposer::new(Prior::new(&compiled), learning)),
            Box::new(Lookup::default()),
        ]);
        decoder.set_drafter(Some(Drafter::new(Box::new(proposer), length)));
        // The first run learns, the second one knows what comes.
        for _ in 0..2 {
            let found = decoder.generate(&prompt).unwrap();
            assert_eq!((&found.tokens, found.finish), (&plain.tokens, plain.finish), "{name}, case {number}");
            drafted += found.stats.drafted;
            accepted += found.stats.accepted;
        }
        decoder.set_drafter(None);
    }
    assert!(drafted > cases && accepted > cases, "{drafted} drafted, {accepted} accepted");
}

/// Templates are drafted without a prior: text that the grammar forces, whatever its split into tokens.
#[test]
fn templates_of_schemas_are_drafted() {
    const SCHEMA: &str = r#"{
        "type": "object", "additionalProperties": false, "required": ["name", "kind", "tags"],
        "properties": {
            "name": {"type": "string", "maxLength": 8},
            "kind": {"enum": ["a person of the town", "somebody from elsewhere"]},
            "tags": {"type": "object", "additionalProperties": false, "required": ["first name", "age"],
                "properties": {"first name": {"type": "null"}, "age": {"type": "integer", "maximum": 99}}}
        }
    }"#;
    let folder = repository().join("models/domino-small");
    let vocabulary = Vocabulary::from_tokenizer_file(&folder).unwrap();
    let tokenizer = Tokenizer::from_tokenizer_file(&folder).unwrap();
    let model = CandleModel::load(&folder, &LoadOptions::default()).unwrap();
    let mut decoder = Decoder::builder(model).vocabulary(vocabulary.clone()).build().unwrap();
    let prompt = tokenizer.encode(PROMPTS[0], true).unwrap();
    // Two extremes: `--escapes all` forces hardly a byte, compact white space nearly all of them.
    for options in [SchemaOptions::default(), SchemaOptions::default().with_white_space(WhiteSpace::Compact)]
    {
        let schema = options.parse(SCHEMA, &Limits::default()).unwrap();
        let compiled = Compiler::new(vocabulary.clone()).compile(&schema.grammar).unwrap();
        decoder.set_constraint(Some(compiled.constraint())).unwrap();
        let (mut plain_passes, mut passes, mut accepted) = (0, 0, 0);
        for number in 0..3 {
            let set = decoder.options_mut();
            (set.seed, set.sampling, set.max_new_tokens) = (number, sampling(number as usize), 30);
            let plain = decoder.generate(&prompt).unwrap();
            for length in [DraftLength::Auto, DraftLength::up_to(6, 0.3).unwrap()] {
                let forced = ForcedText::new(tokenizer.clone(), vocabulary.clone());
                decoder.set_drafter(Some(match length {
                    DraftLength::Auto => Drafter::of_forced_text(tokenizer.clone(), vocabulary.clone()),
                    length => Drafter::new(Box::new(forced), length),
                }));
                let found = decoder.generate(&prompt).unwrap();
                assert_eq!((&found.tokens, found.finish), (&plain.tokens, plain.finish), "case {number}");
                if length != DraftLength::Auto {
                    plain_passes += plain.stats.passes;
                    passes += found.stats.passes;
                    accepted += found.stats.accepted;
                }
                decoder.set_drafter(None);
            }
        }
        assert!(accepted > 0 && passes < plain_passes, "{passes} passes and {plain_passes}");
    }
}

/// A decoder of the shipped model, with a drafter by the prior shipped for a grammar.
fn with_shipped_prior(name: &str, length: DraftLength) -> Decoder<CandleModel> {
    let folder = repository().join("models/domino-small");
    let vocabulary = Vocabulary::from_tokenizer_file(&folder).unwrap();
    let text = std::fs::read_to_string(repository().join(format!("grammars/{name}.gbnf"))).unwrap();
    let grammar = Grammar::parse(Syntax::Gbnf, &text, &Limits::default()).unwrap();
    let compiled = Compiler::new(vocabulary.clone()).compile(&grammar).unwrap();
    let prior = std::fs::read(folder.join(format!("priors/{name}.prior"))).unwrap();
    let prior = Prior::from_bytes(&prior, &compiled).unwrap();
    let mut decoder = Decoder::builder(CandleModel::load(&folder, &LoadOptions::default()).unwrap())
        .vocabulary(vocabulary)
        .constraint(compiled.constraint())
        .sampling(Sampling::with_temperature(1.0).unwrap())
        .max_new_tokens(60)
        .build()
        .unwrap();
    let proposer = CountProposer::new(prior, Learning::PerText);
    decoder.set_drafter(Some(Drafter::new(Box::new(proposer), length)));
    decoder
}

/// Shipped priors fit this model, these grammars and these contexts. Whoever changes one of these must make
/// the priors again.
#[test]
fn shipped_priors_fit() {
    let folder = repository().join("models/domino-small");
    let tokenizer = Tokenizer::from_tokenizer_file(&folder).unwrap();
    for (name, prompt) in [("json", 0), ("gsm8k", 1), ("xml_person", 2), ("rpg", 0), ("c", 3)] {
        let mut decoder = with_shipped_prior(name, DraftLength::up_to(4, 0.5).unwrap());
        let (mut tokens, mut passes) = (0, 0);
        for seed in 0..3 {
            decoder.options_mut().seed = seed;
            let stats = decoder.generate(&tokenizer.encode(PROMPTS[prompt], true).unwrap()).unwrap().stats;
            (tokens, passes) = (tokens + stats.tokens, passes + stats.passes);
        }
        assert!(4 * tokens > 5 * passes, "{name}: {tokens} tokens in {passes} passes");
    }
}

/// The measured pace, which decides the length of drafts, is that of the run.
#[test]
fn the_measured_pace_is_that_of_the_run() {
    let tokenizer = Tokenizer::from_tokenizer_file(repository().join("models/domino-small")).unwrap();
    let mut decoder = with_shipped_prior("rpg", DraftLength::Auto);
    decoder.options_mut().max_new_tokens = 200;
    let stats = decoder.generate(&tokenizer.encode(PROMPTS[0], true).unwrap()).unwrap().stats;
    let real = stats.tokens as f64 / stats.total_time.as_secs_f64();
    let pace = decoder.drafter().unwrap().pace();
    // It looks back on the last passes, not on all.
    assert!(pace > real / 4.0 && pace < real * 4.0, "{pace} {real}, {} passes", stats.passes);
}

/// Rows do not depend on what else is in their pass, which makes the first test exact.
#[test]
fn rows_do_not_depend_on_what_shares_the_pass() {
    let folder = repository().join("models/domino-small");
    let mut model = CandleModel::load(&folder, &LoadOptions::default()).unwrap();
    let tokens: Vec<TokenId> = (0..23).map(|n| TokenId::new(300 + 977 * n)).collect();
    let whole = model.forward(&tokens, Rows::All).unwrap();
    for split in [1, 2, 5, 6, 7, 12, 13, 22] {
        model.truncate(split).unwrap();
        let rest = model.forward(&tokens[split..], Rows::All).unwrap();
        for row in 0..tokens.len() - split {
            let bits = |row: &[f32]| row.iter().map(|logit| logit.to_bits()).collect::<Vec<_>>();
            assert_eq!(rest.row(row).map(bits), whole.row(split + row).map(bits), "split {split}, row {row}");
        }
    }
}

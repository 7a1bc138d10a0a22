//! Texts of a grammar, with drafts and without.

use domino::{
    CompiledGrammar, Compiler, Grammar, Limits, Syntax, Vocabulary,
    decode::{Decoder, Finish, Sampling},
    proposer::{CountProposer, DraftLength, Drafter, Learning, Prior},
    shipped,
};

use crate::{FIXTURES, expected, load};

const TOKENS: usize = 60;

fn compiled(vocabulary: &Vocabulary) -> CompiledGrammar {
    let grammar = Grammar::parse(Syntax::Gbnf, shipped::text("json").unwrap(), &Limits::default()).unwrap();
    Compiler::new(vocabulary.clone()).compile(&grammar).unwrap()
}

#[test]
fn texts_are_of_the_grammar_with_drafts_and_without() {
    let mut drafted = 0;
    for name in FIXTURES {
        let (model, (prompt, _)) = (load(name), expected(name));
        let vocabulary = model.vocabulary().unwrap();
        let compiled = compiled(&vocabulary);
        let mut decoder = Decoder::builder(model)
            .vocabulary(vocabulary.clone())
            .constraint(compiled.constraint())
            .sampling(Sampling::with_temperature(0.8).unwrap())
            .max_new_tokens(TOKENS)
            .build()
            .unwrap();
        for seed in 0..4 {
            decoder.options_mut().seed = seed;
            let drafter = (seed % 2 == 1).then(|| {
                let counts = CountProposer::new(Prior::new(&compiled), Learning::PerText);
                Drafter::new(Box::new(counts), DraftLength::up_to(4, 0.0).unwrap())
            });
            decoder.set_drafter(drafter);
            let generation = decoder.generate(&prompt).unwrap();
            let mut constraint = compiled.constraint();
            for &token in &generation.tokens {
                constraint.advance(token).unwrap();
            }
            let cut = generation.finish == Finish::Length;
            assert!(cut || constraint.is_complete(), "{name}, seed {seed}: {generation:?}");
            drafted += generation.tokens.len().saturating_sub(generation.stats.passes);
        }
    }
    assert!(drafted > 0, "no draft was taken");
}

//! Proposers, priors and drafts; the shipped model writes the same text with them.

#[cfg(unix)]
mod attempts;
mod definitions;
mod draft_model;
mod drafts;
mod flat;
mod priors;
mod several;
mod shipped;

use domino::{
    CompiledGrammar, Compiler, Grammar, Limits, Syntax, TokenId, Vocabulary,
    decode::{Decoder, Sampling},
    model::ScriptedModel,
    proposer::{CountProposer, DraftLength, Drafter, Learning, Prior},
};
use std::sync::{Arc, Mutex};

/// A vocabulary of letters, digits, punctuation and some pairs.
fn vocabulary() -> Vocabulary {
    let single = b"abcdefgh0123456789[],. ".iter().map(|&byte| vec![byte]);
    let tokens = single.chain([b"ab".to_vec(), b", ".to_vec(), b"[[".to_vec(), b"12".to_vec()]);
    let ids = (1..).map(TokenId::new);
    tokens
        .zip(ids)
        .fold(Vocabulary::builder(), |builder, (bytes, id)| builder.token(id, bytes))
        .end_of_text(TokenId::new(0))
        .build()
        .unwrap()
}

fn compiled(grammar: &str) -> CompiledGrammar {
    let grammar = Grammar::parse(Syntax::Gbnf, grammar, &Limits::default()).unwrap();
    Compiler::new(vocabulary()).compile(&grammar).unwrap()
}

const LISTS: &str =
    r#"root ::= list   list ::= "[" (item (", " item)*)? "]"   item ::= list | [a-h]+ | [0-9]+"#;

/// A prior learnt from some runs of a scripted model.
fn learnt(grammar: &CompiledGrammar, seeds: std::ops::Range<u64>) -> Prior {
    let learner = CountProposer::new(Prior::new(grammar), Learning::Online);
    let learner = Arc::new(Mutex::new(learner));
    let drafter = Drafter::new(Box::new(Arc::clone(&learner)), DraftLength::up_to(3, 0.3).unwrap());
    let mut decoder = Decoder::builder(ScriptedModel::new(40, 256, 1))
        .vocabulary(vocabulary())
        .constraint(grammar.constraint())
        .sampling(Sampling::with_temperature(0.5).unwrap())
        .max_new_tokens(30)
        .drafter(drafter)
        .build()
        .unwrap();
    for seed in seeds {
        decoder.options_mut().seed = seed;
        decoder.generate(&[TokenId::new(1)]).unwrap();
    }
    drop(decoder);
    let learner = learner.lock().unwrap();
    learner.prior().clone()
}

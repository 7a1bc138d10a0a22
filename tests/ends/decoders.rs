//! Tests ends in the decoders: a text that ends where only white space can follow is a prefix of the text
//! that goes on.

use domino::{
    TrailingSpace,
    decode::{BatchDecoder, BatchEvent, DecodeOptions, Decoder, Finish, Generation, Masking, Sampling},
    model::{OneByOne, ScriptedModel},
    proposer::{BestOf, CountProposer, DraftLength, Drafter, Learning, Lookup, Prior, Propose},
};

use crate::decode::run::{compiled, model, prompt, vocabulary};

/// Grammars with optional white space at the end of their texts, each long enough for drafts.
const GRAMMARS: [&str; 4] = [
    "root ::= \"[\" [0-9]{2} (\", \" [0-9]{2}){3} \"]\" [ \\n]*",
    "root ::= \"{\" ws \"\\\"ab\\\": \" (\"true\" | \"null\") ws \"}\" ws   ws ::= ([ \\n] ws)?",
    "root ::= (\"ab\" | \"12\"){4} \"\\n\"{0,9}",
    "root ::= \"(\" root? \")\" ws   ws ::= \" \"*",
];

fn options(seed: u64, trailing: TrailingSpace, masking: Masking) -> DecodeOptions {
    let mut options = DecodeOptions::default();
    options.sampling =
        if seed.is_multiple_of(3) { Sampling::greedy() } else { Sampling::with_temperature(1.0).unwrap() };
    options.seed = seed;
    options.max_new_tokens = 60;
    options.trailing_space = trailing;
    options.masking = masking;
    options
}

fn alone(grammar: &str, options: &DecodeOptions, drafter: Option<Drafter>) -> Generation {
    let builder = Decoder::builder(model(options.seed)).vocabulary(vocabulary()).options(options.clone());
    let mut decoder = builder.constraint(compiled(grammar).constraint()).build().unwrap();
    decoder.set_drafter(drafter);
    decoder.generate(&prompt()).unwrap()
}

/// A drafter with proposers that begin without counts and lookups of repeats, in drafts of a fixed length.
fn drafter(grammar: &str, tokens: usize) -> Drafter {
    let counts = CountProposer::new(Prior::new(&compiled(grammar)), Learning::PerText);
    let all: Vec<Box<dyn Propose>> = vec![Box::new(counts), Box::new(Lookup::default())];
    Drafter::new(Box::new(BestOf::new(all)), DraftLength::up_to(tokens, 0.0).unwrap())
}

/// Counts the tokens up to the place where only white space can follow, and tells whether there is one.
fn beginning(grammar: &str, whole: &Generation) -> (usize, bool) {
    let mut constraint = compiled(grammar).constraint();
    for (at, &token) in whole.tokens.iter().enumerate() {
        if constraint.only_space_follows() {
            return (at, true);
        }
        constraint.advance(token).unwrap();
    }
    (whole.tokens.len(), constraint.only_space_follows())
}

#[test]
fn a_text_ends_where_only_white_space_can_follow() {
    let (mut ended, mut went_on) = (0, 0);
    for grammar in GRAMMARS {
        for (seed, masking) in
            (0..12).zip([Masking::Ahead, Masking::Always, Masking::Opportunistic].iter().cycle())
        {
            let kept = alone(grammar, &options(seed, TrailingSpace::Keep, *masking), None);
            let stopped = alone(grammar, &options(seed, TrailingSpace::Stop, *masking), None);
            let (length, ends) = beginning(grammar, &kept);
            assert_eq!(stopped.tokens, kept.tokens[..length], "{grammar}");
            assert_ne!(kept.finish, Finish::OnlySpace);
            if ends {
                assert_eq!((stopped.finish, stopped.complete), (Finish::OnlySpace, true), "{grammar}");
                assert_eq!(stopped.end_of_text, None);
                ended += 1;
            } else {
                assert_eq!(stopped.finish, kept.finish, "{grammar}");
            }
            went_on += usize::from(kept.tokens.len() > length);
        }
    }
    assert!(ended > 20 && went_on > 5, "{ended} {went_on}");
}

#[test]
fn drafts_change_no_text_and_do_not_go_past_the_end() {
    let mut accepted = 0;
    for grammar in GRAMMARS {
        for seed in 0..8 {
            for trailing in [TrailingSpace::Stop, TrailingSpace::Keep] {
                let options = options(seed, trailing, Masking::Ahead);
                let plain = alone(grammar, &options, None);
                for tokens in [1, 4, 9] {
                    let drafted = alone(grammar, &options, Some(drafter(grammar, tokens)));
                    assert_eq!(drafted.tokens, plain.tokens, "{grammar}");
                    assert_eq!((drafted.finish, &drafted.text), (plain.finish, &plain.text), "{grammar}");
                    accepted += drafted.stats.accepted;
                }
            }
        }
    }
    assert!(accepted > 50, "{accepted}");
}

#[test]
fn batches_end_as_single_texts_do() {
    for grammar in GRAMMARS {
        for trailing in [TrailingSpace::Stop, TrailingSpace::Keep] {
            let all: Vec<DecodeOptions> = (0..5).map(|_| options(4, trailing, Masking::Ahead)).collect();
            let places: Vec<ScriptedModel> = (0..3).map(|_| model(4)).collect();
            let mut batch = BatchDecoder::new(OneByOne::new(places), vocabulary()).unwrap();
            for (number, options) in all.iter().enumerate() {
                let constraint = Some(compiled(grammar).constraint());
                match number % 2 {
                    0 => batch.add(&prompt(), constraint, options).unwrap(),
                    _ => batch.add_with_drafter(&prompt(), constraint, options, drafter(grammar, 5)).unwrap(),
                };
            }
            let expected = alone(grammar, &all[0], None);
            let mut ended = 0;
            while !batch.is_empty() {
                for event in batch.step() {
                    if let BatchEvent::Finished { generation, .. } = event {
                        assert_eq!(generation.tokens, expected.tokens, "{grammar}");
                        assert_eq!(generation.finish, expected.finish, "{grammar}");
                        ended += 1;
                    }
                }
            }
            assert_eq!(ended, all.len());
        }
    }
}

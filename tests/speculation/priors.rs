//! Files of priors: whole, damaged, and of something else.

use domino::{
    CompiledGrammar, Compiler, Grammar, Limits, Lookahead, Syntax, Terminals, TokenId, Vocabulary,
    proposer::{Prior, PriorErrorKind},
    store::{StoreErrorKind, resealed},
};
use proptest::prelude::*;

use super::{LISTS, compiled, learnt, vocabulary};

fn kind(file: &[u8], grammar: &CompiledGrammar) -> PriorErrorKind {
    Prior::from_bytes(file, grammar).unwrap_err().kind().clone()
}

#[test]
fn a_saved_prior_is_loaded_unchanged() {
    let grammar = compiled(LISTS);
    let mut prior = learnt(&grammar, 0..6);
    prior.set_label("lists");
    let summary = prior.summary();
    assert!(!prior.is_empty() && summary.observed > 50 && summary.guesses > 50, "{summary:?}");
    let bytes = prior.to_bytes();
    // Another compilation of the same grammar, as in another run of a program.
    let other = compiled(LISTS);
    let loaded = Prior::from_bytes(&bytes, &other).unwrap();
    assert_eq!(loaded, prior);
    assert_eq!(loaded.to_bytes(), bytes);
    assert_eq!(loaded.summary().label, "lists");
}

/// Contexts do not depend on history: another process, or earlier texts, files the same texts under the same
/// keys.
#[test]
fn learnt_counts_do_not_depend_on_earlier_texts() {
    let (one, other) = (compiled(LISTS), compiled(LISTS));
    learnt(&other, 20..30);
    assert_eq!(learnt(&one, 0..6).to_bytes(), learnt(&other, 0..6).to_bytes());
}

#[test]
fn merging_priors_adds_their_counts() {
    let grammar = compiled(LISTS);
    let (one, two) = (learnt(&grammar, 0..4), learnt(&grammar, 4..8));
    let mut both = one.clone();
    both.merge(&two).unwrap();
    let [one, two, sum] = [&one, &two, &both].map(Prior::summary);
    assert_eq!(sum.observed, one.observed + two.observed);
    assert_eq!(sum.guesses, one.guesses + two.guesses);
    assert!(sum.levels.iter().zip(&one.levels).all(|(both, one)| both.0 >= one.0));
    both.shrink(20);
    let contexts: usize = both.summary().levels.iter().map(|level| level.0).sum();
    assert!((1..=20).contains(&contexts));
}

#[test]
fn an_error_about_a_foreign_prior_names_both_sides() {
    let grammar = compiled(LISTS);
    let mut prior = learnt(&grammar, 0..2);
    prior.set_label("lists of letters");
    let bytes = prior.to_bytes();
    let ours = Prior::new(&grammar).summary();
    let other = compiled(r#"root ::= "[" [a-h]* "]""#);
    let theirs = Prior::new(&other).summary();
    let label = "lists of letters".to_owned();
    let expected = PriorErrorKind::OtherGrammar {
        found: ours.grammar.clone(),
        ours: theirs.grammar.clone(),
        label: label.clone(),
    };
    assert_eq!(kind(&bytes, &other), expected);
    let message = Prior::from_bytes(&bytes, &other).unwrap_err().to_string();
    for part in [&ours.grammar[..16], &theirs.grammar[..16], &label] {
        assert!(message.contains(part), "{message}");
    }
    let vocabulary = Vocabulary::builder()
        .token(TokenId::new(1), "[")
        .token(TokenId::new(2), "]")
        .end_of_text(TokenId::new(0))
        .build()
        .unwrap();
    let parsed = Grammar::parse(Syntax::Gbnf, LISTS, &Limits::default()).unwrap();
    let small = Compiler::new(vocabulary).compile(&parsed).unwrap();
    assert!(
        matches!(kind(&bytes, &small), PriorErrorKind::OtherVocabulary { found, ours, .. } if found != ours)
    );
    let mut empty = Prior::new(&other);
    assert!(empty.merge(&prior).is_err() && empty.is_empty());
}

#[test]
fn files_that_are_no_prior_are_refused() {
    let grammar = compiled(LISTS);
    let bytes = learnt(&grammar, 0..2).to_bytes();
    let store = |file: &[u8]| match kind(file, &grammar) {
        PriorErrorKind::File(error) => error.kind().clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(store(b"{}"), StoreErrorKind::NotOurs);
    assert_eq!(store(&grammar.artefact()), StoreErrorKind::Kind);
    assert_eq!(store(&bytes[..bytes.len() - 1]), StoreErrorKind::Truncated);
    let mut damaged = bytes.clone();
    damaged[200] ^= 1;
    assert_eq!(store(&damaged), StoreErrorKind::Damaged);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// A damaged file with a right checksum is refused, or is a prior that can be used.
    #[test]
    fn changed_payloads_are_refused_or_used(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let grammar = compiled(LISTS);
        let mut bytes = learnt(&grammar, 0..1).to_bytes();
        for (place, value) in changes {
            let place = 112 + place.index(bytes.len() - 112);
            bytes[place] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(112 + cut.index(bytes.len() - 112));
        }
        if let Ok(prior) = Prior::open(&resealed(bytes)) {
            prop_assert!(Prior::open(&prior.to_bytes()).is_ok());
            prop_assert!(!prior.summary().levels.is_empty());
        }
    }
}

/// Compatibility of priors: other terminals are another grammar to it, another lookahead is not. Defaults are
/// not written, so that older files are read as what they are.
#[test]
fn a_prior_says_what_it_was_learnt_at() {
    // One terminal where it is folded.
    let words = r#"root ::= "[" (word ", ")* word "]"   word ::= [a-h]+"#;
    let parsed = Grammar::parse(Syntax::Gbnf, words, &Limits::default()).unwrap();
    let compile = |lookahead, terminals| {
        Compiler::new(vocabulary()).lookahead(lookahead).terminals(terminals).compile(&parsed).unwrap()
    };
    let folded = compiled(words);
    let finite = compile(Lookahead::Terminals(2), Terminals::Folded);
    let written = compile(Lookahead::Terminals(1), Terminals::Written);
    for (grammar, lookahead, terminals) in [
        (&folded, Lookahead::Unbounded, Terminals::Folded),
        (&finite, Lookahead::Terminals(2), Terminals::Folded),
        (&written, Lookahead::Terminals(1), Terminals::Written),
    ] {
        let prior = learnt(grammar, 0..2);
        let read = Prior::open(&prior.to_bytes()).unwrap();
        assert_eq!(read, prior);
        assert_eq!((read.lookahead(), read.terminals()), (lookahead, terminals));
        assert_eq!((read.summary().lookahead, read.summary().terminals), (lookahead, terminals));
    }
    let [plain, at_two] = [&folded, &finite].map(|grammar| Prior::new(grammar).to_bytes());
    assert!(at_two.len() > plain.len());
    assert_eq!(Prior::from_bytes(&at_two, &folded).unwrap().lookahead(), Lookahead::Terminals(2));
    let expected = PriorErrorKind::OtherTerminals {
        found: Terminals::Folded,
        ours: Terminals::Written,
        label: String::new(),
    };
    assert_eq!(kind(&plain, &written), expected);
    let error = Prior::from_bytes(&plain, &written).unwrap_err();
    assert!(error.to_string().contains("Folded") && error.hint().contains("--terminals"), "{error}");
}

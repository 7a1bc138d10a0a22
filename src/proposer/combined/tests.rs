//! Recipes, held against proposers that are put together by hand.

use super::*;
use crate::{
    CompiledGrammar, Compiler, Grammar, Limits, Syntax,
    ids::TokenId,
    proposer::{CountProposer, Guess, Learning, Noise, Prior, Seen, Site},
};

/// A text that repeats itself, between words that the grammar forces.
const GRAMMAR: &str = r#"root ::= ("{\"name\": \"" [a-z]+ "\"}\n")+"#;
const TEXT: &str = "{\"name\": \"abcabc\"}\n{\"name\": \"abcabc\"}\n{\"name\": \"abcabd\"}\n";
const QUIET: Noise<'static> = &|_, _| 0.0;

fn fixture() -> (Tokenizer, CompiledGrammar) {
    let json = include_str!("../../../tests/fixtures/byte_level.json");
    let vocabulary = Vocabulary::from_tokenizer_json(json).unwrap();
    let grammar = Grammar::parse(Syntax::Gbnf, GRAMMAR, &Limits::default()).unwrap();
    let grammar = Compiler::new(vocabulary).compile(&grammar).unwrap();
    (Tokenizer::from_tokenizer_json(json).unwrap(), grammar)
}

fn counts(grammar: &CompiledGrammar, learning: Learning) -> Box<dyn Propose> {
    Box::new(CountProposer::new(Prior::new(grammar), learning))
}

fn length() -> DraftLength {
    DraftLength::up_to(8, 0.3).unwrap()
}

/// Returns the draft before each token of the text, which the drafter learns from.
fn drafts(mut drafter: Drafter, tokenizer: &Tokenizer, grammar: &CompiledGrammar) -> Vec<Vec<TokenId>> {
    let (mut constraint, mut sequence) = (grammar.constraint(), Vec::new());
    let mut drafts = Vec::new();
    for token in tokenizer.encode(TEXT, false).unwrap() {
        let mut site = Site::new(Some(&constraint), &mut sequence, 0.0, QUIET);
        drafts.push(drafter.draft(&mut site, 8).tokens);
        drop(site);
        let mut site = Site::new(Some(&constraint), &mut sequence, 0.0, QUIET);
        drafter.observe(&mut site, Seen::new(token, None));
        drop(site);
        constraint.advance(token).unwrap();
        sequence.push(token);
    }
    drafts
}

/// Compares recipes with their proposers one by one, with counts that learn and with counts that know
/// nothing, whose drafts are the others' alone.
#[test]
fn drafts_are_those_of_the_proposers_by_hand() {
    let (tokenizer, grammar) = fixture();
    let vocabulary = grammar.vocabulary();
    let standard = |known| DraftRecipe::standard(&tokenizer, vocabulary, known);
    let forced = || Box::new(ForcedText::new(tokenizer.clone(), vocabulary.clone()));
    for learning in [Learning::Online, Learning::Fixed] {
        let counts = || counts(&grammar, learning);
        let lookup = || Box::new(Lookup::default());
        let by_hand: [(DraftRecipe, Vec<Box<dyn Propose>>); 5] = [
            (standard(true), vec![counts(), lookup()]),
            (standard(false), vec![counts(), forced(), lookup()]),
            (standard(true).without_lookup(), vec![counts()]),
            (standard(false).without_lookup(), vec![counts(), forced()]),
            (DraftRecipe::counts_alone(), vec![counts()]),
        ];
        let mut guessed = Vec::new();
        for (recipe, proposers) in by_hand {
            let found = drafts(recipe.drafter(counts(), None, length()), &tokenizer, &grammar);
            let by_hand = Drafter::new(Box::new(BestOf::new(proposers)), length());
            assert_eq!(found, drafts(by_hand, &tokenizer, &grammar), "{recipe:?}");
            guessed.push(found.iter().any(|draft| !draft.is_empty()));
        }
        // The paper's is what counts guess by themselves.
        let alone = drafts(Drafter::new(counts(), length()), &tokenizer, &grammar);
        let paper = DraftRecipe::counts_alone().drafter(counts(), None, length());
        assert_eq!(drafts(paper, &tokenizer, &grammar), alone);
        if learning == Learning::Fixed {
            assert_eq!(guessed, [true, true, false, true, false]);
        }
    }
}

#[test]
fn a_second_model_is_asked_where_no_other_is_sure() {
    /// A proposer that is certain of a token.
    #[derive(Debug)]
    struct Certain(TokenId);

    impl Propose for Certain {
        fn guess(&mut self, _site: &mut Site<'_>) -> Option<Guess> {
            Some(Guess { token: self.0, acceptance: 1.0 })
        }
    }

    let (tokenizer, grammar) = fixture();
    let name = tokenizer.encode("{\"name\": \"", false).unwrap();
    let letter = tokenizer.encode("z", false).unwrap()[0];
    let mut constraint = grammar.constraint();
    for token in &name {
        constraint.advance(*token).unwrap();
    }
    let recipe = DraftRecipe::standard(&tokenizer, grammar.vocabulary(), true);
    let drafted = |second: Option<Box<dyn Propose>>| {
        let mut drafter = recipe.drafter(counts(&grammar, Learning::Fixed), second, length());
        let mut sequence = name.clone();
        drafter.draft(&mut Site::new(Some(&constraint), &mut sequence, 0.0, QUIET), 3).tokens
    };
    assert_eq!(drafted(Some(Box::new(Certain(letter)))), [letter; 3]);
    assert_ne!(drafted(None), [letter; 3]);
}

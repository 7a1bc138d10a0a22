//! The recipe of drafters: the proposers that guess for a text, the most trusted first, for all front ends.

use super::best::BestOf;
use crate::{
    proposer::{
        draft::{DraftLength, Drafter},
        forced::ForcedText,
        lookup::Lookup,
        propose::Propose,
    },
    vocab::{Tokenizer, Vocabulary},
};

/// The recipe of drafters for the texts of a grammar: the proposers beside the counts of the grammar.
///
/// A drafter trusts its counts most, then what the grammar forces, if nothing was learnt before, then what
/// came before in the same text; [`BestOf`] says when a less trusted one is heard. Cloning is cheap. With the
/// feature `tokenizers`.
///
/// ```
/// use domino::{
///     Vocabulary,
///     proposer::{CountProposer, DraftLength, DraftRecipe, Drafter, Learning, Prior},
///     vocab::Tokenizer,
/// };
///
/// # fn make(grammar: &domino::CompiledGrammar, tokenizer: &Tokenizer) -> Drafter {
/// // Nothing was learnt of the grammar before.
/// let recipe = DraftRecipe::standard(tokenizer, grammar.vocabulary(), false);
/// let counts = CountProposer::new(Prior::new(grammar), Learning::PerText);
/// recipe.drafter(Box::new(counts), None, DraftLength::Auto)
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct DraftRecipe {
    forced: Option<ForcedText>,
    /// Does a lookup of earlier text guess?
    lookup: bool,
}

impl DraftRecipe {
    /// Drafts by counts and by a lookup of earlier text, and by [text that the grammar forces](ForcedText)
    /// unless counts begin with something that was learnt before, as `known` says: then they know it.
    ///
    /// The vocabulary is the grammar's, which has the special tokens that the grammar spells out; the
    /// tokenizer must be its own.
    #[must_use]
    pub fn standard(tokenizer: &Tokenizer, vocabulary: &Vocabulary, known: bool) -> Self {
        let forced = (!known).then(|| ForcedText::new(tokenizer.clone(), vocabulary.clone()));
        Self { forced, lookup: true }
    }

    /// Drafts by counts alone, as the DOMINO paper (3.6) does.
    #[must_use]
    pub fn counts_alone() -> Self {
        Self { forced: None, lookup: false }
    }

    /// Leaves out the lookup of earlier text.
    #[must_use]
    pub fn without_lookup(self) -> Self {
        Self { lookup: false, ..self }
    }

    /// Makes the drafter of one text. The counts are the text's own, or shared (`Arc<Mutex<_>>`) by texts
    /// that learn from one another. `second` is an expensive proposer, such as a draft model: it is trusted
    /// most, and asked only where no other is sure.
    #[must_use]
    pub fn drafter(
        &self,
        counts: Box<dyn Propose>,
        second: Option<Box<dyn Propose>>,
        length: DraftLength,
    ) -> Drafter {
        let mut proposers = vec![counts];
        if let Some(forced) = &self.forced {
            proposers.push(Box::new(forced.clone()));
        }
        if self.lookup {
            proposers.push(Box::new(Lookup::default()));
        }
        let mut proposer = BestOf::new(proposers);
        if let Some(second) = second {
            proposer = proposer.with_expensive(second);
        }
        Drafter::new(Box::new(proposer), length)
    }
}

#[cfg(test)]
mod tests {
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
}

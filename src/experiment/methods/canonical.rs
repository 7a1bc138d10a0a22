//! Masks over canonical tokenisations only: every prefix of the text is cut into tokens as the tokenizer
//! itself cuts it.
//!
//! Of the tokens that the mask allows one is drawn; one with which the text is not the tokenizer's own split
//! is refused and drawn again without replacement, so that the token is a draw from those that are allowed
//! and canonical. Where none is, the last token goes and is refused in its place (depth-first search).
//!
//! What holds: a text is canonical, unless the budget of steps back was used up, after which tokens are free.
//! What does not: the distribution is not the model's conditioned on canonical texts, as a token is drawn
//! before it is known whether a canonical text follows; and texts that are canonical though one of their
//! prefixes is not (where the tokenizer splits words by what follows them) are never written. Inside a
//! character, where there is no text to split, any token is taken, and found out with the character's last
//! byte.

use super::{Method, MethodError, Outcome, Stage, decoded, single};
use crate::{
    constraint::Constraint,
    decode::{DecodeError, DecodeStats, Sampler},
    experiment::tokens::alone,
    ids::TokenId,
    model::Model,
    vocab::{Tokenizer, Vocabulary},
};

/// Steps back in a text after which its tokens are free.
const MOST_BACK: usize = 256;

/// Draws canonical tokens.
#[derive(Debug)]
pub(super) struct Canonical {
    tokenizer: Tokenizer,
    vocabulary: Vocabulary,
    /// What was refused at each place of the text, up to the next one.
    refused: Vec<Vec<TokenId>>,
    redraws: usize,
    back: usize,
}

impl Canonical {
    pub(super) fn new(tokenizer: &Tokenizer, vocabulary: &Vocabulary) -> Self {
        let (tokenizer, vocabulary) = (tokenizer.clone(), vocabulary.clone());
        Self { tokenizer, vocabulary, refused: Vec::new(), redraws: 0, back: 0 }
    }

    /// Is the text with this token behind it the tokenizer's own split, as far as that can be said?
    fn fits(&self, text: &single::Text, token: TokenId) -> bool {
        let Some(bytes) = self.vocabulary.bytes(token).filter(|_| !self.vocabulary.is_end_of_text(token))
        else {
            return true;
        };
        let bytes = [&text.bytes, bytes].concat();
        if str::from_utf8(&bytes).is_err_and(|error| error.error_len().is_none()) {
            return true;
        }
        alone(&self.tokenizer, &self.vocabulary, &bytes).is_none_or(|tokens| {
            tokens.split_last().is_some_and(|(last, before)| *last == token && before == text.tokens())
        })
    }
}

impl single::Choose for Canonical {
    fn choose(
        &mut self,
        row: &[f32],
        text: &single::Text,
        sampler: &Sampler,
        constraint: &mut Constraint,
        stats: &mut DecodeStats,
    ) -> Result<single::Choice, DecodeError> {
        let (place, position) = (text.tokens().len(), text.position());
        self.refused.resize(place + 1, Vec::new());
        stats.masks += 1;
        let mut left = single::timed(&mut stats.mask_time, || constraint.mask())?.clone();
        let free = self.back >= MOST_BACK;
        if !free {
            self.refused[place].iter().for_each(|token| left.remove(*token));
        }
        while !left.is_empty() {
            let token =
                sampler.draw(row, &left, position).map_err(|error| single::cannot_draw(error, position))?;
            if free || single::timed(&mut stats.mask_time, || self.fits(text, token)) {
                return Ok(single::Choice::Token(token));
            }
            self.redraws += 1;
            left.remove(token);
        }
        self.back += 1;
        if let Some(&last) = text.tokens().last() {
            self.refused[place - 1].push(last);
            return Ok(single::Choice::Back);
        }
        // No canonical text at all.
        self.back = MOST_BACK;
        self.choose(row, text, sampler, constraint, stats)
    }
}

impl<M: Model> Method<M> for Canonical {
    fn generate(&mut self, stage: &mut Stage<'_, M>, prompt: &[TokenId]) -> Result<Outcome, MethodError> {
        let Some(constraint) = stage.grammar.map(crate::CompiledGrammar::constraint) else {
            return Ok(decoded(stage.decoder, prompt)?);
        };
        (self.refused, self.redraws, self.back) = (Vec::new(), 0, 0);
        let outcome = single::generate(stage, constraint, prompt, self)?;
        Ok(Outcome { redraws: Some(self.redraws + self.back), ..outcome })
    }
}

#[cfg(test)]
mod tests {
    use super::{super::MethodName, *};
    use crate::{
        Compiler, Grammar, Limits, Syntax,
        decode::{Decoder, Sampling},
        experiment::{K, Variant},
        model::{Rows, ScriptedModel},
        vocab::TokenSet,
    };

    const BYTE_LEVEL: &str = include_str!("../../../tests/fixtures/byte_level.json");

    fn written(
        grammar: &crate::CompiledGrammar,
        model: ScriptedModel,
        seed: u64,
        method: MethodName,
    ) -> (Outcome, bool) {
        let tokenizer = Tokenizer::from_tokenizer_json(BYTE_LEVEL).unwrap();
        let vocabulary = Vocabulary::from_tokenizer_json(BYTE_LEVEL).unwrap();
        let mut decoder = Decoder::builder(model)
            .vocabulary(vocabulary.clone())
            .sampling(Sampling::with_temperature(1.0).unwrap())
            .seed(seed)
            .max_new_tokens(20)
            .build()
            .unwrap();
        let mut stage = Stage { decoder: &mut decoder, grammar: Some(grammar), tokenizer: &tokenizer };
        let variant = Variant { method, k: Some(K::Infinite), s: None, threshold: None, warm_ups: None };
        let mut method = variant.method::<ScriptedModel>(Some(grammar), &tokenizer, None, None).unwrap();
        let outcome = method.generate(&mut stage, &[TokenId::new(65)]).unwrap();
        let canonical = alone(&tokenizer, &vocabulary, &outcome.text).is_none_or(|own| own == outcome.tokens);
        (outcome, canonical)
    }

    fn compiled(grammar: &str) -> crate::CompiledGrammar {
        let vocabulary = Vocabulary::from_tokenizer_json(BYTE_LEVEL).unwrap();
        let grammar = Grammar::parse(Syntax::Gbnf, grammar, &Limits::default()).unwrap();
        Compiler::new(vocabulary).compile(&grammar).unwrap()
    }

    /// All texts are canonical, where masks write some that are not; and where no step went back, each token
    /// is the draw from the mask's tokens that keep the text canonical, each asked for.
    #[test]
    fn tokens_are_draws_among_the_canonical() {
        let grammar = compiled(r#"root ::= ("true" | "null" | "{" ("\"" [a-z ]* "\"")? "}")+"#);
        let tokenizer = Tokenizer::from_tokenizer_json(BYTE_LEVEL).unwrap();
        let vocabulary = grammar.vocabulary().clone();
        let (mut free, mut checked, mut redraws) = (0, 0, 0);
        for seed in 0..40 {
            let model = || ScriptedModel::new(vocabulary.size(), 60, seed);
            free += usize::from(!written(&grammar, model(), seed, MethodName::Masks).1);
            let (outcome, canonical) = written(&grammar, model(), seed, MethodName::Canonical);
            assert!(canonical, "{:?}", outcome.text.escape_ascii());
            redraws += outcome.redraws.unwrap();
            let sampler = Sampler::new(Sampling::with_temperature(1.0).unwrap(), seed);
            let (mut model, mut constraint) = (model(), grammar.constraint());
            let mut sequence = vec![TokenId::new(65)];
            for &token in &outcome.tokens {
                let row = model.forward(&sequence[model.position()..], Rows::Last).unwrap();
                let mut set = TokenSet::empty(vocabulary.size());
                for token in constraint.mask().unwrap().iter() {
                    let tokens = [&sequence[1..], &[token]].concat();
                    let own = alone(&tokenizer, &vocabulary, &vocabulary.concat(&tokens));
                    if vocabulary.is_end_of_text(token) || own == Some(tokens) {
                        set.insert(token);
                    }
                }
                let drawn = sampler.draw(row.last().unwrap(), &set, sequence.len()).unwrap();
                // What differs was refused later.
                checked += usize::from(drawn == token);
                assert!(set.contains(token));
                constraint.advance(token).unwrap();
                sequence.push(token);
            }
        }
        assert!(free > 10 && redraws > 100 && checked > 200, "{free} {redraws} {checked}");
    }

    /// A beginning that no canonical text has is taken back.
    #[test]
    fn dead_ends_are_left() {
        let grammar = compiled(r#"root ::= "true" | "null""#);
        let vocabulary = grammar.vocabulary().clone();
        let tokenizer = Tokenizer::from_tokenizer_json(BYTE_LEVEL).unwrap();
        let first =
            |text: &str| vocabulary.text_tokens().find(|(_, bytes)| *bytes == text.as_bytes()).unwrap().0;
        let model = || ScriptedModel::new(vocabulary.size(), 60, 5).favour(1, first("t"));
        let (free, canonical) = written(&grammar, model(), 3, MethodName::Masks);
        assert!(free.tokens[0] == first("t") && !canonical);
        let (outcome, canonical) = written(&grammar, model(), 3, MethodName::Canonical);
        assert!(canonical && outcome.complete, "{outcome:?}");
        let own = alone(&tokenizer, &vocabulary, &outcome.text).unwrap();
        assert!(own == outcome.tokens && own[0] != first("t"));
        assert!(outcome.redraws.unwrap() > 0);
        assert_eq!(outcome.stats.tokens, outcome.tokens.len());
    }
}

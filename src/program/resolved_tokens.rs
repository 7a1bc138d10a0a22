//! Resolves the special tokens, token classes and picked tokens that a grammar asks for in a vocabulary.

use super::token_class::{MemberSpelling, ResolvedClass, members};
use crate::{
    grammar::{Expr, Grammar, suggest::nearest},
    ids::TokenId,
    limits::{Budget, LimitExceeded},
    lower::{CompileError, CompileErrorKind},
    special::{self, Picked},
    vocab::{TokenSet, Vocabulary},
};

/// The tokens that a grammar asks for.
#[derive(Debug)]
pub(crate) struct ResolvedTokens {
    /// The vocabulary as it was given.
    pub(crate) vocabulary: Vocabulary,
    /// The special tokens that stand for themselves, by name, sorted.
    pub(crate) specials: Vec<String>,
    /// Tokens of which any may stand in one place. Taken by the program.
    pub(super) classes: Vec<ResolvedClass>,
    /// Tokens that get bytes in the grammar's vocabulary, and what those spell.
    spelled: Vec<(TokenId, String)>,
}

impl ResolvedTokens {
    /// Resolves what `grammar` asks for. With `any_special` the grammar is compiled for texts without a
    /// model: then every name counts as that of a token, and no number does.
    ///
    /// One pass of the vocabulary for each name, class and part that picks tokens.
    pub(crate) fn of(
        grammar: &Grammar,
        vocabulary: &Vocabulary,
        any_special: bool,
    ) -> Result<Self, CompileError> {
        let mut asked = Self {
            vocabulary: vocabulary.clone(),
            specials: Vec::with_capacity(grammar.specials().len()),
            classes: Vec::new(),
            spelled: Vec::with_capacity(grammar.specials().len()),
        };
        for name in grammar.specials() {
            asked
                .add_special(grammar, name, any_special)
                .map_err(|error| error.at(grammar.asked_at(name)))?;
        }
        for class in grammar.classes() {
            if any_special {
                return Err(CompileError::new(CompileErrorKind::NoTokens(class.name().to_owned())));
            }
            let mut tokens = vocabulary.empty_set();
            members(class, vocabulary).for_each(|token| tokens.insert(token));
            if tokens.is_empty() {
                let error = CompileErrorKind::NoSpecialToken(class.name().to_owned(), None);
                return Err(CompileError::new(error));
            }
            asked.add_class(class.marked().to_owned(), tokens, MemberSpelling::Unnamed)?;
        }
        for picked in grammar.picked() {
            let marked = picked.marked();
            asked.add_excluded(picked.name(), any_special)?;
            let chosen = asked.chosen(picked, any_special);
            let (tokens, members) = chosen.map_err(|error| error.at(grammar.asked_at(&marked)))?;
            asked.add_class(marked, tokens, members)?;
        }
        asked.specials.sort_unstable();
        Ok(asked)
    }

    /// Is nothing asked for?
    pub(crate) fn is_nothing(&self) -> bool {
        self.spelled.is_empty()
    }

    /// Tokens that get bytes in the grammar's vocabulary, and the names that those spell
    /// ([`Vocabulary::with_spelled`]). Classes are there too, by numbers past those of the model.
    pub(crate) fn spelled(&self) -> &[(TokenId, String)] {
        &self.spelled
    }

    /// Spells a special token of the grammar: that of the vocabulary, or a text token of this name, or a new
    /// one if any name is allowed.
    fn add_special(&mut self, grammar: &Grammar, name: &str, any_special: bool) -> Result<(), CompileError> {
        let vocabulary = &self.vocabulary;
        if let Some(id) = special_of(name, vocabulary) {
            if vocabulary.is_end_of_text(id) {
                return Err(CompileError::new(CompileErrorKind::EndsText(name.to_owned())));
            }
            self.spell_as_special(id, name);
            return Ok(());
        }
        // Some vocabularies have marks of calls among their text tokens.
        match vocabulary.token_of(name.as_bytes()) {
            Some(id) if grammar.is_by_text(name) => {
                let mut tokens = vocabulary.empty_set();
                tokens.insert(id);
                self.add_class(name.to_owned(), tokens, MemberSpelling::Named)
            }
            Some(id) => {
                self.spell_as_special(id, name);
                Ok(())
            }
            None if any_special => {
                let id = self.next_number()?;
                self.spell_as_special(id, name);
                Ok(())
            }
            None => Err(no_special(name, vocabulary)),
        }
    }

    /// Makes the name of a special token that is excluded somewhere stand for that token in texts.
    fn add_excluded(&mut self, name: Option<&str>, any_special: bool) -> Result<(), CompileError> {
        let Some(name) = name.filter(|name| !self.specials.iter().any(|known| known == name)) else {
            return Ok(());
        };
        match special_of(name, &self.vocabulary) {
            Some(id) if !self.vocabulary.is_end_of_text(id) => self.spell_as_special(id, name),
            None if any_special && self.vocabulary.token_of(name.as_bytes()).is_none() => {
                let id = self.next_number()?;
                self.spell_as_special(id, name);
            }
            _ => {}
        }
        Ok(())
    }

    fn spell_as_special(&mut self, id: TokenId, name: &str) {
        self.specials.push(name.to_owned());
        self.spelled.push((id, name.to_owned()));
    }

    fn add_class(
        &mut self,
        marked: String,
        tokens: TokenSet,
        members: MemberSpelling,
    ) -> Result<(), CompileError> {
        let id = self.next_number()?;
        self.classes.extend(ResolvedClass::new(id, &marked, tokens, members, &self.vocabulary));
        self.spelled.push((id, marked));
        Ok(())
    }

    /// Returns the next free token number, past those of the model and those given out before.
    fn next_number(&self) -> Result<TokenId, CompileError> {
        let number = self.vocabulary.size() + self.spelled.len();
        TokenId::from_index(number).ok_or_else(|| {
            let most = self.vocabulary.size();
            LimitExceeded::new(Budget::Fixed, "tokens that a grammar asks for", most).into()
        })
    }

    /// Returns the tokens that are picked; at least one.
    fn chosen(&self, picked: &Picked, any_special: bool) -> Result<(TokenSet, MemberSpelling), CompileError> {
        let vocabulary = &self.vocabulary;
        let mut named = vocabulary.empty_set();
        if let Some(name) = picked.name() {
            let found = special_of(name, vocabulary).or_else(|| vocabulary.token_of(name.as_bytes()));
            match found {
                Some(id) => named.insert(id),
                None if any_special => {}
                None => return Err(no_special(name, vocabulary)),
            }
        }
        if any_special && !picked.ranges().is_empty() {
            return Err(CompileError::new(CompileErrorKind::NoTokens(picked.marked())));
        }
        for &(first, last) in picked.ranges() {
            self.number(first, last, &mut named)?;
        }
        let mut tokens = vocabulary.empty_set();
        let text = vocabulary.text_tokens().map(|(id, _)| id);
        let all = text.chain(vocabulary.special_tokens().map(|(id, _)| id));
        all.filter(|&id| named.contains(id) != picked.is_except() && !vocabulary.is_end_of_text(id))
            .for_each(|id| tokens.insert(id));
        if !tokens.is_empty() {
            return Ok((tokens, if any_special { MemberSpelling::Unknown } else { MemberSpelling::Named }));
        }
        let only = picked.ranges().first().filter(|(first, last)| first == last && !picked.is_except());
        let ending = only.and_then(|&(number, _)| vocabulary.name(TokenId::new(number)));
        Err(CompileError::new(match ending {
            Some(name) => CompileErrorKind::EndsText(name.to_owned()),
            None => CompileErrorKind::NoTokenLeft(picked.marked()),
        }))
    }

    /// Adds the tokens from `first` to `last`. Both must be numbers of the vocabulary, and one alone a token.
    fn number(&self, first: u32, last: u32, tokens: &mut TokenSet) -> Result<(), CompileError> {
        let vocabulary = &self.vocabulary;
        let size = vocabulary.size();
        let missing = |number| Err(CompileError::new(CompileErrorKind::NoToken { number, size }));
        let inside = |number: u32| TokenId::new(number).index() < size;
        if let Some(number) = [first, last].into_iter().find(|&number| !inside(number)) {
            return missing(number);
        }
        let is_used = |id| vocabulary.bytes(id).is_some() || vocabulary.is_special(id);
        if first == last && !is_used(TokenId::new(first)) {
            return missing(first);
        }
        (first..=last).map(TokenId::new).for_each(|id| tokens.insert(id));
        Ok(())
    }
}

/// Finds the special token with this name.
fn special_of(name: &str, vocabulary: &Vocabulary) -> Option<TokenId> {
    vocabulary.special_tokens().find(|&(_, special)| special == name).map(|(id, _)| id)
}

fn no_special(name: &str, vocabulary: &Vocabulary) -> CompileError {
    let names = vocabulary.special_tokens().map(|(_, special)| special);
    let near = nearest(name, names).map(str::to_owned);
    CompileError::new(CompileErrorKind::NoSpecialToken(name.to_owned(), near))
}

/// Does the grammar mention the byte that [marks](special::MARK) special tokens anywhere else?
pub(crate) fn asks_for_marks(grammar: &Grammar) -> bool {
    let classes = grammar.classes().map(|class| special::spelled(class.marked()));
    let specials = grammar.specials().iter().map(|name| special::spelled(name));
    let picked = grammar.picked().map(|picked| special::spelled(&picked.marked()));
    let spelled: Vec<Vec<u8>> = specials.chain(classes).chain(picked).collect();
    grammar.exprs().any(|(_, expr)| matches!(expr, Expr::Pattern(pattern) if pattern.mentions_mark(&spelled)))
}

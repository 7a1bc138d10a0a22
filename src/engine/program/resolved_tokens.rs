//! Resolves the special tokens, token classes and picked tokens that a grammar asks for in a vocabulary.

use crate::grammar::{Expr, Grammar, suggest::nearest};
use crate::limits::{Budget, LimitExceeded, Work};
use crate::lower::{CompileError, CompileErrorKind};
use crate::special::{Picked, TokenClass};
use crate::vocab::{TokenSet, Vocabulary};
use crate::{ids::TokenId, special};

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

/// Names of special tokens that stand for an image, in the vocabularies of models that have one.
const IMAGES: [&str; 8] = [
    "<image>",
    "<|image|>",
    "<|image_pad|>",
    "<image_soft_token>",
    "<|image_1|>",
    "[IMG]",
    "<img>",
    "<IMG_CONTEXT>",
];

/// Lists the tokens of a class.
pub(super) fn members(class: TokenClass, vocabulary: &Vocabulary) -> Box<dyn Iterator<Item = TokenId> + '_> {
    // Those with this byte are no text where there are classes.
    let text = vocabulary.text_tokens().filter(|(_, bytes)| !bytes.contains(&special::MARK));
    match class {
        TokenClass::Text => Box::new(text.map(|(id, _)| id)),
        TokenClass::Paragraph => {
            Box::new(text.filter(|(_, bytes)| !bytes.contains(&b'\n')).map(|(id, _)| id))
        }
        TokenClass::Image => {
            let images = vocabulary.special_tokens().filter(|(_, name)| IMAGES.contains(name));
            Box::new(images.map(|(id, _)| id))
        }
    }
}

/// Spelling of a class's members in texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemberSpelling {
    /// Members are spelled by their bytes; special tokens not at all.
    Unnamed,
    /// Members are spelled by their bytes, special tokens by their names.
    Named,
    /// There is no model: any text may be a token.
    Unknown,
}

/// A class that a grammar asks for.
#[derive(Debug)]
pub(crate) struct ResolvedClass {
    /// The token that stands for it.
    pub(crate) id: TokenId,
    /// The bytes of that token.
    pub(crate) spelled: Vec<u8>,
    pub(crate) tokens: TokenSet,
    pub(crate) members: MemberSpelling,
    /// The token of the class with the fewest bytes, of text if there is one, for completions.
    pub(crate) shortest: TokenId,
}

impl ResolvedClass {
    /// Creates a class of these tokens under this name; `None` if there are none.
    pub(super) fn new(
        id: TokenId,
        marked: &str,
        tokens: TokenSet,
        members: MemberSpelling,
        vocabulary: &Vocabulary,
    ) -> Option<Self> {
        let length = |&token: &TokenId| {
            let text = vocabulary.bytes(token).map(<[u8]>::len);
            (text.is_none(), text.or_else(|| vocabulary.name(token).map(str::len)))
        };
        let shortest = tokens.iter().min_by_key(length)?;
        Some(Self { id, spelled: special::spelled(marked), tokens, members, shortest })
    }

    /// Returns the name that spells a special token of the class in texts.
    pub(crate) fn name<'v>(&self, token: TokenId, vocabulary: &'v Vocabulary) -> Option<&'v [u8]> {
        let named = self.members != MemberSpelling::Unnamed && self.tokens.contains(token);
        if named { vocabulary.name(token).map(str::as_bytes) } else { None }
    }

    /// Returns the offsets where tokens of the class end that begin at `from`. `spelled` is the grammar's
    /// vocabulary, besides that of the model.
    pub(crate) fn ends(
        &self,
        (spelled, vocabulary): (&Vocabulary, &Vocabulary),
        bytes: &[u8],
        from: usize,
        work: &mut Work,
    ) -> Result<Vec<usize>, LimitExceeded> {
        let mut found = Vec::new();
        let trie = spelled.trie();
        // Without a model these are all special tokens but the one that is excluded.
        let is_other = |token: TokenId| {
            let bytes = spelled.bytes(token).filter(|bytes| bytes.starts_with(&[special::MARK]));
            bytes.is_some_and(|bytes| self.spelled.get(2..) != bytes.get(1..))
        };
        let is_member = |token: TokenId| {
            self.tokens.contains(token) || self.members == MemberSpelling::Unknown && is_other(token)
        };
        let (mut node, mut end) = (trie.root_child(bytes[from]), from + 1);
        while let Some(at) = node {
            work.spend(1)?;
            let mut tokens = trie.tokens_at(trie.own_tokens(at)).iter();
            found.extend(tokens.any(|&token| is_member(token)).then_some(end));
            node = bytes.get(end).and_then(|&byte| trie.child(at, byte));
            end += 1;
        }
        if self.members == MemberSpelling::Named {
            for (token, name) in vocabulary.special_tokens() {
                work.spend(1)?;
                // The name of one that is spelled out is text.
                let is_named = self.tokens.contains(token) && spelled.bytes(token).is_none();
                let stands = !name.is_empty() && bytes[from..].starts_with(name.as_bytes());
                found.extend((is_named && stands).then(|| from + name.len()));
            }
        }
        Ok(found)
    }
}

//! Classes of tokens: places where any token of a class may stand, as one token.
//!
//! A class has bytes that no text has ([`TokenClass::marked`]), and those are a token in the vocabulary that
//! the grammar is compiled for, past those of the model. So everything else takes a class for text; here its
//! tokens come in. One token may be read in several ways then, by its bytes and as a member of classes, so the
//! state after it is all that any of them leads to.

use super::{
    completion::Completion,
    constraint::{Constraint, Place},
    error::StepError,
    machine::Machine,
    program::{Asked, Program},
};
use crate::{
    ids::{StateId, TokenId},
    limits::{LimitExceeded, Work},
    special::{self, TokenClass},
    subterminal::Lookahead,
    vocab::{TokenSet, Vocabulary},
};

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

/// The tokens of a class.
pub(crate) fn members(class: TokenClass, vocabulary: &Vocabulary) -> Box<dyn Iterator<Item = TokenId> + '_> {
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

/// A class that a grammar asks for.
#[derive(Debug)]
pub(super) struct Class {
    /// The token that stands for it.
    id: TokenId,
    /// Its bytes.
    spelled: Vec<u8>,
    tokens: TokenSet,
    /// The token of the class with the fewest bytes, for completions.
    shortest: TokenId,
}

impl Class {
    /// The classes of what was asked for. Each has a token: that was checked.
    pub(super) fn of(asked: &Asked) -> Vec<Self> {
        let vocabulary = &asked.vocabulary;
        let class = |(&class, number): (&TokenClass, usize)| {
            let mut tokens = TokenSet::empty(vocabulary.size());
            members(class, vocabulary).for_each(|token| tokens.insert(token));
            let length = |token: &TokenId| vocabulary.bytes(*token).map_or(0, <[u8]>::len);
            let shortest = tokens.iter().min_by_key(length)?;
            let id = TokenId::from_index(vocabulary.size() + number)?;
            Some(Self { id, spelled: special::spelled(class.marked()), tokens, shortest })
        };
        asked.classes.iter().zip(0..).filter_map(class).collect()
    }
}

impl Program {
    /// A mask with the tokens of the classes that are in it, and without these.
    pub(super) fn widened(&self, mask: &TokenSet) -> TokenSet {
        let mut wide = TokenSet::empty(self.asked.vocabulary.size());
        mask.iter().for_each(|token| wide.insert(token));
        let there = self.classes.iter().filter(|class| mask.contains(class.id));
        there.for_each(|class| wide.union_with(&class.tokens));
        wide
    }

    /// A completion with a token in place of each class: then there may be a shorter one.
    pub(super) fn without_classes(&self, mut completion: Completion) -> Completion {
        for Class { id, spelled, shortest, .. } in &self.classes {
            let text = self.asked.vocabulary.bytes(*shortest).unwrap_or_default();
            while let Some(at) = completion.bytes.windows(spelled.len()).position(|part| part == spelled) {
                completion.bytes.splice(at..at + spelled.len(), text.iter().copied());
                completion.fewest = false;
            }
            let tokens = completion.tokens.iter_mut().flatten().filter(|token| *token == id);
            tokens.for_each(|token| *token = *shortest);
        }
        completion
    }
}

impl Machine {
    /// The state after `token`, read in any way.
    fn after_token(
        &mut self,
        program: &Program,
        state: StateId,
        token: TokenId,
        work: &mut Work,
    ) -> Result<Option<StateId>, LimitExceeded> {
        let is_own = token.index() < program.asked.vocabulary.size();
        let own = program.vocabulary.bytes(token).filter(|_| is_own);
        let of_classes = program.classes.iter().filter(|class| class.tokens.contains(token));
        let ways = own.into_iter().chain(of_classes.map(|class| &class.spelled[..]));
        let mut found = Vec::new();
        for bytes in ways {
            let (to, taken) = self.walk(program, state, bytes, work)?;
            found.extend((taken == bytes.len()).then_some(to));
        }
        if found.is_empty() { Ok(None) } else { self.merge(program, &found, work).map(Some) }
    }

    /// The state after `bytes`, cut into tokens in any way, or how many of them can follow up to the end of a
    /// token.
    fn along_tokens(
        &mut self,
        program: &Program,
        state: StateId,
        bytes: &[u8],
        work: &mut Work,
    ) -> Result<Result<StateId, usize>, LimitExceeded> {
        let trie = program.vocabulary.trie();
        // By place: the states that ways of cutting lead to.
        let mut reached: Vec<Vec<StateId>> = vec![Vec::new(); bytes.len() + 1];
        reached[0].push(state);
        for from in 0..bytes.len() {
            if reached[from].is_empty() {
                continue;
            }
            let here = self.merge(program, &reached[from], work)?;
            reached[from + 1].extend(self.step(program, here, bytes[from], work)?);
            for class in &program.classes {
                let (to, taken) = self.walk(program, here, &class.spelled, work)?;
                if taken < class.spelled.len() {
                    continue;
                }
                let (mut node, mut end) = (trie.root_child(bytes[from]), from + 1);
                while let Some(at) = node {
                    work.spend(1)?;
                    let mut tokens = trie.tokens_at(trie.own_tokens(at)).iter();
                    reached[end].extend(tokens.any(|&token| class.tokens.contains(token)).then_some(to));
                    node = bytes.get(end).and_then(|&byte| trie.child(at, byte));
                    end += 1;
                }
            }
        }
        let last = reached.iter().rposition(|states| !states.is_empty()).unwrap_or(0);
        if last < bytes.len() { Ok(Err(last)) } else { self.merge(program, &reached[last], work).map(Ok) }
    }
}

impl Constraint {
    /// Where `token` leads, read in any way.
    pub(super) fn after_by_class(&mut self, token: TokenId) -> Result<Option<StateId>, StepError> {
        let Place::In(mut state) = self.here else { return Ok(None) };
        let steps = self.program.vocabulary.bytes(token).map_or(1, |bytes| bytes.len().max(1));
        self.run_over(&mut state, steps, |machine, program, state, work| {
            machine.after_token(program, state, token, work)
        })
    }

    /// [`allows`](Self::allows) where there are classes.
    pub(super) fn allows_by_class(&mut self, token: TokenId) -> Result<bool, StepError> {
        match self.program.lookahead {
            Lookahead::Unbounded => self.after(token).map(|place| place.is_some()),
            // A class is one terminal, whatever the token.
            Lookahead::Terminals(_) => self.mask().map(|mask| mask.contains(token)),
        }
    }

    /// [`advance_bytes`](Self::advance_bytes) where there are classes: the text may be cut into tokens in any
    /// way, and ends where one of them does.
    pub(super) fn advance_bytes_by_class(&mut self, bytes: &[u8]) -> Result<usize, StepError> {
        let Place::In(mut state) = self.here else { return Ok(0) };
        let steps = bytes.len().max(1);
        let found = self.run_over(&mut state, steps, |machine, program, state, work| {
            machine.along_tokens(program, state, bytes, work)
        })?;
        Ok(match found {
            Ok(to) => {
                self.go(Place::In(to), bytes.len(), self.readers.clone());
                bytes.len()
            }
            Err(taken) => taken,
        })
    }
}

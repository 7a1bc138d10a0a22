//! Classes of tokens: places where any token of a class may stand, as one token.
//!
//! A class has bytes that no text has ([`TokenClass::marked`](special::TokenClass::marked),
//! [`Picked::marked`](special::Picked::marked)). In the vocabulary that the grammar is compiled for, these
//! bytes are one token, past the tokens of the model. So all other stages see a class as text, and only here
//! its members come in: a mask that has the class's token gets them all.
//!
//! A token can then be read in several ways, by its bytes and as a member of classes. The state after it is
//! the union of the states after each reading.

use super::{
    class::{MemberSpelling, ResolvedClass},
    completion::Completion,
    constraint::{Constraint, TextPosition},
    error::StepError,
    program::Program,
    state_automaton::StateAutomaton,
};
use crate::{
    ids::{StateId, TokenId},
    limits::{LimitExceeded, Work},
    special,
    subterminal::Lookahead,
    vocab::{TokenSet, Vocabulary},
};

impl Program {
    /// Replaces the tokens that stand for classes in a mask by the members of the classes.
    pub(super) fn widened(&self, mask: &TokenSet) -> TokenSet {
        let mut wide = TokenSet::empty(self.asked.vocabulary.size());
        mask.iter().for_each(|token| wide.insert(token));
        let there = self.classes.iter().filter(|class| mask.contains(class.id));
        there.for_each(|class| wide.union_with(&class.tokens));
        wide
    }

    /// The name of a special token that a class asks for.
    pub(super) fn name_by_class(&self, token: TokenId) -> Option<&[u8]> {
        self.classes.iter().find_map(|class| class.name(token, &self.asked.vocabulary))
    }

    /// Lists the special tokens that are members of classes.
    pub(super) fn specials_of_classes(&self) -> impl Iterator<Item = TokenId> + '_ {
        let is_asked = |id: TokenId| self.classes.iter().any(|class| class.tokens.contains(id));
        let vocabulary = Some(&self.asked.vocabulary).filter(|_| !self.classes.is_empty());
        let specials = vocabulary.into_iter().flat_map(Vocabulary::special_tokens);
        specials.map(|(id, _)| id).filter(move |&id| is_asked(id))
    }

    /// Puts a token in place of each class in a completion; there may be a shorter one then.
    pub(super) fn without_classes(&self, mut completion: Completion) -> Completion {
        for class in &self.classes {
            let tokens = completion.tokens.iter_mut().flatten().filter(|token| **token == class.id);
            tokens.for_each(|token| *token = class.shortest);
        }
        let bytes = std::mem::take(&mut completion.bytes);
        let mut rest = &bytes[..];
        while let [first, ..] = rest {
            // A name is taken whole: its second mark does not begin another.
            let class = self.classes.iter().find(|class| rest.starts_with(&class.spelled));
            let name = || self.asked.specials.iter().find(|name| is_spelled(rest, name));
            let (text, taken) = if *first != special::MARK {
                (&rest[..1], 1)
            } else if let Some(class) = class {
                completion.fewest = false;
                (self.text_of_shortest(class), class.spelled.len())
            } else {
                let taken = name().map_or(1, |name| name.len() + 2);
                (&rest[..taken], taken)
            };
            completion.bytes.extend_from_slice(text);
            rest = &rest[taken..];
        }
        completion
    }

    /// Returns the text of the shortest token of a class.
    fn text_of_shortest<'p>(&'p self, class: &'p ResolvedClass) -> &'p [u8] {
        let (token, given) = (class.shortest, &self.asked.vocabulary);
        let text = self.vocabulary.bytes(token).or_else(|| given.bytes(token));
        text.or_else(|| class.name(token, given)).unwrap_or_default()
    }
}

/// Does a text begin with the special token of this name, as grammars have it?
fn is_spelled(text: &[u8], name: &str) -> bool {
    let inner = text.get(1..name.len() + 1);
    inner == Some(name.as_bytes()) && text.get(name.len() + 1) == Some(&special::MARK)
}

impl StateAutomaton {
    /// Returns the state after `token`, read in every possible way.
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

    /// Returns the state after `bytes`, cut into tokens in every possible way, or how many of them can follow
    /// up to the end of a token.
    fn along_tokens(
        &mut self,
        program: &Program,
        state: StateId,
        bytes: &[u8],
        work: &mut Work,
    ) -> Result<Result<StateId, usize>, LimitExceeded> {
        let vocabularies = (&program.vocabulary, &program.asked.vocabulary);
        // By place: the states that ways of cutting lead to.
        let mut reached: Vec<Vec<StateId>> = vec![Vec::new(); bytes.len() + 1];
        reached[0].push(state);
        // The states after tokens of which any text may be one, and which may go on.
        let mut unended: Vec<StateId> = Vec::new();
        for from in 0..bytes.len() {
            if bytes[from] == special::MARK {
                unended.clear();
            }
            reached[from + 1].extend(&unended);
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
                if class.members == MemberSpelling::Unknown && bytes[from] != special::MARK {
                    reached[from + 1].push(to);
                    unended.push(to);
                    continue;
                }
                for end in class.ends(vocabularies, bytes, from, work)? {
                    reached[end].push(to);
                }
            }
            unended.sort_unstable();
            unended.dedup();
        }
        let last = reached.iter().rposition(|states| !states.is_empty()).unwrap_or(0);
        if last < bytes.len() { Ok(Err(last)) } else { self.merge(program, &reached[last], work).map(Ok) }
    }
}

impl Constraint {
    /// Returns the state after `token`, read in every possible way.
    pub(super) fn after_by_class(&mut self, token: TokenId) -> Result<Option<StateId>, StepError> {
        let TextPosition::In(mut state) = self.here else { return Ok(None) };
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
        let TextPosition::In(mut state) = self.here else { return Ok(0) };
        let steps = bytes.len().max(1);
        let found = self.run_over(&mut state, steps, |machine, program, state, work| {
            machine.along_tokens(program, state, bytes, work)
        })?;
        Ok(match found {
            Ok(to) => {
                self.go(TextPosition::In(to), bytes.len(), self.readers.clone());
                bytes.len()
            }
            Err(taken) => taken,
        })
    }
}

//! Steps by tokens where there are classes: a token can be read by its bytes and as a member of classes.
//!
//! The state after it is the union of the states after each reading.

use super::state_automaton::StateAutomaton;
use crate::{
    ids::{StateId, TokenId},
    limits::{LimitExceeded, Work},
    program::{MemberSpelling, Program},
    special,
};

impl StateAutomaton {
    /// Returns the state after `token`, read in every possible way.
    pub(crate) fn after_token(
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
    pub(crate) fn along_tokens(
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

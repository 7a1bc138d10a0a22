//! The fast path of [`Constraint::advance`]: a step along moves that are memoised already.
//!
//! Nearly all steps are such in a text that resembles one before it. They do no work, so they need no budget,
//! and they fetch the next mask under the same lock.

use std::sync::Arc;

use super::constraint::{Constraint, TextPosition};
use crate::{
    ids::{StateId, TokenId},
    json_readers::{JsonReaders, KeyChange, Undo},
    machine::{Move, StateAutomaton, lock},
    masks::GrammarMask,
    program::Program,
    vocab::TokenSet,
};

impl StateAutomaton {
    /// Returns the state after these bytes and its mask, as far as they are memoised. `None` if a move is
    /// not, or leads nowhere.
    fn known(
        &mut self,
        program: &Program,
        mut state: StateId,
        bytes: &[u8],
        held: &mut Option<Arc<TokenSet>>,
    ) -> Option<(StateId, Option<GrammarMask>)> {
        for &byte in bytes {
            let Move::To(to) = self.states.memo(state, program.lowered.scanner.byte_class(byte)) else {
                return None;
            };
            state = to;
        }
        Some((state, self.masks.following(state, held, program.lowered.keys.is_some())))
    }
}

impl Constraint {
    /// Tells whether the next [`mask`](Self::mask) is a lookup. False also where nobody has looked yet, as at
    /// the start of a text. For callers that hand long work to another thread.
    #[must_use]
    pub fn is_mask_known(&self) -> bool {
        self.mask.is_some() || self.raw_mask.is_some() || self.is_ended()
    }

    /// Advances by a token if that is a lookup: if all its moves are memoised and it can follow. Returns
    /// whether it did; if not, nothing has moved, and [`advance`](Self::advance) decides.
    ///
    /// ```
    /// use domino::{Compiler, Grammar, Limits, Syntax, TokenId, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().all_bytes().end_of_text(TokenId::new(256)).build()?;
    /// let grammar = Grammar::parse(Syntax::Regex, "[a-f]+", &Limits::default())?;
    /// let mut constraint = Compiler::new(vocabulary).compile(&grammar)?.constraint();
    /// let letter = TokenId::new(u32::from(b'a'));
    /// let mut another = constraint.fork();
    /// constraint.advance(letter)?; // makes the moves
    /// assert!(another.advance_if_known(letter));
    /// assert!(!another.advance_if_known(TokenId::new(u32::from(b'z'))));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn advance_if_known(&mut self, token: TokenId) -> bool {
        let (TextPosition::In(here), None) = (self.here, &self.readers.items) else { return false };
        let program = &*self.program;
        let Some(bytes) = program.vocabulary.bytes(token) else { return false };
        if bytes.is_empty() || !program.classes.is_empty() {
            return false;
        }
        if program.vocabulary.end_of_text().contains(&token) {
            return false;
        }
        let held = &mut self.mask;
        let Some((state, mask)) = lock(&self.machine).known(program, here, bytes, held) else { return false };
        let length = bytes.len();
        let mut before = Undo::Same;
        if let Some(keys) = &mut self.readers.keys {
            before = match keys.change(bytes) {
                KeyChange::Nothing => Undo::Same,
                KeyChange::Spelling => Undo::Shorter(length),
                KeyChange::Any => Undo::Other(JsonReaders { keys: Some(keys.clone()), items: None }),
            };
            let is_read = before.is_same() || keys.read(bytes).is_ok_and(|read| read == length);
            keys.settle();
            if !is_read || keys.may_run_out() {
                before.put_back(&mut self.readers);
                return false;
            }
        }
        self.note(TextPosition::In(state), length, before);
        self.raw_mask = mask;
        true
    }
}

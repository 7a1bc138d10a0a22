//! Tracks a request's text by the contexts that the engine shows to its processor.
//!
//! A context is the prompt and the tokens after it, but the first one lacks what the engine's prefix cache
//! holds. So the prompt's length is known only from the second context on, which is the whole prompt and one
//! token: until then nothing has been generated.

use super::error::RequestError;
use domino::{Constraint, Patience, StepError, StepErrorKind, ids::TokenId};

/// A constraint that follows the engine's contexts.
#[derive(Debug)]
pub(super) struct ContextFollower {
    start: Constraint,
    here: Constraint,
    /// Tokens that `here` has advanced by.
    taken: Vec<u32>,
    /// The longest context before the first token.
    first: Vec<u32>,
    /// Length of the prompt in tokens, once it is known.
    prompt: Option<usize>,
}

impl ContextFollower {
    /// Starts before a text that begins where `start` is.
    pub(super) fn new(start: Constraint) -> Self {
        let start = start.patient_unless_told(Patience::whole());
        Self { here: start.fork(), start, taken: Vec::new(), first: Vec::new(), prompt: None }
    }

    /// The constraint at the end of the context last followed.
    pub(super) fn constraint(&mut self) -> &mut Constraint {
        &mut self.here
    }

    /// Number of tokens of the text.
    pub(super) fn len(&self) -> usize {
        self.taken.len()
    }

    /// Moves to the end of `context`. A step back, as where several texts are written by turns, starts again.
    pub(super) fn follow(&mut self, context: &[u32]) -> Result<(), RequestError> {
        let generated = match self.prompt(context)? {
            Some(prompt) => &context[prompt..],
            None => &[],
        };
        let same = self.taken.iter().zip(generated).take_while(|(taken, token)| taken == token).count();
        if same < self.taken.len() {
            self.here = self.start.fork();
            self.taken.clear();
        }
        for &token in &generated[self.taken.len()..] {
            self.advance(token)?;
        }
        Ok(())
    }

    /// Advances by a token. Tokens that an engine appends after the end of the text are ignored.
    fn advance(&mut self, token: u32) -> Result<(), RequestError> {
        if !self.here.is_ended() {
            self.here.advance(TokenId::new(token)).map_err(overruled)?;
        }
        self.taken.push(token);
        Ok(())
    }

    /// Length of the prompt in tokens; `None` while nothing has been generated.
    fn prompt(&mut self, context: &[u32]) -> Result<Option<usize>, RequestError> {
        if let Some(prompt) = self.prompt {
            return Ok(Some(prompt).filter(|&prompt| prompt < context.len()));
        }
        if let Some((_, before)) = context.split_last()
            && !self.first.is_empty()
            && before.ends_with(&self.first)
        {
            self.prompt = Some(before.len());
        } else if context.ends_with(&self.first) {
            self.first = context.to_vec();
        } else if !self.first.ends_with(context) {
            return Err(RequestError::Shared);
        }
        Ok(self.prompt)
    }
}

fn overruled(error: StepError) -> RequestError {
    match error.kind() {
        StepErrorKind::Refused(token) => RequestError::Overruled(*token),
        _ => RequestError::Constraint(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domino::{Compiler, Grammar, Limits, Syntax, Vocabulary};

    /// A place under `(ab)*c`, with tokens a, b, c and an end.
    fn place() -> ContextFollower {
        let vocabulary = Vocabulary::builder()
            .token(TokenId::new(0), "a")
            .token(TokenId::new(1), "b")
            .token(TokenId::new(2), "c")
            .end_of_text(TokenId::new(3))
            .build()
            .unwrap();
        let grammar = Grammar::parse(Syntax::Regex, "(ab)*c", &Limits::default()).unwrap();
        ContextFollower::new(Compiler::new(vocabulary).compile(&grammar).unwrap().constraint())
    }

    fn allowed(place: &mut ContextFollower) -> Vec<u32> {
        place.constraint().mask().unwrap().iter().map(TokenId::raw).collect()
    }

    #[test]
    fn the_masked_text_is_what_follows_the_prompt() {
        let mut place = place();
        for (context, may_follow) in [
            (&[2, 2, 1][..], &[0, 2][..]),
            (&[2, 2, 1], &[0, 2]),
            (&[2, 2, 1, 0], &[1]),
            (&[2, 2, 1, 0, 1], &[0, 2]),
            (&[2, 2, 1, 0, 1, 2], &[3]),
            (&[2, 2, 1, 0, 1, 2, 3], &[]),
            (&[2, 2, 1, 0, 1, 2, 3, 3], &[]),
        ] {
            place.follow(context).unwrap();
            assert_eq!(allowed(&mut place), may_follow, "{context:?}");
        }
        assert_eq!(place.len(), 5);
    }

    #[test]
    fn the_first_context_may_lack_cached_tokens() {
        let mut place = place();
        place.follow(&[1]).unwrap();
        assert_eq!(allowed(&mut place), [0, 2]);
        place.follow(&[2, 2, 1, 0]).unwrap();
        assert_eq!(allowed(&mut place), [1]);
        assert_eq!(place.len(), 1);
    }

    #[test]
    fn several_texts_can_take_turns() {
        let mut place = place();
        for (context, may_follow) in [
            (&[1][..], &[0, 2][..]),
            (&[1], &[0, 2]),
            (&[1, 0], &[1]),
            (&[1, 2], &[3]),
            (&[1, 0, 1], &[0, 2]),
            (&[1, 2, 3], &[]),
            (&[1], &[0, 2]),
        ] {
            place.follow(context).unwrap();
            assert_eq!(allowed(&mut place), may_follow, "{context:?}");
        }
    }

    #[test]
    fn foreign_tokens_and_contexts_are_errors() {
        let mut place = place();
        place.follow(&[1]).unwrap();
        assert_eq!(place.follow(&[2, 2, 2, 2]), Err(RequestError::Shared));
        assert_eq!(place.follow(&[1, 1]), Err(RequestError::Overruled(TokenId::new(1))));
    }
}

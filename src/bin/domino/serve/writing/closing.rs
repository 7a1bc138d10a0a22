//! Closes texts before their limit cuts them: by the shortest completion, whose tokens count towards the
//! limit.
//!
//! Invariant: the tokens sent and the completion at hand are together no more than the limit. So a token is
//! sent only if the text can be closed after it as well.

use domino::{CompiledGrammar, Constraint, TokenId};

use super::super::problem::Problem;

/// A text that can be closed at any time.
pub(super) struct Closing {
    constraint: Constraint,
    /// Tokens of the shortest completion.
    rest: Vec<TokenId>,
    /// Tokens of the text so far.
    count: usize,
    /// Most tokens of the text with its completion.
    most: usize,
}

impl Closing {
    /// An empty text of a grammar that may have `most` tokens.
    ///
    /// # Errors
    /// If every text of the grammar is longer, or its budgets do not suffice to find out.
    pub(super) fn new(grammar: &CompiledGrammar, most: usize) -> Result<Self, Problem> {
        let mut constraint = grammar.constraint();
        let rest = rest(&mut constraint)?;
        if rest.len() > most {
            let least = rest.len();
            let message =
                format!("the shortest text of the grammar has {least} tokens, and {most} are allowed");
            return Err(Problem::invalid("max_tokens", message)
                .with("hint", "allow more tokens, or leave `finish` out to have the text cut"));
        }
        Ok(Self { constraint, rest, count: 0, most })
    }

    /// Goes on by a token if the text can still be closed after it. Returns whether it did.
    ///
    /// # Errors
    /// If the budgets of the grammar do not suffice to find out.
    pub(super) fn take(&mut self, token: TokenId) -> Result<bool, Problem> {
        let mut next = self.constraint.fork();
        next.advance(token).map_err(|error| failed(&error))?;
        let rest = rest(&mut next)?;
        if self.count + 1 + rest.len() > self.most {
            return Ok(false);
        }
        (self.constraint, self.rest) = (next, rest);
        self.count += 1;
        Ok(true)
    }

    /// Tokens that close the text.
    pub(super) fn rest(&self) -> &[TokenId] {
        &self.rest
    }
}

/// Tokens of the shortest completion.
fn rest(constraint: &mut Constraint) -> Result<Vec<TokenId>, Problem> {
    let completion = constraint.shortest_completion().map_err(|error| failed(&error))?;
    completion.tokens.ok_or_else(|| {
        let message = "the vocabulary lacks tokens that would close the text";
        Problem::bad_request("grammar_failed", message).param("grammar")
    })
}

fn failed(error: &dyn std::error::Error) -> Problem {
    let message = format!("the text cannot be closed: {error}");
    Problem::bad_request("grammar_failed", message).param("grammar")
}

#[cfg(test)]
mod tests {
    use domino::{Compiler, Grammar, Limits, Syntax};
    use proptest::prelude::*;

    use super::*;
    use crate::grammar::compiler::byte_vocabulary;

    /// Lists of lists, whose completions grow by each bracket.
    fn lists() -> CompiledGrammar {
        let text = r#"root ::= "[" (root ("," root)*)? "]""#;
        let grammar = Grammar::parse(Syntax::Gbnf, text, &Limits::default()).unwrap();
        Compiler::new(byte_vocabulary().unwrap()).compile(&grammar).unwrap()
    }

    proptest! {
        /// Every text that is drawn, with the tokens that close it, is of the grammar and within the limit.
        #[test]
        fn every_text_is_closed_within_its_limit(
            most in 2..30_usize, draws in prop::collection::vec(0..3_usize, 40),
        ) {
            let grammar = lists();
            let mut closing = Closing::new(&grammar, most).unwrap();
            let mut text = Vec::new();
            for draw in draws {
                let allowed: Vec<TokenId> = closing.constraint.mask().unwrap().iter()
                    .filter(|&token| !grammar.vocabulary().is_end_of_text(token)).collect();
                let Some(&token) = allowed.get(draw % allowed.len().max(1)) else { break };
                if !closing.take(token).unwrap() {
                    break;
                }
                text.push(token);
            }
            text.extend(closing.rest());
            prop_assert!(text.len() <= most);
            let mut constraint = grammar.constraint();
            for &token in &text {
                constraint.advance(token).unwrap();
            }
            prop_assert!(constraint.is_complete());
        }
    }

    #[test]
    fn a_limit_below_every_text_is_refused() {
        let problem = Closing::new(&lists(), 1).err().unwrap().to_json();
        assert_eq!(problem["error"]["param"], "max_tokens");
        assert!(Closing::new(&lists(), 2).is_ok());
    }
}

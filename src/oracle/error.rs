//! Reasons why there is no oracle for a grammar.

use crate::limits::LimitExceeded;

/// The reason why there is no [`Oracle`](super::Oracle) for a grammar.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OracleError {
    /// A pattern has look-around, which [`Pattern`](crate::grammar::Pattern) excludes.
    #[error("a pattern has look-around")]
    LookAround,
    /// The grammar is [greedy](crate::grammar::Grammar::is_greedy): which texts it has is not said by its
    /// rules alone.
    #[error("texts are split into terminals greedily")]
    Greedy,
    /// The grammar asks for tokens of a model.
    #[error("the grammar asks for tokens of a model")]
    Tokens,
    /// The items of some arrays of the grammar [differ](crate::grammar::Grammar::distinct_items), which its
    /// rules do not say.
    #[error("items of arrays must differ")]
    Items,
    /// The grammar is too large over bytes.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
}

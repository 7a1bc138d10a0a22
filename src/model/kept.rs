//! The trait of rows of logits that are still where the model computed them.

use crate::{ids::TokenId, vocab::TokenSet};

/// Rows of logits on a device, perhaps still in the making. Each question waits for them.
pub trait KeptRows {
    /// What can go wrong.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Number of rows.
    fn rows(&self) -> usize;

    /// The token of the largest logit among the `allowed` tokens of row `index`, of equals the one with the
    /// lowest id. `None` if there is none to draw: no token is allowed, all allowed ones are at minus infinity,
    /// or any logit is NaN or plus infinity. Entries past the allowed set's size (padding) do not count.
    ///
    /// # Errors
    /// If there is no such row, or the device fails.
    fn likeliest(&self, index: usize, allowed: &TokenSet) -> Result<Option<TokenId>, Self::Error>;

    /// A copy of row `index`.
    ///
    /// # Errors
    /// If there is no such row, or the device fails.
    fn row(&self, index: usize) -> Result<Vec<f32>, Self::Error>;
}

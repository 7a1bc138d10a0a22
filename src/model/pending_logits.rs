//! The trait of rows of logits that stay on the device that computed them.

use crate::{ids::TokenId, vocab::TokenSet};

/// Rows of logits on a device, perhaps still being computed. Each question waits for them.
pub trait KeptRows: Send {
    /// Errors of the device.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Number of rows.
    fn rows(&self) -> usize;

    /// The token of the largest logit among the `allowed` tokens of row `index`; of equals, the one with the
    /// lowest id. `None` if no token can be drawn: none is allowed, all allowed ones are at minus infinity,
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

    /// Copies row `index` for a draw from the `allowed` tokens. Other logits are as they are, or minus
    /// infinity if no logit is NaN or plus infinity; so where few tokens are allowed, few numbers need be
    /// copied. Default: the whole [row](Self::row).
    ///
    /// # Errors
    /// If there is no such row, or the device fails.
    fn among(&self, index: usize, allowed: &TokenSet) -> Result<Vec<f32>, Self::Error> {
        let _ = allowed;
        self.row(index)
    }

    /// Waits until the rows are computed. Default: they already are.
    ///
    /// # Errors
    /// If the device fails.
    fn wait(&self) -> Result<(), Self::Error> {
        Ok(())
    }
}

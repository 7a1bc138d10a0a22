//! The trait of rows of logits that stay on the device that computed them.

use crate::{ids::TokenId, vocab::TokenSet};

/// A draw by Gumbel-max: of the tokens the one with the largest logit over the temperature plus noise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GumbelDraw {
    /// The key of the noise, which is a function of seed and position. The noise of a token is Gumbel's
    /// distribution at 64 bits of SplitMix64, `mix(key + (token + 1) * GOLDEN)`: whoever computes it must
    /// arrive at the bits of `decode::Sampler::noise`.
    pub key: u64,
    /// The temperature, above zero.
    pub temperature: f64,
}

/// A token to be chosen from a row.
#[derive(Debug, Clone, Copy)]
pub struct RowChoice<'a> {
    /// The tokens that may be chosen. Entries of the row past the set's size (padding) do not count.
    pub allowed: &'a TokenSet,
    /// The draw; `None` for the largest logit.
    pub draw: Option<GumbelDraw>,
    /// The distance below the largest allowed logit, above zero, within which allowed tokens are listed too;
    /// `None` if no list is wanted.
    pub near: Option<f32>,
}

/// The answer of a row to a [`RowChoice`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RowAnswer {
    /// The token. `None` if none can be chosen: no token is allowed, all allowed ones are at minus infinity,
    /// or any logit is NaN or plus infinity.
    pub token: Option<TokenId>,
    /// The allowed tokens whose logits are less than the distance below the largest one, ascending, with
    /// their logits. `None` if no list was wanted, there is no token, or there are too many for the device.
    pub near: Option<Vec<(TokenId, f32)>>,
}

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

    /// Chooses a token from each row from `first` on, as many as there are choices, with one wait for all. Of
    /// equals the lowest id is chosen. Default: `None`, as these rows cannot do it; nothing was waited for.
    ///
    /// # Errors
    /// If there are fewer rows than choices ask for, or the device fails.
    fn choose(&self, first: usize, choices: &[RowChoice<'_>]) -> Result<Option<Vec<RowAnswer>>, Self::Error> {
        let _ = (first, choices);
        Ok(None)
    }

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

//! Guessing ahead: proposers of tokens, what they learn, and how long drafts should be (paper, 3.6).
//!
//! A proposer says which token probably comes next at a [`Site`]; a [`Drafter`] asks again and again and
//! makes a [`Draft`] as long as pays. Nothing here decides what is generated: a decoder draws each token as
//! it would without a draft, so a wrong guess costs time and nothing else.
//!
//! Guesses are coupled to the draws. A draw takes the token with the largest logit over temperature plus
//! noise (Gumbel-max sampling), and the noise is a known function of seed, position and token. A proposer
//! adds the same noise to the logarithms of its own probabilities. If these approximate the model's, the
//! guess equals the sampled token, also for flat distributions.

mod calibration;
mod combined;
mod count;
mod counts;
mod draft;
#[cfg(feature = "tokenizers")]
mod forced;
mod planner;
mod prior;
mod propose;

pub(crate) use calibration::{EXPECTED, Rate, kind_of_margin};
#[cfg(feature = "tokenizers")]
pub use combined::DraftRecipe;
pub use combined::{BestOf, Lookup};
pub use count::{CountProposer, Counting, Learning};
pub(crate) use draft::Proposal;
pub use draft::{Draft, DraftLength, DraftLengthError, Drafter};
#[cfg(feature = "tokenizers")]
pub use forced::ForcedText;
pub(crate) use planner::{Allocation, DraftBudget, Median, Offered, Speedup};
pub use planner::{Pass, PassCost};
pub use prior::{Prior, PriorError, PriorErrorKind, PriorSummary};
pub use propose::{Draw, Drawn, Guess, Noise, Propose, Seen, Site};

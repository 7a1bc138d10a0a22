//! Several proposers as one, and the recipe of those that guess for a text.

mod best;
#[cfg(feature = "tokenizers")]
mod recipe;

pub use best::BestOf;
#[cfg(feature = "tokenizers")]
pub use recipe::DraftRecipe;

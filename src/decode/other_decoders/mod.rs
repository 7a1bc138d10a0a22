//! Decoders that draw otherwise than [`Decoder`](super::Decoder): only canonical tokens, from the model
//! conditioned on the language, or by a choice of the caller's.

#[cfg(feature = "tokenizers")]
pub(super) mod canonical;
pub(super) mod conditional;
#[cfg(feature = "tokenizers")]
pub(crate) mod single;

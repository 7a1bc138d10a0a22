//! Models that texts are written with, their tokenizers and prompts, and drafts.

pub(crate) mod chat;
pub(crate) mod drafts;
pub(crate) mod model;

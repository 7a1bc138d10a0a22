//! Everything that all requests share.

use std::sync::{Arc, OnceLock};

use domino::{Vocabulary, decode::Masking, grammar::tools::Spelling};

use super::{
    access::{keys::ApiKeys, visitors::Visitors},
    addresses::health::Health,
    args::{SchemaRules, ServerLimits},
    bounds::{
        bodies::BodyMemory,
        gate::{Gate, Pulse},
    },
    engines::{engine::Engine, kept::PriorKeeper},
    grammars::registry::Registry,
    observe::metrics::Metrics,
    prompts::PromptReader,
    writing::TextMaker,
};
use crate::grammar::compiler::Reach;

/// The model that is served.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) vocabulary: Vocabulary,
    /// The name that clients give in `model`.
    pub(crate) name: String,
    /// Tokens of a text, its prompt included.
    pub(crate) context: usize,
    /// The way in which it writes calls of functions; `None` if no grammar holds it to one.
    pub(crate) spelling: Option<Spelling>,
    /// May it think before it answers, as its chat template shows?
    pub(crate) thinks: bool,
    /// Seconds since 1970 when it was loaded.
    pub(crate) since: u64,
}

/// Everything that all requests share.
pub(crate) struct Server {
    pub(crate) model: Served,
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) prompts: PromptReader,
    pub(crate) registry: Arc<Registry>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) pulse: Arc<Pulse>,
    pub(crate) health: Health,
    pub(crate) visitors: Visitors,
    pub(crate) keys: ApiKeys,
    pub(crate) bodies: Arc<BodyMemory>,
    /// Set when the server ends.
    pub(crate) closing: OnceLock<()>,
    pub(crate) limits: ServerLimits,
    /// `None`: what guesses learn is forgotten at the end.
    pub(crate) priors: Option<PriorKeeper>,
    /// Do all clients share what is kept of prompts and texts?
    pub(crate) share_caches: bool,
    /// Are texts closed that would be cut by their length, unless a request says otherwise?
    pub(crate) finish: bool,
    pub(crate) schemas: Arc<SchemaRules>,
    /// The reach of masks, and the time at which they are made, unless a request says otherwise.
    pub(crate) reach: Reach,
    pub(crate) masking: Masking,
}

impl Server {
    /// Returns what texts need of it.
    pub(crate) fn text_maker(&self) -> TextMaker {
        TextMaker {
            engine: Arc::clone(&self.engine),
            vocabulary: self.model.vocabulary.clone(),
            pulse: Arc::clone(&self.pulse),
            metrics: Arc::clone(&self.metrics),
        }
    }
}

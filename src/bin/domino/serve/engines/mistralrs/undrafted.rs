//! The absence of drafts in mistral.rs, in builds that cannot make them there: flags that ask for them were
//! refused when they were checked.

use std::sync::Arc;

use domino::{Vocabulary, mistralrs::RequestWatch};
use mistralrs_core::{Loader, NormalRequest};

use super::super::TextOrder;
use crate::serve::{args::EngineArgs, bounds::Pulse, problem::Problem};

/// An engine that drafts nothing.
#[derive(Debug, Clone)]
pub(super) struct NoDrafts;

impl NoDrafts {
    /// Leaves the loader as it is.
    pub(super) fn around(loader: Box<dyn Loader>, _: &EngineArgs, _: &Arc<Pulse>) -> (Box<dyn Loader>, Self) {
        (loader, Self)
    }

    /// Leaves the vocabulary to the pipeline.
    pub(super) fn vocabulary(&self) -> anyhow::Result<Option<Vocabulary>> {
        Ok(None)
    }

    /// Tokens that a pass may write past the text.
    pub(super) fn rows(&self) -> usize {
        0
    }

    /// Are several tokens verified in a pass?
    pub(super) fn is_on(&self) -> bool {
        false
    }

    /// Leaves the request to the engine.
    pub(super) async fn attach(
        &self,
        _: &mut NormalRequest,
        _: &TextOrder,
    ) -> Option<Result<RequestWatch, Problem>> {
        None
    }
}

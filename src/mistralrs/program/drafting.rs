//! Drafts in mistral.rs.

use std::sync::Arc;

use domino::{Vocabulary, decode::Sampler};
use domino_cli::texts::{DraftSize, GrammarGuesses, Problem, Pulse, TextOrder};
use domino_mistralrs::{
    AttachError, GrammarSpeculativeLoader, Guesses, RequestWatch, Speculation, SpeculativeRequest,
};
use mistralrs_core::{Loader, NormalRequest};

/// Drafts of an engine, if it was loaded for them.
#[derive(Clone)]
pub(super) struct RequestDrafts {
    /// Keeper of the turns of requests.
    speculation: Option<Speculation>,
}

impl RequestDrafts {
    /// Wraps the loader, if drafts are wanted.
    pub(super) fn around(
        loader: Box<dyn Loader>,
        drafts: Option<DraftSize>,
        pulse: &Pulse,
    ) -> (Box<dyn Loader>, Self) {
        let Some(size) = drafts else { return (loader, Self { speculation: None }) };
        let around = match size {
            DraftSize::Auto => GrammarSpeculativeLoader::new(loader),
            // A pass has one row more than guessed tokens.
            DraftSize::Tokens(tokens) => {
                GrammarSpeculativeLoader::with_gamma(loader, tokens.get().saturating_add(1))
            }
        };
        let around = around.test_limit(pulse.patience());
        let speculation = Some(around.speculation());
        (Box::new(around), Self { speculation })
    }

    /// Returns the vocabulary of an engine with drafts.
    pub(super) fn vocabulary(&self) -> Result<Option<Vocabulary>, AttachError> {
        self.speculation.as_ref().map(Speculation::vocabulary).transpose()
    }

    /// Tokens that a pass may write past the text.
    pub(super) fn rows(&self) -> usize {
        self.speculation.as_ref().map_or(0, Speculation::gamma)
    }

    /// Are several tokens verified in a pass?
    pub(super) fn is_on(&self) -> bool {
        self.speculation.is_some()
    }

    /// Gives a request its processor, when it is its turn. `None`: the engine makes no drafts.
    pub(super) async fn attach(
        &self,
        request: &mut NormalRequest,
        text: &TextOrder,
    ) -> Option<Result<RequestWatch, Problem>> {
        let speculation = self.speculation.as_ref()?;
        let sampler = Sampler::new(text.options.sampling, text.options.seed);
        let mut what = match text.constraint() {
            Some(constraint) => SpeculativeRequest::new(constraint),
            None => SpeculativeRequest::unconstrained(),
        }
        .draw_by(sampler, text.prompt.len())
        .masking(text.options.masking);
        if let Some(guesses) = &text.guesses {
            what = what.guesses(&guesses_for(guesses, text));
        }
        Some(speculation.attach(request, what).await.map_err(|error| attach_error(&error)))
    }
}

/// Makes the guesses of a client in the form of mistral.rs's adapter, which learns over its texts how right
/// they are.
fn guesses_for(guesses: &GrammarGuesses, text: &TextOrder) -> Guesses {
    let book = guesses.book(text.shared);
    let of_counts = || Guesses::of_counts(Arc::clone(&book.learner), guesses.recipe().clone());
    let made = book.kept.get_or_init(|| Box::new(of_counts().at_least(guesses.threshold())));
    made.downcast_ref::<Guesses>().cloned().unwrap_or_else(of_counts)
}

/// Makes the problem of a request that cannot be had with speculation.
fn attach_error(error: &AttachError) -> Problem {
    match error {
        AttachError::Sampling(_) | AttachError::Stop(_) => {
            Problem::bad_request("invalid_value", error.to_string())
        }
        _ => Problem::engine(error.to_string()),
    }
}

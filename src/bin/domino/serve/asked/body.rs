//! Bodies of requests: of the right type, and within the bounds.

use std::sync::Arc;

use axum::{extract::Request, http::header};
use domino::grammar::tools::Spelling;
use tokio::sync::watch;

use super::{
    super::{
        access::{caller::Caller, visitors::is_json},
        args::{SchemaRules, ServerLimits},
        bounds::bodies::{self, BodyBounds, BodyMemory, SLOW_START},
        connections::PeerVisit,
        endpoint::Endpoint,
        problem::Problem,
    },
    request::Asked,
};

/// Reads the body of a request.
pub(crate) async fn read(
    request: Request,
    endpoint: Endpoint,
    limits: &ServerLimits,
    memory: &Arc<BodyMemory>,
    schemas: &SchemaRules,
    spelling: Option<Spelling>,
) -> Result<Asked, Problem> {
    if !is_json(request.headers()) {
        return Err(Problem::media_type());
    }
    let most = limits.body;
    let length =
        request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if length.is_some_and(|length: u64| usize::try_from(length).map_or(true, |length| length > most)) {
        return Err(Problem::too_large(most));
    }
    let closing = request.extensions().get::<PeerVisit>().map(|visit| visit.closing.clone());
    let closing = closing.unwrap_or_else(|| watch::channel(false).1);
    // Held until the body has been read into what it asks for.
    let mut held = memory.hold(Caller::of(request.extensions()));
    let bounds = BodyBounds { most, time: limits.read, slow_start: SLOW_START };
    let body = bodies::read(request.into_body(), bounds, &mut held, closing).await?;
    Asked::read(&body, endpoint, limits.grammar, schemas, spelling)
}

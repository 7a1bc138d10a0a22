//! Bodies as they come: of the right type, no larger and no slower than allowed.

use axum::{body::to_bytes, extract::Request, http::header};
use domino::grammar::tools::Spelling;

use super::{
    args::{SchemaRules, ServerLimits},
    endpoint::Endpoint,
    problem::Problem,
    request::Asked,
    visitors::is_json,
};

/// Reads the body of a request. A body without a length (`Transfer-Encoding: chunked`) is read up to the
/// limit.
pub(crate) async fn read(
    request: Request,
    endpoint: Endpoint,
    limits: &ServerLimits,
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
    let body = to_bytes(request.into_body(), most);
    let body = tokio::time::timeout(limits.read, body).await.map_err(|_| Problem::too_slow(limits.read))?;
    let body = body.map_err(|error| match error.to_string() {
        message if message.contains("length limit") => Problem::too_large(most),
        message => Problem::bad_request("unreadable", format!("the body cannot be read: {message}")),
    })?;
    Asked::read(&body, endpoint, limits.grammar, schemas, spelling)
}

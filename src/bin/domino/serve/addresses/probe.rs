//! Answers `/health`: can a text be made? The engine writes one of a single token, unless it has just written
//! for others.
//!
//! Nothing less tells: the engine's thread can be alive while its pipeline hangs, and what fails says so only
//! when it is asked.

use std::{sync::Arc, time::Duration};

use axum::http::StatusCode;

use super::{
    super::{
        access::caller::Caller,
        asked::request::Asked,
        endpoint::Endpoint,
        problem::Problem,
        server::Server,
        writing::{self, Piece},
    },
    order::order,
};

/// Time that an answer waits for the text.
const WAIT: Duration = Duration::from_secs(1);

/// An engine that has made a token in this time is well.
const FRESH: Duration = Duration::from_secs(1);

/// The request for the text.
const TEXT: &[u8] = br#"{"prompt": "a", "max_tokens": 1, "temperature": 0}"#;

/// Says whether a text can be made, and if not why.
pub(super) async fn check(server: &Arc<Server>) -> Result<(), Problem> {
    if server.pulse.beat_within(FRESH) && !server.pulse.is_stalled() {
        return Ok(());
    }
    let probe = || write(Arc::clone(server));
    server.health.check(&server.pulse, WAIT, probe).await
}

/// Has a text of one token written.
async fn write(server: Arc<Server>) -> Result<(), Problem> {
    let written = async {
        let mut asked = Asked::read(TEXT, Endpoint::Completions, 0, &server.schemas, None)?;
        // It takes no place: those are for texts that somebody waits for.
        asked.choices = 0;
        let mut ordered = order(&server, asked, &Caller::Unknown).await?;
        ordered.choices = 1;
        let mut pieces = writing::begin(&server.text_maker(), ordered);
        while let Some((_, piece)) = pieces.recv().await {
            match piece {
                Piece::End(..) => return Ok(()),
                Piece::Failed(problem) => return Err(problem),
                Piece::Text(..) | Piece::News(_) => {}
            }
        }
        Err(Problem::engine("a text did not end"))
    };
    written.await.map_err(|problem| match problem.status() {
        StatusCode::SERVICE_UNAVAILABLE => problem,
        _ => Problem::unavailable("engine_gone", format!("no text can be made: {}", problem.message())),
    })
}

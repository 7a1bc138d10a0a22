//! The addresses: which there are, and what every request passes before it reaches its own: who calls, and
//! its id. The answers of those that write text are in [`handlers`].
//!
//! `/health` answers whether a text can be made: the engine writes one of a single token, unless it has just
//! written for others. Nothing less tells: the engine's thread can be alive while its pipeline hangs, and
//! what fails says so only when it is asked.

mod handlers;
mod tokens;

use std::{collections::BTreeSet, sync::Arc, time::Duration, time::Instant};

use axum::extract::{Request, State};
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router, middleware, middleware::Next, routing::get, routing::post};
use serde_json::{Value, json};
use tracing::Instrument;

use self::handlers::{DEFAULT_MODEL, order};
use super::asked::fields::Endpoint;
use super::observe::{LogEntry, RequestId, metrics::METRICS_TYPE};
use super::server::{Served, Server};
use super::{access::Caller, connections::PeerVisit, problem::Problem, writing, writing::Piece};

/// All addresses.
pub(crate) fn router(server: &Arc<Server>) -> Router {
    let ids = [server.model.name.as_str(), DEFAULT_MODEL];
    let paths: BTreeSet<String> = ids.map(model_path).into();
    let of_models = paths.iter().fold(Router::new(), |router, path| router.route(path, get(model)));
    let router = of_models
        .route("/v1/chat/completions", post(chat))
        .route("/v1/completions", post(completions))
        .route("/v1/responses", post(responses))
        .route("/v1/messages", post(messages))
        .route("/v1/messages/count_tokens", post(tokens::count))
        .route("/tokenize", post(tokens::tokenize))
        .route("/detokenize", post(tokens::detokenize))
        .route("/v1/models", get(models))
        .route("/v1/grammars", get(grammars))
        .route("/metrics", get(metrics))
        .route("/health", get(health))
        .route("/ready", get(ready))
        .route("/", get(page))
        .route("/page.css", get(async || file("text/css", include_str!("../page/page.css"))))
        .route("/page.js", get(async || file("text/javascript", include_str!("../page/page.js"))))
        .method_not_allowed_fallback(no_such_method)
        .route_layer(middleware::from_fn_with_state(Arc::clone(server), authorise))
        // Outside of the key: browsers ask whether they may send it without it.
        .route_layer(server.visitors.cors())
        .fallback(no_such_address)
        .layer(middleware::from_fn_with_state(Arc::clone(server), admit));
    router.with_state(Arc::clone(server))
}

async fn chat(State(server): State<Arc<Server>>, request: Request) -> Response {
    handlers::answer(server, Endpoint::Chat, request).await
}

async fn completions(State(server): State<Arc<Server>>, request: Request) -> Response {
    handlers::answer(server, Endpoint::Completions, request).await
}

async fn responses(State(server): State<Arc<Server>>, request: Request) -> Response {
    handlers::answer(server, Endpoint::Responses, request).await
}

async fn messages(State(server): State<Arc<Server>>, request: Request) -> Response {
    handlers::answer(server, Endpoint::Messages, request).await
}

async fn models(State(server): State<Arc<Server>>) -> Response {
    let data = [server.model.name.as_str(), DEFAULT_MODEL].map(|id| described(&server.model, id));
    Json(json!({ "object": "list", "data": data })).into_response()
}

/// Describes the model under the id that the path has; there is a path for each id only.
async fn model(State(server): State<Arc<Server>>, uri: Uri) -> Response {
    let name = &server.model.name;
    let id = if uri.path() == model_path(name) { name } else { DEFAULT_MODEL };
    Json(described(&server.model, id)).into_response()
}

/// The path of a model's description, with its id encoded as clients encode it.
fn model_path(id: &str) -> String {
    let encoded = id.bytes().map(|byte| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    });
    format!("/v1/models/{}", encoded.collect::<String>())
}

fn described(model: &Served, id: &str) -> Value {
    json!({ "id": id, "object": "model", "created": model.since, "owned_by": "domino" })
}

async fn grammars(State(server): State<Arc<Server>>) -> Response {
    let named = server.registry.named().clone();
    let list = tokio::task::spawn_blocking(move || named.list()).await.unwrap_or_default();
    let data: Vec<Value> = list
        .into_iter()
        .map(|(name, about)| json!({ "id": name, "object": "grammar", "about": about }))
        .collect();
    Json(json!({ "object": "list", "data": data })).into_response()
}

async fn metrics(State(server): State<Arc<Server>>) -> Response {
    server.registry.trim();
    let (grammars, grammar_bytes) = server.registry.size();
    let page = server.metrics.text(|now| {
        now.texts.set(server.gate.taken());
        now.most_texts.set(server.gate.places());
        now.grammars.set(grammars);
        now.grammar_bytes.set(grammar_bytes);
        now.work_waiting.set(server.registry.pool().waiting());
        now.body_bytes.set(server.bodies.taken());
        now.stalled.set(usize::from(server.pulse.is_stalled()));
        now.set_gave_up(server.pulse.gave_up());
    });
    ([(header::CONTENT_TYPE, METRICS_TYPE)], page).into_response()
}

async fn health(State(server): State<Arc<Server>>) -> Response {
    match check_health(&server).await {
        Ok(()) => (StatusCode::OK, "OK").into_response(),
        Err(problem) => problem.into_response(),
    }
}

/// Would a request be taken now? Costs nothing, so that a balancer can ask often.
async fn ready(State(server): State<Arc<Server>>) -> Response {
    let problem = match (server.closing.get(), server.pulse.is_stalled()) {
        (Some(()), _) => Problem::unavailable("shutting_down", "the server is ending"),
        (None, true) => Problem::unavailable("engine_stalled", "the engine makes no tokens"),
        (None, false) => return (StatusCode::OK, "OK").into_response(),
    };
    problem.into_response()
}

/// The page for people, which asks the other addresses; those who want no page get what `/health` says.
async fn page(State(server): State<Arc<Server>>, request: Request) -> Response {
    let accepted = request.headers().get(header::ACCEPT).and_then(|kinds| kinds.to_str().ok());
    match accepted.is_some_and(|kinds| kinds.contains("text/html")) {
        true => file("text/html; charset=utf-8", include_str!("../page/page.html")),
        false => health(State(server)).await,
    }
}

/// What the page may do: load its own two files, and ask this server.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A file of the page.
fn file(kind: &'static str, text: &'static str) -> Response {
    let head = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (head, text).into_response()
}

async fn no_such_address(request: Request) -> Problem {
    let path = request.uri().path();
    let begins = |begin| path.starts_with(begin);
    let instead = match () {
        () if begins("/v1/responses/") => "; answers are not kept",
        () if begins("/v1/models/") => "; GET /v1/models lists the models",
        () => "",
    };
    Problem::not_found("no_such_address", format!("there is no {path}{instead}"))
}

async fn no_such_method(request: Request) -> Problem {
    Problem::method(request.method().as_str(), request.uri().path())
}

/// Lets those pass who may call, gives each request its id, and has it logged.
async fn admit(State(server): State<Arc<Server>>, request: Request, next: Next) -> Response {
    let id = RequestId::of(request.headers());
    let entry = LogEntry {
        id: id.clone(),
        method: request.method().clone(),
        path: request.uri().path().to_owned(),
        begun: Instant::now(),
    };
    let answer = async {
        match server.visitors.admit(&request) {
            Ok(()) => next.run(request).await,
            Err(problem) => problem.into_response(),
        }
    };
    let mut response = answer.instrument(tracing::error_span!("request", %id)).await;
    id.tell(response.headers_mut());
    entry.follow(response)
}

/// Lets those pass who have a key, where one is needed, and says of each request whose it is.
async fn authorise(State(server): State<Arc<Server>>, mut request: Request, next: Next) -> Response {
    let open = matches!(request.uri().path(), "/health" | "/ready" | "/" | "/page.css" | "/page.js");
    let caller = match server.keys.admit(request.headers()) {
        Ok(Some(name)) => Caller::Key(name),
        Err(problem) if !open => return problem.into_response(),
        _ => request.extensions().get::<PeerVisit>().map_or(Caller::Unknown, |visit| Caller::at(visit.peer)),
    };
    request.extensions_mut().insert(caller.clone());
    let mut response = next.run(request).await;
    response.extensions_mut().insert(caller);
    response
}

/// Time that an answer waits for the text.
const PROBE_WAIT: Duration = Duration::from_secs(1);

/// An engine that has made a token in this time is well.
const PROBE_FRESH: Duration = Duration::from_secs(1);

/// The request for the text.
const PROBE_TEXT: &[u8] = br#"{"prompt": "a", "max_tokens": 1, "temperature": 0}"#;

/// Says whether a text can be made, and if not why.
async fn check_health(server: &Arc<Server>) -> Result<(), Problem> {
    if server.pulse.beat_within(PROBE_FRESH) && !server.pulse.is_stalled() {
        return Ok(());
    }
    let probe = || write_probe(Arc::clone(server));
    server.health.check(&server.pulse, PROBE_WAIT, probe).await
}

/// Has a text of one token written.
async fn write_probe(server: Arc<Server>) -> Result<(), Problem> {
    let written = async {
        let mut asked = server.read(PROBE_TEXT, Endpoint::Completions)?;
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

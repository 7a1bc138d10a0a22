//! The addresses: ours in front, mistral.rs's server behind them.

use std::{sync::Arc, time::Instant};

use axum::{
    Json, Router,
    extract::{Request, State},
    http::{StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use mistralrs_server_core::mistralrs_server_router_builder::MistralRsServerRouterBuilder;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::{
    args::ServerLimits,
    engine::Engine,
    gate::{Gate, Pulse},
    handlers,
    metrics::{Metrics, Moment},
    problem::Problem,
    registry::Registry,
    request::Endpoint,
};

/// Prometheus' text format.
const METRICS_TYPE: &str = "text/plain; version=0.0.4";

/// What all requests share.
pub(crate) struct Server {
    pub(crate) engine: Engine,
    pub(crate) registry: Arc<Registry>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) pulse: Arc<Pulse>,
    /// Whose turn it is to be written by the engine.
    pub(crate) turns: Arc<Semaphore>,
    pub(crate) limits: ServerLimits,
    /// Of the key that clients must send.
    pub(crate) key: Option<blake3::Hash>,
}

/// All addresses.
pub(crate) async fn router(server: &Arc<Server>) -> anyhow::Result<Router> {
    let behind = MistralRsServerRouterBuilder::new()
        .with_mistralrs(Arc::clone(&server.engine.state))
        .with_max_body_limit(server.limits.body)
        // Pages of other sites have no business here.
        .with_allowed_origins(Vec::new())
        .build()
        .await?
        .fallback(no_such_address)
        .layer(middleware::from_fn(to_the_end));
    Ok(Router::new()
        .route("/v1/responses", post(no_responses))
        .route("/v1/chat/completions", post(chat))
        .route("/v1/completions", post(completions))
        .route("/v1/grammars", get(grammars))
        .route("/metrics", get(metrics))
        .route("/health", get(health))
        .route("/", get(health))
        .method_not_allowed_fallback(no_such_method)
        .with_state(Arc::clone(server))
        .fallback_service(behind)
        .layer(middleware::from_fn_with_state(Arc::clone(server), authorise)))
}

async fn chat(State(server): State<Arc<Server>>, request: Request) -> Response {
    handlers::answer(server, Endpoint::Chat, request).await
}

async fn completions(State(server): State<Arc<Server>>, request: Request) -> Response {
    handlers::answer(server, Endpoint::Completions, request).await
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
    let now = Moment {
        texts: server.gate.taken(),
        most_texts: server.gate.places(),
        grammars,
        grammar_bytes,
        stalled: server.pulse.is_stalled(),
        gave_up: server.pulse.gave_up(),
    };
    ([(header::CONTENT_TYPE, METRICS_TYPE)], server.metrics.text(now)).into_response()
}

async fn health(State(server): State<Arc<Server>>) -> Response {
    match server.pulse.is_stalled() {
        true => Problem::unavailable("engine_stalled", "the engine makes no tokens").into_response(),
        false => (StatusCode::OK, "OK").into_response(),
    }
}

/// mistral.rs's own handler waits for no turn, so its texts would be mixed up with others.
async fn no_responses() -> Problem {
    Problem::bad_request("unsupported", "/v1/responses is not served; use /v1/chat/completions")
}

/// Lets mistral.rs's own handlers come to their end when their client goes away: the engine's thread panics if nobody
/// is there to hear an answer.
async fn to_the_end(request: Request, next: Next) -> Response {
    let answer = tokio::spawn(next.run(request)).await;
    answer.unwrap_or_else(|_| Problem::engine("mistral.rs failed").into_response())
}

async fn no_such_address(request: Request) -> Problem {
    Problem::not_found("no_such_address", format!("there is no {}", request.uri().path()))
}

async fn no_such_method(request: Request) -> Problem {
    Problem::method(request.method().as_str(), request.uri().path())
}

/// Lets those pass who have the key.
async fn authorise(State(server): State<Arc<Server>>, request: Request, next: Next) -> Response {
    let open = matches!(request.uri().path(), "/health" | "/");
    if let Some(key) = server.key.filter(|_| !open) {
        let given = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let given = given.and_then(|given| given.strip_prefix("Bearer ")).unwrap_or_default();
        // Hashes are compared in constant time.
        if blake3::hash(given.trim().as_bytes()) != key {
            return Problem::unauthorized().into_response();
        }
    }
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let begun = Instant::now();
    let response = next.run(request).await;
    tracing::info!("{method} {path}: {} after {:?}", response.status(), begun.elapsed());
    response
}

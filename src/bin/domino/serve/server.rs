//! The addresses.

use std::{sync::Arc, time::Instant};

use axum::{
    Json, Router,
    extract::{Request, State},
    http::{StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use domino::{Vocabulary, grammar::tools::Spelling};
use serde_json::{Value, json};

use super::{
    args::{SchemaRules, ServerLimits},
    endpoint::Endpoint,
    engines::{client::Client, engine::Engine},
    gate::{Gate, Pulse},
    handlers,
    health::{self, Health},
    metrics::{Metrics, Moment},
    problem::Problem,
    prompts::PromptReader,
    registry::Registry,
    visitors::Visitors,
    writing::TextMaker,
};

/// Prometheus' text format.
const METRICS_TYPE: &str = "text/plain; version=0.0.4";

/// The model that is served.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) vocabulary: Vocabulary,
    /// Its name for clients.
    pub(crate) name: String,
    /// Tokens of a text, its prompt included.
    pub(crate) context: usize,
    /// Its way to write calls of functions, if that is known.
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
    pub(crate) limits: ServerLimits,
    /// Do all clients share what is kept of prompts and texts?
    pub(crate) share_caches: bool,
    /// Are texts closed that would be cut by their length, unless a request says otherwise?
    pub(crate) finish: bool,
    pub(crate) schemas: Arc<SchemaRules>,
    /// Of the key that clients must send.
    pub(crate) key: Option<blake3::Hash>,
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

/// All addresses.
pub(crate) fn router(server: &Arc<Server>) -> Router {
    let router = Router::new()
        .route("/v1/chat/completions", post(chat))
        .route("/v1/completions", post(completions))
        .route("/v1/models", get(models))
        .route("/v1/grammars", get(grammars))
        .route("/metrics", get(metrics))
        .route("/health", get(health))
        .route("/", get(health))
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

async fn models(State(server): State<Arc<Server>>) -> Response {
    let Served { name, since, .. } = &server.model;
    let model = |id: &str| json!({ "id": id, "object": "model", "created": since, "owned_by": "domino" });
    Json(json!({ "object": "list", "data": [model(name), model("default")] })).into_response()
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
    match health::check(&server).await {
        Ok(()) => (StatusCode::OK, "OK").into_response(),
        Err(problem) => problem.into_response(),
    }
}

async fn no_such_address(request: Request) -> Problem {
    let path = request.uri().path();
    let instead = match path.starts_with("/v1/responses") {
        true => "; use /v1/chat/completions",
        false => "",
    };
    Problem::not_found("no_such_address", format!("there is no {path}{instead}"))
}

async fn no_such_method(request: Request) -> Problem {
    Problem::method(request.method().as_str(), request.uri().path())
}

/// Lets those pass who may call, and says what they asked for.
async fn admit(State(server): State<Arc<Server>>, request: Request, next: Next) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let begun = Instant::now();
    let response = match server.visitors.admit(&request) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    };
    tracing::info!("{method} {path}: {} after {:?}", response.status(), begun.elapsed());
    response
}

/// Lets those pass who have the key.
async fn authorise(State(server): State<Arc<Server>>, mut request: Request, next: Next) -> Response {
    let open = matches!(request.uri().path(), "/health" | "/");
    if let Some(key) = server.key.filter(|_| !open) {
        let given = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let given = given.and_then(|given| given.strip_prefix("Bearer ")).unwrap_or_default();
        // Hashes are compared in constant time.
        if blake3::hash(given.trim().as_bytes()) != key {
            return Problem::unauthorized().into_response();
        }
        // Those who share a key are one client.
        request.extensions_mut().insert(Client::default());
    }
    next.run(request).await
}

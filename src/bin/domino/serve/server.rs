//! The addresses.

use std::{
    sync::{Arc, OnceLock},
    time::Instant,
};

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
use tracing::Instrument;

use super::{
    access::{caller::Caller, keys::ApiKeys},
    args::{SchemaRules, ServerLimits},
    bounds::bodies::BodyMemory,
    connections::PeerVisit,
    endpoint::Endpoint,
    engines::{engine::Engine, kept::PriorKeeper},
    gate::{Gate, Pulse},
    handlers,
    health::{self, Health},
    metrics::{METRICS_TYPE, Metrics, Moment},
    observe::{access_log::LogEntry, request_id::RequestId},
    problem::Problem,
    prompts::PromptReader,
    registry::Registry,
    visitors::Visitors,
    writing::TextMaker,
};

/// The model that is served.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) vocabulary: Vocabulary,
    /// The name that clients give in `model`.
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
        .route("/ready", get(ready))
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
        work_waiting: server.registry.pool().waiting(),
        body_bytes: server.bodies.taken(),
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

/// Would a request be taken now? Costs nothing, so that a balancer can ask often.
async fn ready(State(server): State<Arc<Server>>) -> Response {
    let problem = match (server.closing.get(), server.pulse.is_stalled()) {
        (Some(()), _) => Problem::unavailable("shutting_down", "the server is ending"),
        (None, true) => Problem::unavailable("engine_stalled", "the engine makes no tokens"),
        (None, false) => return (StatusCode::OK, "OK").into_response(),
    };
    problem.into_response()
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
    let open = matches!(request.uri().path(), "/health" | "/ready" | "/");
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

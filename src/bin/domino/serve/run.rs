//! Starts the server and ends it.

use std::{
    io::{self, Write},
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};

use anyhow::Context;
use domino::{model::candle::available_memory, store::CacheFolder};
use serde_json::json;
use tokio::{net::TcpListener, sync::Semaphore};

use super::{
    args::{SchemaRules, Serve},
    connections,
    engine::{self, Engine},
    gate::{Gate, Pulse},
    guessing::Guessing,
    health::Health,
    memory,
    metrics::Metrics,
    named::NamedGrammars,
    registry::{Registry, Shop},
    server::{self, Server},
    visitors::Visitors,
};
use crate::{
    failure::{BadInput, Exit, Paint, note},
    interrupt, progress,
};

/// How long Ctrl-C waits to be noticed.
const TICK: Duration = Duration::from_millis(50);

/// How long a step of a text's constraint may take, and the long steps of one text together, while others wait.
const STEP_TIME: Duration = Duration::from_secs(2);
const TEXT_TIME: Duration = Duration::from_secs(30);

/// How long threads that still work at the end are waited for.
const LAST_WAIT: Duration = Duration::from_millis(200);

/// Serves until Ctrl-C or SIGTERM.
pub(crate) fn run(command: &Serve, cache: &CacheFolder) -> anyhow::Result<Exit> {
    let path = engine::find(command)?;
    let schemas = Arc::new(command.schemas.clone());
    let named = NamedGrammars::new(command.grammar_dir.clone(), Arc::clone(&schemas))?;
    let visitors = Visitors::new(command.host, &command.origins)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the threads of the server")?;
    // While the model is loaded.
    runtime.spawn_blocking(|| memory::take_ahead(available_memory()));
    let ended = runtime.block_on(async {
        // Before the model is loaded, so that a port in use is told at once.
        let listener = listen(command).await?;
        let address = listener.local_addr()?;
        let loaded = progress::during(format!("loading {}", path.display()), || {
            tokio::task::block_in_place(|| runtime.block_on(engine::load(command, &path)))
        })?;
        let server = Arc::new(server(command, loaded, named, schemas, visitors, cache));
        let registry = Arc::clone(&server.registry);
        runtime.spawn_blocking(move || registry.prepare_for_schemas());
        warn_of_grammars(&server);
        serve(command, &server, listener, address).await
    });
    runtime.shutdown_timeout(LAST_WAIT);
    ended
}

async fn listen(command: &Serve) -> anyhow::Result<TcpListener> {
    let address = SocketAddr::new(command.host, command.port);
    TcpListener::bind(address).await.map_err(|error| {
        let hint = match error.kind() {
            io::ErrorKind::AddrInUse => "another program listens there; name another with --port, or any free one with --port 0",
            _ => "--host takes an address of this machine, and ports below 1024 are often for administrators only",
        };
        BadInput::new(format!("cannot listen on {address}: {error}")).hint(hint).into()
    })
}

/// What all requests share, of a model and of what guesses for it.
pub(crate) fn server(
    command: &Serve,
    (engine, guessing): (Engine, Option<Guessing>),
    named: NamedGrammars,
    schemas: Arc<SchemaRules>,
    visitors: Visitors,
    cache: &CacheFolder,
) -> Server {
    let limits = command.limits.clone();
    let compiler =
        crate::budgets::shared_compiler(engine.vocabulary.clone(), STEP_TIME, TEXT_TIME).cache(cache.clone());
    let metrics = Arc::new(Metrics::default());
    let workers = std::thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2));
    let shop = Shop { compiler, guessing, schemas: Arc::clone(&schemas) };
    let registry = Registry::new(shop, named, Arc::clone(&metrics), workers, limits.grammars, limits.compile);
    Server {
        engine,
        registry,
        metrics,
        gate: Gate::new(limits.running.get().saturating_add(limits.waiting)),
        pulse: Arc::new(Pulse::new(limits.stall)),
        health: Health::default(),
        visitors,
        turns: Arc::new(Semaphore::new(limits.running.get())),
        limits,
        schemas,
        key: command.api_key.as_ref().map(|key| blake3::hash(key.as_bytes())),
    }
}

/// Says which files of the grammar folder cannot be used, before a request does.
fn warn_of_grammars(server: &Server) {
    for (name, error) in server.registry.named().mistakes() {
        tracing::warn!("grammar {name}: {error}");
    }
}

async fn serve(
    command: &Serve,
    server: &Arc<Server>,
    listener: TcpListener,
    address: SocketAddr,
) -> anyhow::Result<Exit> {
    let router = server::router(server).await?;
    let paint = Paint::for_stderr();
    interrupt::watch();
    if command.json {
        writeln!(io::stdout(), "{}", json!({ "address": address.to_string(), "model": server.engine.name }))?;
    }
    note!("{} {} on http://{address}/v1", paint.green("serving"), server.engine.name);
    if !address.ip().is_loopback() && command.api_key.is_none() {
        tracing::warn!("the server is open to the network without --api-key");
    }
    let connections = connections::accept(listener, router, command.limits.read, ended()).await;
    let drain = command.limits.drain;
    if tokio::time::timeout(drain, connections.shutdown()).await.is_err() {
        tracing::warn!("requests that still run after {} s are left", drain.as_secs_f64());
    }
    Ok(Exit::Success)
}

/// Waits for Ctrl-C or SIGTERM.
async fn ended() {
    while !interrupt::pressed() {
        tokio::time::sleep(TICK).await;
    }
}

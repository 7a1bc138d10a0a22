//! Starts the server and ends it: Ctrl-C and SIGTERM do, and SIGHUP has it look at the file of keys again.
//!
//! The signals are taken here instead of in `progress`, which takes SIGHUP for one more Ctrl-C.

use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fs, io, io::Write, net::SocketAddr, path::Path, sync::Arc, sync::OnceLock};

use anyhow::Context;
use domino::{
    grammar::tools::Spelling, model::candle::available_memory, store::CacheFolder, store::WholeFile,
};
use serde_json::json;
use tokio::net::TcpListener;

use super::bounds::{BodyMemory, Gate, Pulse};
use super::engines::{Guessing, load, load::LoadedModel};
use super::grammars::{Registry, Shop, named::NamedGrammars};
use super::server::{Health, Served, Server};
use super::{
    access::ApiKeys, access::Visitors, addresses::router, args::Serve, connections,
    connections::ConnectionBounds, memory, observe::metrics::Metrics, prompts::PromptReader, work::Pool,
};
use crate::terminal::failure::{BadInput, Exit, Paint, note};
use crate::terminal::progress;

/// Time between two looks for Ctrl-C.
const TICK: Duration = Duration::from_millis(50);

/// Time that a step of a text's constraint may take, and the long steps of one text together, while others
/// wait.
const STEP_TIME: Duration = Duration::from_secs(2);
const TEXT_TIME: Duration = Duration::from_secs(30);

/// Time that is given at the end to threads that still work.
const LAST_WAIT: Duration = Duration::from_millis(200);

/// How long the disk may take at the end to write what guesses have learnt.
const WRITE_TIME: Duration = Duration::from_secs(10);

/// Serves until Ctrl-C or SIGTERM. After a SIGHUP the file of keys is looked at once more.
pub(crate) fn run(command: &Serve, cache: &CacheFolder) -> anyhow::Result<Exit> {
    let path = load::find(&command.engine)?;
    let schemas = Arc::new(command.schemas.clone());
    let flags = &command.flags;
    let named = NamedGrammars::new(flags.grammar_dir.clone(), Arc::clone(&schemas))?;
    let visitors = Visitors::new(flags.host, &flags.allow_origin)?;
    let keys = ApiKeys::new(flags.running.api_key.as_deref(), flags.running.api_keys.as_deref())?;
    tell_of_cache(cache);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the threads of the server")?;
    // While the model is loaded.
    runtime.spawn_blocking(|| memory::take_ahead(available_memory()));
    let ended = runtime.block_on(async {
        let hangups = take_signals().context("cannot take signals")?;
        // Before the model is loaded, so that a port in use is told at once.
        let listener = listen(command).await?;
        let address = listener.local_addr()?;
        let pulse = Arc::new(Pulse::new(flags.limits.stall_timeout));
        let loaded = progress::during(format!("loading {}", path.display()), || {
            let load = load::load(&command.engine, &path, &pulse, cache);
            tokio::task::block_in_place(|| runtime.block_on(load))
        })?;
        let doors = (named, visitors, keys);
        let server = Arc::new(server(command, &path, loaded, pulse, doors, cache)?);
        let registry = Arc::clone(&server.registry);
        runtime.spawn_blocking(move || registry.prepare_for_schemas());
        let keeper = Arc::downgrade(&server);
        hangups.each(move || keeper.upgrade().iter().for_each(|server| server.keys.look_now()));
        warn_of_grammars(&server);
        serve(command, &server, listener, address).await
    });
    runtime.shutdown_timeout(LAST_WAIT);
    ended
}

async fn listen(command: &Serve) -> anyhow::Result<TcpListener> {
    let address = SocketAddr::new(command.flags.host, command.flags.port);
    TcpListener::bind(address).await.map_err(|error| {
        let hint = match error.kind() {
            io::ErrorKind::AddrInUse => {
                "another program listens there; name another with --port, or any free one with --port 0"
            }
            _ => {
                "--host takes an address of this machine, and ports below 1024 are often for administrators \
                 only"
            }
        };
        BadInput::new(format!("cannot listen on {address}: {error}")).hint(hint).into()
    })
}

/// Makes what all requests share, of a model that is loaded.
fn server(
    command: &Serve,
    path: &Path,
    loaded: LoadedModel,
    pulse: Arc<Pulse>,
    (named, visitors, keys): (NamedGrammars, Visitors, ApiKeys),
    cache: &CacheFolder,
) -> anyhow::Result<Server> {
    let (limits, running) = (command.flags.limits.clone(), &command.flags.running);
    let flags = &command.engine.flags;
    let LoadedModel { engine, vocabulary, tokenizer, context, guessing } = loaded;
    let template = flags.chat_template.as_deref();
    let mut prompts = PromptReader::new(tokenizer, vocabulary.clone(), path, template, context)?;
    let shown = Spelling::of_chat_template(prompts.template());
    // Any model can be held to it, and many have seen it.
    let spelling = command.tool_spelling().unwrap_or(Some(shown.unwrap_or(Spelling::Hermes)));
    if spelling == Some(Spelling::Hermes) && shown != spelling {
        prompts.show_tools_in_words();
    }
    let compiler = crate::grammar::compiler::shared_compiler(vocabulary.clone(), STEP_TIME, TEXT_TIME);
    let compiler = command.reach.of(compiler).cache(cache.clone());
    let schemas = Arc::new(command.schemas.clone());
    let metrics = Arc::new(Metrics::default());
    pulse.count_in(Arc::clone(&metrics));
    let pool = Pool::new(running.workers());
    let priors = guessing.as_ref().and_then(Guessing::keeper);
    let shop = Shop { compiler, guessing, schemas: Arc::clone(&schemas) };
    let (most, patience) = (limits.grammar_cache, limits.compile_timeout);
    let registry = Registry::new(shop, named, Arc::clone(&metrics), pool, most, patience);
    let model = Served {
        vocabulary,
        name: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        context,
        spelling,
        since: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
    };
    let texts = command.engine.texts().get();
    Ok(Server {
        model,
        engine,
        prompts,
        registry,
        metrics,
        gate: Gate::new(texts.saturating_add(limits.max_queue)),
        pulse,
        health: Health::default(),
        visitors,
        keys,
        bodies: BodyMemory::new(running.body_memory, limits.max_body),
        closing: OnceLock::new(),
        limits,
        priors,
        share_caches: flags.share_caches,
        finish: flags.finish,
        schemas,
        reach: command.reach,
        masking: command.masking(),
    })
}

/// Warns that the cache folder cannot be written, which costs time but lets nothing fail.
fn tell_of_cache(cache: &CacheFolder) {
    let Some(path) = cache.path() else { return };
    let tried = fs::create_dir_all(path).and_then(|()| WholeFile::new(path.join("probe")).try_out());
    if let Err(error) = tried {
        tracing::warn!(
            "the cache folder {} cannot be written: {error}; what is worked out for a model and its grammars \
             is worked out again at each start (--cache-dir names another folder)",
            path.display()
        );
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
    let router = router(server);
    let paint = Paint::for_stderr();
    progress::watch_interrupts();
    let (name, device) = (&server.model.name, command.engine.device());
    if command.json {
        let ready = json!({ "address": address.to_string(), "model": name, "device": device });
        writeln!(io::stdout(), "{ready}")?;
    }
    let how = command.engine.by.tensors();
    let how = how.map_or_else(String::new, |_| format!(" ({device})"));
    note!("{} {name} on http://{address}/v1{how}", paint.green("serving"));
    let bounds = ConnectionBounds {
        patience: command.flags.limits.read_timeout,
        most: command.flags.running.max_connections.get(),
    };
    let connections = connections::accept(listener, router, bounds, ended()).await;
    // From now on /ready says no to those who still ask.
    let _ = server.closing.set(());
    let drain = command.flags.limits.drain_timeout;
    if tokio::time::timeout(drain, connections.shutdown()).await.is_err() {
        tracing::warn!("requests that still run after {} s are left", drain.as_secs_f64());
    }
    if let Some(priors) = &server.priors
        && !tokio::task::block_in_place(|| priors.write_all(WRITE_TIME))
    {
        tracing::warn!("what guesses have learnt is not written after {} s", WRITE_TIME.as_secs_f64());
    }
    Ok(Exit::Success)
}

/// Waits for Ctrl-C or SIGTERM.
async fn ended() {
    while !progress::interrupted() {
        tokio::time::sleep(TICK).await;
    }
}

/// The hangups (SIGHUP) that come from now on. Where the system knows none, none come.
struct Hangups(#[cfg(unix)] tokio::signal::unix::Signal);

/// Takes the signals over from the system, in a runtime.
///
/// # Errors
/// If the system refuses.
#[cfg(unix)]
fn take_signals() -> io::Result<Hangups> {
    use tokio::signal::unix::{SignalKind, signal};
    for kind in [SignalKind::interrupt(), SignalKind::terminate()] {
        let mut ends = signal(kind)?;
        tokio::spawn(async move {
            while ends.recv().await.is_some() {
                progress::interrupt();
            }
        });
    }
    signal(SignalKind::hangup()).map(Hangups)
}

/// Takes Ctrl-C over from the system, in a runtime.
///
/// # Errors
/// None.
#[cfg(not(unix))]
fn take_signals() -> io::Result<Hangups> {
    tokio::spawn(async {
        while tokio::signal::ctrl_c().await.is_ok() {
            progress::interrupt();
        }
    });
    Ok(Hangups())
}

impl Hangups {
    /// Has `act` called at each of them.
    #[cfg_attr(not(unix), expect(unused_variables, reason = "none come"))]
    fn each(self, act: impl Fn() + Send + 'static) {
        #[cfg(unix)]
        tokio::spawn(async move {
            let Self(mut hangups) = self;
            while hangups.recv().await.is_some() {
                act();
            }
        });
    }
}

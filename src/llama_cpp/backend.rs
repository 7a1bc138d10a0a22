//! llama.cpp itself: initialised once in a process, with its log in `tracing`.

use std::{
    fmt,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use domino::model::candle::{ModelError, ModelErrorKind};
use llama_cpp_2::{LogOptions, llama_backend::LlamaBackend, send_logs_to_tracing};
use tracing::{
    Dispatch, Event, Level, Metadata, Subscriber, dispatcher,
    field::{Field, Visit},
    span,
};

/// The target of llama.cpp's events.
const TARGET: &str = "llama-cpp-2";

/// Lives until the process ends, so models need not say how long.
static BACKEND: OnceLock<Option<LlamaBackend>> = OnceLock::new();

/// llama.cpp, initialised.
///
/// # Errors
/// If another part of the program has initialised it for itself.
pub(crate) fn backend() -> Result<&'static LlamaBackend, ModelError> {
    let backend = BACKEND.get_or_init(|| {
        send_logs_to_tracing(LogOptions::default());
        LlamaBackend::init().ok()
    });
    backend.as_ref().ok_or_else(|| engine_error("another part of this program has initialised llama.cpp"))
}

/// An error of this engine, in words.
pub(crate) fn engine_error(reason: impl fmt::Display) -> ModelError {
    ModelErrorKind::Engine(format!("llama.cpp: {reason}")).into()
}

/// Does `work`, and returns with what it gives the first error that llama.cpp logs meanwhile: its functions
/// say only that they failed. Its errors are not in the log then.
pub(crate) fn with_reason<T>(work: impl FnOnce() -> T) -> (T, Option<String>) {
    let reason = Arc::new(Mutex::new(None));
    let outer = dispatcher::get_default(Dispatch::clone);
    let inner = Dispatch::new(Listener { outer, reason: Arc::clone(&reason) });
    let done = dispatcher::with_default(&inner, work);
    let reason = reason.lock().unwrap_or_else(PoisonError::into_inner).take();
    (done, reason)
}

/// Keeps the first error of llama.cpp to itself, and passes other events on.
struct Listener {
    outer: Dispatch,
    reason: Arc<Mutex<Option<String>>>,
}

fn is_complaint(metadata: &Metadata<'_>) -> bool {
    metadata.target() == TARGET && *metadata.level() == Level::ERROR
}

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        is_complaint(metadata) || self.outer.enabled(metadata)
    }

    fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
        self.outer.new_span(span)
    }

    fn record(&self, span: &span::Id, values: &span::Record<'_>) {
        self.outer.record(span, values);
    }

    fn record_follows_from(&self, span: &span::Id, follows: &span::Id) {
        self.outer.record_follows_from(span, follows);
    }

    fn event(&self, event: &Event<'_>) {
        if is_complaint(event.metadata()) {
            let mut reason = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
            event.record(&mut Message(reason.get_or_insert_default()));
        } else {
            self.outer.event(event);
        }
    }

    fn enter(&self, span: &span::Id) {
        self.outer.enter(span);
    }

    fn exit(&self, span: &span::Id) {
        self.outer.exit(span);
    }

    fn clone_span(&self, id: &span::Id) -> span::Id {
        self.outer.clone_span(id)
    }

    fn try_close(&self, id: span::Id) -> bool {
        self.outer.try_close(id)
    }
}

/// The message of an event, if there is none yet.
struct Message<'a>(&'a mut String);

impl Visit for Message<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" && self.0.is_empty() {
            *self.0 = format!("{value:?}");
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" && self.0.is_empty() {
            value.trim().clone_into(self.0);
        }
    }
}

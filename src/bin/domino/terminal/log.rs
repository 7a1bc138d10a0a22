//! Events of the library on standard error: warnings in the program's own manner, or all that `RUST_LOG` asks
//! for; of a server also its requests, where that is wanted, as text or as JSON.

use std::{env, fmt, io};

use clap::ValueEnum;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::{EnvFilter, fmt::format::Writer, registry::LookupSpan};

use crate::terminal::failure::{self, Paint};

/// The filter of events if `RUST_LOG` is not set.
const DEFAULT: &str = "error,domino=warn";

/// The target of a server's lines about its requests.
pub(crate) const ACCESS: &str = "domino::access";

/// The format of a server's log of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    Off,
    Text,
    Json,
}

/// Shows events from now on, and requests where that is wanted.
pub(crate) fn install(requests: LogFormat) {
    let paint = Paint::for_stderr();
    let asked = env::var("RUST_LOG").ok().filter(|asked| !asked.is_empty());
    let usual = if failure::is_quiet() { "error" } else { DEFAULT };
    let filter = match (&asked, requests) {
        (Some(_), LogFormat::Off) => EnvFilter::from_default_env(),
        (None, LogFormat::Off) => EnvFilter::new(usual),
        (asked, _) => EnvFilter::new(format!("{},{ACCESS}=info", asked.as_deref().unwrap_or(usual))),
    };
    let subscriber = tracing_subscriber::fmt().with_writer(io::stderr).with_env_filter(filter);
    match (asked, requests) {
        (_, LogFormat::Json) => subscriber.with_ansi(false).event_format(EventForm { paint: None }).init(),
        (Some(_), _) => subscriber.with_ansi(paint.is_on()).init(),
        (None, _) => {
            let form = EventForm { paint: Some(paint) };
            subscriber.with_ansi(paint.is_on()).event_format(form).init();
        }
    }
}

/// A format of events: `warning: ` and the message, as errors are told; or a JSON object a line, with `time`,
/// `level`, `target`, `message`, the event's fields, and `in` for what it is a part of, such as a request.
struct EventForm {
    /// The painter of text; `None` for JSON.
    paint: Option<Paint>,
}

impl<S, N> FormatEvent<S, N> for EventForm
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        if let Some(paint) = self.paint {
            let word = match *event.metadata().level() {
                Level::ERROR => paint.red("error:"),
                Level::INFO => paint.green("request:"),
                _ => paint.cyan("warning:"),
            };
            write!(writer, "{word} ")?;
            context.format_fields(writer.by_ref(), event)?;
            return writeln!(writer);
        }
        let mut time = String::new();
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        let level = event.metadata().level().as_str().to_ascii_lowercase();
        let mut fields = Fields(Map::from_iter([
            ("time".to_owned(), time.into()),
            ("level".to_owned(), level.into()),
            ("target".to_owned(), event.metadata().target().into()),
        ]));
        event.record(&mut fields);
        let spans = context.event_scope().into_iter().flat_map(|scope| scope.from_root());
        let within: Vec<String> = spans
            .filter_map(|span| Some(span.extensions().get::<FormattedFields<N>>()?.fields.clone()))
            .filter(|within| !within.is_empty())
            .collect();
        if !within.is_empty() {
            fields.0.insert("in".to_owned(), within.join(" ").into());
        }
        writeln!(writer, "{}", Value::Object(fields.0))
    }
}

/// An event's fields as JSON.
struct Fields(Map<String, Value>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// The memory that lines go to.
    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn logged_events_are_json_objects_whatever_they_contain() {
        let sink = Sink::default();
        let writer = sink.clone();
        let json = EventForm { paint: None };
        let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone()).event_format(json);
        tracing::subscriber::with_default(subscriber.finish(), || {
            let span = tracing::error_span!("request", id = "r-1");
            span.in_scope(
                || tracing::warn!(path = %"/a\"\n", tokens = 3, seconds = 0.5, cut = true, "a\u{1}b"),
            );
            tracing::info!(target: ACCESS, "alone");
        });
        let text = String::from_utf8(sink.0.lock().unwrap().clone()).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert_eq!((&lines[0]["level"], &lines[0]["message"]), (&"warn".into(), &"a\u{1}b".into()));
        assert_eq!((&lines[0]["path"], &lines[0]["tokens"]), (&"/a\"\n".into(), &3.into()));
        assert_eq!((&lines[0]["seconds"], &lines[0]["cut"]), (&0.5.into(), &true.into()));
        assert!(lines[0]["in"].as_str().unwrap().contains("r-1"), "{text}");
        assert_eq!((&lines[1]["target"], &lines[1]["message"]), (&ACCESS.into(), &"alone".into()));
        assert!(lines.iter().all(|line| line["time"].as_str().unwrap().ends_with('Z')), "{text}");
    }
}

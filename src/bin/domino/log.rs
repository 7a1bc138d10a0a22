//! Events of the library on standard error: warnings in the program's own manner, or all that `RUST_LOG` asks
//! for.

use std::{env, fmt, io};

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::{
    EnvFilter,
    fmt::{FmtContext, FormatEvent, FormatFields, format::Writer},
    registry::LookupSpan,
};

use crate::failure::{self, Paint};

/// The filter of events if `RUST_LOG` is not set.
const DEFAULT: &str = "error,domino=warn";

/// Shows events from now on.
pub(crate) fn install() {
    let paint = Paint::for_stderr();
    let asked = env::var("RUST_LOG").ok().filter(|asked| !asked.is_empty());
    let usual = if failure::is_quiet() { "error" } else { DEFAULT };
    let subscriber = tracing_subscriber::fmt().with_writer(io::stderr).with_ansi(paint.is_on());
    match asked {
        Some(_) => subscriber.with_env_filter(EnvFilter::from_default_env()).init(),
        None => subscriber.with_env_filter(EnvFilter::new(usual)).event_format(Plain { paint }).init(),
    }
}

/// A format of events: `warning: ` and the message, as errors are told.
struct Plain {
    paint: Paint,
}

impl<S, N> FormatEvent<S, N> for Plain
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
        let word = match *event.metadata().level() {
            Level::ERROR => self.paint.red("error:"),
            _ => self.paint.cyan("warning:"),
        };
        write!(writer, "{word} ")?;
        context.format_fields(writer.by_ref(), event)?;
        writeln!(writer)
    }
}

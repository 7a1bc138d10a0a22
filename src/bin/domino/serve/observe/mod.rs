//! Makes requests visible to the server's operators: each has an id, a caller's own (`x-request-id`) or a new
//! one, which every answer has too, and a line in the log when its answer has ended (`--log`). All are
//! counted ([`metrics`]).

pub(crate) mod metrics;

use std::sync::{Arc, OnceLock, atomic::AtomicU64, atomic::Ordering};
use std::{fmt, hash::BuildHasher, hash::RandomState, pin::Pin, task::Context, task::Poll, time::Instant};

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::{body::Body, body::Bytes, body::HttpBody, response::Response};
use hyper::body::{Frame, SizeHint};

use super::access::Caller;
use crate::terminal::log::ACCESS;

/// Facts about a request that its head tells.
#[derive(Debug)]
pub(crate) struct LogEntry {
    pub(crate) id: RequestId,
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) begun: Instant,
}

/// A line of the log; dropping it writes it.
#[derive(Debug)]
struct LogLine {
    entry: LogEntry,
    caller: Caller,
    status: StatusCode,
    bytes: usize,
    ended: bool,
}

impl LogEntry {
    /// Has the line written when the answer has ended, or its caller gone.
    pub(crate) fn follow(self, response: Response) -> Response {
        let caller = Caller::of(response.extensions());
        let ended = response.body().is_end_stream();
        let line = LogLine { entry: self, caller, status: response.status(), bytes: 0, ended };
        response.map(|body| Body::new(Followed { body, line }))
    }
}

impl Drop for LogLine {
    fn drop(&mut self) {
        let Self { entry, caller, status, bytes, ended } = self;
        tracing::info!(
            target: ACCESS,
            id = %entry.id,
            caller = %caller,
            method = %entry.method,
            path = %entry.path,
            status = status.as_u16(),
            seconds = entry.begun.elapsed().as_secs_f64(),
            bytes = *bytes,
            cut = !*ended,
            "request"
        );
    }
}

/// The body of an answer, with its line.
struct Followed {
    body: Body,
    line: LogLine,
}

impl HttpBody for Followed {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                self.line.bytes += frame.data_ref().map_or(0, Bytes::len);
                self.line.ended = self.body.is_end_stream();
            }
            Poll::Ready(None) => self.line.ended = true,
            Poll::Ready(Some(Err(_))) | Poll::Pending => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The header, of requests and answers.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Longest id that is taken over from a caller, in bytes.
const MOST_BYTES: usize = 128;

/// The id of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestId(Arc<str>);

impl RequestId {
    /// Takes the caller's id if a log can hold it as it is (letters, digits and `-_.:/+=@`), or makes a new
    /// one.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let given = headers.get(REQUEST_ID).and_then(|value| value.to_str().ok());
        given.filter(|given| is_plain(given)).map_or_else(Self::new, |given| Self(given.into()))
    }

    /// Makes an id that no other request has.
    fn new() -> Self {
        static KEYS: OnceLock<(RandomState, AtomicU64)> = OnceLock::new();
        let (keys, number) = KEYS.get_or_init(|| (RandomState::new(), AtomicU64::new(0)));
        let number = number.fetch_add(1, Ordering::Relaxed);
        // The number keeps the ids of one server apart, the random hash those of several servers.
        Self(format!("req-{:016x}{number:08x}", keys.hash_one(number)).into())
    }

    /// Puts it into the headers of an answer.
    pub(crate) fn tell(&self, headers: &mut HeaderMap) {
        if let Ok(value) = HeaderValue::from_str(&self.0) {
            headers.insert(REQUEST_ID, value);
        }
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_plain(id: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:/+=@".contains(&byte);
    (1..=MOST_BYTES).contains(&id.len()) && id.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: &str) -> String {
        let headers = HeaderMap::from_iter([(REQUEST_ID, HeaderValue::from_str(value).unwrap())]);
        RequestId::of(&headers).to_string()
    }

    #[test]
    fn request_ids_of_callers_are_taken_if_they_are_plain() {
        for plain in ["a", "3f2c-11", "req_7", "a/b:c+d=@", &"a".repeat(MOST_BYTES)] {
            assert_eq!(of(plain), plain);
            let mut headers = HeaderMap::new();
            RequestId(plain.into()).tell(&mut headers);
            assert_eq!(headers[REQUEST_ID], plain);
        }
        for other in ["", " ", "a b", "a\"b", "a\tb", "{}", "a\\", "<a>", &"a".repeat(MOST_BYTES + 1)] {
            assert!(of(other).starts_with("req-"), "{other}");
        }
        let latin = HeaderMap::from_iter([(REQUEST_ID, HeaderValue::from_bytes(b"\xe4").unwrap())]);
        assert!(RequestId::of(&latin).to_string().starts_with("req-"));
    }

    #[test]
    fn new_request_ids_are_distinct() {
        let ids: std::collections::HashSet<String> =
            (0..1000).map(|_| RequestId::of(&HeaderMap::new()).to_string()).collect();
        assert_eq!(ids.len(), 1000);
        assert!(ids.iter().all(|id| is_plain(id)));
    }
}

//! Writes a line to the log for each request when its answer has ended (`--log`).

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Instant,
};

use axum::{
    body::{Body, Bytes, HttpBody},
    http::{Method, StatusCode},
    response::Response,
};
use hyper::body::{Frame, SizeHint};

use super::{super::access::caller::Caller, request_id::RequestId};
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

//! Heads of requests: their bounds, and the answers to those that hyper refuses.
//!
//! A head that is too large, or no HTTP, never becomes a request: hyper answers it with a bare status, after
//! all answers before it, and ends the connection. A [`ToldStream`] lies between hyper and the peer and puts
//! an error object into such an answer when it is written. So hyper's bounds and order hold for heads of all
//! kinds: pipelined, slow, without end.

use std::{
    io,
    net::IpAddr,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::http::{HeaderMap, StatusCode};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

use super::super::{
    access::caller::Caller,
    observe::{
        access_log,
        request_id::{REQUEST_ID, RequestId},
    },
    problem::Problem,
};

/// Largest head of a request, in bytes; past it, and what is read at once more (at most as much again), the
/// answer is 431.
pub(super) const MOST_HEAD: usize = 64 << 10;

/// Most headers of a request; past them the answer is 431.
pub(super) const MOST_HEADERS: usize = 100;

/// Time for which bytes of a peer are read and forgotten after its head was refused. Closing a connection
/// with unread bytes resets it, and the peer might not get the answer.
const HEAR_OUT: Duration = Duration::from_secs(2);

/// Bytes that are forgotten at a time.
const PIECE: usize = 4 << 10;

/// The statuses of answers that hyper gives by itself.
const REFUSALS: [StatusCode; 3] =
    [StatusCode::BAD_REQUEST, StatusCode::URI_TOO_LONG, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE];

/// Beginning of an answer.
const MARK: &[u8] = b"HTTP/1.";

/// The stream of a connection, in which hyper's bare refusals become answers in the server's own form.
pub(super) struct ToldStream<S> {
    stream: S,
    peer: IpAddr,
    /// The last answer of the connection, if it is a refusal of hyper's.
    refusal: Option<ToldAnswer>,
}

/// An answer in the place of a bare one.
struct ToldAnswer {
    bytes: Vec<u8>,
    /// Bytes of it that are written.
    written: usize,
    /// The time until which the peer is heard out; `None` before all is written.
    until: Option<Pin<Box<Sleep>>>,
}

/// An answer that hyper gives by itself: a status and no body.
struct BareAnswer<'a> {
    /// Offset in what hyper writes.
    at: usize,
    status: StatusCode,
    /// Lines of the head, without the empty one at the end.
    head: &'a str,
}

impl<S> ToldStream<S> {
    /// The stream to `peer`.
    pub(super) fn new(stream: S, peer: IpAddr) -> Self {
        Self { stream, peer, refusal: None }
    }
}

impl<'a> BareAnswer<'a> {
    /// Finds a bare answer at the end of what hyper writes. It has no headers but those that hyper adds to
    /// all answers. One of the server's own cannot be taken for it: an error of its own has a body, and in
    /// bodies, which are JSON, no line ends by a carriage return.
    fn at_end_of(written: &'a [u8]) -> Option<Self> {
        let lines = written.strip_suffix(b"\r\n\r\n")?;
        let at = lines.windows(MARK.len()).rposition(|window| window == MARK)?;
        let head = str::from_utf8(&lines[at..]).ok()?;
        let mut lines = head.split("\r\n");
        let status: StatusCode = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let is_plain = |line: &str| {
            let name = line.split_once(": ").map(|(name, _)| name);
            matches!(name, Some("connection" | "date")) || line == "content-length: 0"
        };
        (REFUSALS.contains(&status) && lines.all(is_plain)).then_some(Self { at, status, head })
    }
}

impl ToldAnswer {
    /// Makes the answer that takes the place of `bare`, and writes its line to the log.
    fn new(bare: &BareAnswer<'_>, peer: IpAddr) -> Self {
        let id = RequestId::of(&HeaderMap::new());
        let body = Problem::head(bare.status, MOST_HEAD, MOST_HEADERS).to_json().to_string();
        access_log::head_refused(&id, &Caller::at(peer), bare.status, body.len());
        let is_kept = |line: &&str| !line.starts_with("connection:") && !line.starts_with("content-length:");
        let kept = bare.head.split("\r\n").filter(is_kept).map(str::to_owned);
        let added = [
            "connection: close".to_owned(),
            "content-type: application/json".to_owned(),
            format!("content-length: {}", body.len()),
            format!("{REQUEST_ID}: {id}"),
            String::new(),
            body,
        ];
        let lines: Vec<String> = kept.chain(added).collect();
        Self { bytes: lines.join("\r\n").into_bytes(), written: 0, until: None }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ToldStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

/// Writes are not vectored, so that hyper gives all that waits to be written as one piece: a bare answer is
/// then whole, and at the end.
impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for ToldStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        if this.refusal.is_none()
            && let Some(bare) = BareAnswer::at_end_of(bytes)
        {
            if bare.at > 0 {
                // The answers before it stay as they are.
                return Pin::new(&mut this.stream).poll_write(context, &bytes[..bare.at]);
            }
            this.refusal = Some(ToldAnswer::new(&bare, this.peer));
        }
        let Some(refusal) = &mut this.refusal else {
            return Pin::new(&mut this.stream).poll_write(context, bytes);
        };
        while refusal.written < refusal.bytes.len() {
            let rest = &refusal.bytes[refusal.written..];
            match ready!(Pin::new(&mut this.stream).poll_write(context, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => refusal.written += count,
            }
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let Some(refusal) = &mut this.refusal else {
            return Pin::new(&mut this.stream).poll_shutdown(context);
        };
        if refusal.until.is_none() {
            // The peer sees the end of the answer before its own bytes are heard out.
            ready!(Pin::new(&mut this.stream).poll_shutdown(context))?;
        }
        let until = refusal.until.get_or_insert_with(|| Box::pin(sleep(HEAR_OUT)));
        while until.as_mut().poll(context).is_pending() {
            let mut piece = [0; PIECE];
            let mut piece = ReadBuf::new(&mut piece);
            match ready!(Pin::new(&mut this.stream).poll_read(context, &mut piece)) {
                Ok(()) if !piece.filled().is_empty() => {}
                // Nothing more comes.
                _ => break,
            }
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests;

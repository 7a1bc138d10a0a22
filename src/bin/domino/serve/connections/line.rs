//! Tracks for each connection whether a request is being answered on it, or since when it is idle.

use std::{
    convert::Infallible,
    net::IpAddr,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll},
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::{Body, Bytes, HttpBody},
    extract::Request,
    response::Response,
};
use hyper::{body::Frame, body::Incoming, body::SizeHint, service::Service};
use hyper_util::service::TowerToHyperService;
use tokio::sync::{Notify, watch};

/// Facts about the connection of a request.
#[derive(Debug, Clone)]
pub(crate) struct PeerVisit {
    /// Address of the other end.
    pub(crate) peer: IpAddr,
    /// Turns true when the server ends.
    pub(crate) closing: watch::Receiver<bool>,
}

/// All connections.
#[derive(Debug, Default)]
pub(crate) struct ConnectionLines {
    open: Mutex<Vec<Weak<ConnectionLine>>>,
    ended: Notify,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct ConnectionLine {
    /// Time since which the connection is idle. `None`: something is being answered.
    quiet: watch::Sender<Option<Instant>>,
    drop: Notify,
    lines: Arc<ConnectionLines>,
}

impl ConnectionLines {
    /// A new connection.
    pub(crate) fn open(self: &Arc<Self>) -> Arc<ConnectionLine> {
        let quiet = watch::Sender::new(Some(Instant::now()));
        let line = Arc::new(ConnectionLine { quiet, drop: Notify::new(), lines: Arc::clone(self) });
        self.lock().push(Arc::downgrade(&line));
        line
    }

    /// Number of open connections.
    pub(crate) fn count(&self) -> usize {
        let mut open = self.lock();
        open.retain(|line| line.strong_count() > 0);
        open.len()
    }

    /// Drops the connection that is idle for longest. Returns false if all of them wait for an answer.
    pub(crate) fn drop_quietest(&self) -> bool {
        let mut open = self.lock();
        let quiet = |(index, line): (usize, &Weak<ConnectionLine>)| {
            let line = line.upgrade()?;
            let since = *line.quiet.borrow();
            Some((since?, index, line))
        };
        let quietest = open.iter().enumerate().filter_map(quiet).min_by_key(|(since, ..)| *since);
        let Some((_, index, line)) = quietest else { return false };
        open.swap_remove(index);
        drop(open);
        line.drop.notify_one();
        true
    }

    /// Waits until no connection is open.
    pub(crate) async fn all_ended(&self) {
        loop {
            let ended = self.ended.notified();
            tokio::pin!(ended);
            ended.as_mut().enable();
            if self.count() == 0 {
                return;
            }
            ended.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<ConnectionLine>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionLine {
    /// Waits until it has to make room.
    pub(crate) async fn dropped(&self) {
        self.drop.notified().await;
    }

    /// Waits until nothing has been answered on it for `time`.
    pub(crate) async fn quiet_for(&self, time: Duration) {
        let mut quiet = self.quiet.subscribe();
        loop {
            let since = *quiet.borrow_and_update();
            let changed = quiet.changed();
            match since {
                None => {
                    // The sender cannot be gone: this connection owns it.
                    let _ = changed.await;
                }
                // The time counts anew, not since the idling began: a late request may still be on its way.
                Some(_) => {
                    if tokio::time::timeout(time, changed).await.is_err() {
                        return;
                    }
                }
            }
        }
    }
}

impl Drop for ConnectionLine {
    fn drop(&mut self) {
        self.lines.ended.notify_waiters();
    }
}

/// Something that is being answered on a connection.
#[derive(Debug)]
struct Answering(Arc<ConnectionLine>);

impl Answering {
    fn on(line: &Arc<ConnectionLine>) -> Self {
        line.quiet.send_replace(None);
        Self(Arc::clone(line))
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.quiet.send_replace(Some(Instant::now()));
    }
}

/// The server's routes as a service for one connection.
pub(super) struct OnLine {
    pub(super) router: Router,
    pub(super) line: Arc<ConnectionLine>,
    pub(super) visit: PeerVisit,
}

impl Service<Request<Incoming>> for OnLine {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        request.extensions_mut().insert(self.visit.clone());
        let answering = Answering::on(&self.line);
        let answer = TowerToHyperService::new(self.router.clone()).call(request);
        Box::pin(async move {
            let response: Response = answer.await?;
            Ok(response.map(|body| Body::new(TrackedAnswer { body, _answering: answering })))
        })
    }
}

/// The body of an answer; the answering ends when it is dropped.
struct TrackedAnswer {
    body: Body,
    _answering: Answering,
}

impl HttpBody for TrackedAnswer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

//! Connections: accepts them, and drops those whose requests do not come.
//!
//! As `axum::serve`, but with bounds. The head of a request must come in time: without that, clients that
//! send a byte now and then (slow loris) hold connections for ever. There is a bound on how many connections
//! there are, and where it is reached, the one on which nothing has been asked for longest makes room: of
//! each is known whether a request is being answered on it, or since when it is idle. At the end of the
//! server only those are waited for that are being answered: half a head is not. Heads that cannot be read
//! are hyper's to answer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::{convert::Infallible, net::IpAddr, pin::Pin, time::Duration, time::Instant};

use axum::{Router, body::Body, body::Bytes, body::HttpBody, extract::Request, response::Response};
use hyper::{body::Frame, body::Incoming, body::SizeHint, server::conn::http1, service::Service};
use hyper_util::{rt::TokioIo, rt::TokioTimer, service::TowerToHyperService};
use tokio::{net::TcpListener, net::TcpStream, sync::Notify, sync::watch};

/// Largest head of a request, in bytes; past it, and what is read at once more (at most as much again), the
/// answer is 431.
const MOST_HEAD: usize = 64 << 10;

/// Most headers of a request; past them the answer is 431.
const MOST_HEADERS: usize = 100;

/// Time for which an idle connection is kept when the server ends, so that the end of an answer is sent.
const LINGER: Duration = Duration::from_millis(500);

/// Pause after the system gave no connection, as when all file descriptors are used up.
const PAUSE: Duration = Duration::from_millis(50);

/// Bounds on the number and the slowness of connections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionBounds {
    /// Longest time for the head of a request, from the opening of the connection or the last answer's end.
    pub(crate) patience: Duration,
    /// Most connections at once.
    pub(crate) most: usize,
}

/// The connections of a server that takes no more.
#[derive(Debug)]
pub(crate) struct Connections {
    lines: Arc<ConnectionLines>,
    closing: watch::Sender<bool>,
}

/// Serves whoever comes until `end`. Returns the connections that are still open, which take no further
/// request once they are shut down.
pub(crate) async fn accept(
    listener: TcpListener,
    router: Router,
    bounds: ConnectionBounds,
    end: impl Future<Output = ()>,
) -> Connections {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(bounds.patience);
    http.max_buf_size(MOST_HEAD).max_headers(MOST_HEADERS);
    let connections = Connections { lines: Arc::default(), closing: watch::Sender::new(false) };
    tokio::pin!(end);
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut end => return connections,
            accepted = listener.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!("a connection cannot be accepted: {error}");
                connections.lines.drop_quietest();
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        if connections.lines.count() >= bounds.most && !connections.lines.drop_quietest() {
            tracing::debug!("a connection of {peer} is refused: all {} are being answered", bounds.most);
            continue;
        }
        let line = connections.lines.open();
        let visit = PeerVisit { peer: peer.ip(), closing: connections.closing.subscribe() };
        tokio::spawn(hold(http.clone(), stream, router.clone(), line, visit));
    }
}

/// Holds a connection until it ends, has to make room, or the server ends.
async fn hold(
    http: http1::Builder,
    stream: TcpStream,
    router: Router,
    line: Arc<ConnectionLine>,
    visit: PeerVisit,
) {
    let mut closing = visit.closing.clone();
    let service = OnLine { router, line: Arc::clone(&line), visit };
    let connection = http.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let closed = async move {
        // Whoever could say it being gone is an end too.
        let _ = closing.wait_for(|closing| *closing).await;
    };
    tokio::select! {
        ended = connection.as_mut() => return tell(ended),
        () = line.dropped() => return,
        () = closed => {}
    }
    connection.as_mut().graceful_shutdown();
    tokio::select! {
        ended = connection.as_mut() => tell(ended),
        () = line.dropped() => {}
        () = line.quiet_for(LINGER) => {}
    }
}

fn tell(ended: hyper::Result<()>) {
    if let Err(error) = ended {
        tracing::debug!("a connection ended: {error}");
    }
}

impl Connections {
    /// Waits until all that is being answered is, and ends all other connections. From now on nothing that
    /// has not come as a whole is waited for.
    pub(crate) async fn shutdown(self) {
        self.closing.send_replace(true);
        self.lines.all_ended().await;
    }
}

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
struct ConnectionLines {
    open: Mutex<Vec<Weak<ConnectionLine>>>,
    ended: Notify,
}

/// One connection.
#[derive(Debug)]
struct ConnectionLine {
    /// Time since which the connection is idle. `None`: something is being answered.
    quiet: watch::Sender<Option<Instant>>,
    drop: Notify,
    lines: Arc<ConnectionLines>,
}

impl ConnectionLines {
    /// A new connection.
    fn open(self: &Arc<Self>) -> Arc<ConnectionLine> {
        let quiet = watch::Sender::new(Some(Instant::now()));
        let line = Arc::new(ConnectionLine { quiet, drop: Notify::new(), lines: Arc::clone(self) });
        self.lock().push(Arc::downgrade(&line));
        line
    }

    /// Number of open connections.
    fn count(&self) -> usize {
        let mut open = self.lock();
        open.retain(|line| line.strong_count() > 0);
        open.len()
    }

    /// Drops the connection that is idle for longest. Returns false if all of them wait for an answer.
    fn drop_quietest(&self) -> bool {
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
    async fn all_ended(&self) {
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
    async fn dropped(&self) {
        self.drop.notified().await;
    }

    /// Waits until nothing has been answered on it for `time`.
    async fn quiet_for(&self, time: Duration) {
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
struct OnLine {
    router: Router,
    line: Arc<ConnectionLine>,
    visit: PeerVisit,
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

#[cfg(test)]
mod tests;

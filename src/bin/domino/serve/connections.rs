//! Connections: accepts them, and drops those whose requests do not come.
//!
//! As `axum::serve`, but with bounds. The head of a request must come in time: without that, clients that
//! send a byte now and then (slow loris) hold connections for ever. There is a bound on how many connections
//! there are, and where it is reached, the one on which nothing has been asked for longest makes room. At the
//! end of the server only those are waited for that are being answered: half a head is not. Heads that cannot
//! be read are hyper's to answer.

mod line;

use std::{sync::Arc, time::Duration};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
};

pub(crate) use line::PeerVisit;
use line::{ConnectionLine, ConnectionLines, OnLine};

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

#[cfg(test)]
mod tests;

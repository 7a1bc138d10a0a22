//! Connections: accepts them, and drops those whose requests do not come.
//!
//! As `axum::serve`, but with a limit on the time in which the head of a request must come: without one,
//! clients that send a byte now and then (slow loris) hold connections for ever.

use std::time::Duration;

use axum::{Router, serve::Listener};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
    service::TowerToHyperService,
};
use tokio::net::TcpListener;

/// Serves whoever comes until `end`. The head of a request must come within `patience` from when the
/// connection was made or the last answer ended. Returns the connections that are still open, which take no
/// further request once they are shut down.
pub(crate) async fn accept(
    mut listener: TcpListener,
    router: Router,
    patience: Duration,
    end: impl Future<Output = ()>,
) -> GracefulShutdown {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(patience);
    let connections = GracefulShutdown::new();
    tokio::pin!(end);
    loop {
        let (stream, _) = tokio::select! {
            biased;
            () = &mut end => return connections,
            accepted = Listener::accept(&mut listener) => accepted,
        };
        let service = TowerToHyperService::new(router.clone());
        let connection = connections.watch(http.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!("a connection ended: {error}");
            }
        });
    }
}

//! Connections over the loopback device, with a router of their own.

use std::{io::Read, io::Write, net::TcpStream, time::Instant};

use axum::{extract::Request, routing::get, routing::post};
use tokio::sync::Notify;

use super::*;

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(200);

/// A server that ends when told.
struct TestServer {
    address: std::net::SocketAddr,
    end: Arc<Notify>,
    /// Lets `/slow` answer.
    go: Arc<Notify>,
    ended: tokio::task::JoinHandle<Duration>,
}

async fn serve(patience: Duration, most: usize) -> TestServer {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (end, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let slow = Arc::clone(&go);
    let answer = move || {
        let slow = Arc::clone(&slow);
        async move {
            slow.notified().await;
            "slow"
        }
    };
    let peer = async |request: Request| request.extensions().get::<PeerVisit>().unwrap().peer.to_string();
    let body = async |body: String| body;
    let router = Router::new().route("/", get(peer)).route("/slow", get(answer)).route("/body", post(body));
    let waits = Arc::clone(&end);
    let ended = tokio::spawn(async move {
        let bounds = ConnectionBounds { patience, most };
        let connections = accept(listener, router, bounds, async move { waits.notified().await }).await;
        let begun = Instant::now();
        connections.shutdown().await;
        begun.elapsed()
    });
    TestServer { address, end, go, ended }
}

impl TestServer {
    fn open(&self, text: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        stream
    }
}

fn rest(stream: &mut TcpStream) -> String {
    let (mut text, begun) = (Vec::new(), Instant::now());
    // A reset is an end too.
    let _ = stream.read_to_end(&mut text);
    assert!(begun.elapsed() < LONG, "it is held");
    String::from_utf8(text).unwrap()
}

const HALF: &str = "GET / HTTP/1.1\r\nHost: a\r\nX-Half";
const CLOSE: &str = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

#[tokio::test(flavor = "multi_thread")]
async fn requests_know_the_address_of_their_client() {
    let served = serve(LONG, 10).await;
    let said = rest(&mut served.open(CLOSE));
    assert!(said.starts_with("HTTP/1.1 200") && said.ends_with("\r\n\r\n127.0.0.1"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn shutting_down_waits_for_no_unfinished_head() {
    let served = serve(LONG, 10).await;
    let mut halves = Vec::new();
    for text in [HALF, "", "G", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: a\r\n"] {
        halves.push(served.open(text));
    }
    // One that has been answered and is kept, and one that is being answered.
    let mut kept = served.open("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut some = [0; 12];
    kept.read_exact(&mut some).unwrap();
    let mut slow = served.open("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
    tokio::time::sleep(SHORT).await;
    served.end.notify_one();
    for half in &mut halves {
        assert_eq!(rest(half), "");
    }
    // Longer than half a head is waited for.
    tokio::time::sleep(LINGER * 2).await;
    assert!(!served.ended.is_finished(), "what is being answered is not waited for");
    served.go.notify_one();
    let said = rest(&mut slow);
    assert!(said.ends_with("slow"), "{said}");
    let took = served.ended.await.unwrap();
    assert!(took < LONG / 4, "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_quietest_connection_makes_room() {
    let served = serve(LONG, 2).await;
    let mut slow = served.open("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
    tokio::time::sleep(SHORT).await;
    let mut half = served.open(HALF);
    tokio::time::sleep(SHORT).await;
    // Those who hold connections and ask for nothing do not keep others out.
    let said = rest(&mut served.open(CLOSE));
    assert!(said.starts_with("HTTP/1.1 200"), "{said}");
    assert_eq!(rest(&mut half), "");
    served.go.notify_one();
    let mut some = [0; 12];
    slow.read_exact(&mut some).unwrap();
    assert_eq!(&some, b"HTTP/1.1 200");
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_past_the_bound_are_closed_if_all_others_are_busy() {
    let served = serve(LONG, 1).await;
    let mut slow = served.open("GET /slow HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    tokio::time::sleep(SHORT).await;
    assert_eq!(rest(&mut served.open(CLOSE)), "");
    served.go.notify_one();
    assert!(rest(&mut slow).ends_with("slow"));
    let mut said = String::new();
    // The connection before is gone a moment after its last byte.
    for _ in 0..50 {
        said = rest(&mut served.open(CLOSE));
        if !said.is_empty() {
            break;
        }
        tokio::time::sleep(SHORT / 10).await;
    }
    assert!(said.starts_with("HTTP/1.1 200"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn heads_have_bounds_in_time_and_size() {
    let served = serve(SHORT, 100).await;
    for text in ["", "G", HALF] {
        assert_eq!(rest(&mut served.open(text)), "");
    }
    let served = serve(LONG, 100).await;
    let many = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: a\r\n".repeat(MOST_HEADERS));
    let said = rest(&mut served.open(&many));
    assert!(said.starts_with("HTTP/1.1 431"), "{said}");
    let said = rest(&mut served.open(CLOSE));
    assert!(said.starts_with("HTTP/1.1 200"), "{said}");
}

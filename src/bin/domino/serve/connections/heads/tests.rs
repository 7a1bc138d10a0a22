//! What hyper may write, to a peer that takes a few bytes at a time.

use std::task::Waker;

use proptest::prelude::*;
use serde_json::Value;

use super::*;

/// An answer that hyper gives by itself.
const BARE: &str = "HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: \
                    0\r\ndate: Thu, 01 Jan 2026 00:00:00 GMT\r\n\r\n";

/// A peer that accepts at most `most` bytes in one write, and sends nothing.
struct Narrow {
    taken: Vec<u8>,
    most: usize,
}

impl AsyncRead for Narrow {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Narrow {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let count = bytes.len().min(self.most);
        self.taken.extend_from_slice(&bytes[..count]);
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Writes `text` as hyper does; returns what the peer gets.
fn sent(text: &str, most: usize) -> String {
    let mut stream = ToldStream::new(Narrow { taken: Vec::new(), most }, [127, 0, 0, 1].into());
    let mut context = Context::from_waker(Waker::noop());
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        match Pin::new(&mut stream).poll_write(&mut context, rest) {
            Poll::Ready(Ok(count @ 1..)) => rest = &rest[count..],
            other => panic!("{other:?}"),
        }
    }
    assert!(matches!(Pin::new(&mut stream).poll_flush(&mut context), Poll::Ready(Ok(()))));
    String::from_utf8(stream.stream.taken).unwrap()
}

/// Reads the error code out of an answer, and checks that the answer is complete.
fn told(answer: &str) -> String {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let lines: Vec<&str> = head.split("\r\n").collect();
    let length = format!("content-length: {}", body.len());
    for line in [length.as_str(), "connection: close", "content-type: application/json"] {
        assert_eq!(lines.iter().filter(|found| *found == &line).count(), 1, "{line} in {answer}");
    }
    assert!(lines.iter().any(|line| line.starts_with("x-request-id: req-")), "{answer}");
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["error"]["type"], "invalid_request_error", "{answer}");
    body["error"]["code"].as_str().unwrap().to_owned()
}

#[test]
fn bare_answers_get_a_body() {
    for (status, code) in [
        ("HTTP/1.1 400 Bad Request", "invalid_head"),
        ("HTTP/1.0 400 Bad Request", "invalid_head"),
        ("HTTP/1.1 414 URI Too Long", "address_too_long"),
        ("HTTP/1.1 431 Request Header Fields Too Large", "head_too_large"),
    ] {
        for headers in [
            "connection: close\r\ncontent-length: 0\r\ndate: Thu, 01 Jan 2026 00:00:00 GMT\r\n",
            "content-length: 0\r\ndate: Thu, 01 Jan 2026 00:00:00 GMT\r\n",
            "content-length: 0\r\n",
        ] {
            let answer = sent(&format!("{status}\r\n{headers}\r\n"), usize::MAX);
            assert!(answer.starts_with(&format!("{status}\r\n")), "{answer}");
            assert_eq!(answer.contains("date: Thu"), headers.contains("date: Thu"), "{answer}");
            assert_eq!(told(&answer), code);
        }
    }
}

#[test]
fn answers_of_the_server_itself_stay_as_they_are() {
    let event = "data: {\"text\": \"HTTP/1.1 431 Request Header Fields Too Large\"}\n\n";
    for text in [
        "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 400 Bad Request\r\nx-request-id: a\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 2\r\n\r\n{}",
        "HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 40\r\n\r\n",
        &format!("{:x}\r\n{event}\r\n0\r\n\r\n", event.len()),
        &format!("{BARE}{{}}"),
        BARE.trim_end(),
        "\r\n\r\n",
        "HTTP/1.\r\n\r\n",
    ] {
        for most in [1, 5, usize::MAX] {
            assert_eq!(sent(text, most), text);
        }
    }
}

proptest! {
    /// Replaces a bare answer at the end by an error object, and leaves all bytes before it as they are.
    #[test]
    fn only_the_last_answer_is_told(
        before in prop::collection::vec(
            prop::sample::select(vec![
                "HTTP/1.1 200 OK\r\n", "HTTP/1.1 400 Bad Request\r\n", "content-length: 0\r\n", "\r\n", "{}",
                "0\r\n\r\n", "\u{e9}", "date: x\r\n", BARE,
            ]),
            0..8,
        ),
        most in 1_usize..300,
    ) {
        let before = before.concat();
        let answers = sent(&format!("{before}{BARE}"), most);
        prop_assert!(answers.starts_with(&before), "{}", answers);
        prop_assert_eq!(told(&answers[before.len()..]), "head_too_large");
    }
}

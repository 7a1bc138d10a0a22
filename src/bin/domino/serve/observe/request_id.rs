//! Ids of requests: a caller's own (`x-request-id`) or new ones. Every answer has the id of its request.

use std::{
    fmt,
    hash::{BuildHasher, RandomState},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use axum::http::{HeaderMap, HeaderName, HeaderValue};

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

//! Checks who calls the server: the names it answers to, and the web pages that may use it.
//!
//! DNS rebinding lets a page of any site reach a server on loopback: the site's name is made to resolve to
//! 127.0.0.1, and the browser then takes the server for a part of the site. Its requests still carry that
//! name as `Host`, and as `Origin` the page's address. So a server on loopback answers only to names of
//! loopback, and only to pages that were loaded from there or that `--allow-origin` names. CORS headers let
//! the same pages read the answers.

use std::{net::IpAddr, time::Duration};

use axum::{
    extract::Request,
    http::{
        HeaderMap, HeaderName, HeaderValue, Method, Uri, Version,
        header::{CONTENT_TYPE, HOST, ORIGIN, RETRY_AFTER},
        request::Parts,
        uri::Authority,
    },
};
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};

use super::super::problem::Problem;
use crate::terminal::failure::BadInput;

/// Time for which a browser need not ask again whether a page may send something.
const PREFLIGHT_AGE: Duration = Duration::from_secs(600);

/// The names and pages that are served.
#[derive(Debug, Clone)]
pub(crate) struct Visitors {
    /// Can the server be reached by loopback only?
    on_loopback: bool,
    /// Origins beside those of loopback, in lower case.
    origins: Vec<String>,
    /// The hosts of these origins, which a proxy in front of the server may pass on.
    hosts: Vec<String>,
}

impl Visitors {
    /// Makes the rules of a server that listens on `address` and lets pages of `origins` use it.
    pub(crate) fn new(address: IpAddr, origins: &[String]) -> Result<Self, BadInput> {
        let mut hosts = Vec::new();
        for origin in origins {
            let host = host_of_origin(origin).filter(|_| !origin.contains('*')).ok_or_else(|| {
                BadInput::new(format!("--allow-origin: {origin:?} is no origin")).hint(
                    "an origin has a scheme, a host and perhaps a port, and no path: https://example.com",
                )
            })?;
            hosts.push(host);
        }
        let origins = origins.iter().map(|origin| origin.to_ascii_lowercase()).collect();
        Ok(Self { on_loopback: is_loopback(address), origins, hosts })
    }

    /// Refuses a request that a page of another site may have made.
    pub(crate) fn admit(&self, request: &Request) -> Result<(), Problem> {
        let headers = request.headers();
        if request.version() == Version::HTTP_11 && headers.get_all(HOST).iter().count() != 1 {
            return Err(Problem::bad_request("invalid_host", "a request must have one `Host`"));
        }
        if !self.on_loopback {
            return Ok(());
        }
        // A target with a host of its own (`GET http://host/path`) stands for `Host`.
        let target = request.uri().authority().map(Authority::as_str);
        let named = headers.get_all(HOST).iter().map(text).chain(target);
        for host in named {
            if !self.answers_to(host) {
                let names = "on loopback it answers to localhost, 127.0.0.1 and [::1]";
                let message = format!("this server is not called {host:?}; {names}");
                return Err(Problem::forbidden("forbidden_host", message));
            }
        }
        match headers.get_all(ORIGIN).iter().find(|origin| !self.allows(origin)) {
            None => Ok(()),
            Some(origin) => {
                let message = format!(
                    "pages of {:?} may not use this server (`domino serve --allow-origin`)",
                    text(origin)
                );
                Err(Problem::forbidden("forbidden_origin", message))
            }
        }
    }

    /// Lets the browser show answers to the pages that may use the server. These may send any header: the
    /// official client for browsers sends a dozen of its own (`x-stainless-..`), and others with each
    /// version.
    pub(crate) fn cors(&self) -> CorsLayer {
        let visitors = self.clone();
        let allowed = move |origin: &HeaderValue, _: &Parts| visitors.allows(origin);
        CorsLayer::new()
            .allow_methods([Method::GET, Method::POST])
            .allow_headers(AllowHeaders::mirror_request())
            .allow_origin(AllowOrigin::predicate(allowed))
            .expose_headers([RETRY_AFTER, HeaderName::from_static("x-request-id")])
            .max_age(PREFLIGHT_AGE)
    }

    /// May pages of this origin use the server?
    fn allows(&self, origin: &HeaderValue) -> bool {
        let origin = text(origin).to_ascii_lowercase();
        let web = origin.starts_with("http://") || origin.starts_with("https://");
        web && host_of_origin(&origin).is_some_and(|host| is_loopback_name(&host))
            || self.origins.contains(&origin)
    }

    /// Is this `Host` a name of the server?
    fn answers_to(&self, host: &str) -> bool {
        host_of(host).is_some_and(|host| is_loopback_name(&host) || self.hosts.contains(&host))
    }
}

/// The text of a header; empty, which no header that matters may be, if it is not ASCII.
fn text(value: &HeaderValue) -> &str {
    value.to_str().unwrap_or_default()
}

/// The host of `host[:port]`, in lower case.
fn host_of(authority: &str) -> Option<String> {
    let authority: Authority = authority.parse().ok()?;
    let named = !authority.host().is_empty() && !authority.as_str().contains('@');
    named.then(|| authority.host().to_ascii_lowercase())
}

/// The host of `scheme://host[:port]`, in lower case; nothing if it is another text.
fn host_of_origin(origin: &str) -> Option<String> {
    let uri: Uri = origin.parse().ok()?;
    let (scheme, authority) = (uri.scheme_str()?, uri.authority()?);
    // Nothing may follow the authority, not even the slash that a parsed URI always has.
    let whole = origin.len() == scheme.len() + "://".len() + authority.as_str().len();
    host_of(authority.as_str()).filter(|_| whole)
}

fn is_loopback_name(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse();
    host == "localhost" || address.is_ok_and(is_loopback)
}

/// True for an address of loopback, also for one of IPv4 that is written as IPv6.
fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// Is the body said to be JSON? Pages of other sites can say so only with the browser's leave (CORS).
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).map_or("", text).split(';').next().unwrap_or_default();
    kind.trim().eq_ignore_ascii_case("application/json")
}

#[cfg(test)]
mod tests;

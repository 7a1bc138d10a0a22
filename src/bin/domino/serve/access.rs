//! Decides who may call: checks the names that the server answers to and the web pages that may use it
//! ([`Visitors`]), and tells callers apart by the key that a request has ([`ApiKeys`]) or else by its address
//! ([`Caller`]).
//!
//! DNS rebinding lets a page of any site reach a server on loopback: the site's name is made to resolve to
//! 127.0.0.1, and the browser then takes the server for a part of the site. Its requests still carry that
//! name as `Host`, and as `Origin` the page's address. So a server on loopback answers only to names of
//! loopback, and only to pages that were loaded from there or that `--allow-origin` names. CORS headers let
//! the same pages read the answers.
//!
//! API keys are one of the command line, and those of a file, which can be changed while the server runs.
//! Invariant: how long a comparison takes says nothing about a key. Hashes are compared, in constant time,
//! and always those of all keys.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::{
    fmt, fs, io, net::IpAddr, net::Ipv6Addr, path::Path, path::PathBuf, time::Duration, time::Instant,
};

use axum::extract::Request;
use axum::http::{
    Extensions, HeaderMap, HeaderName, HeaderValue, Method, Uri, Version, header::AUTHORIZATION,
    header::CONTENT_TYPE, header::HOST, header::ORIGIN, header::RETRY_AFTER, request::Parts, uri::Authority,
};
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};

use super::problem::Problem;
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

/// Least time between two looks at the file of keys.
const LOOK: Duration = Duration::from_secs(1);

/// Largest file of keys, in bytes.
const MOST_BYTES: u64 = 1 << 20;

/// The name of the key that the command line gives.
const FIXED_NAME: &str = "api-key";

const HINT: &str = "--api-keys takes a file with a name and a key on each line, `alice 9f86d081884c7d65`; # \
                    begins a comment";

/// One key. Only its hash is kept.
#[derive(Debug, Clone)]
struct NamedKey {
    name: Arc<str>,
    hash: blake3::Hash,
}

impl NamedKey {
    fn new(name: &str, key: &str) -> Self {
        Self { name: name.into(), hash: blake3::hash(key.as_bytes()) }
    }
}

/// The keys that clients may have.
#[derive(Debug, Default)]
pub(crate) struct ApiKeys {
    fixed: Option<NamedKey>,
    file: Option<KeyFile>,
}

#[derive(Debug)]
struct KeyFile {
    path: PathBuf,
    read: Mutex<ReadKeys>,
    /// Least time between two looks at the file.
    look: Duration,
}

/// The keys of a file as they were last read.
#[derive(Debug)]
struct ReadKeys {
    looked: Instant,
    /// Hash of the whole file at the last look, usable or not. `None`: the file could not be read.
    text: Option<blake3::Hash>,
    keys: Arc<[NamedKey]>,
}

impl ApiKeys {
    /// The key `fixed`, and those in `file`. Without either nobody is asked for a key.
    ///
    /// # Errors
    /// If the key is empty, or the file cannot be read or used.
    pub(crate) fn new(fixed: Option<&str>, file: Option<&Path>) -> Result<Self, BadInput> {
        if fixed.is_some_and(|key| key.trim().is_empty()) {
            return Err(BadInput::new("the API key is empty")
                .hint("give --api-key (or DOMINO_API_KEY) a value, or leave it out"));
        }
        let file = file.map(|path| KeyFile::open(path, LOOK)).transpose()?;
        Ok(Self { fixed: fixed.map(|key| NamedKey::new(FIXED_NAME, key.trim())), file })
    }

    /// Must a client have a key?
    pub(crate) fn are_needed(&self) -> bool {
        self.fixed.is_some() || self.file.is_some()
    }

    /// Looks at the file now, whenever that was done last, and says so in the log.
    pub(crate) fn look_now(&self) {
        match &self.file {
            Some(file) => {
                tracing::warn!("SIGHUP: {} is looked at", file.path.display());
                file.look_now();
            }
            None => tracing::warn!("SIGHUP: there is no file of API keys to look at, and nothing changes"),
        }
    }

    /// Returns the name of the key that a request has. `None`: no key is asked for.
    ///
    /// # Errors
    /// If there is no key where one is needed, or a wrong one.
    pub(crate) fn admit(&self, headers: &HeaderMap) -> Result<Option<Arc<str>>, Problem> {
        if !self.are_needed() {
            return Ok(None);
        }
        let given = blake3::hash(given(headers).unwrap_or_default().as_bytes());
        let listed = self.file.as_ref().map(KeyFile::keys);
        let known = self.fixed.iter().chain(listed.iter().flat_map(|keys| keys.iter()));
        // All of them are compared: stopping at the right one would tell which it is.
        let right = known.fold(None, |right, key| if key.hash == given { Some(&key.name) } else { right });
        right.map(|name| Some(Arc::clone(name))).ok_or_else(Problem::unauthorized)
    }
}

/// The key in `Authorization: Bearer KEY`, or in `x-api-key`, as clients of the Messages API send it. The
/// scheme may have any case (RFC 9110, 11.1).
fn given(headers: &HeaderMap) -> Option<&str> {
    if let Some(key) = headers.get("x-api-key") {
        return key.to_str().ok().map(str::trim);
    }
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?.trim();
    let (scheme, key) = value.split_once([' ', '\t'])?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

impl KeyFile {
    fn open(path: &Path, look: Duration) -> Result<Self, BadInput> {
        let bad = |message: String| BadInput::new(format!("{}: {message}", path.display())).hint(HINT);
        let text = read(path).map_err(|error| bad(error.to_string()))?;
        let keys = parse(&text).map_err(bad)?;
        warn_of_readers(path);
        let text = Some(blake3::hash(text.as_bytes()));
        let read = Mutex::new(ReadKeys { looked: Instant::now(), text, keys: keys.into() });
        Ok(Self { path: path.to_owned(), read, look })
    }

    /// The keys that are in the file now, or were when it was looked at in the last second. A file that
    /// cannot be used any more leaves the keys as they were, and is logged once.
    fn keys(&self) -> Arc<[NamedKey]> {
        let mut last = self.lock();
        if last.looked.elapsed() >= self.look {
            last.looked = Instant::now();
            self.look_again(&mut last);
        }
        Arc::clone(&last.keys)
    }

    fn look_now(&self) {
        let mut last = self.lock();
        last.looked = Instant::now();
        self.look_again(&mut last);
    }

    fn look_again(&self, last: &mut ReadKeys) {
        let text = read(&self.path);
        let hash = text.as_ref().ok().map(|text| blake3::hash(text.as_bytes()));
        if hash == last.text {
            return;
        }
        last.text = hash;
        match text.map_err(|error| error.to_string()).and_then(|text| parse(&text)) {
            Ok(keys) => {
                tracing::warn!("{}: {} API keys are valid from now on", self.path.display(), keys.len());
                last.keys = keys.into();
            }
            Err(error) => {
                tracing::error!("{}: {error}; the keys from before stay valid", self.path.display());
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, ReadKeys> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(path: &Path) -> io::Result<String> {
    let length = fs::metadata(path)?.len();
    if length > MOST_BYTES {
        return Err(io::Error::other(format!("it has {length} bytes; {MOST_BYTES} are allowed")));
    }
    fs::read_to_string(path)
}

/// Reads a name and a key from each line.
fn parse(text: &str) -> Result<Vec<NamedKey>, String> {
    let mut keys: Vec<NamedKey> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, key] = words[..] else {
            return Err(format!("line {number} has {} words instead of a name and a key", words.len()));
        };
        let key = NamedKey::new(name, key);
        if name == FIXED_NAME || keys.iter().any(|known| *known.name == *name) {
            return Err(format!("line {number}: the name {name:?} is taken"));
        }
        if let Some(known) = keys.iter().find(|known| known.hash == key.hash) {
            return Err(format!("line {number}: {name:?} has the key of {:?}", known.name));
        }
        keys.push(key);
    }
    match keys.is_empty() {
        true => Err("there is no key in it".to_owned()),
        false => Ok(keys),
    }
}

/// Says that others on this machine can read the keys.
fn warn_of_readers(path: &Path) {
    #[cfg(unix)]
    if let Ok(about) = fs::metadata(path)
        && std::os::unix::fs::PermissionsExt::mode(&about.permissions()) & 0o007 != 0
    {
        tracing::warn!("{}: everybody on this machine can read the keys; chmod o= it", path.display());
    }
}

/// The client that sent a request. All who share a key are one client; where no key is asked for, all who
/// share an address are.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Caller {
    /// A client with the key of this name.
    Key(Arc<str>),
    /// A client without a key that calls from this address. Of IPv6 only the first 64 bits count, since that
    /// is what one subscriber gets.
    Address(IpAddr),
    /// The server itself, or a caller whose address the system does not tell.
    Unknown,
}

impl Caller {
    /// A client without a key at `address`.
    pub(crate) fn at(address: IpAddr) -> Self {
        Self::Address(match address.to_canonical() {
            IpAddr::V6(whole) => {
                let [a, b, c, d, ..] = whole.segments();
                IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
            }
            v4 @ IpAddr::V4(_) => v4,
        })
    }

    /// A number of 64 bits that stands for the caller in caches and turns; the same while the program runs. 0
    /// is the server itself.
    pub(crate) fn number(&self) -> u64 {
        if *self == Self::Unknown {
            return 0;
        }
        static KEYS: OnceLock<RandomState> = OnceLock::new();
        KEYS.get_or_init(RandomState::new).hash_one(self)
    }

    /// Returns a name that lasts from run to run; `None` for the server itself and for those whom nothing
    /// tells apart.
    pub(crate) fn lasting(&self) -> Option<String> {
        (*self != Self::Unknown).then(|| self.to_string())
    }

    /// The caller of a request, which the layer that asks for keys has put there.
    pub(crate) fn of(extensions: &Extensions) -> Self {
        extensions.get::<Self>().cloned().unwrap_or(Self::Unknown)
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(name) => write!(f, "key {name}"),
            Self::Address(address) => write!(f, "{address}"),
            Self::Unknown => f.write_str("unknown"),
        }
    }
}

#[cfg(test)]
mod tests;

//! API keys: one of the command line, and those of a file, which can be changed while the server runs.
//!
//! Invariant: how long a comparison takes says nothing about a key. Hashes are compared, in constant time,
//! and always those of all keys.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use axum::http::{HeaderMap, header::AUTHORIZATION};

use super::super::problem::Problem;
use crate::terminal::failure::BadInput;

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

/// The key in `Authorization: Bearer KEY`. The scheme may have any case (RFC 9110, 11.1).
fn given(headers: &HeaderMap) -> Option<&str> {
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

#[cfg(test)]
mod tests;

//! The seal in front of a payload: its kind, writer, key and length, and a checksum of it all.
//!
//! Layout, numbers little-endian: magic (8 bytes), format of the seal (u32), kind (u32), version of the
//! library (20 bytes of text, zeros after it), revision of the kind (u32), key (32), length of the payload
//! (u64), BLAKE3 of all before and of the payload (32), payload to the end of the file.
//!
//! The checksum finds accidents. It does not prove who wrote a file: readers check what a payload means.

use super::error::{StoreError, StoreErrorKind};

/// Magic number: no text has it, and reading it as text breaks it.
const MAGIC: [u8; 8] = *b"\x89domino\n";
/// Raise when the layout above changes.
const FORMAT: u32 = 1;
const VERSION: &str = env!("CARGO_PKG_VERSION");
const VERSION_BYTES: usize = 20;
const _: () = assert!(VERSION.len() <= VERSION_BYTES);

const FORMAT_AT: usize = 8;
const KIND_AT: usize = 12;
const VERSION_AT: usize = 16;
const REVISION_AT: usize = 36;
const KEY_AT: usize = 40;
const LENGTH_AT: usize = 72;
const CHECKSUM_AT: usize = 80;
/// Number of bytes in front of a payload.
pub(super) const SEAL_BYTES: usize = 112;

/// The kind of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Tokens, their bytes and the order of the trie.
    Vocabulary,
    /// The effects of tokens on one terminal.
    TerminalTables,
    /// All subterminal trees of a grammar.
    Trees,
    /// Counts of tokens by context.
    Prior,
}

impl Kind {
    /// The kind's name in file names and messages: small letters and hyphens.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Vocabulary => "vocabulary",
            Self::TerminalTables => "terminal-tables",
            Self::Trees => "trees",
            Self::Prior => "prior",
        }
    }

    /// Revision of a kind. Raise it when what its payload says or means changes, also when only the code that
    /// computes it does, so that older files are not taken for new ones.
    const fn revision(self) -> u32 {
        match self {
            Self::Vocabulary | Self::TerminalTables | Self::Prior => 1,
            // Children come before their parents.
            Self::Trees => 2,
        }
    }

    const fn code(self) -> u32 {
        match self {
            Self::Vocabulary => 1,
            Self::TerminalTables => 2,
            Self::Trees => 3,
            Self::Prior => 4,
        }
    }
}

/// A hash of what a payload was made from: equal keys, equal payloads.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PayloadKey([u8; 32]);

impl PayloadKey {
    /// Hashes these parts by BLAKE3, each with its length, so that no two lists of parts are alike. About 1
    /// ms for 2 MB.
    pub(crate) fn of(parts: &[&[u8]]) -> Self {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
        }
        Self(*hasher.finalize().as_bytes())
    }

    /// Formats the key as 64 hexadecimal digits.
    pub(crate) fn hex(&self) -> String {
        blake3::Hash::from_bytes(self.0).to_hex().to_string()
    }
}

impl std::fmt::Debug for PayloadKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.hex())
    }
}

/// Formats the version of the library and the revision of a kind, as people read them.
fn stamp(version: &[u8], revision: &[u8]) -> String {
    let version = String::from_utf8_lossy(version);
    let revision = revision.try_into().map_or(0, u32::from_le_bytes);
    format!("{}, revision {revision}", version.trim_end_matches('\0'))
}

/// Seals a payload into a file. One pass over it, about 1 ms for 2 MB.
pub(crate) fn seal(kind: Kind, key: &PayloadKey, payload: &[u8]) -> Vec<u8> {
    let mut file = Vec::with_capacity(SEAL_BYTES + payload.len());
    file.extend_from_slice(&MAGIC);
    file.extend_from_slice(&FORMAT.to_le_bytes());
    file.extend_from_slice(&kind.code().to_le_bytes());
    file.extend_from_slice(VERSION.as_bytes());
    file.resize(REVISION_AT, 0);
    file.extend_from_slice(&kind.revision().to_le_bytes());
    file.extend_from_slice(&key.0);
    file.extend_from_slice(&(payload.len() as u64).to_le_bytes());
    let checksum = checksum(&file, payload);
    file.extend_from_slice(&checksum);
    file.extend_from_slice(payload);
    file
}

fn checksum(head: &[u8], payload: &[u8]) -> [u8; 32] {
    *blake3::Hasher::new().update(head).update(payload).finalize().as_bytes()
}

/// Returns the payload of a file that must be of this kind and key. One pass over it, about 1 ms for 2 MB.
///
/// # Errors
/// All kinds of [`StoreErrorKind`] but `Malformed`, in this order: not ours, another format, cut or damaged,
/// another kind, another version, another key.
pub(crate) fn open<'a>(file: &'a [u8], kind: Kind, key: &PayloadKey) -> Result<&'a [u8], StoreError> {
    let fail = |kind| Err(StoreError::new(kind));
    let magic = &file[..file.len().min(MAGIC.len())];
    if magic.is_empty() || !MAGIC.starts_with(magic) {
        return fail(StoreErrorKind::NotOurs);
    }
    if file.len() < SEAL_BYTES {
        return fail(StoreErrorKind::Truncated);
    }
    let (head, payload) = file.split_at(SEAL_BYTES);
    if head[FORMAT_AT..KIND_AT] != FORMAT.to_le_bytes() {
        let found = head[FORMAT_AT..KIND_AT].try_into().map_or(0, u32::from_le_bytes);
        return fail(StoreErrorKind::Version {
            found: format!("file format {found}"),
            ours: format!("file format {FORMAT}"),
        });
    }
    let length = head[LENGTH_AT..CHECKSUM_AT].try_into().map_or(0, u64::from_le_bytes);
    if (payload.len() as u64) < length {
        return fail(StoreErrorKind::Truncated);
    }
    if payload.len() as u64 > length || head[CHECKSUM_AT..] != checksum(&head[..CHECKSUM_AT], payload) {
        return fail(StoreErrorKind::Damaged);
    }
    if head[KIND_AT..VERSION_AT] != kind.code().to_le_bytes() {
        return fail(StoreErrorKind::Kind);
    }
    let found = stamp(&head[VERSION_AT..REVISION_AT], &head[REVISION_AT..KEY_AT]);
    let ours = stamp(VERSION.as_bytes(), &kind.revision().to_le_bytes());
    if found != ours {
        return fail(StoreErrorKind::Version { found, ours });
    }
    if head[KEY_AT..LENGTH_AT] != key.0 {
        return fail(StoreErrorKind::Key);
    }
    Ok(payload)
}

/// Sets the length and the checksum of a file to match its payload, so that tests can show readers payloads
/// that nobody wrote. A file too short for a seal stays as it is.
#[cfg(feature = "oracle")]
#[doc(hidden)]
#[must_use]
pub fn resealed(mut file: Vec<u8>) -> Vec<u8> {
    if let Some((head, payload)) = file.split_at_mut_checked(SEAL_BYTES) {
        head[LENGTH_AT..CHECKSUM_AT].copy_from_slice(&(payload.len() as u64).to_le_bytes());
        let checksum = checksum(&head[..CHECKSUM_AT], payload);
        head[CHECKSUM_AT..].copy_from_slice(&checksum);
    }
    file
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KINDS: [Kind; 4] = [Kind::Vocabulary, Kind::TerminalTables, Kind::Trees, Kind::Prior];

    fn key(text: &str) -> PayloadKey {
        PayloadKey::of(&[text.as_bytes()])
    }

    fn kind(file: &[u8]) -> StoreErrorKind {
        open(file, Kind::Trees, &key("a")).unwrap_err().kind().clone()
    }

    /// Returns `file` with `bytes` at `at`, and a checksum that fits.
    fn resealed(mut file: Vec<u8>, at: usize, bytes: &[u8]) -> Vec<u8> {
        file[at..at + bytes.len()].copy_from_slice(bytes);
        let checksum = checksum(&file[..CHECKSUM_AT], &file[SEAL_BYTES..]);
        file[CHECKSUM_AT..SEAL_BYTES].copy_from_slice(&checksum);
        file
    }

    #[test]
    fn sealed_payloads_are_opened_again() {
        for kind in KINDS {
            for payload in [&b""[..], b"payload"] {
                assert_eq!(open(&seal(kind, &key("a"), payload), kind, &key("a")), Ok(payload));
            }
        }
    }

    #[test]
    fn each_damage_of_a_seal_has_its_error() {
        let file = seal(Kind::Trees, &key("a"), b"payload");
        assert_eq!(file.len(), SEAL_BYTES + 7);
        assert_eq!(kind(b""), StoreErrorKind::NotOurs);
        assert_eq!(kind(b"{\"model\":{}}"), StoreErrorKind::NotOurs);
        assert_eq!(kind(&file[..5]), StoreErrorKind::Truncated);
        assert_eq!(kind(&file[..SEAL_BYTES - 1]), StoreErrorKind::Truncated);
        assert_eq!(kind(&file[..file.len() - 1]), StoreErrorKind::Truncated);
        assert_eq!(kind(&[&file[..], b"x"].concat()), StoreErrorKind::Damaged);
        assert_eq!(kind(&seal(Kind::Vocabulary, &key("a"), b"")), StoreErrorKind::Kind);
        assert_eq!(kind(&resealed(file.clone(), KIND_AT, &[99])), StoreErrorKind::Kind);
        assert_eq!(kind(&seal(Kind::Trees, &key("b"), b"")), StoreErrorKind::Key);
        for (at, bytes) in [(FORMAT_AT, &[9][..]), (VERSION_AT, b"9.9.9"), (REVISION_AT, &[200])] {
            let StoreErrorKind::Version { found, ours } = kind(&resealed(file.clone(), at, bytes)) else {
                panic!("at {at}");
            };
            assert_ne!(found, ours);
        }
    }

    #[test]
    fn keys_of_different_parts_differ() {
        assert_ne!(PayloadKey::of(&[b"ab", b"c"]), PayloadKey::of(&[b"a", b"bc"]));
        assert_ne!(PayloadKey::of(&[b"a"]), PayloadKey::of(&[b"a", b""]));
        assert_eq!(PayloadKey::of(&[b"a"]), key("a"));
        assert_eq!(key("a").hex().len(), 64);
    }

    proptest! {
        /// A file that was changed anywhere, cut or prolonged is not opened.
        #[test]
        fn a_changed_file_is_never_opened(
            payload in prop::collection::vec(any::<u8>(), 0..200),
            place in any::<prop::sample::Index>(),
            flip in 1..=u8::MAX,
            cut in any::<prop::sample::Index>(),
            more in prop::collection::vec(any::<u8>(), 1..20),
        ) {
            let key = key("a");
            let file = seal(Kind::Trees, &key, &payload);
            prop_assert_eq!(open(&file, Kind::Trees, &key), Ok(&payload[..]));
            let mut flipped = file.clone();
            flipped[place.index(file.len())] ^= flip;
            prop_assert!(open(&flipped, Kind::Trees, &key).is_err());
            prop_assert!(open(&file[..cut.index(file.len())], Kind::Trees, &key).is_err());
            prop_assert!(open(&[&file[..], &more].concat(), Kind::Trees, &key).is_err());
        }

        #[test]
        fn random_files_are_not_opened(file in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(open(&file, Kind::Trees, &key("a")).is_err());
            let headed = [&MAGIC[..], &FORMAT.to_le_bytes(), &file].concat();
            prop_assert!(open(&headed, Kind::Trees, &key("a")).is_err());
        }
    }
}

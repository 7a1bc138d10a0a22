//! The seal in front of a payload: its kind, writer, key and length, and a checksum of it all.
//!
//! Layout, numbers little-endian: magic (8 bytes), format of the seal (u32), kind (u32), version of the
//! library (20 bytes of text, zeros after it), revision of the kind (u32), key (32), length of the payload
//! (u64), BLAKE3 of all before and of the payload (32), payload to the end of the file.
//!
//! The checksum finds accidents. It does not prove who wrote a file: readers check what a payload means.

use std::fmt;

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
pub enum Kind {
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
    pub const fn name(self) -> &'static str {
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
pub struct PayloadKey([u8; 32]);

impl PayloadKey {
    /// Hashes these parts by BLAKE3, each with its length, so that no two lists of parts are alike. About 1
    /// ms for 2 MB.
    pub fn of(parts: &[&[u8]]) -> Self {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
        }
        Self(*hasher.finalize().as_bytes())
    }

    /// Formats the key as 64 hexadecimal digits.
    pub fn hex(&self) -> String {
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
pub fn seal(kind: Kind, key: &PayloadKey, payload: &[u8]) -> Vec<u8> {
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
pub fn open<'a>(file: &'a [u8], kind: Kind, key: &PayloadKey) -> Result<&'a [u8], StoreError> {
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

// Payloads are numbers and lists of them, little-endian, every list with its length in front.
//
// Invariant: a [`PayloadReader`] never goes past its end, and takes no more memory than a small multiple of
// the bytes that are there, whatever they say.

/// Writes a payload. Infallible, as it grows.
#[derive(Debug, Default)]
pub struct PayloadWriter {
    bytes: Vec<u8>,
}

impl PayloadWriter {
    /// Creates a writer with room for this many bytes, so that writing them moves nothing.
    pub fn with_capacity(bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes) }
    }

    /// Writes a byte.
    pub fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    /// Writes four bytes.
    pub fn u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Writes eight bytes.
    pub fn u64(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Writes the length of a list that follows; [`PayloadReader::count`] reads it. Eight bytes.
    pub fn count(&mut self, count: usize) {
        self.u64(count as u64);
    }

    /// Writes bytes with their length.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.bytes.extend_from_slice(bytes);
    }

    /// Writes a text with its length in bytes.
    pub fn str(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// Writes numbers with their count. A copy on little-endian machines.
    pub fn u32s(&mut self, values: impl ExactSizeIterator<Item = u32>) {
        self.count(values.len());
        self.bytes.reserve(4 * values.len());
        for value in values {
            self.u32(value);
        }
    }

    /// Writes numbers with their count. A copy on little-endian machines.
    pub fn u64s(&mut self, values: impl ExactSizeIterator<Item = u64>) {
        self.count(values.len());
        self.bytes.reserve(8 * values.len());
        for value in values {
            self.u64(value);
        }
    }

    /// Returns all that was written.
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

/// Reads the output of a [`PayloadWriter`], in the same order. Every method fails with `Truncated` past the
/// end.
#[derive(Debug, Clone)]
pub struct PayloadReader<'a> {
    rest: &'a [u8],
}

impl<'a> PayloadReader<'a> {
    /// Reads `payload` from its start.
    pub fn new(payload: &'a [u8]) -> Self {
        Self { rest: payload }
    }

    /// Returns all that is still to be read.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], StoreError> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or_else(truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], StoreError> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or_else(truncated)?;
        self.rest = rest;
        Ok(*taken)
    }

    /// Reads a byte.
    pub fn u8(&mut self) -> Result<u8, StoreError> {
        self.array().map(u8::from_le_bytes)
    }

    /// Reads four bytes.
    pub fn u32(&mut self) -> Result<u32, StoreError> {
        self.array().map(u32::from_le_bytes)
    }

    /// Reads eight bytes.
    pub fn u64(&mut self) -> Result<u64, StoreError> {
        self.array().map(u64::from_le_bytes)
    }

    /// Reads the length of a list whose items take at least `item_bytes` (at least 1) each: never more than
    /// can follow, so that memory may be set aside for it.
    pub fn count(&mut self, item_bytes: usize) -> Result<usize, StoreError> {
        let count = usize::try_from(self.u64()?).map_err(|_| truncated())?;
        if count > self.rest.len() / item_bytes.max(1) { Err(truncated()) } else { Ok(count) }
    }

    /// Reads bytes with their length, in place.
    pub fn bytes(&mut self) -> Result<&'a [u8], StoreError> {
        let length = self.count(1)?;
        self.take(length)
    }

    /// Reads a text with its length in bytes, in place.
    ///
    /// # Errors
    /// Also if it is not UTF-8.
    pub fn str(&mut self) -> Result<&'a str, StoreError> {
        std::str::from_utf8(self.bytes()?).map_err(|_| StoreError::malformed("a text that is not UTF-8"))
    }

    /// Reads numbers with their count, in place.
    pub fn u32s_in_place(
        &mut self,
    ) -> Result<impl ExactSizeIterator<Item = u32> + Clone + use<'a>, StoreError> {
        let count = self.count(4)?;
        let (items, _) = self.take(4 * count)?.as_chunks();
        Ok(items.iter().map(|item| u32::from_le_bytes(*item)))
    }

    /// Reads numbers with their count. A copy on little-endian machines.
    pub fn u32s(&mut self) -> Result<Vec<u32>, StoreError> {
        Ok(self.u32s_in_place()?.collect())
    }

    /// Reads numbers with their count. A copy on little-endian machines.
    pub fn u64s(&mut self) -> Result<Vec<u64>, StoreError> {
        let count = self.count(8)?;
        let (items, _) = self.take(8 * count)?.as_chunks();
        Ok(items.iter().map(|item| u64::from_le_bytes(*item)).collect())
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// If something is left.
    pub fn finish(self) -> Result<(), StoreError> {
        if self.rest.is_empty() { Ok(()) } else { Err(StoreError::malformed("more than was expected")) }
    }
}

fn truncated() -> StoreError {
    StoreError::new(StoreErrorKind::Truncated)
}

/// Kinds of [`StoreError`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// The file is not of this library.
    NotOurs,
    /// Written by another version of this library.
    Version {
        /// The version that wrote it.
        found: String,
        /// The version that this is.
        ours: String,
    },
    /// The file holds something else, such as trees where a vocabulary was expected.
    Kind,
    /// The file was made for another grammar, another vocabulary or other options.
    Key,
    /// The file ends too early.
    Truncated,
    /// The checksum is wrong, or the file goes on past its end.
    Damaged,
    /// The seal is whole, but the contents make no sense; holds the fault.
    Malformed(&'static str),
}

/// A file of this library that cannot be used. Nothing is lost but time: all such files can be made again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreError {
    kind: StoreErrorKind,
}

impl StoreError {
    pub(super) fn new(kind: StoreErrorKind) -> Self {
        Self { kind }
    }

    /// Creates the error of a payload that makes no sense: `what`, such as "a token past the end".
    pub fn malformed(what: &'static str) -> Self {
        Self::new(StoreErrorKind::Malformed(what))
    }

    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> &StoreErrorKind {
        &self.kind
    }

    /// Advice.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self.kind {
            StoreErrorKind::NotOurs | StoreErrorKind::Kind => "name another file, or make this one again",
            StoreErrorKind::Key => "make it again for this grammar, vocabulary and options",
            _ => "make it again; in a cache folder that happens by itself",
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            StoreErrorKind::NotOurs => f.write_str("not a file written by domino"),
            StoreErrorKind::Version { found, ours } => {
                write!(f, "written by another version of domino: {found}, and this is {ours}")
            }
            StoreErrorKind::Kind => f.write_str("holds something else"),
            StoreErrorKind::Key => {
                f.write_str("made for another grammar, another vocabulary or other options")
            }
            StoreErrorKind::Truncated => f.write_str("ends too early"),
            StoreErrorKind::Damaged => f.write_str("damaged: its checksum is wrong"),
            StoreErrorKind::Malformed(what) => write!(f, "makes no sense: {what}"),
        }
    }
}

impl std::error::Error for StoreError {}

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

#[cfg(test)]
mod codec_tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn written_payloads_are_read_back() {
        let mut writer = PayloadWriter::default();
        writer.u8(7);
        writer.u32(u32::MAX - 1);
        writer.u64(u64::MAX - 2);
        writer.count(2);
        writer.bytes(b"\xff\x00");
        writer.str("né");
        writer.u32s([1, 2, u32::MAX].into_iter());
        writer.u64s([u64::MAX, 0].into_iter());
        writer.u32s(std::iter::empty());
        let payload = writer.finish();
        let mut reader = PayloadReader::new(&payload);
        assert_eq!(reader.u8(), Ok(7));
        assert_eq!(reader.u32(), Ok(u32::MAX - 1));
        assert_eq!(reader.u64(), Ok(u64::MAX - 2));
        assert_eq!(reader.count(1), Ok(2));
        assert_eq!(reader.bytes(), Ok(&b"\xff\x00"[..]));
        assert_eq!(reader.str(), Ok("né"));
        assert_eq!(reader.u32s(), Ok(vec![1, 2, u32::MAX]));
        assert_eq!(reader.u64s(), Ok(vec![u64::MAX, 0]));
        assert_eq!(reader.u32s(), Ok(Vec::new()));
        assert_eq!(reader.rest(), b"");
        assert_eq!(reader.clone().finish(), Ok(()));
        assert_eq!(reader.u8().unwrap_err().kind(), &StoreErrorKind::Truncated);
    }

    #[test]
    fn lengths_past_the_end_are_errors() {
        for length in [4, 1 << 20, 1 << 40, u64::MAX / 8 + 1, u64::MAX] {
            let mut writer = PayloadWriter::default();
            writer.u64(length);
            writer.bytes.extend_from_slice(b"abc");
            let payload = writer.finish();
            let reader = || PayloadReader::new(&payload);
            assert!(reader().bytes().is_err() && reader().str().is_err(), "{length}");
            assert!(reader().u32s().is_err() && reader().u64s().is_err(), "{length}");
            assert!(reader().count(1).is_err(), "{length}");
        }
        let mut writer = PayloadWriter::default();
        writer.bytes(b"\xff");
        writer.u8(0);
        let payload = writer.finish();
        let mut reader = PayloadReader::new(&payload);
        assert!(matches!(reader.str().unwrap_err().kind(), StoreErrorKind::Malformed(_)));
        assert!(matches!(reader.finish().unwrap_err().kind(), StoreErrorKind::Malformed(_)));
    }

    proptest! {
        /// Any calls on any bytes end in values no larger than the bytes.
        #[test]
        fn random_payloads_are_read_or_refused(
            noise in prop::collection::vec(prop_oneof![Just(0_u8), any::<u8>()], 0..100),
            calls in prop::collection::vec(0..7, 0..20),
        ) {
            let mut reader = PayloadReader::new(&noise);
            for call in calls {
                let size = match call {
                    0 => reader.u8().map(|_| 1),
                    1 => reader.u32().map(|_| 4),
                    2 => reader.u64().map(|_| 8),
                    3 => reader.bytes().map(<[u8]>::len),
                    4 => reader.str().map(str::len),
                    5 => reader.u32s().map(|values| 4 * values.capacity()),
                    _ => reader.u64s().map(|values| 8 * values.capacity()),
                };
                if let Ok(size) = size {
                    prop_assert!(size <= noise.len(), "{size} bytes from {}", noise.len());
                }
            }
        }
    }
}

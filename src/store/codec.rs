//! Payloads as numbers and lists of them, little-endian, every list with its length in front.
//!
//! Invariant: a [`PayloadReader`] never goes past its end, and takes no more memory than a small multiple of
//! the bytes that are there, whatever they say.

use super::error::{StoreError, StoreErrorKind};

/// Writes a payload. Infallible, as it grows.
#[derive(Debug, Default)]
pub(crate) struct PayloadWriter {
    bytes: Vec<u8>,
}

impl PayloadWriter {
    /// Creates a writer with room for this many bytes, so that writing them moves nothing.
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes) }
    }

    /// Writes a byte.
    pub(crate) fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    /// Writes four bytes.
    pub(crate) fn u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Writes eight bytes.
    pub(crate) fn u64(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Writes the length of a list that follows; [`PayloadReader::count`] reads it. Eight bytes.
    pub(crate) fn count(&mut self, count: usize) {
        self.u64(count as u64);
    }

    /// Writes bytes with their length.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.bytes.extend_from_slice(bytes);
    }

    /// Writes a text with its length in bytes.
    pub(crate) fn str(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// Writes numbers with their count. A copy on little-endian machines.
    pub(crate) fn u32s(&mut self, values: impl ExactSizeIterator<Item = u32>) {
        self.count(values.len());
        self.bytes.reserve(4 * values.len());
        for value in values {
            self.u32(value);
        }
    }

    /// Writes numbers with their count. A copy on little-endian machines.
    pub(crate) fn u64s(&mut self, values: impl ExactSizeIterator<Item = u64>) {
        self.count(values.len());
        self.bytes.reserve(8 * values.len());
        for value in values {
            self.u64(value);
        }
    }

    /// Returns all that was written.
    pub(crate) fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

/// Reads the output of a [`PayloadWriter`], in the same order. Every method fails with `Truncated` past the
/// end.
#[derive(Debug, Clone)]
pub(crate) struct PayloadReader<'a> {
    rest: &'a [u8],
}

impl<'a> PayloadReader<'a> {
    /// Reads `payload` from its start.
    pub(crate) fn new(payload: &'a [u8]) -> Self {
        Self { rest: payload }
    }

    /// Returns all that is still to be read.
    pub(crate) fn rest(&self) -> &'a [u8] {
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
    pub(crate) fn u8(&mut self) -> Result<u8, StoreError> {
        self.array().map(u8::from_le_bytes)
    }

    /// Reads four bytes.
    pub(crate) fn u32(&mut self) -> Result<u32, StoreError> {
        self.array().map(u32::from_le_bytes)
    }

    /// Reads eight bytes.
    pub(crate) fn u64(&mut self) -> Result<u64, StoreError> {
        self.array().map(u64::from_le_bytes)
    }

    /// Reads the length of a list whose items take at least `item_bytes` (at least 1) each: never more than
    /// can follow, so that memory may be set aside for it.
    pub(crate) fn count(&mut self, item_bytes: usize) -> Result<usize, StoreError> {
        let count = usize::try_from(self.u64()?).map_err(|_| truncated())?;
        if count > self.rest.len() / item_bytes.max(1) { Err(truncated()) } else { Ok(count) }
    }

    /// Reads bytes with their length, in place.
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], StoreError> {
        let length = self.count(1)?;
        self.take(length)
    }

    /// Reads a text with its length in bytes, in place.
    ///
    /// # Errors
    /// Also if it is not UTF-8.
    pub(crate) fn str(&mut self) -> Result<&'a str, StoreError> {
        std::str::from_utf8(self.bytes()?).map_err(|_| StoreError::malformed("a text that is not UTF-8"))
    }

    /// Reads numbers with their count, in place.
    pub(crate) fn u32s_in_place(
        &mut self,
    ) -> Result<impl ExactSizeIterator<Item = u32> + Clone + use<'a>, StoreError> {
        let count = self.count(4)?;
        let (items, _) = self.take(4 * count)?.as_chunks();
        Ok(items.iter().map(|item| u32::from_le_bytes(*item)))
    }

    /// Reads numbers with their count. A copy on little-endian machines.
    pub(crate) fn u32s(&mut self) -> Result<Vec<u32>, StoreError> {
        Ok(self.u32s_in_place()?.collect())
    }

    /// Reads numbers with their count. A copy on little-endian machines.
    pub(crate) fn u64s(&mut self) -> Result<Vec<u64>, StoreError> {
        let count = self.count(8)?;
        let (items, _) = self.take(8 * count)?.as_chunks();
        Ok(items.iter().map(|item| u64::from_le_bytes(*item)).collect())
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// If something is left.
    pub(crate) fn finish(self) -> Result<(), StoreError> {
        if self.rest.is_empty() { Ok(()) } else { Err(StoreError::malformed("more than was expected")) }
    }
}

fn truncated() -> StoreError {
    StoreError::new(StoreErrorKind::Truncated)
}

#[cfg(test)]
mod tests {
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

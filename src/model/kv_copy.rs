//! Copies of keys and values, for caches of prefixes.

/// Keys and values of some positions of a sequence, copied from a model's cache. Only a model of the same
/// weights and the same format of its cache can take them back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KvCopy {
    positions: usize,
    bytes: Vec<u8>,
}

impl KvCopy {
    /// A copy of `positions` positions; `bytes` are in the model's own form.
    #[must_use]
    pub fn new(positions: usize, bytes: Vec<u8>) -> Self {
        Self { positions, bytes }
    }

    /// Number of positions.
    #[must_use]
    pub fn positions(&self) -> usize {
        self.positions
    }

    /// The copy, in the model's own form.
    #[must_use]
    pub fn content(&self) -> &[u8] {
        &self.bytes
    }

    /// Memory in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }
}

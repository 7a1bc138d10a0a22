//! Numbers of classes of bytes.

/// Hands out the numbers of classes of bytes, from 0.
///
/// Invariant: each class has a byte of its own, so that there are at most 256 and the last number is 255.
#[derive(Debug, Default)]
pub(crate) struct ClassNumbers {
    last: Option<u8>,
}

impl ClassNumbers {
    /// Returns the number of the next class.
    pub(crate) fn fresh(&mut self) -> u8 {
        let fresh = self.last.map_or(0, |last| last + 1);
        self.last = Some(fresh);
        fresh
    }

    /// Number of classes so far.
    pub(crate) fn count(&self) -> usize {
        self.last.map_or(0, |last| usize::from(last) + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_classes_as_bytes() {
        let mut classes = ClassNumbers::default();
        assert_eq!(classes.count(), 0);
        for byte in 0..=u8::MAX {
            assert_eq!((classes.fresh(), classes.count()), (byte, usize::from(byte) + 1));
        }
    }
}

//! Decisions read off a fuzzer's bytes.

/// A reader of decisions; past the end of the bytes all of them are 0.
#[derive(Debug)]
pub struct Bytes<'d> {
    rest: &'d [u8],
}

impl<'d> Bytes<'d> {
    /// Starts reading `data`.
    pub fn new(data: &'d [u8]) -> Self {
        Self { rest: data }
    }

    /// True if all bytes are read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.rest.split_first() else { return 0 };
        self.rest = rest;
        first
    }

    /// A number below `bound`, which is 1 to 256.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte()) % bound
    }

    /// One of `items`, which are 1 to 256.
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    /// The next `count` bytes, or as many as there are.
    pub fn take(&mut self, count: usize) -> &'d [u8] {
        let (taken, rest) = self.rest.split_at(count.min(self.rest.len()));
        self.rest = rest;
        taken
    }
}

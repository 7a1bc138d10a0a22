//! A fuzzer's bytes as decisions.

/// Reads decisions off bytes; past the end all of them are 0.
#[derive(Debug)]
pub struct Bytes<'d> {
    rest: &'d [u8],
}

impl<'d> Bytes<'d> {
    /// Decisions from `data`.
    pub fn new(data: &'d [u8]) -> Self {
        Self { rest: data }
    }

    /// Are there bytes left?
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

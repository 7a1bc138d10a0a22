//! The order of blocks in the memory of a cache: it fills from its start, as a text grows.
//!
//! A span holds [`SPAN`] blocks of each part, part after part: a part is a head's keys or values in a layer.
//! So what a text has seen lies in the spans at the start, whose large pages are full, and the blocks that
//! attention reads at a time lie next to each other.
//!
//! Invariant: the place of a block does not depend on how much is held, so nothing moves when a text grows.

/// Blocks of a part that lie next to each other: those of 64 positions. Fewer would part what attention reads
/// at a time; with more, a short text would take more memory.
pub(super) const SPAN: usize = 4;

/// The sizes of a cache, in blocks.
#[derive(Debug, Clone, Copy)]
pub(super) struct SpanLayout {
    /// Heads' keys and values, of all layers.
    pub(super) parts: usize,
    /// Blocks of each part.
    pub(super) blocks: usize,
    /// Bytes of a block.
    pub(super) size: usize,
}

impl SpanLayout {
    /// Bytes of a whole span. The last one may have fewer.
    pub(super) fn span(self) -> usize {
        SPAN * self.parts * self.size
    }

    /// The byte at which a block of a part starts. Blocks of the part that follow in the span are behind it.
    pub(super) fn start(self, part: usize, block: usize) -> usize {
        let first = block / SPAN * SPAN;
        let own = SPAN.min(self.blocks - first);
        (first * self.parts + part * own + block - first) * self.size
    }

    /// Bytes of the spans in which the first `blocks` blocks of all parts are.
    pub(super) fn prefix(self, blocks: usize) -> usize {
        blocks.min(self.blocks).next_multiple_of(SPAN).min(self.blocks) * self.parts * self.size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_fill_the_memory_without_gaps_from_its_start() {
        for (parts, blocks, size) in
            [(1, 1, 4), (2, 3, 1), (3, 4, 8), (4, 5, 2), (6, 8, 3), (5, 11, 7), (12, 13, 16)]
        {
            let layout = SpanLayout { parts, blocks, size };
            let mut starts: Vec<usize> =
                (0..parts).flat_map(|part| (0..blocks).map(move |block| layout.start(part, block))).collect();
            // Those of the first blocks are in the prefix, and the next span is behind it.
            for held in 0..=blocks {
                let prefix = layout.prefix(held);
                for part in 0..parts {
                    assert!((0..held).all(|block| layout.start(part, block) < prefix));
                    let next = held.next_multiple_of(SPAN);
                    assert!((next..blocks).all(|block| layout.start(part, block) >= prefix));
                    for block in (1..blocks).filter(|block| !block.is_multiple_of(SPAN)) {
                        assert_eq!(layout.start(part, block), layout.start(part, block - 1) + size);
                    }
                }
            }
            starts.sort_unstable();
            let expected: Vec<usize> = (0..parts * blocks).map(|place| place * size).collect();
            assert_eq!(starts, expected, "{layout:?}");
            assert_eq!(layout.prefix(blocks), parts * blocks * size);
            assert_eq!(layout.span(), SpanLayout { blocks: SPAN, ..layout }.prefix(1));
        }
    }
}

//! Zeroed memory for packed weights, and for keys and values, in large pages where the system gives them.
//!
//! A pass reads every weight once. With pages of 4 KB, the processor looks up an address every 64 lines and
//! its prefetcher starts anew; in pages of 2 MB, passes over one token took half the time where the weights
//! were 4 bits. Systems that do not give large pages by themselves give them on request (`madvise`), which is
//! made here. A large page is taken as a whole when its first byte is used, so memory that fills slowly is
//! laid out such that it fills from its start: [`Pages::filled`] then says what was taken.
//!
//! Invariant: the bytes past the length are zeros.

use memmap2::MmapMut;
use pulp::bytemuck;

/// Bytes of a page, as most systems have them.
const PAGE: usize = 4 << 10;
/// Bytes of a large page.
pub(super) const LARGE_PAGE: usize = 2 << 20;
/// Least size of memory, in bytes, that is mapped, so that it starts on a page. A vector may start in the
/// middle of a line of the cache.
const MAPPED: usize = 1 << 14;

/// Growing memory for panels of floats or bytes.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    memory: PageMemory,
    /// Length in bytes.
    len: usize,
}

#[derive(Debug)]
enum PageMemory {
    /// Small memory, or any for which mapping failed. Floats, so that it can be read as such.
    Vector(Vec<f32>),
    /// Mapped memory from byte `start` on.
    Mapped { map: MmapMut, start: usize },
}

impl Default for PageMemory {
    fn default() -> Self {
        Self::Vector(Vec::new())
    }
}

impl PageMemory {
    /// Allocates zeros, at least `size` bytes.
    fn zeros(size: usize) -> Self {
        // The last large page is rounded up if more of it is used than wasted.
        let room = size.max((size + LARGE_PAGE / 2) / LARGE_PAGE * LARGE_PAGE);
        Self::with_room(size, room)
    }

    /// Allocates `room` zeros, of which `size` will be used.
    fn with_room(size: usize, room: usize) -> Self {
        let mapped = (size >= MAPPED).then(|| mapped(size, room)).flatten();
        mapped.unwrap_or_else(|| Self::Vector(vec![0.0; size.div_ceil(size_of::<f32>())]))
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Vector(floats) => bytemuck::cast_slice(floats),
            Self::Mapped { map, start } => &map[*start..],
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Vector(floats) => bytemuck::cast_slice_mut(floats),
            Self::Mapped { map, start } => &mut map[*start..],
        }
    }
}

/// Maps `room` zeroed bytes of the system, of which `size` will be used. Small memory starts on a page,
/// large memory on a large page.
fn mapped(size: usize, room: usize) -> Option<PageMemory> {
    if size < LARGE_PAGE {
        return Some(PageMemory::Mapped { map: MmapMut::map_anon(size).ok()?, start: 0 });
    }
    // The system chooses where the map starts. Pages that are never touched take no memory.
    let map = MmapMut::map_anon(room.checked_add(LARGE_PAGE)?).ok()?;
    let start = map.as_ptr().align_offset(LARGE_PAGE).min(LARGE_PAGE);
    // A system without large pages is only slower, so a failure is ignored.
    #[cfg(target_os = "linux")]
    let _ = map.advise_range(memmap2::Advice::HugePage, start, whole_pages(room));
    Some(PageMemory::Mapped { map, start })
}

/// Bytes of the large pages that fit in `size` bytes.
fn whole_pages(size: usize) -> usize {
    size / LARGE_PAGE * LARGE_PAGE
}

impl Pages {
    /// Makes `size` zero bytes that take memory only as they are used, and never more than `size` rounded up
    /// to a page.
    pub(super) fn exactly(size: usize) -> Self {
        let memory = PageMemory::with_room(size, size);
        // Also where the system gives large pages unasked, those behind the last whole one are to be small.
        #[cfg(target_os = "linux")]
        if let PageMemory::Mapped { map, start } = &memory {
            let large = whole_pages(size);
            let _ = map.advise_range(memmap2::Advice::NoHugePage, start + large, size - large);
        }
        Self { memory, len: size }
    }

    /// Bytes of memory, at most, that [`exactly`](Self::exactly) has taken once its first `used` bytes, and
    /// no others, are used.
    pub(super) fn filled(&self, used: usize) -> usize {
        let page = if used <= whole_pages(self.len) { LARGE_PAGE } else { PAGE };
        match &self.memory {
            // What the allocator takes for so little is not known.
            PageMemory::Vector(_) if used > 0 => self.len,
            _ => used.next_multiple_of(page),
        }
    }

    /// Makes room for `size` bytes in all; until then, growing moves nothing.
    pub(crate) fn reserve(&mut self, size: usize) {
        if size > self.memory.bytes().len() {
            let mut memory = PageMemory::zeros(size);
            memory.bytes_mut()[..self.len].copy_from_slice(self.bytes());
            self.memory = memory;
        }
    }

    /// Appends zeros up to a length of `size` bytes. Never shortens.
    pub(crate) fn grow(&mut self, size: usize) {
        if size > self.memory.bytes().len() {
            self.reserve(size.max(2 * self.len));
        }
        self.len = self.len.max(size);
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.memory.bytes()[..self.len]
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory.bytes_mut()[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grown_pages_keep_their_bytes_and_the_rest_is_zeros() {
        for sizes in
            [&[0, 4, 12, 100][..], &[8, MAPPED, 4 * MAPPED], &[MAPPED, LARGE_PAGE, 3 * LARGE_PAGE + 64]]
        {
            for reserved in [0, sizes[sizes.len() - 1]] {
                let mut pages = Pages::default();
                pages.reserve(reserved);
                let mut expected = Vec::new();
                for &size in sizes {
                    pages.grow(size);
                    expected.resize(size, 0);
                    assert!(pages.bytes() == expected, "{size}");
                    for (index, (byte, expected)) in
                        pages.bytes_mut().iter_mut().zip(&mut expected).enumerate()
                    {
                        *expected = u8::try_from(index % 251).unwrap();
                        *byte = *expected;
                    }
                    pages.grow(size / 2);
                }
                assert!(pages.bytes() == expected);
                assert!(bytemuck::try_cast_slice::<u8, f32>(pages.bytes()).is_ok());
            }
        }
    }

    #[test]
    fn filled_memory_is_counted_in_large_pages_while_there_are_whole_ones() {
        let pages = Pages::exactly(2 * LARGE_PAGE + 3 * PAGE);
        let rest = 2 * LARGE_PAGE + PAGE;
        for (used, expected) in [
            (0, 0),
            (1, LARGE_PAGE),
            (LARGE_PAGE, LARGE_PAGE),
            (LARGE_PAGE + 1, 2 * LARGE_PAGE),
            (2 * LARGE_PAGE, 2 * LARGE_PAGE),
            (2 * LARGE_PAGE + 1, rest),
            (rest, rest),
            (rest + 1, rest + PAGE),
        ] {
            assert_eq!(pages.filled(used), expected, "{used}");
        }
        assert_eq!(pages.bytes().len(), 2 * LARGE_PAGE + 3 * PAGE);
        // Less than a large page is in small ones, and very little is of the allocator, all at once.
        let small = Pages::exactly(LARGE_PAGE - PAGE);
        assert_eq!([0, 1, PAGE, PAGE + 1].map(|used| small.filled(used)), [0, PAGE, PAGE, 2 * PAGE]);
        let least = Pages::exactly(100);
        assert_eq!([0, 1, 100].map(|used| least.filled(used)), [0, 100, 100]);
    }

    #[test]
    fn large_pages_start_on_a_cache_line() {
        for size in [MAPPED, LARGE_PAGE - 4, LARGE_PAGE, 5 * LARGE_PAGE / 2, 11 * LARGE_PAGE / 4] {
            let mut pages = Pages::default();
            pages.grow(size);
            assert_eq!(pages.bytes().as_ptr().align_offset(64), 0);
            if size >= LARGE_PAGE {
                assert_eq!(pages.bytes().as_ptr().align_offset(LARGE_PAGE), 0);
            }
            assert_eq!(pages.bytes(), vec![0; size]);
        }
    }
}

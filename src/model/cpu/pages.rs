//! Zeroed memory for packed weights, in large pages where the system gives them.
//!
//! A pass reads every weight once. With pages of 4 KB, the processor looks up an address every 64 lines and
//! its prefetcher starts anew; in pages of 2 MB, passes over one token took half the time where the weights
//! were 4 bits. Systems that do not give large pages by themselves give them on request (`madvise`), which is
//! made here.
//!
//! Invariant: the bytes past the length are zeros.

use memmap2::MmapMut;
use pulp::bytemuck;

/// Bytes of a large page.
const LARGE_PAGE: usize = 2 << 20;
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
        let mapped = (size >= MAPPED).then(|| mapped(size)).flatten();
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

/// Maps zeroed memory of the system. Small memory starts on a page, large memory on a large page.
fn mapped(size: usize) -> Option<PageMemory> {
    if size < LARGE_PAGE {
        return Some(PageMemory::Mapped { map: MmapMut::map_anon(size).ok()?, start: 0 });
    }
    // The last large page is rounded up if more of it is used than wasted.
    let room = size.max((size + LARGE_PAGE / 2) / LARGE_PAGE * LARGE_PAGE);
    // The system chooses where the map starts. Pages that are never touched take no memory.
    let map = MmapMut::map_anon(room.checked_add(LARGE_PAGE)?).ok()?;
    let start = map.as_ptr().align_offset(LARGE_PAGE).min(LARGE_PAGE);
    // A system without large pages is only slower, so a failure is ignored.
    #[cfg(target_os = "linux")]
    let _ = map.advise_range(memmap2::Advice::HugePage, start, room / LARGE_PAGE * LARGE_PAGE);
    Some(PageMemory::Mapped { map, start })
}

impl Pages {
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

    /// The bytes as floats, as far as they are whole ones.
    pub(crate) fn floats(&self) -> &[f32] {
        bytemuck::try_cast_slice(self.bytes()).unwrap_or_default()
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
                assert_eq!(pages.floats().len(), expected.len() / 4);
            }
        }
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
            assert_eq!(pages.floats(), vec![0.0; size / 4]);
        }
    }
}

//! Keys and values are read as they were written, in each format and across spans, and memory is taken as
//! counted.

use std::{
    fs::File,
    io::{Read, Seek, SeekFrom},
};

use candle_core::{DType, Device};
use half::f16;
use pulp::{Arch, Simd, WithSimd};

use super::*;
use crate::model::{cpu::pages::LARGE_PAGE, formats::GROUP};

const FORMATS: [KvFormat; 3] = [KvFormat::F32, KvFormat::F16, KvFormat::Q8_0];

struct Floats<'a>(Head<'a>, Range<usize>);

impl WithSimd for Floats<'_> {
    type Output = Vec<f32>;

    fn with_simd<S: Simd>(self, simd: S) -> Vec<f32> {
        let mut buffer = vec![0.0; self.0.buffer() * self.1.len()];
        self.0.floats(simd, self.1, &mut buffer).to_vec()
    }
}

/// Reads the numbers of a position.
fn read(blocks: KvBlocks<'_>, head: usize, position: usize) -> Vec<f32> {
    let block = position / KEYS;
    let floats = Arch::new().dispatch(Floats(blocks.head(head), block..block + 1));
    let [_, size] = blocks.heads();
    let place = |number: usize| match blocks.side {
        Side::Keys => number * KEYS + position % KEYS,
        Side::Values => position % KEYS * size + number,
    };
    (0..size).map(|number| floats[place(number)]).collect()
}

fn tensor(numbers: &[f32], shape: (usize, usize, usize)) -> Tensor {
    Tensor::from_slice(numbers, shape, &Device::Cpu).unwrap()
}

/// Whole multiples of a power of two, the first of each group 127 times it: all formats hold them exactly.
fn row(size: usize, seed: usize) -> Vec<f32> {
    let number = |index: usize| {
        let step = [0.25, 1.0, 0.5, 8.0, 0.0625][(seed + index / GROUP) % 5];
        let quant = if index.is_multiple_of(GROUP) { 254 } else { (seed * 31 + index * 17) % 255 };
        step * (quant as f32 - 127.0)
    };
    (0..size).map(number).collect()
}

#[test]
fn a_write_is_read_back_and_changes_nothing_else() {
    // The last of three spans has two blocks in place of four.
    let (heads, room) = (2, 160);
    for (side, format) in Side::ALL.into_iter().flat_map(|side| FORMATS.map(|format| (side, format))) {
        for size in [1, 3, 32, 40, 64, 80] {
            let mut memory = KvMemory::new(3, [heads, room - 8, size], format).unwrap();
            assert_eq!(memory.bytes().len(), 3 * 2 * heads * room * format.bytes(size).unwrap());
            assert_eq!(memory.of_position() * room, memory.bytes().len());
            let mut expected: Vec<Vec<f32>> = vec![vec![0.0; size]; heads * room];
            for (position, count, seed) in
                [(10, 20, 1), (14, 2, 200), (0, 3, 300), (159, 1, 400), (60, 90, 500), (63, 2, 700)]
            {
                let mut numbers = Vec::new();
                for (head, index) in (0..heads).flat_map(|head| (0..count).map(move |index| (head, index))) {
                    let row = row(size, seed + head * 50 + index);
                    numbers.extend_from_slice(&row);
                    expected[head * room + position + index] = row;
                }
                memory.write(1, side, &tensor(&numbers, (heads, count, size)), position).unwrap();
                for (place, expected) in expected.iter().enumerate() {
                    let got = read(memory.side(1, side), place / room, place % room);
                    assert_eq!(&got, expected, "{side:?} {format} {size} {place}");
                }
            }
            let others = [(0, Side::Keys), (0, Side::Values), (1, Side::Keys), (1, Side::Values), (2, side)];
            for (layer, other) in others.into_iter().filter(|&other| other != (1, side)) {
                let zeros = |place: usize| read(memory.side(layer, other), place / room, place % room);
                assert!((0..heads * room).all(|place| zeros(place) == vec![0.0; size]), "{layer} {other:?}");
            }
            let rows = tensor(&vec![0.0; 4 * size], (2, 2, size));
            assert!(memory.write(1, side, &rows, 159).is_err());
            assert!(memory.write(3, side, &rows, 0).is_err());
            assert!(memory.write(1, side, &tensor(&vec![0.0; 2 * size + 2], (2, 1, size + 1)), 0).is_err());
            assert!(memory.write(1, side, &tensor(&vec![0.0; size], (1, 1, size)), 0).is_err());
        }
    }
    assert!(KvMemory::new(1, [2, usize::MAX, 64], KvFormat::F16).is_err());
    assert!(KvMemory::new(usize::MAX, [2, 16, 64], KvFormat::F16).is_err());
}

#[test]
fn many_rows_at_once_are_written_as_one_by_one() {
    let (heads, count, size, first) = (4, 300, 64, 50);
    assert!(heads * count * size >= PARALLEL);
    let numbers: Vec<f32> = (0..heads * count).flat_map(|seed| row(size, seed)).collect();
    let rows = tensor(&numbers, (heads, count, size));
    for (side, format) in Side::ALL.into_iter().flat_map(|side| FORMATS.map(|format| (side, format))) {
        let memory = || KvMemory::new(2, [heads, 400, size], format).unwrap();
        let (mut at_once, mut one_by_one) = (memory(), memory());
        at_once.write(1, side, &rows, first).unwrap();
        for index in 0..count {
            let row = rows.narrow(1, index, 1).unwrap().contiguous().unwrap();
            one_by_one.write(1, side, &row, first + index).unwrap();
        }
        assert!(at_once.bytes() == one_by_one.bytes(), "{side:?} {format}");
    }
}

#[test]
fn copies_across_spans_are_read_alike_wherever_they_are_put() {
    let (heads, size, held) = (2, 40, 150);
    for format in FORMATS {
        let mut from = KvMemory::new(2, [heads, 160, size], format).unwrap();
        for (layer, side) in (0..2).flat_map(|layer| Side::ALL.map(|side| (layer, side))) {
            let seeds = 0..heads * held;
            let numbers: Vec<f32> = seeds.flat_map(|seed| row(size, seed + 1000 * layer)).collect();
            from.write(layer, side, &tensor(&numbers, (heads, held, size)), 0).unwrap();
        }
        for (blocks, to) in [(0..1, 0), (2..9, 2), (2..9, 1), (3..5, 7), (0..9, 1), (8..9, 3)] {
            let copy = from.copy_out(blocks.clone());
            assert_eq!(copy.len(), from.copied(blocks.len()));
            let mut other = KvMemory::new(2, [heads, 176, size], format).unwrap();
            other.copy_in(to..to + blocks.len(), &copy);
            for (layer, side) in (0..2).flat_map(|layer| Side::ALL.map(|side| (layer, side))) {
                for (head, index) in (0..heads).flat_map(|head| (0..176).map(move |index| (head, index))) {
                    let got = read(other.side(layer, side), head, index);
                    let here = (to * KEYS..(to + blocks.len()) * KEYS).contains(&index);
                    let expected = match here {
                        true => read(from.side(layer, side), head, index - to * KEYS + blocks.start * KEYS),
                        false => vec![0.0; size],
                    };
                    assert_eq!(got, expected, "{format} {blocks:?} {to} {layer} {side:?} {head} {index}");
                }
            }
        }
    }
}

/// Bytes of the pages that the system has given for some memory; `None` where it does not say.
fn given(bytes: &[u8]) -> Option<usize> {
    const PAGE: usize = 4096;
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return None;
    }
    let start = bytes.as_ptr().addr();
    let pages = start / PAGE..(start + bytes.len()).div_ceil(PAGE);
    let mut map = File::open("/proc/self/pagemap").ok()?;
    map.seek(SeekFrom::Start(u64::try_from(8 * pages.start).ok()?)).ok()?;
    let mut entries = vec![0_u8; 8 * pages.len()];
    map.read_exact(&mut entries).ok()?;
    // The two highest bits say that a page is swapped out, and that it is present.
    let is_given = |entry: &&[u8; 8]| u64::from_ne_bytes(**entry) >> 62 > 0;
    Some(PAGE * entries.as_chunks::<8>().0.iter().filter(is_given).count())
}

#[test]
fn memory_is_taken_as_counted_and_little_of_it_at_first() {
    for (layers, sizes, format) in [
        (6, [3, 2048, 64], KvFormat::F32),
        (30, [3, 300, 64], KvFormat::F32),
        (8, [4, 2000, 32], KvFormat::F16),
        (12, [4, 2000, 40], KvFormat::Q8_0),
    ] {
        let [heads, context, size] = sizes;
        let mut memory = KvMemory::new(layers, sizes, format).unwrap();
        assert!(memory.bytes().len() > LARGE_PAGE);
        assert_eq!(memory.taken(0), 0);
        assert!(memory.taken(context) < memory.bytes().len() + 4096);
        let known = given(memory.bytes());
        if known.is_none() {
            println!("not checked: the system does not say which pages it has given");
        }
        assert_eq!(known.unwrap_or(0), 0);
        let mut held = 0;
        for count in [1, 15, 1, 46, 1, 1, 100, 135, 500, context] {
            let count = count.min(context - held);
            if count == 0 {
                break;
            }
            let rows = Tensor::ones((heads, count, size), DType::F32, &Device::Cpu).unwrap();
            for (layer, side) in (0..layers).flat_map(|layer| Side::ALL.map(|side| (layer, side))) {
                memory.write(layer, side, &rows, held).unwrap();
            }
            held += count;
            let (counted, used) = (memory.taken(held), held * memory.of_position());
            assert!(counted >= used, "{format} {held}: {counted} counted, {used} used");
            let most = used + SPAN_POSITIONS * memory.of_position() + LARGE_PAGE;
            assert!(counted < most, "{format} {held}: {counted} counted, {used} used");
            if let Some(given) = given(memory.bytes()) {
                assert!((used..=counted).contains(&given), "{format} {held}: {used} {given} {counted}");
            }
        }
        assert_eq!(held, context);
    }
}

#[test]
fn every_half_precision_number_is_read_as_written() {
    let all: Vec<f32> = (0..=u16::MAX).map(|bits| f16::from_bits(bits).to_f32()).collect();
    for side in [Side::Keys, Side::Values] {
        let mut memory = KvMemory::new(1, [1, 64, 1024], KvFormat::F16).unwrap();
        memory.write(0, side, &tensor(&all, (1, 64, 1024)), 0).unwrap();
        for (position, expected) in all.chunks(1024).enumerate() {
            for (got, expected) in read(memory.side(0, side), 0, position).iter().zip(expected) {
                let most = expected.clamp(-65504.0, 65504.0);
                assert!(got.to_bits() == most.to_bits() || got.is_nan() && expected.is_nan());
            }
        }
    }
}

#[test]
fn extreme_numbers_stay_finite_and_nan_stays_nan() {
    let read = |format: KvFormat, numbers: &[f32]| {
        let mut memory = KvMemory::new(1, [1, 1, numbers.len()], format).unwrap();
        memory.write(0, Side::Values, &tensor(numbers, (1, 1, numbers.len())), 0).unwrap();
        read(memory.side(0, Side::Values), 0, 0)
    };
    // No number becomes infinite, and NaN stays NaN.
    assert_eq!(read(KvFormat::F16, &[1e9, -70000.0, 65504.0]), [65504.0, -65504.0, 65504.0]);
    assert!(read(KvFormat::F16, &[f32::NAN])[0].is_nan());
    assert!(read(KvFormat::Q8_0, &[1.0, f32::NAN, 2.0]).iter().all(|number| number.is_nan()));
    let huge = read(KvFormat::Q8_0, &[1e30, -1e30]);
    assert_eq!(huge, [127.0 * 65504.0, -127.0 * 65504.0]);
    // These are so small that the factor is zero.
    assert_eq!(read(KvFormat::Q8_0, &[1e-7, 0.0]), [0.0, 0.0]);
}

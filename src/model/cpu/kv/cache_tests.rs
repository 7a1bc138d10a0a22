//! A cache holds what one that was filled at once holds, however its text grew, shrank, and was copied.

use candle_core::{Device, Tensor};
use proptest::prelude::*;

use super::{CpuCache, KEYS};
use crate::model::formats::KvFormat;

const FORMATS: [KvFormat; 3] = [KvFormat::F32, KvFormat::F16, KvFormat::Q8_0];
const LAYERS: usize = 2;
/// Heads, context and size. The third and last span is not whole.
const SIZES: [usize; 3] = [2, 150, 24];

#[test]
fn the_cache_holds_committed_and_not_truncated_positions() {
    let filled = |value: f32, count: usize| Tensor::full(value, (2, count, 4), &Device::Cpu).unwrap();
    for format in FORMATS {
        let mut cache = CpuCache::new(&[[1, 2, 4]], 20, format).unwrap();
        // Whole blocks of 16 positions of keys and of values.
        assert_eq!(cache.memory().bytes().len(), 2 * 2 * 32 * format.bytes(4).unwrap());
        cache.extend(0, &filled(1.0, 18), &filled(1.0, 18)).unwrap();
        assert_eq!(cache.len(), 0);
        cache.commit(&[0; 18]);
        cache.truncate(3);
        cache.truncate(5);
        assert_eq!((cache.len(), cache.context()), (3, 20));
        cache.extend(0, &filled(2.0, 1), &filled(2.0, 1)).unwrap();
        assert!(cache.extend(0, &filled(0.0, 30), &filled(0.0, 30)).is_err());
        assert!(cache.extend(1, &filled(0.0, 1), &filled(0.0, 1)).is_err());
    }
}

#[test]
fn memory_is_reserved_in_spans_and_given_back() {
    // 1024 bytes for a token, so a span is 64 KB.
    let filled = |count: usize| Tensor::full(1.0_f32, (2, count, 32), &Device::Cpu).unwrap();
    let mut cache = CpuCache::new(&[[2, 2, 32]], 1000, KvFormat::F32).unwrap();
    let reserved = [0, 1, 64, 65, 128, 129, 960, 961, 1000, 2000].map(|tokens| cache.reserved(tokens));
    assert_eq!(reserved, [0, 64, 64, 128, 128, 192, 960, 1000, 1000, 1000]);
    assert_eq!((cache.touched(0), cache.touched(70)), (0, 128));
    let write = |cache: &mut CpuCache, count: usize| {
        for layer in 0..2 {
            cache.extend(layer, &filled(count), &filled(count)).unwrap();
        }
    };
    // What a pass wrote has taken memory, committed or not.
    write(&mut cache, 300);
    assert_eq!((cache.len(), cache.touched(0)), (0, 320));
    cache.commit(&[0; 300]);
    cache.truncate(130);
    assert_eq!((cache.touched(0), cache.touched(500)), (320, 512));
    let before = cache.copy_out(0..128);
    cache.shrink().unwrap();
    assert_eq!((cache.len(), cache.touched(0)), (130, 192));
    assert!(before.is_some() && cache.copy_out(0..128) == before);
    write(&mut cache, 90);
    assert_eq!(cache.touched(0), 256);
    cache.truncate(0);
    cache.shrink().unwrap();
    assert_eq!((cache.len(), cache.touched(0)), (0, 0));
}

/// A change of a cache.
#[derive(Debug, Clone)]
enum CacheStep {
    Extend(usize),
    TakeBack(usize),
    Shrink,
    /// Continues in a new cache. Its blocks are copies, a number of blocks at a time.
    Fork(usize),
}

fn step() -> impl Strategy<Value = CacheStep> {
    prop_oneof![
        3 => (1..70_usize).prop_map(CacheStep::Extend),
        2 => (0..100_usize).prop_map(CacheStep::TakeBack),
        1 => Just(CacheStep::Shrink),
        1 => (1..8_usize).prop_map(CacheStep::Fork),
    ]
}

/// Appends tokens, whose keys and values are made of a number of each.
fn extend(cache: &mut CpuCache, seeds: &[u16]) {
    if seeds.is_empty() {
        return;
    }
    let [heads, _, size] = SIZES;
    let rows = |layer: u16, side: u16| {
        let number = |head: u16, seed: u16, dim: u16| {
            let part = 8 * (head + 2 * side + 4 * layer);
            let mixed = seed.wrapping_mul(31) ^ dim.wrapping_mul(1009) ^ part;
            f32::from(mixed % 511) / 64.0 - 4.0
        };
        let numbers: Vec<f32> = (0..2)
            .flat_map(|head| seeds.iter().map(move |&seed| (head, seed)))
            .flat_map(|(head, seed)| (0..24).map(move |dim| number(head, seed, dim)))
            .collect();
        Tensor::from_vec(numbers, (heads, seeds.len(), size), &Device::Cpu).unwrap()
    };
    for (layer, number) in (0..LAYERS).zip(0..) {
        cache.extend(layer, &rows(number, 0), &rows(number, 1)).unwrap();
    }
    cache.commit(&vec![0; seeds.len()]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_cache_that_grew_and_shrank_is_one_filled_at_once(
        steps in prop::collection::vec(step(), 1..20), format in prop::sample::select(FORMATS.to_vec()),
    ) {
        // Each layer has a memory of its own.
        let new = || CpuCache::new(&[[1, SIZES[0], SIZES[2]]; LAYERS], SIZES[1], format).unwrap();
        let (mut cache, mut held, mut next) = (new(), Vec::new(), 0_u16);
        for step in steps {
            match step {
                CacheStep::Extend(count) => {
                    let count = count.min(SIZES[1] - held.len());
                    let seeds: Vec<u16> = (next..).take(count).collect();
                    next += 70;
                    extend(&mut cache, &seeds);
                    held.extend(seeds);
                }
                CacheStep::TakeBack(count) => {
                    let len = held.len().saturating_sub(count);
                    cache.truncate(len);
                    held.truncate(len);
                }
                CacheStep::Shrink => cache.shrink().unwrap(),
                CacheStep::Fork(blocks) => {
                    let (mut fork, whole) = (new(), held.len() / KEYS * KEYS);
                    for start in (0..whole).step_by(blocks * KEYS) {
                        let copy = cache.copy_out(start..whole.min(start + blocks * KEYS)).unwrap();
                        prop_assert!(fork.copy_in(&copy));
                    }
                    extend(&mut fork, &held[whole..]);
                    cache = fork;
                }
            }
            prop_assert_eq!(cache.len(), held.len());
            prop_assert!(cache.touched(0) >= held.len());
            let mut fresh = new();
            extend(&mut fresh, &held);
            let whole = 0..held.len() / KEYS * KEYS;
            prop_assert!(cache.copy_out(whole.clone()) == fresh.copy_out(whole));
        }
    }
}

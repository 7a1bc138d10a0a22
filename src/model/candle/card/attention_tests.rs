//! Holds attention of several rows and texts, with and without a window, to sums in doubles.

use candle_core::{DType, Device, Tensor};
use rand::{Rng, SeedableRng, rngs::StdRng};

use super::driver::{Driver, KernelArgument, Launch};
use super::engine::{CardRow, inputs};
use super::host::HostDriver;

const HEADS: usize = 4;
const KV_HEADS: usize = 2;
const CONTEXT: usize = 600;
const SPLITS: usize = 3;
const TEXTS: usize = 3;
const ROWS: usize = 16;

/// Queries, and the keys and values of all texts.
struct Room {
    size: usize,
    window: usize,
    numbers: DType,
    queries: Tensor,
    cache: [Tensor; 2],
}

impl Room {
    /// Random numbers. Behind the last key that any row sees there are none.
    fn new(random: &mut StdRng, numbers: DType, [size, window]: [usize; 2], rows: &[CardRow]) -> Self {
        let mut numbers_of =
            |count: usize| -> Vec<f32> { (0..count).map(|_| random.random_range(-2.0_f32..2.0)).collect() };
        let queries = Tensor::from_vec(numbers_of(ROWS * HEADS * size), (ROWS, HEADS, size), &Device::Cpu);
        let cache = [(); 2].map(|()| {
            let mut all = numbers_of(TEXTS * KV_HEADS * CONTEXT * size);
            for (index, number) in all.iter_mut().enumerate() {
                let (text, key) = (index / size / CONTEXT / KV_HEADS, index / size % CONTEXT);
                if rows.iter().all(|row| row.text != text || row.position < key) {
                    *number = f32::NAN;
                }
            }
            Tensor::from_vec(all, (TEXTS, KV_HEADS, CONTEXT, size), &Device::Cpu)
                .and_then(|all| all.to_dtype(numbers))
                .unwrap()
        });
        Self { size, window, numbers, queries: queries.unwrap(), cache }
    }

    /// Returns what the kernels make of the rows: `[rows][HEADS * size]`.
    fn attended(&self, rows: &[CardRow], backwards: bool) -> Vec<Vec<f32>> {
        use KernelArgument::{Address as At, Float, Number};
        let mut driver = HostDriver::new(self.numbers, backwards, None).unwrap();
        let words = Tensor::new(inputs(rows).unwrap(), &Device::Cpu).unwrap();
        let parts = ROWS * HEADS * SPLITS * (self.size + 2);
        let parts = Tensor::zeros(parts, DType::F32, &Device::Cpu).unwrap();
        let attended = Tensor::zeros((ROWS, HEADS * self.size), self.numbers, &Device::Cpu).unwrap();
        let at = |tensor: &Tensor, driver: &HostDriver| At(driver.address(tensor).unwrap());
        let whole = |number: usize| Number(i32::try_from(number).unwrap());
        let [keys, values] = &self.cache;
        let arguments = [
            at(&words, &driver),
            at(&self.queries, &driver),
            at(keys, &driver),
            at(values, &driver),
            at(&parts, &driver),
            whole(HEADS),
            whole(KV_HEADS),
            whole(self.size),
            whole(CONTEXT),
            whole(self.window),
            Float(0.125),
        ];
        let numbers = if self.numbers == DType::F16 { "f16" } else { "bf16" };
        let kernel = format!("attention_rows_{}_{numbers}", self.size);
        let grid = [HEADS, SPLITS, TEXTS].map(|size| u32::try_from(size).unwrap());
        driver.launch(&Launch { kernel: &kernel, grid, threads: 256, arguments: &arguments }).unwrap();
        let arguments = [
            at(&words, &driver),
            at(&parts, &driver),
            at(&attended, &driver),
            whole(self.size),
            whole(SPLITS),
            whole(self.window),
        ];
        let (kernel, grid) = (format!("combine_{numbers}"), [16, u32::try_from(HEADS).unwrap(), 1]);
        driver.launch(&Launch { kernel: &kernel, grid, threads: 128, arguments: &arguments }).unwrap();
        let attended = attended.to_dtype(DType::F32).unwrap().to_vec2().unwrap();
        attended.into_iter().take(rows.len()).collect()
    }

    /// Returns the same of one row, in doubles.
    fn expected(&self, index: usize, row: &CardRow) -> Vec<f64> {
        let [keys, values] = self.cache.each_ref().map(|tensor| {
            let text = tensor.to_dtype(DType::F64).unwrap().get(row.text).unwrap();
            text.to_vec3::<f64>().unwrap()
        });
        let queries = self.queries.to_dtype(DType::F64).unwrap().to_vec3::<f64>().unwrap();
        let first = if self.window == 0 { 0 } else { (row.position + 1).saturating_sub(self.window) };
        let of_head = |head: usize| {
            let of = head / (HEADS / KV_HEADS);
            let seen = first..=row.position;
            let scores: Vec<f64> = seen
                .clone()
                .map(|key| keys[of][key].iter().zip(&queries[index][head]).map(|(k, q)| 0.125 * k * q).sum())
                .collect();
            let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let weights: Vec<f64> = scores.iter().map(|score| (score - most).exp()).collect();
            let all: f64 = weights.iter().sum();
            let seen: Vec<&Vec<f64>> = seen.map(|key| &values[of][key]).collect();
            let sum = move |i: usize| seen.iter().zip(&weights).map(|(v, w)| v[i] * w).sum::<f64>() / all;
            (0..self.size).map(sum).collect::<Vec<f64>>()
        };
        (0..HEADS).flat_map(of_head).collect()
    }
}

#[test]
fn rows_of_texts_attend_to_the_keys_of_their_own_text() {
    let mut random = StdRng::seed_from_u64(5);
    for (turn, numbers) in [DType::BF16, DType::F16].into_iter().enumerate() {
        for (size, window) in [(64, 0), (128, 0), (256, 0), (64, 100), (128, 300)] {
            let count = if size == 64 { ROWS } else { random.random_range(5..ROWS) };
            let texts = random.random_range(1..=TEXTS);
            let rows: Vec<CardRow> = (0..count)
                .map(|_| {
                    let text = random.random_range(0..texts);
                    CardRow { token: 0, position: random.random_range(0..CONTEXT), text }
                })
                .collect();
            let room = Room::new(&mut random, numbers, [size, window], &rows);
            let got = room.attended(&rows, turn == 1);
            for (index, (row, got)) in rows.iter().zip(&got).enumerate() {
                let expected = room.expected(index, row);
                let largest = expected.iter().fold(0.0_f64, |most, number| most.max(number.abs()));
                let bound = largest * if numbers == DType::F16 { 1e-3 } else { 8e-3 };
                for (a, b) in got.iter().zip(&expected) {
                    assert!(
                        (f64::from(*a) - b).abs() <= bound,
                        "{numbers:?} {size} {window} {row:?}: {a} {b}"
                    );
                }
            }
            // Beside fewer rows, a row is the same. Queries are by the place of a row.
            let fewer = room.attended(&rows[..2], turn == 0);
            assert_eq!(fewer, got[..2], "{numbers:?}, {size}, {window}");
        }
    }
}

//! Chooses tokens from rows of logits in a device's memory: masks go up, kernels choose, tokens come back.
//!
//! Invariant: the tokens are those that the CPU chooses from the same rows, to the last tie; the kernels
//! compute the same noise.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use candle_core::{DType, Device, Result, Tensor};

use super::{
    driver::{Address, Driver, KernelArgument, Launch},
    place::Where,
};
use crate::{
    ids::TokenId,
    model::{RowAnswer, RowChoice},
    vocab::{Contents, TokenSet},
};

/// The result of the kernel `settle` if it finds no token.
const NONE: u32 = u32::MAX;
/// Most rows that are chosen from at once: more than the longest draft has.
const CHOICES: usize = 80;
/// Size in words of the question about a row. This constant and the next two have the same names in
/// `kernels/choice.cu`.
const ASKED_WORDS: usize = 6;
/// Size in words of the result of one block.
const PART_WORDS: usize = 5;
/// Size in words of the answer for a row.
const ANSWER_WORDS: usize = 3;
/// Most tokens of a row that are listed; a constant of the same name there.
const LISTED: usize = 512;
/// Logits of a row that a block looks at, and most blocks of a row; `MOST_PARTS` of the same file.
const PART: usize = 2048;
const MOST_PARTS: usize = 32;
/// Threads of a block of `choose`; `CHOOSERS` of the same file.
const CHOOSERS: u32 = 256;

/// Chooses tokens from rows in the device's memory. Clones share its queue of work.
#[derive(Clone)]
pub(in crate::model::candle) struct CardChooser {
    shared: Arc<Mutex<QueueAndRoom>>,
    /// Most logits of a row.
    vocabulary: usize,
}

/// The parts that passes and choices share: the queue, and room for what is asked and found.
struct QueueAndRoom {
    driver: Box<dyn Driver>,
    /// Questions, one of each row, then a mask for each.
    asked: Address,
    parts: Address,
    /// Answers, one of each row, then a list for each.
    answers: Address,
    _kept: [Tensor; 3],
}

impl CardChooser {
    /// The chooser of a place where there are no passes of our kernels, for models in these numbers.
    ///
    /// # Errors
    /// If this build has no kernels for the device, or it has no room.
    pub(in crate::model::candle) fn open(
        place: Where,
        device: &Device,
        numbers: DType,
        vocabulary: usize,
    ) -> Result<Self> {
        Self::new(place.open(device, numbers)?, device, vocabulary)
    }

    /// Makes room for choices from rows of `vocabulary` logits: some MB of the device's memory.
    ///
    /// # Errors
    /// If the device has no room.
    pub(super) fn new(driver: Box<dyn Driver>, device: &Device, vocabulary: usize) -> Result<Self> {
        let room = |words: usize| Tensor::zeros(CHOICES * words, DType::U32, device);
        let kept = [
            room(ASKED_WORDS + vocabulary.div_ceil(32))?,
            room(MOST_PARTS * PART_WORDS)?,
            room(ANSWER_WORDS + 2 * LISTED)?,
        ];
        let [asked, parts, answers] = &kept;
        let shared = QueueAndRoom {
            asked: driver.address(asked)?,
            parts: driver.address(parts)?,
            answers: driver.address(answers)?,
            _kept: kept,
            driver,
        };
        Ok(Self { shared: Arc::new(Mutex::new(shared)), vocabulary })
    }

    /// The chooser of the host, for rows of `vocabulary` logits; see [`Where::Host`].
    ///
    /// # Errors
    /// If the tensor library fails.
    #[cfg(feature = "card-host")]
    pub(in crate::model::candle) fn emulated(vocabulary: usize, backwards: bool) -> Result<Self> {
        Self::open(Where::Host { backwards, failure: None }, &Device::Cpu, DType::F32, vocabulary)
    }

    /// Queues other work before or after choices.
    pub(super) fn with_driver<T>(&self, work: impl FnOnce(&mut dyn Driver) -> T) -> T {
        // A poisoned lock is used on: a call that panicked leaves no half-made state.
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        work(&mut *shared.driver)
    }

    /// Chooses a token from each row from `first` on of `logits` (`[rows, vocabulary]` in 32 bits), as many
    /// as there are choices. Waits for the rows, once for each [`CHOICES`].
    ///
    /// # Errors
    /// If the logits end before the last row, or the device fails.
    pub(in crate::model::candle) fn choose(
        &self,
        logits: &Tensor,
        first: usize,
        choices: &[RowChoice<'_>],
    ) -> Result<Vec<RowAnswer>> {
        let (rows, width) = logits.dims2()?;
        if choices.len() > rows.saturating_sub(first) || width > self.vocabulary {
            candle_core::bail!("{} choices from row {first} on of {rows} by {width}", choices.len());
        }
        let mut answers = Vec::with_capacity(choices.len());
        let mut row = first;
        for choices in choices.chunks(CHOICES) {
            answers.extend(self.ask(&logits.narrow(0, row, choices.len())?, choices)?);
            row += choices.len();
        }
        Ok(answers)
    }

    /// Copies rows (contiguous, in 32 bits) by the driver's own memory. Waits for them.
    ///
    /// # Errors
    /// If the device fails.
    pub(in crate::model::candle) fn fetch(&self, rows: &Tensor) -> Result<Vec<f32>> {
        let mut words = vec![0; rows.elem_count()];
        self.with_driver(|driver| driver.read(driver.address(rows)?, &mut words))?;
        Ok(words.into_iter().map(f32::from_bits).collect())
    }

    /// Chooses from all of `rows`, at most [`CHOICES`].
    fn ask(&self, rows: &Tensor, choices: &[RowChoice<'_>]) -> Result<Vec<RowAnswer>> {
        let (count, stride) = (choices.len(), rows.dim(1)?);
        let words = stride.div_ceil(32);
        let widths = choices.iter().map(|choice| u32::try_from(stride.min(choice.allowed.size())));
        let widths: Vec<u32> = widths.collect::<std::result::Result<_, _>>()?;
        let lists = choices.iter().any(|choice| choice.near.is_some());
        let mut found = vec![0; count * (ANSWER_WORDS + if lists { 2 * LISTED } else { 0 })];
        {
            let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
            let shared = &mut *shared;
            shared.driver.write(shared.asked, count * (ASKED_WORDS + words), &mut |room| {
                let (questions, masks) = room.split_at_mut(count * ASKED_WORDS);
                let rooms = questions.chunks_exact_mut(ASKED_WORDS).zip(masks.chunks_exact_mut(words.max(1)));
                for ((question, mask), (choice, &width)) in rooms.zip(choices.iter().zip(&widths)) {
                    question.copy_from_slice(&words_of(choice, width));
                    write_bits(choice.allowed, mask);
                }
            })?;
            let rows = shared.driver.address(rows)?;
            shared.launch(rows, [count, stride], lists)?;
            shared.driver.read(shared.answers, &mut found)?;
        }
        let (answers, lists) = found.split_at(count * ANSWER_WORDS);
        let lists = lists.chunks_exact(2 * LISTED).map(Some).chain(std::iter::repeat(None));
        let answers = answers.chunks_exact(ANSWER_WORDS).zip(lists);
        answers.zip(choices).map(|((answer, list), choice)| read_answer(answer, list, choice)).collect()
    }
}

impl QueueAndRoom {
    /// Queues the kernels that choose a token from each of `rows` rows of `stride` logits. The questions
    /// about the rows are on the device already.
    fn launch(&mut self, logits: Address, [rows, stride]: [usize; 2], lists: bool) -> Result<()> {
        use KernelArgument::{Address as At, Number};
        let parts = stride.div_ceil(PART).clamp(1, MOST_PARTS);
        let (stride, words) = (Number(i32::try_from(stride)?), Number(i32::try_from(stride.div_ceil(32))?));
        let behind = |start: Address, words: usize| {
            Ok::<_, std::num::TryFromIntError>(Address(start.0 + u64::try_from(words * size_of::<u32>())?))
        };
        let masks = behind(self.asked, rows * ASKED_WORDS)?;
        let lists_at = behind(self.answers, rows * ANSWER_WORDS)?;
        let (blocks, down) = (u32::try_from(parts)?, u32::try_from(rows)?);
        let [asked, partly, answers] = [self.asked, self.parts, self.answers];
        let mut launch = |kernel: &str, grid: [u32; 3], threads: u32, arguments: &[KernelArgument]| {
            self.driver.launch(&Launch { kernel, grid, threads, arguments })
        };
        let arguments = [At(logits), At(asked), At(masks), At(partly), stride, words];
        launch("choose", [blocks, down, 1], CHOOSERS, &arguments)?;
        let arguments = [At(partly), At(answers), Number(i32::try_from(parts)?)];
        launch("settle", [down, 1, 1], u32::try_from(MOST_PARTS)?, &arguments)?;
        if lists {
            let arguments = [At(logits), At(asked), At(masks), At(answers), At(lists_at), stride, words];
            launch("list_near", [blocks, down, 1], CHOOSERS, &arguments)?;
        }
        Ok(())
    }
}

impl fmt::Debug for CardChooser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CardChooser").field("vocabulary", &self.vocabulary).finish_non_exhaustive()
    }
}

/// The words of a question: key and temperature, their lower halves first, how many logits count, and how far
/// below the largest tokens are listed.
fn words_of(choice: &RowChoice<'_>, width: u32) -> [u32; ASKED_WORDS] {
    let (key, temperature) = choice.draw.map_or((0, 0.0), |draw| (draw.key, draw.temperature));
    let ([a, b], [c, d]) = (halves(key), halves(temperature.to_bits()));
    [a, b, c, d, width, choice.near.unwrap_or_default().to_bits()]
}

/// The answer of a row by its words, and those of its list.
fn read_answer(answer: &[u32], list: Option<&[u32]>, choice: &RowChoice<'_>) -> Result<RowAnswer> {
    let [token, count, _largest] = *answer else { candle_core::bail!("an answer of other words") };
    let token = (token != NONE).then(|| TokenId::new(token));
    let count = usize::try_from(count)?;
    let wanted = choice.near.is_some() && token.is_some() && count <= LISTED;
    let near = list.filter(|_| wanted).map(|list| {
        let pairs = list.as_chunks::<2>().0.iter().take(count);
        let mut near: Vec<(TokenId, f32)> =
            pairs.map(|[token, logit]| (TokenId::new(*token), f32::from_bits(*logit))).collect();
        // Blocks list their tokens in any order.
        near.sort_unstable_by_key(|(token, _)| *token);
        near
    });
    Ok(RowAnswer { token, near })
}

/// Writes a set as a bit for each token, and clears the rest of the words. Tokens past their end are left
/// out.
fn write_bits(allowed: &TokenSet, words: &mut [u32]) {
    match allowed.contents() {
        Contents::Listed(tokens) => {
            words.fill(0);
            for index in tokens.iter().map(|token| token.index()) {
                words.get_mut(index / 32).into_iter().for_each(|word| *word |= 1 << (index % 32));
            }
        }
        Contents::Bits(bits) => {
            words.get_mut(2 * bits.len()..).unwrap_or_default().fill(0);
            for (pair, &word) in words.chunks_mut(2).zip(bits) {
                pair.copy_from_slice(&halves(word)[..pair.len()]);
            }
        }
    }
}

/// The lower and the upper half of a word.
fn halves(word: u64) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h] = word.to_le_bytes();
    [u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h])]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::GumbelDraw;

    #[test]
    fn words_of_a_choice_are_split_low_half_first() {
        assert_eq!(halves(0x8000_0000_0000_0001), [1, 0x8000_0000]);
        let allowed = TokenSet::empty(9);
        let greedy = RowChoice { allowed: &allowed, draw: None, near: None };
        assert_eq!(words_of(&greedy, 9), [0, 0, 0, 0, 9, 0]);
        let draw = Some(GumbelDraw { key: 5 << 32 | 3, temperature: 2.0 });
        let drawn = RowChoice { draw, near: Some(1.0), ..greedy };
        assert_eq!(words_of(&drawn, 7), [3, 5, 0, 0x4000_0000, 7, 0x3f80_0000]);
    }

    #[test]
    fn lists_of_tokens_are_sorted_and_given_only_if_whole() {
        let allowed = TokenSet::empty(9);
        let wants = RowChoice { allowed: &allowed, draw: None, near: Some(8.0) };
        let list = [5, 2.0_f32.to_bits(), 3, 1.0_f32.to_bits(), 99, 99];
        let answer =
            |words: [u32; 3], choice: &RowChoice<'_>| read_answer(&words, Some(&list), choice).unwrap();
        let near = vec![(TokenId::new(3), 1.0), (TokenId::new(5), 2.0)];
        let token = Some(TokenId::new(5));
        assert_eq!(answer([5, 2, 0], &wants), RowAnswer { token, near: Some(near) });
        assert_eq!(answer([5, 2, 0], &RowChoice { near: None, ..wants }), RowAnswer { token, near: None });
        let most = u32::try_from(LISTED).unwrap();
        assert_eq!(answer([5, most + 1, 0], &wants), RowAnswer { token, near: None });
        assert_eq!(answer([NONE, 0, 0], &wants), RowAnswer::default());
        assert!(read_answer(&[1, 2], None, &wants).is_err());
    }

    #[test]
    fn sizes_of_choices_are_those_in_the_kernels() {
        let kernels = include_str!("kernels/choice.cu");
        for constants in [
            format!("constexpr int CHOOSERS = {CHOOSERS}, MOST_PARTS = {MOST_PARTS};"),
            format!("constexpr int ASKED_WORDS = {ASKED_WORDS}, PART_WORDS = {PART_WORDS}, "),
            format!("ANSWER_WORDS = {ANSWER_WORDS};"),
            format!("constexpr uint32_t LISTED = {LISTED};"),
        ] {
            assert!(kernels.contains(&constants), "{constants}");
        }
    }

    #[test]
    fn masks_are_their_bits_in_words_of_any_number() {
        for size in [0, 1, 31, 32, 33, 64, 65, 5000] {
            for step in [1, 3, 700] {
                let mut set = TokenSet::empty(size);
                (0..size).step_by(step).for_each(|id| set.insert(TokenId::from_index(id).unwrap()));
                for count in [0, 1, 2, 3, 4, 157, 160] {
                    let mut words = vec![u32::MAX; count];
                    write_bits(&set, &mut words);
                    for id in 0..32 * count {
                        let bit = words[id / 32] >> (id % 32) & 1 == 1;
                        assert_eq!(bit, set.contains(TokenId::from_index(id).unwrap()), "{id} of {size}");
                    }
                }
            }
        }
    }
}

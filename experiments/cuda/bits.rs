//! Are texts on a card always the same? Compared to the bit: rows of passes of any split with those of passes
//! over one token, tokens that the card chooses with those that the CPU chooses from the same rows, and texts
//! with drafts with texts without.
//!
//!     cuda_smoke bits [DEVICE] [PRECISION] [MODEL] [TEXTS] [SECONDS]
//!
//! The arguments are those of the smoke test; then how many texts are written, and for how long at most.
//! Prints counts, and how long choices take after a pass, as one object of JSON. Exit code 1 if a choice is
//! another, or, on a card, a row or a text. `graphs` tells how passes before the texts were queued.

use std::{
    error::Error,
    path::Path,
    process::ExitCode,
    time::{Duration, Instant},
};

use domino::{
    Compiler, Grammar, Limits, Syntax, TokenId, Vocabulary,
    decode::{Decoder, Sampler, Sampling},
    model::{
        KeptRows, Logits, Model, RowChoice, Rows,
        candle::{DeviceRows, LoadOptions, Placement, TensorModel},
        passes::any_tokens,
    },
    proposer::{DraftLength, Drafter, Guess, Propose, Site},
    vocab::TokenSet,
};
use serde_json::{Value, json};

/// Tokens whose rows are compared, and passes over how many of them at most.
const ROWS: usize = 96;
const WIDEST: usize = 16;
/// Numbers of random splits, of choices from a pass' rows, and of measurements of a time.
const SPLITS: u64 = 12;
const CHOICES: u64 = 40;
const REPEATS: usize = 30;
/// Most tokens of a text.
const WRITTEN: usize = 24;
/// The distance within which tokens are listed.
const NEAR: f32 = 8.0;

/// The counts of one comparison.
#[derive(Debug, Default)]
struct Compared {
    all: usize,
    differing: usize,
    /// The first row that differs: the split, the row, the token, and both of its logits.
    first: Option<Value>,
}

impl Compared {
    fn note(&mut self, same: bool) {
        self.all += 1;
        self.differing += usize::from(!same);
    }

    fn json(&self) -> Value {
        json!({ "compared": self.all, "differing": self.differing, "first": self.first })
    }
}

/// Numbers that are the same in every run (a linear congruential generator).
struct Stream(u64);

impl Stream {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or_default() % bound.max(1)
    }
}

pub(crate) fn run(arguments: &[String]) -> Result<ExitCode, Box<dyn Error>> {
    let argument =
        |index: usize, default: &str| arguments.get(index).map_or(default, String::as_str).to_owned();
    let precision = argument(1, "bf16").parse()?;
    let placement = argument(0, "cuda").parse::<Placement>()?.with_precision(precision);
    let folder = argument(2, "models/domino-small");
    let (texts, seconds) = (argument(3, "2000").parse()?, argument(4, "45").parse()?);
    let mut model = TensorModel::load(&folder, &LoadOptions::default(), placement)?;

    let rows = compare_rows(&mut model)?;
    let choices = compare_choices(&mut model)?;
    let times = times_of_choices(&mut model)?;
    let graphs = model.graphs();
    let (texts, drafted, accepted) = compare_texts(model, Path::new(&folder), texts, seconds)?;
    let mut of_texts = texts.json();
    (of_texts["drafted"], of_texts["accepted"]) = (drafted.into(), accepted.into());
    let object = json!({
        "device": placement.to_string(), "precision": precision.to_string(), "rows": rows.json(),
        "choices": choices.json(), "texts": of_texts, "milliseconds": times, "graphs": graphs,
    });
    println!("{object}");
    // Without a card Candle's tensors run the model, whose rows depend on what shares a pass.
    let exact = placement.card.is_some() && (rows.differing > 0 || texts.differing > 0);
    Ok(if choices.differing > 0 || exact { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The bits of all rows of `tokens`, which the model gets in parts of these sizes.
fn bits(
    model: &mut TensorModel,
    tokens: &[TokenId],
    mut size: impl FnMut() -> usize,
) -> Result<Vec<Vec<u32>>, Box<dyn Error>> {
    model.truncate(0)?;
    let (mut rows, mut rest) = (Vec::new(), tokens);
    while !rest.is_empty() {
        let (part, after) = rest.split_at(size().min(rest.len()));
        let logits = model.forward(part, Rows::All)?;
        let of_row = |row| logits.row(row).unwrap_or_default().iter().map(|x| x.to_bits()).collect();
        rows.extend((0..logits.rows()).map(of_row));
        rest = after;
    }
    Ok(rows)
}

fn compare_rows(model: &mut TensorModel) -> Result<Compared, Box<dyn Error>> {
    let tokens = any_tokens(ROWS, model.vocabulary_size());
    let alone = bits(model, &tokens, || 1)?;
    let mut compared = Compared::default();
    for seed in 0..SPLITS {
        let mut stream = Stream(seed);
        let split = bits(model, &tokens, || 1 + stream.below(WIDEST))?;
        for (row, (one, other)) in alone.iter().zip(&split).enumerate() {
            compared.note(one == other);
            let place = one.iter().zip(other).position(|(a, b)| a != b);
            let found =
                place.map(|at| json!([seed, row, at, f32::from_bits(one[at]), f32::from_bits(other[at])]));
            compared.first = compared.first.take().or(found);
        }
    }
    Ok(compared)
}

/// Rows of one pass, and the same in the computer's memory.
fn a_pass(model: &mut TensorModel) -> Result<(DeviceRows, Logits), Box<dyn Error>> {
    model.truncate(0)?;
    let rows = model.launch(&any_tokens(WIDEST, model.vocabulary_size()), Rows::All)?;
    let logits = rows.fetch()?;
    Ok((rows, logits))
}

/// Sets of tokens from few to all, one for each row.
fn some_sets(stream: &mut Stream, vocabulary: usize) -> Vec<TokenSet> {
    let set = |row: usize| {
        let mut set = TokenSet::empty(vocabulary);
        let step = [1, 2, 7, 100, vocabulary / 3 + 1][row % 5];
        (stream.below(step)..vocabulary)
            .step_by(step)
            .filter_map(TokenId::from_index)
            .for_each(|token| set.insert(token));
        set
    };
    (0..WIDEST).map(set).collect()
}

fn compare_choices(model: &mut TensorModel) -> Result<Compared, Box<dyn Error>> {
    let (rows, logits) = a_pass(model)?;
    let mut compared = Compared::default();
    for seed in 0..CHOICES {
        let sampling = match seed % 4 {
            0 => Sampling::greedy(),
            kind => Sampling::with_temperature([0.3, 1.0, 1.7][usize::try_from(kind)? - 1])?,
        };
        let sampler = Sampler::new(sampling, seed);
        let sets = some_sets(&mut Stream(seed), logits.width());
        let position = 40 * usize::try_from(seed)?;
        let choices = sets.iter().zip(position..).filter_map(|(set, position)| sampler.choice(set, position));
        let choices: Vec<_> = choices.map(|choice| RowChoice { near: Some(NEAR), ..choice }).collect();
        let answers = rows.choose(0, &choices)?;
        for (index, set) in sets.iter().enumerate() {
            let row = logits.row(index).ok_or("a row is missing")?;
            let expected = sampler.draw(row, set, position + index)?;
            let got = match &answers {
                Some(answers) => {
                    compared.note(answers[index].near.as_ref().is_none_or(|list| *list == near(row, set)));
                    answers[index].token
                }
                None => Some(sampler.draw_kept(&rows, index, set, position + index)?),
            };
            compared.note(got == Some(expected));
        }
    }
    Ok(compared)
}

/// The tokens of a set that are near the likeliest of them.
fn near(row: &[f32], set: &TokenSet) -> Vec<(TokenId, f32)> {
    let logits = set.iter().filter_map(|token| Some((token, *row.get(token.index())?)));
    let logits: Vec<(TokenId, f32)> = logits.collect();
    let top = logits.iter().map(|(_, logit)| *logit).fold(f32::NEG_INFINITY, f32::max);
    logits.into_iter().filter(|(_, logit)| top - logit < NEAR).collect()
}

/// Median milliseconds of a choice from one row and from all rows of a pass that is done: likeliest tokens,
/// draws, draws with lists; and of copies of all rows.
fn times_of_choices(model: &mut TensorModel) -> Result<Value, Box<dyn Error>> {
    let (rows, logits) = a_pass(model)?;
    let sets = some_sets(&mut Stream(1), logits.width());
    let greedy = Sampler::new(Sampling::greedy(), 0);
    let drawing = Sampler::new(Sampling::with_temperature(1.0)?, 0);
    let median = |act: &dyn Fn() -> Result<(), Box<dyn Error>>| {
        let mut times = Vec::new();
        for _ in 0..=REPEATS {
            let begun = Instant::now();
            act()?;
            times.push(begun.elapsed().as_secs_f64() * 1e3);
        }
        times.remove(0);
        times.sort_unstable_by(f64::total_cmp);
        Ok::<f64, Box<dyn Error>>(times[times.len() / 2])
    };
    let choose = |sampler: &Sampler, count: usize, near: Option<f32>| {
        let choices = sets.iter().take(count).zip(0..).filter_map(|(set, at)| sampler.choice(set, at));
        let choices: Vec<_> = choices.map(|choice| RowChoice { near, ..choice }).collect();
        median(&|| rows.choose(0, &choices).map(drop).map_err(Into::into))
    };
    let copies = median(&|| rows.fetch().map(drop).map_err(Into::into));
    Ok(json!({
        "one_greedy": choose(&greedy, 1, None)?, "all_greedy": choose(&greedy, WIDEST, None)?,
        "one_drawn": choose(&drawing, 1, None)?, "all_drawn": choose(&drawing, WIDEST, None)?,
        "all_drawn_and_listed": choose(&drawing, WIDEST, Some(NEAR))?,
        "all_rows_copied": copies?,
    }))
}

/// A proposer of a known text's tokens, with a wrong one now and then.
#[derive(Debug)]
struct Liar {
    truth: Vec<TokenId>,
    prompt: usize,
    wrong: TokenId,
    turn: u64,
}

impl Propose for Liar {
    fn guess(&mut self, site: &mut Site<'_>) -> Option<Guess> {
        let truth = self.truth.get(site.tokens().len() - self.prompt).copied()?;
        let mut stream = Stream(self.turn);
        let token = if stream.below(8) == 0 { self.wrong } else { truth };
        self.turn = stream.0;
        Some(Guess { token, acceptance: 0.99 })
    }
}

/// Compares texts without drafts with those with right and wrong ones; also returns how many tokens were
/// drafted and accepted.
fn compare_texts(
    model: TensorModel,
    folder: &Path,
    texts: u64,
    seconds: f64,
) -> Result<(Compared, usize, usize), Box<dyn Error>> {
    let vocabulary = Vocabulary::from_tokenizer_file(folder)?;
    let grammar = Grammar::parse(Syntax::Gbnf, super::GRAMMAR, &Limits::default())?;
    let compiled = Compiler::new(vocabulary.clone()).compile(&grammar)?;
    let prompts = any_tokens(ROWS, vocabulary.size());
    let mut decoder = Decoder::builder(model).vocabulary(vocabulary).max_new_tokens(WRITTEN).build()?;
    let (mut compared, mut drafted, mut accepted) = (Compared::default(), 0, 0);
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    for seed in 0..texts {
        if Instant::now() > end {
            break;
        }
        decoder.options_mut().seed = seed;
        decoder.options_mut().sampling =
            if seed % 4 == 0 { Sampling::greedy() } else { Sampling::with_temperature(0.8)? };
        decoder.set_constraint((seed % 3 > 0).then(|| compiled.constraint()))?;
        // Prompts that kernels run, and prompts that Candle's tensors run.
        let mut stream = Stream(seed);
        let prompt = &prompts[stream.below(ROWS / 2)..][..1 + stream.below(ROWS / 2)];
        let plain = decoder.generate(prompt)?;
        let wrong = plain.tokens.first().copied().unwrap_or(TokenId::new(0));
        let liar = Liar { truth: plain.tokens.clone(), prompt: prompt.len(), wrong, turn: seed };
        let length = DraftLength::up_to(1 + stream.below(WIDEST - 1), 0.0)?;
        decoder.set_drafter(Some(Drafter::new(Box::new(liar), length)));
        let with = decoder.generate(prompt)?;
        decoder.set_drafter(None);
        compared.note(plain.tokens == with.tokens);
        drafted += with.stats.drafted;
        accepted += with.stats.accepted;
    }
    Ok((compared, drafted, accepted))
}

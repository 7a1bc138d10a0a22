//! Overhead of a constraint: the same tokens fed to the same model, with and without a grammar.
//!
//!     cargo experiment overhead -- [--texts N] [--repeats N] [--model DIR]
//!
//! For each grammar, texts are generated under it first. Then each is gone through again, several times, in
//! three ways that are interleaved: the model's pass and a draw (unconstrained); with a question about the
//! draw, and a mask only where it is refused (opportunistic); with a mask before every draw (always).
//! Whatever is drawn, the next token is the text's own, so all three make the same passes over the same
//! tokens.

mod prompts;

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use clap::Parser;
use domino::{
    CompiledGrammar, Compiler, Grammar, Limits, Syntax, TokenId, TokenSet, Vocabulary,
    decode::{Decoder, Sampler, Sampling},
    model::{
        Model, Rows,
        candle::{CandleModel, LoadOptions, join_threads},
    },
    vocab::Tokenizer,
};

use crate::prompts::prompts;

/// Measures what the constraint adds to decoding.
#[derive(Debug, Parser)]
struct Args {
    /// Shipped grammars to measure.
    #[arg(default_values = ["json", "gsm8k", "xml_person", "rpg", "c"])]
    grammars: Vec<String>,
    /// The model's folder.
    #[arg(long, default_value = "models/domino-small")]
    model: PathBuf,
    /// Texts of each grammar.
    #[arg(long, default_value_t = 20)]
    texts: u64,
    /// Number of times that each text is replayed in each way.
    #[arg(long, default_value_t = 3)]
    repeats: usize,
    /// Most tokens of a text.
    #[arg(long, default_value_t = 128)]
    tokens: usize,
}

/// Ways of asking the grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Unconstrained,
    Opportunistic,
    Always,
}

const WAYS: [Way; 3] = [Way::Unconstrained, Way::Opportunistic, Way::Always];

/// A text to be replayed.
struct Text {
    prompt: Vec<TokenId>,
    tokens: Vec<TokenId>,
    seed: u64,
}

/// Times of one grammar's texts.
#[derive(Default)]
struct Taken {
    /// Whole times by way, and times that only a constraint takes: looking at it, and drawing again.
    all: [Duration; 3],
    added: [Duration; 3],
    /// Times of each way relative to the first, for each replay of a text.
    ratios: [Vec<f64>; 3],
    tokens: usize,
    refused: usize,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    ensure!(args.texts > 0 && args.repeats > 0 && args.tokens > 0, "there is nothing to measure");
    join_threads(None);
    let vocabulary = Vocabulary::from_tokenizer_file(&args.model)?;
    let tokenizer = Tokenizer::from_tokenizer_file(&args.model)?;
    let mut model = CandleModel::load(&args.model, &LoadOptions::default())?;
    println!(
        "| grammar | tokens | refused | ms a token | opportunistic adds | always adds \
         | whole: opportunistic | always |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for name in &args.grammars {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        let path = root.join("grammars/paper").join(name).with_extension("gbnf");
        let of_program = || root.join("grammars").join(name).with_extension("gbnf");
        let path = if path.is_file() { path } else { of_program() };
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let grammar = Grammar::parse(Syntax::Gbnf, &text, &Limits::default())?;
        let compiled = Compiler::new(vocabulary.clone()).compile(&grammar)?;
        compiled.grow_trees();
        let prompts = prompts(root, name, &tokenizer)?;
        let (back, texts) = texts(model, &vocabulary, &compiled, &prompts, &args)?;
        model = back;
        let mut taken = measure(&mut model, &vocabulary, &compiled, &texts, args.repeats)?;
        taken.print(name, args.repeats);
    }
    Ok(())
}

/// Texts that the model writes under the grammar.
fn texts(
    model: CandleModel,
    vocabulary: &Vocabulary,
    grammar: &CompiledGrammar,
    prompts: &[Vec<TokenId>],
    args: &Args,
) -> anyhow::Result<(CandleModel, Vec<Text>)> {
    let mut model = model;
    let mut texts = Vec::new();
    for (seed, prompt) in (0..args.texts).zip(prompts.iter().cycle()) {
        let mut decoder = Decoder::builder(model)
            .vocabulary(vocabulary.clone())
            .constraint(grammar.constraint())
            .sampling(Sampling::with_temperature(1.0)?)
            .seed(seed)
            .max_new_tokens(args.tokens)
            .build()?;
        let tokens = decoder.generate(prompt)?.tokens;
        model = decoder.into_model();
        texts.push(Text { prompt: prompt.clone(), tokens, seed });
    }
    Ok((model, texts))
}

fn measure(
    model: &mut CandleModel,
    vocabulary: &Vocabulary,
    grammar: &CompiledGrammar,
    texts: &[Text],
    repeats: usize,
) -> anyhow::Result<Taken> {
    let mut possible = vocabulary.empty_set();
    vocabulary.text_tokens().for_each(|(token, _)| possible.insert(token));
    vocabulary.end_of_text().iter().for_each(|&token| possible.insert(token));
    let mut taken = Taken::default();
    for number in 0..repeats {
        for (turn, text) in texts.iter().enumerate() {
            let mut times = [Duration::ZERO; 3];
            // Each way is first in turn.
            for index in (0..WAYS.len()).map(|index| (index + turn + number) % WAYS.len()) {
                model.truncate(0)?;
                let mut pending = text.prompt.clone();
                // The prompt's pass is the same for all and not counted.
                let first = model.forward(&pending, Rows::Last)?;
                let (last, rest) = text.tokens.split_last().context("a text")?;
                let begun = Instant::now();
                let mut walk = Walk { way: WAYS[index], possible: &possible, text, taken: &mut taken };
                let mut constraint = grammar.constraint();
                walk.judge(first.last().context("a row")?, text.prompt.len(), &mut constraint)?;
                for (position, &token) in (text.prompt.len() + 1..).zip(rest) {
                    walk.advance(token, &mut constraint)?;
                    pending.clear();
                    pending.push(token);
                    let logits = model.forward(&pending, Rows::Last)?;
                    walk.judge(logits.last().context("a row")?, position, &mut constraint)?;
                }
                walk.advance(*last, &mut constraint)?;
                times[index] = begun.elapsed();
            }
            for (index, time) in times.into_iter().enumerate() {
                taken.all[index] += time;
                taken.ratios[index].push(time.as_secs_f64() / times[0].as_secs_f64());
            }
            taken.tokens += text.tokens.len();
        }
    }
    Ok(taken)
}

/// One replay of a text in one way.
struct Walk<'a> {
    way: Way,
    possible: &'a TokenSet,
    text: &'a Text,
    taken: &'a mut Taken,
}

impl Walk<'_> {
    /// Draws from a row as the decoder does. The draw is thrown away.
    fn judge(
        &mut self,
        row: &[f32],
        position: usize,
        constraint: &mut domino::Constraint,
    ) -> anyhow::Result<()> {
        let sampler = Sampler::new(Sampling::with_temperature(1.0)?, self.text.seed);
        let own = sampler.draw(row, self.possible, position)?;
        let begun = Instant::now();
        match self.way {
            Way::Unconstrained => return Ok(()),
            Way::Opportunistic if constraint.allows(own)? => {}
            Way::Opportunistic | Way::Always => {
                let mask = constraint.mask()?;
                if !mask.contains(own) {
                    self.taken.refused += usize::from(self.way == Way::Always);
                    sampler.draw(row, mask, position)?;
                }
            }
        }
        self.add(begun);
        Ok(())
    }

    fn advance(&mut self, token: TokenId, constraint: &mut domino::Constraint) -> anyhow::Result<()> {
        if self.way != Way::Unconstrained {
            let begun = Instant::now();
            constraint.advance(token)?;
            self.add(begun);
        }
        Ok(())
    }

    fn add(&mut self, begun: Instant) {
        self.taken.added[self.way as usize] += begun.elapsed();
    }
}

impl Taken {
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    fn print(&mut self, name: &str, repeats: usize) {
        let free = self.all[0].as_secs_f64();
        let tokens = self.tokens as f64;
        let [_, asked, masked] = self.ratios.each_mut().map(|ratios| {
            ratios.sort_unstable_by(f64::total_cmp);
            100.0 * (ratios[ratios.len() / 2] - 1.0)
        });
        let [_, asking, masking] = self.added.map(|time| 1e6 * time.as_secs_f64() / tokens);
        let share = |micros: f64| 1e-4 * micros * tokens / free;
        println!(
            "| {name} | {} | {:.1} % | {:.3} | {asking:.2} us, {:.2} % | {masking:.2} us, {:.2} % \
             | {:+.2} % | {:+.2} % |",
            self.tokens / repeats,
            100.0 * self.refused as f64 / tokens,
            1e3 * free / tokens,
            share(asking),
            share(masking),
            asked,
            masked,
        );
    }
}

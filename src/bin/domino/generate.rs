//! `domino generate`: a model writes, a grammar watches.

use std::{
    io::{self, IsTerminal, Write},
    path::Path,
    time::Instant,
};

use anyhow::Context;
use domino::{
    Compiler, Constraint, TokenId, Vocabulary,
    decode::{DecodeError, DecodeErrorKind, DecodeStats, Decoder, Finish, Masking, Steps},
    model::candle::{CandleModel, LoadOptions},
    store::CacheFolder,
    vocab::{Tokenizer, Utf8Stream},
};
use serde_json::json;

use crate::{
    advice,
    args::{Generate, Prompt},
    compile,
    failure::{BadInput, Exit, Paint},
    interrupt, model, progress, tokenizer,
};

/// Generates one text.
pub(crate) fn run(command: &Generate, cache: &CacheFolder) -> anyhow::Result<Exit> {
    let folder = model::locate(command.model.as_deref())?;
    let text = prompt_text(&command.prompt)?;
    let vocabulary = tokenizer::vocabulary(&folder, cache)?;
    let constraint = constraint(command, &vocabulary, cache)?;
    let prompt = prompt_tokens(&folder, &text, &vocabulary)?;
    let loaded = progress::during(format!("loading {}", folder.display()), || {
        CandleModel::load(&folder, &LoadOptions::default())
    })
    .map_err(|error| bad_model(&error))?;
    let masking = if command.opportunistic { Masking::Opportunistic } else { Masking::Always };
    let mut builder = Decoder::builder(loaded)
        .vocabulary(vocabulary)
        .sampling(command.sampling)
        .seed(command.seed)
        .max_new_tokens(command.max_tokens)
        .masking(masking);
    if let Some(constraint) = constraint {
        builder = builder.constraint(constraint);
    }
    let mut decoder = builder.build().map_err(|error| bad_model(&error))?;
    interrupt::watch();
    let vocabulary = decoder.vocabulary().clone();
    let begun = Instant::now();
    let mut steps = decoder.steps(&prompt);
    let failure = stream(&mut steps, &vocabulary, command.json);
    let seconds = begun.elapsed().as_secs_f64();
    let run = Finished { steps: &steps, vocabulary: &vocabulary, seconds };
    if command.json {
        if failure.is_ok() {
            writeln!(io::stdout().lock(), "{}", run.object())?;
        }
    } else {
        run.summary();
    }
    failure?;
    Ok(match steps.finish() {
        Some(Finish::Stop) => Exit::Success,
        Some(_) => Exit::Cut,
        None => Exit::Interrupted,
    })
}

/// Runs the steps to their end or to Ctrl-C, showing the text as it comes unless `quiet`.
fn stream(steps: &mut Steps<'_, CandleModel>, vocabulary: &Vocabulary, quiet: bool) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    let people = out.is_terminal();
    let mut shown = Utf8Stream::default();
    while !interrupt::pressed() {
        let Some(step) = steps.next() else { break };
        let token = step.map_err(step_error)?.token;
        let bytes = vocabulary.bytes(token).unwrap_or_default();
        if quiet {
            continue;
        }
        // A terminal wants whole characters, a file the very bytes.
        if people {
            out.write_all(shown.push(bytes).as_bytes())?;
        } else {
            out.write_all(bytes)?;
        }
        out.flush()?;
    }
    if people && !quiet {
        writeln!(out, "{}", shown.finish())?;
    }
    Ok(())
}

/// A run that has ended in whatever way.
struct Finished<'a> {
    steps: &'a Steps<'a, CandleModel>,
    vocabulary: &'a Vocabulary,
    /// Wall time, the prompt's pass included, loading and compiling not.
    seconds: f64,
}

impl Finished<'_> {
    fn stats(&self) -> &DecodeStats {
        self.steps.stats()
    }

    fn finish(&self) -> &'static str {
        match self.steps.finish() {
            Some(Finish::Stop) => "stop",
            Some(_) => "length",
            None => "interrupted",
        }
    }

    /// Tokens a second, the prompt's pass included.
    fn rate(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "counts of tokens are far below 2^52")]
        let tokens = self.stats().tokens as f64;
        if self.seconds > 0.0 { tokens / self.seconds } else { 0.0 }
    }

    /// Is the text in the language? Without a grammar it is when the model ended it.
    fn complete(&self) -> bool {
        let stopped = self.steps.finish() == Some(Finish::Stop);
        self.steps.constraint().map_or(stopped, Constraint::is_complete)
    }

    /// What `--json` prints.
    fn object(&self) -> serde_json::Value {
        let stats = self.stats();
        let tokens = self.steps.tokens();
        let ids: Vec<u32> = tokens.iter().map(|token| token.raw()).collect();
        json!({
            "text": String::from_utf8_lossy(&self.vocabulary.concat(tokens)),
            "tokens": stats.tokens,
            "finish": self.finish(),
            "tokens_per_second": self.rate(),
            "interventions": stats.interventions,
            "mask_seconds": stats.mask_time.as_secs_f64(),
            "seconds": self.seconds,
            "token_ids": ids,
            "complete": self.complete(),
            "prompt_tokens": stats.prompt_tokens,
            "masks": stats.masks,
            "passes": stats.passes,
            "model_seconds": stats.model_time.as_secs_f64(),
        })
    }

    /// Says on standard error what the run cost.
    fn summary(&self) {
        let stats = self.stats();
        let paint = Paint::for_stderr();
        let end = match self.finish() {
            "length" => paint.red("cut: the limit of tokens or the model's context was reached"),
            "interrupted" => paint.red("interrupted"),
            _ => "stop".to_owned(),
        };
        let (tokens, rate, interventions) = (stats.tokens, self.rate(), stats.interventions);
        let masks = stats.mask_time.as_secs_f64() * 1e3;
        eprintln!(
            "[{end}; {tokens} tokens, {rate:.1} tokens/s, {interventions} interventions, {masks:.1} ms in masks of {:.2} s]",
            self.seconds
        );
    }
}

/// A prompt that is too long is the user's, all else is not.
fn step_error(error: DecodeError) -> anyhow::Error {
    match error.kind() {
        DecodeErrorKind::PromptTooLong { .. } => BadInput::new(error.to_string()).into(),
        _ => error.into(),
    }
}

fn bad_model(error: &dyn std::error::Error) -> BadInput {
    BadInput::new(error.to_string())
}

fn prompt_text(prompt: &Prompt) -> Result<String, BadInput> {
    match prompt {
        Prompt::Text(text) => Ok(text.clone()),
        Prompt::From(input) => String::from_utf8(input.read()?)
            .map_err(|error| BadInput::new(format!("{}: the prompt is not UTF-8: {error}", input.name()))),
    }
}

/// The grammar at its start, if there is one. Its trees are read, or grow while the model is loaded and reads the
/// prompt.
fn constraint(
    command: &Generate,
    vocabulary: &Vocabulary,
    cache: &CacheFolder,
) -> Result<Option<Constraint>, BadInput> {
    let Some(grammar) = &command.grammar else { return Ok(None) };
    let compiler = Compiler::new(vocabulary.clone()).lookahead(command.lookahead).cache(cache.clone());
    let compiled = grammar.compile(&compiler)?;
    match &command.trees {
        Some(file) => compile::attach(&compiled, file, &grammar.name())?,
        None => compiled.grow_trees_in_background(),
    }
    advice::give(grammar, &compiled);
    Ok(Some(compiled.constraint()))
}

/// The prompt's tokens with those that the tokenizer puts around a text. A model needs at least one token
/// to go on from: if there is none, the end of an earlier text.
fn prompt_tokens(folder: &Path, text: &str, vocabulary: &Vocabulary) -> anyhow::Result<Vec<TokenId>> {
    let tokenizer = progress::during("reading the tokenizer", || Tokenizer::from_tokenizer_file(folder))
        .map_err(|error| bad_model(&error))?;
    let mut tokens = tokenizer.encode(text, true).context("the prompt cannot be turned into tokens")?;
    if tokens.is_empty() {
        tokens.extend(vocabulary.end_of_text().first());
    }
    Ok(tokens)
}

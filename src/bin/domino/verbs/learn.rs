//! `domino learn`: learns counts for speculation, from runs of a model or from given texts.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use clap::Args;
use domino::decode::{Decoder, Sampling};
use domino::model::candle::{CandleModel, LoadOptions, join_threads};
use domino::proposer::{
    CountProposer, DraftLength, Drafter, Learning, Prior, PriorSummary, Propose, Seen, Site,
};
use domino::{CompiledGrammar, TrailingSpace, store::CacheFolder, vocab::Tokenizer};
use serde_json::json;

use crate::files::{self, Input, Output};
use crate::flags::grammar::{LowGrammar, LowReach};
use crate::grammar::compiler::{self, Reach};
use crate::session::chat::{Chat, PromptSource, Prompts, prompt_text, prompt_tokens};
use crate::session::drafts::{bad_prior, known_counts, load_prior};
use crate::terminal::failure::{BadInput, Exit};
use crate::terminal::{self, count, progress};
use crate::{flags::NamedValue, flags::tools::LowChat, grammar::source::GrammarSource, session::model};

/// Learn which tokens come where in texts of a grammar, so that `domino generate` can guess ahead.
///
/// From runs of the model, or from texts. A run goes on from one of the prompts, which take turns, and at
/// every token the model's probabilities are learnt. A few runs will do for texts with much form; more is
/// better. Of given texts (--text) only the tokens are learnt.
///
/// The counts go to a file, for this grammar, this vocabulary and this version of the program, with a
/// checksum; `domino generate --prior FILE` takes it from there. Ctrl-C ends the learning; what was learnt is
/// kept.
#[derive(Debug, Args)]
pub(crate) struct LowLearn {
    #[command(flatten)]
    grammar: LowGrammar,
    /// The model, as for `domino generate`. With texts only its tokenizer is used.
    #[arg(long, short = 'm', value_name = "DIR|FILE|ID")]
    model: Option<PathBuf>,
    /// A text to go on from; can be given more than once.
    #[arg(long, short = 'p', value_name = "TEXT", allow_hyphen_values = true)]
    prompt: Vec<String>,
    /// A file with a text to go on from; can be given more than once, and - is standard input.
    #[arg(long, value_name = "FILE")]
    prompt_file: Vec<PathBuf>,
    #[command(flatten)]
    chat: LowChat,
    /// Runs of the model, which take turns with the prompts.
    #[arg(long, value_name = "N", default_value_t = 10)]
    runs: usize,
    /// Cut each run after this many tokens.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 128)]
    max_tokens: usize,
    /// Temperature of the runs.
    #[arg(long, short = 't', value_name = "T", default_value_t = 1.0)]
    temperature: f64,
    /// The seed of the first run; each further run has the next one.
    #[arg(long, short = 's', value_name = "N", default_value_t = 1_000_000)]
    seed: u64,
    /// End a complete text of a run where nothing but white space can follow, or not, as `domino generate`
    /// does.
    #[arg(long, value_name = "WHAT", default_value = "stop", conflicts_with = "text")]
    trailing_space: NamedValue<TrailingSpace>,
    /// Learn from texts of the language instead, in these files.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["prompt", "prompt_file", "show"], num_args = 1..)]
    text: Vec<PathBuf>,
    #[command(flatten)]
    reach: LowReach,
    /// The file that the counts are written to.
    #[arg(long, short = 'o', value_name = "FILE", required_unless_present = "show")]
    out: Option<PathBuf>,
    /// Add to what the file knows already; otherwise it is written anew.
    #[arg(long)]
    merge: bool,
    /// Keep at most this many contexts, those met most often.
    #[arg(long, value_name = "N")]
    contexts: Option<usize>,
    /// Say what this file knows, and learn nothing.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["out", "merge"])]
    show: Option<PathBuf>,
}

/// A lesson: its flags, and what they mean.
struct Lesson {
    flags: LowLearn,
    grammar: GrammarSource,
    prompts: Vec<PromptSource>,
    chat: Option<Chat>,
    sampling: Sampling,
    reach: Reach,
    out: PathBuf,
    json: bool,
}

impl LowLearn {
    fn lesson(mut self, json: bool) -> Result<Lesson, BadInput> {
        let sampling =
            Sampling::with_temperature(self.temperature).map_err(|error| BadInput::new(error.to_string()))?;
        let out = self.out.take().ok_or_else(|| BadInput::new("no file to keep counts in: give --out"))?;
        if self.runs == 0 || self.max_tokens == 0 || self.contexts == Some(0) {
            return Err(BadInput::new(
                "nothing to learn: --runs, --max-tokens and --contexts must be at least 1",
            ));
        }
        if !self.text.is_empty() {
            self.chat.refuse_idle("texts are learnt without one")?;
        }
        let template = self.grammar.is_for(self.model.as_deref(), self.chat.is_asked());
        let chat = self.chat.resolve(template);
        let texts =
            std::mem::take(&mut self.prompt).into_iter().map(|text| PromptSource::of(Some(text), None));
        let files = self.prompt_file.iter().map(|file| PromptSource::of(None, Some(file.clone())));
        let mut prompts: Vec<PromptSource> = texts.chain(files).collect();
        if prompts.is_empty() {
            prompts.push(PromptSource::of(None, None));
        }
        let (grammar, reach) = (self.grammar.required()?, self.reach.resolve());
        Ok(Lesson { flags: self, grammar, prompts, chat, sampling, reach, out, json })
    }
}

/// Learns, or shows what was learnt.
pub(crate) fn run(flags: LowLearn, json: bool, cache: &CacheFolder) -> anyhow::Result<Exit> {
    if let Some(file) = &flags.show {
        let prior = Prior::open(&files::read(file)?).map_err(|error| bad_prior(file, &error))?;
        show(&prior.summary(), json)?;
        return Ok(Exit::Success);
    }
    let lesson = flags.lesson(json)?;
    join_threads(None);
    lesson.run(cache)
}

impl Lesson {
    /// Reads what the file to be added to knows already.
    fn known(&self, grammar: &CompiledGrammar) -> Result<Prior, BadInput> {
        let prior = load_prior(&self.out, grammar)?;
        if prior.lookahead() == self.reach.lookahead {
            return Ok(prior);
        }
        let [was, is] = [prior.lookahead(), self.reach.lookahead]
            .map(|lookahead| compiler::reach_in_words(lookahead, self.reach.terminals));
        Err(BadInput::new(format!("{}: learnt with {was}, and this is {is}", self.out.display()))
            .hint("give the same --lookahead, or another file"))
    }

    fn run(&self, cache: &CacheFolder) -> anyhow::Result<Exit> {
        let output = Output::prepare(&self.out)?;
        let folder = model::locate(self.flags.model.as_deref())?;
        let vocabulary = model::vocabulary(&folder, cache)?;
        let compiler = self.reach.compiler(vocabulary, cache);
        let compiled = self.grammar.compile(&compiler)?;
        let mut prior = if self.flags.merge && self.out.exists() {
            self.known(&compiled)?
        } else {
            Prior::new(&compiled)
        };
        let tokenizer = progress::during("reading the tokenizer", || Tokenizer::from_tokenizer_file(&folder))
            .map_err(|error| BadInput::new(error.to_string()))?;
        progress::watch_interrupts();
        let mut learnt = if self.flags.text.is_empty() {
            prior.set_label(format!("{}, runs of {}", self.grammar.name(), name(&folder)));
            self.learn_runs(prior, &compiled, &folder, &tokenizer)?
        } else {
            prior.set_label(format!("{}, texts", self.grammar.name()));
            self.learn_texts(prior, &compiled, &tokenizer)?
        };
        if let Some(most) = self.flags.contexts {
            learnt.shrink(most);
        }
        output.write(&learnt.to_bytes())?;
        show(&learnt.summary(), self.json)?;
        Ok(if progress::interrupted() { Exit::Interrupted } else { Exit::Success })
    }

    /// Learns from runs of the model; after Ctrl-C, from those done so far.
    fn learn_runs(
        &self,
        prior: Prior,
        grammar: &CompiledGrammar,
        folder: &Path,
        tokenizer: &Tokenizer,
    ) -> anyhow::Result<Prior> {
        grammar.explore_in_background();
        let loaded = progress::during(format!("loading {}", folder.display()), || {
            CandleModel::load(folder, &LoadOptions::default())
        })
        .map_err(|error| BadInput::new(error.to_string()))?;
        let learner = Arc::new(Mutex::new(CountProposer::new(prior, Learning::Online)));
        let drafter = Drafter::new(Box::new(Arc::clone(&learner)), DraftLength::Auto);
        let mut decoder = Decoder::builder(loaded)
            .vocabulary(grammar.vocabulary().clone())
            .constraint(grammar.constraint())
            .sampling(self.sampling)
            .max_new_tokens(self.flags.max_tokens)
            .drafter(drafter)
            .build()
            .map_err(|error| BadInput::new(error.to_string()))?;
        let chat = Prompts::open(self.chat.as_ref(), folder, Some(&self.grammar), self.json)?;
        let tokens = |text: &str| chat.tokens(tokenizer, text, grammar.vocabulary());
        let prompts = self.prompts.iter().map(|prompt| tokens(&prompt_text(prompt)?));
        let prompts = prompts.collect::<anyhow::Result<Vec<_>>>()?;
        let bar = progress::bar("learning", self.flags.runs);
        for (seed, prompt) in (self.flags.seed..).zip(prompts.iter().cycle()).take(self.flags.runs) {
            decoder.options_mut().seed = seed;
            decoder.options_mut().trailing_space = self.flags.trailing_space.0;
            for step in decoder.steps(prompt) {
                step?;
                if progress::interrupted() {
                    return Ok(known_counts(&learner));
                }
            }
            bar.inc(1);
        }
        Ok(known_counts(&learner))
    }

    /// Learns from texts; after Ctrl-C, from those done so far.
    fn learn_texts(
        &self,
        prior: Prior,
        grammar: &CompiledGrammar,
        tokenizer: &Tokenizer,
    ) -> anyhow::Result<Prior> {
        let learner = Arc::new(Mutex::new(CountProposer::new(prior, Learning::Online)));
        let bar = progress::bar("learning", self.flags.text.len());
        for input in self.flags.text.iter().cloned().map(Input::new) {
            if progress::interrupted() {
                break;
            }
            let bytes = input.read()?;
            let outside = |at: usize| {
                BadInput::new(format!("{}: not in the language from byte {at} on", input.name()))
                    .hint("`domino check` says what could have followed")
            };
            let text = str::from_utf8(&bytes).map_err(|error| outside(error.valid_up_to()))?;
            let mut constraint = grammar.constraint();
            let mut sequence = prompt_tokens(tokenizer, "", grammar.vocabulary())?;
            let mut at = 0;
            for token in tokenizer.encode(text, false)? {
                // Some tokenizers put a space before a text, which the text does not have.
                let spelt = grammar.vocabulary().bytes(token).unwrap_or_default();
                let there = bytes[at..].starts_with(spelt);
                if !there && at == 0 {
                    continue;
                }
                let before = constraint.fork();
                constraint.advance(token).map_err(|_| outside(at))?;
                let mut site = Site::new(Some(&before), &mut sequence, 0.0, &|_, _| 0.0);
                let mut learner = learner.lock().unwrap_or_else(PoisonError::into_inner);
                learner.observe(&mut site, Seen::new(token, None));
                drop(site);
                sequence.push(token);
                at += spelt.len();
            }
            if at < bytes.len() {
                return Err(outside(at).into());
            }
            bar.inc(1);
        }
        Ok(known_counts(&learner))
    }
}

/// The last part of a path.
fn name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// Prints what a prior knows.
fn show(summary: &PriorSummary, json: bool) -> io::Result<()> {
    let mut out = terminal::stdout();
    let PriorSummary { label, grammar, vocabulary, observed, levels, guesses, right, .. } = summary;
    let (lookahead, terminals) = (summary.lookahead, summary.terminals);
    let contexts: usize = levels.iter().map(|level| level.0).sum();
    if json {
        let levels: Vec<_> = levels
            .iter()
            .map(|(contexts, tokens)| json!({ "contexts": contexts, "tokens": tokens }))
            .collect();
        let object = json!({
            "label": label, "grammar": grammar, "vocabulary": vocabulary, "observed": observed,
            "contexts": contexts, "levels": levels, "guesses": guesses, "right": right,
            "lookahead": compiler::lookahead_number(lookahead),
            "terminals": compiler::terminals_name(terminals),
        });
        return writeln!(out, "{object}");
    }
    writeln!(out, "{label}")?;
    writeln!(out, "grammar {grammar:.16}, vocabulary {vocabulary:.16}")?;
    writeln!(out, "learnt from {}, {}", count(observed, "token"), count(contexts, "context"))?;
    writeln!(out, "learnt with {}", compiler::reach_in_words(lookahead, terminals))?;
    #[expect(clippy::cast_precision_loss, reason = "counts of tokens are far below 2^52")]
    let share = 100.0 * *right as f64 / (*guesses).max(1) as f64;
    writeln!(out, "{share:.0}% of {} right while it learnt", count(guesses, "guess"))
}

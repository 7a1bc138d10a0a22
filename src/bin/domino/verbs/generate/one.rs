//! One text, which is shown as it comes, or when it is whole, on standard output or in the file of `--out`.
//!
//! Whole are the texts of `--sampling conditional`, which draws one of several, and of `--tokenization
//! canonical`, which takes tokens back.

use std::io::{self, IsTerminal, Write};
use std::{num::NonZeroUsize, path::Path, time::Instant};

use anyhow::Context;
use domino::decode::{CanonicalDecoder, ConditionalDecoder, Decoder, Generation, Healing, Steps};
use domino::proposer::Drafter;
use domino::vocab::{Tokenizer, Utf8Stream};
use domino::{CompiledGrammar, Constraint, StepError, TokenId, grammar::GrammarWarning, store::CacheFolder};
use serde_json::{Value, json};

use super::args::{Generate, Way};
use super::grammar::{TextKind, fields, grammar};
use super::report::{self, Comparison, EndedRun, RunEnd, forced_bytes, only_answer, usual_tokens};
use crate::grammar::compiler::{lookahead_number, terminals_name};
use crate::session::chat::{asked_text, prompt_text};
use crate::session::drafts::{self, Keeper};
use crate::session::model::{
    self, BatchRunner, Runner, bad_model, load, may_draft, read_tokenizer, step_error,
};
use crate::terminal::failure::{self, BadInput, Exit, note};
use crate::terminal::{self, Stdout, count, extend, progress};
use crate::{files::Output, grammar::warned};

/// Generates one text.
pub(super) fn run(command: &Generate, folder: &Path, cache: &CacheFolder) -> anyhow::Result<Exit> {
    let Generate { flags, options, .. } = command;
    let text = asked_text(&command.prompt)?;
    let destination = Destination::of(flags.out.as_deref())?;
    let (vocabulary, tokenizer) = (model::vocabulary(folder, cache)?, read_tokenizer(folder)?);
    let (mut prompt, thought) = command.asked(folder, &text, &tokenizer, &vocabulary)?;
    let healing = if flags.heal { Healing::of(&vocabulary, &prompt) } else { Healing::default() };
    let healed = healing.bytes;
    if !healed.is_empty() {
        prompt.truncate(healing.kept);
    }
    // Counts learnt for a grammar do not apply to texts that begin with the end of a prompt or a thought.
    let source = command.usual.source.as_ref();
    let known = source.filter(|_| healed.is_empty() && thought.is_none());
    let (grammar, capturing) = grammar(command, (&vocabulary, cache), (&healed, thought))?.unzip();
    let warnings = grammar.as_ref().map_or_else(Vec::new, |grammar| grammar.grammar_warnings().to_vec());
    let loaded = load(folder, &command.load, command.by)?;
    let drafts = may_draft(loaded.no_drafts(), command.speculation.asked);
    let mut builder = Decoder::builder(loaded).vocabulary(vocabulary).options(options.clone());
    let (mut speculation, mut draft) = (None, None);
    if let Some(grammar) = &grammar {
        builder = builder.constraint(grammar.constraint());
        if drafts {
            draft = command.speculation.draft_model(command.by, grammar, &tokenizer, cache)?;
            speculation = command.speculation.drafter(known, grammar, folder, &tokenizer, draft.as_ref())?;
        }
    }
    let mut decoder = builder.build().map_err(|error| bad_model(&error))?;
    progress::watch_interrupts();
    let speculative = speculation.is_some();
    let (drafter, keeper) = speculation.unzip();
    let keeper = keeper.flatten();
    let compared = grammar.as_ref().filter(|_| command.speculation.compare);
    let comparison = take_drafter(&mut decoder, drafter, compared, &prompt)?;
    let vocabulary = decoder.vocabulary().clone();
    let begun = Instant::now();
    let mut steps = decoder.steps(&prompt);
    let quiet = command.json || destination.is_file();
    let ended = stream(&mut steps, quiet, options.close, healed.len())?;
    let mut generation = steps.into_generation();
    let forced = forced_bytes(grammar.as_ref().filter(|_| command.json), &generation);
    generation.text.drain(..healed.len().min(generation.text.len()));
    only_answer(&mut generation);
    let captures = fields(&TextKind::of(source), capturing.flatten().as_ref(), &generation);
    let ended = EndedRun {
        appended: usual_tokens(&tokenizer, &vocabulary, &generation),
        generation,
        end: ended,
        vocabulary: &vocabulary,
        options,
        seconds: begun.elapsed().as_secs_f64(),
        speculative,
        draft: draft.as_ref().map(drafts::draft_tally),
        forced,
        captures,
        comparison,
    };
    tell(command, &ended, &destination, keeper.as_ref(), &warnings)?;
    // The counts are kept last, so that a file that cannot be written costs nobody the text.
    if let Some(keeper) = keeper {
        keeper.keep()?;
    }
    Ok(ended.exit())
}

/// Gives the decoder its drafter; where a grammar is to be compared by, after texts with it and without.
fn take_drafter(
    decoder: &mut Decoder<Runner>,
    drafter: Option<Drafter>,
    compared: Option<&CompiledGrammar>,
    prompt: &[TokenId],
) -> anyhow::Result<Option<Comparison>> {
    match (compared, drafter) {
        (Some(grammar), Some(drafter)) => report::compare(decoder, &grammar.constraint(), drafter, prompt),
        (_, drafter) => {
            decoder.set_drafter(drafter);
            Ok(None)
        }
    }
}

/// Tells how a run has ended, and writes its text or its object to the destination.
pub(super) fn tell(
    command: &Generate,
    ended: &EndedRun<'_>,
    destination: &Destination<'_>,
    keeper: Option<&Keeper>,
    warnings: &[GrammarWarning],
) -> anyhow::Result<()> {
    if command.json {
        let mut object = ended.object();
        if let Some((lookahead, terminals)) = keeper.map(Keeper::learnt_at) {
            let lookahead = lookahead_number(lookahead);
            object["prior"] = json!({ "lookahead": lookahead, "terminals": terminals_name(terminals) });
        }
        destination.object(&warned::with(object, warnings))?;
    } else {
        destination.text(&ended.generation.text)?;
    }
    ended.tell_failure();
    if !command.json {
        ended.summary(command.speculation.asked);
    }
    Ok(())
}

/// Runs the steps to their end, to Ctrl-C or to a failure, and shows the text as it comes unless it goes into
/// an object. If `close`, an unfinished text is completed where a completion can be found. The first `hidden`
/// bytes are the prompt's.
fn stream(steps: &mut Steps<'_, Runner>, quiet: bool, close: bool, hidden: usize) -> anyhow::Result<RunEnd> {
    let mut screen = Screen::new(hidden);
    let mut failure = None;
    while !progress::interrupted() {
        match steps.next() {
            None => break,
            Some(Ok(_)) if quiet => {}
            Some(Ok(_)) => screen.show_answer(steps.settled_text(), steps.answer_at())?,
            Some(Err(error)) => {
                let error = step_error(error);
                // Bad input has made no text that could be shown.
                if Exit::of(&error) == Exit::BadInput {
                    return Err(error);
                }
                failure = Some(error);
                break;
            }
        }
    }
    let mut end = match (&failure, steps.finish()) {
        (None, Some(finish)) => RunEnd::Finished(finish),
        (None, None) => RunEnd::Interrupted,
        (Some(error), _) => failed(error, steps),
    };
    if close && let Err(error) = steps.close() {
        // The first of two failures is the one that is told.
        if failure.is_none() {
            end = failed(&error.into(), steps);
        }
    }
    if !quiet {
        screen.show_answer(steps.text(), steps.answer_at())?;
        screen.finish()?;
    }
    Ok(end)
}

/// Makes the end of a run that failed, with its place in text and grammar.
fn failed(error: &anyhow::Error, steps: &Steps<'_, Runner>) -> RunEnd {
    let mut told = failure::told(error.as_ref());
    // The error of a budget names its place itself.
    let place = error.chain().find_map(|cause| cause.downcast_ref::<StepError>()).and_then(StepError::place);
    if place.is_none() {
        let were = if steps.text().len() == 1 { "was" } else { "were" };
        told.sentence += &format!("; {} of text {were} made", count(steps.text().len(), "byte"));
    }
    if place.is_none_or(|place| place.rules.is_empty()) {
        told.sentence += &steps.constraint().map(failure::in_terminals).unwrap_or_default();
    }
    RunEnd::Failed(told, Exit::of(error))
}

/// Standard output, and the length of the text that it shows.
pub(super) struct Screen {
    out: Stdout,
    people: bool,
    characters: Utf8Stream,
    shown: usize,
    /// Bytes of a thought that standard error shows; `None` where nobody reads it.
    thought: Option<usize>,
}

impl Screen {
    /// Makes a screen that does not show the first `hidden` bytes.
    pub(super) fn new(hidden: usize) -> Self {
        let out = terminal::stdout();
        let thought = (io::stderr().is_terminal() && !failure::is_quiet()).then_some(0);
        Self { people: out.is_terminal(), out, characters: Utf8Stream::default(), shown: hidden, thought }
    }

    /// Shows the new part of a text whose answer begins at `answer_at`; `None` is still a thought. The answer
    /// goes to standard output, the thought to standard error if that is a terminal.
    pub(super) fn show_answer(&mut self, text: &[u8], answer_at: Option<usize>) -> io::Result<()> {
        if let (Some(shown), at) = (&mut self.thought, answer_at.unwrap_or(text.len()).min(text.len()))
            && *shown < at
        {
            io::stderr().write_all(&text[*shown..at])?;
            *shown = at;
        }
        let Some(at) = answer_at else { return Ok(()) };
        self.shown = self.shown.max(at);
        self.show(text)
    }

    /// Shows the new part of `text`.
    pub(super) fn show(&mut self, text: &[u8]) -> io::Result<()> {
        // Text that may become a stop string comes later or never.
        let bytes = text.get(self.shown..).unwrap_or_default();
        self.shown = self.shown.max(text.len());
        // A terminal wants whole characters, a file the very bytes.
        if self.people {
            self.out.write_all(self.characters.push(bytes).as_bytes())?;
        } else {
            self.out.write_all(bytes)?;
        }
        self.out.flush()
    }

    /// Ends the display.
    pub(super) fn finish(self) -> io::Result<()> {
        let Self { mut out, people, mut characters, .. } = self;
        if people { writeln!(out, "{}", characters.finish()) } else { Ok(()) }
    }
}

/// Standard output, or a file.
pub(super) struct Destination<'a>(Option<Output<'a>>);

impl<'a> Destination<'a> {
    /// Takes the file of `--out`, if there is one. A file that cannot be written is refused before any work.
    pub(super) fn of(file: Option<&'a Path>) -> Result<Self, BadInput> {
        file.map(Output::prepare).transpose().map(Self)
    }

    /// True for a file.
    pub(super) fn is_file(&self) -> bool {
        self.0.is_some()
    }

    /// Writes a whole text to the file; standard output has it already.
    pub(super) fn text(&self, text: &[u8]) -> anyhow::Result<()> {
        self.0.as_ref().map_or(Ok(()), |file| file.write(text))
    }

    /// Writes an object.
    pub(super) fn object(&self, object: &Value) -> anyhow::Result<()> {
        match &self.0 {
            Some(file) => file.write(format!("{object}\n").as_bytes()),
            None => Ok(writeln!(terminal::stdout(), "{object}")?),
        }
    }
}

/// A text with the facts about how it was written: fields of the object, and a note for people.
struct Written {
    generation: Generation,
    fields: Value,
    note: String,
}

/// Writes a text and prints it.
pub(super) fn run_whole(
    command: &Generate,
    folder: &Path,
    way: Way,
    cache: &CacheFolder,
) -> anyhow::Result<Exit> {
    let options = &command.options;
    let destination = Destination::of(command.flags.out.as_deref())?;
    let vocabulary = model::vocabulary(folder, cache)?;
    let tokenizer = read_tokenizer(folder)?;
    let (prompt, thought) = command.asked(folder, &prompt_text(&command.prompt)?, &tokenizer, &vocabulary)?;
    let compiled = grammar(command, (&vocabulary, cache), (&[], thought))?;
    let (grammar, capturing) = compiled.context("there is no grammar")?;
    let (start, from) = (grammar.constraint(), (folder, &*prompt));
    let Written { mut generation, fields: more, note } = match way {
        Way::Conditional(particles) => conditional(command, from, &start, particles)?,
        Way::Canonical => canonical(command, from, &start, &tokenizer)?,
    };
    let forced = forced_bytes(Some(&grammar).filter(|_| command.json), &generation);
    only_answer(&mut generation);
    let ended = EndedRun {
        forced,
        captures: fields(&TextKind::of(command.usual.source.as_ref()), capturing.as_ref(), &generation),
        end: match progress::interrupted() {
            true => RunEnd::Interrupted,
            false => RunEnd::Finished(generation.finish),
        },
        vocabulary: &vocabulary,
        options,
        seconds: generation.stats.total_time.as_secs_f64(),
        generation,
        appended: None,
        speculative: false,
        draft: None,
        comparison: None,
    };
    if command.json {
        let mut object = ended.object();
        extend(&mut object, more);
        destination.object(&warned::with(object, grammar.grammar_warnings()))?;
    } else {
        if destination.is_file() {
            destination.text(&ended.generation.text)?;
        } else {
            let mut screen = Screen::new(0);
            screen.show(&ended.generation.text)?;
            screen.finish()?;
        }
        ended.summary(false);
        note!("[{note}]");
    }
    Ok(ended.exit())
}

/// Draws one of several texts by their weights.
fn conditional(
    command: &Generate,
    (folder, prompt): (&Path, &[TokenId]),
    start: &Constraint,
    particles: NonZeroUsize,
) -> anyhow::Result<Written> {
    let model = progress::during(format!("loading {}", folder.display()), || {
        BatchRunner::load(folder, particles, &command.load, command.by)
    })?;
    let mut decoder = ConditionalDecoder::new(model.model, start, &command.options).map_err(|error| {
        BadInput::new(error.to_string()).hint("give a temperature above 0, and leave such options out")
    })?;
    progress::watch_interrupts();
    let drawn = decoder.draw(prompt, &|| !progress::interrupted()).map_err(step_error)?;
    Ok(Written {
        fields: json!({
            "particles": particles, "log_kept": drawn.log_kept, "log_language": drawn.log_language,
            "effective": drawn.effective, "resamplings": drawn.resamplings, "fed": drawn.fed,
        }),
        note: format!(
            "{}, {:.1} effective, drawn anew {}, {} fed",
            count(particles.get(), "particle"),
            drawn.effective,
            count(drawn.resamplings, "time"),
            count(drawn.fed, "token")
        ),
        generation: drawn.generation,
    })
}

/// Writes a text of canonical tokens.
fn canonical(
    command: &Generate,
    (folder, prompt): (&Path, &[TokenId]),
    start: &Constraint,
    tokenizer: &Tokenizer,
) -> anyhow::Result<Written> {
    let (mut model, options) = (load(folder, &command.load, command.by)?, &command.options);
    let mut decoder = CanonicalDecoder::new(&mut model, tokenizer, start, options).map_err(|error| {
        BadInput::new(error.to_string()).hint("leave one of the two out, or take --tokenization free")
    })?;
    progress::watch_interrupts();
    let text = decoder.write(prompt, &|| !progress::interrupted()).map_err(step_error)?;
    let tokens = match text.canonical {
        Some(true) => "canonical tokens",
        Some(false) => "tokens that are not canonical",
        None => "a text that the tokenizer does not split",
    };
    Ok(Written {
        fields: json!({ "redraws": text.redraws, "canonical": text.canonical }),
        note: format!("{tokens}, {} refused or taken back", text.redraws),
        generation: text.generation,
    })
}

//! `domino generate --batch`: reads rows and writes texts as they end, several at a time.
//!
//! Rows are read while texts are written, and at most a few wait. [`answers`] is the destination of the
//! texts, knows earlier ones and counts them. The compiled grammars of a batch are here.

mod answers;

use std::{collections::HashMap, path::Path, rc::Rc};

use domino::decode::{BatchDecoder, BatchEvent, DecodeOptions, Finish, Generation, SequenceId};
use domino::{
    CompiledGrammar, Compiler, Constraint, Vocabulary, proposer::Drafter, store::CacheFolder,
    vocab::Tokenizer,
};
use serde_json::{Value, json};

use self::answers::{Answers, BatchTally, Earlier};
use super::args::Generate;
use super::grammar::{TextKind, compiler, fields, grammar_by};
use super::report::{EndedRun, RunEnd, only_answer, usual_tokens};
use crate::flags::{drawing::LowOptions, grammar::UsualGrammar};
use crate::grammar::thinking::{Thinking, tail};
use crate::grammar::{compiled::Capturing, notation::relaxed_as_json, source::GrammarSource, warned};
use crate::rows::{
    Carried, LastUsed, Lines, NextLine, Row, RowReader, RowReading, SeenIds, WantedGrammar, survey,
};
use crate::session::model::{self, AnyBatch, BatchRunner, bad_model, may_draft, read_tokenizer, step_error};
use crate::terminal::failure::{self, BadInput, Exit};
use crate::{files::Input, session::chat::Prompts, terminal::progress};

/// Answers all lines.
pub(super) fn run(
    command: &Generate,
    folder: &Path,
    rows: &Input,
    cache: &CacheFolder,
) -> anyhow::Result<Exit> {
    let (flags, source) = (&command.flags, command.usual.source.as_ref());
    // Mistakes in files are reported before the model is loaded.
    let reading = RowReading { reader: RowReader::Generate, keep: flags.keep_fields };
    let all = survey(rows, reading)?;
    let (answers, earlier) = Answers::open(flags.out.as_deref(), rows)?;
    let lines = Lines::read(rows, flags.parallel.get())?;
    let vocabulary = model::vocabulary(folder, cache)?;
    let compiler = compiler(command, &vocabulary, cache);
    // Thoughts are the rows' own, since prompts decide.
    let usual = grammar_by(command, &compiler, (&[], None))?;
    let tokenizer = read_tokenizer(folder)?;
    let prompts = command.prompts(folder)?;
    let model = progress::during(format!("loading {}", folder.display()), || {
        BatchRunner::load(folder, flags.parallel, &command.load, command.by)
    })?;
    let drafts = may_draft(model.no_drafts(), command.speculation.asked);
    let decoder = BatchDecoder::new(model.model, vocabulary.clone()).map_err(|error| bad_model(&error))?;
    progress::watch_interrupts();
    let drafters = |source: Option<&GrammarSource>, grammar: &CompiledGrammar| {
        let speculation = Some(&command.speculation).filter(|_| drafts)?;
        let shared = speculation.shared(source, grammar, folder, &tokenizer)?;
        Some(Rc::new(move || shared.drafter()) as Rc<dyn Fn() -> Drafter>)
    };
    let maker = KitMaker { compiler, captured: &flags.capture.rules, drafters: &drafters };
    let usual = usual.map(|(grammar, capturing)| maker.kit(source, grammar, capturing, Vec::new()));
    let mut batch = RunningBatch {
        decoder,
        vocabulary,
        tokenizer: &tokenizer,
        prompts,
        grammars: RowGrammars::new(maker, &command.usual, usual),
        defaults: &flags.options,
        reading,
        seen: all.is_none().then(SeenIds::default),
        running: HashMap::new(),
        row: None,
        tally: BatchTally::start(all, earlier.failed),
        answers,
        earlier,
    };
    batch.answer_all(&lines, 2 * flags.parallel.get())?;
    Ok(batch.tally.finish(batch.decoder.passes(), batch.answers.can_go_on()))
}

/// A text that is being written.
struct Running {
    carried: Carried,
    options: DecodeOptions,
    kit: Option<Kit>,
    /// The constraint at the beginning of its text.
    constraint: Option<Constraint>,
    /// True if the text has a token.
    begun: bool,
}

/// A row whose texts are begun one after the other.
struct BegunRow {
    carried: Carried,
    row: Rc<Row>,
    /// Number of the text to begin next.
    next: usize,
}

struct RunningBatch<'a> {
    decoder: BatchDecoder<AnyBatch>,
    vocabulary: Vocabulary,
    tokenizer: &'a Tokenizer,
    prompts: Prompts,
    grammars: RowGrammars<'a>,
    defaults: &'a LowOptions,
    reading: RowReading,
    /// The ids so far, if the rows were not surveyed before.
    seen: Option<SeenIds>,
    running: HashMap<SequenceId, Running>,
    row: Option<BegunRow>,
    tally: BatchTally,
    answers: Answers,
    earlier: Earlier,
}

impl RunningBatch<'_> {
    /// Adds texts as rows ask for them, up to `ahead` at a time, and writes those that end.
    fn answer_all(&mut self, lines: &Lines, ahead: usize) -> anyhow::Result<()> {
        let mut more = true;
        while !progress::interrupted() && (more || self.row.is_some() || !self.decoder.is_empty()) {
            while self.decoder.len() < ahead && !progress::interrupted() {
                if let Some(row) = self.row.take() {
                    self.begin(row)?;
                    continue;
                }
                if !more {
                    break;
                }
                match lines.next(self.decoder.is_empty())? {
                    NextLine::Line(number, line) => self.read(number, &line)?,
                    NextLine::NotYet => break,
                    NextLine::End => more = false,
                }
            }
            for event in self.decoder.step() {
                self.tell(event)?;
            }
        }
        self.interrupted()
    }

    /// Ends the batch after Ctrl-C. Texts that have not begun are left out. A file that a later run goes on
    /// with gets no unfinished text; otherwise unfinished texts are written as far as they are, and completed
    /// if `--finish` was given.
    fn interrupted(&mut self) -> anyhow::Result<()> {
        let mut left: Vec<(SequenceId, bool)> = Vec::new();
        for (&sequence, running) in &self.running {
            match (running.begun, self.answers.can_go_on()) {
                (false, _) => {}
                (true, true) => self.tally.dropped(),
                (true, false) => left.push((sequence, running.options.close)),
            }
        }
        left.sort_unstable();
        for (sequence, close) in left {
            if close {
                self.decoder.close(sequence).map_or(Ok(()), |event| self.tell(event))?;
            } else if let Some(generation) = self.decoder.cancel(sequence) {
                self.ended(sequence, generation, RunEnd::Interrupted)?;
            }
        }
        Ok(())
    }

    /// Reads the row of a line, or answers with the error in it.
    fn read(&mut self, number: usize, line: &[u8]) -> anyhow::Result<()> {
        let (carried, row) = self.reading.row(line, number);
        if let Some(seen) = &mut self.seen
            && let Err(error) = seen.note(carried.key(), &carried.name(), number)
        {
            return self.twice(&carried, &error);
        }
        match row {
            Ok(row) => self.row = Some(BegunRow { carried, row: Rc::new(row), next: 0 }),
            Err(_) if self.earlier.has(&carried.key()) => self.tally.skipped(),
            Err(error) => self.wrong(&carried, &failure::told(&error).line())?,
        }
        Ok(())
    }

    /// Reports a row with the id of another one. A file gets no answer, since it would have two lines with
    /// one id.
    fn twice(&mut self, carried: &Carried, error: &BadInput) -> anyhow::Result<()> {
        let told = failure::told(error);
        if self.answers.can_go_on() {
            self.tally.beside(true, || told.print());
            self.tally.wrong();
            return Ok(());
        }
        self.wrong(carried, &told.line())
    }

    /// Begins the next text of a row, unless it is in the file already.
    fn begin(&mut self, begun: BegunRow) -> anyhow::Result<()> {
        let BegunRow { carried: whole, row, next } = begun;
        let carried = match row.drawing.texts {
            Some(_) => whole.clone().with_index(next),
            None => whole.clone(),
        };
        if self.earlier.has(&carried.key()) {
            self.tally.skipped();
        } else {
            match self.start(&carried, &row, next) {
                Ok((sequence, running)) => {
                    self.running.insert(sequence, running);
                }
                // Ctrl-C cancels the row's grammar: the same command goes on with the row.
                Err(_) if progress::interrupted() => {}
                Err(error) => self.wrong(&carried, &error)?,
            }
        }
        self.row = (next + 1 < row.texts()).then_some(BegunRow { carried: whole, row, next: next + 1 });
        Ok(())
    }

    fn start(&mut self, carried: &Carried, row: &Row, index: usize) -> Result<(SequenceId, Running), String> {
        let options = row.drawing.options(self.defaults, index).and_then(|options| options.resolve());
        let mut options = options.map_err(|error| failure::told(&error).line())?;
        let prompt = match (&row.prompt, &row.messages) {
            (None, Some(messages)) => {
                let tools = row.grammar.tools();
                self.prompts.of_messages(self.tokenizer, messages, tools, &self.vocabulary)
            }
            (prompt, _) => {
                self.prompts.tokens(self.tokenizer, prompt.as_deref().unwrap_or_default(), &self.vocabulary)
            }
        };
        let prompt = prompt.map_err(|error| failure::told(error.as_ref()).line())?;
        let kit = self.grammars.of(row, &self.prompts, &tail(&self.vocabulary, &prompt))?;
        let constraint = kit.as_ref().map(|kit| kit.grammar.constraint());
        // Without a grammar there is nothing to complete.
        options.close &= constraint.is_some();
        let sequence = match kit.as_ref().and_then(|kit| kit.drafter.as_ref()) {
            Some(drafter) => self.decoder.add_with_drafter(&prompt, constraint.clone(), &options, drafter()),
            None => self.decoder.add(&prompt, constraint.clone(), &options),
        };
        let sequence = sequence.map_err(|error| error.to_string())?;
        let carried = carried.clone();
        Ok((sequence, Running { carried, options, kit, constraint, begun: false }))
    }

    fn tell(&mut self, event: BatchEvent) -> anyhow::Result<()> {
        match event {
            BatchEvent::Token { sequence, .. } => {
                if let Some(running) = self.running.get_mut(&sequence) {
                    running.begun = true;
                }
                Ok(())
            }
            BatchEvent::Finished { sequence, generation } => {
                let end = match generation.finish {
                    // Only Ctrl-C closes a text.
                    Finish::Closed => RunEnd::Interrupted,
                    finish => RunEnd::Finished(finish),
                };
                self.ended(sequence, generation, end)
            }
            BatchEvent::Failed { sequence, error, mut generation } => {
                let error = step_error(error);
                let end = RunEnd::Failed(failure::told(error.as_ref()), Exit::of(&error));
                let running = self.running.get(&sequence).filter(|running| running.options.close);
                if let Some(constraint) = running.and_then(|running| running.constraint.clone()) {
                    complete(&mut generation, constraint);
                }
                self.ended(sequence, generation, end)
            }
            _ => Ok(()),
        }
    }

    /// Writes a text that has ended.
    fn ended(&mut self, sequence: SequenceId, mut generation: Generation, end: RunEnd) -> anyhow::Result<()> {
        let Some(Running { carried, options, kit, .. }) = self.running.remove(&sequence) else {
            return Ok(());
        };
        let failed = matches!(end, RunEnd::Failed(..));
        let cut = !generation.complete && matches!(end, RunEnd::Finished(finish) if finish != Finish::Stop);
        self.tally.ended(failed, cut, generation.stats.tokens);
        let drafted = generation.stats.drafted > 0;
        only_answer(&mut generation);
        let reading = kit.as_ref().map_or(TextKind::Text, |kit| kit.reading.clone());
        let capturing = kit.as_ref().and_then(|kit| kit.capturing.as_deref());
        let ended = EndedRun {
            appended: usual_tokens(self.tokenizer, &self.vocabulary, &generation),
            seconds: generation.stats.total_time.as_secs_f64(),
            captures: fields(&reading, capturing, &generation),
            generation,
            end,
            vocabulary: &self.vocabulary,
            options: &options,
            speculative: drafted,
            draft: None,
            // A count of forced bytes would keep the other texts waiting.
            forced: None,
            comparison: None,
        };
        let warnings = kit.as_ref().map_or(&[][..], |kit| kit.grammar.grammar_warnings());
        let mut answer = warned::with(ended.object(), warnings);
        if let Some(kit) = kit.filter(|kit| !kit.relaxed.is_empty()) {
            answer["relaxed"] = Value::Array(kit.relaxed);
        }
        self.write(&carried.line(&answer))
    }

    /// Answers with the error in a row.
    fn wrong(&mut self, carried: &Carried, error: &str) -> anyhow::Result<()> {
        self.tally.wrong();
        self.write(&carried.line(&json!({ "error": error })))
    }

    fn write(&mut self, line: &str) -> anyhow::Result<()> {
        let (tally, answers) = (&self.tally, &mut self.answers);
        tally.beside(answers.are_seen(), || answers.write(line))
    }
}

/// Completes the text of a run that failed, if it is not complete and a completion can be found.
fn complete(generation: &mut Generation, mut constraint: Constraint) {
    let followed = constraint.advance_bytes(&generation.text);
    if generation.complete || generation.completion.is_some() || followed != Ok(generation.text.len()) {
        return;
    }
    if let Ok(completion) = constraint.shortest_completion() {
        generation.text.extend_from_slice(&completion.bytes);
        if constraint.advance_bytes(&completion.bytes) == Ok(completion.bytes.len()) {
            let (_, answer) = constraint.split_thought(&generation.text);
            generation.answer_at = generation.text.len() - answer.len();
        }
        generation.completion = Some(completion);
        generation.complete = true;
    }
}

/// Limit on the compiled grammars in the LRU cache. A batch that returns to others compiles them again.
const MOST_KEPT: usize = 64;

/// A compiled grammar with the drafter and the readers of its texts.
#[derive(Clone)]
struct Kit {
    grammar: CompiledGrammar,
    capturing: Option<Rc<Capturing>>,
    reading: TextKind,
    /// Makes the drafter of one of its texts.
    drafter: Option<Rc<dyn Fn() -> Drafter>>,
    /// Places where it allows more than its schema.
    relaxed: Vec<Value>,
}

/// A function that finds the drafters for texts of a grammar, if there are to be any.
type Drafters<'a> = dyn Fn(Option<&GrammarSource>, &CompiledGrammar) -> Option<Rc<dyn Fn() -> Drafter>> + 'a;

/// A maker of kits.
struct KitMaker<'a> {
    compiler: Compiler,
    /// Names of the rules to capture.
    captured: &'a [String],
    drafters: &'a Drafters<'a>,
}

impl KitMaker<'_> {
    /// Makes a kit with a grammar that is compiled already.
    fn kit(
        &self,
        source: Option<&GrammarSource>,
        grammar: CompiledGrammar,
        capturing: Option<Capturing>,
        relaxed: Vec<Value>,
    ) -> Kit {
        let drafter = (self.drafters)(source, &grammar);
        let (reading, capturing) = (TextKind::of(source), capturing.map(Rc::new));
        Kit { grammar, capturing, reading, drafter, relaxed }
    }

    fn make(&self, source: &GrammarSource) -> Result<Kit, BadInput> {
        let text = source.load()?;
        let parsed = text.read()?;
        let compiled = text.compile_parsed(&parsed.grammar, &self.compiler)?;
        let capturing = Capturing::of(&source.name(), parsed.grammar, self.captured)?;
        // Masks are not explored ahead: where each row has a grammar of its own, that costs more time than
        // all else, and memory that grows with the rows.
        Ok(self.kit(Some(source), compiled, capturing, relaxed_as_json(&parsed.relaxed)))
    }
}

/// The grammars of rows.
struct RowGrammars<'a> {
    maker: KitMaker<'a>,
    usual: &'a UsualGrammar,
    /// The grammar of the command line.
    first: Option<(WantedGrammar, Kit)>,
    kept: LastUsed<WantedGrammar, Result<Kit, String>>,
}

impl<'a> RowGrammars<'a> {
    /// Makes the grammars, of which that of the command line may be compiled already, in `kit`.
    fn new(maker: KitMaker<'a>, usual: &'a UsualGrammar, kit: Option<Kit>) -> Self {
        Self { maker, usual, first: WantedGrammar::usual(usual).zip(kit), kept: LastUsed::new() }
    }

    /// Finds the grammar of a row, if it or the command line has one. The error says what is wrong with it.
    fn of(&mut self, row: &Row, prompts: &Prompts, tail: &[u8]) -> Result<Option<Kit>, String> {
        let chat = prompts.are_in_template() || row.messages.is_some();
        let thought =
            |thinking: &Thinking, source: &GrammarSource| prompts.thought(thinking, source, tail, chat);
        let resolved = row.grammar.resolve(self.usual, thought);
        let resolved = resolved.map_err(|error| failure::told(&error).line())?;
        let Some((wanted, source)) = resolved else { return Ok(None) };
        if let Some((first, kit)) = &self.first
            && *first == wanted
        {
            return Ok(Some(kit.clone()));
        }
        let maker = &self.maker;
        let make = |_: &WantedGrammar| maker.make(&source).map_err(|error| failure::told(&error).line());
        self.kept.get_or_make(MOST_KEPT, wanted, make).map(Some)
    }
}

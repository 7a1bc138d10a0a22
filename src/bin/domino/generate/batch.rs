//! `domino generate --batch`: lines of JSON in, texts out as they end, several at a time.

use std::{
    collections::HashMap,
    io::{self, BufRead, Write},
    num::NonZeroUsize,
    path::Path,
    rc::Rc,
    sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender},
    time::{Duration, Instant},
};

use anyhow::Context;
use domino::{
    CompiledGrammar, Compiler, Constraint, Vocabulary,
    decode::{BatchDecoder, BatchEvent, DecodeOptions, Finish, Generation, SequenceId},
    grammar::GrammarWarning,
    model::candle::CandleBatch,
    store::CacheFolder,
    vocab::Tokenizer,
};
use serde_json::{Map, Value, json};

use super::{
    args::Generate,
    bad_model, compiler, grammar,
    options::LowOptions,
    prompt_tokens, read_tokenizer,
    report::{End, Ended},
    request::{GrammarName, Request},
    usual_tokens,
};
use crate::{
    captures::Capturing,
    failure::{self, BadInput, Exit, Paint, note},
    input::Input,
    interrupt, lines,
    notation::GrammarSource,
    progress,
    runner::tell_idle_quantising,
    speculate::Shared,
    stdout, tokenizer, warned,
};

/// How often Ctrl-C is looked for while there is nothing to do.
const PATIENCE: Duration = Duration::from_millis(100);

/// Answers all lines.
pub(super) fn run(
    command: &Generate,
    folder: &Path,
    requests: &Input,
    parallel: NonZeroUsize,
    cache: &CacheFolder,
) -> anyhow::Result<Exit> {
    let vocabulary = tokenizer::vocabulary(folder, cache)?;
    let compiler = compiler(command, &vocabulary, cache);
    let usual = grammar(command, &compiler, &[])?;
    let tokenizer = read_tokenizer(folder)?;
    // Before the model is loaded, so that a file that is not there is told at once.
    let lines = Lines::read(requests, parallel.get())?;
    let model = progress::during(format!("loading {}", folder.display()), || {
        CandleBatch::load(folder, parallel, &command.load)
    })
    .map_err(|error| bad_model(&error))?;
    tell_idle_quantising(folder, &command.load);
    let decoder = BatchDecoder::new(model, vocabulary.clone()).map_err(|error| bad_model(&error))?;
    interrupt::watch();
    let defaults = &command.options;
    let speculation = &command.speculation;
    let kit = |source: Option<&GrammarSource>, (grammar, capturing): Ready| {
        let shared = speculation.shared(source, &grammar, folder, &tokenizer);
        Kit { grammar, capturing: capturing.map(Rc::new), shared: shared.map(Rc::new) }
    };
    let usual = usual.map(|grammar| kit(command.grammar.as_ref(), grammar));
    let grammars =
        Grammars { compiler, usual, compiled: HashMap::new(), kit: &kit, captured: &command.captured };
    let mut batch = Batch {
        decoder,
        vocabulary,
        tokenizer: &tokenizer,
        grammars,
        defaults,
        running: HashMap::new(),
        begun: Instant::now(),
        texts: 0,
        tokens: 0,
    };
    batch.answer_all(&lines, 2 * parallel.get())?;
    batch.summary();
    Ok(if interrupt::pressed() { Exit::Interrupted } else { Exit::Success })
}

/// The lines of the input, read by a thread of their own: who writes them may wait for answers first.
struct Lines {
    lines: Receiver<io::Result<(usize, Vec<u8>)>>,
    name: String,
}

/// What there is to read at the moment.
enum Next {
    Line(usize, Vec<u8>),
    NotYet,
    End,
}

impl Lines {
    fn read(input: &Input, ahead: usize) -> Result<Self, BadInput> {
        // Standard input is locked by the thread that reads it.
        if let Input::File(_) = input {
            drop(input.open()?);
        }
        let (sender, lines) = mpsc::sync_channel(ahead);
        let (source, name) = (input.clone(), input.name());
        std::thread::spawn(move || match source.open() {
            Ok(reader) => send_lines(reader, &sender),
            Err(error) => drop(sender.send(Err(io::Error::other(error)))),
        });
        Ok(Self { lines, name })
    }

    /// The next line; waits a little for it if there is nothing else to do.
    fn next(&self, idle: bool) -> anyhow::Result<Next> {
        let patience = if idle { PATIENCE } else { Duration::ZERO };
        match self.lines.recv_timeout(patience) {
            Ok(Ok((number, line))) => Ok(Next::Line(number, line)),
            Ok(Err(error)) => Err(error).with_context(|| format!("cannot read {}", self.name)),
            Err(RecvTimeoutError::Timeout) => Ok(Next::NotYet),
            Err(RecvTimeoutError::Disconnected) => Ok(Next::End),
        }
    }
}

/// Sends all lines that are not blank, with their numbers from 1, until nobody wants them any more.
fn send_lines(mut reader: Box<dyn BufRead>, lines: &SyncSender<io::Result<(usize, Vec<u8>)>>) {
    for number in 1.. {
        let mut line = Vec::new();
        let sent = match reader.read_until(b'\n', &mut line) {
            Ok(0) => return,
            Ok(_) if lines::content(&line).is_empty() => continue,
            Ok(_) => lines.send(Ok((number, line))),
            Err(error) => lines.send(Err(error)),
        };
        if sent.is_err() {
            return;
        }
    }
}

/// A grammar, and what is captured of its texts.
type Ready = (CompiledGrammar, Option<Capturing>);

/// A grammar, what is captured of its texts, and what they are drafted with.
#[derive(Clone)]
struct Kit {
    grammar: CompiledGrammar,
    capturing: Option<Rc<Capturing>>,
    shared: Option<Rc<Shared>>,
}

/// Grammars by what requests call them.
struct Grammars<'a> {
    compiler: Compiler,
    /// That of the command line.
    usual: Option<Kit>,
    compiled: HashMap<GrammarName, Result<Kit, String>>,
    kit: &'a dyn Fn(Option<&GrammarSource>, Ready) -> Kit,
    /// Rules to be captured.
    captured: &'a [String],
}

impl Grammars<'_> {
    /// The grammar of a request; each is compiled once.
    fn get(&mut self, name: Option<GrammarName>) -> Result<Option<Kit>, String> {
        let Some(name) = name else { return Ok(self.usual.clone()) };
        let (compiler, kit, captured) = (&self.compiler, self.kit, self.captured);
        let compile = |name: &GrammarName| {
            let source = name.source().map_err(|error| failure::told(&error).line())?;
            let told = |error: BadInput| failure::told(&error).line();
            let (compiled, grammar) = name.compile(compiler).map_err(told)?;
            let capturing = Capturing::of("the grammar", grammar, captured).map_err(told)?;
            compiled.explore_in_background();
            Ok(kit(source.as_ref(), (compiled, capturing)))
        };
        self.compiled.entry(name).or_insert_with_key(compile).clone().map(Some)
    }
}

/// A request that has been added.
struct Running {
    id: Value,
    options: DecodeOptions,
    /// What its text is held against, at the beginning.
    constraint: Option<Constraint>,
    capturing: Option<Rc<Capturing>>,
    /// Its grammar's.
    warnings: Vec<GrammarWarning>,
}

struct Batch<'a> {
    decoder: BatchDecoder<CandleBatch>,
    vocabulary: Vocabulary,
    tokenizer: &'a Tokenizer,
    grammars: Grammars<'a>,
    defaults: &'a LowOptions,
    running: HashMap<SequenceId, Running>,
    begun: Instant,
    texts: usize,
    tokens: usize,
}

impl Batch<'_> {
    /// Adds requests as they come, up to `ahead` at a time, and prints what ends.
    fn answer_all(&mut self, lines: &Lines, ahead: usize) -> anyhow::Result<()> {
        let mut more = true;
        while !interrupt::pressed() && (more || !self.decoder.is_empty()) {
            while more && self.decoder.len() < ahead {
                match lines.next(self.decoder.is_empty())? {
                    Next::Line(number, line) => self.add(number, &line)?,
                    Next::NotYet => break,
                    Next::End => more = false,
                }
            }
            for event in self.decoder.step() {
                self.tell(event)?;
            }
        }
        // Interrupted: what there is is told, and completed where --finish was given.
        let mut left: Vec<(SequenceId, bool)> =
            self.running.iter().map(|(&sequence, running)| (sequence, running.options.close)).collect();
        left.sort_unstable();
        for (sequence, close) in left {
            if close {
                self.decoder.close(sequence).map_or(Ok(()), |event| self.tell(event))?;
            } else if let Some(generation) = self.decoder.cancel(sequence) {
                self.ended(sequence, generation, End::Interrupted)?;
            }
        }
        Ok(())
    }

    /// Adds the request of a line, or answers what is wrong with it.
    fn add(&mut self, number: usize, line: &[u8]) -> anyhow::Result<()> {
        let (id, request) = Request::read(line, number);
        match request.and_then(|request| self.start(id.clone(), request)) {
            Ok((sequence, running)) => {
                self.running.insert(sequence, running);
                Ok(())
            }
            Err(error) => print(&json!({ "id": id, "error": error })),
        }
    }

    fn start(&mut self, id: Value, request: Request) -> Result<(SequenceId, Running), String> {
        let mut options = request.options(self.defaults).resolve().map_err(|error| error.to_string())?;
        let prompt = prompt_tokens(self.tokenizer, request.prompt(), &self.vocabulary)
            .map_err(|error| format!("{error:#}"))?;
        let kit = self.grammars.get(request.grammar()?)?;
        let constraint = kit.as_ref().map(|kit| kit.grammar.constraint());
        let warnings = kit.as_ref().map_or_else(Vec::new, |kit| kit.grammar.grammar_warnings().to_vec());
        let capturing = kit.as_ref().and_then(|kit| kit.capturing.clone());
        // Without a grammar there is nothing to complete.
        options.close &= constraint.is_some();
        let sequence = match kit.and_then(|kit| kit.shared) {
            Some(shared) => {
                self.decoder.add_with_drafter(&prompt, constraint.clone(), &options, shared.drafter())
            }
            None => self.decoder.add(&prompt, constraint.clone(), &options),
        };
        let sequence = sequence.map_err(|error| error.to_string())?;
        Ok((sequence, Running { id, options, constraint, capturing, warnings }))
    }

    fn tell(&mut self, event: BatchEvent) -> anyhow::Result<()> {
        match event {
            BatchEvent::Finished { sequence, generation } => {
                let end = match generation.finish {
                    // Only Ctrl-C closes a text.
                    Finish::Closed => End::Interrupted,
                    finish => End::Finished(finish),
                };
                self.ended(sequence, generation, end)
            }
            BatchEvent::Failed { sequence, error, mut generation } => {
                let error = super::step_error(error);
                let end = End::Failed(failure::told(error.as_ref()), Exit::of(&error));
                let running = self.running.get(&sequence).filter(|running| running.options.close);
                if let Some(constraint) = running.and_then(|running| running.constraint.clone()) {
                    complete(&mut generation, constraint);
                }
                self.ended(sequence, generation, end)
            }
            _ => Ok(()),
        }
    }

    /// Prints a text that has ended.
    fn ended(&mut self, sequence: SequenceId, generation: Generation, end: End) -> anyhow::Result<()> {
        let Some(Running { id, options, capturing, warnings, .. }) = self.running.remove(&sequence) else {
            return Ok(());
        };
        self.texts += 1;
        self.tokens += generation.stats.tokens;
        let drafted = generation.stats.drafted > 0;
        let captures = capturing.map_or_else(Map::new, |capturing| capturing.fields(&generation.text));
        let ended = Ended {
            appended: usual_tokens(self.tokenizer, &self.vocabulary, &generation),
            seconds: generation.stats.total_time.as_secs_f64(),
            generation,
            end,
            vocabulary: &self.vocabulary,
            options: &options,
            speculative: drafted,
            draft: None,
            // It would keep the other texts waiting.
            forced: None,
            captures,
            comparison: None,
        };
        let mut object = json!({ "id": id });
        if let (Some(object), Value::Object(fields)) = (object.as_object_mut(), ended.object()) {
            object.extend(fields);
        }
        print(&warned::with(object, &warnings))
    }

    /// Says on standard error what all of it cost.
    fn summary(&self) {
        let seconds = self.begun.elapsed().as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "counts of tokens are far below 2^52")]
        let rate = if seconds > 0.0 { self.tokens as f64 / seconds } else { 0.0 };
        let paint = Paint::for_stderr();
        let end = if interrupt::pressed() { paint.red("interrupted") } else { "done".to_owned() };
        note!(
            "[{end}; {} texts, {} tokens in {} passes, {rate:.1} tokens/s, {seconds:.2} s]",
            self.texts,
            self.tokens,
            self.decoder.passes()
        );
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
        generation.completion = Some(completion);
        generation.complete = true;
    }
}

fn print(object: &Value) -> anyhow::Result<()> {
    let mut out = stdout::lock();
    writeln!(out, "{object}")?;
    out.flush()?;
    Ok(())
}

//! One text of an engine that writes texts itself, ordered from it as the server orders them.

use std::{num::NonZeroUsize, path::Path, sync::Arc, time::Duration, time::Instant};

use anyhow::Context;
use domino::decode::{DecodeOptions, DecodeStats, Finish, Generation, StopSearch};
use domino::grammar::ThoughtPlace;
use domino::{
    CompiledGrammar, Constraint, StepError, TokenId, Vocabulary, store::CacheFolder, vocab::Tokenizer,
};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::UnboundedReceiver;

use super::args::Generate;
use super::grammar::{TextKind, fields, grammar};
use super::one::{Destination, Screen, tell};
use super::report::{EndedRun, RunEnd, forced_bytes, only_answer};
use crate::engine::WantedModel;
use crate::serve::{
    Client, DraftSize, EngineEvent, Gate, GrammarGuesses, PATIENCE, Problem, Pulse, TextEngine, TextModel,
    TextOrder, WantedTexts, patiently,
};
use crate::session::chat::asked_text;
use crate::session::drafts::{Keeper, Speculate};
use crate::session::model::{self, read_tokenizer};
use crate::terminal::failure::{BadInput, Exit, Told};
use crate::terminal::progress;

/// Time between two looks for Ctrl-C.
const TICK: Duration = Duration::from_millis(50);

/// Time that the engine is given at the end to let go of the text.
const LAST_WAIT: Duration = Duration::from_secs(2);

/// Writes one text.
pub(super) fn run(
    command: &Generate,
    engine: &dyn TextEngine,
    folder: &Path,
    cache: &CacheFolder,
) -> anyhow::Result<Exit> {
    let (source, options) = (command.usual.source.as_ref(), &command.options);
    let wanted = wanted(command);
    engine.check(&wanted)?;
    let text = asked_text(&command.prompt)?;
    let destination = Destination::of(command.flags.out.as_deref())?;
    let (vocabulary, tokenizer) = (model::vocabulary(folder, cache)?, read_tokenizer(folder)?);
    let (prompt, thought) = command.asked(folder, &text, &tokenizer, &vocabulary)?;
    let thinks = thought.is_some();
    let (grammar, capturing) = grammar(command, (&vocabulary, cache), (&[], thought))?.unzip();
    let warnings = grammar.as_ref().map_or_else(Vec::new, |grammar| grammar.grammar_warnings().to_vec());
    let (guesses, keeper) = guesses(command, grammar.as_ref(), thinks, (folder, &tokenizer))?.unzip();
    let wanted = WantedTexts { drafts: wanted.drafts.filter(|_| guesses.is_some()), ..wanted };
    let runtime = Runtime::new().context("cannot start the threads of the engine")?;
    let pulse = Arc::new(Pulse::new(PATIENCE));
    let loaded = progress::during(format!("loading {}", folder.display()), || {
        runtime.block_on(engine.load_texts(folder, &wanted, &pulse))
    })?;
    refuse_other_tokens(engine, &loaded, &vocabulary)?;
    let (speculative, gate) = (guesses.is_some(), Gate::new(1));
    let order = order(&loaded, prompt, options, (grammar.clone(), guesses), &gate)?;
    progress::watch_interrupts();
    let (begun, mut heard) = (Instant::now(), Heard::new(&order, &vocabulary));
    let screen = (!command.json && !destination.is_file()).then(|| Screen::new(0));
    let end = runtime.block_on(heard.write(order, &loaded, (&pulse, &gate), screen))?;
    let mut generation = heard.into_generation(&end);
    let forced = forced_bytes(grammar.as_ref().filter(|_| command.json), &generation);
    only_answer(&mut generation);
    let captures = fields(&TextKind::of(source), capturing.flatten().as_ref(), &generation);
    let ended = EndedRun {
        generation,
        end,
        vocabulary: &vocabulary,
        options,
        appended: None,
        seconds: begun.elapsed().as_secs_f64(),
        speculative,
        draft: None,
        forced,
        captures,
        comparison: None,
    };
    tell(command, &ended, &destination, keeper.as_ref(), &warnings)?;
    keeper.map_or(Ok(()), |keeper| keeper.keep())?;
    Ok(ended.exit())
}

/// Returns the options of the engine. It guesses only if they ask for that, or the model has a prior.
fn wanted(command: &Generate) -> WantedTexts {
    let drafts = match command.speculation.how {
        Some(Speculate::Off) => None,
        Some(Speculate::To { most, .. }) => {
            Some(most.and_then(NonZeroUsize::new).map_or(DraftSize::Auto, DraftSize::Tokens))
        }
        None => Some(DraftSize::Auto),
    };
    WantedTexts {
        model: WantedModel { context: command.load.context, threads: command.flags.device.threads },
        texts: NonZeroUsize::MIN,
        drafts,
        chat_template: None,
    }
}

/// Refuses an engine whose tokens are not those that the grammar is compiled for.
fn refuse_other_tokens(
    engine: &dyn TextEngine,
    loaded: &TextModel,
    vocabulary: &Vocabulary,
) -> Result<(), BadInput> {
    if loaded.vocabulary == *vocabulary {
        return Ok(());
    }
    let name = engine.name();
    Err(BadInput::new(format!("{name} reads other tokens from this model than domino does"))
        .hint("use domino's own runner: --engine domino"))
}

/// Makes the guesses for the text, and the keeper of what they learn, if something is to be guessed.
fn guesses(
    command: &Generate,
    grammar: Option<&CompiledGrammar>,
    thinks: bool,
    (folder, tokenizer): (&Path, &Tokenizer),
) -> Result<Option<(GrammarGuesses, Keeper)>, BadInput> {
    let Some(grammar) = grammar else { return Ok(None) };
    let asked = &command.speculation;
    // Counts learnt for a grammar do not apply to texts that begin with a thought.
    let source = command.usual.source.as_ref().filter(|_| !thinks);
    let Some(counts) = asked.counts(source, grammar, folder)? else { return Ok(None) };
    let recipe = asked.proposer.recipe(grammar, tokenizer, !counts.prior().is_empty());
    let guesses = GrammarGuesses::of(counts, asked.proposer.counting(), recipe, asked.threshold);
    let keeper = asked.keeper(Arc::clone(&guesses.book(Client::default()).learner));
    Ok(Some((guesses, keeper)))
}

/// Orders the text, as long as the model has room for it.
fn order(
    loaded: &TextModel,
    prompt: Vec<TokenId>,
    options: &DecodeOptions,
    (grammar, guesses): (Option<CompiledGrammar>, Option<GrammarGuesses>),
    gate: &Arc<Gate>,
) -> anyhow::Result<TextOrder> {
    let room = loaded.context.saturating_sub(prompt.len());
    if prompt.is_empty() || room == 0 {
        let (tokens, most) = (prompt.len(), loaded.context);
        return Err(BadInput::new(format!(
            "the prompt has {tokens} tokens, and the model takes 1 to {most}"
        ))
        .hint("give another prompt")
        .into());
    }
    let mut options = options.clone();
    options.max_new_tokens = options.max_new_tokens.min(room);
    let refused = |problem: Problem| BadInput::new(problem.message());
    loaded.engine.check(&options).map_err(refused)?;
    let (client, request) = (Client::default(), 0);
    let places = Arc::new(gate.enter(1).map_err(refused)?);
    Ok(TextOrder {
        prompt: prompt.into(),
        options,
        grammar,
        guesses,
        client,
        shared: client,
        request,
        places,
    })
}

/// A text as far as it was heard of.
struct Heard {
    /// The constraint before the text, and where the text is.
    start: Option<Constraint>,
    here: Option<Constraint>,
    prompt: usize,
    tokens: Vec<TokenId>,
    text: Vec<u8>,
    search: StopSearch,
    end_of_text: Option<TokenId>,
    thought_tokens: usize,
    stats: DecodeStats,
}

impl Heard {
    fn new(order: &TextOrder, vocabulary: &Vocabulary) -> Self {
        let start = order.constraint();
        Self {
            here: start.clone(),
            start,
            prompt: order.prompt.len(),
            tokens: Vec::new(),
            text: Vec::new(),
            search: order.options.stop.search(),
            end_of_text: vocabulary.end_of_text().first().copied(),
            thought_tokens: 0,
            stats: DecodeStats::default(),
        }
    }

    /// Has the text written, shows it as it comes, and waits until the engine has let go of it.
    async fn write(
        &mut self,
        order: TextOrder,
        loaded: &TextModel,
        (pulse, gate): (&Pulse, &Gate),
        mut screen: Option<Screen>,
    ) -> anyhow::Result<RunEnd> {
        let mut events = loaded.engine.begin(order);
        let end = self.hear(&mut events, pulse, screen.as_mut()).await;
        drop(events);
        let begun = Instant::now();
        while gate.taken() > 0 && begun.elapsed() < LAST_WAIT {
            tokio::time::sleep(TICK).await;
        }
        if let Some(mut screen) = screen {
            screen.show_answer(&self.text, self.answer_at())?;
            screen.finish()?;
        }
        end
    }

    /// Hears the text to its end, to Ctrl-C or to a failure.
    async fn hear(
        &mut self,
        events: &mut UnboundedReceiver<EngineEvent>,
        pulse: &Pulse,
        mut screen: Option<&mut Screen>,
    ) -> anyhow::Result<RunEnd> {
        loop {
            let event = tokio::select! {
                biased;
                () = interrupted() => return Ok(RunEnd::Interrupted),
                event = patiently(pulse, events.recv()) => event,
            };
            match event {
                Ok(Some(EngineEvent::Token(written))) => {
                    self.stats = written.stats;
                    let stopped = self.token(written.token, &written.bytes)?;
                    if let Some(screen) = screen.as_deref_mut() {
                        screen.show_answer(self.settled(stopped), self.answer_at())?;
                    }
                    if stopped {
                        return Ok(RunEnd::Finished(self.cut(Finish::StopString)));
                    }
                }
                Ok(Some(EngineEvent::End(finish, stats))) => {
                    self.stats = stats;
                    return Ok(RunEnd::Finished(self.finish(finish)?));
                }
                Ok(Some(EngineEvent::Prompt(_))) => {}
                Ok(Some(EngineEvent::Failed(problem))) | Err(problem) => return Ok(failed(&problem)),
                Ok(None) => return Ok(failed(&Problem::engine("the engine ended without an answer"))),
            }
        }
    }

    /// Takes a token. Returns whether it completes a stop string, which is cut off.
    fn token(&mut self, token: TokenId, bytes: &[u8]) -> Result<bool, StepError> {
        let inside = self.place() == Some(ThoughtPlace::Inside);
        if let Some(here) = &mut self.here {
            here.advance(token)?;
        }
        let thinks = self.place().is_some_and(|place| place != ThoughtPlace::Behind);
        self.thought_tokens += usize::from(inside || thinks);
        self.tokens.push(token);
        let stopped = self.search.append(&mut self.text, bytes);
        if let Some(mut cut) = self.start.take_if(|_| stopped) {
            cut.advance_text(&self.text)?;
            self.here = Some(cut);
        }
        Ok(stopped)
    }

    /// Takes the end of the text.
    fn finish(&mut self, finish: Finish) -> Result<Finish, StepError> {
        if let (Finish::Stop, Some(here), Some(end)) = (finish, &mut self.here, self.end_of_text)
            && here.is_complete()
        {
            here.advance(end)?;
        }
        Ok(self.cut(finish))
    }

    /// The reason of an end, which may have come inside of a thought.
    fn cut(&self, finish: Finish) -> Finish {
        let cut = matches!(finish, Finish::Length | Finish::StopString);
        if cut && self.place() == Some(ThoughtPlace::Inside) { Finish::Thought } else { finish }
    }

    fn place(&self) -> Option<ThoughtPlace> {
        self.here.as_ref().and_then(Constraint::thought)
    }

    /// The part of the text that no stop string can take back any more.
    fn settled(&self, stopped: bool) -> &[u8] {
        let held = if stopped { 0 } else { self.search.held() };
        &self.text[..self.text.len() - held]
    }

    /// The place where the answer begins in the text; `None` while the text may be in its thought.
    fn answer_at(&self) -> Option<usize> {
        let thinks = self.place().is_some_and(|place| place != ThoughtPlace::Behind);
        let behind = |here: &Constraint| self.text.len() - here.split_thought(&self.text).1.len();
        (!thinks).then(|| self.here.as_ref().map_or(0, behind))
    }

    fn into_generation(self, end: &RunEnd) -> Generation {
        let finish = if let RunEnd::Finished(finish) = end { *finish } else { Finish::Length };
        let mut stats = self.stats;
        (stats.prompt_tokens, stats.tokens) = (self.prompt, self.tokens.len());
        stats.reasoning_tokens = self.thought_tokens;
        let stopped = matches!(finish, Finish::Stop | Finish::OnlySpace | Finish::StopString);
        let complete = self.here.as_ref().map_or(stopped, Constraint::is_complete);
        let split = self.here.as_ref().filter(|here| here.thought().is_some());
        let split = split.map(|here| here.split_thought(&self.text));
        let split = split.map(|(thought, answer)| (thought.to_vec(), self.text.len() - answer.len()));
        let mut generation = Generation::of_engine(self.tokens, self.text, finish, complete, stats);
        if let Some((thought, answer_at)) = split {
            (generation.reasoning, generation.answer_at) = (Some(thought), answer_at);
        }
        generation
    }
}

/// Waits for Ctrl-C.
async fn interrupted() {
    while !progress::interrupted() {
        tokio::time::sleep(TICK).await;
    }
}

fn failed(problem: &Problem) -> RunEnd {
    RunEnd::Failed(Told { sentence: problem.message().to_owned(), hint: None }, Exit::Failure)
}

#[cfg(test)]
mod tests {
    use domino::decode::StopStrings;
    use domino::grammar::{Reasoning, Thought, ThoughtMarks};
    use domino::{Compiler, Grammar, Limits, Syntax};
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;
    use crate::{grammar::compiler::byte_vocabulary, serve::WrittenToken};

    /// An order of a text of digits, behind a thought if one is to come.
    fn order(thinks: bool, stop: &str, gate: &Arc<Gate>) -> TextOrder {
        let limits = Limits::default();
        let mut grammar = Grammar::parse(Syntax::Regex, "[0-9]+", &limits).unwrap();
        if thinks {
            let thought = Thought::new(&ThoughtMarks::default(), Reasoning::Required, []);
            grammar = grammar.after_thought(&thought, &limits).unwrap();
        }
        let grammar = Compiler::new(byte_vocabulary().unwrap()).compile(&grammar).unwrap();
        let mut options = DecodeOptions::default();
        options.stop = StopStrings::new((!stop.is_empty()).then_some(stop)).unwrap();
        let (client, places) = (Client::default(), Arc::new(gate.enter(1).unwrap()));
        let (prompt, grammar) = (Arc::from([TokenId::new(65)]), Some(grammar));
        TextOrder { prompt, options, grammar, guesses: None, client, shared: client, request: 0, places }
    }

    /// Hears a text of these bytes, each a token, that ends in this way, if it does not stop before.
    fn heard(thinks: bool, stop: &str, text: &str, end: EngineEvent) -> (Generation, RunEnd) {
        let (vocabulary, gate) = (byte_vocabulary().unwrap(), Gate::new(1));
        let mut heard = Heard::new(&order(thinks, stop, &gate), &vocabulary);
        let (sender, mut events) = unbounded_channel();
        for &byte in text.as_bytes() {
            let (token, stats) = (TokenId::new(byte.into()), DecodeStats::default());
            let written = WrittenToken { token, bytes: vec![byte], logprobs: None, stats };
            sender.send(EngineEvent::Token(written)).unwrap();
        }
        sender.send(end).unwrap();
        let pulse = Pulse::new(PATIENCE);
        let ended = Runtime::new().unwrap().block_on(heard.hear(&mut events, &pulse, None)).unwrap();
        (heard.into_generation(&ended), ended)
    }

    fn ends(finish: Finish) -> EngineEvent {
        EngineEvent::End(finish, DecodeStats::default())
    }

    #[test]
    fn a_thought_is_told_apart_from_its_answer() {
        let (mut generation, end) = heard(true, "", "<think>so</think>42", ends(Finish::Stop));
        assert_eq!((end, generation.complete), (RunEnd::Finished(Finish::Stop), true));
        assert_eq!(generation.reasoning.as_deref(), Some(&b"so"[..]));
        assert_eq!((generation.stats.tokens, generation.stats.reasoning_tokens), (19, 17));
        only_answer(&mut generation);
        assert_eq!(generation.text, b"42");
        let (generation, end) = heard(true, "", "<think>s", ends(Finish::Length));
        assert_eq!((end, generation.complete), (RunEnd::Finished(Finish::Thought), false));
    }

    #[test]
    fn a_stop_string_ends_the_text_before_it() {
        let (generation, end) = heard(false, "34", "12345", ends(Finish::Stop));
        assert_eq!((end, &*generation.text), (RunEnd::Finished(Finish::StopString), &b"12"[..]));
        assert!(generation.complete && generation.tokens.len() == 4);
        let (generation, _) = heard(false, "1", "12", ends(Finish::Stop));
        assert!(!generation.complete && generation.text.is_empty());
    }

    #[test]
    fn failures_of_the_engine_leave_the_text_so_far() {
        let (generation, end) = heard(false, "", "12", EngineEvent::Failed(Problem::engine("it broke")));
        let told = Told { sentence: "it broke".to_owned(), hint: None };
        assert_eq!((end, &*generation.text), (RunEnd::Failed(told, Exit::Failure), &b"12"[..]));
        let (generation, end) = heard(false, "", "12", ends(Finish::Length));
        assert_eq!((end, generation.complete), (RunEnd::Finished(Finish::Length), true));
    }
}

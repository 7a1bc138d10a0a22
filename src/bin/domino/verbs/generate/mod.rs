//! `domino generate`: a model writes, and a grammar decides what it may write.

pub(crate) mod args;
mod batch;
mod compare;
mod destination;
#[cfg(feature = "mistralrs")]
mod mistralrs;
mod parsed;
mod report;
mod screen;
pub(crate) mod whole;

use std::{path::Path, time::Instant};

use domino::{
    CompiledGrammar, Compiler, StepError, TokenId, Vocabulary,
    decode::{DecodeOptions, Decoder, Generation, Healing, Steps},
    grammar::GrammarWarning,
    model::candle::join_threads,
    proposer::ForcedText,
    store::CacheFolder,
    vocab::Tokenizer,
};
use serde_json::json;

use self::{
    args::{Generate, Work},
    destination::Destination,
    report::{End, Ended},
    screen::Screen,
};
use crate::{
    grammar::{advice, captures::Capturing, notation::Parsed, source::GrammarSource, trees, warned},
    session::{
        drafts::{draft_model, learner::Keeper},
        load::{bad_model, load, read_tokenizer, step_error},
        model,
        prompt::{Prompt, prompt_text},
        reach,
        runner::Runner,
        tokenizer,
    },
    terminal::{
        failure::{self, BadInput, Exit},
        interrupt,
        numbers::count,
    },
};

/// Generates one text, or one for each request of a batch.
pub(crate) fn run(command: &Generate, cache: &CacheFolder) -> anyhow::Result<Exit> {
    let folder = model::locate(command.model.as_deref())?;
    #[cfg(feature = "mistralrs")]
    if let (args::Engine::Mistralrs, Work::One(prompt, options)) = (command.engine, &command.work) {
        return mistralrs::run(command, &folder, prompt, options, cache);
    }
    join_threads(command.threads);
    match &command.work {
        Work::One(prompt, options) => one(command, &folder, prompt, options, cache),
        Work::Whole { prompt, options, way } => whole::run(command, &folder, (prompt, options, *way), cache),
        Work::Batch(rows) => batch::run(command, &folder, rows, cache),
    }
}

/// Generates one text.
fn one(
    command: &Generate,
    folder: &Path,
    prompt: &Prompt,
    options: &DecodeOptions,
    cache: &CacheFolder,
) -> anyhow::Result<Exit> {
    let text = prompt_text(prompt)?;
    let destination = Destination::of(command.out.as_deref())?;
    let vocabulary = tokenizer::vocabulary(folder, cache)?;
    let tokenizer = read_tokenizer(folder)?;
    let mut prompt = command.prompts(folder)?.tokens(&tokenizer, &text, &vocabulary)?;
    let healing = if command.heal { Healing::of(&vocabulary, &prompt) } else { Healing::default() };
    let healed = healing.bytes;
    if !healed.is_empty() {
        prompt.truncate(healing.kept);
    }
    let (grammar, capturing) = grammar(command, &compiler(command, &vocabulary, cache), &healed)?.unzip();
    let warnings = grammar.as_ref().map_or_else(Vec::new, |grammar| grammar.grammar_warnings().to_vec());
    let loaded = load(folder, &command.load, command.card)?;
    let mut builder = Decoder::builder(loaded).vocabulary(vocabulary).options(options.clone());
    let (mut speculation, mut draft) = (None, None);
    if let Some(grammar) = &grammar {
        builder = builder.constraint(grammar.constraint());
        // Counts learnt for a grammar do not apply to texts that begin with the end of a prompt.
        let source = command.grammar.as_ref().filter(|_| healed.is_empty());
        draft = command.speculation.draft_model(command.card, grammar, &tokenizer, cache)?;
        speculation = command.speculation.drafter(source, grammar, folder, &tokenizer, draft.as_ref())?;
    }
    let mut decoder = builder.build().map_err(|error| bad_model(&error))?;
    interrupt::watch();
    let speculative = speculation.is_some();
    let (mut drafter, keeper) = speculation.unzip();
    let keeper = keeper.flatten();
    let mut comparison = None;
    if let Some(grammar) = grammar.as_ref().filter(|_| command.speculation.compare)
        && let Some(compared) = drafter.take()
    {
        comparison = compare::run(&mut decoder, &grammar.constraint(), compared, &prompt)?;
    } else {
        decoder.set_drafter(drafter);
    }
    let vocabulary = decoder.vocabulary().clone();
    let begun = Instant::now();
    let mut steps = decoder.steps(&prompt);
    let quiet = command.json || destination.is_file();
    let ended = stream(&mut steps, quiet, options.close, healed.len())?;
    let mut generation = steps.into_generation();
    let forced = forced_bytes(grammar.as_ref().filter(|_| command.json), &generation);
    generation.text.drain(..healed.len().min(generation.text.len()));
    let captures = parsed::fields_of(command.grammar.as_ref(), capturing.flatten().as_ref(), &generation);
    let ended = Ended {
        appended: usual_tokens(&tokenizer, &vocabulary, &generation),
        generation,
        end: ended,
        vocabulary: &vocabulary,
        options,
        seconds: begun.elapsed().as_secs_f64(),
        speculative,
        draft: draft.as_ref().map(draft_model::tally),
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

/// Tells how a run has ended, and writes its text or its object to the destination.
fn tell(
    command: &Generate,
    ended: &Ended<'_>,
    destination: &Destination<'_>,
    keeper: Option<&Keeper>,
    warnings: &[GrammarWarning],
) -> anyhow::Result<()> {
    if command.json {
        let mut object = ended.object();
        if let Some((lookahead, terminals)) = keeper.map(Keeper::learnt_at) {
            let lookahead = reach::lookahead_number(lookahead);
            object["prior"] =
                json!({ "lookahead": lookahead, "terminals": reach::terminals_name(terminals) });
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

/// Counts the bytes of a text that its grammar forced, but for their spelling. It is only for machines, since
/// it reads the text once more.
fn forced_bytes(grammar: Option<&CompiledGrammar>, generation: &Generation) -> Option<usize> {
    ForcedText::count(&grammar?.constraint(), &generation.text)
}

/// Runs the steps to their end, to Ctrl-C or to a failure, and shows the text as it comes unless it goes into
/// an object. If `close`, an unfinished text is completed where a completion can be found. The first `hidden`
/// bytes are the prompt's.
fn stream(steps: &mut Steps<'_, Runner>, quiet: bool, close: bool, hidden: usize) -> anyhow::Result<End> {
    let mut screen = Screen::new(hidden);
    let mut failure = None;
    while !interrupt::pressed() {
        match steps.next() {
            None => break,
            Some(Ok(_)) if quiet => {}
            Some(Ok(_)) => screen.show(steps.settled_text())?,
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
        (None, Some(finish)) => End::Finished(finish),
        (None, None) => End::Interrupted,
        (Some(error), _) => failed(error, steps),
    };
    if close && let Err(error) = steps.close() {
        // The first of two failures is the one that is told.
        if failure.is_none() {
            end = failed(&error.into(), steps);
        }
    }
    if !quiet {
        screen.show(steps.text())?;
        screen.finish()?;
    }
    Ok(end)
}

/// Makes the end of a run that failed, with its place in text and grammar.
fn failed(error: &anyhow::Error, steps: &Steps<'_, Runner>) -> End {
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
    End::Failed(told, Exit::of(error))
}

/// Makes the compiler of grammars.
fn compiler(command: &Generate, vocabulary: &Vocabulary, cache: &CacheFolder) -> Compiler {
    command.reach.compiler(vocabulary.clone(), cache)
}

/// Compiles the grammar of the command line, if there is one, and finds the captures of its texts. Its trees
/// are read from a file, or grow while the model is loaded and reads the prompt; so do the masks of the
/// places where texts begin.
fn grammar(
    command: &Generate,
    compiler: &Compiler,
    healed: &[u8],
) -> Result<Option<(CompiledGrammar, Option<Capturing>)>, BadInput> {
    let Some(grammar) = &command.grammar else {
        let anything = GrammarSource::Regex("(?s:.)*".to_owned());
        return match healed {
            [] => Ok(None),
            _ => after(&anything, compiler, healed).map(|(compiled, _)| Some((compiled, None))),
        };
    };
    let (compiled, parsed) = match healed {
        [] => grammar.read_and_compile(compiler)?,
        _ => after(grammar, compiler, healed)?,
    };
    advice::give(grammar, &compiled);
    if let Some(file) = &command.trees {
        trees::attach(&compiled, file, &grammar.name())?;
    }
    compiled.explore_in_background();
    // Only JSON shows captures.
    let capturing = match command.json || matches!(command.work, Work::Batch(_)) {
        true => Capturing::of(&grammar.name(), parsed.grammar, &command.captured)?,
        false => None,
    };
    Ok(Some((compiled, capturing)))
}

/// Compiles the grammar with the end of the prompt before its texts, and returns it as it was read too.
fn after(
    source: &GrammarSource,
    compiler: &Compiler,
    healed: &[u8],
) -> Result<(CompiledGrammar, Parsed), BadInput> {
    let text = source.load()?;
    let parsed = text.read()?;
    text.warn(&parsed.relaxed);
    let grammar = parsed.grammar.after(healed).ok_or_else(|| {
        BadInput::new(format!("{}: --heal does not go with objects whose keys are free", source.name()))
            .hint("close the objects (additionalProperties: false, or --closed), or leave --heal out")
    })?;
    Ok((text.compile_parsed(&grammar, compiler)?, parsed))
}

/// The tokens that the tokenizer makes of the completion by itself, if there is one and they spell it.
fn usual_tokens(
    tokenizer: &Tokenizer,
    vocabulary: &Vocabulary,
    generation: &Generation,
) -> Option<Vec<TokenId>> {
    let bytes = &generation.completion.as_ref()?.bytes;
    let tokens = tokenizer.encode(str::from_utf8(bytes).ok()?, false).ok()?;
    (vocabulary.concat(&tokens) == *bytes).then_some(tokens)
}

//! The grammar of the command line, compiled for a text.

use domino::{CompiledGrammar, Compiler, Vocabulary, store::CacheFolder};

use super::args::{Generate, TextsToWrite};
use crate::grammar::compiled::{self, Capturing};
use crate::{
    grammar::notation::Parsed, grammar::source::GrammarSource, grammar::warned, terminal::failure::BadInput,
};

/// Makes the compiler of grammars.
pub(super) fn compiler(command: &Generate, vocabulary: &Vocabulary, cache: &CacheFolder) -> Compiler {
    command.reach.compiler(vocabulary.clone(), cache)
}

/// Compiles the grammar of the command line, if there is one, and finds the captures of its texts. Its trees
/// are read from a file, or grow while the model is loaded and reads the prompt; so do the masks of the
/// places where texts begin.
pub(super) fn grammar(
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
    warned::tell_open(&grammar.name(), &parsed.open_objects);
    compiled::give_advice(grammar, &compiled);
    if let Some(file) = &command.trees {
        compiled::attach_trees(&compiled, file, &grammar.name())?;
    }
    compiled.explore_in_background();
    // Only JSON shows captures.
    let capturing = match command.json || matches!(command.work, TextsToWrite::Batch(_)) {
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

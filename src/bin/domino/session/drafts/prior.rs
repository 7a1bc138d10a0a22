//! Files of counts that were learnt before: named ones, and those that come with a model.

use std::path::Path;

use domino::{
    CompiledGrammar,
    proposer::{Prior, PriorError},
};

use crate::{
    grammar::source::GrammarSource,
    session::reach,
    terminal::failure::{BadInput, Paint, note},
};

/// Finds the prior that comes with the model. If it cannot be used, for instance since the grammar has
/// changed, a note says so, and there is none.
pub(super) fn shipped_prior(
    source: &GrammarSource,
    grammar: &CompiledGrammar,
    model: &Path,
) -> Option<Prior> {
    let GrammarSource::Shipped(shipped) = source else { return None };
    let file = model.join("priors").join(shipped.name).with_extension("prior");
    if !file.is_file() {
        return None;
    }
    load(&file, grammar)
        .map_err(|error| {
            let paint = Paint::for_stderr();
            note!("{} {error}; going on without", paint.cyan("note:"));
        })
        .ok()
        .inspect(|prior| tell_apart(prior, &file, grammar))
}

/// Notes that a prior was learnt with another lookahead. Its contexts do not depend on that, so it is of use,
/// but its counts are of tokens that other masks allowed.
pub(super) fn tell_apart(prior: &Prior, file: &Path, grammar: &CompiledGrammar) {
    if prior.lookahead() == grammar.lookahead() {
        return;
    }
    let was = reach::in_words(prior.lookahead(), prior.terminals());
    let is = reach::in_words(grammar.lookahead(), grammar.terminals());
    let (note, file) = (Paint::for_stderr().cyan("note:"), file.display());
    note!("{note} {file} was learnt with {was}, and this is {is}: its guesses may be worse");
}

/// Reads the prior of a file.
pub(crate) fn load(file: &Path, grammar: &CompiledGrammar) -> Result<Prior, BadInput> {
    let bytes = read(file)?;
    Prior::from_bytes(&bytes, grammar).map_err(|error| bad_prior(file, &error))
}

/// Reads the bytes of a file of counts.
pub(crate) fn read(file: &Path) -> Result<Vec<u8>, BadInput> {
    std::fs::read(file).map_err(|error| BadInput::new(format!("cannot read {}: {error}", file.display())))
}

/// Makes the error for a prior that cannot be used, with advice.
pub(crate) fn bad_prior(file: &Path, error: &PriorError) -> BadInput {
    BadInput::new(format!("{}: {error}", file.display())).hint(error.hint())
}

//! Advice on a grammar in use whose every step costs more than the one before: how to write it instead.

use domino::CompiledGrammar;

use crate::{
    grammar::{places::LineIndex, source::GrammarSource},
    terminal::{
        describe::one_line,
        failure::{Paint, note},
        progress,
    },
};

/// Prints the grave warnings on standard error.
pub(crate) fn give(source: &GrammarSource, grammar: &CompiledGrammar) {
    let warnings = progress::during("looking for what costs", || grammar.warnings());
    let grave: Vec<_> = warnings.iter().filter(|warning| warning.kind.is_grave()).collect();
    if grave.is_empty() {
        return;
    }
    // The grammar was read before; without its text, places are left out.
    let places = LineIndex::new(source.load().map(|text| text.text().into_owned()).unwrap_or_default());
    let paint = Paint::for_stderr();
    for warning in grave {
        let rule = one_line(&warning.rule_name);
        let place = places.show(warning.span);
        note!(
            "{} {}: rule {rule} ({place}): {}",
            paint.cyan("warning:"),
            source.name(),
            one_line(&warning.message)
        );
        note!("{} {}; see `domino inspect`", paint.cyan("hint:"), one_line(&warning.hint));
    }
}

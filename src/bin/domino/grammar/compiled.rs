//! Compiled grammars in use: files of their subterminal trees, captures of their texts, and advice.
//!
//! Files of trees, as `domino compile` writes them, are taken where they are right and made again where they
//! are not. Advice is for a grammar whose every step costs more than the one before: how to write it instead.

use std::{fs, path::Path};

use domino::{CaptureError, Captures, CompiledGrammar, Grammar, Limits, grammar::Span};
use serde_json::{Map, Value, json};

use crate::terminal::failure::{self, BadInput, remark};
use crate::{
    files::Output, grammar::source::GrammarSource, terminal::describe::one_line, terminal::progress,
};

/// The state of a file of trees before it is written.
pub(crate) enum TreesFile {
    /// The file has the right trees.
    Whole,
    /// The file is not there.
    Absent,
    /// The file is of no use, for this reason.
    Useless(String),
}

/// Gives a grammar the trees of a file. If the file is of no use, reports that on standard error, grows the
/// trees, and writes the file again.
pub(crate) fn attach_trees(compiled: &CompiledGrammar, file: &Path, name: &str) -> Result<(), BadInput> {
    match load_trees(compiled, file)? {
        TreesFile::Whole => return Ok(()),
        TreesFile::Absent => {
            return Err(BadInput::new(format!("{}: no such file", file.display()))
                .hint("`domino compile` makes files of trees"));
        }
        TreesFile::Useless(why) => {
            remark!("warning:", "{} is {why}; it is made again", file.display());
        }
    }
    grow_trees(compiled, name);
    if let Err(error) = write_trees(compiled, file) {
        remark!("warning:", "{error:#}");
    }
    Ok(())
}

/// Takes trees from a file, if it has the right ones.
pub(crate) fn load_trees(compiled: &CompiledGrammar, file: &Path) -> Result<TreesFile, BadInput> {
    // Devices and pipes have no end, or nothing to read.
    if fs::metadata(file).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        return Ok(TreesFile::Absent);
    }
    let bytes = match fs::read(file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(TreesFile::Absent),
        Err(error) => return Err(BadInput::new(format!("cannot read {}: {error}", file.display()))),
    };
    Ok(match compiled.load_artefact(&bytes) {
        Ok(()) => TreesFile::Whole,
        Err(error) => TreesFile::Useless(error.to_string()),
    })
}

/// Grows all trees of the grammar called `name`, and shows how far that is.
pub(crate) fn grow_trees(compiled: &CompiledGrammar, name: &str) {
    let bar = std::sync::OnceLock::new();
    compiled.grow_trees_with(|progress| {
        bar.get_or_init(|| progress::bar(format!("growing trees of {name}"), progress.total)).inc(1);
    });
}

/// Writes all trees and returns the size of the file. Whoever reads the file meanwhile sees the old one or
/// the new one, since a renaming puts it in place.
pub(crate) fn write_trees(compiled: &CompiledGrammar, file: &Path) -> anyhow::Result<u64> {
    let artefact = compiled.artefact();
    Output::prepare(file)?.write(&artefact)?;
    Ok(artefact.len() as u64)
}

/// A way to capture parts of the texts of a grammar.
#[derive(Debug)]
pub(crate) struct Capturing {
    captures: Captures,
    grammar: Grammar,
}

impl Capturing {
    /// Captures what the grammar called `name` marks itself, and these rules; `None` if that is nothing.
    pub(crate) fn of(name: &str, grammar: Grammar, rules: &[String]) -> Result<Option<Self>, BadInput> {
        Self::within(&grammar, rules, &crate::grammar::compiler::limits())
            .map_err(|error| BadInput::new(format!("{name}: {error}")).hint(error.hint()))
    }

    /// Captures what the grammar marks itself, and these rules, within `limits`; `None` if that is nothing.
    ///
    /// # Errors
    /// If there is no such rule, or the grammar is past the limits.
    pub(crate) fn within(
        grammar: &Grammar,
        rules: &[String],
        limits: &Limits,
    ) -> Result<Option<Self>, CaptureError> {
        let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
        let captures = Captures::new(grammar, &rules, limits)?;
        let any = captures.names().len() > 0;
        Ok(any.then(|| Self { captures, grammar: grammar.clone() }))
    }

    /// Estimates its memory in bytes, that of its grammar included.
    pub(crate) fn memory(&self) -> usize {
        // The patterns of the grammar are most of both.
        self.captures.memory().saturating_mul(2)
    }

    /// Makes the field `captures` for a text: of an unfinished text, the captures that are decided. Where a
    /// budget is used up the field is null, and the field `captures_error` names the budget.
    pub(crate) fn fields(&self, text: &[u8]) -> Map<String, Value> {
        let spelt = self.grammar.spell(text);
        let found = self.captures.of(&spelt).and_then(|found| match found {
            Some(found) => Ok(found),
            None => self.captures.so_far(&spelt),
        });
        let mut fields = Map::new();
        match found {
            Ok(found) => {
                let one = |capture: &domino::Capture<'_>| {
                    let part = text.get(capture.span.clone()).unwrap_or_default();
                    json!({
                        "name": capture.name, "start": capture.span.start, "end": capture.span.end,
                        "text": String::from_utf8_lossy(part),
                    })
                };
                fields.insert("captures".to_owned(), found.iter().map(one).collect());
            }
            Err(limit) => {
                fields.insert("captures".to_owned(), Value::Null);
                fields.insert("captures_error".to_owned(), failure::told(&limit).line().into());
            }
        }
        fields
    }
}

/// Prints the grave warnings on standard error.
pub(crate) fn give_advice(source: &GrammarSource, grammar: &CompiledGrammar) {
    let warnings = progress::during("looking for what costs", || grammar.warnings());
    let grave: Vec<_> = warnings.iter().filter(|warning| warning.kind.is_grave()).collect();
    if grave.is_empty() {
        return;
    }
    // The grammar was read before; without its text, places are left out.
    let places = LineIndex::new(source.load().map(|text| text.text().into_owned()).unwrap_or_default());
    for warning in grave {
        let [rule, message, hint] =
            [&warning.rule_name, &warning.message, &warning.hint].map(|it| one_line(it));
        remark!("warning:", "{}: rule {rule} ({}): {message}", source.name(), places.show(warning.span));
        remark!("hint:", "{hint}; see `domino inspect`");
    }
}

/// A finder of line and column of offsets, in logarithmic time.
#[derive(Debug)]
pub(crate) struct LineIndex {
    text: String,
    line_starts: Vec<usize>,
}

impl LineIndex {
    /// Indexes the lines of a text.
    pub(crate) fn new(text: String) -> Self {
        let starts = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        let line_starts = std::iter::once(0).chain(starts).collect();
        Self { text, line_starts }
    }

    /// Shows line and column (in characters, from 1) where the span begins; `-` if the span is no place in
    /// the text.
    pub(crate) fn show(&self, span: Span) -> String {
        if span == Span::default() {
            return "-".to_owned();
        }
        let at = span.range().start.min(self.text.len());
        let line = self.line_starts.partition_point(|&start| start <= at);
        let start = self.line_starts[line.max(1) - 1];
        let column = self.text.get(start..at).map_or(0, |before| before.chars().count()) + 1;
        format!("{line}:{column}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_shown_as_line_and_column() {
        let places = LineIndex::new("a\n\u{e9}b\n".to_owned());
        let show = |at: u32| places.show(Span::new(at, at + 1));
        assert_eq!(
            [show(0), show(1), show(2), show(4), show(5), show(6)],
            ["1:1", "1:2", "2:1", "2:2", "2:3", "3:1"]
        );
        assert_eq!(places.show(Span::new(100, 200)), "3:1");
        assert_eq!(places.show(Span::default()), "-");
    }
}

//! The grammars of a batch, compiled.

use std::{path::Path, rc::Rc};

use domino::{CompiledGrammar, Compiler, vocab::Tokenizer};
use serde_json::Value;

use super::super::{args::Generate, parsed::Reading};
use crate::{
    captures::Capturing,
    failure::{self, BadInput},
    notation::{GrammarSource, relaxed_as_json},
    rows::{Kept, Row, Usual, Wanted},
    speculate::Shared,
};

/// Compiled grammars kept: those used last. A batch that comes back to others compiles them again.
const MOST_KEPT: usize = 64;

/// A grammar, with what its texts are drafted with and read by.
#[derive(Clone)]
pub(super) struct Kit {
    pub(super) grammar: CompiledGrammar,
    pub(super) capturing: Option<Rc<Capturing>>,
    pub(super) reading: Reading,
    pub(super) shared: Option<Rc<Shared>>,
    /// What it allows beyond its schema.
    pub(super) relaxed: Vec<Value>,
}

/// Makes kits.
pub(super) struct Maker<'a> {
    pub(super) command: &'a Generate,
    pub(super) compiler: Compiler,
    /// The model's folder.
    pub(super) folder: &'a Path,
    pub(super) tokenizer: &'a Tokenizer,
}

impl Maker<'_> {
    /// A kit with a grammar that is compiled already.
    pub(super) fn kit(
        &self,
        source: Option<&GrammarSource>,
        grammar: CompiledGrammar,
        capturing: Option<Capturing>,
        relaxed: Vec<Value>,
    ) -> Kit {
        let shared = self.command.speculation.shared(source, &grammar, self.folder, self.tokenizer);
        let (reading, capturing) = (Reading::of(source), capturing.map(Rc::new));
        Kit { grammar, capturing, reading, shared: shared.map(Rc::new), relaxed }
    }

    fn make(&self, source: &GrammarSource) -> Result<Kit, BadInput> {
        let text = source.load()?;
        let parsed = text.read()?;
        let compiled = text.compile_parsed(&parsed.grammar, &self.compiler)?;
        let capturing = Capturing::of(&source.name(), parsed.grammar, &self.command.captured)?;
        // Masks are not explored ahead: where each row has a grammar of its own, that costs more time than all
        // else, and memory that grows with the rows.
        Ok(self.kit(Some(source), compiled, capturing, relaxed_as_json(&parsed.relaxed)))
    }
}

/// The grammars of rows.
pub(super) struct Grammars<'a> {
    maker: Maker<'a>,
    usual: &'a Usual,
    /// That of the command line.
    first: Option<(Wanted, Kit)>,
    kept: Kept<Wanted, Result<Kit, String>>,
}

impl<'a> Grammars<'a> {
    /// Compiles what rows want, beside the grammar of the command line.
    pub(super) fn new(maker: Maker<'a>, usual: &'a Usual, kit: Option<Kit>) -> Self {
        Self { maker, usual, first: Wanted::usual(usual).zip(kit), kept: Kept::new(MOST_KEPT) }
    }

    /// The grammar of a row, if it or the command line has one; or what is wrong with it.
    pub(super) fn of(&mut self, row: &Row) -> Result<Option<Kit>, String> {
        let resolved = row.grammar.resolve(self.usual).map_err(|error| failure::told(&error).line())?;
        let Some((wanted, source)) = resolved else { return Ok(None) };
        if let Some((first, kit)) = &self.first
            && *first == wanted
        {
            return Ok(Some(kit.clone()));
        }
        let maker = &self.maker;
        let make = |_: &Wanted| maker.make(&source).map_err(|error| failure::told(&error).line());
        self.kept.get_or_make(wanted, make).map(Some)
    }
}

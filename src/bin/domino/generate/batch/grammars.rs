//! The grammars of a batch, compiled.

use std::rc::Rc;

use domino::{CompiledGrammar, Compiler, proposer::Drafter};
use serde_json::Value;

use super::super::parsed::TextKind;
use crate::{
    captures::Capturing,
    failure::{self, BadInput},
    notation::{GrammarSource, relaxed_as_json},
    rows::{LastUsed, Row, UsualGrammar, WantedGrammar},
};

/// Compiled grammars kept: those used last. A batch that comes back to others compiles them again.
const MOST_KEPT: usize = 64;

/// A grammar, with what its texts are drafted with and read by.
#[derive(Clone)]
pub(super) struct Kit {
    pub(super) grammar: CompiledGrammar,
    pub(super) capturing: Option<Rc<Capturing>>,
    pub(super) reading: TextKind,
    /// Makes what drafts one of its texts.
    pub(super) drafter: Option<Rc<dyn Fn() -> Drafter>>,
    /// Places where it allows more than its schema.
    pub(super) relaxed: Vec<Value>,
}

/// Finds what drafts the texts of a grammar, if anything is to.
type Drafters<'a> = dyn Fn(Option<&GrammarSource>, &CompiledGrammar) -> Option<Rc<dyn Fn() -> Drafter>> + 'a;

/// Makes kits.
pub(super) struct KitMaker<'a> {
    pub(super) compiler: Compiler,
    /// Rules to be captured.
    pub(super) captured: &'a [String],
    pub(super) drafters: &'a Drafters<'a>,
}

impl KitMaker<'_> {
    /// A kit with a grammar that is compiled already.
    pub(super) fn kit(
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
pub(super) struct Grammars<'a> {
    maker: KitMaker<'a>,
    usual: &'a UsualGrammar,
    /// The grammar of the command line.
    first: Option<(WantedGrammar, Kit)>,
    kept: LastUsed<WantedGrammar, Result<Kit, String>>,
}

impl<'a> Grammars<'a> {
    /// Compiles what rows want, beside the grammar of the command line.
    pub(super) fn new(maker: KitMaker<'a>, usual: &'a UsualGrammar, kit: Option<Kit>) -> Self {
        Self { maker, usual, first: WantedGrammar::usual(usual).zip(kit), kept: LastUsed::new(MOST_KEPT) }
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
        let make = |_: &WantedGrammar| maker.make(&source).map_err(|error| failure::told(&error).line());
        self.kept.get_or_make(wanted, make).map(Some)
    }
}

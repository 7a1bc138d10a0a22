//! The compiled grammars of a batch.

use std::rc::Rc;

use domino::{CompiledGrammar, Compiler, proposer::Drafter};
use serde_json::Value;

use crate::rows::{LastUsed, Row, WantedGrammar};
use crate::terminal::failure::{self, BadInput};
use crate::{
    flags::grammar::UsualGrammar, grammar::compiled::Capturing, grammar::notation::relaxed_as_json,
    grammar::source::GrammarSource, verbs::generate::parsed::TextKind,
};

/// Limit on the compiled grammars in the LRU cache. A batch that returns to others compiles them again.
const MOST_KEPT: usize = 64;

/// A compiled grammar with the drafter and the readers of its texts.
#[derive(Clone)]
pub(super) struct Kit {
    pub(super) grammar: CompiledGrammar,
    pub(super) capturing: Option<Rc<Capturing>>,
    pub(super) reading: TextKind,
    /// Makes the drafter of one of its texts.
    pub(super) drafter: Option<Rc<dyn Fn() -> Drafter>>,
    /// Places where it allows more than its schema.
    pub(super) relaxed: Vec<Value>,
}

/// A function that finds the drafters for texts of a grammar, if there are to be any.
type Drafters<'a> = dyn Fn(Option<&GrammarSource>, &CompiledGrammar) -> Option<Rc<dyn Fn() -> Drafter>> + 'a;

/// A maker of kits.
pub(super) struct KitMaker<'a> {
    pub(super) compiler: Compiler,
    /// Names of the rules to capture.
    pub(super) captured: &'a [String],
    pub(super) drafters: &'a Drafters<'a>,
}

impl KitMaker<'_> {
    /// Makes a kit with a grammar that is compiled already.
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
pub(super) struct RowGrammars<'a> {
    maker: KitMaker<'a>,
    usual: &'a UsualGrammar,
    /// The grammar of the command line.
    first: Option<(WantedGrammar, Kit)>,
    kept: LastUsed<WantedGrammar, Result<Kit, String>>,
}

impl<'a> RowGrammars<'a> {
    /// Makes the grammars, of which that of the command line may be compiled already, in `kit`.
    pub(super) fn new(maker: KitMaker<'a>, usual: &'a UsualGrammar, kit: Option<Kit>) -> Self {
        Self { maker, usual, first: WantedGrammar::usual(usual).zip(kit), kept: LastUsed::new(MOST_KEPT) }
    }

    /// Finds the grammar of a row, if it or the command line has one. The error says what is wrong with it.
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

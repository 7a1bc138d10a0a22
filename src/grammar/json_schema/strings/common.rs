//! Automata of any characters, which all schemas have in common.

use super::{
    StringSet,
    spelling::{Style, spell},
};
use crate::grammar::{
    Automaton,
    json_schema::{
        automata::{AutomataCache, recipe},
        dfa::{CharClass, CharDfa},
        leaf::{LeafError, Spelling},
    },
};

/// An automaton of any characters, by what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Common {
    /// All strings with their quotes.
    Whole,
    /// All strings with the closing quote.
    Rest,
    /// Any characters.
    Inside,
    /// So many characters and the closing quote.
    Counted(u64, Option<u64>),
    /// A block of characters.
    Block,
}
recipe!(Common, |_| 0, |common| !matches!(common, Common::Counted(..)));

impl StringSet {
    /// What terminals made of sets of strings mostly agree with: all strings, the rest of one with the
    /// closing quote, and any characters.
    pub(in super::super) fn common(
        spelling: Spelling,
        automata: &AutomataCache,
    ) -> Result<[Automaton; 3], LeafError> {
        let style = Style::of(spelling.escapes);
        let any = |which, quotes| common(which, style, automata, || spell(&CharDfa::all(), style, quotes));
        Ok([
            any_string(style, automata)?,
            any(Common::Rest, (false, true))?,
            any(Common::Inside, (false, false))?,
        ])
    }
}

/// An automaton of any characters, made once where it is of the usual style.
pub(super) fn common(
    which: Common,
    style: Style,
    automata: &AutomataCache,
    make: impl FnOnce() -> Result<Automaton, LeafError>,
) -> Result<Automaton, LeafError> {
    if style == Style::All { automata.automaton(which, make) } else { make() }
}

/// Any string with its quotes.
pub(super) fn any_string(style: Style, automata: &AutomataCache) -> Result<Automaton, LeafError> {
    common(Common::Whole, style, automata, || spell(&CharDfa::all(), style, (true, true)))
}

/// Characters of a block of a counted string: more than nearly all tokens have.
pub(super) const BLOCK: u64 = 64;

/// A block of a class.
pub(super) fn block(
    class: &CharClass,
    style: Style,
    automata: &AutomataCache,
) -> Result<Automaton, LeafError> {
    let make = || spell(&CharDfa::repeated(class, BLOCK, Some(BLOCK)), style, (false, false));
    if *class == CharClass::all() { common(Common::Block, style, automata, make) } else { make() }
}

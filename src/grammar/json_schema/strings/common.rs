//! Automata of strings of any characters, which all schemas share.

use super::{
    StringSet,
    spelling::{Style, spell},
};
use crate::grammar::{
    Automaton,
    json_schema::{
        automata::{AutomataCache, recipe},
        dfa::{CharClass, CharDfa},
        leaf::{LeafError, ValueSpelling},
    },
};

/// Names of the automata of any characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum AnyCharacters {
    /// All strings, with both quotes.
    Whole,
    /// All strings, with the closing quote.
    Rest,
    /// All strings, without quotes.
    Inside,
    /// All strings of `min` to `max` characters, with the closing quote.
    Counted(u64, Option<u64>),
    /// Blocks of exactly [`BLOCK`] characters.
    Block,
}
recipe!(AnyCharacters, |_| 0, |common| !matches!(common, AnyCharacters::Counted(..)));

impl StringSet {
    /// The automata that terminals made of sets of strings mostly agree with: all strings, all strings with
    /// the closing quote alone, and all strings without quotes.
    pub(in super::super) fn common(
        spelling: ValueSpelling,
        automata: &AutomataCache,
    ) -> Result<[Automaton; 3], LeafError> {
        let style = Style::of(spelling.escapes);
        let any = |which, quotes| common(which, style, automata, || spell(&CharDfa::all(), style, quotes));
        Ok([
            any_string(style, automata)?,
            any(AnyCharacters::Rest, (false, true))?,
            any(AnyCharacters::Inside, (false, false))?,
        ])
    }
}

/// An automaton of any characters, cached if the style is the usual one.
pub(super) fn common(
    which: AnyCharacters,
    style: Style,
    automata: &AutomataCache,
    make: impl FnOnce() -> Result<Automaton, LeafError>,
) -> Result<Automaton, LeafError> {
    if style == Style::All { automata.automaton(which, make) } else { make() }
}

/// The automaton of any string with its quotes.
pub(super) fn any_string(style: Style, automata: &AutomataCache) -> Result<Automaton, LeafError> {
    common(AnyCharacters::Whole, style, automata, || spell(&CharDfa::all(), style, (true, true)))
}

/// Number of characters in a block of a counted string, which is more than nearly all tokens have.
pub(super) const BLOCK: u64 = BLOCK_CHARACTERS as u64;
/// The number [`BLOCK`] as that of a state.
pub(super) const BLOCK_CHARACTERS: u32 = 64;

/// The automaton of a block of characters of a class.
pub(super) fn block(
    class: &CharClass,
    style: Style,
    automata: &AutomataCache,
) -> Result<Automaton, LeafError> {
    let make = || spell(&CharDfa::repeated(class, BLOCK, Some(BLOCK)), style, (false, false));
    if *class == CharClass::all() { common(AnyCharacters::Block, style, automata, make) } else { make() }
}

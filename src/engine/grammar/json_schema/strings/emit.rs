//! Sets of strings -> expressions of a grammar, in the first of these forms that stays small:
//!
//! * one automaton;
//! * with a bound on the length, a [length-bounded](crate::grammar::LengthBounded) terminal, which counts
//!   characters beside the automaton of the strings of any length;
//! * several automata, if the strings are a list too long for one;
//! * an automaton over characters, [spelled lazily](crate::grammar::Spelled).
//!
//! Where only lengths are bounded, and are so great that no terminal counts them, the grammar does.

use super::{
    StringSet,
    counts::{is_too_large, spelled},
    spelling::{Style, quoted, spell, too_many},
};
use crate::{
    cores,
    grammar::{
        Automaton, GrammarBuilder, LengthBounded, Pattern, Span,
        json_schema::{
            automata::{AutomataCache, recipe},
            dfa::{CharClass, CharDfa, MAX_STATES, too_many_states},
            leaf::{LeafError, ValueSpelling},
        },
    },
    ids::ExprId,
};

/// The least and the greatest number of characters.
pub(super) type LengthRange = (u64, Option<u64>);

/// Least length, in characters, up to which otherwise unbounded strings are one automaton.
const COUNTED_BY_STATES: u64 = 32;
/// Limit on the strings of a finite set that is spelled in several automata.
pub(super) const MAX_STRINGS: usize = 100_000;
/// Number of states of an automaton above which counting without them is tried.
const COUNTED_STATES: usize = 64;
/// Greatest length, in characters, that is counted beside the automaton of a pattern.
const MAX_MEASURED: u32 = 131_071;
/// Number of characters that the grammar counts at once.
const BLOCK: u64 = 64;
/// Least number of states of a set that is spelled on another core: that is some 50 us of work, about as long
/// as it takes to wake one.
const WORTH_A_THREAD: usize = 128;

impl StringSet {
    /// Writes the JSON texts of the strings, with their quotes, or the strings as they are, without
    /// delimiters. `\uXXXX` is read in either case, and as a pair of surrogates where one is needed; a lone
    /// surrogate is a text of no string.
    ///
    /// All strings are the same automaton in every schema, so that grammars share its tables. If an automaton
    /// would be too large with every escape, characters that no common writer escapes stand for themselves.
    /// Strings of more than 4,294,967,295 characters are left out where their length is counted.
    ///
    /// # Errors
    /// If the automaton would still be too large, or the grammar.
    pub(in super::super) fn emit_with(
        &self,
        automata: &AutomataCache,
        builder: &mut GrammarBuilder,
        spelling: ValueSpelling,
        span: Span,
    ) -> Result<ExprId, LeafError> {
        let (set, style) = (self.written(), Style::of(spelling));
        if set.is_all() {
            return Ok(builder.pattern(Pattern::automaton(any_string(style, automata)?), span)?);
        }
        let mut emitter = StringEmitter { automata, builder, style, span, parts: Vec::new() };
        let mut small: Option<(CharDfa, Automaton)> = None;
        // From this piece on all strings are in the set.
        let all = set.pieces.iter().rposition(|(_, dfa)| !dfa.is_all()).map_or(0, |last| last + 1);
        for (at, (min, max, dfa)) in set.windows().enumerate().filter(|(_, (.., dfa))| !dfa.is_empty()) {
            // Pieces before these need no upper bound, which may be hard to count.
            let max = if at + 1 == all && all < set.pieces.len() { None } else { max };
            if dfa.is_all() && (max.is_some_and(|max| max > 0) || min > COUNTED_BY_STATES) {
                emitter.counted(min, max)?;
                continue;
            }
            let Some(part) = emitter.counts(dfa, (min, max))? else { continue };
            // Small parts become one automaton, as long as they fit into one.
            let both = small.as_ref().map_or(Ok(part.clone()), |(small, _)| small.or(&part));
            match both.and_then(|both| Ok((quoted(&both, style)?, both))) {
                Ok((automaton, both)) => small = Some((both, automaton)),
                Err(_) => emitter.regular(&part, dfa, (min, max))?,
            }
        }
        if let Some((_, automaton)) = small {
            emitter.automaton(automaton)?;
        }
        let StringEmitter { builder, parts, .. } = emitter;
        Ok(builder.alternatives(parts, span)?)
    }
}

impl StringSet {
    /// Spells a large set on another core, so that [`emit_with`](Self::emit_with) finds it done or waits for
    /// the rest.
    pub(in super::super) fn spell_ahead(&self, spelling: ValueSpelling) {
        // Other styles are not kept, and bounds make other sets.
        let ([(_, dfa)], all @ Style::All) = (&self.pieces[..], Style::of(spelling)) else { return };
        if dfa.len() >= WORTH_A_THREAD && !dfa.is_spelled() {
            let dfa = dfa.clone();
            cores::start(move || {
                // An error is kept for the caller that asks for the result, unless that has been cancelled.
                let _ = (dfa.is_shared() && !is_too_large(&dfa, all)).then(|| quoted(&dfa, all));
            });
        }
    }
}

pub(super) struct StringEmitter<'a> {
    automata: &'a AutomataCache,
    pub(super) builder: &'a mut GrammarBuilder,
    pub(super) style: Style,
    pub(super) span: Span,
    /// The alternatives so far.
    pub(super) parts: Vec<ExprId>,
}

impl StringEmitter<'_> {
    pub(super) fn pattern(&mut self, automaton: Automaton) -> Result<ExprId, LeafError> {
        Ok(self.builder.pattern(Pattern::automaton(automaton), self.span)?)
    }

    pub(super) fn automaton(&mut self, automaton: Automaton) -> Result<(), LeafError> {
        let part = self.pattern(automaton)?;
        self.parts.push(part);
        Ok(())
    }

    /// Adds the strings of an automaton within the bounds as a terminal that counts characters. False if
    /// there is no such terminal.
    fn bounded(
        &mut self,
        automaton: impl FnOnce() -> Result<Automaton, LeafError>,
        (min, max): LengthRange,
    ) -> Result<bool, LeafError> {
        let (Ok(min), Ok(max)) = (u32::try_from(min), max.map(u32::try_from).transpose()) else {
            return Ok(false);
        };
        // Terminals count what stands between quotes.
        if max.unwrap_or(min) > MAX_MEASURED || self.style == Style::Plain {
            return Ok(false);
        }
        // If this automaton alone is too large, other forms may do.
        let Ok(automaton) = automaton() else { return Ok(false) };
        let bounded = match max {
            Some(max) => LengthBounded::new(&automaton, min, max),
            None => LengthBounded::at_least(&automaton, min),
        };
        let Some(bounded) = bounded else { return Ok(false) };
        let part = self.builder.pattern(Pattern::bounded(bounded), self.span)?;
        self.parts.push(part);
        Ok(true)
    }

    pub(super) fn quote(&mut self) -> Result<ExprId, LeafError> {
        let quote: &[u8] = if self.style == Style::Plain { b"" } else { b"\"" };
        Ok(self.builder.pattern(Pattern::literal(quote), self.span)?)
    }

    /// Adds the strings of `dfa` within the bounds as a terminal that counts characters or is spelled lazily.
    /// Otherwise returns their automaton.
    fn counts(&mut self, dfa: &CharDfa, bounds: LengthRange) -> Result<Option<CharDfa>, LeafError> {
        let ((min, max), style) = (bounds, self.style);
        // The product with a counter would have more states than the pattern alone.
        let is_long = max.is_some_and(|max| max > COUNTED_STATES as u64) && dfa.longest().is_none();
        if self.is_spelled(dfa, bounds)? || is_long && self.bounded(|| quoted(dfa, style), bounds)? {
            return Ok(None);
        }
        let counted = match max {
            // The automaton would have at least as many states as characters.
            Some(max) if max > MAX_STATES as u64 && dfa.longest().is_none() => {
                Err(too_many_states(MAX_STATES))
            }
            _ => dfa.within(min, max),
        };
        let class = counted.as_ref().ok().filter(|part| part.len() > COUNTED_STATES).map(CharDfa::one_class);
        let is_large = || counted.as_ref().map_or(true, |part| part.len() > COUNTED_STATES.max(dfa.len()));
        let is_counted = match class.flatten() {
            Some((class, min, max)) => {
                let whole = || quoted(&CharDfa::repeated(&class, 0, None), style);
                self.bounded(whole, (min, Some(max)))?
            }
            None => !is_long && is_large() && self.bounded(|| quoted(dfa, style), bounds)?,
        };
        match counted {
            _ if is_counted => Ok(None),
            Ok(part) => Ok(Some(part)),
            Err(error) => self.lazily(dfa, bounds, error).map(|()| None),
        }
    }

    /// Adds all strings of `min` to `max` characters: as a terminal that counts them, or counted by the
    /// grammar if they are longer than any text.
    fn counted(&mut self, min: u64, max: Option<u64>) -> Result<(), LeafError> {
        let (style, automata) = (self.style, self.automata);
        let count = |blocks: u64| {
            let what = "blocks of characters that a string must have";
            u32::try_from(blocks).map_err(|_| LeafError::Budget { what, limit: u32::MAX as usize })
        };
        if self.bounded(|| any_string(style, automata), (min, max))?
            || self.lazily(&CharDfa::all(), (min, max), too_many(style)).is_ok()
        {
            return Ok(());
        }
        let exactly = |characters| {
            spell(&CharDfa::repeated(&CharClass::all(), characters, Some(characters)), style, (false, false))
        };
        let (quote, block) = (self.quote()?, self.pattern(exactly(BLOCK)?)?);
        let (blocks, one) = (count(min / BLOCK)?, self.pattern(exactly(1)?)?);
        let first = self.builder.repeat(block, blocks, Some(blocks), self.span)?;
        // More characters than can be counted are any number.
        let most = max.and_then(|max| u32::try_from(max - min / BLOCK * BLOCK).ok());
        let rest = self.builder.repeat(one, count(min % BLOCK)?, most, self.span)?;
        let whole = self.builder.sequence(vec![quote, first, rest, quote], self.span)?;
        self.parts.push(whole);
        Ok(())
    }

    /// Adds the strings of `part`, which are those of `whole` within the bounds.
    fn regular(&mut self, part: &CharDfa, whole: &CharDfa, bounds: LengthRange) -> Result<(), LeafError> {
        let error = match quoted(part, self.style) {
            Ok(automaton) => return self.automaton(automaton),
            Err(error) => error,
        };
        if self.style == Style::All
            && let Ok(automaton) = quoted(part, Style::Usual)
        {
            return self.automaton(automaton);
        }
        match part.strings(MAX_STRINGS) {
            Some(strings) => self.strings(&strings),
            None => self.lazily(whole, bounds, error),
        }
    }

    /// Adds the strings of `dfa` within the bounds, spelled lazily. Returns `error` if there are too many
    /// states or lengths for that.
    pub(super) fn lazily(
        &mut self,
        dfa: &CharDfa,
        bounds: LengthRange,
        error: LeafError,
    ) -> Result<(), LeafError> {
        let in_quotes = (self.style != Style::Plain).then_some(self.style);
        let spelled = in_quotes.and_then(|style| spelled(dfa, style, bounds)).ok_or(error)?;
        let part = self.builder.pattern(Pattern::spelled(spelled), self.span)?;
        self.parts.push(part);
        Ok(())
    }
}

// All schemas share the automata of strings of any characters.

/// Names of the automata of any characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum AnyCharacters {
    /// All strings, with both quotes.
    Whole,
    /// All strings, with the closing quote.
    Rest,
    /// All strings, without quotes.
    Inside,
}
recipe!(AnyCharacters, |_| 0, |_| true);

impl StringSet {
    /// The automata that terminals made of sets of strings mostly agree with: all strings, all strings with
    /// the closing quote alone, and all strings without quotes. None for text that is no JSON.
    pub(in super::super) fn common(
        spelling: ValueSpelling,
        automata: &AutomataCache,
    ) -> Result<Vec<Automaton>, LeafError> {
        let style = Style::of(spelling);
        if style == Style::Plain {
            return Ok(Vec::new());
        }
        let any = |which, quotes| common(which, style, automata, || spell(&CharDfa::all(), style, quotes));
        Ok(vec![
            any_string(style, automata)?,
            any(AnyCharacters::Rest, (false, true))?,
            any(AnyCharacters::Inside, (false, false))?,
        ])
    }
}

/// An automaton of any characters, cached if the style is the usual one.
fn common(
    which: AnyCharacters,
    style: Style,
    automata: &AutomataCache,
    make: impl FnOnce() -> Result<Automaton, LeafError>,
) -> Result<Automaton, LeafError> {
    if style == Style::All { automata.automaton(which, make) } else { make() }
}

/// The automaton of any string with its quotes.
fn any_string(style: Style, automata: &AutomataCache) -> Result<Automaton, LeafError> {
    common(AnyCharacters::Whole, style, automata, || quoted(&CharDfa::all(), style))
}

/// Characters of a piece of a string that is too long for one automaton.
const PIECE_CHARS: usize = 256;

impl StringEmitter<'_> {
    /// Adds these strings in several automata. Sorted strings share their beginnings, so neighbours go
    /// together.
    pub(super) fn strings(&mut self, strings: &[String]) -> Result<(), LeafError> {
        let mut open = vec![strings];
        while let Some(strings) = open.pop() {
            if let Ok(automaton) = CharDfa::of(strings).and_then(|dfa| quoted(&dfa, self.style)) {
                self.automaton(automaton)?;
            } else if let [only] = strings {
                self.long(only)?;
            } else {
                let (before, after) = strings.split_at(strings.len() / 2);
                open.extend([after, before]);
            }
        }
        Ok(())
    }

    /// Adds one string in pieces.
    fn long(&mut self, string: &str) -> Result<(), LeafError> {
        let characters: Vec<char> = string.chars().collect();
        let mut row = vec![self.quote()?];
        for piece in characters.chunks(PIECE_CHARS) {
            let piece = CharDfa::of([piece.iter().collect::<String>()])?;
            row.push(self.pattern(spell(&piece, self.style, (false, false))?)?);
        }
        row.push(self.quote()?);
        let whole = self.builder.sequence(row, self.span)?;
        self.parts.push(whole);
        Ok(())
    }
}

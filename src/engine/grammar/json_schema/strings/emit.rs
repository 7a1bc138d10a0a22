//! Sets of strings -> expressions of a grammar, in the first of these forms that stays small:
//!
//! * one automaton;
//! * with a bound on the length, a [length-bounded](crate::grammar::LengthBounded) terminal, which counts
//!   characters beside the automaton of the strings of any length;
//! * blocks of characters counted by the grammar, if only lengths are bounded or the pattern has one loop
//!   (`^[a-z]\w*=?$`); else a grammar over characters. Lists too long for one automaton become several.

use hashbrown::HashMap;

use super::{
    StringSet,
    counts::is_too_large,
    spelling::{Style, quoted, spell},
};
use crate::{
    cores,
    grammar::{
        Automaton, GrammarBuilder, Pattern, Span,
        json_schema::{
            automata::{AutomataCache, recipe},
            dfa::{CharClass, CharDfa, CountAt, LengthProduct, MAX_STATES, char_at, too_many_states},
            leaf::{LeafError, ValueSpelling},
        },
    },
    ids::ExprId,
};

/// Least length, in characters, up to which otherwise unbounded strings are one automaton.
const COUNTED_BY_STATES: u64 = 32;
/// Limit on the strings of a finite set that is spelled in several automata.
pub(super) const MAX_STRINGS: usize = 100_000;
/// Number of states of an automaton above which counting without them is tried.
const COUNTED_STATES: usize = 64;
/// Greatest length, in characters, that is counted beside the automaton of a pattern.
const MAX_MEASURED: u64 = 131_071;
/// Limit on the states (with their counts) of a grammar over characters.
const MAX_COUNTED: usize = 60_000;
/// Limit on the states of all automata in such a grammar.
const MAX_RESTS: usize = 400_000;
/// Least number of states of a set that is spelled on another core: that is some 50 us of work, about as long
/// as it takes to wake one.
const WORTH_A_THREAD: usize = 128;
/// Limit on the ways into the last loop of a pattern whose length is counted.
const MAX_ENTRIES: usize = 64;

impl StringSet {
    /// Writes the JSON texts of the strings, with their quotes. `\uXXXX` is read in either case, and as a
    /// pair of surrogates where one is needed; a lone surrogate is a text of no string.
    ///
    /// All strings are the same automaton in every schema, so that grammars share its tables. If an automaton
    /// would be too large with every escape, characters that no common writer escapes stand for themselves.
    /// Strings of more than 4,294,967,295 characters are left out where their length is counted.
    ///
    /// # Errors
    /// If the automaton would still be too large, or the grammar.
    pub fn emit(
        &self,
        builder: &mut GrammarBuilder,
        spelling: ValueSpelling,
        span: Span,
    ) -> Result<ExprId, LeafError> {
        self.emit_with(&AutomataCache::of_one_call(), builder, spelling, span)
    }

    /// Emits like [`emit`](Self::emit), with automata that other sets may share.
    pub(in super::super) fn emit_with(
        &self,
        automata: &AutomataCache,
        builder: &mut GrammarBuilder,
        spelling: ValueSpelling,
        span: Span,
    ) -> Result<ExprId, LeafError> {
        let (set, style) = (self.written(), Style::of(spelling.escapes));
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
            // The product with a counter would have more states than the pattern alone.
            let is_long = max.is_some_and(|max| max > COUNTED_STATES as u64) && dfa.longest().is_none();
            if emitter.is_spelled(dfa, (min, max))?
                || is_long && emitter.bounded(|| quoted(dfa, style), (min, max))?
            {
                continue;
            }
            let counted = match max {
                // The automaton would have at least as many states as characters.
                Some(max) if max > MAX_STATES as u64 && dfa.longest().is_none() => {
                    Err(too_many_states(MAX_STATES))
                }
                _ => dfa.within(min, max),
            };
            if !is_long && is_large(&counted, dfa) && emitter.bounded(|| quoted(dfa, style), (min, max))? {
                continue;
            }
            match counted {
                // Only counts are worth it: plain automata share the tables of all strings.
                Ok(part)
                    if part.len() > COUNTED_STATES
                        && (min > 0 || max.is_some() || part.one_class().is_some())
                        && emitter.counts(&part, dfa, (min, max)) => {}
                // Small parts become one automaton, as long as they fit into one.
                Ok(part) => {
                    let both = small.as_ref().map_or(Ok(part.clone()), |(small, _)| small.or(&part));
                    let spelled = both.and_then(|both| Ok((quoted(&both, style)?, both)));
                    match spelled {
                        Ok((automaton, both)) => small = Some((both, automaton)),
                        Err(_) => {
                            emitter.or_spelled(dfa, (min, max), |one| one.regular(&part, dfa, (min, max)))?
                        }
                    }
                }
                Err(error) => {
                    emitter.or_spelled(dfa, (min, max), |one| one.counted_states(dfa, (min, max), error))?;
                }
            }
        }
        if let Some((_, automaton)) = small {
            emitter.automaton(automaton)?;
        }
        let StringEmitter { builder, parts, .. } = emitter;
        Ok(builder.alternatives(parts, span)?)
    }
}

/// True if the strings of `dfa` within bounds have too many states, or more than a counter would cost.
fn is_large(counted: &Result<CharDfa, LeafError>, dfa: &CharDfa) -> bool {
    let is_more = |part: &CharDfa| part.len() > COUNTED_STATES.max(dfa.len()) && part.one_class().is_none();
    counted.as_ref().map_or(true, is_more)
}

impl StringSet {
    /// Spells a large set on another core, so that [`emit`](Self::emit) finds it done or waits for the rest.
    pub(in super::super) fn spell_ahead(&self, spelling: ValueSpelling) {
        // Other styles are not kept, and bounds make other sets.
        let ([(_, dfa)], all @ Style::All) = (&self.pieces[..], Style::of(spelling.escapes)) else { return };
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
        (min, max): (u64, Option<u64>),
    ) -> Result<bool, LeafError> {
        let Some(max) = max.filter(|max| *max <= MAX_MEASURED) else { return Ok(false) };
        let (Ok(min), Ok(max)) = (u32::try_from(min), u32::try_from(max)) else { return Ok(false) };
        // If this automaton alone is too large, other forms may do.
        let Ok(automaton) = automaton() else { return Ok(false) };
        let Some(pattern) = Pattern::length_bounded(&automaton, min, max) else { return Ok(false) };
        let part = self.builder.pattern(pattern, self.span)?;
        self.parts.push(part);
        Ok(true)
    }

    pub(super) fn quote(&mut self) -> Result<ExprId, LeafError> {
        Ok(self.builder.pattern(Pattern::literal(b"\""), self.span)?)
    }

    /// Adds all strings of `min` to `max` characters.
    fn counted(&mut self, min: u64, max: Option<u64>) -> Result<(), LeafError> {
        self.class_string(&CharClass::all(), min, max)
    }

    /// Adds the strings of `min` to `max` characters of a class: as a terminal that counts them, if they are
    /// neither few nor too many for that.
    fn class_string(&mut self, class: &CharClass, min: u64, max: Option<u64>) -> Result<(), LeafError> {
        let is_rest = max.is_some_and(|max| max < min + BLOCK) && min <= BLOCK;
        let (style, automata) = (self.style, self.automata);
        let whole = || match *class == CharClass::all() {
            true => any_string(style, automata),
            false => quoted(&CharDfa::repeated(class, 0, None), style),
        };
        if !is_rest && self.bounded(whole, (min, max))? {
            return Ok(());
        }
        let open = self.quote()?;
        let rest = self.characters(class, min, max)?;
        let whole = self.builder.sequence(vec![open, rest], self.span)?;
        self.parts.push(whole);
        Ok(())
    }

    /// Writes `min` to `max` characters of a class, and the closing quote.
    ///
    /// Blocks are terminals of exactly [`BLOCK`] characters; the last terminal has fewer, and the quote. So a
    /// token crosses few terminals, and texts of all lengths, in all schemas, share the blocks.
    fn characters(&mut self, class: &CharClass, min: u64, max: Option<u64>) -> Result<ExprId, LeafError> {
        if max.is_some_and(|max| max < min + BLOCK) && min <= BLOCK {
            return self.rest(class, min, max);
        }
        let count = |blocks: u64| {
            let what = "blocks of characters that a string must have";
            u32::try_from(blocks).map_err(|_| LeafError::Budget { what, limit: u32::MAX as usize })
        };
        let block = self.pattern(block(class, self.style, self.automata)?)?;
        let (blocks, least) = (count(min / BLOCK)?, min % BLOCK);
        let mut ways = Vec::new();
        match max.map(|max| (max / BLOCK - min / BLOCK, max % BLOCK)) {
            None => ways.push(self.rest(class, least, None)?),
            Some((0, most)) => ways.push(self.rest(class, least, Some(most))?),
            Some((more, most)) => {
                // More blocks than can be counted count as any number.
                let more = u32::try_from(more).ok();
                ways.push(self.rest(class, least, Some(BLOCK - 1))?);
                if more.is_none_or(|more| more > 1) {
                    let between = self.builder.repeat(block, 1, more.map(|more| more - 1), self.span)?;
                    let rest = self.rest(class, 0, Some(BLOCK - 1))?;
                    ways.push(self.builder.sequence(vec![between, rest], self.span)?);
                }
                if let Some(more) = more {
                    let last = self.builder.repeat(block, more, Some(more), self.span)?;
                    let rest = self.rest(class, 0, Some(most))?;
                    ways.push(self.builder.sequence(vec![last, rest], self.span)?);
                }
            }
        }
        let rest = self.builder.alternatives(ways, self.span)?;
        if blocks == 0 {
            return Ok(rest);
        }
        let first = self.builder.repeat(block, blocks, Some(blocks), self.span)?;
        Ok(self.builder.sequence(vec![first, rest], self.span)?)
    }

    /// The rest of a string from a state with a loop, which is left for a few characters at most: `min` (at
    /// most [`BLOCK`]) to `max` characters and the closing quote. `None` if there is no such string.
    ///
    /// The loop is written in blocks, as in [`characters`](Self::characters); then comes one automaton of the
    /// last characters in the loop, the end, and the quote.
    fn loop_and_end(
        &mut self,
        dfa: &CharDfa,
        (state, class): (u32, &CharClass),
        (min, max): (u64, u64),
    ) -> Result<Option<ExprId>, LeafError> {
        // The end, with less than a block in the loop before it.
        let end = dfa.leaving(state, BLOCK_CHARACTERS - 1);
        let longest = end.longest().unwrap_or(0);
        let free = max.saturating_sub(longest) / BLOCK;
        let mut ways = Vec::new();
        // For each number of blocks near the bounds, an end with bounds of its own.
        let mut with_bounds = vec![(0, min, max)];
        with_bounds.extend((free + 1..=max / BLOCK).map(|blocks| (blocks, 0, max - blocks * BLOCK)));
        let block = self.pattern(block(class, self.style, self.automata)?)?;
        for (blocks, min, max) in with_bounds {
            let end = end.within(min, Some(max))?;
            let Ok(blocks) = u32::try_from(blocks) else { continue };
            if end.is_empty() {
                continue;
            }
            let mut way = vec![self.pattern(spell(&end, self.style, (false, true))?)?];
            if blocks > 0 {
                way.insert(0, self.builder.repeat(block, blocks, Some(blocks), self.span)?);
            }
            ways.push(self.builder.sequence(way, self.span)?);
        }
        if free > 0 {
            let blocks = self.builder.repeat(block, 1, u32::try_from(free).ok(), self.span)?;
            let end = self.pattern(spell(&end, self.style, (false, true))?)?;
            ways.push(self.builder.sequence(vec![blocks, end], self.span)?);
        }
        Ok(if ways.is_empty() { None } else { Some(self.builder.alternatives(ways, self.span)?) })
    }

    /// The automaton of `min` to `max` characters of a class and the closing quote.
    fn rest(&mut self, class: &CharClass, min: u64, max: Option<u64>) -> Result<ExprId, LeafError> {
        let make = || spell(&CharDfa::repeated(class, min, max), self.style, (false, true));
        let automaton = if *class == CharClass::all() {
            common(AnyCharacters::Counted(min, max), self.style, self.automata, make)?
        } else {
            make()?
        };
        self.pattern(automaton)
    }

    /// Emits counted characters if they are the same language as a large automaton: `^.{1,255}$`, or last
    /// loops. True if so.
    fn counts(&mut self, part: &CharDfa, whole: &CharDfa, bounds: (u64, Option<u64>)) -> bool {
        let parts = self.parts.len();
        let made = match part.one_class() {
            Some((class, min, max)) => self.class_string(&class, min, Some(max)),
            None => self.last_loops(whole, bounds, LeafError::Number(String::new())),
        };
        if made.is_err() {
            self.parts.truncate(parts);
        }
        made.is_ok()
    }

    /// Adds the strings of `part`, which are those of `whole` within the bounds.
    fn regular(
        &mut self,
        part: &CharDfa,
        whole: &CharDfa,
        bounds: (u64, Option<u64>),
    ) -> Result<(), LeafError> {
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
            None => self.counted_states(whole, bounds, error),
        }
    }

    /// Adds the strings of `dfa` within the bounds, if their automaton is too large for one terminal, as a
    /// right-linear grammar over characters whose nonterminals are states with counts. Where the count no
    /// longer matters it goes on with an automaton.
    fn counted_states(
        &mut self,
        dfa: &CharDfa,
        bounds: (u64, Option<u64>),
        error: LeafError,
    ) -> Result<(), LeafError> {
        let Err(error) = self.last_loops(dfa, bounds, error) else { return Ok(()) };
        let count = LengthProduct::new(dfa, bounds.0, bounds.1);
        if count.has_more_than(MAX_COUNTED) {
            return Err(error);
        }
        let ways: Vec<Vec<(u32, CharClass)>> = dfa.states().map(|state| dfa.ways(state)).collect();
        let mut places = HashMap::from([(count.start(), None::<ExprId>)]);
        let mut order = vec![count.start()];
        let mut next = 0;
        while let Some(&place) = order.get(next) {
            next += 1;
            // A place without a count becomes an automaton; the others lead on.
            let targets = ways[place.0 as usize].iter().filter(|_| place.1.is_some());
            for to in targets.filter_map(|(to, _)| count.step(place, *to)) {
                if places.insert(to, None).is_none() {
                    order.push(to);
                }
            }
            if order.len() > MAX_COUNTED {
                return Err(error);
            }
        }
        let (counted, free): (Vec<CountAt>, Vec<CountAt>) = order.iter().partition(|place| place.1.is_some());
        if free.len() * dfa.len() > MAX_RESTS {
            return Err(error);
        }
        let mut classes: HashMap<CharClass, ExprId> = HashMap::new();
        // A place is made after the places that it leads to: first those without a count, then those behind
        // more characters, which were found later.
        for &place in free.iter().chain(counted.iter().rev()) {
            let made = self.place(dfa, &count, place, &ways[place.0 as usize], &places, &mut classes)?;
            places.insert(place, Some(made));
        }
        let open = self.quote()?;
        if let Some(Some(first)) = places.get(&count.start()) {
            let whole = self.builder.sequence(vec![open, *first], self.span)?;
            self.parts.push(whole);
        }
        Ok(())
    }

    /// The expression of the texts read from a place on, with the closing quote.
    fn place(
        &mut self,
        dfa: &CharDfa,
        count: &LengthProduct<'_>,
        place: CountAt,
        ways: &[(u32, CharClass)],
        places: &HashMap<CountAt, Option<ExprId>>,
        classes: &mut HashMap<CharClass, ExprId>,
    ) -> Result<ExprId, LeafError> {
        if place.1.is_none() {
            let rest = spell(&dfa.rest(place.0), self.style, (false, true))?;
            return self.pattern(rest);
        }
        let mut parts = Vec::new();
        if count.accepts(place) {
            parts.push(self.quote()?);
        }
        for (to, class) in ways {
            let Some(Some(rest)) = count.step(place, *to).and_then(|to| places.get(&to).copied()) else {
                continue;
            };
            let one = match classes.get(class) {
                Some(&one) => one,
                None => {
                    let one = spell(&CharDfa::one_of(class), self.style, (false, false))?;
                    let one = self.pattern(one)?;
                    classes.insert(class.clone(), one);
                    one
                }
            };
            parts.push(self.builder.sequence(vec![one, rest], self.span)?);
        }
        Ok(self.builder.alternatives(parts, self.span)?)
    }

    /// Adds the strings of `dfa` of `min` to `max` characters, if its only cycles are loops at single states
    /// and no string goes through two of them: a few characters, then counted ones of a class, then a few
    /// characters. Otherwise returns `error`.
    pub(super) fn last_loops(
        &mut self,
        dfa: &CharDfa,
        (min, max): (u64, Option<u64>),
        error: LeafError,
    ) -> Result<(), LeafError> {
        let remaining = dfa.remaining();
        let is_last = |state: u32| {
            let edges = dfa.edges(state);
            let ends = |to: u32| remaining[to as usize].is_some();
            edges.iter().any(|(_, _, to)| *to == state)
                && edges.iter().all(|&(_, _, to)| to == state || ends(to))
        };
        let last: Vec<u32> = dfa.states().filter(|&state| is_last(state)).collect();
        let mut row = Vec::new();
        for &state in &last {
            let before = dfa.rerouted(|at| at == state, |at| last.contains(&at));
            let (Some(shortest), Some(longest)) = (before.shortest(), before.longest()) else {
                return Err(error);
            };
            let edges = dfa.edges(state).into_iter().filter(|&(_, _, to)| to == state);
            let class = CharClass::new(edges.map(|(first, last, _)| (char_at(first), char_at(last))));
            for length in shortest..=longest.min(max.unwrap_or(u64::MAX)) {
                row.push((before.within(length, Some(length))?, (state, class.clone()), length));
                if row.len() > MAX_ENTRIES {
                    return Err(error);
                }
            }
        }
        let rest = dfa.rerouted(|at| dfa.accepts(at) && !last.contains(&at), |at| last.contains(&at));
        if !rest.is_empty() && rest.longest().is_none() {
            return Err(error);
        }
        let rest = rest.within(min, max)?;
        if !rest.is_empty() {
            self.automaton(quoted(&rest, self.style)?)?;
        }
        for (before, (state, class), length) in row.into_iter().filter(|(before, ..)| !before.is_empty()) {
            let bounds = (min.saturating_sub(length), max.map(|max| max - length));
            let alone = dfa.accepts(state) && dfa.edges(state).iter().all(|&(_, _, to)| to == state);
            let characters = match bounds {
                _ if alone => self.characters(&class, bounds.0, bounds.1)?,
                (min, Some(max)) if min <= BLOCK => {
                    let Some(characters) = self.loop_and_end(dfa, (state, &class), (min, max))? else {
                        continue;
                    };
                    characters
                }
                _ => return Err(error),
            };
            let open = self.pattern(spell(&before, self.style, (true, false))?)?;
            let whole = self.builder.sequence(vec![open, characters], self.span)?;
            self.parts.push(whole);
        }
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
    common(AnyCharacters::Whole, style, automata, || spell(&CharDfa::all(), style, (true, true)))
}

/// Number of characters in a block of a counted string, which is more than nearly all tokens have.
const BLOCK: u64 = BLOCK_CHARACTERS as u64;
/// The number [`BLOCK`] as that of a state.
const BLOCK_CHARACTERS: u32 = 64;

/// The automaton of a block of characters of a class.
fn block(class: &CharClass, style: Style, automata: &AutomataCache) -> Result<Automaton, LeafError> {
    let make = || spell(&CharDfa::repeated(class, BLOCK, Some(BLOCK)), style, (false, false));
    if *class == CharClass::all() { common(AnyCharacters::Block, style, automata, make) } else { make() }
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

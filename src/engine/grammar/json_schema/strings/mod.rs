//! Sets of Unicode strings, and the ways in which JSON writes them.
//!
//! A set is a list of pieces: from each length on, the regular language that it agrees with. So a `minLength`
//! of a billion takes no states, and Boolean operations go piece by piece.
//!
//! `pattern` reads regular expressions, `formats` has the named formats, `spelling` turns automata over
//! characters into automata over the bytes of JSON text, and `emit` writes sets as grammars.

use crate::ids::as_u64;

mod counts;
mod emit;
mod formats;
#[cfg(test)]
mod length_bounded_tests;
pub(super) mod pattern;
mod spelling;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use counts::tests::pattern_as_spelled;
pub(super) use spelling::{in_utf8, word::word};

use super::{automata::AutomataCache, dfa::CharDfa, leaf::LeafError};

/// A set of strings of Unicode scalar values.
///
/// Operations fail with [`LeafError::Budget`] if automata would become too large. `Eq` compares
/// constructions: equal values are equal sets, but equal sets with bounds on length may be different values.
/// Clones share automata.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct StringSet {
    /// The pieces: each has the least length for which it holds, ascending from 0, and the language of the
    /// set there.
    pieces: Vec<(u64, CharDfa)>,
    /// The strings of the set that are written; `None` for all. A complement is written as a whole, so that
    /// what is written is always in the set.
    to_write: Option<Box<Self>>,
}

impl StringSet {
    /// The set of all strings.
    pub(super) fn all() -> Self {
        Self::regular(CharDfa::all())
    }

    /// The empty set.
    pub(super) fn none() -> Self {
        Self::regular(CharDfa::none())
    }

    /// Memory of the set's automata, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let written = self.to_write.as_ref().map_or(0, |part| part.bytes());
        written + self.pieces.iter().map(|(_, dfa)| dfa.bytes()).sum::<usize>()
    }

    fn regular(dfa: CharDfa) -> Self {
        Self::of_pieces(vec![(0, dfa)])
    }

    fn of_pieces(pieces: Vec<(u64, CharDfa)>) -> Self {
        Self { pieces, to_write: None }
    }

    /// The same set, of which only a part is [written](Self::written).
    fn writing(self, part: Self) -> Self {
        Self { to_write: Some(Box::new(part)), ..self }
    }

    /// The strings of the set that are written: those of a format within the lengths that its RFC allows, if
    /// there are any.
    pub(super) fn written(&self) -> &Self {
        self.to_write.as_deref().filter(|part| !part.is_empty()).unwrap_or(self)
    }

    /// The set of exactly this string.
    ///
    /// # Errors
    /// If the string has hundreds of thousands of characters.
    pub(super) fn one(string: &str) -> Result<Self, LeafError> {
        Self::of([string])
    }

    /// The set of exactly these strings. `O(n log n)` in their characters.
    ///
    /// # Errors
    /// If the table of their automaton is over budget.
    pub(super) fn of<S: AsRef<str>>(strings: impl IntoIterator<Item = S>) -> Result<Self, LeafError> {
        Ok(Self::regular(CharDfa::of(strings)?))
    }

    /// The set of all strings but these. `O(n log n)` in their characters.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub(super) fn all_but<S: AsRef<str>>(strings: impl IntoIterator<Item = S>) -> Result<Self, LeafError> {
        Ok(Self::regular(CharDfa::all_but(strings)?))
    }

    /// The strings in which an ECMA-262 regular expression finds a match. `^` and `$` are the ends of the
    /// string; `\d`, `\w` and `\b` are ASCII, `\s` is Unicode. Look-ahead and look-behind are exact.
    ///
    /// # Errors
    /// If the expression is none of ECMA-262, has a back-reference, flags, or look-ahead and look-behind one
    /// inside of the other, or needs a larger automaton than the budget allows.
    pub(super) fn from_pattern(pattern: &str) -> Result<Self, LeafError> {
        pattern::set(pattern)
    }

    /// The strings of a format, or `None` if the format is unknown, and so an annotation. If `bounded`, only
    /// those within the lengths that its RFC allows are written. Other sets may share the automata.
    ///
    /// # Errors
    /// If a budget is used up, which no known format does.
    pub(super) fn from_format_with(
        automata: &AutomataCache,
        name: &str,
        bounded: bool,
    ) -> Result<Option<Self>, LeafError> {
        let Some(set) = formats::language(name, automata)? else { return Ok(None) };
        Ok(Some(match formats::written(name, automata)?.filter(|_| bounded) {
            Some(part) => set.writing(part),
            None => set,
        }))
    }

    /// True if [`from_format`](Self::from_format_with) of this name may leave any string out.
    pub(super) fn known_format(name: &str) -> bool {
        formats::restricts(name)
    }

    /// The strings of the set with `min` to `max` characters. Any bounds cost the same: they are not spelled
    /// out.
    ///
    /// # Errors
    /// As [`intersect`](Self::intersect).
    pub(super) fn with_length(&self, min: u64, max: Option<u64>) -> Result<Self, LeafError> {
        let mut pieces = Vec::with_capacity(3);
        if min > 0 {
            pieces.push((0, CharDfa::none()));
        }
        if max.is_none_or(|max| max >= min) {
            pieces.push((min, CharDfa::all()));
            if let Some(after) = max.and_then(|max| max.checked_add(1)) {
                pieces.push((after, CharDfa::none()));
            }
        }
        self.intersect(&Self::of_pieces(pieces))
    }

    /// True if some string has a beginning that only finitely many written strings of the set share.
    pub(super) fn may_run_out(&self) -> bool {
        let mut windows = self.written().windows().filter(|(_, _, dfa)| !dfa.is_empty());
        windows.any(|(_, max, dfa)| max.is_some() || dfa.remaining().iter().any(Option::is_some))
    }

    /// The intersection of both sets.
    ///
    /// # Errors
    /// If an automaton would be too large.
    pub(super) fn intersect(&self, other: &Self) -> Result<Self, LeafError> {
        self.combine_both(other, CharDfa::and)
    }

    /// The union of both sets.
    ///
    /// # Errors
    /// As [`intersect`](Self::intersect).
    pub(super) fn union(&self, other: &Self) -> Result<Self, LeafError> {
        self.combine_both(other, CharDfa::or)
    }

    /// The complement of the set.
    ///
    /// # Errors
    /// As [`intersect`](Self::intersect).
    pub(super) fn complement(&self) -> Result<Self, LeafError> {
        let pieces = self.pieces.iter().map(|(from, dfa)| (*from, dfa.not())).collect();
        Self::of_pieces(pieces).simplified()
    }

    /// The strings of the set that are not in `other`.
    ///
    /// # Errors
    /// As [`intersect`](Self::intersect).
    pub(super) fn subtract(&self, other: &Self) -> Result<Self, LeafError> {
        let left = self.combine(other, CharDfa::minus)?;
        Ok(match &self.to_write {
            Some(part) => left.writing(part.combine(other, CharDfa::minus)?),
            None => left,
        })
    }

    /// The strings of the set in which this pattern has no match.
    ///
    /// # Errors
    /// As [`from_pattern`](Self::from_pattern).
    pub(super) fn without(&self, pattern: &str) -> Result<Self, LeafError> {
        self.subtract(&Self::from_pattern(pattern)?)
    }

    /// True if the set has no string.
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.iter().all(|(_, dfa)| dfa.is_empty())
    }

    /// True if the set has every string.
    pub(super) fn is_all(&self) -> bool {
        self.to_write.is_none() && self.pieces.iter().all(|(_, dfa)| dfa.is_all())
    }

    /// True if `string` is in the set. Linear in the string.
    pub(super) fn contains(&self, string: &str) -> bool {
        let length = as_u64(string.chars().count());
        let piece = self.pieces.iter().rev().find(|(from, _)| *from <= length);
        piece.is_some_and(|(_, dfa)| dfa.contains(string))
    }

    /// The strings of the set in order of their characters, if there are at most `limit`.
    pub(super) fn as_finite(&self, limit: usize) -> Option<Vec<String>> {
        let mut strings = Vec::new();
        for (min, max, dfa) in self.windows().filter(|(_, _, dfa)| !dfa.is_empty()) {
            // All strings of any length but 0 are more than a million.
            if dfa.is_all() && max != Some(0) {
                return None;
            }
            strings.extend(dfa.within(min, max).ok()?.strings(limit.checked_sub(strings.len())?)?);
        }
        strings.sort_unstable();
        Some(strings)
    }

    /// The number of strings in the set, if there are at most `limit`.
    pub(super) fn count(&self, limit: usize) -> Option<usize> {
        let mut count = 0;
        for (min, max, dfa) in self.windows().filter(|(_, _, dfa)| !dfa.is_empty()) {
            // All strings of any length but 0 are more than a million.
            if dfa.is_all() && max != Some(0) {
                return None;
            }
            count += dfa.within(min, max).ok()?.count(limit);
            if count > limit {
                return None;
            }
        }
        Some(count)
    }

    /// The least and greatest length of each piece, and the language that the set has there.
    pub(super) fn windows(&self) -> impl Iterator<Item = (u64, Option<u64>, &CharDfa)> {
        let ends = self.pieces.iter().skip(1).map(|(from, _)| Some(from - 1)).chain([None]);
        self.pieces.iter().zip(ends).map(|((from, dfa), end)| (*from, end, dfa))
    }

    /// Combines both sets, and the strings of them that are written.
    fn combine_both(
        &self,
        other: &Self,
        op: impl Fn(&CharDfa, &CharDfa) -> Result<CharDfa, LeafError>,
    ) -> Result<Self, LeafError> {
        let both = self.combine(other, &op)?;
        if self.to_write.is_none() && other.to_write.is_none() {
            return Ok(both);
        }
        let part = |set: &'_ Self| set.to_write.as_deref().unwrap_or(set).clone();
        Ok(both.writing(part(self).combine(&part(other), &op)?))
    }

    fn combine(
        &self,
        other: &Self,
        op: impl Fn(&CharDfa, &CharDfa) -> Result<CharDfa, LeafError>,
    ) -> Result<Self, LeafError> {
        let mut pieces = Vec::with_capacity(self.pieces.len() + other.pieces.len());
        let (mut left, mut right) = (0, 0);
        loop {
            let ((left_from, left_dfa), (right_from, right_dfa)) = (&self.pieces[left], &other.pieces[right]);
            pieces.push((*left_from.max(right_from), op(left_dfa, right_dfa)?));
            let after = |pieces: &[(u64, CharDfa)], at: usize| pieces.get(at + 1).map(|(from, _)| *from);
            match (after(&self.pieces, left), after(&other.pieces, right)) {
                (None, None) => return Self::of_pieces(pieces).simplified(),
                (Some(_), None) => left += 1,
                (None, Some(_)) => right += 1,
                (Some(next_left), Some(next_right)) => {
                    left += usize::from(next_left <= next_right);
                    right += usize::from(next_right <= next_left);
                }
            }
        }
    }

    /// Normalises the pieces: those without strings agree with the empty language, those with all strings
    /// with the full one, and neighbours that one automaton describes are joined.
    fn simplified(self) -> Result<Self, LeafError> {
        if self.pieces.len() == 1 {
            return Ok(self);
        }
        let mut pieces: Vec<(u64, CharDfa)> = Vec::with_capacity(self.pieces.len());
        for (min, max, dfa) in self.windows() {
            let mut dfa = dfa.clone();
            if !dfa.is_empty() && !dfa.has_length(min, max)? {
                dfa = CharDfa::none();
            } else if !dfa.is_all() && !dfa.not().has_length(min, max)? {
                dfa = CharDfa::all();
            }
            let Some((from, last)) = pieces.last_mut() else {
                pieces.push((min, dfa));
                continue;
            };
            if *last == dfa || agrees(last, &dfa, min, max)? {
                continue;
            }
            if min > 0 && agrees(&dfa, last, *from, Some(min - 1))? {
                *last = dfa;
                continue;
            }
            pieces.push((min, dfa));
        }
        Ok(Self::of_pieces(pieces))
    }
}

/// True if `dfa` agrees with `plain`, the empty or the full language, on strings of `min` to `max`
/// characters. False for any other `plain`.
fn agrees(dfa: &CharDfa, plain: &CharDfa, min: u64, max: Option<u64>) -> Result<bool, LeafError> {
    if plain.is_empty() {
        return Ok(!dfa.has_length(min, max)?);
    }
    Ok(plain.is_all() && !dfa.not().has_length(min, max)?)
}

#[cfg(test)]
impl StringSet {
    /// The strings of a format.
    pub(super) fn from_format(name: &str) -> Result<Option<Self>, LeafError> {
        Self::from_format_with(&AutomataCache::of_one_call(), name, false)
    }

    /// True if both sets have the same strings.
    fn same(&self, other: &Self) -> Result<bool, LeafError> {
        Ok(self == other || (self.subtract(other)?.is_empty() && other.subtract(self)?.is_empty()))
    }

    /// Writes the strings without a cache.
    pub(super) fn emit(
        &self,
        builder: &mut crate::grammar::GrammarBuilder,
        spelling: super::leaf::ValueSpelling,
        span: crate::grammar::Span,
    ) -> Result<crate::ids::ExprId, LeafError> {
        self.emit_with(&AutomataCache::of_one_call(), builder, spelling, span)
    }
}

//! Multi-string search as grammars: free text up to the first occurrence of one of several strings (the
//! stops), and free text without any.
//!
//! The stop is no part of the free text. Before the end of a tag, the free text is what stands in front of
//! the end, and it is that text which may hold neither an excluded string nor a trigger: an excluded `x<`
//! allows `x` before the end `<e>`. Triggers are found by the same search as excluded strings (Aho and
//! Corasick's, in XGrammar), so an excluded string counts there also if it ends within the trigger.
//!
//! If stops do not overlap, one automaton for "text without a stop" (the complement of `.*(a|b).*`) is
//! followed by the stop as a literal, so that all stops of a place share it. Otherwise each stop has an
//! automaton of its own: the texts that end with it and have no stop before.

use hashbrown::HashSet;
use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Dot, Hir, Repetition};

use crate::{
    grammar::{Pattern, regular::Language, source::Span},
    ids::ExprId,
    limits::LimitExceeded,
};

use super::translate::{TagResult, TagTranslator};

/// Limit on the strings in one place that need an automaton each.
const MOST_OVERLAPPING: usize = 64;

/// The strings that end free text, and those that it may not hold.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stops<'s> {
    /// The stops that may end it.
    pub(super) wanted: &'s [&'s str],
    /// The strings that may not come.
    pub(super) excluded: &'s [&'s str],
    /// True if the stops are ends of a tag, into which excluded strings do not reach; false for triggers.
    pub(super) of_tag: bool,
    /// The greatest number of characters before a stop.
    pub(super) most_chars: Option<u32>,
}

impl Stops<'_> {
    fn all(&self) -> Vec<&str> {
        self.wanted.iter().chain(self.excluded).copied().collect()
    }

    /// The strings that end the search for a stop.
    fn searched(&self) -> Vec<&str> {
        if self.of_tag { self.wanted.to_vec() } else { self.all() }
    }
}

impl TagTranslator<'_, '_> {
    /// Free text up to the first stop, which must be a wanted one, and after each stop its continuation in
    /// `follows`.
    pub(super) fn until(&mut self, stops: Stops<'_>, follows: &[ExprId], span: Span) -> TagResult<ExprId> {
        let mut ways = Vec::with_capacity(follows.len());
        if independent(&stops.searched()) {
            for (stop, &follows) in stops.wanted.iter().zip(follows) {
                let stop = self.text(stop, span)?;
                ways.push(self.sequence(vec![stop, follows], span)?);
            }
            let free = self.without(stops, span)?;
            let ways = self.choice(ways, span)?;
            return self.sequence(vec![free, ways], span);
        }
        if stops.wanted.len() > MOST_OVERLAPPING {
            return Err(self.unsupported(
                format!(
                    "more than {MOST_OVERLAPPING} strings that end free text, and begin within each other"
                ),
                span,
            ));
        }
        for (stop, &follows) in stops.wanted.iter().zip(follows) {
            let language = self.up_to(stop, stops).map_err(|limit| self.limit(limit, span))?;
            let leaf = self.leaf(&language, span)?;
            ways.push(self.sequence(vec![leaf, follows], span)?);
        }
        self.choice(ways, span)
    }

    /// Free text that holds no stop.
    pub(super) fn without(&mut self, stops: Stops<'_>, span: Span) -> TagResult<ExprId> {
        let mut key: Vec<String> = stops.all().into_iter().map(str::to_owned).collect();
        key.sort_unstable();
        if let Some(&known) = self.free.get(&(key.clone(), stops.most_chars)) {
            return Ok(known);
        }
        // Without a stop this is a repeat that the engine counts; an automaton would have states for each
        // character.
        if let (true, Some(most)) = (key.is_empty(), stops.most_chars) {
            let any = self.pattern(Pattern::byte_class(any_char()), span)?;
            return self.repeat(any, 0, Some(most), span);
        }
        let language = self.free_of(&stops.all(), stops.most_chars);
        let language = language.map_err(|limit| self.limit(limit, span))?;
        let leaf = self.leaf(&language, span)?;
        self.free.insert((key, stops.most_chars), leaf);
        Ok(leaf)
    }

    fn free_of(&self, strings: &[&str], most_chars: Option<u32>) -> Result<Language, LimitExceeded> {
        let limits = self.limits;
        let any = Language::texts(limits)?;
        let free = match strings {
            [] => any,
            _ => {
                let one = self.one_of(strings)?;
                Language::sequence(&[any.clone(), one, any], limits)?.not(limits)?
            }
        };
        match most_chars {
            None => Ok(free),
            Some(most) => free.and(&self.characters(most)?, limits),
        }
    }

    /// The texts that end with their first stop, which is this one.
    fn up_to(&self, stop: &str, stops: Stops<'_>) -> Result<Language, LimitExceeded> {
        let limits = self.limits;
        let ending = |part: Language, before: Language| Language::sequence(&[before, part], limits);
        let any = || Language::texts(limits);
        let first = ending(self.one_of(&stops.searched())?, any()?)?.shortest();
        let before = self.free_of(stops.excluded, stops.most_chars)?;
        let wanted = first.and(&ending(self.one_of(&[stop])?, before)?, limits)?;
        if stops.of_tag || stops.excluded.is_empty() {
            return Ok(wanted);
        }
        wanted.minus(&ending(self.one_of(stops.excluded)?, any()?)?, limits)
    }

    fn one_of(&self, strings: &[&str]) -> Result<Language, LimitExceeded> {
        let strings = strings.iter().map(|string| Hir::literal(string.as_bytes()));
        Language::of(&Hir::alternation(strings.collect()), self.limits)
    }

    fn characters(&self, most: u32) -> Result<Language, LimitExceeded> {
        let sub = Box::new(Hir::dot(Dot::AnyChar));
        let some = Repetition { min: 0, max: Some(most), greedy: true, sub };
        Language::of(&Hir::repetition(some), self.limits)
    }

    fn leaf(&mut self, language: &Language, span: Span) -> TagResult<ExprId> {
        let automaton = language.automaton(self.limits).map_err(|limit| self.limit(limit, span))?;
        self.pattern(Pattern::automaton(automaton), span)
    }
}

fn any_char() -> Class {
    Class::Unicode(ClassUnicode::new([ClassUnicodeRange::new('\0', char::MAX)]))
}

/// Checks that no two strings overlap: none contains another, and no proper suffix of one is a prefix of one.
/// Then appending a string to a text without any cannot complete an earlier one. Linear in the bytes, for
/// each length that the strings have.
fn independent(strings: &[&str]) -> bool {
    let whole: HashSet<&[u8]> = strings.iter().map(|string| string.as_bytes()).collect();
    let begins: HashSet<&[u8]> =
        strings.iter().flat_map(|string| (1..=string.len()).map(|end| &string.as_bytes()[..end])).collect();
    let lengths: HashSet<usize> = strings.iter().map(|string| string.len()).collect();
    let meets = |string: &&str| {
        let bytes = string.as_bytes();
        let inside = |start: usize, length: usize| {
            let end = start + length;
            length < bytes.len() && end <= bytes.len() && whole.contains(&bytes[start..end])
        };
        (1..bytes.len()).any(|start| begins.contains(&bytes[start..]))
            || (0..bytes.len()).any(|start| lengths.iter().any(|&length| inside(start, length)))
    };
    whole.len() == strings.len() && !whole.contains(&[][..]) && !strings.iter().any(meets)
}

#[cfg(test)]
mod tests {
    use super::independent;

    #[test]
    fn stops_that_overlap_are_not_independent() {
        assert!(independent(&["<a>", "</a>", "<b"]));
        assert!(independent(&["<tool_call>"]));
        assert!(independent(&["call:", "[x"]));
        assert!(!independent(&["<a", "<ab"]));
        assert!(!independent(&["aa"]));
        assert!(!independent(&["abc", "b"]));
        assert!(!independent(&["abc", "cd"]));
        assert!(!independent(&["x", "x"]));
        assert!(!independent(&["", "x"]));
        assert!(!independent(&["abca"]));
    }
}

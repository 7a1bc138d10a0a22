//! Free text: texts up to the first of some strings, and texts that hold none of them.
//!
//! Mostly one automaton does for a place: of texts that hold none of the strings, with the string itself after it.
//! That is exact where no string can begin within another or in what another leaves behind. Else each string
//! has an automaton of its own, of the texts whose first string ends where they end.

use hashbrown::HashSet;
use regex_syntax::hir::{Dot, Hir, Repetition};

use crate::{
    grammar::{Pattern, regular::Language, source::Span},
    ids::ExprId,
    limits::LimitExceeded,
};

use super::translate::{Translated, Translator};

/// Strings that need an automaton each, in one place.
const MOST_OVERLAPPING: usize = 64;

/// Strings that end free text, or that it may not hold.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stops<'s> {
    /// What may follow.
    pub(super) wanted: &'s [&'s str],
    /// What may not come.
    pub(super) excluded: &'s [&'s str],
    /// Most characters before.
    pub(super) most_chars: Option<u32>,
}

impl Stops<'_> {
    fn all(&self) -> Vec<&str> {
        self.wanted.iter().chain(self.excluded).copied().collect()
    }
}

impl Translator<'_, '_> {
    /// Free text up to the first stop, which must be one of the wanted, and after each what `follows` it.
    pub(super) fn until(&mut self, stops: Stops<'_>, follows: &[ExprId], span: Span) -> Translated<ExprId> {
        let mut ways = Vec::with_capacity(follows.len());
        if independent(&stops.all()) {
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
    pub(super) fn without(&mut self, stops: Stops<'_>, span: Span) -> Translated<ExprId> {
        let mut key: Vec<String> = stops.all().into_iter().map(str::to_owned).collect();
        key.sort_unstable();
        if let Some(&known) = self.free.get(&(key.clone(), stops.most_chars)) {
            return Ok(known);
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

    /// The texts whose first stop is at their end, and is this one.
    fn up_to(&self, stop: &str, stops: Stops<'_>) -> Result<Language, LimitExceeded> {
        let limits = self.limits;
        let any = Language::texts(limits)?;
        let ending = |part: Language, before: &Language| Language::sequence(&[before.clone(), part], limits);
        let first = ending(self.one_of(&stops.all())?, &any)?.shortest();
        let before = match stops.most_chars {
            None => any.clone(),
            Some(most) => self.characters(most)?,
        };
        let mut wanted = first.and(&ending(self.one_of(&[stop])?, &before)?, limits)?;
        if !stops.excluded.is_empty() {
            wanted = wanted.minus(&ending(self.one_of(stops.excluded)?, &any)?, limits)?;
        }
        Ok(wanted)
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

    fn leaf(&mut self, language: &Language, span: Span) -> Translated<ExprId> {
        let automaton = language.automaton(self.limits).map_err(|limit| self.limit(limit, span))?;
        self.pattern(Pattern::automaton(automaton), span)
    }
}

/// Is the first string in "a text that holds none, and one of them" always that one? So it is if none is within
/// another, and none ends with what one begins with. Linear in their bytes and in how many lengths they have.
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
    fn strings_that_meet() {
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

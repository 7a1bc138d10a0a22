//! ECMA-262 regular expressions -> automata.
//!
//! The NFA is built from the end to the start (continuations are states). Look-ahead and look-behind are
//! parts of it, which the subset construction follows ([`Nfa`]), so both are exact anywhere in a pattern, of
//! any length. Only look-around of the other direction inside of either is refused.

pub(super) mod ecma;

use hashbrown::HashMap;

use self::ecma::RegexNode;
use super::StringSet;
use crate::{
    grammar::json_schema::{
        dfa::{Assertion, CharClass, CharDfa, LookAhead, Nfa, NfaState, Prev},
        leaf::LeafError,
    },
    ids::as_u64,
};

/// The strings in which `pattern` finds a match.
pub(in crate::grammar::json_schema) fn language(pattern: &str) -> Result<CharDfa, LeafError> {
    language_of(&simplified(ecma::parse(pattern)?))
}

/// The strings in which an expression finds a match.
fn language_of(node: &RegexNode) -> Result<CharDfa, LeafError> {
    let mut builder = NfaBuilder::default();
    let found = builder.nfa.push(NfaState::Found)?;
    let start = builder.build(node, found)?;
    builder.nfa.determinise(start, Prev::Start, true, &ecma::word_characters())
}

/// The place of an NFA in a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Inside {
    /// The whole pattern.
    #[default]
    Pattern,
    Ahead,
    Behind,
}

/// A builder of an NFA. Look-around is built once, by its place in the pattern, however often counts copy it.
#[derive(Default)]
struct NfaBuilder {
    nfa: Nfa,
    aheads: HashMap<usize, LookAhead>,
    behinds: HashMap<usize, u32>,
    inside: Inside,
}

impl NfaBuilder {
    /// Builds the state that reads `node` and then the rest. Recurses as deep as groups are nested.
    fn build(&mut self, node: &RegexNode, next: u32) -> Result<u32, LeafError> {
        match node {
            RegexNode::Class(class) => self.nfa.class(class, next),
            RegexNode::Sequence(parts) => {
                parts.iter().rev().try_fold(next, |next, part| self.build(part, next))
            }
            RegexNode::Alternatives(parts) => {
                let starts = parts.iter().map(|part| self.build(part, next)).collect::<Result<_, _>>()?;
                self.nfa.push(NfaState::Split(starts))
            }
            RegexNode::Repeat { node, min, max } => self.repeat(node, *min, *max, next),
            RegexNode::Assert(assertion) => self.nfa.push(NfaState::Assert(*assertion, next)),
            RegexNode::Ahead { wanted, node, at } => {
                let look = self.ahead(node, *at)?;
                self.nfa.push(NfaState::Ahead(look, *wanted, next))
            }
            RegexNode::Behind { wanted, node, at } => {
                let look = self.behind(node, *at)?;
                self.nfa.push(NfaState::Behind(look, *wanted, next))
            }
        }
    }

    fn repeat(&mut self, node: &RegexNode, min: u32, max: Option<u32>, next: u32) -> Result<u32, LeafError> {
        let mut start = match max {
            Some(max) => {
                let mut start = next;
                for _ in min..max {
                    let body = self.build(node, start)?;
                    start = self.nfa.push(NfaState::Split(vec![body, next]))?;
                }
                start
            }
            None => {
                let again = self.nfa.push(NfaState::Split(Vec::new()))?;
                let body = self.build(node, again)?;
                self.nfa.set(again, NfaState::Split(vec![body, next]));
                again
            }
        };
        for _ in 0..min {
            let body = self.build(node, start)?;
            // Each copy gets a state, so that the budget also counts copies of the empty expression.
            start = self.nfa.push(NfaState::Split(vec![body]))?;
        }
        Ok(start)
    }

    /// Look-ahead: the rest begins with a match of `node`.
    fn ahead(&mut self, node: &RegexNode, at: usize) -> Result<LookAhead, LeafError> {
        if self.inside == Inside::Behind {
            return Err(LeafError::Unsupported { what: "look-ahead inside look-behind", at });
        }
        if let Some(&known) = self.aheads.get(&at) {
            return Ok(known);
        }
        let mut inner = Self { inside: Inside::Ahead, ..Self::default() };
        let found = inner.nfa.push(NfaState::Found)?;
        let start = inner.build(node, found)?;
        let look = self.nfa.ahead(&inner.nfa, start, &ecma::word_characters())?;
        self.aheads.insert(at, look);
        Ok(look)
    }

    /// Look-behind: the text before ends with a match of `node`.
    fn behind(&mut self, node: &RegexNode, at: usize) -> Result<u32, LeafError> {
        if self.inside == Inside::Ahead {
            return Err(LeafError::Unsupported { what: "look-behind inside look-ahead", at });
        }
        if let Some(&known) = self.behinds.get(&at) {
            return Ok(known);
        }
        let end = self.nfa.push(NfaState::Split(Vec::new()))?;
        let outside = std::mem::replace(&mut self.inside, Inside::Behind);
        let start = self.build(node, end)?;
        self.inside = outside;
        let look = self.nfa.behind(start, end)?;
        self.behinds.insert(at, look);
        Ok(look)
    }
}

// Some patterns are a regular language together with bounds on the length of the whole string:
// `(?=.{1,253}\.?$)` at the start, and `.{8,4000}$` behind look-ahead. Such bounds are kept beside the
// automaton; the product of both is not made.

/// Least count for which a bound by look-ahead is kept beside the rest of its pattern.
const LONG_LOOK: u32 = 65;
/// Least count for which a bound on everything behind look-ahead is kept beside it.
const LONG_REST: u32 = 1_000;

/// Limit on the endings behind a bound that is kept beside its pattern. Each adds lengths at which the
/// language of the set changes, and one that may be left out doubles their number.
const MOST_ENDINGS: usize = 4;

/// A part of a pattern that asks for a number of characters of a class, and then for one of a few endings.
struct Whole {
    class: CharClass,
    min: u32,
    max: Option<u32>,
    /// The endings, each with the class of every character.
    endings: Vec<Vec<CharClass>>,
}

impl Whole {
    /// Reads such a part from the end of a sequence, if its count is at least `least`.
    fn of(parts: &[RegexNode], least: u32) -> Option<Self> {
        let [RegexNode::Repeat { node, min, max }, ending @ .., RegexNode::Assert(Assertion::End)] = parts
        else {
            return None;
        };
        let RegexNode::Class(class) = &**node else { return None };
        let mut endings = vec![Vec::new()];
        for part in ending {
            let (class, can_be_left_out) = match part {
                RegexNode::Class(class) => (class, false),
                RegexNode::Repeat { node, min: 0, max: Some(1) } => match &**node {
                    RegexNode::Class(class) => (class, true),
                    _ => return None,
                },
                _ => return None,
            };
            let without = if can_be_left_out { endings.clone() } else { Vec::new() };
            endings.iter_mut().for_each(|ending| ending.push(class.clone()));
            endings.extend(without);
        }
        (max.unwrap_or(*min) >= least && endings.len() <= MOST_ENDINGS).then(|| Self {
            class: class.clone(),
            min: *min,
            max: *max,
            endings,
        })
    }

    /// The pattern of strings of any length that end in this way.
    fn of_any_length(&self, ending: &[CharClass]) -> Vec<RegexNode> {
        let of = |class: &CharClass| RegexNode::Class(class.clone());
        let any = RegexNode::Repeat { node: Box::new(of(&self.class)), min: 0, max: None };
        let start = [RegexNode::Assert(Assertion::Start), any];
        start.into_iter().chain(ending.iter().map(of)).chain([RegexNode::Assert(Assertion::End)]).collect()
    }

    /// The strings that it matches.
    fn set(&self) -> Result<StringSet, LeafError> {
        let mut all = StringSet::none();
        for ending in &self.endings {
            let length = as_u64(ending.len());
            let (min, max) = (u64::from(self.min) + length, self.max.map(|max| u64::from(max) + length));
            let of_any_length = language_of(&RegexNode::Sequence(self.of_any_length(ending)))?;
            all = all.union(&StringSet::regular(of_any_length).with_length(min, max)?)?;
        }
        Ok(all)
    }
}

/// The strings in which `pattern` finds a match.
pub(super) fn set(pattern: &str) -> Result<StringSet, LeafError> {
    let mut node = simplified(ecma::parse(pattern)?);
    let bounds = taken(&mut node);
    let mut set = StringSet::regular(language_of(&node)?);
    for (wanted, whole) in bounds {
        let whole = whole.set()?;
        set = if wanted { set.intersect(&whole)? } else { set.subtract(&whole)? };
    }
    Ok(set)
}

/// Takes the bounds on the whole string out of a pattern that begins at its start. With each comes `true` if
/// it is to hold, and `false` if it must not.
fn taken(node: &mut RegexNode) -> Vec<(bool, Whole)> {
    let mut found = Vec::new();
    let RegexNode::Sequence(parts) = node else { return found };
    let Some(RegexNode::Assert(Assertion::Start)) = parts.first() else { return found };
    let is_look = |part: &RegexNode| matches!(part, RegexNode::Ahead { .. });
    let looks = parts[1..].iter().take_while(|part| is_look(part)).count();
    let mut rest = parts.split_off(1 + looks);
    parts.retain(|part| {
        let RegexNode::Ahead { wanted, node, .. } = part else { return true };
        let RegexNode::Sequence(inside) = &**node else { return true };
        // At the start, `^` says nothing more.
        let inside = inside.strip_prefix(&[RegexNode::Assert(Assertion::Start)]).unwrap_or(inside);
        let whole = Whole::of(inside, LONG_LOOK);
        let is_kept = whole.is_none();
        found.extend(whole.map(|whole| (*wanted, whole)));
        is_kept
    });
    let whole = Whole::of(&rest, LONG_REST).filter(|_| looks > 0);
    if let (Some(_), Some(RegexNode::Repeat { min, max, .. })) = (&whole, rest.first_mut()) {
        (*min, *max) = (0, None);
    }
    found.extend(whole.map(|whole| (true, whole)));
    parts.extend(rest);
    found
}

// Counts of one class of characters are joined: `a{1,5}a{0,5}` is `a{1,10}`, and `(a{1,100}){1,100}` is
// `a{1,10000}`. Each copy of a counted part is a state, and overlapping counts have as many states as there
// are ways to split a text.

/// A count: the least number, and the greatest if there is one.
type RepeatCount = (u32, Option<u32>);

/// An expression of the same language with counts joined. Recurses as deep as groups are nested.
fn simplified(node: RegexNode) -> RegexNode {
    match node {
        RegexNode::Sequence(parts) => {
            let mut joined: Vec<RegexNode> = Vec::with_capacity(parts.len());
            for part in parts {
                match simplified(part) {
                    RegexNode::Sequence(inner) => inner.into_iter().for_each(|part| push(&mut joined, part)),
                    part => push(&mut joined, part),
                }
            }
            match joined.len() {
                1 => joined.remove(0),
                _ => RegexNode::Sequence(joined),
            }
        }
        RegexNode::Alternatives(parts) => {
            RegexNode::Alternatives(parts.into_iter().map(simplified).collect())
        }
        RegexNode::Repeat { node, min, max } => {
            let node = simplified(*node);
            match counted(&node).and_then(|(class, inner)| Some((class.clone(), times(inner, (min, max))?))) {
                Some((class, count)) => repeat(class, count),
                None => RegexNode::Repeat { node: Box::new(node), min, max },
            }
        }
        RegexNode::Ahead { wanted, node, at } => {
            RegexNode::Ahead { wanted, node: Box::new(simplified(*node)), at }
        }
        RegexNode::Behind { wanted, node, at } => {
            RegexNode::Behind { wanted, node: Box::new(simplified(*node)), at }
        }
        node @ (RegexNode::Class(_) | RegexNode::Assert(_)) => node,
    }
}

fn push(joined: &mut Vec<RegexNode>, part: RegexNode) {
    let both = joined.last().and_then(|last| {
        let ((one, before), (other, after)) = (counted(last)?, counted(&part)?);
        let is_counted = matches!(last, RegexNode::Repeat { .. }) || matches!(part, RegexNode::Repeat { .. });
        (one == other && is_counted).then_some((one.clone(), sum(before, after)?))
    });
    match both {
        Some((class, count)) => {
            joined.pop();
            joined.push(repeat(class, count));
        }
        None => joined.push(part),
    }
}

fn repeat(class: CharClass, (min, max): RepeatCount) -> RegexNode {
    RegexNode::Repeat { node: Box::new(RegexNode::Class(class)), min, max }
}

/// The class and the count of an expression that counts one class.
fn counted(node: &RegexNode) -> Option<(&CharClass, RepeatCount)> {
    match node {
        RegexNode::Class(class) => Some((class, (1, Some(1)))),
        RegexNode::Repeat { node, min, max } => match &**node {
            RegexNode::Class(class) => Some((class, (*min, *max))),
            _ => None,
        },
        _ => None,
    }
}

/// The sum of two counts, one after the other; `None` if it is too large.
fn sum(one: RepeatCount, other: RepeatCount) -> Option<RepeatCount> {
    let max = match (one.1, other.1) {
        (Some(one), Some(other)) => Some(one.checked_add(other)?),
        _ => None,
    };
    Some((one.0.checked_add(other.0)?, max))
}

/// The count of a repeated count; `None` if lengths in between would be left out.
fn times((min, max): RepeatCount, (from, to): RepeatCount) -> Option<RepeatCount> {
    // Between the lengths of n and of n + 1 repetitions there must be no gap. The widest is behind the fewest
    // repetitions.
    let is_once = to == Some(from);
    let has_no_gap = match max {
        Some(max) => u64::from(from) * u64::from(max - min) + 1 >= u64::from(min),
        None => min <= 1 || from > 0,
    };
    if !is_once && !has_no_gap {
        return None;
    }
    let most = match (max, to) {
        (Some(0), _) | (_, Some(0)) => Some(0),
        (Some(max), Some(to)) => Some(max.checked_mul(to)?),
        _ => None,
    };
    Some((min.checked_mul(from)?, most))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{ecma::parse, *};

    proptest! {
        /// The count of repeated counts agrees with a list of all lengths.
        #[test]
        fn counts_of_repeated_counts_agree_with_lists_of_lengths(
            min in 0..4_u32, more in 0..4_u32, from in 0..4_u32, again in 0..4_u32,
        ) {
            let (max, to) = (min + more, from + again);
            let lengths: std::collections::BTreeSet<u32> =
                (from..=to).flat_map(|times| times * min..=times * max).collect();
            match times((min, Some(max)), (from, Some(to))) {
                Some((least, most)) => {
                    prop_assert_eq!(lengths.into_iter().collect::<Vec<_>>(),
                        (least..=most.unwrap()).collect::<Vec<_>>());
                }
                None => {
                    let (first, last) = (*lengths.first().unwrap(), *lengths.last().unwrap());
                    prop_assert!(lengths.len() < (last - first + 1) as usize);
                }
            }
        }
    }

    #[test]
    fn counts_of_one_class_are_joined() {
        let simple = |pattern: &str| simplified(parse(pattern).unwrap());
        for (pattern, same) in [
            ("a{1,50}a{0,50}", "a{1,100}"),
            ("(a{1,100}){1,100}", "a{1,10000}"),
            ("((a{1,3}){1,3}){2}", "a{2,18}"),
            (".{2}.*", ".{2,}"),
            ("(?:[ab]{2,}){1,}", "[ab]{2,}"),
            ("(a+)*", "a*"),
            ("b(a{0,4}){0,}b", "ba*b"),
        ] {
            assert_eq!(simple(pattern), simple(same), "{pattern}");
        }
        // Lengths with gaps, and classes that differ, are not joined.
        assert!(times((3, Some(4)), (1, Some(2))).is_none() && times((2, Some(2)), (0, Some(3))).is_none());
        for (pattern, parts) in [("aa", 2), ("a{1,2}b{1,2}", 2), ("(ab{1,2}){1,3}c", 2), ("a{2}(?=b)a{3}", 3)]
        {
            let RegexNode::Sequence(found) = simple(pattern) else { panic!("{pattern}") };
            assert_eq!(found.len(), parts, "{pattern}");
        }
    }
}

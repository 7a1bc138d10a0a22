//! Patterns that are a regular language together with bounds on the length of the whole string:
//! `(?=.{1,253}\.?$)` at the start, and `.{8,4000}$` behind look-ahead. Such bounds are kept beside the
//! automaton; the product of both is not made.

use super::{
    ecma::{self, RegexNode},
    language_of,
    simplify::simplified,
};
use crate::{
    grammar::json_schema::{
        dfa::{Assertion, CharClass},
        leaf::LeafError,
        strings::StringSet,
    },
    ids::as_u64,
};

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
pub(in super::super) fn set(pattern: &str) -> Result<StringSet, LeafError> {
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

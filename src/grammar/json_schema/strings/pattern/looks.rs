//! Patterns that are a regular language together with bounds on the length of the whole string:
//! `(?=.{1,253}$)` at the start, and `.{8,4000}$` behind look-ahead. Such bounds are kept beside the
//! automaton; the product of both is not made.

use super::{
    ecma::{self, RegexNode},
    language_of,
    simplify::simplified,
};
use crate::grammar::json_schema::{
    dfa::{Assertion, CharClass, CharDfa},
    leaf::LeafError,
    strings::StringSet,
};

/// Least count for which a bound by look-ahead is kept beside the rest of its pattern.
const LONG_LOOK: u32 = 65;
/// Least count for which a bound on everything behind look-ahead is kept beside it.
const LONG_REST: u32 = 1_000;

/// A part of a pattern that asks for a number of characters of a class up to the end.
struct Whole {
    class: CharClass,
    min: u32,
    max: Option<u32>,
}

impl Whole {
    /// Reads such a part from the end of a sequence, if its count is at least `least`.
    fn of(parts: &[RegexNode], least: u32) -> Option<Self> {
        let [RegexNode::Repeat { node, min, max }, RegexNode::Assert(Assertion::End)] = parts else {
            return None;
        };
        let RegexNode::Class(class) = &**node else { return None };
        (max.unwrap_or(*min) >= least).then(|| Self { class: class.clone(), min: *min, max: *max })
    }

    /// The parts of a pattern that say the same without the count.
    fn of_any_length(&self) -> Vec<RegexNode> {
        let class = Box::new(RegexNode::Class(self.class.clone()));
        vec![RegexNode::Repeat { node: class, min: 0, max: None }, RegexNode::Assert(Assertion::End)]
    }

    /// The strings that it matches.
    fn set(&self) -> Result<StringSet, LeafError> {
        let any = StringSet::regular(CharDfa::repeated(&self.class, 0, None));
        any.with_length(self.min.into(), self.max.map(u64::from))
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
    let rest = parts.split_off(1 + looks);
    parts.retain(|part| {
        let RegexNode::Ahead { wanted, node, .. } = part else { return true };
        let RegexNode::Sequence(inside) = &**node else { return true };
        let whole = Whole::of(inside, LONG_LOOK);
        let is_kept = whole.is_none();
        found.extend(whole.map(|whole| (*wanted, whole)));
        is_kept
    });
    match Whole::of(&rest, LONG_REST).filter(|_| looks > 0) {
        Some(whole) => {
            parts.extend(whole.of_any_length());
            found.push((true, whole));
        }
        None => parts.extend(rest),
    }
    found
}

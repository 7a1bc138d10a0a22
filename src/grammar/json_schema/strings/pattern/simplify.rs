//! Joins counts of one class of characters: `a{1,5}a{0,5}` is `a{1,10}`, and `(a{1,100}){1,100}` is
//! `a{1,10000}`. Each copy of a counted part is a state, and overlapping counts have as many states as there
//! are ways to split a text.

use super::ecma::RegexNode;
use crate::grammar::json_schema::dfa::CharClass;

/// A count: the least number, and the greatest if there is one.
type RepeatCount = (u32, Option<u32>);

/// An expression of the same language with counts joined. Recurses as deep as groups are nested.
pub(super) fn simplified(node: RegexNode) -> RegexNode {
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

    use super::{super::ecma::parse, *};

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

//! States that send most characters to one state and a few elsewhere: the edges of the common case, patched
//! for the few.

use std::ops::Range;

use crate::grammar::automaton::Edge;

/// A range of code points, first and last, and the state that it leads to.
pub(in super::super) type RangeTo = (u32, u32, u32);

/// The target of all characters but a few; `None` if they have none.
pub(super) type Usual = Option<u32>;

/// The first code point beyond ASCII.
const ASCII_END: u32 = 0x80;

/// Limit on the characters that lead elsewhere; with more of them, ranges are followed instead.
const MOST_OTHERS: usize = 24;

/// The common target, and the ASCII characters that lead elsewhere, ascending. `None` if the state is not of
/// this kind.
pub(super) fn few_others(ways: &[RangeTo]) -> Option<(Usual, Vec<(u32, Usual)>)> {
    // All characters beyond ASCII must have one target.
    let usual = match ways.iter().find(|way| way.1 >= 0x80) {
        None => None,
        Some(&(first, last, to)) => {
            let after = ways.iter().filter(|way| way.0 > last);
            let rest: Vec<&RangeTo> = after.collect();
            let whole = match rest[..] {
                [] => last == 0x10_ffff,
                [&(0xe000, 0x10_ffff, other)] => last == 0xd7ff && other == to,
                _ => false,
            };
            (first <= 0x80 && whole).then_some(())?;
            Some(to)
        }
    };
    let mut others = Vec::new();
    let mut add = |codes: Range<u32>, to: Usual| {
        if to == usual {
            return Some(());
        }
        for code in codes {
            (others.len() < MOST_OTHERS).then_some(())?;
            others.push((code, to));
        }
        Some(())
    };
    // The edges of ASCII characters, and the gaps between them.
    let mut next = 0;
    for &(first, last, to) in ways.iter().take_while(|way| way.0 < ASCII_END) {
        add(next..first, None)?;
        next = ASCII_END.min(last + 1);
        add(first..next, Some(to))?;
    }
    add(next..ASCII_END, None)?;
    Some((usual, others))
}

/// The bytes that write a hex digit, ascending.
pub(super) fn hex_bytes(digit: u32) -> impl Iterator<Item = u8> {
    let digit = u8::try_from(digit).unwrap_or(0);
    let (one, other) =
        if digit < 10 { (b'0' + digit, None) } else { (b'A' + digit - 10, Some(b'a' + digit - 10)) };
    std::iter::once(one).chain(other)
}

/// Replaces the targets of some bytes in a list of edges, which ascend.
pub(super) fn with(edges: &[Edge], changed: &mut [(u8, Usual)]) -> Vec<Edge> {
    changed.sort_unstable();
    let mut made: Vec<Edge> = Vec::with_capacity(edges.len() + 2 * changed.len());
    let mut push = |first: u8, last: u8, to: u32| match made.last_mut() {
        Some(before) if before.to == to && before.last.checked_add(1) == Some(first) => before.last = last,
        _ => made.push(Edge { first, last, to }),
    };
    let mut left = changed.iter().peekable();
    for edge in edges {
        // First the changed bytes before the edge, then those in it with what the edge has between them.
        let mut first = Some(edge.first);
        while let Some(&&(byte, to)) = left.peek().filter(|(byte, _)| *byte <= edge.last) {
            left.next();
            if let Some(from) = first.filter(|from| *from < byte) {
                push(from, byte - 1, edge.to);
            }
            if let Some(to) = to {
                push(byte, byte, to);
            }
            if byte >= edge.first {
                first = byte.checked_add(1);
            }
        }
        if let Some(from) = first.filter(|from| *from <= edge.last) {
            push(from, edge.last, edge.to);
        }
    }
    for &(byte, to) in left {
        if let Some(to) = to {
            push(byte, byte, to);
        }
    }
    made
}

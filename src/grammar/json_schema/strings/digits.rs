//! The digits in which characters are written in JSON strings: bits of code points, and hex.

use crate::grammar::automaton::Edge;

/// A digit: how many values it has and which bytes write them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Digit {
    /// Value `v < radix` is the byte `base + v`.
    Byte { base: u8, radix: u32 },
    /// Value `v < radix` is the hex digit of `base + v`, in either case.
    Hex { base: u32, radix: u32 },
}

impl Digit {
    /// How many values it has.
    pub(super) fn radix(self) -> u32 {
        match self {
            Self::Byte { radix, .. } | Self::Hex { radix, .. } => radix,
        }
    }

    /// Adds the bytes that write a value, as edges to a state.
    pub(super) fn edges(self, value: u32, to: u32, edges: &mut Vec<Edge>) {
        let mut push = |code: u32| {
            let byte = u8::try_from(code).unwrap_or(u8::MAX);
            match edges.last_mut() {
                Some(last) if last.to == to && last.last.checked_add(1) == Some(byte) => last.last = byte,
                _ => edges.push(Edge { first: byte, last: byte, to }),
            }
        };
        match self {
            Self::Byte { base, .. } => push(u32::from(base) + value),
            Self::Hex { base, .. } => {
                let digit = base + value;
                if digit < 10 {
                    push(u32::from(b'0') + digit);
                } else {
                    push(u32::from(b'A') + digit - 10);
                    push(u32::from(b'a') + digit - 10);
                }
            }
        }
    }
}

const fn byte(base: u8, radix: u32) -> Digit {
    Digit::Byte { base, radix }
}

const fn hex(base: u32, radix: u32) -> Digit {
    Digit::Hex { base, radix }
}

const REST: Digit = byte(0x80, 64);
/// UTF-8 of one byte.
pub(super) const ASCII: &[Digit] = &[byte(0, 128)];
/// Of two.
pub(super) const TWO_BYTES: &[Digit] = &[byte(0xc0, 32), REST];
/// Of three.
pub(super) const THREE_BYTES: &[Digit] = &[byte(0xe0, 16), REST, REST];
/// Of four.
pub(super) const FOUR_BYTES: &[Digit] = &[byte(0xf0, 8), REST, REST, REST];
const ANY_HEX: Digit = hex(0, 16);
/// After `\u`: four hex digits.
pub(super) const UNIT: &[Digit] = &[ANY_HEX, ANY_HEX, ANY_HEX, ANY_HEX];
/// A surrogate pair after its `\uD`: the bits of the code point past `0x10000`.
pub(super) const PAIR: &[Digit] =
    &[hex(8, 4), ANY_HEX, ANY_HEX, byte(b'\\', 1), byte(b'u', 1), hex(0xd, 1), hex(0xc, 4), ANY_HEX, ANY_HEX];

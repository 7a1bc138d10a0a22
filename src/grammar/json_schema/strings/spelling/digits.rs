//! The digits by which characters are written in JSON strings: groups of bits of a code point, and hex
//! digits.

use crate::grammar::automaton::Edge;

/// A digit: the number of its values, and the bytes that write each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Digit {
    /// A byte: value `v < radix` is the byte `base + v`.
    Byte { base: u8, radix: u32 },
    /// A hex digit: value `v < radix` is the digit of `base + v`, in either case.
    Hex { base: u32, radix: u32 },
}

impl Digit {
    /// The number of its values.
    pub(super) fn radix(self) -> u32 {
        match self {
            Self::Byte { radix, .. } | Self::Hex { radix, .. } => radix,
        }
    }

    /// Adds edges for the bytes that write a value to a state's edges.
    pub(super) fn edges(self, value: u32, to: u32, edges: &mut Vec<Edge>) {
        let mut push = |code: u32| {
            // A value below the radix is written by one byte.
            let Ok(byte) = u8::try_from(code) else { return };
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
/// Characters of one byte of UTF-8.
pub(super) const ASCII: &[Digit] = &[byte(0, 128)];
/// Characters of two bytes.
pub(super) const TWO_BYTES: &[Digit] = &[byte(0xc0, 32), REST];
/// Characters of three bytes.
pub(super) const THREE_BYTES: &[Digit] = &[byte(0xe0, 16), REST, REST];
/// Characters of four bytes.
pub(super) const FOUR_BYTES: &[Digit] = &[byte(0xf0, 8), REST, REST, REST];
const ANY_HEX: Digit = hex(0, 16);
/// The four hex digits behind `\u`.
pub(super) const UNIT: &[Digit] = &[ANY_HEX, ANY_HEX, ANY_HEX, ANY_HEX];
/// The rest of a surrogate pair behind its `\uD`: the bits of the code point minus `0x10000`.
pub(super) const PAIR: &[Digit] =
    &[hex(8, 4), ANY_HEX, ANY_HEX, byte(b'\\', 1), byte(b'u', 1), hex(0xd, 1), hex(0xc, 4), ANY_HEX, ANY_HEX];

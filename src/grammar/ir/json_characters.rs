//! Finds for each state of an automaton of strings whether it is between characters or inside of one.
//!
//! The bytes of JSON determine where characters end, whatever the automaton: UTF-8 by the first byte, escapes
//! by the letter, surrogates by the first two digits. So one pass of that lexer over the automaton finds it
//! out. Strings without quotes and escapes, such as arguments between tags, stand between two `>`.

use super::automaton::Automaton;
use crate::ids::as_index;

/// A place in a JSON string. Bytes that do not end a character lead to greater places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CharacterPlace(u8);

/// The place at which this many bytes end the current character. At most eight: the last two digits of a
/// first surrogate, and the second surrogate.
const fn left(bytes: u8) -> CharacterPlace {
    CharacterPlace(13 - bytes)
}

impl CharacterPlace {
    /// The place in front of the opening quote.
    pub(super) const START: Self = Self(0);
    /// The place where a character has just ended, or none has begun.
    pub(super) const BETWEEN: Self = Self(1);
    /// The place behind a backslash that begins a character.
    const ESCAPE: Self = Self(2);
    /// The place behind `\u` that begins a character.
    const UNIT: Self = Self(3);
    /// The place behind `\ud`, which begins a surrogate.
    const MAYBE_SURROGATE: Self = Self(4);
    /// The place behind the closing quote.
    pub(super) const END: Self = Self(13);

    /// The place after a byte; `None` if JSON has no such byte there.
    fn after(self, byte: u8) -> Option<Self> {
        Some(match (self, byte) {
            (Self::START, b'"') => Self::BETWEEN,
            (Self::BETWEEN, b'"') => Self::END,
            (Self::BETWEEN, b'\\') => Self::ESCAPE,
            (Self::BETWEEN, 0x20..=0x7f) => Self::BETWEEN,
            (Self::BETWEEN, 0xc2..=0xdf) => left(1),
            (Self::BETWEEN, 0xe0..=0xef) => left(2),
            (Self::BETWEEN, 0xf0..=0xf4) => left(3),
            (Self::ESCAPE, b'u') => Self::UNIT,
            (Self::ESCAPE, _) => Self::BETWEEN,
            (Self::UNIT, b'd' | b'D') => Self::MAYBE_SURROGATE,
            (Self::UNIT, _) => left(3),
            (Self::MAYBE_SURROGATE, b'8' | b'9' | b'a' | b'b' | b'A' | b'B') => left(8),
            (Self::MAYBE_SURROGATE, b'0'..=b'7') => left(2),
            (Self::START | Self::BETWEEN | Self::MAYBE_SURROGATE | Self::END, _) => return None,
            (inside, _) if inside == left(1) => Self::BETWEEN,
            (Self(inside), _) => Self(inside + 1),
        })
    }

    /// The place after a byte of a string between two `>`, the last of which leads to an end.
    fn after_plain(self, byte: u8, is_end: bool) -> Option<Self> {
        match (self, byte) {
            (Self::START, b'>') => Some(Self::BETWEEN),
            (Self::START, _) => None,
            (Self::BETWEEN, b'>') if is_end => Some(Self::END),
            (Self::BETWEEN, 0..=0x7f) => Some(Self::BETWEEN),
            _ => self.after(byte),
        }
    }
}

/// The place of each state. `None` if some text is not such a string, or if a state has two places. Linear in
/// the bytes of all edges.
pub(super) fn places(automaton: &Automaton) -> Option<Box<[CharacterPlace]>> {
    let states = automaton.states();
    let is_plain = matches!(&states[0].edges[..], [edge] if (edge.first, edge.last) == (b'>', b'>'));
    let mut places: Vec<Option<CharacterPlace>> = vec![None; states.len()];
    places[0] = Some(CharacterPlace::START);
    // States are numbered breadth-first, so each has its place before its turn.
    for (at, state) in states.iter().enumerate() {
        let place = places[at]?;
        if state.accepts != (place == CharacterPlace::END) {
            return None;
        }
        for edge in &state.edges {
            for byte in edge.first..=edge.last {
                let after = match is_plain {
                    true => place.after_plain(byte, states[as_index(edge.to)].accepts)?,
                    false => place.after(byte)?,
                };
                if *places[as_index(edge.to)].get_or_insert(after) != after {
                    return None;
                }
            }
        }
    }
    places.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of characters that end in each prefix of a text.
    fn characters(text: &str) -> Vec<usize> {
        let mut place = CharacterPlace::START;
        let mut count = 0;
        let mut step = |byte: u8| {
            let begun = place != CharacterPlace::START;
            place = place.after(byte).unwrap();
            count += usize::from(begun && place == CharacterPlace::BETWEEN);
            count
        };
        text.bytes().map(&mut step).collect()
    }

    #[test]
    fn a_character_ends_with_its_last_byte() {
        assert_eq!(characters("\"aé\""), [0, 1, 1, 2, 2]);
        assert_eq!(characters(r#""\n\u00e9""#), [0, 0, 1, 1, 1, 1, 1, 1, 2, 2]);
        assert_eq!(characters(r#""\ud7ff😀""#), [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2]);
        let pair = characters(r#""\uD83D\uDE00\\""#);
        assert_eq!(pair[..12], [0; 12]);
        assert_eq!(pair[12..], [1, 1, 2, 2]);
        assert_eq!(CharacterPlace::BETWEEN.after(b'\n'), None);
    }
}

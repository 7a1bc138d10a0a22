//! Escapes in strings of JSON, byte by byte.

/// Bytes of the longest escape: a surrogate pair.
const LONGEST: usize = 12;
/// Bytes of a `\u` escape.
const NUMBERED: usize = 6;

/// An unfinished escape, from its backslash on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct Escape {
    bytes: [u8; LONGEST],
    length: u8,
}

impl Escape {
    pub(super) fn is_open(self) -> bool {
        self.length > 0
    }

    /// The bytes so far.
    pub(super) fn begun(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or(&self.bytes)
    }

    /// Can this byte lead only to a character that may stand for itself?
    pub(super) fn is_in_vain(self, byte: u8) -> bool {
        match self.length {
            1 => byte == b'/',
            2 | 3 => byte != b'0',
            4 => !matches!(byte, b'0' | b'1'),
            _ => false,
        }
    }

    /// Starts an escape at its backslash.
    pub(super) fn open(&mut self) {
        self.bytes = [0; LONGEST];
        self.bytes[0] = b'\\';
        self.length = 1;
    }

    /// Adds a byte; returns the character if the escape ends with it. An invalid escape stands for the
    /// replacement character.
    pub(super) fn push(&mut self, byte: u8) -> Option<char> {
        let length = usize::from(self.length);
        if let Some(place) = self.bytes.get_mut(length) {
            *place = byte;
        }
        self.length += 1;
        let character = match (length + 1, byte) {
            (2, b'u') => return None,
            (2, b'b') => '\u{8}',
            (2, b'f') => '\u{c}',
            (2, b'n') => '\n',
            (2, b'r') => '\r',
            (2, b't') => '\t',
            (2, other) => char::from(other),
            // `None` for the first half of a character.
            (NUMBERED, _) => char::from_u32(self.number(2))?,
            (LONGEST, _) => {
                let low = self.number(8).wrapping_sub(0xDC00) & 0x3FF;
                let high = self.number(2).wrapping_sub(0xD800) & 0x3FF;
                char::from_u32(0x1_0000 + (high << 10) + low).unwrap_or(char::REPLACEMENT_CHARACTER)
            }
            _ => return None,
        };
        self.length = 0;
        self.bytes = [0; LONGEST];
        Some(character)
    }

    /// The value of four hexadecimal digits.
    fn number(self, at: usize) -> u32 {
        let digit = |byte: &u8| char::from(*byte).to_digit(16).unwrap_or(0);
        self.bytes[at..at + 4].iter().fold(0, |number, byte| number << 4 | digit(byte))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_read_as_serde_json_does() {
        for text in
            ["\\n", "\\t", "\\/", "\\\"", "\\\\", "\\b\\f\\r", "\\u0041", "\\uD83D\\ude00", "\\u00e9x"]
        {
            let (mut escape, mut found) = (Escape::default(), String::new());
            for byte in text.bytes() {
                if escape.is_open() {
                    found.extend(escape.push(byte));
                } else if byte == b'\\' {
                    escape.open();
                } else {
                    found.push(char::from(byte));
                }
            }
            assert_eq!(Ok(found), serde_json::from_str(&format!("\"{text}\"")).map_err(|_| text));
        }
    }
}

//! Strings and numbers of JSON, as items are compared: escapes byte by byte, and canonical forms of numbers
//! and of their beginnings.

use num_bigint::BigInt;

use crate::ids::saturating_i64;

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

/// Does this byte end the text of a number? The end of the text does too.
pub(super) fn ends_number(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b',' | b']' | b'}')
}

/// A text that is a number, or the beginning of one, in parts.
struct Parts<'t> {
    negative: bool,
    whole: &'t [u8],
    fraction: Option<&'t [u8]>,
    /// The sign, whether it is negative, and the digits.
    exponent: Option<(bool, bool, &'t [u8])>,
}

impl<'t> Parts<'t> {
    /// Splits a number at its point and its exponent.
    fn of(text: &'t [u8]) -> Self {
        let (mantissa, exponent) = match text.iter().position(|byte| matches!(byte, b'e' | b'E')) {
            Some(at) => (&text[..at], Some(&text[at + 1..])),
            None => (text, None),
        };
        let unsigned = mantissa.strip_prefix(b"-").unwrap_or(mantissa);
        let (whole, fraction) = match unsigned.iter().position(|&byte| byte == b'.') {
            Some(at) => (&unsigned[..at], Some(&unsigned[at + 1..])),
            None => (unsigned, None),
        };
        let exponent = exponent.map(|text| {
            let digits = text.strip_prefix(b"-").or(text.strip_prefix(b"+")).unwrap_or(text);
            (text.starts_with(b"-"), digits.len() < text.len(), digits)
        });
        Self { negative: text.starts_with(b"-"), whole, fraction, exponent }
    }

    /// The digits of the significand, and how many of them are leading zeros.
    fn digits(&self) -> (Vec<u8>, usize) {
        let digits = [self.whole, self.fraction.unwrap_or_default()].concat();
        let zeros = digits.iter().take_while(|&&digit| digit == b'0').count();
        (digits, zeros)
    }
}

/// Returns a canonical form: equal for texts of the same number, distinct otherwise; `None` if the text is no
/// complete JSON number. Linear, except for exponents of more than 17 digits.
pub(super) fn number_value(text: &[u8]) -> Option<Vec<u8>> {
    let parts = Parts::of(text);
    let whole = |digits: &[u8]| !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let is_number = whole(parts.whole)
        && parts.fraction.is_none_or(whole)
        && parts.exponent.is_none_or(|(.., digits)| whole(digits));
    if !is_number {
        return None;
    }
    let (digits, zeros) = parts.digits();
    let kept = digits.iter().rposition(|&digit| digit != b'0').map_or(0, |last| last + 1);
    if zeros >= kept {
        return Some(b"0".to_vec());
    }
    // As if the point stood before the first digit that is kept.
    let point = saturating_i64(parts.whole.len()) - saturating_i64(zeros);
    let (minus, _, power) = parts.exponent.unwrap_or_default();
    let power = trimmed(power);
    let sign = if minus { -1 } else { 1 };
    let exponent = match std::str::from_utf8(power).unwrap_or_default() {
        "" => point.to_string(),
        short if short.len() < 18 => (point + sign * short.parse::<i64>().unwrap_or(0)).to_string(),
        long => {
            let power = BigInt::parse_bytes(long.as_bytes(), 10).unwrap_or_default();
            (BigInt::from(point) + BigInt::from(sign) * power).to_string()
        }
    };
    let mut value = if parts.negative { b"-".to_vec() } else { Vec::new() };
    value.extend_from_slice(&digits[zeros..kept]);
    value.push(b'e');
    value.extend_from_slice(exponent.as_bytes());
    Some(value)
}

/// Writes a [`number_value`] in the usual form of an integer, if it is one of at most 20 digits.
pub(super) fn plain_number(value: &[u8]) -> Option<Vec<u8>> {
    const MOST: usize = 20;
    let Some(at) = value.iter().position(|&byte| byte == b'e') else { return Some(value.to_vec()) };
    let sign = usize::from(value.starts_with(b"-"));
    let length: usize = std::str::from_utf8(&value[at + 1..]).ok()?.parse().ok()?;
    let zeros = (length <= MOST).then_some(length)?.checked_sub(at - sign)?;
    Some([&value[..at], &b"00000000000000000000"[..zeros]].concat())
}

/// Returns equal bytes for beginnings that go on to equal values, if at most `most` digits matter: further
/// zeros change nothing, nor does the exponent of zero.
pub(super) fn number_place(text: &[u8], most: usize) -> Vec<u8> {
    let parts = Parts::of(text);
    let (digits, zeros) = parts.digits();
    let is_zero = zeros == digits.len();
    let mut place = if parts.negative { b"-".to_vec() } else { Vec::new() };
    place.extend_from_slice(parts.whole);
    if let Some(fraction) = parts.fraction {
        let kept = fraction.iter().rposition(|&digit| digit != b'0').map_or(0, |last| last + 1);
        place.push(b'.');
        place.extend_from_slice(&fraction[..fraction.len().min(kept + most)]);
    }
    if let Some((minus, signed, power)) = parts.exponent {
        place.push(b'e');
        place.extend((signed && !minus).then_some(b'+'));
        place.extend(minus.then_some(b'-'));
        place.extend((!power.is_empty()).then_some(b'0'));
        if !is_zero {
            place.extend_from_slice(trimmed(power));
        }
    }
    place
}

/// Removes leading zeros.
fn trimmed(digits: &[u8]) -> &[u8] {
    &digits[digits.iter().take_while(|&&digit| digit == b'0').count()..]
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

#[cfg(test)]
mod numerals_tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_are_equal_however_they_are_written() {
        let equal: [&[&str]; 5] = [
            &["1", "1.0", "1e0", "1E+00", "10e-1", "0.1e1", "0.0010e3"],
            &["0", "-0", "0.00", "0e99", "-0.0E-7"],
            &["-120", "-1.2e2", "-1.20e+2", "-12E1"],
            &["5e99999999999999999999", "0.5e100000000000000000000", "50e99999999999999999998"],
            &["12.5", "1.25e1", "125e-1", "0012.5".trim_start_matches('0')],
        ];
        for (at, texts) in equal.iter().enumerate() {
            for text in *texts {
                let found = number_value(text.as_bytes());
                assert_eq!(found, number_value(texts[0].as_bytes()), "{text}");
                assert!(equal[..at].iter().all(|other| number_value(other[0].as_bytes()) != found), "{text}");
            }
        }
        for text in ["", "-", "1.", "1e", "1e+", "-.5", "t"] {
            assert_eq!(number_value(text.as_bytes()), None, "{text}");
        }
        for (text, wanted) in
            [("120.0", Some("120")), ("-7e1", Some("-70")), ("0.0", Some("0")), ("1.5", None), ("1e30", None)]
        {
            let found = number_value(text.as_bytes()).and_then(|value| plain_number(&value));
            assert_eq!(found, wanted.map(|wanted| wanted.as_bytes().to_vec()), "{text}");
        }
    }

    proptest! {
        /// Beginnings of one place go on to values that differ in the same way.
        #[test]
        fn beginnings_of_one_place_have_equal_continuations(
            one in "-?[01](\\.[01]{1,4})?(e[-+]?[01]{0,3})?",
            zeros in 1..4_usize,
            rest in "[01]{0,2}",
        ) {
            let other = match one.contains('e') {
                true => one.clone(),
                false if one.contains('.') => one.clone() + &"0".repeat(zeros),
                false => one.clone() + "." + &"0".repeat(zeros),
            };
            let place_of = |text: &str| number_place(text.as_bytes(), 8);
            if place_of(&one) == place_of(&other) {
                let go_on = |text: &str| number_value((text.to_owned() + &rest).as_bytes());
                prop_assert_eq!(go_on(&one), go_on(&other));
            }
        }
    }
}

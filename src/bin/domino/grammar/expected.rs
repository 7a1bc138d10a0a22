//! Descriptions of what could follow a place in a text: characters and classes of them, most telling first.

use std::ops::RangeInclusive;

use domino::{Constraint, StepError};

use crate::terminal::describe;

/// Limit on the characters and classes named in a message.
const MOST: usize = 12;
/// Limit on the places of the grammar that are searched for them; a class takes up to a few dozen.
const PLACES: usize = 2048;
/// Limit on the exceptions that are named where nearly everything can follow.
const MOST_EXCEPTIONS: usize = 6;
/// Limit on the characters that such exceptions have together.
const FEW: u32 = 1024;

/// What stands for the end of a text among what could follow.
pub(crate) const END: &str = "the end of the text";

/// The characters and classes that could follow a text.
#[derive(Debug, Default)]
pub(crate) struct Expected {
    /// Characters and classes such as `'a'-'z'`, at most [`MOST`].
    pub(crate) named: Vec<String>,
    /// Number of those that are not named.
    pub(crate) more: usize,
}

impl Expected {
    /// Finds what could follow the text of `state`. If a budget is used up, the names say so: the text is
    /// wrong all the same, and that must be told.
    pub(crate) fn after(state: &mut Constraint) -> Self {
        let mut named: Vec<String> = state.is_complete().then(|| END.to_owned()).into_iter().collect();
        match characters(state) {
            Ok(characters) => named.extend(characters),
            Err(_) => named.push("(not known: a budget is used up)".to_owned()),
        }
        let more = named.len().saturating_sub(MOST);
        named.truncate(MOST);
        Self { named, more }
    }

    /// Joins the names in one line.
    pub(crate) fn line(&self) -> String {
        match (self.named.is_empty(), self.more) {
            (true, _) => "nothing".to_owned(),
            (false, 0) => self.named.join(", "),
            (false, more) => format!("{}, and {more} more", self.named.join(", ")),
        }
    }
}

fn characters(state: &mut Constraint) -> Result<Vec<String>, StepError> {
    let next = state.next_chars(PLACES)?;
    let mut named = name(&next.ranges);
    if !next.complete {
        named.push("more characters that are not ASCII".to_owned());
        return Ok(named);
    }
    // A grammar may be about bytes: add those that could follow and begin no character that could.
    let mut bytes = state.next_bytes()?;
    bytes.retain(|&byte| !begins_one(byte, &next.ranges));
    named.extend(describe::byte_ranges(&bytes));
    Ok(named)
}

/// True if `byte` begins the encoding of a character in `ranges`.
fn begins_one(byte: u8, ranges: &[RangeInclusive<char>]) -> bool {
    let lead = |character: char| character.encode_utf8(&mut [0; 4]).as_bytes()[0];
    // First bytes ascend with characters; those from 0x80 to 0xC1 begin none.
    !(0x80..0xC2).contains(&byte)
        && ranges.iter().any(|range| (lead(*range.start())..=lead(*range.end())).contains(&byte))
}

/// The rank of a name by how telling it is, the most telling first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// A single visible character of ASCII.
    One,
    /// A range of digits or letters of ASCII.
    Class,
    /// A visible character outside ASCII.
    Other,
    /// A range of other characters.
    Range,
    /// White space and characters without a picture.
    Blank,
}

/// Names ascending ranges.
fn name(ranges: &[RangeInclusive<char>]) -> Vec<String> {
    let others = complement(ranges);
    let except = ranked(&others);
    if except.len() <= MOST_EXCEPTIONS && others.iter().map(size).sum::<u32>() <= FEW {
        return vec![match except.split_last() {
            None => "any character".to_owned(),
            Some((only, [])) => format!("any character except {only}"),
            Some((last, others)) => format!("any character except {} and {last}", others.join(", ")),
        }];
    }
    ranked(ranges)
}

fn ranked(ranges: &[RangeInclusive<char>]) -> Vec<String> {
    let mut names: Vec<(Rank, String)> =
        ranges.iter().flat_map(split).flat_map(|range| show(&range)).collect();
    // The sort is stable: names of one rank stay in their order.
    names.sort_by_key(|(rank, _)| *rank);
    names.into_iter().map(|(_, name)| name).collect()
}

/// The ranges of all characters that are in none of these ascending ranges.
fn complement(ranges: &[RangeInclusive<char>]) -> Vec<RangeInclusive<char>> {
    let mut left = Vec::new();
    let mut from = Some('\0');
    for range in ranges {
        if let (Some(from), Some(to)) = (from, before(*range.start()))
            && from <= to
        {
            left.push(from..=to);
        }
        from = after(*range.end());
    }
    left.extend(from.map(|from| from..=char::MAX));
    left
}

/// The character before this one, surrogates left out.
fn before(character: char) -> Option<char> {
    ('\0'..=character).rev().nth(1)
}

fn after(character: char) -> Option<char> {
    (character..=char::MAX).nth(1)
}

fn size(range: &RangeInclusive<char>) -> u32 {
    u32::from(*range.end()) - u32::from(*range.start()) + 1
}

/// Cuts a range into parts that mean something: they end at the borders between kinds of ASCII characters.
fn split(range: &RangeInclusive<char>) -> Vec<RangeInclusive<char>> {
    const BORDERS: [RangeInclusive<char>; 10] = [
        '\0'..='\u{1F}',
        ' '..=' ',
        '!'..='/',
        '0'..='9',
        ':'..='@',
        'A'..='Z',
        '['..='`',
        'a'..='z',
        '{'..='~',
        '\u{7F}'..='\u{7F}',
    ];
    let kinds = BORDERS.into_iter().chain(['\u{80}'..=char::MAX]);
    let part = |kind: RangeInclusive<char>| *range.start().max(kind.start())..=*range.end().min(kind.end());
    kinds.map(part).filter(|part| !part.is_empty()).collect()
}

/// Names a part: two names for two characters, otherwise one.
fn show(part: &RangeInclusive<char>) -> Vec<(Rank, String)> {
    let (start, end) = (*part.start(), *part.end());
    let one = |character: char| {
        let rank = match describe::is_visible(character) {
            true if character.is_ascii() => Rank::One,
            true => Rank::Other,
            false => Rank::Blank,
        };
        (rank, describe::character(character))
    };
    let class = if start.is_ascii_alphanumeric() { Rank::Class } else { Rank::Range };
    let rank = if start.is_ascii_control() { Rank::Blank } else { class };
    match size(part) {
        1 => vec![one(start)],
        2 => vec![one(start), one(end)],
        _ if (start, end) == ('\u{80}', char::MAX) => {
            vec![(rank, "any character that is not ASCII".to_owned())]
        }
        _ => vec![(rank, format!("{}-{}", describe::character(start), describe::character(end)))],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(ranges: &[RangeInclusive<char>]) -> String {
        name(ranges).join(" ")
    }

    #[test]
    fn the_most_telling_characters_come_first() {
        let json =
            ['\t'..='\n', '\r'..='\r', ' '..=' ', '"'..='"', '-'..='-', '0'..='9', '['..='[', 'f'..='f'];
        assert_eq!(of(&json), "'\"' '-' '[' 'f' '0'-'9' '\\t' '\\n' '\\r' ' '");
        assert_eq!(
            of(&['0'..='9', 'A'..='Z', '_'..='_', 'a'..='z', 'é'..='é']),
            "'_' '0'-'9' 'A'-'Z' 'a'-'z' 'é'"
        );
        assert_eq!(of(&['本'..='本']), "'本'");
        assert_eq!(of(&['α'..='ω', '\u{301}'..='\u{301}']), "'α'-'ω' U+0301");
        assert_eq!(of(&['a'..='b', '\u{80}'..=char::MAX]), "'a' 'b' any character that is not ASCII");
        assert_eq!(of(&['+'..=':']), "':' '0'-'9' '+'-'/'");
    }

    #[test]
    fn nearly_all_characters_are_described_by_their_exceptions() {
        assert_eq!(of(&['\0'..=char::MAX]), "any character");
        assert_eq!(of(&['\0'..='!', '#'..='[', ']'..=char::MAX]), "any character except '\"' and '\\'");
        assert_eq!(of(&[' '..=char::MAX]), "any character except U+0000-U+001F");
    }

    #[test]
    fn first_bytes_are_those_of_the_characters_in_the_ranges() {
        let ranges = ['a'..='a', 'é'..='日'];
        let begin: Vec<u8> = (0..=u8::MAX).filter(|&byte| begins_one(byte, &ranges)).collect();
        let mut expected: Vec<u8> = vec![b'a'];
        expected.extend(0xC3..=0xE6);
        assert_eq!(begin, expected);
        let begin: Vec<u8> = (0..=u8::MAX).filter(|&byte| begins_one(byte, &['a'..='é'])).collect();
        assert_eq!(begin, (b'a'..0x80).chain(0xC2..=0xC3).collect::<Vec<u8>>());
    }

    proptest! {
        #[test]
        fn a_complement_has_the_characters_outside_of_the_ranges(
            mut borders in proptest::collection::vec(any::<char>(), 0..6),
        ) {
            borders.sort_unstable();
            borders.dedup();
            let ranges: Vec<_> = borders.chunks_exact(2).map(|pair| pair[0]..=pair[1]).collect();
            let others = complement(&ranges);
            for character in borders.iter().flat_map(|&c| [before(c), Some(c), after(c)]).flatten() {
                let [here, there] =
                    [&ranges, &others].map(|ranges| ranges.iter().any(|range| range.contains(&character)));
                prop_assert_ne!(here, there, "{:?}", character);
            }
        }
    }
}

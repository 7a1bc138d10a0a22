//! The named classes of ECMA-262.

use regex_syntax::hir::{Class, HirKind};

use crate::grammar::json_schema::dfa::CharClass;

/// The class `\w`, which `\b` is defined by too.
pub(super) fn word() -> CharClass {
    CharClass::new([('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')])
}

/// The characters that `.` does not match.
pub(super) fn line_terminators() -> CharClass {
    CharClass::new([('\n', '\n'), ('\r', '\r'), ('\u{2028}', '\u{2029}')])
}

/// The class `\s`: white space and line terminators.
fn space() -> CharClass {
    CharClass::new([
        ('\t', '\r'),
        (' ', ' '),
        ('\u{a0}', '\u{a0}'),
        ('\u{1680}', '\u{1680}'),
        ('\u{2000}', '\u{200a}'),
        ('\u{2028}', '\u{2029}'),
        ('\u{202f}', '\u{202f}'),
        ('\u{205f}', '\u{205f}'),
        ('\u{3000}', '\u{3000}'),
        ('\u{feff}', '\u{feff}'),
    ])
}

/// The class that a backslash and this letter stand for.
pub(super) fn named(letter: char) -> Option<CharClass> {
    let class = match letter.to_ascii_lowercase() {
        'd' => CharClass::new([('0', '9')]),
        'w' => word(),
        's' => space(),
        _ => return None,
    };
    Some(if letter.is_ascii_uppercase() { class.complement() } else { class })
}

/// The characters among these code points. Surrogates are no characters.
pub(super) fn of_codes(first: u32, last: u32) -> CharClass {
    let below = |code: u32| char::from_u32(code).or_else(|| char::from_u32(0xd7ff));
    let above = |code: u32| char::from_u32(code).or_else(|| char::from_u32(0xe000));
    match (above(first), below(last)) {
        (Some(first), Some(last)) if first <= last => CharClass::new([(first, last)]),
        _ => CharClass::default(),
    }
}

/// The characters of a Unicode property, as `\p{..}` names it.
pub(super) fn property(name: &str) -> Option<CharClass> {
    let plain = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '=');
    if name.is_empty() || !name.chars().all(plain) {
        return None;
    }
    let hir = regex_syntax::parse(&format!("\\p{{{name}}}")).ok()?;
    match hir.kind() {
        HirKind::Class(Class::Unicode(class)) => {
            Some(CharClass::new(class.iter().map(|range| (range.start(), range.end()))))
        }
        // A class of one character is a literal.
        HirKind::Literal(literal) => {
            let text = std::str::from_utf8(&literal.0).ok()?;
            let mut characters = text.chars();
            characters.next().filter(|_| characters.next().is_none()).map(CharClass::one)
        }
        _ => None,
    }
}

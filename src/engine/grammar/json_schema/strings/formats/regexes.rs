//! The strings that may be regular expressions: all but those that surely are not.
//!
//! Brackets nest, so no automaton recognises regular expressions exactly. This one counts groups up to
//! [`MOST_OPEN`] levels, beyond which it takes anything. It refuses repeats with nothing before them,
//! unbalanced brackets, a backslash at the end, and ranges of letters or digits in the wrong order.

use crate::grammar::json_schema::{
    dfa::{Alphabet, CharClass, CharDfa, DfaRow, char_at, explore},
    leaf::LeafError,
};

/// Limit on the open groups that are counted.
const MOST_OPEN: u8 = 8;

/// The part of an expression that a text is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Mode {
    /// The start, or a place behind something that cannot be repeated.
    Nothing,
    /// The place behind something that can be repeated.
    Atom,
    /// The place behind a repeat, which may still be lazy.
    Repeated,
    /// The place behind a backslash.
    Escape,
    /// The places behind `(`, `(?` and `(?<`, and those in a name or in flags.
    Open,
    Question,
    Less,
    Name,
    Flags,
    /// The places behind `[`, and where a part of a class may begin.
    ClassOpen,
    Class,
    /// The places behind one character of a class, which is kept if it is a letter or a digit, and behind a
    /// `-` after it.
    After(Option<char>),
    Dash(Option<char>),
    /// The places behind a backslash in a class, and behind one at the end of a range.
    ClassEscape,
    RangeEscape,
}

/// The number of open groups, and the mode; `None` where anything may come.
type GroupState = Option<(u8, Mode)>;

/// The strings that may be regular expressions.
pub(super) fn language() -> Result<CharDfa, LeafError> {
    let letters = ('0'..='9').chain('A'..='Z').chain('a'..='z');
    let told_apart: Vec<CharClass> =
        letters.chain("()[]\\|*+?^$-:=!<>".chars()).map(CharClass::one).collect();
    let (alphabet, _) = Alphabet::of(&told_apart);
    let mut members = vec!['\0'; alphabet.classes()];
    // All characters of a class are treated alike.
    alphabet.intervals().for_each(|(first, _, class)| members[class] = char_at(first));
    explore(alphabet, Some((0, Mode::Nothing)), |&state: &GroupState| {
        let to = members.iter().map(|&character| next(state, character)).collect();
        Ok(DfaRow { accepts: may_end(state), to })
    })
}

fn may_end(state: GroupState) -> bool {
    matches!(state, None | Some((0, Mode::Nothing | Mode::Atom | Mode::Repeated)))
}

/// The state after a character; `None` if no regular expression goes on like that.
fn next(state: GroupState, character: char) -> Option<GroupState> {
    let Some((open, mode)) = state else { return Some(None) };
    let here = |mode: Mode| Some(Some((open, mode)));
    match (mode, character) {
        (Mode::Escape, _) => here(Mode::Atom),
        (Mode::Open, '?') => here(Mode::Question),
        (Mode::Question, ':' | '=' | '!') | (Mode::Less, '=' | '!') => here(Mode::Nothing),
        (Mode::Question, '<') => here(Mode::Less),
        (Mode::Question, 'P' | '-') | (Mode::Flags, '-') => here(Mode::Flags),
        (Mode::Question | Mode::Flags, letter) if letter.is_ascii_lowercase() => here(Mode::Flags),
        (Mode::Flags, ':') => here(Mode::Nothing),
        (Mode::Flags, '<') => here(Mode::Less),
        (Mode::Flags, ')') => Some(Some((open - 1, Mode::Nothing))),
        (Mode::Question | Mode::Flags, _) | (Mode::Less, '>') => None,
        (Mode::Name, '>') => here(Mode::Nothing),
        (Mode::Less | Mode::Name, _) => here(Mode::Name),
        (Mode::ClassOpen, '^') => here(Mode::Class),
        (Mode::ClassOpen | Mode::Class | Mode::After(_) | Mode::Dash(_), ']') => here(Mode::Atom),
        (Mode::ClassOpen | Mode::Class | Mode::After(_), '\\') => here(Mode::ClassEscape),
        (Mode::Dash(_), '\\') => here(Mode::RangeEscape),
        (Mode::After(first), '-') => here(Mode::Dash(first)),
        (Mode::ClassOpen | Mode::Class | Mode::After(_), _) => {
            here(Mode::After(Some(character).filter(char::is_ascii_alphanumeric)))
        }
        (Mode::Dash(first), last) => {
            if first.is_some_and(|first| kind(first) == kind(last) && last < first) {
                None
            } else {
                here(Mode::Class)
            }
        }
        (Mode::ClassEscape, _) => here(Mode::After(None)),
        (Mode::RangeEscape, _) => here(Mode::Class),
        (Mode::Nothing | Mode::Atom | Mode::Repeated | Mode::Open, _) => outside(open, mode, character),
    }
}

/// The state after a character outside of classes and of the beginnings of groups.
fn outside(open: u8, mode: Mode, character: char) -> Option<GroupState> {
    let mode = match (character, mode) {
        ('(', _) => {
            let open = open + 1;
            return Some((open <= MOST_OPEN).then_some((open, Mode::Open)));
        }
        (')', _) => return open.checked_sub(1).map(|open| Some((open, Mode::Atom))),
        ('[', _) => Mode::ClassOpen,
        ('\\', _) => Mode::Escape,
        ('|' | '^' | '$', _) => Mode::Nothing,
        ('*' | '+' | '?', Mode::Atom) => Mode::Repeated,
        // A lazy repeat, which cannot be repeated again.
        ('?', Mode::Repeated) => Mode::Nothing,
        ('*' | '+' | '?', _) => return None,
        _ => Mode::Atom,
    };
    Some(Some((open, mode)))
}

/// A number for digits, and one for the letters of each case.
fn kind(character: char) -> Option<u8> {
    match character {
        '0'..='9' => Some(0),
        'A'..='Z' => Some(1),
        'a'..='z' => Some(2),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::grammar::json_schema::strings::pattern::ecma;

    #[test]
    fn texts_that_are_surely_no_expressions_are_excluded() {
        let language = language().unwrap();
        for (text, may_be) in [
            ("", true),
            ("^(abc]", false),
            ("(", false),
            (")", false),
            ("a)(", false),
            ("[a-z", false),
            ("*a", false),
            ("a**", false),
            ("a+?+", false),
            ("(|*)", false),
            ("(?:+)", false),
            ("^*", false),
            ("\\", false),
            ("[z-a]", false),
            ("[9-0]", false),
            ("[Z-A]x", false),
            ("(?x", false),
            ("(?<>a)", false),
            ("((((((((a))))))))", true),
            ("((((((((a)))))))", false),
            ("((((((((a)))))))))", false),
            ("(((((((((a", true),
            ("[a-zA-Z0-9_-]+", true),
            ("[]a]", true),
            ("[^]]", true),
            ("[a-]", true),
            ("[\\w-a]", true),
            ("[a-\\d]", true),
            ("[a-c-b]", true),
            ("a{2,3}?|b*?|c+", true),
            ("(?=a)(?!b)(?<=c)(?<!d)(?<name>e)(?i:f)", true),
            ("\\(\\[\\*", true),
            ("x{", true),
            ("[(*]\\]", true),
        ] {
            assert_eq!(language.contains(text), may_be, "{text}");
        }
    }

    proptest! {
        /// Everything that the reader of patterns accepts is in the language.
        #[test]
        fn no_valid_expression_is_excluded(text in r"[ab1z^$.|()\[\]*+?{},:=!<\\-]{0,14}") {
            let is_read = ecma::parse(&text).is_ok();
            prop_assert!(language().unwrap().contains(&text) || !is_read, "{}", text);
        }
    }
}

//! The names of the parts of regular expressions that Domino refuses, and what to write instead.

use super::class::POSIX_NAMES;
use crate::grammar::{GrammarError, errors::quoted};

/// A part that is refused.
#[derive(Debug, Clone, Copy)]
pub(super) struct Refused {
    /// The name of the construct, with an article or with the way it is written.
    what: &'static str,
    /// True if it is beyond regular languages.
    irregular: bool,
    hint: &'static str,
}

const RECURSION: &str = "in a GBNF grammar rules can use one another and themselves";
const BACK_REFERENCE: &str = "write out what may stand there, if it is a choice of few texts";
const FLAGS: &str = "the flags are `i`, `m`, `s`, `u`, `U` and `x`";

impl Refused {
    const fn irregular(what: &'static str, hint: &'static str) -> Self {
        Self { what, irregular: true, hint }
    }

    const fn other(what: &'static str, hint: &'static str) -> Self {
        Self { what, irregular: false, hint }
    }

    /// The error, without a place yet, and the label for the place.
    pub(super) fn error(self) -> (GrammarError, &'static str) {
        let error = GrammarError::unsupported(format!("{} is not supported", self.what)).with_hint(self.hint);
        (error, if self.irregular { "not a regular language's" } else { "" })
    }
}

/// The part that begins with `(` and `after`, if it is refused. Look-around and atomic groups are left to the
/// parser.
pub(super) fn group(after: &str) -> Option<Refused> {
    let Some(after) = after.strip_prefix('?') else {
        let verb = after.strip_prefix('*')?.starts_with(|c: char| c.is_ascii_alphabetic());
        return verb
            .then(|| Refused::other("a verb such as `(*UTF)`", "as a character, `*` is written `\\*`"));
    };
    let digit = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    let call = Refused::irregular("a subroutine call", RECURSION);
    Some(match after.as_bytes() {
        [b'R' | b'0', b')', ..] => Refused::irregular("recursion", RECURSION),
        [b'P', b'=', ..] => Refused::irregular("a back-reference", BACK_REFERENCE),
        [b'P', b'>', ..] | [b'&', ..] => call,
        [b'+' | b'-', ..] if digit(&after[1..]) => call,
        [b'0'..=b'9', ..] => call,
        [b'(', ..] => Refused::irregular("a conditional", "write each of its cases as an alternative"),
        [b'#', ..] => {
            Refused::other("a comment `(?#...)`", "after `(?x)`, `# ...` is a comment up to the line's end")
        }
        [b'|', ..] => Refused::other("a branch reset", "groups have no numbers here: write `(?:...)`"),
        [b'\'', ..] => Refused::other("a group name in quotes", "write `(?<name>...)`, or `(?:...)`"),
        [b'C', b')' | b'0'..=b'9', ..] => Refused::other("a callout", "leave it out"),
        [b'{', ..] | [b'?', b'{', ..] => Refused::irregular("code in a regular expression", "leave it out"),
        _ => return None,
    })
}

/// The meaning of a backslash and this character, if it is refused by name.
pub(super) fn escape(letter: char) -> Option<Refused> {
    Some(match letter {
        'k' | 'g' => Refused::irregular("a back-reference", BACK_REFERENCE),
        'G' | 'K' | 'Z' => Refused::irregular("this anchor", "the whole text is matched"),
        'R' => Refused::other("a line break `\\R`", "write `(?:\\r\\n|[\\n-\\r\\x{85}\\x{2028}\\x{2029}])`"),
        'h' => Refused::other("horizontal white space `\\h`", "write `[\\t\\p{Zs}]`"),
        'H' => Refused::other("`\\H`, all but horizontal white space,", "write `[^\\t\\p{Zs}]`"),
        'V' => Refused::other(
            "`\\V`, all but vertical white space,",
            "write `[^\\n-\\r\\x{85}\\x{2028}\\x{2029}]`",
        ),
        'N' => Refused::other(
            "`\\N`",
            "all but a line feed is `[^\\n]`; a character by its number is `\\x{...}`",
        ),
        'X' => Refused::other("a grapheme cluster `\\X`", "for any character write `(?s:.)`"),
        'C' => Refused::other("a single byte `\\C`", "write `(?s-u:.)`"),
        'Q' | 'E' => {
            Refused::other("quoting by `\\Q...\\E`", "write a backslash before each special character")
        }
        'L' | 'l' => Refused::other("a change of case", "write the letters as they are to be"),
        _ => return None,
    })
}

/// The error of an escape that does not exist, without a place yet.
pub(super) fn unknown_escape(letter: char) -> GrammarError {
    GrammarError::syntax(format!("unknown escape {}", quoted(&format!("\\{letter}")))).with_hint(
        "a special character is made literal by a backslash; other characters need none, \
        and any may be written `\\x{...}` with its number",
    )
}

/// The error of a flag that does not exist here, without a place yet.
pub(super) fn unknown_flag(flag: char) -> GrammarError {
    let message = format!("the flag {} is unknown", quoted(&flag.to_string()));
    let hint = match flag {
        'R' => "to leave out `\\r` write `[^\\r\\n]` for `.`; in a GBNF grammar rules can use themselves",
        'a' => "for ASCII alone write `(?-u:\\w)`, or `[0-9A-Za-z_]`",
        'n' | 'J' => "groups without a name capture nothing here, so the flag can be left out",
        'g' | 'y' | 'd' | 'v' | 'L' => {
            "it says how to search, or in which alphabet; the whole text is matched here"
        }
        _ => return GrammarError::syntax(message).with_hint(FLAGS),
    };
    GrammarError::unsupported(message).with_hint(hint)
}

/// The error of `[:name:]` with an unknown name, without a place yet.
pub(super) fn unknown_posix() -> GrammarError {
    GrammarError::syntax("there is no POSIX class of this name")
        .with_hint(format!("they are {}; a literal `[` is `\\[`", POSIX_NAMES.join(", ")))
}

/// The error of `\c` without a letter, without a place yet.
pub(super) fn unknown_control() -> GrammarError {
    GrammarError::syntax("`\\c` must be followed by an ASCII letter")
        .with_hint("a control character may also be written with its number, as in `\\x1B`")
}

/// The error of `\1` in a class, without a place yet.
pub(super) fn octal() -> GrammarError {
    GrammarError::unsupported("an octal escape that does not begin with 0 is not supported")
        .with_hint("write `\\0` and two octal digits, or `\\x{...}` with hexadecimal digits")
}

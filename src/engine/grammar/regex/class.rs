//! Finds the end of a class in a regular expression, and the special places in it.
//!
//! It walks over the class item by item, as `regex-syntax` does, with one choice: a `[` inside is a literal
//! or opens a nested class. Needs no memory but for the marks; linear in the class.

use std::ops::Range;

use crate::grammar::source::Span;

/// The names of POSIX classes.
pub(super) const POSIX_NAMES: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space",
    "upper", "word", "xdigit",
];

/// A class that was walked.
#[derive(Debug, Default)]
pub(super) struct WalkedClass {
    /// The place behind its `]`.
    pub(super) end: usize,
    /// The places that are not ordinary characters, in the text's order.
    pub(super) marks: Vec<(usize, ClassMark)>,
    /// True if it begins with a literal `]`.
    pub(super) leading_bracket: bool,
    /// The beginning that other dialects would read as a range, if there is one.
    pub(super) leading_range: Option<Span>,
    /// The first white space or comment that is left out.
    pub(super) skipped: Option<Span>,
}

/// The kind of a special place in a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClassMark {
    /// `[`
    Bracket,
    /// A backslash.
    Escape,
    /// `&&`, `--` or `~~`
    Operator,
    /// `[:name:]` with letters that name no class, and its length.
    UnknownPosix(usize),
}

impl WalkedClass {
    /// True if there is such a mark.
    pub(super) fn has(&self, wanted: ClassMark) -> bool {
        self.marks.iter().any(|&(_, mark)| mark == wanted)
    }
}

/// Limits on the cost of a walk with nested classes.
#[derive(Debug)]
pub(super) struct NestingLimits {
    /// The limit on the nesting of classes, which the parser has too.
    pub(super) depth: u32,
    /// The bytes that may still be looked at, in all walks together.
    pub(super) bytes: usize,
}

/// Walks the class whose `[` is at `start`. With `free`, white space and comments are left out; with
/// `nested`, a `[` inside opens a class. `None` if the class is not closed, or not within the bounds.
pub(super) fn walk(
    text: &str,
    start: usize,
    free: bool,
    mut nested: Option<&mut NestingLimits>,
) -> Option<WalkedClass> {
    let mut walk = ClassWalk { text, at: start, free, class: WalkedClass::default() };
    let mut depth = 0;
    let mut from = start;
    walk.open()?;
    loop {
        if let Some(bounds) = nested.as_deref_mut() {
            bounds.bytes = bounds.bytes.saturating_sub(walk.at - from);
            from = walk.at;
            if bounds.bytes == 0 || depth > bounds.depth {
                return None;
            }
        }
        walk.skip_space();
        match walk.peek()? {
            '[' => match posix(&text[walk.at..]) {
                Posix::Class(length) => walk.at += length,
                other => {
                    if let Posix::Unknown(length) = other {
                        walk.mark(ClassMark::UnknownPosix(length));
                    }
                    walk.mark(ClassMark::Bracket);
                    if nested.is_some() {
                        depth += 1;
                        walk.open()?;
                    } else {
                        walk.item()?;
                    }
                }
            },
            ']' => {
                walk.at += 1;
                if depth == 0 {
                    walk.class.end = walk.at;
                    return Some(walk.class);
                }
                depth -= 1;
            }
            '&' | '-' | '~' if walk.doubled() => {
                walk.mark(ClassMark::Operator);
                walk.at += 2;
            }
            _ => walk.item()?,
        }
    }
}

struct ClassWalk<'t> {
    text: &'t str,
    at: usize,
    free: bool,
    class: WalkedClass,
}

impl ClassWalk<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn bump(&mut self) -> Option<()> {
        self.at += self.peek()?.len_utf8();
        Some(())
    }

    fn mark(&mut self, mark: ClassMark) {
        self.class.marks.push((self.at, mark));
    }

    fn doubled(&self) -> bool {
        let bytes = self.rest().as_bytes();
        bytes.get(1) == bytes.first()
    }

    fn skip_space(&mut self) {
        if !self.free {
            return;
        }
        let end = self.at + space(self.rest()).end;
        if end > self.at && self.class.skipped.is_none() {
            self.class.skipped = Some(Span::from_range(self.at..end));
        }
        self.at = end;
    }

    /// Reads the `[` and the characters with another meaning directly behind it. There must be a `[`.
    fn open(&mut self) -> Option<()> {
        let outermost = self.class.marks.is_empty();
        self.at += 1;
        self.skip_space();
        if self.peek()? == '^' {
            self.at += 1;
            self.skip_space();
        }
        let (start, mut dashes) = (self.at, 0);
        while self.peek()? == '-' {
            dashes += 1;
            self.at += 1;
            self.skip_space();
        }
        let bracket = dashes == 0 && self.peek()? == ']';
        if bracket {
            self.at += 1;
            self.skip_space();
            self.class.leading_bracket |= outermost;
        }
        // Others read two dashes and a character as a range, so every third dash begins anew.
        let range = match dashes {
            0 => bracket && self.rest().starts_with('-') && !self.rest()[1..].starts_with([']', '-']),
            _ => dashes % 3 == 2 && self.peek()? != ']',
        };
        if range && self.class.leading_range.is_none() {
            let end = self.at + usize::from(bracket);
            let last = self.text[end..].chars().next().map_or(0, char::len_utf8);
            self.class.leading_range = Some(Span::from_range(start..end + last));
        }
        Some(())
    }

    /// Reads a character or an escape, or a range of two.
    fn item(&mut self) -> Option<()> {
        self.single()?;
        self.skip_space();
        if self.peek()? != '-' {
            return Some(());
        }
        let after = &self.rest()[1..];
        let after = &after[if self.free { space(after).end } else { 0 }..];
        if after.starts_with([']', '-']) {
            return Some(());
        }
        self.at += 1;
        self.skip_space();
        self.single()
    }

    fn single(&mut self) -> Option<()> {
        if self.peek()? == '\\' {
            self.mark(ClassMark::Escape);
            self.at += 1;
            // The letter of a control character never has a meaning of its own.
            if self.peek()? == 'c' {
                self.at += 1;
            }
        }
        self.bump()
    }
}

/// The white space and comments at the beginning of `text` that the flag `x` leaves out.
pub(super) fn space(text: &str) -> Range<usize> {
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        if !rest.starts_with('#') {
            return 0..text.len() - rest.len();
        }
        rest = rest.find('\n').map_or("", |end| &rest[end + 1..]);
    }
}

enum Posix {
    Class(usize),
    Unknown(usize),
    Other,
}

/// Reads `[:name:]` at the beginning of `text`.
fn posix(text: &str) -> Posix {
    let Some(rest) = text.strip_prefix("[:") else { return Posix::Other };
    let rest = rest.strip_prefix('^').unwrap_or(rest);
    let name = &rest[..rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len())];
    let Some(after) = rest[name.len()..].strip_prefix(":]").filter(|_| !name.is_empty()) else {
        return Posix::Other;
    };
    let length = text.len() - after.len();
    if POSIX_NAMES.contains(&name) { Posix::Class(length) } else { Posix::Unknown(length) }
}

//! A regular expression's text, made ready for `regex-syntax`.
//!
//! The parser of `regex-syntax` is that of Rust's `regex` crate. Where Python, PCRE and ECMAScript agree on
//! something else that is natural to write, this pass rewrites the text: a `[` in a class is a literal, and
//! `\0`, `\cJ`, `\e`, `[\b]` and `\Z` have their meaning there. Constructs that cannot be had are refused by
//! name, and those that another dialect reads in another way cause a warning. Everything else is passed on,
//! mistakes included, which the parser reports. Groups with the names of `extensions` are found here too.
//!
//! The pass divides the text into the same items as the parser (groups and their flags, classes, escapes, and
//! white space where `x` is on). [`PreparedRegex::place`] maps places in the rewritten text to the user's.

use std::ops::Range;

use regex_syntax::ast;

use super::{
    class::{self, ClassMark, NestingLimits, WalkedClass},
    extensions::{self, DELIMITER, ExtensionUse},
    names,
};
use crate::grammar::{
    GrammarError, GrammarWarning, GrammarWarningKind,
    errors::MOST_SHOWN,
    source::{Source, Span},
};
use crate::limits::{Budget, LimitExceeded, Limits};

/// Limit on the bytes looked at to see whether brackets in classes are balanced, in all classes together.
/// Where they are not, each bracket opens one more class, and the limit on depth ends a walk soon; this one
/// is for expressions made to avoid that, which would cost quadratic time.
const MOST_LOOKED_AT: usize = 1 << 24;

/// A text that is ready for the parser.
#[derive(Debug)]
pub(super) struct PreparedRegex<'t> {
    /// The text as the user wrote it.
    original: &'t str,
    text: String,
    edits: Vec<Edit>,
    warnings: Vec<GrammarWarning>,
    uses: Vec<ExtensionUse>,
}

/// A piece that was rewritten: its place in the new text, and its place in the old one.
#[derive(Debug)]
struct Edit {
    new: Range<usize>,
    old: Range<usize>,
}

impl<'t> PreparedRegex<'t> {
    /// Reads a text. Linear, apart from the search for balanced brackets, which [`MOST_LOOKED_AT`] bounds.
    pub(super) fn new(original: &'t str, limits: &Limits) -> Result<Self, GrammarError> {
        let mut reader = RegexReader {
            text: original,
            at: 0,
            free: false,
            open: Vec::new(),
            copied: 0,
            bounds: NestingLimits { depth: limits.regex_nesting, bytes: MOST_LOOKED_AT },
            done: Self {
                original,
                text: String::new(),
                edits: Vec::new(),
                warnings: Vec::new(),
                uses: Vec::new(),
            },
        };
        reader.read()?;
        reader.copy_to(original.len());
        Ok(reader.done)
    }

    /// The text for the parser.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The text as the user wrote it.
    pub(super) fn source(&self) -> Source<'t> {
        Source::new(self.original)
    }

    /// The user's text at a place.
    pub(super) fn original(&self, place: Span) -> &'t str {
        self.original.get(place.range()).unwrap_or_default()
    }

    /// Maps a place in the rewritten text to the user's text. A part of a rewritten piece becomes all of that
    /// piece.
    pub(super) fn place(&self, span: &ast::Span) -> Span {
        let (start, end) = (span.start.offset, span.end.offset);
        Span::from_range(self.map(start, |edit| edit.old.start)..self.map(end, |edit| edit.old.end))
    }

    fn map(&self, at: usize, inside: impl Fn(&Edit) -> usize) -> usize {
        // The last piece that begins before `at`, or at it.
        let after = self.edits.partition_point(|edit| edit.new.start <= at);
        match after.checked_sub(1).and_then(|index| self.edits.get(index)) {
            None => at,
            Some(edit) if at == edit.new.start => edit.old.start,
            Some(edit) if at < edit.new.end => inside(edit),
            Some(edit) => edit.old.end + (at - edit.new.end),
        }
    }

    /// Keeps a warning, unless there are many already.
    pub(super) fn warn(&mut self, kind: GrammarWarningKind, message: &str, span: Span, hint: &str) {
        if self.warnings.len() < MOST_SHOWN {
            self.warnings.push(GrammarWarning::new(kind, message, self.source(), span, hint));
        }
    }

    /// The groups with names of extensions, by their numbers.
    pub(super) fn uses(&self) -> &[ExtensionUse] {
        &self.uses
    }

    pub(super) fn uses_mut(&mut self) -> &mut [ExtensionUse] {
        &mut self.uses
    }

    /// The warnings, in the text's order.
    pub(super) fn into_warnings(mut self) -> Vec<GrammarWarning> {
        self.warnings.sort_by_key(|warning| warning.place().span());
        self.warnings
    }
}

/// An open group.
struct Open {
    /// The value of `free` outside of it.
    free: bool,
    /// The number of the extension that it is, if that has a delimiter.
    delimited: Option<usize>,
}

/// A walk over the text.
struct RegexReader<'t> {
    text: &'t str,
    at: usize,
    /// True if the flag `x` is on, so that white space and comments are left out.
    free: bool,
    /// The open groups.
    open: Vec<Open>,
    /// The place up to which the new text is made.
    copied: usize,
    /// The limits for walks over brackets.
    bounds: NestingLimits,
    done: PreparedRegex<'t>,
}

impl<'t> RegexReader<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn error(&self, error: GrammarError, range: Range<usize>, label: &str) -> GrammarError {
        error.at(self.done.source(), Span::from_range(range), label)
    }

    fn copy_to(&mut self, end: usize) {
        self.done.text.push_str(&self.text[self.copied..end]);
        self.copied = end;
    }

    fn replace(&mut self, old: Range<usize>, new: &str) {
        self.copy_to(old.start);
        let start = self.done.text.len();
        self.done.text.push_str(new);
        self.copied = old.end;
        self.done.edits.push(Edit { new: start..self.done.text.len(), old });
    }

    fn skip_space(&mut self) {
        if self.free {
            self.at += class::space(self.rest()).end;
        }
    }

    fn read(&mut self) -> Result<(), GrammarError> {
        loop {
            self.skip_space();
            let Some(first) = self.rest().chars().next() else { return Ok(()) };
            match first {
                '\\' => self.escape(false)?,
                '[' => self.class()?,
                '(' => self.group()?,
                ')' => {
                    self.free = self.open.pop().map_or(self.free, |open| open.free);
                    self.at += 1;
                }
                '{' => self.count(),
                _ => self.at += first.len_utf8(),
            }
        }
    }

    /// Reads the head of a group, or flags for the text behind.
    fn group(&mut self) -> Result<(), GrammarError> {
        let start = self.at;
        self.at += 1;
        self.skip_space();
        let rest = self.rest();
        if let Some(refused) = names::group(rest) {
            let (error, label) = refused.error();
            return Err(self.error(error, start..self.at + refused_head(rest), label));
        }
        let outer = self.free;
        if let Some(name) = rest.strip_prefix("?P<").or_else(|| rest.strip_prefix("?<"))
            && !name.starts_with(['=', '!'])
        {
            // A name may contain brackets.
            let (from, end) = (self.text.len() - name.len(), name.find('>'));
            self.at = from + end.map_or(name.len(), |end| end + 1);
            if let Some(end) = end {
                return self.named(start, from..from + end);
            }
        } else if rest.starts_with('?') && !rest[1..].starts_with(['=', '!', '<', '>']) {
            self.at += 1;
            if self.flags()? {
                return Ok(());
            }
        }
        self.open.push(Open { free: outer, delimited: None });
        Ok(())
    }

    /// Reads a group with a name, given by its place in the text; the text behind it comes next.
    fn named(&mut self, start: usize, name: Range<usize>) -> Result<(), GrammarError> {
        let (text, free, head) = (&self.text[name.clone()], self.free, Span::from_range(start..self.at));
        let inside = self.open.last().and_then(|open| open.delimited);
        if let Some(index) = inside.filter(|_| text == DELIMITER) {
            let delimiters = &mut self.done.uses[index].delimiters;
            delimiters.push(head);
            let number = delimiters.len();
            self.replace(name, &extensions::delimiter(index, number));
            self.open.push(Open { free, delimited: None });
            return Ok(());
        }
        let found =
            extensions::of_name(text).map_err(|(error, label)| self.error(error, name.clone(), &label))?;
        let Some(extension) = found else {
            self.open.push(Open { free, delimited: None });
            return Ok(());
        };
        self.skip_space();
        let count = if extension.expression().is_some() { self.count_inside() } else { "" };
        let (given, wanted) = (!self.rest().starts_with(')'), extension.expression().is_none());
        if given != wanted {
            let what = if wanted { "needs an" } else { "takes no" };
            let error = GrammarError::syntax(format!("`{extension}` {what} argument"))
                .with_hint(format!("it is written {}", extensions::form(extension)));
            return Err(self.error(error, head.range(), ""));
        }
        if let Some(expression) = extension.expression() {
            self.at += 1;
            let once = format!("(?u-isx:{expression})");
            // The group gets a group around it, so that a count behind it applies to all of it.
            let text = if count.is_empty() { once } else { format!("(?:{once}{count})") };
            self.replace(start..self.at, &text);
            return Ok(());
        }
        let index = self.done.uses.len();
        self.done.uses.push(ExtensionUse::new(extension, head));
        self.replace(name, &format!("{extension}[{index}]"));
        self.open.push(Open { free, delimited: extension.is_delimited().then_some(index) });
        Ok(())
    }

    /// Reads the count of `(?P<PARAGRAPH_TOKEN>+)`, as arXiv 2407.08103 prints it: `+`, `*`, `?` or `{..}` up
    /// to the end of the group, perhaps with a `?` behind it. Empty if there is none.
    fn count_inside(&mut self) -> &'t str {
        let rest = self.rest();
        let inside = &rest[..rest.find(')').unwrap_or(0)];
        let written = if self.free { inside.trim_end() } else { inside };
        let plain = written.strip_suffix('?').filter(|plain| !plain.is_empty()).unwrap_or(written);
        let is_count = match plain.strip_prefix('{').and_then(|count| count.strip_suffix('}')) {
            Some(count) => count.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b',' | b' ')),
            None => matches!(plain, "+" | "*" | "?"),
        };
        if !is_count {
            return "";
        }
        self.at += inside.len();
        written
    }

    /// Reads flags up to `:` or `)`. True if they apply to the text behind, without a group of their own.
    fn flags(&mut self) -> Result<bool, GrammarError> {
        let mut on = true;
        for (index, flag) in self.rest().char_indices() {
            match flag {
                ':' | ')' => {
                    self.at += index + 1;
                    return Ok(flag == ')');
                }
                '-' => on = false,
                'x' => self.free = on,
                'i' | 'm' | 's' | 'u' | 'U' => {}
                other => {
                    let at = self.at + index;
                    let error = names::unknown_flag(other);
                    return Err(self.error(error, at..at + other.len_utf8(), ""));
                }
            }
        }
        self.at = self.text.len();
        Ok(true)
    }

    /// Reads a backslash and what belongs to it.
    fn escape(&mut self, in_class: bool) -> Result<(), GrammarError> {
        let start = self.at;
        let Some(letter) = self.rest()[1..].chars().next() else {
            self.at += 1;
            return Ok(());
        };
        self.at += 1 + letter.len_utf8();
        match letter {
            '0' => {
                let octal = self.rest().bytes().take(2).take_while(|byte| matches!(byte, b'0'..=b'7'));
                let (length, value) = octal
                    .fold((0, 0), |(length, value), byte| (length + 1, value * 8 + u32::from(byte - b'0')));
                self.at += length;
                self.replace(start..self.at, &format!("\\x{{{value:X}}}"));
            }
            'c' => {
                let Some(letter @ (b'A'..=b'Z' | b'a'..=b'z')) = self.rest().bytes().next() else {
                    return Err(self.error(names::unknown_control(), start..self.at, ""));
                };
                self.at += 1;
                self.replace(start..self.at, &format!("\\x{{{:X}}}", letter & 0x1F));
            }
            'e' => self.replace(start..self.at, "\\x{1B}"),
            'b' if in_class => self.replace(start..self.at, "\\x{8}"),
            'Z' if !in_class => self.replace(start..self.at, "\\z"),
            '1'..='7' if in_class => {
                return Err(self.error(names::octal(), start..self.at, ""));
            }
            'v' => self.done.warn(
                GrammarWarningKind::VerticalTab,
                "`\\v` is the vertical tab, as in Python and ECMAScript; PCRE reads all vertical white space",
                Span::from_range(start..self.at),
                "write `\\x0B`, or `[\\n-\\r\\x{85}\\x{2028}\\x{2029}]`",
            ),
            // Quoted text must not be taken for groups and classes.
            'Q' => {
                if let Some(refused) = names::escape(letter) {
                    let (error, label) = refused.error();
                    return Err(self.error(error, start..self.at, label));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Looks at a `{`, to warn of white space in a count.
    fn count(&mut self) {
        let start = self.at;
        self.at += 1;
        let ends = |c: char| !(c.is_ascii_digit() || c.is_whitespace() || c == ',');
        let Some(length) = self.rest().find(ends) else { return };
        let (inside, after) = self.rest().split_at(length);
        if after.starts_with('}') && inside.contains(char::is_whitespace) {
            self.done.warn(
                GrammarWarningKind::SpaceInCount,
                "this is a count; Python, PCRE and ECMAScript read it as text, for the white space in it",
                Span::from_range(start..start + length + 2),
                "leave the white space out of the count, or write the brace as `\\{`",
            );
        }
    }

    /// Reads a class. Brackets in it are literals, unless it has set operations.
    fn class(&mut self) -> Result<(), GrammarError> {
        let start = self.at;
        let plain = class::walk(self.text, start, self.free, None);
        let Some(plain) = plain else {
            let error = GrammarError::syntax("unclosed character class")
                .with_hint("as a character, `[` is written `\\[`");
            return Err(self.error(error, start..start + 1, "opened here"));
        };
        let nested = if plain.has(ClassMark::Bracket) { self.nested(start)? } else { None };
        match nested {
            // If the class is not balanced, the parser reports that.
            Some(nested) if nested.has(ClassMark::Operator) => self.mark_up(start, &nested, true),
            None if plain.has(ClassMark::Bracket) && plain.has(ClassMark::Operator) => {
                Err(self.unbalanced(start, &plain))
            }
            balanced => {
                if let Some(balanced) = balanced {
                    self.warn_of_nesting(&balanced);
                }
                self.mark_up(start, &plain, false)
            }
        }
    }

    /// Walks the class with each `[` opening a class of its own; `None` if that is not balanced.
    fn nested(&mut self, start: usize) -> Result<Option<WalkedClass>, GrammarError> {
        let nested = class::walk(self.text, start, self.free, Some(&mut self.bounds));
        if self.bounds.bytes > 0 {
            return Ok(nested);
        }
        let limit =
            LimitExceeded::new(Budget::RegexBytes, "bytes looked at for the ends of classes", MOST_LOOKED_AT);
        let error = GrammarError::limit(limit).with_hint("in a class, a literal `[` may be written `\\[`");
        Err(self.error(error, start..start + 1, ""))
    }

    fn unbalanced(&self, start: usize, class: &WalkedClass) -> GrammarError {
        let bracket =
            class.marks.iter().find(|(_, mark)| *mark == ClassMark::Bracket).map_or(start, |&(at, _)| at);
        let error = GrammarError::syntax("unclosed character class").with_hint(
            "in a class with `&&`, `--` or `~~` a `[` opens another; as a character it is written `\\[`",
        );
        self.error(error, bracket..bracket + 1, "opened here")
    }

    /// Rewrites the marked places of a class, and warns of those that other dialects read in another way.
    fn mark_up(&mut self, start: usize, class: &WalkedClass, nested: bool) -> Result<(), GrammarError> {
        for &(at, mark) in &class.marks {
            match mark {
                ClassMark::Bracket if nested => {}
                ClassMark::Bracket => self.replace(at..at + 1, "\\["),
                ClassMark::Escape => {
                    self.at = at;
                    self.escape(true)?;
                }
                ClassMark::Operator => self.done.warn(
                    GrammarWarningKind::SetOperation,
                    "`&&`, `--` and `~~` are set operations here, as in ECMAScript with `v`; Python, PCRE \
                    and ECMAScript with `u` read characters or a range",
                    Span::from_range(at..at + 2),
                    "as characters write `\\&`, `\\-` and `\\~`",
                ),
                ClassMark::UnknownPosix(length) => {
                    return Err(self.error(names::unknown_posix(), at..at + length, ""));
                }
            }
        }
        self.at = class.end;
        self.warn_of_class(start, class);
        Ok(())
    }

    fn warn_of_nesting(&mut self, nested: &WalkedClass) {
        let bracket = nested.marks.iter().find(|(_, mark)| *mark == ClassMark::Bracket);
        let at = bracket.map_or(nested.end, |&(at, _)| at);
        self.done.warn(
            GrammarWarningKind::NestedClass,
            "`[` is a literal in a class, as in Python and PCRE; Rust, Java and ECMAScript with `v` open a \
            class in the class",
            Span::from_range(at..at + 1),
            "write a literal `[` as `\\[`; instead of a class in a class write its characters",
        );
    }

    fn warn_of_class(&mut self, start: usize, class: &WalkedClass) {
        let inside = &self.text[start + 1..class.end - 1];
        let name = inside.strip_prefix(':').and_then(|rest| rest.strip_suffix(':')).unwrap_or_default();
        if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            self.done.warn(
                GrammarWarningKind::PosixOutsideClass,
                "outside of a class this is no POSIX class but a class of these characters; PCRE refuses it",
                Span::from_range(start..class.end),
                "write it inside of a class, as in `[[:alpha:]]`",
            );
        }
        if class.leading_bracket && class.has(ClassMark::Bracket) {
            self.done.warn(
                GrammarWarningKind::LeadingBracket,
                "a `]` right after `[` or `[^` is a literal, as in Python and PCRE; ECMAScript reads `[]` as \
                a class of nothing and `[^]` as any character",
                Span::from_range(start..class.end),
                "write a literal `]` as `\\]`, and any character as `(?s:.)`",
            );
        }
        if let Some(span) = class.leading_range {
            self.done.warn(
                GrammarWarningKind::LeadingRange,
                "the first `-` or `]` of a class is a character of its own; Python and PCRE read a range",
                span,
                "write `\\-` and `\\]` for the characters themselves",
            );
        }
        if let Some(span) = class.skipped {
            self.done.warn(
                GrammarWarningKind::SpaceInClass,
                "with `x`, white space and `#` are left out of classes too; Python and PCRE keep them there",
                span,
                "in a class write white space as `\\ ` or `\\n`, and `#` as `\\#`",
            );
        }
    }
}

/// The length of a refused group that is pointed at: up to its `)` if nothing but a name or number is before
/// it, else the part that identifies it.
fn refused_head(rest: &str) -> usize {
    let simple = |c: char| c.is_ascii_alphanumeric() || "?+-_&=>#*(".contains(c);
    let length = rest.find(|c| !simple(c)).unwrap_or(rest.len());
    if rest[length..].starts_with(')') { length + 1 } else { 2 }
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;

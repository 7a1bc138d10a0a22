//! ECMA-262 regular expressions -> syntax trees, with the classes that have names there.
//!
//! The dialect is that of Unicode mode, with the liberties that most readers take without it: `{`, `}` and
//! `]` may stand for themselves, and so may any escaped character that is no letter or digit. Capturing
//! groups are plain groups and lazy repetition is repetition, since only the set of matching strings counts.

use hashbrown::HashMap;
use regex_syntax::hir::{Class, HirKind};

use crate::grammar::json_schema::{
    dfa::{Assertion, CharClass},
    leaf::LeafError,
};

/// Limit on the characters of an expression.
const MAX_LENGTH: usize = 100_000;
/// Limit on the groups open at once; building automata recurses as deep.
const MAX_DEPTH: usize = 200;

/// A regular expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum RegexNode {
    /// One character of the class.
    Class(CharClass),
    /// The parts, one after the other.
    Sequence(Vec<RegexNode>),
    /// One of the parts.
    Alternatives(Vec<RegexNode>),
    /// The node, `min` to `max` times.
    Repeat { node: Box<RegexNode>, min: u32, max: Option<u32> },
    /// A condition on the place.
    Assert(Assertion),
    /// Look-ahead, or with `false` its negation; `at` is its place.
    Ahead { wanted: bool, node: Box<RegexNode>, at: usize },
    /// Look-behind, or with `false` its negation; `at` is its place.
    Behind { wanted: bool, node: Box<RegexNode>, at: usize },
}

/// Reads a regular expression.
pub(in super::super) fn parse(pattern: &str) -> Result<RegexNode, LeafError> {
    if pattern.len() > MAX_LENGTH {
        return Err(LeafError::Budget { what: "bytes of a pattern", limit: MAX_LENGTH });
    }
    let mut parser =
        EcmaParser { text: pattern.chars().collect(), at: 0, depth: 0, properties: HashMap::new() };
    let node = parser.alternatives()?;
    match parser.peek() {
        None => Ok(node),
        Some(_) => Err(parser.wrong("a `)` that closes nothing")),
    }
}

struct EcmaParser {
    text: Vec<char>,
    at: usize,
    depth: usize,
    /// The properties that were looked up before, since that takes a while.
    properties: HashMap<String, CharClass>,
}

impl EcmaParser {
    fn peek(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    fn eat(&mut self, wanted: &str) -> bool {
        let here = self.text.get(self.at..).unwrap_or_default();
        let there = wanted.chars().zip(here).take_while(|(wanted, here)| wanted == *here).count();
        let found = there == wanted.chars().count();
        if found {
            self.at += there;
        }
        found
    }

    fn wrong(&self, message: impl Into<String>) -> LeafError {
        LeafError::Syntax { message: message.into(), at: self.at }
    }

    fn unsupported(&self, what: &'static str) -> LeafError {
        LeafError::Unsupported { what, at: self.at }
    }

    fn alternatives(&mut self) -> Result<RegexNode, LeafError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(LeafError::Budget { what: "groups inside each other", limit: MAX_DEPTH });
        }
        let mut parts = vec![self.sequence()?];
        while self.eat("|") {
            parts.push(self.sequence()?);
        }
        self.depth -= 1;
        Ok(match parts.len() {
            1 => parts.remove(0),
            _ => RegexNode::Alternatives(parts),
        })
    }

    fn sequence(&mut self) -> Result<RegexNode, LeafError> {
        let mut parts = Vec::new();
        while let Some(character) = self.peek() {
            if matches!(character, '|' | ')') {
                break;
            }
            parts.push(self.term()?);
        }
        Ok(RegexNode::Sequence(parts))
    }

    fn term(&mut self) -> Result<RegexNode, LeafError> {
        let at = self.at;
        let atom = self.atom()?;
        let quantified = self.at;
        let Some((min, max)) = self.quantifier()? else { return Ok(atom) };
        match atom {
            RegexNode::Assert(_) | RegexNode::Behind { .. } => {
                Err(LeafError::Syntax { message: "nothing to repeat".to_owned(), at: quantified })
            }
            RegexNode::Ahead { .. } => Err(LeafError::Unsupported { what: "a repeated look-ahead", at }),
            node => Ok(RegexNode::Repeat { node: Box::new(node), min, max }),
        }
    }

    fn atom(&mut self) -> Result<RegexNode, LeafError> {
        let at = self.at;
        let Some(character) = self.peek() else { return Ok(RegexNode::Sequence(Vec::new())) };
        if matches!(character, '*' | '+' | '?') {
            return Err(self.wrong("nothing to repeat"));
        }
        if character == '{' && self.counts().is_some() {
            return Err(self.wrong("nothing to repeat"));
        }
        self.at += 1;
        match character {
            '^' => Ok(RegexNode::Assert(Assertion::Start)),
            '$' => Ok(RegexNode::Assert(Assertion::End)),
            '.' => Ok(RegexNode::Class(line_terminators().complement())),
            '[' => Ok(RegexNode::Class(self.class()?)),
            '(' => self.group(at),
            '\\' => match self.peek() {
                Some(letter @ ('b' | 'B')) => {
                    self.at += 1;
                    Ok(RegexNode::Assert(Assertion::Boundary(letter == 'b')))
                }
                _ => Ok(RegexNode::Class(self.escape(false)?.class())),
            },
            character => Ok(RegexNode::Class(CharClass::one(character))),
        }
    }

    fn group(&mut self, at: usize) -> Result<RegexNode, LeafError> {
        let refuse = |what| Err(LeafError::Unsupported { what, at });
        // Look-around: true for look-behind, and whether it is wanted.
        let look = if self.eat("?=") {
            Some((false, true))
        } else if self.eat("?!") {
            Some((false, false))
        } else if self.eat("?<=") {
            Some((true, true))
        } else if self.eat("?<!") {
            Some((true, false))
        } else if self.eat("?:") {
            None
        } else if self.eat("?<") || self.eat("?P<") {
            if self.text[self.at - 2] == 'P' {
                return refuse("a group named as in Python, `(?P<`");
            }
            self.name()?;
            None
        } else if self.peek() == Some('?') {
            return refuse("a group with flags, `(?`");
        } else {
            None
        };
        let node = self.alternatives()?;
        if !self.eat(")") {
            return Err(LeafError::Syntax { message: "a `(` that nothing closes".to_owned(), at });
        }
        Ok(match (look, node) {
            (Some((false, wanted)), node) => RegexNode::Ahead { wanted, node: Box::new(node), at },
            (Some((true, wanted)), node) => RegexNode::Behind { wanted, node: Box::new(node), at },
            (None, node) => node,
        })
    }

    fn name(&mut self) -> Result<(), LeafError> {
        let from = self.at;
        while let Some(character) = self.peek() {
            self.at += 1;
            match character {
                '>' if self.at > from + 1 => return Ok(()),
                '_' | '$' => {}
                character if character.is_alphanumeric() => {}
                _ => break,
            }
        }
        Err(self.wrong("a group whose name is none"))
    }

    /// The number at a place, if there is one, and the place behind it.
    fn number(&self, from: usize) -> (Option<u32>, usize) {
        let digits = self.text[from..].iter().map_while(|digit| digit.to_digit(10));
        let number =
            |value: Option<u32>, digit| Some(value.unwrap_or(0).saturating_mul(10).saturating_add(digit));
        (digits.clone().fold(None, number), from + digits.count())
    }

    /// The counts of `{m,n}` at the current place, and the place behind them.
    fn counts(&self) -> Option<(u32, Option<u32>, usize)> {
        let (min, end) = self.number(self.at + 1);
        let min = min?;
        match self.text.get(end)? {
            '}' => Some((min, Some(min), end + 1)),
            ',' => {
                let (max, end) = self.number(end + 1);
                (self.text.get(end) == Some(&'}')).then_some((min, max, end + 1))
            }
            _ => None,
        }
    }

    fn quantifier(&mut self) -> Result<Option<(u32, Option<u32>)>, LeafError> {
        let counts = match self.peek() {
            Some('*') => Some((0, None, self.at + 1)),
            Some('+') => Some((1, None, self.at + 1)),
            Some('?') => Some((0, Some(1), self.at + 1)),
            Some('{') => self.counts(),
            _ => None,
        };
        let Some((min, max, end)) = counts else { return Ok(None) };
        if max.is_some_and(|max| max < min) {
            return Err(self.wrong("counts in the wrong order"));
        }
        self.at = end;
        self.eat("?");
        if matches!(self.peek(), Some('*' | '+' | '?')) {
            return Err(self.wrong("nothing to repeat"));
        }
        Ok(Some((min, max)))
    }

    /// Reads a class behind its `[`.
    fn class(&mut self) -> Result<CharClass, LeafError> {
        let from = self.at - 1;
        let negated = self.eat("^");
        let mut class = CharClass::default();
        loop {
            let Some(character) = self.peek() else {
                return Err(LeafError::Syntax { message: "a `[` that nothing closes".to_owned(), at: from });
            };
            if character == ']' {
                self.at += 1;
                return Ok(if negated { class.complement() } else { class });
            }
            let first = self.member()?;
            let is_range =
                self.peek() == Some('-') && self.text.get(self.at + 1).is_some_and(|&after| after != ']');
            if !is_range {
                class = class.union(&first.class());
                continue;
            }
            self.at += 1;
            let last = self.member()?;
            match (&first, &last) {
                (ClassMember::Code(first), ClassMember::Code(last)) if first > last => {
                    return Err(self.wrong("a range in the wrong order"));
                }
                (ClassMember::Code(first), ClassMember::Code(last)) => {
                    class = class.union(&of_codes(*first, *last));
                }
                _ => {
                    // A `-` beside a class such as `\w` stands for itself.
                    for part in [first.class(), CharClass::one('-'), last.class()] {
                        class = class.union(&part);
                    }
                }
            }
        }
    }

    fn member(&mut self) -> Result<ClassMember, LeafError> {
        let Some(character) = self.peek() else { return Err(self.wrong("a class that is not closed")) };
        self.at += 1;
        match character {
            '\\' => self.escape(true),
            character => Ok(ClassMember::Code(u32::from(character))),
        }
    }

    /// Reads an escape behind its backslash.
    fn escape(&mut self, in_class: bool) -> Result<ClassMember, LeafError> {
        let Some(character) = self.peek() else { return Err(self.wrong("a `\\` at the end")) };
        let code = |character: char| Ok(ClassMember::Code(u32::from(character)));
        if let Some(class) = named_class(character) {
            self.at += 1;
            return Ok(ClassMember::Class(class));
        }
        match character {
            'p' | 'P' => return self.property(character == 'P').map(ClassMember::Class),
            'k' => return Err(self.unsupported("a back-reference")),
            '1'..='9' if !in_class => return Err(self.unsupported("a back-reference")),
            _ => {}
        }
        self.at += 1;
        match character {
            't' => code('\t'),
            'n' => code('\n'),
            'v' => code('\u{b}'),
            'f' => code('\u{c}'),
            'r' => code('\r'),
            'b' if in_class => code('\u{8}'),
            '0' if !self.peek().is_some_and(|digit| digit.is_ascii_digit()) => code('\0'),
            'c' => match self.peek() {
                Some(letter) if letter.is_ascii_alphabetic() => {
                    self.at += 1;
                    Ok(ClassMember::Code(u32::from(letter) % 32))
                }
                _ => Err(self.wrong("`\\c` without a letter")),
            },
            'x' => self.hex(2).map(ClassMember::Code),
            'u' => self.unicode().map(ClassMember::Code),
            character if character.is_alphanumeric() => {
                self.at -= 1;
                let written = match character {
                    'A' => "; the start of the string is written `^`",
                    'Z' | 'z' => "; the end of the string is written `$`",
                    _ => "",
                };
                Err(self.wrong(format!("there is no escape `\\{character}`{written}")))
            }
            character => code(character),
        }
    }

    fn hex(&mut self, digits: usize) -> Result<u32, LeafError> {
        let mut code = 0;
        for _ in 0..digits {
            let digit = self.peek().and_then(|digit| digit.to_digit(16));
            let Some(digit) = digit else { return Err(self.wrong(format!("not {digits} hex digits"))) };
            code = code * 16 + digit;
            self.at += 1;
        }
        Ok(code)
    }

    /// Reads the rest of `\u`: `XXXX`, with the other half of a surrogate pair if it is the first, or
    /// `{X..}`.
    fn unicode(&mut self) -> Result<u32, LeafError> {
        if !self.eat("{") {
            let first = self.hex(4)?;
            let here = self.at;
            if (0xd800..0xdc00).contains(&first) && self.eat("\\u") {
                match self.hex(4) {
                    Ok(second) if (0xdc00..0xe000).contains(&second) => {
                        return Ok(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00));
                    }
                    _ => self.at = here,
                }
            }
            return Ok(first);
        }
        let mut code = 0_u32;
        let from = self.at;
        while let Some(digit) = self.peek().and_then(|digit| digit.to_digit(16)) {
            code = code.saturating_mul(16).saturating_add(digit);
            self.at += 1;
        }
        if self.at == from || !self.eat("}") || code > 0x10_ffff {
            return Err(self.wrong("not a code point in `\\u{...}`"));
        }
        Ok(code)
    }

    /// Reads the rest of a property: `p{..}`, or `P{..}` for its complement.
    fn property(&mut self, negated: bool) -> Result<CharClass, LeafError> {
        let at = self.at;
        self.at += 1;
        if !self.eat("{") {
            return Err(LeafError::Syntax { message: "a property is written `\\p{...}`".to_owned(), at });
        }
        let name: String = self.text[self.at..].iter().take_while(|&&character| character != '}').collect();
        self.at += name.chars().count();
        let closed = self.eat("}");
        let known = self.properties.get(&name).cloned().or_else(|| property_class(&name));
        if let Some(known) = &known {
            self.properties.entry_ref(&name).or_insert_with(|| known.clone());
        }
        match known.filter(|_| closed) {
            Some(class) => Ok(if negated { class.complement() } else { class }),
            None => Err(LeafError::Syntax { message: format!("there is no property `{name}`"), at }),
        }
    }
}

/// A member of a class: a code point or a class.
enum ClassMember {
    /// A code point, which may be a surrogate.
    Code(u32),
    Class(CharClass),
}

impl ClassMember {
    fn class(&self) -> CharClass {
        match self {
            Self::Code(code) => of_codes(*code, *code),
            Self::Class(class) => class.clone(),
        }
    }
}

/// The class `\w`, which `\b` is defined by too.
pub(super) fn word_characters() -> CharClass {
    CharClass::new([('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')])
}

/// The characters that `.` does not match.
fn line_terminators() -> CharClass {
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
fn named_class(letter: char) -> Option<CharClass> {
    let class = match letter.to_ascii_lowercase() {
        'd' => CharClass::new([('0', '9')]),
        'w' => word_characters(),
        's' => space(),
        _ => return None,
    };
    Some(if letter.is_ascii_uppercase() { class.complement() } else { class })
}

/// The characters among these code points. Surrogates are no characters.
fn of_codes(first: u32, last: u32) -> CharClass {
    let below = |code: u32| char::from_u32(code).or_else(|| char::from_u32(0xd7ff));
    let above = |code: u32| char::from_u32(code).or_else(|| char::from_u32(0xe000));
    match (above(first), below(last)) {
        (Some(first), Some(last)) if first <= last => CharClass::new([(first, last)]),
        _ => CharClass::default(),
    }
}

/// The characters of a Unicode property, as `\p{..}` names it.
fn property_class(name: &str) -> Option<CharClass> {
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

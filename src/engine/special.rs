//! Special tokens in grammars, as byte strings that no text has.
//!
//! A grammar is a language of bytes, and a special token has none. So a grammar that asks for one has the
//! token's name between two bytes `0xFF`, which no UTF-8 text has ([`spelled`]), and is compiled for a
//! vocabulary in which the token has these bytes
//! ([`Vocabulary::with_spelled`](crate::Vocabulary::with_spelled)). So scanner, parser and masks need not
//! know of special tokens, and a name written by other tokens is text, not the token.

/// Stands before and after a name. No UTF-8 text has this byte.
pub const MARK: u8 = 0xFF;

/// Spells the special token with this name.
pub fn spelled(name: &str) -> Vec<u8> {
    [&[MARK], name.as_bytes(), &[MARK]].concat()
}

/// A class of tokens, of which any may stand in one place, as one token of the model and not as text (arXiv
/// 2407.08103, table 1). In a grammar it is a special token that no vocabulary has ([`TokenClass::marked`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TokenClass {
    /// Any token of text.
    Text,
    /// Any token of text without a line feed.
    Paragraph,
    /// Any special token for an image.
    Image,
}

impl TokenClass {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Text, Self::Paragraph, Self::Image];

    /// The class's name in grammars.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "TEXT_TOKEN",
            Self::Paragraph => "PARAGRAPH_TOKEN",
            Self::Image => "IMAGE",
        }
    }

    /// The name of its special token: a group of a regular expression.
    pub fn marked(self) -> &'static str {
        match self {
            Self::Text => "(?P<TEXT_TOKEN>)",
            Self::Paragraph => "(?P<PARAGRAPH_TOKEN>)",
            Self::Image => "(?P<IMAGE>)",
        }
    }

    /// The regular expression of its bytes.
    pub fn expression(self) -> String {
        format!(r"(?-u:\xFF){}(?-u:\xFF)", regex_syntax::escape(self.marked()))
    }
}

/// Tokens of a model that a grammar picks by their numbers or by a name. Any may stand in one place, as one
/// token and not as text. The vocabulary says which tokens these are.
///
/// In a grammar they are a special token that no vocabulary has, as a [`TokenClass`] is
/// ([`marked`](Self::marked)).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Picked {
    /// First and last numbers, ascending, with a gap between each two.
    ranges: Vec<(u32, u32)>,
    /// The name of a token, besides the numbers.
    name: Option<String>,
    /// Are these the tokens that may *not* stand there?
    except: bool,
}

impl Picked {
    /// Picks the tokens with these numbers, first and last of each range, or all except those.
    pub fn numbers(mut ranges: Vec<(u32, u32)>, except: bool) -> Self {
        ranges.sort_unstable();
        let mut joined: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
        for (first, last) in ranges {
            match joined.last_mut() {
                Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
                _ => joined.push((first, last)),
            }
        }
        Self { ranges: joined, name: None, except }
    }

    /// Picks all tokens except the one with this name.
    pub fn all_but(name: &str) -> Self {
        Self { ranges: Vec::new(), name: Some(name.to_owned()), except: true }
    }

    /// Picks all other tokens.
    pub fn negated(self) -> Self {
        Self { except: !self.except, ..self }
    }

    /// First and last numbers, ascending.
    pub fn ranges(&self) -> &[(u32, u32)] {
        &self.ranges
    }

    /// The name of a token, besides the numbers.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Are they all tokens except those with the numbers and the name?
    pub fn is_except(&self) -> bool {
        self.except
    }

    /// The name of its special token, as GBNF writes it: `<[12-14,20]>` or `!<think>`; all tokens are
    /// `<[*]>`, as in Lark.
    pub fn marked(&self) -> String {
        let not = if self.except { "!" } else { "" };
        match &self.name {
            Some(name) => format!("{not}{name}"),
            None if self.ranges.is_empty() && self.except => "<[*]>".to_owned(),
            None => {
                let range = |&(first, last): &(u32, u32)| match first == last {
                    true => first.to_string(),
                    false => format!("{first}-{last}"),
                };
                format!("{not}<[{}]>", self.ranges.iter().map(range).collect::<Vec<_>>().join(","))
            }
        }
    }
}

/// Removes every occurrence of these spelled names.
pub fn without(bytes: &[u8], names: &[Vec<u8>]) -> Vec<u8> {
    let mut left = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&first, tail)) = rest.split_first() {
        match names.iter().find(|name| first == MARK && rest.starts_with(name)) {
            Some(name) => rest = &rest[name.len()..],
            None => {
                left.push(first);
                rest = tail;
            }
        }
    }
    left
}

/// Finds the first of these names in a text: its offset and the name, the longest of those that begin there.
/// Linear in the text, for each name.
pub fn first<'n>(text: &[u8], names: &'n [String]) -> Option<(usize, &'n str)> {
    (0..if names.is_empty() { 0 } else { text.len() }).find_map(|start| {
        let begins = |name: &&String| !name.is_empty() && text[start..].starts_with(name.as_bytes());
        names.iter().filter(begins).max_by_key(|name| name.len()).map(|name| (start, name.as_str()))
    })
}

/// Spells a text in which these names stand for special tokens, as bytes of the grammar. Linear as [`first`].
pub fn spell(text: &[u8], names: &[String]) -> Vec<u8> {
    let mut spelt = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((start, name)) = first(rest, names) {
        spelt.extend_from_slice(&rest[..start]);
        spelt.extend(spelled(name));
        rest = &rest[start + name.len()..];
    }
    spelt.extend_from_slice(rest);
    spelt
}

/// Shows bytes of a grammar as text, with special tokens by their names.
pub fn shown(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().copied().filter(|&byte| byte != MARK).collect()
}

/// A piece of bytes of a grammar.
#[cfg(feature = "tokenizers")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpecialPiece<'b> {
    /// Text up to the next special token, or to the end.
    Text(&'b [u8]),
    /// A special token, by name.
    Special(&'b [u8]),
    /// The beginning of a special token, cut off.
    Cut,
}

/// Iterates over the pieces of these bytes.
#[cfg(feature = "tokenizers")]
pub fn pieces(bytes: &[u8]) -> impl Iterator<Item = SpecialPiece<'_>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (&first, inner) = rest.split_first()?;
        let piece = if first != MARK {
            let end = rest.iter().position(|&byte| byte == MARK).unwrap_or(rest.len());
            let (text, more) = rest.split_at(end);
            rest = more;
            SpecialPiece::Text(text)
        } else if let Some(end) = inner.iter().position(|&byte| byte == MARK) {
            rest = &inner[end + 1..];
            SpecialPiece::Special(&inner[..end])
        } else {
            rest = &[];
            SpecialPiece::Cut
        };
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_special_tokens_are_marked_and_unmarked() {
        let names = ["<|a|>", "<|a|>b", ""].map(String::from);
        let spelt = spell(b"x<|a|>b<|a|>c<|", &names);
        assert_eq!(spelt, b"x\xFF<|a|>b\xFF\xFF<|a|>\xFFc<|");
        let pieces: Vec<_> = pieces(&spelt).collect();
        assert_eq!(shown(&spelt), b"x<|a|>b<|a|>c<|");
        let (text, special) = (SpecialPiece::Text, SpecialPiece::Special);
        assert_eq!(pieces, [text(b"x"), special(b"<|a|>b"), special(b"<|a|>"), text(b"c<|")]);
    }

    #[test]
    fn picked_tokens_have_one_canonical_name() {
        let picked = |ranges: &[(u32, u32)], except| Picked::numbers(ranges.to_vec(), except).marked();
        assert_eq!(picked(&[(20, 20), (12, 14)], false), "<[12-14,20]>");
        assert_eq!(picked(&[(15, 15), (12, 14), (13, 20), (22, 22)], true), "!<[12-20,22]>");
        assert_eq!(picked(&[(0, u32::MAX), (7, 7), (u32::MAX, u32::MAX)], false), "<[0-4294967295]>");
        assert_eq!(picked(&[], true), "<[*]>");
        assert_eq!(Picked::all_but("<think>").marked(), "!<think>");
    }

    #[test]
    fn a_name_that_is_cut_off_is_no_token() {
        let found: Vec<_> = pieces(b"x\xFF<|a").collect();
        assert_eq!(found, [SpecialPiece::Text(b"x"), SpecialPiece::Cut]);
        assert_eq!(pieces(b"").next(), None);
    }
}

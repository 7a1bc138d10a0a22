//! Guesses the tokens of text that the grammar forces but for its spelling, for grammars of which nothing was
//! learnt before.
//!
//! The text is forced, never its tokens: the same bytes can be split in many ways, and the choice is the
//! model's. So forced text is split as the tokenizer would, and proposed like anything else. It is split
//! together with the text before it, so that a token which begins there ends where it would; and its last
//! token is a weaker guess, since it may have grown into what comes after.
//!
//! Text that a grammar leaves no choice about but for its spelling is the template of a JSON Schema. A byte
//! is strictly forced if it alone may follow. In JSON hardly any is: white space may stand between the parts
//! of a value, and a character of a key may be written as an escape. Writers use escapes only where they
//! must, and white space as before. So a backslash is skipped if one other byte may follow, and white space
//! is guessed to be the last run after the same byte. Both are guesses, like all that proposers say.

use std::collections::{HashMap, HashSet};

use super::calibration::Rate;
use super::draft::{DraftLength, Drafter};
use super::propose::{Guess, Propose, Seen, Site};
use crate::vocab::{Tokenizer, Vocabulary};
use crate::{Constraint, Context, ids::TokenId};
use domino_engine::special::{self, SpecialPiece};

/// Greatest number of bytes of forced text looked ahead.
const AHEAD: usize = 128;
/// Number of bytes before the forced text that are split with it.
const BEFORE: usize = 24;
/// Number of bytes of the text before from which habits of spelling are taken.
const REMEMBERED: usize = 1024;
/// Number of places remembered that are known to force nothing.
const PLACES: usize = 10_000;

/// Proposes the canonical tokens of forced text. Text counts as forced also where it could be spelled
/// otherwise: with white space, which is guessed to be as it was before, and with escapes, which are guessed
/// not to come. Hardly a byte of JSON is forced otherwise. With the feature `tokenizers`.
#[derive(Debug, Clone)]
pub struct ForcedText {
    tokenizer: Tokenizer,
    vocabulary: Vocabulary,
    /// The plan: the length of the sequence it is for, and the tokens that should follow.
    plan: ForcedPlan,
    /// Places that force nothing.
    free: HashSet<Context>,
    /// Rates of inner and of last tokens: of strictly forced text, and of text with other spellings.
    rates: [[Rate; 2]; 2],
}

#[derive(Debug, Clone, Default)]
struct ForcedPlan {
    start: usize,
    tokens: Vec<TokenId>,
    /// Could the text be spelled otherwise?
    loose: bool,
}

impl ForcedPlan {
    /// Returns the next token of the plan, and whether it is the last, if these tokens followed the plan.
    fn next(&self, tokens: &[TokenId]) -> Option<(TokenId, bool)> {
        let gone = tokens.get(self.start..)?;
        let rest = self.tokens.strip_prefix(gone)?;
        rest.first().map(|&token| (token, rest.len() == 1))
    }
}

impl Drafter {
    /// Drafts of [text that the grammar forces](ForcedText), as long as pays: for grammars of which nothing
    /// was learnt before. The tokenizer must be that of the vocabulary. With the feature `tokenizers`.
    #[must_use]
    pub fn of_forced_text(tokenizer: Tokenizer, vocabulary: Vocabulary) -> Self {
        Self::new(Box::new(ForcedText::new(tokenizer, vocabulary)), DraftLength::Auto)
    }
}

impl ForcedText {
    /// Creates a proposer that splits as `tokenizer` does, which must be that of the vocabulary.
    #[must_use]
    pub fn new(tokenizer: Tokenizer, vocabulary: Vocabulary) -> Self {
        let rates = [[0.95, 0.5], [0.8, 0.4]].map(|rates| rates.map(Rate::expecting));
        Self { tokenizer, vocabulary, plan: ForcedPlan::default(), free: HashSet::new(), rates }
    }

    /// Returns the text that must come at a site but for its spelling, up to 128 bytes. 256 lookups a byte.
    #[must_use]
    pub fn text(&self, site: &Site<'_>) -> Vec<u8> {
        self.forced(site).bytes
    }

    /// Counts the bytes of a text of this grammar that are forced but for their spelling. The constraint
    /// stands at the beginning of the text. 256 lookups a byte; `None` if the text leaves the language, or a
    /// budget is used up.
    #[must_use]
    pub fn count(constraint: &Constraint, text: &[u8]) -> Option<usize> {
        Template::count(constraint.fork(), text)
    }

    /// Returns the token that should come, and whether it is the last forced one.
    fn next(&mut self, site: &Site<'_>) -> Option<(TokenId, bool)> {
        if !site.is_constrained() {
            return None;
        }
        if let Some(next) = self.plan.next(site.tokens()) {
            return Some(next);
        }
        let place = site.context();
        if self.free.contains(&place) {
            return None;
        }
        let Template { bytes, strict } = self.forced(site);
        if bytes.is_empty() {
            if self.free.len() < PLACES {
                self.free.insert(place);
            }
            return None;
        }
        let tokens = self.split(site.tokens(), &bytes);
        self.plan = ForcedPlan { start: site.tokens().len(), tokens, loose: !strict };
        self.plan.next(site.tokens())
    }

    /// Reads the forced text at a site; none without a grammar.
    fn forced(&self, site: &Site<'_>) -> Template {
        let before = || self.last_bytes(site.tokens(), REMEMBERED);
        site.fork().map(|ahead| Template::read(ahead, &before(), AHEAD)).unwrap_or_default()
    }

    /// Returns the last bytes that these tokens spell, back to a token that spells nothing: at most `most`,
    /// whole tokens.
    fn last_bytes(&self, tokens: &[TokenId], most: usize) -> Vec<u8> {
        let mut first = tokens.len();
        let mut length = 0;
        for (index, &token) in tokens.iter().enumerate().rev() {
            let bytes = self.vocabulary.bytes(token).map_or(0, <[u8]>::len);
            if bytes == 0 || length + bytes > most {
                break;
            }
            (first, length) = (index, length + bytes);
        }
        self.vocabulary.concat(&tokens[first..])
    }

    /// Returns the tokens of `forced` after `tokens`, as the tokenizer splits them together; none if a token
    /// would begin before and end inside.
    fn split(&self, tokens: &[TokenId], forced: &[u8]) -> Vec<TokenId> {
        let forced = match special::pieces(forced).next() {
            Some(SpecialPiece::Text(text)) => text,
            Some(SpecialPiece::Special(name)) => {
                let special = self.vocabulary.special_tokens().find(|(_, one)| one.as_bytes() == name);
                let token = special.map(|(id, _)| id).or_else(|| self.vocabulary.token_of(name));
                return token.into_iter().collect();
            }
            Some(SpecialPiece::Cut) | None => return Vec::new(),
        };
        let before = self.last_bytes(tokens, BEFORE);
        let text = [&before[..], forced].concat();
        // What is forced may be cut in the middle of a character, and so may what is before.
        let text = String::from_utf8_lossy(&text);
        let Ok(split) = self.tokenizer.encode(&text, false) else { return Vec::new() };
        let spelt = |tokens: &[TokenId]| self.vocabulary.concat(tokens);
        let whole = spelt(&split);
        // Some tokenizers put a space before a text.
        let Some(extra) = whole.len().checked_sub(text.len()) else { return Vec::new() };
        let mut at = 0;
        let first = split.iter().position(|&token| {
            let here = at == extra + before.len();
            at += self.vocabulary.bytes(token).map_or(0, <[u8]>::len);
            here
        });
        let rest = first.map(|first| split[first..].to_vec()).unwrap_or_default();
        if forced.starts_with(&spelt(&rest)) { rest } else { Vec::new() }
    }
}

impl Propose for ForcedText {
    fn guess(&mut self, site: &mut Site<'_>) -> Option<Guess> {
        if site.is_thinking() {
            return None;
        }
        let (token, last) = self.next(site)?;
        let rate = self.rates[usize::from(self.plan.loose)][usize::from(last)];
        Some(Guess { token, acceptance: rate.value() })
    }

    fn observe(&mut self, site: &mut Site<'_>, seen: Seen<'_>) {
        let Some((token, last)) = self.plan.next(site.tokens()) else { return };
        self.rates[usize::from(self.plan.loose)][usize::from(last)].note(token == seen.token);
    }

    fn learns(&self) -> bool {
        true
    }

    fn may_miss(&self) -> bool {
        true
    }
}

/// Bytes after which white space is guessed.
const OPENERS: &[u8] = b"{[,:";

/// Forced text, and whether nothing else could come.
#[derive(Debug, Default)]
pub(super) struct Template {
    pub(super) bytes: Vec<u8>,
    /// Was there no byte at which another spelling was skipped?
    pub(super) strict: bool,
}

/// The white space that a text has used: the last run after each of [`OPENERS`], if any followed it.
struct Habits<'t>(HashMap<u8, &'t [u8]>);

impl<'t> Habits<'t> {
    /// Collects the habits of a text. Linear.
    fn of(text: &'t [u8]) -> Self {
        let mut last = HashMap::new();
        for (at, byte) in text.iter().enumerate().filter(|(_, byte)| OPENERS.contains(byte)) {
            let rest = &text[at + 1..];
            let run = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            if run < rest.len() {
                last.insert(*byte, &rest[..run]);
            }
        }
        Self(last)
    }

    fn after(&self, byte: Option<u8>) -> &'t [u8] {
        byte.and_then(|byte| self.0.get(&byte)).copied().unwrap_or_default()
    }
}

impl Template {
    /// Reads on after `before` from the place of `ahead`, up to about `most` bytes. 256 lookups a byte.
    pub(super) fn read(mut ahead: Constraint, before: &[u8], most: usize) -> Self {
        let habits = Habits::of(before);
        let mut written = before.to_vec();
        let mut strict = true;
        while written.len() < before.len() + most && !ahead.is_complete() {
            let Ok(next) = ahead.next_bytes() else { break };
            let only = without_choice(&next, &written);
            // In a text that is free a blank after a comma is nobody's template.
            let in_template = only.is_some() || written.len() > before.len();
            let run = if in_template && next.len() > 1 { habits.after(written.last().copied()) } else { &[] };
            let mut spaced = run.iter().take_while(|byte| ahead.advance_bytes(&[**byte]) == Ok(1)).count();
            written.extend_from_slice(&run[..spaced]);
            if spaced == 0
                && let Some(byte) = only
                && ahead.advance_bytes(&[byte]) == Ok(1)
            {
                written.push(byte);
                spaced = 1;
            }
            if spaced == 0 {
                break;
            }
            strict &= next.len() == 1;
        }
        Self { bytes: written.split_off(before.len()), strict }
    }

    /// Counts the bytes of `text`, from the place of `ahead` on, that leave no choice but that of their
    /// spelling. `None` if the text leaves the language or a budget is used up. 256 lookups a byte.
    pub(super) fn count(mut ahead: Constraint, text: &[u8]) -> Option<usize> {
        let mut count = 0;
        for (at, &byte) in text.iter().enumerate() {
            if !ahead.is_complete() {
                let next = ahead.next_bytes().ok()?;
                count += usize::from(without_choice(&next, &text[..at]) == Some(byte));
            }
            (ahead.advance_bytes(&[byte]) == Ok(1)).then_some(())?;
        }
        Some(count)
    }
}

/// Returns the only one of these bytes that is more than spelling after `before`.
fn without_choice(next: &[u8], before: &[u8]) -> Option<u8> {
    // In a string a blank is a character, and neither tabs nor line breaks can stand there.
    let between = next.iter().any(|byte| matches!(byte, b'\t' | b'\n' | b'\r')) || indents(before);
    let spelling = |byte: u8| byte == b'\\' || between && byte.is_ascii_whitespace();
    let mut solid = next.iter().copied().filter(|&byte| next.len() == 1 || !spelling(byte));
    solid.next().filter(|_| solid.next().is_none())
}

/// Is the line that a text ends in empty but for blanks? Then a blank after it is indentation.
fn indents(text: &[u8]) -> bool {
    text.iter().rev().find(|byte| **byte != b' ') == Some(&b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_before_a_forced_text_are_of_whole_tokens() {
        const JSON: &str = include_str!("../../tests/fixtures/byte_level.json");
        let tokenizer = Tokenizer::from_tokenizer_json(JSON).unwrap();
        let vocabulary = Vocabulary::from_tokenizer_json(JSON).unwrap();
        let name = "<|begin|>";
        let (begin, _) = vocabulary.special_tokens().find(|&(_, special)| special == name).unwrap();
        let mut tokens = tokenizer.encode("{", false).unwrap();
        tokens.push(begin);
        tokens.extend(tokenizer.encode("true null", false).unwrap());
        let forced = ForcedText::new(tokenizer, vocabulary);
        let last = |most: usize| String::from_utf8(forced.last_bytes(&tokens, most)).unwrap();
        // Not past what spells nothing, and not a part of a token.
        assert_eq!(last(100), "true null");
        assert_eq!(
            [last(9), last(8), last(5), last(4), last(3)],
            ["true null", " null", " null", "null", ""]
        );
    }
}

#[cfg(test)]
mod template_tests {
    use super::*;
    use crate::{Compiler, Grammar, Limits, Syntax, TokenId, Vocabulary};

    const SCHEMA: &str = r#"{
        "type": "object", "required": ["name", "kind"], "additionalProperties": false,
        "properties": {"name": {"type": "string"}, "kind": {"enum": ["apple tree", "apple"]}}
    }"#;

    fn constraint(syntax: Syntax, text: &str) -> Constraint {
        let bytes = (0..=u8::MAX).map(|byte| (TokenId::new(u32::from(byte)), [byte]));
        let vocabulary = bytes.fold(Vocabulary::builder(), |builder, (id, byte)| builder.token(id, byte));
        let vocabulary = vocabulary.end_of_text(TokenId::new(256)).build().unwrap();
        let grammar = Grammar::parse(syntax, text, &Limits::default()).unwrap();
        Compiler::new(vocabulary).compile(&grammar).unwrap().constraint()
    }

    /// Returns the text that follows `text`, which comes after a prompt.
    fn after(constraint: &Constraint, prompt: &str, text: &str) -> (String, bool) {
        let mut here = constraint.fork();
        assert_eq!(here.advance_bytes(text.as_bytes()), Ok(text.len()), "{text}");
        let found = Template::read(here, format!("{prompt}{text}").as_bytes(), 100);
        (String::from_utf8(found.bytes).unwrap(), found.strict)
    }

    #[test]
    fn templates_are_spelled_as_the_text_before_them() {
        let schema = constraint(Syntax::JsonSchema, SCHEMA);
        let loose = |text: &str| (text.to_owned(), false);
        assert_eq!(after(&schema, "", ""), loose("{\"name\":\""));
        assert_eq!(after(&schema, "", "{\"na"), loose("me\":\""));
        assert_eq!(after(&schema, "{\n  \"a\": [1, 2]}", ""), loose("{\n  \"name\": \""));
        // What the text itself does goes before what the prompt did.
        assert_eq!(after(&schema, "[1, {\"a\": 2}]", "{\"name\":\"a\","), loose(" \"kind\":\"apple"));
        assert_eq!(after(&schema, "", "{ \"name\": \"a\","), loose("\"kind\": \"apple"));
        // A text that is free is nobody's template, whatever it has.
        assert_eq!(after(&schema, "a, b", "{\"name\": \"a,").0, "");
        let (_, strict) = after(&constraint(Syntax::Gbnf, "root ::= \"forced\" [a-z]"), "", "");
        assert!(strict);
    }

    #[test]
    fn bytes_without_a_choice_are_counted() {
        let schema = constraint(Syntax::JsonSchema, SCHEMA);
        let count = |text: &str| Template::count(schema.fork(), text.as_bytes());
        // All but the name and its end, and the end of the apple, which may be a tree.
        let text = "{\"name\":\"abc\",\"kind\":\"apple\"}";
        assert_eq!(count(text), Some(text.len() - "abc\"".len() - 1));
        let spaced = text.replace(':', ": ");
        assert_eq!(count(&spaced), count(text), "white space is no template");
        assert_eq!(count("{}"), None);
    }
}

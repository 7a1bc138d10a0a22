//! Thoughts before a text: what a model writes between two marks before it answers.
//!
//! A grammar may say that its texts come after a thought ([`Grammar::after_thought`]). A thought is any text
//! up to the first closing mark, whatever tokens spell the mark; behind it may be two line feeds, as chat
//! templates have them, and then the grammar's text begins. Rules about whole texts, such as that no key
//! comes twice, are about the text behind the thought: readers of it skip the thought by [`ThoughtReader`].

use std::{borrow::Cow, sync::Arc};

use regex_syntax::hir::Hir;

use super::{Expr, Grammar, Pattern, regular::Language};
use crate::{
    ids::ExprId,
    limits::{LimitExceeded, Limits},
    special,
};

/// The place of thinking in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Reasoning {
    /// The answer comes at once.
    #[default]
    Off,
    /// A thought may come first.
    Optional,
    /// The answer begins inside a thought, which the prompt has opened.
    Open,
    /// A thought comes first.
    Required,
}

/// The names of [`Reasoning`]s in flags and requests.
const NAMES: [(Reasoning, &str); 4] = [
    (Reasoning::Off, "off"),
    (Reasoning::Optional, "optional"),
    (Reasoning::Open, "open"),
    (Reasoning::Required, "required"),
];

impl Reasoning {
    /// All of them, with their names.
    pub fn all() -> impl Iterator<Item = (Self, &'static str)> {
        NAMES.into_iter()
    }

    /// Finds the one of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        NAMES.into_iter().find(|&(_, known)| known == name).map(|(reasoning, _)| reasoning)
    }

    /// Returns its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(known, _)| *known == self).map_or("", |(_, name)| name)
    }
}

/// The marks around the thoughts of a family of models, in which special tokens stand by their names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ThoughtMarks {
    open: Cow<'static, str>,
    close: Cow<'static, str>,
    /// The text before an answer without a thought.
    plain: Cow<'static, str>,
}

/// The marks that are known: of Qwen, DeepSeek, SmolLM and most others; Magistral; Gemma 4; Command A;
/// gpt-oss (Harmony), whose thoughts are messages on a channel of their own.
const KNOWN: [ThoughtMarks; 5] = [
    ThoughtMarks::of_family("<|channel|>analysis<|message|>", HARMONY_CLOSE, "<|channel|>final<|message|>"),
    ThoughtMarks::of_family("<|channel>thought\n", "<channel|>", ""),
    ThoughtMarks::of_family("[THINK]", "[/THINK]", ""),
    ThoughtMarks::of_family("<|START_THINKING|>", "<|END_THINKING|>", ""),
    ThoughtMarks::of_family("<think>", "</think>", ""),
];

/// Most bytes of a mark, as people may name any: those of models have up to 52.
const LONGEST_MARK: usize = 1024;

const HARMONY_CLOSE: &str = "<|end|><|start|>assistant<|channel|>final<|message|>";

impl ThoughtMarks {
    const fn of_family(open: &'static str, close: &'static str, plain: &'static str) -> Self {
        Self { open: Cow::Borrowed(open), close: Cow::Borrowed(close), plain: Cow::Borrowed(plain) }
    }

    /// Makes marks. Special tokens stand in them by their names. `None` if one is empty, or has more than
    /// 1,024 bytes.
    #[must_use]
    pub fn new(open: &str, close: &str) -> Option<Self> {
        let owned = |mark: &str| Cow::Owned(mark.to_owned());
        let fits = |mark: &str| (1..=LONGEST_MARK).contains(&mark.len());
        (fits(open) && fits(close)).then(|| Self {
            open: owned(open),
            close: owned(close),
            plain: Cow::Borrowed(""),
        })
    }

    /// The marks that a chat template shows its model; `None` if it shows none. Linear.
    #[must_use]
    pub fn of_chat_template(template: &str) -> Option<Self> {
        // A template may write only the end, behind thoughts of earlier answers. `<|channel|>analysis` may be
        // put together from parts.
        let shows = |marks: &&Self| match &*marks.close {
            HARMONY_CLOSE => template.contains("<|channel|>") && template.contains("analysis"),
            close => template.contains(close),
        };
        KNOWN.iter().find(shows).cloned()
    }

    /// The mark before a thought.
    #[must_use]
    pub fn open(&self) -> &str {
        &self.open
    }

    /// The mark behind a thought.
    #[must_use]
    pub fn close(&self) -> &str {
        &self.close
    }

    /// The text before an answer without a thought; mostly none.
    #[must_use]
    pub fn plain(&self) -> &str {
        &self.plain
    }

    /// The place of a thought in the answer to a prompt that ends so, of a model that may think: inside of it
    /// where the prompt has opened one, nowhere where it has closed one, else perhaps at the beginning.
    #[must_use]
    pub fn behind(&self, prompt: &[u8]) -> Reasoning {
        let open = self.open.trim_ascii_end().as_bytes();
        let prompt = prompt.trim_ascii_end();
        match () {
            () if prompt.ends_with(open) => Reasoning::Open,
            () if prompt.ends_with(self.close.as_bytes()) => Reasoning::Off,
            () => Reasoning::Optional,
        }
    }
}

impl Default for ThoughtMarks {
    /// `<think>` and `</think>`.
    fn default() -> Self {
        let [.., usual] = KNOWN;
        usual
    }
}

/// A thought before a text: its marks, as bytes of a grammar, and its place.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Thought {
    marks: ThoughtMarks,
    reasoning: Reasoning,
    /// The marks with special tokens spelled out ([`special`]).
    open: Box<[u8]>,
    close: Box<[u8]>,
    plain: Box<[u8]>,
    /// Of each beginning of the closing mark the length of the longest shorter one with which it ends.
    borders: Box<[usize]>,
    /// The special tokens in them.
    specials: Vec<String>,
}

impl Thought {
    /// Makes the thought of a model that has these special tokens. What is in the marks of these names is the
    /// token, and all else is text, however it is spelled.
    #[must_use]
    pub fn new<'n>(
        marks: &ThoughtMarks,
        reasoning: Reasoning,
        special_tokens: impl IntoIterator<Item = &'n str>,
    ) -> Self {
        let in_marks = |name: &&str| {
            !name.is_empty()
                && [&marks.open, &marks.close, &marks.plain].iter().any(|mark| mark.contains(*name))
        };
        let specials: Vec<String> = special_tokens.into_iter().filter(in_marks).map(str::to_owned).collect();
        let spelled = |mark: &str| special::spell(mark.as_bytes(), &specials).into_boxed_slice();
        let (open, close, plain) = (spelled(&marks.open), spelled(&marks.close), spelled(&marks.plain));
        let borders = borders(&close);
        Self { open, close, plain, borders, specials, reasoning, marks: marks.clone() }
    }

    /// Returns its marks.
    #[must_use]
    pub fn marks(&self) -> &ThoughtMarks {
        &self.marks
    }

    /// Returns its place.
    #[must_use]
    pub fn reasoning(&self) -> Reasoning {
        self.reasoning
    }

    /// Lists the special tokens in its marks.
    pub(crate) fn specials(&self) -> &[String] {
        &self.specials
    }

    /// Returns its marks as bytes of the grammar.
    #[cfg(feature = "oracle")]
    pub(crate) fn spelled(&self) -> (&[u8], &[u8]) {
        (&self.open, &self.close)
    }

    /// Takes a text apart, in which special tokens stand by their names: the thought without its marks and
    /// the line feeds next to them, and what comes behind. `length` is the length of the thought with its
    /// marks, in bytes, as [`Constraint::thought_bytes`](crate::Constraint::thought_bytes) tells.
    #[must_use]
    pub fn split<'t>(&self, text: &'t [u8], length: usize) -> (&'t [u8], &'t [u8]) {
        let (thought, mut content) = text.split_at(length.min(text.len()));
        let begins = |mark: &str| mark.as_bytes().starts_with(thought);
        let mut inside = match thought.strip_prefix(self.marks.open.as_bytes()) {
            _ if self.reasoning == Reasoning::Open => thought,
            Some(inside) => inside,
            None if begins(&self.marks.open) || begins(&self.marks.plain) => &[],
            // Special tokens are not always shown.
            None => thought,
        };
        inside = inside.strip_suffix(self.marks.close.as_bytes()).unwrap_or(inside);
        while let Some(rest) = inside.strip_prefix(b"\n") {
            inside = rest;
        }
        while let Some(rest) = inside.strip_suffix(b"\n") {
            inside = rest;
        }
        for _ in 0..LINE_FEEDS {
            content = content.strip_prefix(b"\n").unwrap_or(content);
        }
        (inside, content)
    }
}

/// Line feeds that may stand behind a thought: those of Qwen's and DeepSeek's chat templates.
const LINE_FEEDS: usize = 2;

impl Grammar {
    /// The grammar of the same texts behind a thought. Linear in the grammar, and in the marks.
    ///
    /// # Errors
    /// If a limit is met.
    ///
    /// # Examples
    /// ```
    /// use domino::grammar::{Reasoning, Thought, ThoughtMarks};
    /// use domino::{Compiler, Grammar, Limits, Syntax, TokenId, Vocabulary};
    ///
    /// let limits = Limits::default();
    /// let vocabulary = Vocabulary::builder().all_bytes().end_of_text(TokenId::new(256)).build()?;
    /// let thought = Thought::new(&ThoughtMarks::default(), Reasoning::Optional, []);
    /// let number = Grammar::parse(Syntax::Regex, "[0-9]+", &limits)?.after_thought(&thought, &limits)?;
    /// let mut constraint = Compiler::new(vocabulary).compile(&number)?.constraint();
    /// assert_eq!(constraint.fork().advance_bytes(b"7")?, 1);
    /// assert_eq!(constraint.advance_bytes(b"<think>two and five</think>7")?, 28);
    /// assert_eq!(constraint.advance_bytes(b"x")?, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn after_thought(&self, thought: &Thought, limits: &Limits) -> Result<Self, LimitExceeded> {
        let mut grammar = self.clone();
        let text = grammar.push_expr(Expr::Rule(self.root()))?;
        if thought.reasoning == Reasoning::Off && thought.plain.is_empty() {
            return Ok(grammar);
        }
        thought.specials.iter().for_each(|name| grammar.ask_for(name));
        let plain = grammar.mark(&thought.marks.plain, &thought.specials)?;
        let mut first = match thought.reasoning {
            Reasoning::Off => plain.clone(),
            Reasoning::Open => Vec::new(),
            Reasoning::Optional | Reasoning::Required => {
                grammar.mark(&thought.marks.open, &thought.specials)?
            }
        };
        if thought.reasoning != Reasoning::Off {
            first.extend(grammar.inside(thought, limits)?);
            let feeds = grammar.push_expr(Expr::Pattern(Pattern::literal(b"\n")))?;
            let most = u32::try_from(LINE_FEEDS).ok();
            first.push(grammar.push_expr(Expr::Repeat { part: feeds, min: 0, max: most })?);
        }
        if thought.reasoning == Reasoning::Optional {
            let ways = [first, plain].map(|way| grammar.push_expr(Expr::Sequence(way)));
            let ways = ways.into_iter().collect::<Result<_, _>>()?;
            first = vec![grammar.push_expr(Expr::Alternatives(ways))?];
        }
        first.push(text);
        grammar.begin_with(first)?;
        grammar.think(thought);
        Ok(grammar)
    }

    /// Adds the inside of a thought and its closing mark. A mark that holds a special token ends the first
    /// text before that token, since no text holds one: nothing need be searched for.
    fn inside(&mut self, thought: &Thought, limits: &Limits) -> Result<Vec<ExprId>, LimitExceeded> {
        let any = Language::texts(limits)?;
        if thought.close.contains(&special::MARK) {
            let mut parts = vec![self.push_expr(Expr::Pattern(Pattern::automaton(any.automaton(limits)?)))?];
            parts.extend(self.mark(&thought.marks.close, &thought.specials)?);
            return Ok(parts);
        }
        let mark = Language::of(&Hir::literal(thought.close.clone()), limits)?;
        let inside = Language::sequence(&[any, mark], limits)?.shortest().automaton(limits)?;
        Ok(vec![self.push_expr(Expr::Pattern(Pattern::automaton(inside)))?])
    }

    /// Adds a mark: its special tokens, and the texts between them.
    fn mark(&mut self, mark: &str, specials: &[String]) -> Result<Vec<ExprId>, LimitExceeded> {
        let (mut parts, mut rest) = (Vec::new(), mark.as_bytes());
        while !rest.is_empty() {
            let special = special::first(rest, specials).filter(|&(start, _)| start == 0);
            let (bytes, length) = match special {
                Some((_, name)) => (special::spelled(name), name.len()),
                None => {
                    let end = special::first(rest, specials).map_or(rest.len(), |(start, _)| start);
                    (rest[..end].to_vec(), end)
                }
            };
            parts.push(self.push_expr(Expr::Pattern(Pattern::literal(&bytes)))?);
            rest = &rest[length..];
        }
        Ok(parts)
    }
}

/// The place of a text with regard to its thought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ThoughtPlace {
    /// The text is at its beginning, where a thought may be opened.
    Before,
    /// The text is inside of the thought.
    Inside,
    /// The text is behind it, or there is none.
    Behind,
}

/// The part of a text at which a [`ThoughtReader`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum ThoughtPart {
    /// The opening mark, or what stands in its place.
    Open,
    /// The text before an answer without a thought.
    Plain,
    Inside,
    Behind,
}

/// A reader of a text up to the end of its thought, by the algorithm of Knuth, Morris and Pratt.
#[derive(Debug, Clone)]
pub(crate) struct ThoughtReader {
    thought: Arc<Thought>,
    /// Number of bytes of the mark at hand that have just come.
    matched: usize,
    reading: ThoughtPart,
}

impl ThoughtReader {
    /// A reader at the beginning of a text.
    pub(crate) fn new(thought: Arc<Thought>) -> Self {
        let reading = match thought.reasoning {
            Reasoning::Off if thought.plain.is_empty() => ThoughtPart::Behind,
            Reasoning::Off => ThoughtPart::Plain,
            Reasoning::Open => ThoughtPart::Inside,
            Reasoning::Optional | Reasoning::Required => ThoughtPart::Open,
        };
        Self { thought, matched: 0, reading }
    }

    pub(crate) fn place(&self) -> ThoughtPlace {
        match self.reading {
            ThoughtPart::Open | ThoughtPart::Plain => ThoughtPlace::Before,
            ThoughtPart::Inside => ThoughtPlace::Inside,
            ThoughtPart::Behind => ThoughtPlace::Behind,
        }
    }

    pub(crate) fn thought(&self) -> &Arc<Thought> {
        &self.thought
    }

    /// Reads a text that goes on so. Returns what of it is behind the thought. That may begin before these
    /// bytes, where it began like a mark.
    pub(crate) fn read<'b>(&mut self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        let mut rest = bytes;
        while let Some((&byte, behind)) = rest.split_first() {
            let next = match self.reading {
                ThoughtPart::Behind => break,
                ThoughtPart::Open if self.thought.open[self.matched] != byte => {
                    if !self.thought.plain.is_empty() {
                        // The two begin alike.
                        self.reading = ThoughtPart::Plain;
                        continue;
                    }
                    self.reading = ThoughtPart::Behind;
                    return match &self.thought.open[..std::mem::take(&mut self.matched)] {
                        [] => Cow::Borrowed(rest),
                        begun => Cow::Owned([begun, rest].concat()),
                    };
                }
                ThoughtPart::Open => {
                    self.matched += 1;
                    (self.thought.open.len(), ThoughtPart::Inside)
                }
                ThoughtPart::Plain => {
                    self.matched += 1;
                    (self.thought.plain.len(), ThoughtPart::Behind)
                }
                ThoughtPart::Inside => {
                    self.matched = self.thought.matched_after(self.matched, byte);
                    (self.thought.close.len(), ThoughtPart::Behind)
                }
            };
            if self.matched == next.0 {
                (self.reading, self.matched) = (next.1, 0);
            }
            rest = behind;
        }
        Cow::Borrowed(rest)
    }

    /// Returns the part of the closing mark that has come; nothing outside of a thought.
    pub(crate) fn begun_mark(&self) -> &[u8] {
        if self.reading == ThoughtPart::Inside { &self.thought.close[..self.matched] } else { &[] }
    }

    /// Returns the rest of the closing mark; nothing outside of a thought.
    pub(crate) fn left_of_mark(&self) -> &[u8] {
        if self.reading == ThoughtPart::Inside { &self.thought.close[self.matched..] } else { &[] }
    }
}

/// Of each beginning of a mark, from the empty one on, the length of the longest shorter one with which it
/// ends. Linear.
fn borders(mark: &[u8]) -> Box<[usize]> {
    let mut borders = vec![0; mark.len() + 1];
    let mut length = 0;
    for at in 1..mark.len() {
        while length > 0 && mark[length] != mark[at] {
            length = borders[length];
        }
        length += usize::from(mark[length] == mark[at]);
        borders[at + 1] = length;
    }
    borders.into()
}

impl Thought {
    /// The length of the longest beginning of the closing mark with which a text ends that ended with the
    /// first `matched` bytes of it, fewer than all, before this byte. Constant time on average over a text.
    fn matched_after(&self, mut matched: usize, byte: u8) -> usize {
        while matched > 0 && self.close[matched] != byte {
            matched = self.borders[matched];
        }
        matched + usize::from(self.close[matched] == byte)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn thought(open: &str, close: &str, reasoning: Reasoning) -> Thought {
        Thought::new(&ThoughtMarks::new(open, close).unwrap(), reasoning, [])
    }

    proptest! {
        /// Compares with a search of the whole text, whatever pieces it comes in.
        #[test]
        fn thoughts_end_at_their_first_closing_mark(
            (open, close, text) in ("[ab<]{1,3}", "[ab<]{1,3}", "[ab<]{0,12}"),
            cuts in prop::collection::vec(0..4_usize, 0..8), place in 1..4_usize,
        ) {
            let reasoning = NAMES[place].0;
            let begun = match reasoning {
                Reasoning::Open => Some(0),
                _ => text.starts_with(&open).then_some(open.len()),
            };
            let end = begun.map(|begun| Some(begun + text[begun..].find(&close)? + close.len()));
            let (content, place) = match end {
                Some(Some(end)) => (&text[end..], ThoughtPlace::Behind),
                Some(None) => ("", ThoughtPlace::Inside),
                None if open.starts_with(&text) => ("", ThoughtPlace::Before),
                None => (&text[..], ThoughtPlace::Behind),
            };
            let mut reader = ThoughtReader::new(Arc::new(thought(&open, &close, reasoning)));
            let (mut found, mut rest) = (Vec::new(), text.as_bytes());
            for cut in cuts.into_iter().chain([12]) {
                let (piece, behind) = rest.split_at(cut.min(rest.len()));
                found.extend_from_slice(&reader.read(piece));
                rest = behind;
            }
            prop_assert_eq!((found.as_slice(), reader.place()), (content.as_bytes(), place));
            let left = reader.left_of_mark();
            prop_assert_eq!(left.is_empty(), place != ThoughtPlace::Inside);
            prop_assert!(close.as_bytes().ends_with(left));
        }
    }

    #[test]
    fn marks_are_neither_empty_nor_long() {
        let longest = "a".repeat(LONGEST_MARK);
        assert!(ThoughtMarks::new(&longest, "b").is_some() && ThoughtMarks::new("b", &longest).is_some());
        assert!(
            ThoughtMarks::new(&format!("{longest}a"), "b").is_none() && ThoughtMarks::new("a", "").is_none()
        );
    }

    #[test]
    fn texts_are_taken_apart() {
        let usual = Thought::new(&ThoughtMarks::default(), Reasoning::Optional, []);
        let harmony = ThoughtMarks::of_chat_template("<|channel|>analysis").unwrap();
        let harmony = Thought::new(&harmony, Reasoning::Optional, ["<|channel|>", "<|message|>", "<|x|>"]);
        assert_eq!(harmony.specials, ["<|channel|>", "<|message|>"]);
        for (thought, text, length, inside, content) in [
            (&usual, "<think>\na\n</think>\n\n\n{}", 18, "a", "\n{}"),
            (&usual, "{}", 0, "", "{}"),
            (&usual, "<think>a</thi", 13, "a</thi", ""),
            (&usual, "<th", 3, "", ""),
            (&harmony, "<|channel|>final<|message|>{}", 27, "", "{}"),
            (&harmony, "<|channel|>analysis<|message|>a", 31, "a", ""),
        ] {
            let (found, rest) = thought.split(text.as_bytes(), length);
            assert_eq!((found, rest), (inside.as_bytes(), content.as_bytes()), "{text:?}");
        }
    }

    #[test]
    fn marks_and_places_are_shown_by_templates_and_prompts() {
        let marks =
            |template: &str| ThoughtMarks::of_chat_template(template).map(|marks| marks.close().to_owned());
        assert_eq!(marks("{{ content.split('</think>')[-1] }}").as_deref(), Some("</think>"));
        assert_eq!(marks("[THINK]a[/THINK]").as_deref(), Some("[/THINK]"));
        assert_eq!(marks("<|channel>thought\n<channel|>").as_deref(), Some("<channel|>"));
        assert_eq!(marks("<|im_start|>assistant"), None);
        let marks = ThoughtMarks::default();
        assert_eq!(marks.behind(b"assistant\n<think>\n"), Reasoning::Open);
        assert_eq!(marks.behind(b"assistant\n<think>\n\n</think>\n\n"), Reasoning::Off);
        assert_eq!(marks.behind(b"assistant\n"), Reasoning::Optional);
    }
}

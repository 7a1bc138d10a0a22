//! Sets of strings -> the texts that stand for them between tags: the characters as they are, up to the first
//! closing tag.
//!
//! In some styles a line feed behind the opening tag and one in front of the closing tag belong to the tags.
//! There a string can be written in four ways, with both line feeds, with either, and with none; without one
//! only if the string has no line feed in that place. Each text stands for at most one string.

use hashbrown::HashMap;

use super::reading::{ArgumentTypes, json};
use crate::{
    grammar::{
        Pattern,
        json_schema::{
            StringSet,
            automata::{AutomataCache, recipe},
            dfa::CharDfa,
            leaf::LeafError,
            strings::in_utf8,
        },
    },
    ids::saturating_usize,
};

/// The end of the opening tag, behind which the text begins.
const BEGIN: &str = ">";

/// A text around names and values.
type TagText = &'static str;

/// A way to write arguments between tags: the texts around names and values.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::grammar) struct ArgumentMarks {
    /// The name of the style in structural tags.
    pub(in crate::grammar) style: TagText,
    /// The text before a name.
    pub(in crate::grammar) key: TagText,
    /// The text behind a name. White space may follow if a tag ends with it.
    pub(in crate::grammar) named: TagText,
    /// The texts before a string, and before JSON, but for the `>` at their ends. If they are alike, the
    /// value itself tells what it is.
    pub(in crate::grammar) values: [TagText; 2],
    /// The closing tag, which ends an argument.
    pub(in crate::grammar) end: TagText,
    /// True if a line feed at either end of a string belongs to the tags.
    is_on_lines: bool,
}

/// All styles, by the names that XGrammar gives them.
const STYLES: [ArgumentMarks; 4] = [
    ArgumentMarks::new("qwen_xml", ["<parameter=", ""], ["", ""], "</parameter>"),
    ArgumentMarks::new("minimax_xml", ["<parameter name=\"", "\""], ["", ""], "</parameter>"),
    ArgumentMarks::new(
        "deepseek_xml",
        ["<｜DSML｜parameter name=\"", "\""],
        [" string=\"true\"", " string=\"false\""],
        "</｜DSML｜parameter>",
    ),
    ArgumentMarks::new("glm_xml", ["<arg_key>", "</arg_key>"], ["<arg_value"; 2], "</arg_value>"),
];

impl ArgumentMarks {
    const fn new(style: TagText, [key, named]: [TagText; 2], values: [TagText; 2], end: TagText) -> Self {
        // Only Qwen's template writes values on lines of their own.
        Self { style, key, named, values, end, is_on_lines: named.is_empty() }
    }

    /// The style of this name.
    pub(in crate::grammar) fn named(style: &str) -> Option<&'static Self> {
        STYLES.iter().find(|known| known.style == style)
    }

    /// The character that ends a name.
    pub(in crate::grammar) fn name_end(&self) -> char {
        self.named.chars().chain(BEGIN.chars()).next().unwrap_or_default()
    }

    /// True if the marks tell strings from other values.
    pub(in crate::grammar) fn tell_strings(&self) -> bool {
        self.values[0] != self.values[1]
    }

    /// Drops the line feeds around a string that belong to the tags.
    pub(in crate::grammar) fn string<'t>(&self, text: &'t str) -> &'t str {
        let feed = if self.is_on_lines { "\n" } else { "" };
        let text = text.strip_prefix(feed).unwrap_or(text);
        text.strip_suffix(feed).unwrap_or(text)
    }
}

/// White space of JSON.
const SPACES: &str = "\t\n\r ";

/// Greatest length, in characters, that is counted by states; longer texts are counted beside an automaton.
const COUNTED_BY_STATES: u64 = 32;
/// Greatest length, in characters, that is counted at all, the closing tag included.
const MAX_COUNTED: u64 = 131_071;
/// Length, in characters, up to which states count where a counter beside the automaton cannot.
const LEAST_COUNTED: u64 = 255;

/// Names of the automata that all functions with arguments of such types share: there are at most 48
/// readings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum SharedRaw {
    /// Any string.
    All(ArgumentTypes, &'static ArgumentMarks),
    /// Strings in which this pattern has a match.
    Pattern(TagText),
    /// Texts that read as JSON; with `true`, also those cut off inside of a string.
    Json(ArgumentTypes, bool),
}
recipe!(SharedRaw, |_| 0, |_| true);

/// Texts for strings, each from the `>` of the opening tag to the end of the closing one.
#[derive(Debug, Clone, Default)]
pub(super) struct RawTexts {
    pub(in crate::grammar) patterns: Vec<Pattern>,
    /// True if strings are left out because they are too long to be counted.
    pub(in crate::grammar) left_out: bool,
}

/// A writer of texts that makes the texts of equal sets once.
#[derive(Debug)]
pub(super) struct RawWriter<'a> {
    automata: &'a AutomataCache,
    pub(super) marks: &'static ArgumentMarks,
    /// True if any white space may stand around words of a list.
    spaced: bool,
    known: HashMap<(StringSet, ArgumentTypes), RawTexts>,
}

/// The languages by which strings are told apart.
#[derive(Debug, Clone)]
struct Languages {
    marks: &'static ArgumentMarks,
    /// Strings with the closing tag in them.
    closing: CharDfa,
    /// Strings that begin with a line feed; strings that end with one.
    broken: [CharDfa; 2],
    /// Texts that read as JSON; and these with texts inside of a string that the closing tag could continue.
    json: [CharDfa; 2],
    /// True if white space around values is free, as in [`RawWriter`].
    spaced: bool,
}

/// One way to write strings: the strings that it applies to, and the texts around them.
struct StringWay {
    strings: CharDfa,
    before: String,
    after: String,
}

impl<'a> RawWriter<'a> {
    /// A writer without texts.
    pub(super) fn new(automata: &'a AutomataCache, marks: &'static ArgumentMarks, spaced: bool) -> Self {
        Self { automata, marks, spaced, known: HashMap::new() }
    }

    /// The texts of the strings of a set, each read back as the string that it stands for. An empty set has
    /// none.
    ///
    /// # Errors
    /// If an automaton would be too large.
    pub(super) fn texts(&mut self, set: &StringSet, reading: &ArgumentTypes) -> Result<RawTexts, LeafError> {
        let set = set.written();
        let reading = if self.marks.tell_strings() { reading.of_strings() } else { *reading };
        let key = (set.clone(), reading);
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        if set.is_all() {
            // Most arguments are any string: one terminal, which all functions share.
            let make = || in_utf8(&self.languages(&reading)?.small(&CharDfa::all(), &reading)?);
            let automaton = self.automata.automaton(SharedRaw::All(reading, self.marks), make)?;
            let texts = RawTexts { patterns: vec![Pattern::automaton(automaton)], left_out: false };
            self.known.insert(key, texts.clone());
            return Ok(texts);
        }
        let languages = self.languages(&reading)?;
        let mut texts = RawTexts::default();
        let mut small = CharDfa::none();
        for (min, max, dfa) in set.windows().filter(|(_, _, dfa)| !dfa.is_empty()) {
            let few = max.is_some_and(|max| max <= COUNTED_BY_STATES) || dfa.longest().is_some();
            if few || max.is_none() && min <= COUNTED_BY_STATES {
                small = small.or(&languages.small(&dfa.within(min, max)?, &reading)?)?;
            } else {
                for way in languages.ways(dfa, &reading)? {
                    texts.count(&way, min, max)?;
                }
            }
        }
        if !small.is_empty() {
            texts.patterns.push(Pattern::automaton(in_utf8(&small)?));
        }
        self.known.insert(key, texts.clone());
        Ok(texts)
    }

    /// The languages of a reading, made once for all readings with the same types beside strings.
    fn languages(&self, reading: &ArgumentTypes) -> Result<Languages, LeafError> {
        let (automata, marks) = (self.automata, self.marks);
        let one = |name: SharedRaw, pattern: &dyn Fn() -> String| {
            automata.language(name, || {
                let set = StringSet::from_pattern(&pattern())?;
                // A pattern is one automaton of strings of any length.
                Ok(set.windows().next().map_or_else(CharDfa::none, |(_, _, dfa)| dfa.clone()))
            })
        };
        let fixed = |pattern: TagText| one(SharedRaw::Pattern(pattern), &|| pattern.to_owned());
        let others = reading.of_others();
        let part = |cut: bool| match others.has_others() {
            true => one(SharedRaw::Json(others, cut), &|| json(&others, cut)),
            false => Ok(CharDfa::none()),
        };
        Ok(Languages {
            marks,
            closing: fixed(marks.end)?,
            broken: [fixed("^\\n")?, fixed("\\n$")?],
            json: [part(false)?, part(true)?],
            spaced: self.spaced,
        })
    }
}

impl Languages {
    /// The texts of strings whose length is not counted, as one language.
    fn small(&self, strings: &CharDfa, reading: &ArgumentTypes) -> Result<CharDfa, LeafError> {
        let ways = self.ways(strings, reading)?;
        ways.iter()
            .try_fold(CharDfa::none(), |all, way| all.or(&way.strings.between(&way.before, &way.after)?))
    }

    /// The ways to write strings.
    fn ways(&self, strings: &CharDfa, reading: &ArgumentTypes) -> Result<Vec<StringWay>, LeafError> {
        let [json, cut] = &self.json;
        let [first, last] = &self.broken;
        let clean = strings.minus(&self.closing)?;
        let (broken, whole) = (clean.minus(json)?, clean.minus(cut)?);
        let way = |strings, [first, last]: [&str; 2]| StringWay {
            strings,
            before: format!("{BEGIN}{first}"),
            after: format!("{last}{}", self.marks.end),
        };
        // White space around words of a list is not part of them.
        let listed = reading.is_listed();
        if listed && self.spaced {
            return Ok(vec![way(whole.among(SPACES)?, ["", ""])]);
        }
        if !self.marks.is_on_lines {
            return Ok(if whole.is_empty() { Vec::new() } else { vec![way(whole, ["", ""])] });
        }
        let some = CharDfa::none().not().minus(&CharDfa::of([""])?)?;
        let broken = if listed { whole.clone() } else { broken };
        let ways = [
            (broken.clone(), ["\n", "\n"]),
            (whole.minus(last)?, ["\n", ""]),
            (broken.minus(first)?.and(&some)?, ["", "\n"]),
            (whole.minus(first)?.minus(last)?, ["", ""]),
        ];
        let ways = ways.into_iter().filter(|(strings, _)| !strings.is_empty());
        Ok(ways.map(|(strings, feeds)| way(strings, feeds)).collect())
    }
}

impl RawTexts {
    /// Adds the strings of a way within bounds on their length that states cannot count: as terminals that
    /// count characters, those of the tags included.
    fn count(&mut self, way: &StringWay, min: u64, max: Option<u64>) -> Result<(), LeafError> {
        if !way.strings.has_length(min, max)? {
            return Ok(());
        }
        let around = [&way.before, &way.after].map(|text| text.chars().count() as u64).iter().sum::<u64>();
        // The terminal does not count its first and last character.
        let more = around - 2;
        let automaton = in_utf8(&way.strings.between(&way.before, &way.after)?)?;
        let counted = |max: u64| {
            let bound = |length: u64| u32::try_from(length + more).ok();
            Pattern::length_bounded(&automaton, bound(min)?, bound(max)?)
        };
        let all = max.filter(|max| *max <= MAX_COUNTED - more);
        if let Some(pattern) = all.and_then(counted) {
            self.patterns.push(pattern);
            return Ok(());
        }
        let least = min.max(LEAST_COUNTED);
        if max.is_some_and(|max| max <= least) {
            let strings = way.strings.within(min, max)?.between(&way.before, &way.after)?;
            self.patterns.push(Pattern::automaton(in_utf8(&strings)?));
            return Ok(());
        }
        // As long as can be: the more states, the less.
        let first = all.unwrap_or(MAX_COUNTED - more);
        let bounds =
            std::iter::successors(Some(first), |bound| Some(bound / 2)).take_while(|max| *max >= least);
        let found = bounds.into_iter().find_map(counted);
        self.patterns.push(found.ok_or(LeafError::Budget {
            what: "characters of a text between tags that are counted",
            limit: saturating_usize(MAX_COUNTED - more),
        })?);
        self.left_out = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::grammar::{Automaton, json_schema::StringSet};

    const PATTERNS: [&str; 6] =
        ["^[^<]*$", "^[a\u{e9}-\u{20ac}\u{1f600}]*$", "b\\s", "^.{1,2}$", "", "\u{e9}|\n"];

    const TEXT: &str = "[ab<\n\u{7f}\u{80}\u{e8}-\u{ea}\u{7ff}-\u{801}\u{d7ff}\u{e000}\u{20ab}-\u{20ad}\
                        \u{ffff}-\u{10001}\u{1f600}\u{10ffff}]{0,4}";

    fn accepts(automaton: &Automaton, text: &str) -> bool {
        let states = automaton.states();
        let step = |state: u32, byte: u8| {
            let edges = &states[state as usize].edges;
            edges.iter().find(|edge| (edge.first..=edge.last).contains(&byte)).map(|edge| edge.to)
        };
        text.bytes().try_fold(0, step).is_some_and(|state| states[state as usize].accepts)
    }

    proptest! {
        #[test]
        fn plain_automata_accept_the_strings_of_the_set(
            pattern in prop::sample::select(&PATTERNS[..]),
            texts in prop::collection::vec(TEXT, 1..30),
        ) {
            let set = StringSet::from_pattern(pattern).unwrap();
            for (_, _, dfa) in set.windows() {
                let automaton = in_utf8(dfa).unwrap();
                for text in &texts {
                    let is_in = set.contains(text);
                    prop_assert_eq!(accepts(&automaton, text), is_in, "{:?} {:?}", pattern, text);
                }
            }
        }
    }
}

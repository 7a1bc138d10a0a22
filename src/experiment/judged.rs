//! Judging: the part of a text that counts, and whether it is in the language. The same for all methods, so
//! that a text without a constraint is not wrong for what comes after a whole answer.

use std::ops::Range;

use crate::{
    compile::CompiledGrammar,
    decode::{DecodeError, StopStrings},
    session::{Constraint, Patience},
};

/// Ways to find the part that counts.
#[derive(Debug, Clone, Default)]
pub(super) struct Judging {
    /// A text is cut before the first of these.
    pub(super) stop: StopStrings,
    /// Is only the longest beginning that is in the language judged?
    pub(super) first_value: bool,
}

/// A text that was judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Judged {
    /// The bytes that count.
    pub(super) part: Range<usize>,
    /// Are they in the language?
    pub(super) well_formed: bool,
    /// Was a stop string found?
    pub(super) stopped: bool,
}

impl Judging {
    /// Is a part of the text judged, not all of it?
    pub(super) fn is_partial(&self) -> bool {
        self.first_value || !self.stop.is_empty()
    }

    /// Judges a text by its grammar. With `first_value` by its longest beginning in the language, with or
    /// without the white space in front: of numbers by `12` and not by `1`.
    pub(super) fn judge(&self, text: &[u8], exact: &CompiledGrammar) -> Result<Judged, DecodeError> {
        let cut = self.stop.find(text);
        let (end, stopped) = (cut.unwrap_or(text.len()), cut.is_some());
        let start = || exact.constraint().patient(Patience::whole());
        if !self.first_value {
            let mut whole = start();
            let well_formed = whole.advance_bytes(&text[..end])? == end && whole.is_complete();
            return Ok(Judged { part: 0..end, well_formed, stopped });
        }
        let blank = text[..end].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let mut found = longest(start(), &text[..end])?.map(|length| 0..length);
        if blank > 0 && found.as_ref().is_none_or(|part| part.end <= blank) {
            let behind = longest(start(), &text[blank..end])?.map(|length| blank..blank + length);
            found = behind.filter(|part| !part.is_empty()).or(found);
        }
        let well_formed = found.is_some();
        Ok(Judged { part: found.unwrap_or(blank..end), well_formed, stopped })
    }
}

/// Returns the length of the longest prefix in the language.
fn longest(mut constraint: Constraint, text: &[u8]) -> Result<Option<usize>, DecodeError> {
    let mut found = constraint.is_complete().then_some(0);
    for (at, byte) in text.iter().enumerate() {
        if constraint.advance_bytes(&[*byte])? == 0 {
            break;
        }
        if constraint.is_complete() {
            found = Some(at + 1);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Compiler, Grammar, Limits, Syntax, Vocabulary};

    const OBJECT: &str = "root ::= \"{\" ws (\"a\" ws)* \"}\" ws\nws ::= [ \\n]*";

    fn grammar(text: &str) -> CompiledGrammar {
        let vocabulary = include_str!("../../tests/fixtures/byte_level.json");
        let vocabulary = Vocabulary::from_tokenizer_json(vocabulary).unwrap();
        let grammar = Grammar::parse(Syntax::Gbnf, text, &Limits::default()).unwrap();
        Compiler::new(vocabulary).compile(&grammar).unwrap()
    }

    fn judged(grammar: &CompiledGrammar, stop: &[&str], first_value: bool, text: &str) -> (String, bool) {
        let judging = Judging { stop: StopStrings::new(stop.iter().copied()).unwrap(), first_value };
        let Judged { part, well_formed, .. } = judging.judge(text.as_bytes(), grammar).unwrap();
        (text[part].to_owned(), well_formed)
    }

    #[test]
    fn the_longest_complete_beginning_is_judged() {
        let object = grammar(OBJECT);
        for (text, part, well_formed) in [
            ("{a}", "{a}", true),
            (" {a}", "{a}", true),
            ("\n\t {a}Q: more", "{a}", true),
            ("{a}\n\nQ: {b}", "{a}\n\n", true),
            ("{a} {aa}", "{a} ", true),
            ("{a", "{a", false),
            (" {b}", "{b}", false),
            ("", "", false),
            ("so: {a}", "so: {a}", false),
        ] {
            assert_eq!(judged(&object, &[], true, text), (part.to_owned(), well_formed), "{text:?}");
        }
        // Of numbers the whole one, and white space where the language has it.
        let number = grammar("root ::= [0-9]+");
        assert_eq!(judged(&number, &[], true, " 123 and"), ("123".to_owned(), true));
        let blank = grammar("root ::= \" \" [a-z]+");
        assert_eq!(judged(&blank, &[], true, " word."), (" word".to_owned(), true));
        let maybe = grammar("root ::= [a-z]*");
        assert_eq!(judged(&maybe, &[], true, " word."), ("word".to_owned(), true));
        assert_eq!(judged(&maybe, &[], true, " 7"), (String::new(), true));
    }

    #[test]
    fn stop_strings_cut_the_judged_part() {
        let object = grammar(OBJECT);
        for (stop, text, part, well_formed) in [
            (&["Q:"][..], "{a}\nQ: and", "{a}\n", true),
            (&["Q:"], "{a", "{a", false),
            (&["\n\n", "Q"], "{a}\n\nQ", "{a}", true),
            (&["}"], "{a}", "{a", false),
            (&[], "{a}x", "{a}x", false),
        ] {
            assert_eq!(judged(&object, stop, false, text), (part.to_owned(), well_formed), "{text:?}");
        }
        assert_eq!(judged(&object, &["x"], true, " {a} x"), ("{a} ".to_owned(), true));
        // What is behind the stop string does not count, however good it is.
        assert_eq!(judged(&object, &["Q"], true, "no Q{a}"), ("no ".to_owned(), false));
    }

    /// The judged part is in the language if any prefix is, by trying all of them.
    #[test]
    fn the_judged_part_is_that_of_trying_all_beginnings() {
        let object = grammar(OBJECT);
        let letters = ["{", "}", "a", " ", "\n", "Q"];
        let mut texts = vec![String::new()];
        for length in 0..5 {
            let from = texts.iter().filter(|text| text.len() == length).cloned().collect::<Vec<_>>();
            texts.extend(from.iter().flat_map(|text| letters.map(|letter| format!("{text}{letter}"))));
        }
        for text in &texts {
            let inner = text.trim_start();
            let is_in = |part: &str| judged(&object, &[], false, part).1;
            let any = (0..=inner.len()).rev().find(|end| is_in(&inner[..*end]));
            let found = judged(&object, &[], true, text);
            assert_eq!(found.1, any.is_some(), "{text:?}");
            assert_eq!(found.0, any.map_or(inner, |end| &inner[..end]), "{text:?}");
        }
    }
}

//! The oracle itself against the meaning of grammars, the least fixed point of their equations over strings,
//! cut off at a length.
//!
//! For every expression three things are computed by fixed-point iteration: whether it derives anything,
//! which short strings it derives, and which short strings are prefixes of what it derives. So left
//! recursion, cycles and empty strings need no special cases. The cut is exact: a short sentence has only
//! short parts, and a short prefix is whole short parts and then one short prefix.

use std::collections::BTreeSet;

use domino::{
    Grammar,
    grammar::{Expr, Pattern},
    oracle::Oracle,
};
use proptest::prelude::*;
use regex_syntax::hir::{Class, Hir, HirKind};

use super::generate::{config, rules};

/// Most bytes of the strings compared.
const LENGTH: usize = 4;

type Strings = BTreeSet<Vec<u8>>;

/// Facts about an expression's language.
#[derive(Clone, Default, PartialEq)]
struct Meaning {
    /// True if the language is not empty.
    some: bool,
    /// Short strings of the language.
    whole: Strings,
    /// Short prefixes of strings of the language.
    begun: Strings,
}

impl Meaning {
    fn empty_string() -> Self {
        Self::bytes(&[])
    }

    fn bytes(bytes: &[u8]) -> Self {
        let begun = (0..=bytes.len().min(LENGTH)).map(|end| bytes[..end].to_vec()).collect();
        let whole = (bytes.len() <= LENGTH).then(|| bytes.to_vec()).into_iter().collect();
        Self { some: true, whole, begun }
    }

    fn or(mut self, other: &Self) -> Self {
        self.some |= other.some;
        self.whole.extend(other.whole.iter().cloned());
        self.begun.extend(other.begun.iter().cloned());
        self
    }

    fn then(&self, next: &Self) -> Self {
        if !(self.some && next.some) {
            return Self::default();
        }
        let joined = |ends: &Strings| -> Strings {
            let pairs =
                self.whole.iter().flat_map(|start| ends.iter().map(move |end| [&start[..], end].concat()));
            pairs.filter(|string| string.len() <= LENGTH).collect()
        };
        let mut begun = joined(&next.begun);
        begun.extend(self.begun.iter().cloned());
        Self { some: true, whole: joined(&next.whole), begun }
    }

    fn repeat(&self, min: u32, max: Option<u32>) -> Self {
        let mut all = Self::empty_string();
        for _ in 0..min {
            all = all.then(self);
        }
        // More than LENGTH further parts give nothing new that is short.
        let mut more = all.clone();
        for _ in min..max.unwrap_or(min + 7) {
            more = more.then(self);
            all = all.or(&more);
        }
        all
    }
}

/// Bytes of the texts tried. Classes are restricted to characters of these bytes.
fn bytes() -> Vec<u8> {
    let bytes: BTreeSet<u8> = "abcdéè漢".bytes().collect();
    bytes.into_iter().collect()
}

/// All characters of [`bytes`].
fn characters() -> Vec<char> {
    let mut all = Vec::new();
    let mut strings: Vec<Vec<u8>> = vec![Vec::new()];
    for _ in 0..4 {
        strings = strings
            .iter()
            .flat_map(|start| bytes().into_iter().map(|b| [&start[..], &[b]].concat()))
            .collect();
        // Whole characters, and bytes that begin none, are not extended.
        strings.retain(|string| match std::str::from_utf8(string) {
            Ok(text) => {
                all.extend(text.chars());
                false
            }
            Err(error) => error.error_len().is_none(),
        });
    }
    all
}

fn hir_meaning(hir: &Hir, characters: &[char]) -> Meaning {
    match hir.kind() {
        HirKind::Empty => Meaning::empty_string(),
        HirKind::Literal(literal) => Meaning::bytes(&literal.0),
        HirKind::Class(Class::Unicode(class)) => {
            // A class is not empty if it has any character, be it none of ours.
            let some = Meaning { some: !class.ranges().is_empty(), ..Meaning::default() };
            let of_class = characters.iter().filter(|&&character| {
                class.ranges().iter().any(|range| (range.start()..=range.end()).contains(&character))
            });
            let mut meaning = some;
            if meaning.some {
                meaning.begun.insert(Vec::new());
            }
            for character in of_class {
                meaning = meaning.or(&Meaning::bytes(character.encode_utf8(&mut [0; 4]).as_bytes()));
            }
            begin_other_characters(&mut meaning, class);
            meaning
        }
        HirKind::Repetition(repetition) => {
            hir_meaning(&repetition.sub, characters).repeat(repetition.min, repetition.max)
        }
        HirKind::Capture(capture) => hir_meaning(&capture.sub, characters),
        HirKind::Concat(parts) => {
            parts.iter().fold(Meaning::empty_string(), |all, part| all.then(&hir_meaning(part, characters)))
        }
        HirKind::Alternation(parts) => {
            parts.iter().fold(Meaning::default(), |all, part| all.or(&hir_meaning(part, characters)))
        }
        HirKind::Class(Class::Bytes(class)) => class
            .ranges()
            .iter()
            .flat_map(|range| range.start()..=range.end())
            .fold(Meaning::default(), |all, byte| all.or(&Meaning::bytes(&[byte]))),
        HirKind::Look(_) => unreachable!("patterns have none"),
    }
}

/// Adds prefixes over our bytes of characters that end in other bytes.
fn begin_other_characters(meaning: &mut Meaning, class: &regex_syntax::hir::ClassUnicode) {
    let ours = bytes();
    for range in class.ranges() {
        for character in range.start()..=range.end() {
            let mut buffer = [0; 4];
            let encoded = character.encode_utf8(&mut buffer).as_bytes();
            for end in 1..encoded.len() {
                if !ours.contains(&encoded[end - 1]) {
                    break;
                }
                if !meaning.begun.contains(&encoded[..end]) {
                    meaning.begun.insert(encoded[..end].to_vec());
                }
            }
        }
    }
}

/// The meaning of the start rule.
fn meaning(grammar: &Grammar) -> Meaning {
    let characters = characters();
    let pattern = |pattern: &Pattern| hir_meaning(pattern.hir().unwrap(), &characters);
    let mut all: Vec<Meaning> = grammar
        .exprs()
        .map(|(_, expr)| if let Expr::Pattern(leaf) = expr { pattern(leaf) } else { Meaning::default() })
        .collect();
    loop {
        let before = all.clone();
        for (id, expr) in grammar.exprs() {
            let new = match expr {
                Expr::Rule(rule) => all[grammar.rule_body(*rule).index()].clone(),
                Expr::Sequence(parts) => {
                    parts.iter().fold(Meaning::empty_string(), |sum, part| sum.then(&all[part.index()]))
                }
                Expr::Alternatives(parts) => {
                    parts.iter().fold(Meaning::default(), |sum, part| sum.or(&all[part.index()]))
                }
                Expr::Repeat { part, min, max } => all[part.index()].repeat(*min, *max),
                _ => continue,
            };
            all[id.index()] = new;
        }
        if all == before {
            return all.swap_remove(grammar.rule_body(grammar.root()).index());
        }
    }
}

/// All short strings over [`bytes`] that are viable, and those that are sentences, by the oracle.
fn explore(oracle: &Oracle) -> (Strings, Strings) {
    let (mut viable, mut sentences) = (Strings::new(), Strings::new());
    if !oracle.has_sentence() {
        return (viable, sentences);
    }
    let mut session = oracle.session();
    let mut text = Vec::new();
    // The next byte to try at each depth.
    let mut next = vec![0];
    let bytes = bytes();
    viable.insert(Vec::new());
    if session.is_complete() {
        sentences.insert(Vec::new());
    }
    while let Some(index) = next.pop() {
        let Some(&byte) = bytes.get(index).filter(|_| text.len() < LENGTH) else {
            session.pop();
            text.pop();
            continue;
        };
        next.push(index + 1);
        if session.push(byte) {
            text.push(byte);
            viable.insert(text.clone());
            if session.is_complete() {
                sentences.insert(text.clone());
            }
            next.push(0);
        }
    }
    (viable, sentences)
}

proptest! {
    #![proptest_config(config(100))]

    #[test]
    fn the_oracle_agrees_with_all_strings_of_small_grammars(rules in rules()) {
        let grammar = rules.build();
        let meaning = meaning(&grammar);
        let oracle = Oracle::new(&grammar).unwrap();
        prop_assert_eq!(oracle.has_sentence(), meaning.some);
        let (viable, sentences) = explore(&oracle);
        let ours = bytes();
        let over_ours = |strings: Strings| -> Strings {
            strings.into_iter().filter(|string| string.iter().all(|byte| ours.contains(byte))).collect()
        };
        prop_assert_eq!(over_ours(meaning.whole), sentences);
        prop_assert_eq!(over_ours(meaning.begun), viable);
    }
}

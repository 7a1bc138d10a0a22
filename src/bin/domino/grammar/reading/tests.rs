//! Grammars as users name them: files, shipped ones, and mistakes.

use domino::{Compiler, Grammar, Limits, Syntax};
use proptest::prelude::*;

use super::*;

#[test]
fn bytes_of_an_unfinished_character_are_held_back() {
    for (text, held) in [
        (&b""[..], 0),
        (b"a", 0),
        (b"a\xE6", 1),
        (b"\xE6\x97", 2),
        ("日".as_bytes(), 0),
        (b"\xF0\x9F\x98", 3),
        (b"\x80", 0),
        (b"a\xFF", 0),
        (b"\xE6a", 0),
        (b"\xED\xA0", 0),
    ] {
        assert_eq!(unfinished(text), held, "{text:?}");
    }
}

/// The grammar reads a text of one letter in ever more ways, on a small budget.
#[test]
fn a_budget_error_names_line_rules_and_flag_once() {
    let grammar = "root ::= x x x | x x | \"\\n\" | \"a\"\nx ::= root | \"(\" root \")\"";
    let grammar = Grammar::parse(Syntax::Gbnf, grammar, &Limits::default()).unwrap();
    let mut limits = Limits::default();
    limits.step_work = 300_000;
    let compiler = Compiler::new(crate::grammar::compiler::byte_vocabulary().unwrap()).limits(limits);
    let mut reading = Reading::new(compiler.compile(&grammar).unwrap().constraint());
    assert!(reading.push(b"a\na").unwrap().is_none());
    let unanswered = reading.push("a".repeat(100_000).as_bytes()).unwrap_err();
    let failure::Told { sentence, hint } = &unanswered.told;
    assert!(
        sentence.starts_with("no answer at 2:") && sentence.ends_with(", in rules `root`, `x`"),
        "{sentence}"
    );
    for once in ["budget", "root", "2:"] {
        assert_eq!(sentence.matches(once).count(), 1, "{sentence}");
    }
    assert!(!sentence.contains("hint") && !sentence.contains("bytes of text"), "{sentence}");
    assert!(
        hint.as_ref().is_some_and(|hint| hint.contains("--max-step-seconds") && !hint.contains("Limits"))
    );
    assert!(unanswered.line == 2 && unanswered.column > 2, "{unanswered:?}");
}

proptest! {
    /// Any way to cut a text into pieces leads to the same place.
    #[test]
    fn the_place_of_an_error_does_not_depend_on_how_a_text_is_cut(
        text in "[a日木\n]{0,12}",
        noise in any::<bool>(),
        size in 1_usize..5,
    ) {
        let grammar = Grammar::parse(Syntax::Regex, "([a日]|\n)*本", &Limits::default()).unwrap();
        let compiler = Compiler::new(crate::grammar::compiler::byte_vocabulary().unwrap());
        let compiled = compiler.compile(&grammar).unwrap();
        let mut bytes = text.clone().into_bytes();
        if noise {
            bytes.truncate(bytes.len().saturating_sub(1));
        }
        let end = |pieces: Vec<&[u8]>| {
            let mut reading = Reading::new(compiled.constraint());
            for piece in pieces {
                if let Some(left) = reading.push(piece).unwrap() {
                    return Some((left.offset, left.line, left.column, left.what));
                }
            }
            match (reading.finish().unwrap(), reading.end()) {
                (Some(left), _) => Some((left.offset, left.line, left.column, left.what)),
                (None, Some(it)) => Some((it.offset, it.line, it.column, it.what)),
                (None, None) => None,
            }
        };
        let whole = end(vec![&bytes]);
        prop_assert_eq!(&end(bytes.chunks(size).collect()), &whole);
        // The standard library finds line and column of the first character outside the language.
        if let Some(at) = text.find('木').filter(|_| !noise) {
            let before = &text[..at];
            let line = before.matches('\n').count() + 1;
            let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1;
            let shared = "木".bytes().zip("本".bytes()).take_while(|(a, b)| a == b).count();
            prop_assert_eq!(whole, Some((at + shared, line, column, "'木' cannot follow".to_owned())));
        }
    }

    /// Comparison with the decoder of the standard library.
    #[test]
    fn character_at_agrees_with_the_standard_decoder(
        text in "[a日é😀]{0,6}",
        noise in proptest::collection::vec(any::<u8>(), 0..3),
    ) {
        for (start, character) in text.char_indices() {
            for at in start..start + character.len_utf8() {
                prop_assert_eq!(character_at(text.as_bytes(), at), (start, Some(character)));
            }
        }
        let mut bytes = text.clone().into_bytes();
        bytes.extend(&noise);
        bytes.extend(text.as_bytes());
        let mut at = 0;
        for chunk in bytes.utf8_chunks() {
            for (start, character) in chunk.valid().char_indices() {
                prop_assert_eq!(character_at(&bytes, at + start), (at + start, Some(character)));
            }
            at += chunk.valid().len() + chunk.invalid().len();
        }
    }
}

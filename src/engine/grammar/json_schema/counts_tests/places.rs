//! Patterns with large counts in every place where a schema has strings: as values, keys and items, beside
//! lengths and formats, negated and as alternatives, and in arguments of functions. A few lines of Rust each
//! decide what they match.

use proptest::prelude::*;

use super::{SchemaErrorKind, accepts, compiled, refused};
use crate::{
    CompiledGrammar, Compiler, Constraint, Limits, StepErrorKind, TokenId, Vocabulary,
    grammar::{
        json_schema::SchemaOptions,
        tools::{Calling, Choice, Spelling, Tools},
    },
};

/// A pattern, its decider, and parts of strings that nearly match: a beginning, a part that is repeated, the
/// greatest number of its repetitions, and an end.
struct PatternCase {
    pattern: &'static str,
    fits: fn(&str) -> bool,
    parts: (&'static [&'static str], &'static [&'static str], usize, &'static [&'static str]),
}

fn is_list(text: &str) -> bool {
    text.is_empty()
        || text.strip_suffix(',').is_some_and(|text| {
            let parts: Vec<&str> = text.split(',').collect();
            parts.len() < 50 && parts.iter().all(|part| (1..=64).contains(&part.chars().count()))
        })
}

fn is_words(text: &str) -> bool {
    let word = |text: &str, most| {
        (1..=most).contains(&text.chars().count()) && text.chars().all(char::is_alphabetic)
    };
    text.split_once(' ').is_some_and(|(one, other)| word(one, 300) && word(other, 500))
}

const KINDS: [PatternCase; 5] = [
    PatternCase {
        pattern: r"^x[^\n]{0,1000}$",
        fits: |text| {
            text.starts_with('x') && !text.contains('\n') && (1..=1_001).contains(&text.chars().count())
        },
        parts: (&["x", "", "xx"], &["a", "é", "\"", "😀"], 1_001, &["", "\n", "x"]),
    },
    PatternCase {
        pattern: "^(?:[^,]{1,64},){0,49}$",
        fits: is_list,
        parts: (&["", "ab,", ","], &["a,", "é,", "\\,"], 50, &["", "b", "b,"]),
    },
    PatternCase {
        pattern: r"^[A-Za-z]{1,300} [A-Za-z]{1,500}$",
        fits: is_words,
        parts: (&["a ", "Ab", " "], &["b", "Z"], 500, &["", " ", " c"]),
    },
    PatternCase {
        pattern: r"^\S.{0,700}\S$",
        fits: |text| {
            let inner = text.chars().filter(|c| *c != '\n').count();
            let ends = [text.chars().next(), text.chars().next_back()];
            inner == text.chars().count()
                && (2..=702).contains(&inner)
                && ends.iter().all(|end| end.is_some_and(|end| !end.is_whitespace()))
        },
        parts: (&["x", " ", "é"], &[" ", "b"], 702, &["", "y", " "]),
    },
    PatternCase {
        pattern: r"^(?!__)[^\u0000-\u001f]{1,600}$",
        fits: |text| {
            let is_raw = text.chars().all(|c| c >= ' ');
            !text.starts_with("__") && is_raw && (1..=600).contains(&text.chars().count())
        },
        parts: (&["", "_", "__"], &["a", "_", "ß"], 600, &["", "\t", "_"]),
    },
];

/// A kind, and strings that match or nearly do.
fn kinds() -> impl Strategy<Value = (usize, Vec<String>)> {
    (0..KINDS.len()).prop_flat_map(|at| {
        let (befores, middles, most, afters) = KINDS[at].parts;
        let count = prop_oneof![0..4_usize, most - 3..most + 3];
        let part = prop::sample::select;
        let string = (part(befores), part(middles), count, part(afters));
        let string = string
            .prop_map(|(before, middle, count, after)| format!("{before}{}{after}", middle.repeat(count)));
        (Just(at), prop::collection::vec(string, 4..8))
    })
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

/// The string with every other character written as an escape.
fn escaped(text: &str) -> String {
    let mut written = String::from("\"");
    for (at, c) in text.chars().enumerate() {
        if at % 2 == 0 {
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| written += &format!("\\u{unit:04x}"));
        } else {
            let quoted = quoted(&c.to_string());
            written += &quoted[1..quoted.len() - 1];
        }
    }
    written + "\""
}

/// The grammar of a schema with the pattern of a kind.
fn grammar_of(kind: &PatternCase, with: impl Fn(&str) -> String) -> CompiledGrammar {
    compiled(&with(&quoted(kind.pattern)))
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 8, ..ProptestConfig::with_cases(10) })]

    /// A value with bounds on its length is accepted in its own spelling and in another one, if it fits.
    /// Every kind has strings of three characters and of hundreds, so some value is left.
    #[test]
    fn counted_values_keep_their_length_bounds(
        (at, texts) in kinds(), min in prop_oneof![Just(0), 100..500_usize], more in 3..500_usize,
    ) {
        let kind = &KINDS[at];
        let max = min + more;
        let grammar = grammar_of(kind, |pattern| format!(
            r#"{{"type": "string", "pattern": {pattern}, "minLength": {min}, "maxLength": {max}}}"#
        ));
        for text in texts {
            let fits = (kind.fits)(&text) && (min..=max).contains(&text.chars().count());
            prop_assert_eq!(accepts(&grammar, &quoted(&text)), fits, "{:?} {}", text, kind.pattern);
            prop_assert_eq!(accepts(&grammar, &escaped(&text)), fits, "{}", escaped(&text));
        }
    }

    /// Keys are restricted by `patternProperties` and by `propertyNames`; none comes twice.
    #[test]
    fn counted_patterns_restrict_keys((at, texts) in kinds()) {
        let kind = &KINDS[at];
        let matched = grammar_of(kind, |pattern| format!(
            r#"{{"type": "object", "patternProperties": {{{pattern}: {{"type": "integer"}}}},
                "additionalProperties": false}}"#
        ));
        let named = grammar_of(kind, |pattern| format!(
            r#"{{"type": "object", "propertyNames": {{"pattern": {pattern}, "maxLength": 600}},
                "additionalProperties": {{"type": "integer"}}}}"#
        ));
        let object = |one: &str, other: &str| format!(r#"{{{one}: 1, {other}: 2}}"#);
        for pair in texts.windows(2) {
            let [one, other] = pair else { continue };
            let fit = one != other && (kind.fits)(one) && (kind.fits)(other);
            let are_short = pair.iter().all(|text| text.chars().count() <= 600);
            for (written, again) in [(quoted(other), quoted(one)), (escaped(other), escaped(one))] {
                let both = object(&quoted(one), &written);
                prop_assert_eq!(accepts(&matched, &both), fit, "{}", both);
                prop_assert_eq!(accepts(&named, &both), fit && are_short, "{}", both);
                let twice = object(&quoted(one), &again);
                prop_assert!(!accepts(&matched, &twice) && !accepts(&named, &twice), "{}", twice);
            }
            let null = format!("{{{}: null}}", quoted(one));
            prop_assert!(!accepts(&matched, &null));
        }
    }

    /// Items must differ.
    #[test]
    fn unique_items_with_counted_patterns_differ((at, texts) in kinds()) {
        let kind = &KINDS[at];
        let grammar = grammar_of(kind, |pattern| format!(
            r#"{{"type": "array", "uniqueItems": true, "items": {{"type": "string", "pattern": {pattern}}}}}"#
        ));
        for pair in texts.windows(2) {
            let [one, other] = pair else { continue };
            let fit = one != other && (kind.fits)(one) && (kind.fits)(other);
            for written in [quoted(other), escaped(other)] {
                let both = format!("[{}, {written}]", quoted(one));
                prop_assert_eq!(accepts(&grammar, &both), fit, "{}", both);
            }
        }
    }

    /// Strings must not match a negated pattern, and must match one of two alternatives.
    #[test]
    fn counted_patterns_can_be_negated_or_alternatives((at, texts) in kinds(), short in 1..40_usize) {
        let kind = &KINDS[at];
        let denied = grammar_of(kind, |pattern| format!(
            r#"{{"type": "string", "not": {{"pattern": {pattern}}}, "maxLength": 900}}"#
        ));
        let either = grammar_of(kind, |pattern| format!(
            r#"{{"type": "string", "anyOf": [{{"pattern": {pattern}}}, {{"maxLength": {short}}},
                {{"pattern": "^_[^a]{{0,5}}$"}}]}}"#
        ));
        for text in texts {
            let length = text.chars().count();
            let fits = (kind.fits)(&text);
            prop_assert_eq!(accepts(&denied, &quoted(&text)), !fits && length <= 900, "{}", text);
            let other = text.starts_with('_') && !text.contains('a') && length <= 6;
            prop_assert_eq!(accepts(&either, &quoted(&text)), fits || length <= short || other, "{}", text);
        }
    }
}

/// A format and a pattern hold together with a bound on the length.
#[test]
fn a_format_a_pattern_and_a_length_hold_together() {
    let grammar = compiled(
        r#"{"type": "string", "format": "uri", "pattern": "^https://[^#]{1,100}$", "maxLength": 90}"#,
    );
    for (length, fits) in [(1, true), (81, true), (82, true), (83, false)] {
        let text = format!("\"https://{}\"", "a".repeat(length));
        assert_eq!(accepts(&grammar, &text), fits, "{length}");
    }
    assert!(!accepts(&grammar, "\"https://a#b\"") && !accepts(&grammar, "\"http://a\""));
    let dated = compiled(r#"{"format": "date-time", "type": "string", "maxLength": 20971520}"#);
    assert!(accepts(&dated, "\"2024-02-29T00:00:00Z\"") && !accepts(&dated, "\"2024-02-30T00:00:00Z\""));
}

/// Schemas, with texts that come close to the limits of their counts.
fn long_texts() -> [(&'static str, String); 4] {
    let long = "a".repeat(997);
    [
        (
            r#"{"patternProperties": {"^x[^\\n]{0,1000}$": {"type": "integer"}}, "type": "object",
                "additionalProperties": false}"#,
            format!(r#"{{"x{long}": 1, "x{long}aa": 1}}"#),
        ),
        (
            r#"{"type": "array", "uniqueItems": true,
                "items": {"type": "string", "pattern": "^(?:[^,]{1,64},){0,49}$"}}"#,
            format!(r#"["{}", "{}"]"#, "a,".repeat(49), "a,".repeat(48)),
        ),
        (
            r#"{"type": "string", "pattern": "^\\S.{0,1000}\\S$", "minLength": 500, "maxLength": 998}"#,
            format!("\"{long}a\""),
        ),
        (
            r#"{"type": "object", "propertyNames": {"pattern": "^[a-z]{1,600}:[a-z]{1,600}$"}}"#,
            format!("{{\"{}:{}\": 1}}", "a".repeat(600), "a".repeat(600)),
        ),
    ]
}

/// In a text of tokens with several bytes, every mask has just the tokens whose bytes may follow one by one.
#[test]
fn masks_of_counted_patterns_are_those_of_single_bytes() {
    let words = [
        "aa",
        "aaaa",
        "aaaaaaaaaaaaaaaa",
        "a\"",
        "\":",
        "\": 1",
        "a\", \"",
        "\\u00",
        "61",
        "\\u0061",
        "é",
        ", \"",
        "b,",
        ",,",
        "a,a,a,",
        "\"x",
        "x",
        "{\"",
        "\"}",
        "1}",
        "\"]",
        "[\"",
    ];
    let mut vocabulary = Vocabulary::builder().all_bytes();
    for (token, word) in (257..).zip(words) {
        vocabulary = vocabulary.token(TokenId::new(token), word);
    }
    let vocabulary = vocabulary.end_of_text(TokenId::new(256)).build().unwrap();
    for (schema, text) in long_texts() {
        let grammar = SchemaOptions::default().parse(schema, &Limits::default()).unwrap().grammar;
        let compiled = Compiler::new(vocabulary.clone()).compile(&grammar).unwrap();
        let mut session = compiled.constraint();
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            // Where nothing changes for long, a sample of the places will do.
            let is_near = rest.len() < 40 || text.len() - rest.len() < 20 || rest.len() % 41 == 0;
            if is_near {
                assert_masks(&session, &vocabulary, schema);
            }
            let fits = |(_, bytes): &(TokenId, &[u8])| rest.starts_with(bytes) && bytes.len() < 9;
            let (token, bytes) =
                vocabulary.text_tokens().filter(fits).max_by_key(|(_, bytes)| bytes.len()).unwrap();
            session.advance(token).unwrap();
            rest = &rest[bytes.len()..];
        }
        assert!(session.is_complete(), "{schema}");
    }
}

fn assert_masks(session: &Constraint, vocabulary: &Vocabulary, schema: &str) {
    let mut asked = session.clone();
    let mask = asked.mask().unwrap();
    for (token, bytes) in vocabulary.text_tokens() {
        let mut by_bytes = session.clone();
        let follows = by_bytes.advance_bytes(bytes).unwrap() == bytes.len();
        let shown = String::from_utf8_lossy(bytes);
        assert_eq!(mask.contains(token), follows, "{schema}: {shown:?}");
    }
}

/// Arguments of functions work in every way to write calls; what is refused names the function and the
/// keyword.
#[test]
fn arguments_of_functions_keep_counted_patterns() {
    let list = |pattern: &str| {
        format!(
            r#"[{{"name": "f", "parameters": {{"type": "object", "required": ["a"],
                "properties": {{"a": {{"type": "string", "pattern": "{pattern}"}}}}}}}}]"#
        )
    };
    let vocabulary = Vocabulary::builder().all_bytes().end_of_text(TokenId::new(256)).build().unwrap();
    // A string between tags is written as it is, and all of its states are listed.
    for (spelling, before, after, most) in [
        (
            Spelling::Hermes,
            "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"",
            "\"}}\n</tool_call>",
            1_000,
        ),
        (
            Spelling::QwenCoder,
            "<tool_call>\n<function=f>\n<parameter=a>\n",
            "\n</parameter>\n</function>\n</tool_call>",
            40,
        ),
    ] {
        let known = list(&format!(r"^x[^\\n]{{0,{most}}}$"));
        let calling = Calling::new(spelling).choice(Choice::Required).parallel(false);
        let grammar = Tools::parse(&known).unwrap().grammar(&calling, &Limits::default()).unwrap();
        let grammar = Compiler::new(vocabulary.clone()).any_special().compile(&grammar).unwrap();
        for (length, fits) in [(0, true), (most, true), (most + 1, false)] {
            let text = format!("{before}x{}{after}", "b".repeat(length));
            let mut session = grammar.constraint();
            let is_call = session.advance_text(text.as_bytes()).unwrap() && session.is_complete();
            assert_eq!(is_call, fits, "{spelling} {length}");
        }
    }
    let large = list(r"^(?:[^,]{1,64},){0,10000}$");
    for spelling in Spelling::all() {
        let calling = Calling::new(spelling).choice(Choice::Required);
        let error = Tools::parse(&large).unwrap().grammar(&calling, &Limits::default()).unwrap_err();
        let message = error.to_string();
        assert!(message.contains("function `f`"), "{message}");
        assert!(message.contains("`pattern`"), "{message}");
    }
}

/// A pattern that is too large is refused by the name of its keyword, in every place.
#[test]
fn refused_patterns_name_their_keyword_in_every_place() {
    const LARGE: &str = "^(?:[^,]{1,64},){0,10000}$";
    for (schema, pointer, keyword) in [
        (r#"{"patternProperties": {"@": {"type": "integer"}}}"#, "#", "patternProperties"),
        (r#"{"type": "object", "propertyNames": {"pattern": "@"}}"#, "#/propertyNames", "pattern"),
        (r#"{"uniqueItems": true, "items": {"type": "string", "pattern": "@"}}"#, "#/items", "pattern"),
        (r#"{"type": "string", "not": {"pattern": "@"}}"#, "#/not", "pattern"),
        (r#"{"anyOf": [{"type": "null"}, {"type": "string", "pattern": "@"}]}"#, "#/anyOf/1", "pattern"),
        (r#"{"type": "string", "pattern": "@", "format": "uri", "maxLength": 4096}"#, "#", "pattern"),
    ] {
        let error = refused(&schema.replace('@', LARGE));
        assert_eq!(error.kind(), &SchemaErrorKind::Limit, "{schema}: {error}");
        assert_eq!((error.pointer(), error.keyword()), (pointer, Some(keyword)), "{schema}: {error}");
    }
}

/// Texts that use up the room for automata end in an error with a place and the name of the limit, in schemas
/// too.
#[test]
fn texts_past_the_terminal_budget_end_in_an_error() {
    let schema = r#"{"type": "object", "properties": {"a": {"type": "string", "format": "uri",
        "maxLength": 20971520}}, "required": ["a"]}"#;
    let grammar = SchemaOptions::default().parse(schema, &Limits::default()).unwrap().grammar;
    let vocabulary = Vocabulary::builder().all_bytes().end_of_text(TokenId::new(256)).build().unwrap();
    let compile = |terminal_bytes| {
        let limits = Limits { terminal_bytes, ..Limits::default() };
        Compiler::new(vocabulary.clone()).limits(limits).compile(&grammar)
    };
    let rooms = (14..27).map(|power| 1_usize << power);
    let least = rooms.clone().find(|room| compile(*room).is_ok()).expect("some room is enough");
    let mut session = compile(least).unwrap().constraint();
    session.advance_bytes(b"{\"a\": \"https://a.b/").unwrap();
    let error = (0..100_000).find_map(|_| session.advance_bytes(b"abcdefgh").err()).expect("a budget");
    let StepErrorKind::Limit(limit) = error.kind() else { panic!("{error}") };
    assert_eq!(limit.budget().field(), Some("terminal_bytes"));
    assert!(error.place().is_some_and(|place| place.bytes > 18), "{error}");
    assert!(error.to_string().contains("hint:"), "{error}");
}

//! Shortest completions: by the oracle, no shorter text completes, and none of equal length has fewer tokens.

use domino::{
    Budget, Compiler, Grammar, Limits, Lookahead, StepErrorKind, Syntax, Vocabulary, oracle::Session,
};
use proptest::prelude::*;

use crate::{
    promises::generate::{ALPHABET, Case, World, case, config},
    support::decider::byte_vocabulary,
};

/// Most texts tried by brute force for one completion.
const MOST_TEXTS: usize = 1_000;

/// Bytes that represent all those that random grammars can tell apart.
fn alphabet() -> Vec<u8> {
    let mut bytes = String::from_iter(ALPHABET).into_bytes();
    bytes.extend(*b"\0d\x80");
    bytes.sort_unstable();
    bytes.dedup();
    bytes
}

/// Result of brute force for the text of `session`.
enum Brute {
    /// All shortest completions.
    Shortest(Vec<Vec<u8>>),
    /// A lower bound of their length: longer texts are too many to try.
    AtLeast(usize),
}

/// Tries all texts over the alphabet, short ones first.
fn brute_force(session: &mut Session<'_>) -> Brute {
    let mut level: Vec<Vec<u8>> = vec![Vec::new()];
    let mut tried = 0;
    for length in 0.. {
        let (mut next, mut found) = (Vec::new(), Vec::new());
        for text in level {
            assert!(session.push_all(&text));
            if session.is_complete() {
                found.push(text.clone());
            }
            for byte in alphabet() {
                if session.push(byte) {
                    session.pop();
                    next.push([&text[..], &[byte]].concat());
                }
            }
            (0..text.len()).for_each(|_| assert!(session.pop()));
        }
        if !found.is_empty() {
            return Brute::Shortest(found);
        }
        tried += next.len();
        if tried > MOST_TEXTS {
            return Brute::AtLeast(length + 1);
        }
        level = next;
    }
    unreachable!("lengths do not end")
}

/// Fewest bytes of `text` that are in no token, and the fewest tokens and such bytes for that.
fn pieces(vocabulary: &Vocabulary, text: &[u8]) -> (usize, usize) {
    let mut best = vec![(usize::MAX, usize::MAX); text.len() + 1];
    best[0] = (0, 0);
    for at in 0..text.len() {
        let (raw, count) = best[at];
        best[at + 1] = best[at + 1].min((raw + 1, count + 1));
        for (_, bytes) in vocabulary.text_tokens().filter(|(_, bytes)| !bytes.is_empty()) {
            if text[at..].starts_with(bytes) {
                let end = at + bytes.len();
                best[end] = best[end].min((raw, count + 1));
            }
        }
    }
    best[text.len()]
}

/// Compares the completion after `text` with brute force.
pub(in crate::promises) fn compare(world: &World, constraint: &mut domino::Constraint, text: &[u8]) {
    let mut session = world.oracle.session();
    assert!(session.push_all(text));
    let brute = brute_force(&mut session);
    let completion = match constraint.shortest_completion() {
        Ok(completion) => completion,
        Err(error) => {
            // Only a search with very many paths may exhaust its budget.
            assert!(matches!(brute, Brute::AtLeast(_)), "{error}");
            let StepErrorKind::Limit(limit) = error.kind() else { panic!("{error}") };
            assert_eq!(limit.budget(), Budget::CompletionVisits);
            return;
        }
    };
    let whole = [text, &completion.bytes].concat();
    assert!(world.oracle.accepts(&whole), "{} is not complete", whole.escape_ascii());
    let fewest = pieces(&world.vocabulary, &completion.bytes);
    let sure = completion.fewest;
    match &completion.tokens {
        Some(tokens) => {
            assert_eq!(world.vocabulary.concat(tokens), completion.bytes);
            assert_eq!(fewest.0, 0);
            assert!(if sure { tokens.len() == fewest.1 } else { tokens.len() >= fewest.1 });
        }
        None => assert!(fewest.0 > 0 || !sure),
    }
    match brute {
        Brute::AtLeast(bytes) => assert!(completion.bytes.len() >= bytes),
        Brute::Shortest(texts) => {
            let shown = completion.bytes.escape_ascii().to_string();
            assert_eq!(completion.bytes.len(), texts[0].len(), "{shown:?}");
            // Bytes that grammars cannot tell apart are of different tokens, so there may be better ones yet.
            let best = texts.iter().map(|text| pieces(&world.vocabulary, text)).min();
            assert!(!sure || Some(fewest) <= best, "{shown:?}: {fewest:?}, and {best:?} is possible");
        }
    }
    // Asking has moved nothing, and the text can be completed.
    assert_eq!(constraint.is_complete(), completion.bytes.is_empty());
    let mut closed = constraint.clone();
    assert_eq!(closed.advance_bytes(&completion.bytes).unwrap(), completion.bytes.len());
    assert!(closed.is_complete());
    assert!(closed.shortest_completion().unwrap().bytes.is_empty());
}

fn walk(case: &Case) {
    let world = case.build();
    let Some(compiled) = world.compile(Lookahead::Unbounded) else { return };
    let mut constraint = compiled.constraint();
    let mut text = Vec::new();
    compare(&world, &mut constraint, &text);
    for &choice in &case.choices {
        let mask = constraint.mask().unwrap().clone();
        let Some(token) = world.choose(&mask, choice).filter(|&token| !world.ends(token)) else { return };
        constraint.advance(token).unwrap();
        text.extend_from_slice(world.vocabulary.bytes(token).unwrap());
        compare(&world, &mut constraint, &text);
    }
}

proptest! {
    #![proptest_config(config(150))]

    #[test]
    fn completions_are_the_shortest(case in case(6)) {
        walk(&case);
    }
}

/// The completion of `text` with a vocabulary of bytes.
fn complete(grammar: &str, text: &str) -> String {
    let limits = Limits::default();
    let grammar = Grammar::parse(Syntax::Gbnf, grammar, &limits).unwrap();
    let mut constraint = Compiler::new(byte_vocabulary()).compile(&grammar).unwrap().constraint();
    assert_eq!(constraint.advance_bytes(text.as_bytes()).unwrap(), text.len(), "{text:?} cannot follow");
    String::from_utf8(constraint.shortest_completion().unwrap().bytes).unwrap()
}

#[test]
fn completions_close_what_the_text_has_opened() {
    let json = std::fs::read_to_string(format!("{}/grammars/rfc8259.gbnf", env!("DOMINO_ROOT"))).unwrap();
    for (text, completion) in [
        ("", "0"),
        ("{", "}"),
        (r#"{"name": "Ada"#, r#""}"#),
        (r#"{"name": ["Ada", {"x": 1"#, "}]}"),
        (r#"{"name""#, ":0}"),
        (r#"[1, {"a": tr"#, "ue}]"),
        (r#"[""#, r#""]"#),
        (r#"["\u00e"#, r#"0"]"#),
        (r#"["\"#, r#"""]"#),
        ("[1, 2]", ""),
        ("[-", "0]"),
    ] {
        assert_eq!(complete(&json, text), completion, "{text}");
    }
    // Deep stacks, and a choice between a short end now and a shorter one further on.
    assert_eq!(complete(&json, &"[".repeat(3_000)), "]".repeat(3_000));
    let grammar = r#"root ::= "a" x   x ::= "1234" | y "56" | "" z   y ::= "7"   z ::= y y y y"#;
    assert_eq!(complete(grammar, "a"), "756");
    assert_eq!(complete(grammar, "a7"), "56");
    assert_eq!(complete(grammar, "a77"), "77");
}

#[test]
fn long_completions_are_found_or_refused() {
    assert_eq!(complete(r#"root ::= "a" [a-z]{5000} "b""#, "a").len(), 5001);
    // 2^60 bytes at least, from 60 rules.
    let mut grammar = "root ::= \"(\" r0".to_owned();
    for rule in 0..60 {
        grammar += &format!("\nr{rule} ::= r{0} r{0} | \"(\" r{rule} \")\"", rule + 1);
    }
    grammar += "\nr60 ::= \"x\"";
    let grammar = Grammar::parse(Syntax::Gbnf, &grammar, &Limits::default()).unwrap();
    let mut constraint = Compiler::new(byte_vocabulary()).compile(&grammar).unwrap().constraint();
    constraint.advance_bytes(b"(").unwrap();
    let error = constraint.shortest_completion().unwrap_err();
    assert!(
        matches!(error.kind(), StepErrorKind::Limit(limit) if limit.what().contains("completion")),
        "{error}"
    );
    // It has not moved.
    assert_eq!(constraint.advance_bytes(b"x").unwrap(), 1);
}

/// A text with too many readings for its budget: one shortest completion is found without trying all.
#[test]
fn one_of_very_many_shortest_ways_is_found() {
    let text = "root ::= [^x]? root (\"\u{e9}\" | tail) | \"c\"\ntail ::= [c-\u{e9}] [^x] | \"aa\"\n";
    let grammar = Grammar::parse(Syntax::Gbnf, text, &Limits::default()).unwrap();
    let mut limits = Limits::default();
    limits.completion_visits = 20_000;
    let compiled = Compiler::new(byte_vocabulary()).limits(limits).compile(&grammar).unwrap();
    let mut constraint = compiled.constraint();
    assert_eq!(constraint.advance_bytes(&[b'a'; 14]).unwrap(), 14);
    let completion = constraint.shortest_completion().unwrap();
    assert_eq!(constraint.advance_bytes(&completion.bytes).unwrap(), completion.bytes.len());
    assert!(constraint.is_complete());
}

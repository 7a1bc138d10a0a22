//! Tokens by number and by text in GBNF and Lark, against partial derivatives (Antimirov, 1996) by bytes and
//! by tokens; errors about tokens that a vocabulary lacks; texts without a vocabulary.

use std::collections::BTreeSet;

use domino::{
    CompileErrorKind, Compiler, Constraint, Grammar, Limits, Lookahead, Syntax, TokenId, Vocabulary,
};
use proptest::prelude::*;

use crate::promises::generate::config;

/// Ordinary tokens by number.
const TEXTS: [&str; 7] = ["a", "b", "ab", "<t>", "ba", "t>", "<"];
/// Special tokens, from number 7 on.
const SPECIALS: [&str; 3] = ["<s>", "<u>", "<|x|>"];
/// Id of end of text, after an unused one.
const END: u32 = 11;

/// An expression over bytes and tokens.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Byte(u8),
    /// The token of this text, or all others.
    Named(&'static str, bool),
    /// The tokens of these numbers, or all others.
    Numbers(BTreeSet<u32>, bool),
    Then(Vec<Part>),
    Either(Vec<Part>),
    Repeated(Box<Part>, u32, u32),
}

fn literal() -> Part {
    Part::Then("<t>".bytes().map(Part::Byte).collect())
}

fn part(ordinary: bool) -> impl Strategy<Value = Part> {
    let names: &[&str] = if ordinary { &["<s>", "<t>", "<u>"] } else { &["<s>", "<u>"] };
    let leaf = prop_oneof![
        prop::sample::select(b"ab".to_vec()).prop_map(Part::Byte),
        Just(literal()),
        (prop::sample::select(names.to_vec()), any::<bool>())
            .prop_map(move |(name, except)| Part::Named(name, except && ordinary)),
        (prop::collection::btree_set(0..10_u32, 1..4), any::<bool>())
            .prop_map(|(numbers, except)| Part::Numbers(numbers, except)),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(Part::Then),
            prop::collection::vec(inner.clone(), 1..4).prop_map(Part::Either),
            (inner, 0..2_u32, 1..4_u32).prop_map(|(part, min, max)| Part::Repeated(part.into(), min, max)),
        ]
    })
}

/// Numbers as a list of numbers and ranges.
fn list(numbers: &BTreeSet<u32>) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => parts.push((number, number)),
        }
    }
    let written = parts.iter().map(|&(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    written.collect::<Vec<_>>().join(",")
}

impl Part {
    fn written(&self, syntax: Syntax) -> String {
        let gbnf = syntax == Syntax::Gbnf;
        let all = |parts: &[Part]| parts.iter().map(|part| part.written(syntax)).collect::<Vec<_>>();
        let not = |except: bool| if except { "!" } else { "" };
        match self {
            Self::Byte(byte) => format!("{:?}", char::from(*byte).to_string()),
            Self::Named(name, except) => format!("{}{name}", not(*except)),
            Self::Numbers(numbers, except) if gbnf => format!("{}<[{}]>", not(*except), list(numbers)),
            Self::Numbers(numbers, except) => {
                format!("<[{}{}]>", if *except { "^" } else { "" }, list(numbers))
            }
            Self::Then(parts) => format!("({})", all(parts).join(" ")),
            Self::Either(parts) => format!("({})", all(parts).join(" | ")),
            Self::Repeated(part, min, max) => format!("({}){{{min},{max}}}", part.written(syntax)),
        }
    }

    fn is_nullable(&self) -> bool {
        match self {
            Self::Byte(_) | Self::Named(..) | Self::Numbers(..) => false,
            Self::Then(parts) => parts.iter().all(Self::is_nullable),
            Self::Either(parts) => parts.iter().any(Self::is_nullable),
            Self::Repeated(part, min, _) => *min == 0 || part.is_nullable(),
        }
    }

    /// Partial derivatives by one byte, or by one token that is read as a token.
    fn after(&self, takes: &dyn Fn(&Part) -> bool) -> BTreeSet<Part> {
        match self {
            Self::Byte(_) | Self::Named(..) | Self::Numbers(..) => {
                takes(self).then(|| Self::Then(Vec::new())).into_iter().collect()
            }
            Self::Either(parts) => parts.iter().flat_map(|part| part.after(takes)).collect(),
            Self::Then(parts) => {
                let Some((first, rest)) = parts.split_first() else { return BTreeSet::new() };
                let rest = Self::Then(rest.to_vec());
                let then = |left: Part| Self::Then(vec![left, rest.clone()]);
                let mut found: BTreeSet<Part> = first.after(takes).into_iter().map(then).collect();
                if first.is_nullable() {
                    found.extend(rest.after(takes));
                }
                found
            }
            Self::Repeated(_, _, 0) => BTreeSet::new(),
            Self::Repeated(part, min, max) => {
                let rest = Self::Repeated(part.clone(), min.saturating_sub(1), max - 1);
                let then = |left: Part| Self::Then(vec![left, rest.clone()]);
                part.after(takes).into_iter().map(then).collect()
            }
        }
    }

    /// True if this leaf takes the token.
    fn takes(&self, token: u32) -> bool {
        let name = name(token);
        match self {
            Self::Named(named, except) => (name == *named) != *except,
            Self::Numbers(numbers, except) => numbers.contains(&token) != *except,
            _ => false,
        }
    }
}

/// Text of an ordinary token, name of a special one.
fn name(token: u32) -> &'static str {
    let at = token as usize;
    if at < TEXTS.len() { TEXTS[at] } else { SPECIALS[at - TEXTS.len()] }
}

/// A set of partial derivatives.
type Left = BTreeSet<Part>;

fn after(left: &Left, takes: &dyn Fn(&Part) -> bool) -> Left {
    left.iter().flat_map(|part| part.after(takes)).collect()
}

/// Derivatives by a token that is read in any way.
fn after_token(left: &Left, token: u32) -> Left {
    let mut found = after(left, &|part| part.takes(token));
    if let Some(text) = TEXTS.get(token as usize) {
        let byte = |left: Left, byte: u8| after(&left, &|part| *part == Part::Byte(byte));
        found.extend(text.bytes().fold(left.clone(), byte));
    }
    found
}

fn vocabulary() -> Vocabulary {
    let mut builder = Vocabulary::builder().end_of_text(TokenId::new(END));
    for (text, id) in TEXTS.iter().zip(0..) {
        builder = builder.token(TokenId::new(id), *text);
    }
    for (name, id) in SPECIALS.iter().zip(7..) {
        builder = builder.special(TokenId::new(id), *name);
    }
    builder.build().unwrap()
}

/// All ids in use, without the end.
fn tokens() -> std::ops::Range<u32> {
    0..10
}

fn agrees(constraint: &mut Constraint, left: &Left, exact: bool) {
    let complete = left.iter().any(Part::is_nullable);
    assert_eq!(constraint.is_complete(), complete);
    let mask = constraint.fork().mask().unwrap().clone();
    assert_eq!((mask.size(), mask.contains(TokenId::new(END))), (END as usize + 1, complete));
    assert!(!mask.contains(TokenId::new(10)), "a number without a token");
    for token in tokens() {
        let may = !after_token(left, token).is_empty();
        let masked = mask.contains(TokenId::new(token));
        assert!(masked == may || !exact && !masked, "{:?} after {left:?}", name(token));
        assert_eq!(constraint.allows(TokenId::new(token)).unwrap(), masked, "{:?}", name(token));
    }
}

fn walk(part: &Part, syntax: Syntax, choices: &[usize], lookahead: Lookahead) {
    let start = if syntax == Syntax::Gbnf { "root ::=" } else { "start:" };
    let text = format!("{start} {}", part.written(syntax));
    let grammar =
        Grammar::parse(syntax, &text, &Limits::default()).unwrap_or_else(|error| panic!("{text}\n{error}"));
    let compiled = Compiler::new(vocabulary()).lookahead(lookahead).compile(&grammar).unwrap();
    let mut constraint = compiled.constraint();
    let mut left = Left::from([part.clone()]);
    for &choice in choices {
        agrees(&mut constraint, &left, lookahead == Lookahead::Unbounded);
        let completion = constraint.shortest_completion().unwrap();
        let mut ended = constraint.fork();
        assert_eq!(ended.advance_bytes(&completion.bytes).unwrap(), completion.bytes.len(), "{text}");
        assert!(ended.is_complete());
        let next: Vec<(u32, Left)> = tokens().map(|token| (token, after_token(&left, token))).collect();
        let next: Vec<_> = next.into_iter().filter(|(_, left)| !left.is_empty()).collect();
        if next.is_empty() {
            return;
        }
        let (token, after) = next[choice % next.len()].clone();
        constraint.advance(TokenId::new(token)).unwrap();
        left = after;
    }
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn tokens_of_gbnf_are_exact(part in part(true), choices in prop::collection::vec(any::<usize>(), 6)) {
        walk(&part, Syntax::Gbnf, &choices, Lookahead::Unbounded);
    }

    #[test]
    fn tokens_of_lark_are_exact(part in part(false), choices in prop::collection::vec(any::<usize>(), 6)) {
        walk(&part, Syntax::Lark, &choices, Lookahead::Unbounded);
    }

    #[test]
    fn fewer_terminals_allow_fewer_tokens(
        part in part(true),
        choices in prop::collection::vec(any::<usize>(), 6),
        k in 0..3_u32,
    ) {
        walk(&part, Syntax::Gbnf, &choices, Lookahead::Terminals(k));
    }
}

fn gbnf(text: &str) -> Grammar {
    Grammar::parse(Syntax::Gbnf, text, &Limits::default()).unwrap_or_else(|error| panic!("{text}\n{error}"))
}

fn lark(text: &str) -> Grammar {
    Grammar::parse(Syntax::Lark, text, &Limits::default()).unwrap_or_else(|error| panic!("{text}\n{error}"))
}

fn allowed(constraint: &mut Constraint) -> Vec<u32> {
    constraint.mask().unwrap().iter().map(TokenId::raw).collect()
}

/// Names stand between marks; marks of neighbouring names do not enclose a third.
#[test]
fn a_completion_reads_each_name_once() {
    let text = "root ::= <s> <t> <s>";
    let mut constraint = Compiler::new(vocabulary()).compile(&gbnf(text)).unwrap().constraint();
    let completion = constraint.shortest_completion().unwrap();
    assert_eq!(completion.bytes, b"\xFF<s>\xFF<t>\xFF<s>\xFF");
    assert_eq!(constraint.advance_bytes(&completion.bytes).unwrap(), 13);
    assert!(constraint.is_complete());
}

/// The example of llama.cpp's page, by text and by number.
#[test]
fn a_block_between_two_tokens_has_any_tokens_inside() {
    let by_text = "root ::= <s> inside <u> [ab]*\ninside ::= !<u>*";
    let by_number = "root ::= <[7]> inside <[8]> [ab]*\ninside ::= !<[8]>*";
    for text in [by_text, by_number] {
        let mut constraint = Compiler::new(vocabulary()).compile(&gbnf(text)).unwrap().constraint();
        assert_eq!(allowed(&mut constraint), [7], "{text}");
        constraint.advance(TokenId::new(7)).unwrap();
        assert_eq!(constraint.text_of(TokenId::new(7)), b"<s>");
        let all: Vec<u32> = tokens().collect();
        assert_eq!(allowed(&mut constraint), all, "{text}");
        for token in [0, 9, 3, 8] {
            constraint.advance(TokenId::new(token)).unwrap();
        }
        assert_eq!(allowed(&mut constraint), [0, 1, 2, 4, END], "{text}");
    }
}

#[test]
fn ranges_of_token_numbers_can_be_negated() {
    for (text, want) in [
        ("start: <[*]>", vec![0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        ("start: <[^0-8]>", vec![9]),
        ("start: <[^2,4-9]>", vec![0, 1, 3]),
        // Ends of texts and numbers without a token are left out of ranges.
        ("start: <[8-11]>", vec![8, 9]),
        ("start: <[1,0,1,]>", vec![0, 1]),
        ("start: <[4294967295-4294967295,3]> | <[2]>", vec![]),
    ] {
        let grammar = lark(text);
        match Compiler::new(vocabulary()).compile(&grammar) {
            Ok(compiled) => assert_eq!(allowed(&mut compiled.constraint()), want, "{text}"),
            Err(error) => assert!(want.is_empty(), "{text}: {error}"),
        }
    }
}

#[test]
fn errors_name_the_token_the_vocabulary_and_the_place() {
    let error = |grammar: &Grammar| Compiler::new(vocabulary()).compile(grammar).unwrap_err();
    let missing = error(&gbnf("root ::= \"a\"\n  <[1000]>"));
    assert_eq!(missing.kind(), &CompileErrorKind::NoToken { number: 1000, size: 12 });
    assert_eq!(missing.place().unwrap().position().to_string(), "2:3");
    let told = missing.to_string();
    for part in ["1000", "12 numbers, 0 to 11", "--> 2:3", "  <[1000]>", "hint: "] {
        assert!(told.contains(part), "{told}");
    }
    for (grammar, kind, place) in [
        (lark("start: <[3-12]>"), CompileErrorKind::NoToken { number: 12, size: 12 }, "1:8"),
        (gbnf("root ::= !<[12]>"), CompileErrorKind::NoToken { number: 12, size: 12 }, "1:10"),
        (gbnf("root ::= <[10]>"), CompileErrorKind::NoToken { number: 10, size: 12 }, "1:10"),
        (lark("start: \"a\" | <[10-11]>"), CompileErrorKind::NoTokenLeft("<[10-11]>".into()), "1:14"),
        (gbnf("root ::= !<[0-11]>"), CompileErrorKind::NoTokenLeft("!<[0-11]>".into()), "1:10"),
        (gbnf("root ::= <w>"), CompileErrorKind::NoSpecialToken("<w>".into(), Some("<s>".into())), "1:10"),
        (gbnf("root ::= !<www>"), CompileErrorKind::NoSpecialToken("<www>".into(), None), "1:10"),
        (lark("start: <www>"), CompileErrorKind::NoSpecialToken("<www>".into(), None), "1:8"),
    ] {
        let error = error(&grammar);
        assert_eq!((error.kind(), &*error.place().unwrap().position().to_string()), (&kind, place));
    }
    let ending = error(&gbnf("root ::= \"a\" <[11]>"));
    assert!(matches!(ending.kind(), CompileErrorKind::EndsText(_)), "{ending}");
}

/// Texts for which there is no vocabulary, as `domino check` reads them.
#[test]
fn token_names_are_read_in_texts_without_a_vocabulary() {
    let compile = |grammar: &Grammar| Compiler::new(vocabulary()).any_special().compile(grammar);
    let accepts = |text: &str, read: &str| {
        let mut constraint = compile(&gbnf(text)).unwrap().constraint();
        constraint.advance_text(read.as_bytes()).unwrap() && constraint.is_complete()
    };
    let block = "root ::= <think> !</think>* </think> [a-z]*";
    for (text, read, want) in [
        ("root ::= <think> [a-z ]* </think>", "<think>ab</think>", true),
        ("root ::= <think> [a-z ]* </think>", "<think>ab", false),
        ("root ::= <think> [a-z ]* </think>", "ab</think>", false),
        (block, "<think>Any text.\n<b></think>ab", true),
        (block, "<think></think>", true),
        (block, "<think>a</think>b</think>", false),
        ("root ::= !<x> \"z\"", "abcz", true),
        ("root ::= !<x> \"z\"", "z", false),
        ("root ::= !<x>{2} \"z\"", "az", false),
        ("root ::= !<x>{2} \"z\"", "aaaz", true),
        ("root ::= !<x> !<x> <x>", "abc<x>", true),
        ("root ::= !<x>", "a<x>", false),
        ("root ::= <y> | !<x> \"b\"", "<y>b", true),
        ("root ::= <y> | !<x> \"b\"", "<x>b", false),
        ("root ::= !<x>* <x> !<y>*", "ab<y><x>cd<x>", true),
        ("root ::= \"a\" !<x>{3}", "abc", false),
    ] {
        assert_eq!(accepts(text, read), want, "{text} of {read:?}");
    }
    for text in ["root ::= <[7]>", "root ::= !<[7]>*", "root ::= \"a\" (<[1]> | <x>)"] {
        let error = compile(&gbnf(text)).unwrap_err();
        assert!(matches!(error.kind(), CompileErrorKind::NoTokens(_)), "{text}: {error}");
        assert!(error.place().is_some());
    }
}

/// The name of a token given by its number is read in texts, and so are its bytes.
#[test]
fn tokens_picked_by_number_are_read_by_name_in_texts() {
    for (text, read, want) in [
        ("root ::= <[7]> \"a\"", "<s>a", true),
        ("root ::= <[3]> \"a\"", "<t>a", true),
        ("root ::= <t> \"a\" <t>", "<t>a<t>", true),
        ("root ::= <[3]> \"a\"", "<s>a", false),
        ("root ::= !<[7]> \"a\"", "<s>a", false),
        ("root ::= !<[7]>{2}", "<u>a", true),
        ("root ::= <t> \"<t>\"", "<t><t>", true),
    ] {
        let compiled = Compiler::new(vocabulary()).compile(&gbnf(text)).unwrap();
        let mut constraint = compiled.constraint();
        let accepted = constraint.advance_text(read.as_bytes()).unwrap() && constraint.is_complete();
        assert_eq!(accepted, want, "{text} of {read:?}");
    }
}

//! Token classes in expressions, against partial derivatives (Antimirov, 1996) by bytes and by tokens.

use std::collections::BTreeSet;

use domino::{
    CompileErrorKind, Compiler, Constraint, Grammar, Limits, Lookahead, StepErrorKind, Syntax, TokenId,
    Vocabulary,
};
use proptest::prelude::*;

use crate::promises::generate::config;

/// An expression over bytes and classes of tokens.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Byte(u8),
    /// Any token, or any without a line feed.
    Token {
        line_feeds: bool,
    },
    Then(Vec<Part>),
    Either(Vec<Part>),
    Repeated(Box<Part>, u32, u32),
}

const TOKENS: [&str; 10] = ["a", "b", "\n", "ab", "ba", "aab", "b\n", "\na", "bb", "abab"];
const END: u32 = 10;

fn part() -> impl Strategy<Value = Part> {
    let leaf = prop_oneof![
        prop::sample::select(b"ab\n".to_vec()).prop_map(Part::Byte),
        any::<bool>().prop_map(|line_feeds| Part::Token { line_feeds }),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(Part::Then),
            prop::collection::vec(inner.clone(), 1..4).prop_map(Part::Either),
            (inner, 0..2_u32, 1..4_u32).prop_map(|(part, min, max)| Part::Repeated(part.into(), min, max)),
        ]
    })
}

impl Part {
    fn written(&self) -> String {
        let all = |parts: &[Part]| parts.iter().map(Part::written).collect::<Vec<_>>();
        match self {
            Self::Byte(b'\n') => "\\n".to_owned(),
            Self::Byte(byte) => char::from(*byte).to_string(),
            Self::Token { line_feeds: true } => "(?P<TEXT_TOKEN>)".to_owned(),
            Self::Token { line_feeds: false } => "(?P<PARAGRAPH_TOKEN>)".to_owned(),
            Self::Then(parts) => format!("(?:{})", all(parts).concat()),
            Self::Either(parts) => format!("(?:{})", all(parts).join("|")),
            Self::Repeated(part, min, max) => format!("(?:{}){{{min},{max}}}", part.written()),
        }
    }

    fn gbnf(&self) -> String {
        let all = |parts: &[Part]| parts.iter().map(Part::gbnf).collect::<Vec<_>>();
        match self {
            Self::Byte(b'\n') => "\"\\n\"".to_owned(),
            Self::Byte(byte) => format!("{:?}", char::from(*byte).to_string()),
            Self::Token { line_feeds: true } => "TEXT_TOKEN()".to_owned(),
            Self::Token { line_feeds: false } => "PARAGRAPH_TOKEN()".to_owned(),
            Self::Then(parts) => format!("({})", all(parts).join(" ")),
            Self::Either(parts) => format!("({})", all(parts).join(" | ")),
            Self::Repeated(part, min, max) => format!("({}){{{min},{max}}}", part.gbnf()),
        }
    }

    fn is_nullable(&self) -> bool {
        match self {
            Self::Byte(_) | Self::Token { .. } => false,
            Self::Then(parts) => parts.iter().all(Self::is_nullable),
            Self::Either(parts) => parts.iter().any(Self::is_nullable),
            Self::Repeated(part, min, _) => *min == 0 || part.is_nullable(),
        }
    }

    /// Partial derivatives by one byte, or by one token that is read as a member of a class.
    fn after(&self, takes: &dyn Fn(&Part) -> bool) -> BTreeSet<Part> {
        match self {
            Self::Byte(_) | Self::Token { .. } => {
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
}

/// A set of partial derivatives.
type Left = BTreeSet<Part>;

fn after(left: &Left, takes: &dyn Fn(&Part) -> bool) -> Left {
    left.iter().flat_map(|part| part.after(takes)).collect()
}

fn after_byte(left: &Left, byte: u8) -> Left {
    after(left, &|part| *part == Part::Byte(byte))
}

/// Derivatives by a token that is read as a member of a class.
fn after_class(left: &Left, token: &str) -> Left {
    after(left, &|part| matches!(part, Part::Token { line_feeds } if *line_feeds || !token.contains('\n')))
}

/// Derivatives by a token that is read in any way.
fn after_token(left: &Left, token: &str) -> Left {
    let by_bytes = token.bytes().fold(left.clone(), |left, byte| after_byte(&left, byte));
    by_bytes.into_iter().chain(after_class(left, token)).collect()
}

/// Derivatives by each prefix of a text, which is cut into tokens in any way.
fn along(left: &Left, text: &str) -> Vec<Left> {
    let mut reached = vec![Left::new(); text.len() + 1];
    reached[0] = left.clone();
    for from in 0..text.len() {
        let here = reached[from].clone();
        reached[from + 1].extend(after_byte(&here, text.as_bytes()[from]));
        for token in TOKENS.iter().filter(|token| text[from..].starts_with(**token)) {
            reached[from + token.len()].extend(after_class(&here, token));
        }
    }
    reached
}

fn vocabulary() -> Vocabulary {
    let builder = Vocabulary::builder().end_of_text(TokenId::new(END));
    let numbered = TOKENS.iter().zip(0..);
    numbered.fold(builder, |builder, (token, id)| builder.token(TokenId::new(id), *token)).build().unwrap()
}

fn agrees(constraint: &mut Constraint, left: &Left) {
    let complete = left.iter().any(Part::is_nullable);
    assert_eq!(constraint.is_complete(), complete);
    let mask = constraint.fork().mask().unwrap().clone();
    assert_eq!((mask.size(), mask.contains(TokenId::new(END))), (END as usize + 1, complete));
    for (token, id) in TOKENS.iter().zip(0..) {
        let may = !after_token(left, token).is_empty();
        assert_eq!(mask.contains(TokenId::new(id)), may, "{token:?} after {left:?}");
        assert_eq!(constraint.allows(TokenId::new(id)).unwrap(), may, "{token:?} after {left:?}");
    }
}

proptest! {
    #![proptest_config(config(300))]

    /// Token classes in regular expressions and in GBNF are exact, by tokens and by texts.
    #[test]
    fn classes_of_tokens_are_exact(
        part in part(),
        choices in prop::collection::vec(any::<usize>(), 6),
        text in "[ab\n]{1,6}",
    ) {
        let limits = Limits::default();
        let gbnf = format!("root ::= {}", part.gbnf());
        for (syntax, grammar) in [(Syntax::Regex, part.written()), (Syntax::Gbnf, gbnf)] {
            let grammar = Grammar::parse(syntax, &grammar, &limits).unwrap();
            let compiled = Compiler::new(vocabulary()).compile(&grammar).unwrap();
            let mut constraint = compiled.constraint();
            let mut left = Left::from([part.clone()]);
            for &choice in &choices {
                agrees(&mut constraint, &left);
                let reached = along(&left, &text);
                let last = reached.iter().rposition(|left| !left.is_empty()).unwrap_or(0);
                let mut read = constraint.fork();
                prop_assert_eq!(read.advance_bytes(text.as_bytes()).unwrap(), last, "{:?}", &text);
                if last == text.len() {
                    agrees(&mut read, &reached[last]);
                }
                let completion = constraint.shortest_completion().unwrap();
                let mut ended = constraint.fork();
                prop_assert_eq!(ended.advance_bytes(&completion.bytes).unwrap(), completion.bytes.len());
                prop_assert!(ended.is_complete());
                for token in completion.tokens.iter().flatten() {
                    prop_assert!((token.raw() as usize) < TOKENS.len());
                }
                let next: Vec<(u32, Left)> =
                    TOKENS.iter().zip(0..).map(|(token, id)| (id, after_token(&left, token))).collect();
                let next: Vec<_> = next.into_iter().filter(|(_, left)| !left.is_empty()).collect();
                if next.is_empty() {
                    break;
                }
                let (id, after) = next[choice % next.len()].clone();
                constraint.advance(TokenId::new(id)).unwrap();
                left = after;
            }
        }
    }
}

#[test]
fn tokens_of_a_class_are_counted() {
    let grammar = Grammar::parse(Syntax::Regex, "(?P<TEXT_TOKEN>){2,3}", &Limits::default()).unwrap();
    for lookahead in [Lookahead::Unbounded, Lookahead::Terminals(0)] {
        let compiler = Compiler::new(vocabulary()).lookahead(lookahead);
        let mut constraint = compiler.compile(&grammar).unwrap().constraint();
        let long = TokenId::new(9);
        for step in 0..3 {
            assert_eq!(constraint.is_complete(), step == 2);
            assert!(constraint.allows(long).unwrap());
            constraint.advance(long).unwrap();
        }
        assert!(constraint.is_complete() && !constraint.allows(long).unwrap());
        // The token that stands for the class in the engine is none of the model's.
        constraint.rollback(1).unwrap();
        let inner = constraint.advance(TokenId::new(END + 1)).unwrap_err();
        assert_eq!(inner.kind(), &StepErrorKind::Refused(TokenId::new(END + 1)));
    }
}

/// Counts inside of the group are allowed, as arXiv 2407.08103 prints one.
#[test]
fn counts_may_stand_in_the_group() {
    let masks = |regex: &str| {
        let grammar = Grammar::parse(Syntax::Regex, regex, &Limits::default())
            .unwrap_or_else(|error| panic!("{regex}\n{error}"));
        let compiled = Compiler::new(vocabulary()).compile(&grammar).unwrap();
        let mut open = vec![compiled.constraint()];
        let mut masks = Vec::new();
        for _ in 0..4 {
            for constraint in &mut open {
                masks.push(constraint.mask().unwrap().iter().collect::<Vec<_>>());
            }
            open = open
                .iter()
                .flat_map(|constraint| {
                    let after = |id: u32| {
                        let mut next = constraint.clone();
                        next.advance(TokenId::new(id)).is_ok().then_some(next)
                    };
                    [0, 2, 9].into_iter().filter_map(after).collect::<Vec<_>>()
                })
                .collect();
        }
        masks
    };
    for (inside, outside) in [
        ("a(\n)*(?P<PARAGRAPH_TOKEN>+){3,5}", "a(\n)*((?P<PARAGRAPH_TOKEN>)+){3,5}"),
        ("(?P<PARAGRAPH_TOKEN>+)", "(?P<PARAGRAPH_TOKEN>)+"),
        ("(?P<TEXT_TOKEN>*)b", "(?P<TEXT_TOKEN>)*b"),
        ("(?P<TEXT_TOKEN>?)?a", "((?P<TEXT_TOKEN>)?)?a"),
        ("(?P<TEXT_TOKEN>{2})a", "(?P<TEXT_TOKEN>){2}a"),
        ("(?P<TEXT_TOKEN>{1,3})*?a", "((?P<TEXT_TOKEN>){1,3})*?a"),
        ("(?<PARAGRAPH_TOKEN>+?)\n", "(?P<PARAGRAPH_TOKEN>)+\n"),
        ("(?x) (?P<TEXT_TOKEN> + ) a", "(?P<TEXT_TOKEN>)+a"),
        ("(?P<QUOTED_TEXT>+)", "(?P<QUOTED_TEXT>)+"),
    ] {
        assert_eq!(masks(inside), masks(outside), "{inside}");
    }
}

#[test]
fn images_are_special_tokens_and_texts_have_no_tokens() {
    let grammar = Grammar::parse(Syntax::Gbnf, "root ::= \"a\" IMAGE() \"b\"", &Limits::default()).unwrap();
    let compile = |compiler: Compiler| compiler.compile(&grammar).unwrap_err().kind().clone();
    assert_eq!(compile(Compiler::new(vocabulary())), CompileErrorKind::NoSpecialToken("IMAGE".into(), None));
    assert_eq!(
        compile(Compiler::new(vocabulary()).any_special()),
        CompileErrorKind::NoTokens("IMAGE".into())
    );
    let image = TokenId::new(2);
    let vocabulary = Vocabulary::builder()
        .token(TokenId::new(0), "a")
        .token(TokenId::new(1), "b")
        .special(image, "<image>")
        .end_of_text(TokenId::new(3))
        .build()
        .unwrap();
    let mut constraint = Compiler::new(vocabulary).compile(&grammar).unwrap().constraint();
    assert!(!constraint.allows(image).unwrap());
    constraint.advance(TokenId::new(0)).unwrap();
    assert_eq!(constraint.mask().unwrap().iter().collect::<Vec<_>>(), [image]);
    assert_eq!(constraint.text_of(image), b"");
    constraint.advance(image).unwrap();
    constraint.advance(TokenId::new(1)).unwrap();
    assert!(constraint.is_complete());
}

//! Special tokens in grammars: masks are the oracle's for a vocabulary in which they are spelled out,
//! whatever the lookahead allows, and their names written by other tokens are text.

use domino::{
    CompileErrorKind, Compiler, Grammar, Limits, Lookahead, Syntax, TokenId, Vocabulary,
    grammar::{GrammarBuilder, Pattern, Span},
};
use proptest::prelude::*;

use crate::promises::generate::{Case, Node, case, config};

/// The rules with the special token in place of each `c` that begins a literal.
pub(in crate::promises) fn with_specials(case: &Case) -> Case {
    let mut case = case.clone();
    case.rules.0.iter_mut().for_each(replace);
    case
}

fn replace(node: &mut Node) {
    match node {
        Node::Literal(bytes) if bytes.first() == Some(&b'c') => {
            let rest = Node::Literal(bytes[1..].to_vec());
            *node = if bytes.len() == 1 { Node::Special } else { Node::Sequence(vec![Node::Special, rest]) };
        }
        Node::Sequence(parts) | Node::Alternatives(parts) => parts.iter_mut().for_each(replace),
        Node::Repeat(part, ..) => replace(part),
        _ => {}
    }
}

/// Walks along the oracle's masks, comparing at every step.
fn walk(case: &Case, lookahead: Lookahead) {
    let world = case.build();
    let Some(compiled) = world.compile(lookahead) else { return };
    let specials = world.vocabulary.special_tokens();
    let asked: Vec<_> =
        specials.filter(|(_, name)| world.grammar.specials().contains(&(*name).into())).collect();
    let spelled = match asked[..] {
        [] => world.vocabulary.clone(),
        _ => world.vocabulary.with_spelled(&asked).unwrap(),
    };
    let mut constraint = compiled.constraint();
    let mut text = Vec::new();
    for &choice in &case.choices {
        let exact = world.oracle.mask(&text, &spelled);
        let mask = constraint.mask().unwrap().clone();
        if lookahead == Lookahead::Unbounded {
            assert_eq!(mask, exact, "{}", text.escape_ascii());
        } else {
            assert!(mask.iter().all(|token| exact.contains(token)), "{}", text.escape_ascii());
        }
        for number in 0..mask.size() {
            let token = TokenId::from_index(number).unwrap();
            assert_eq!(constraint.clone().allows(token).unwrap(), mask.contains(token), "allows({token})");
        }
        let Some(token) = world.choose(&mask, choice).filter(|&token| !world.ends(token)) else { return };
        constraint.advance(token).unwrap();
        text.extend_from_slice(spelled.bytes(token).unwrap());
    }
}

proptest! {
    #![proptest_config(config(150))]

    #[test]
    fn masks_with_special_tokens_are_exact(case in case(12)) {
        walk(&with_specials(&case), Lookahead::Unbounded);
    }

    #[test]
    fn masks_with_special_tokens_are_sound(case in case(12), k in 0..3_u32) {
        walk(&with_specials(&case), Lookahead::Terminals(k));
    }
}

const CALL: TokenId = TokenId::new(300);
const DONE: TokenId = TokenId::new(301);

/// Bytes, some words, and special tokens.
fn vocabulary() -> Vocabulary {
    let words = ["<|", "call", "|>", "{}", "{"];
    let builder = words
        .iter()
        .zip(257..)
        .fold(Vocabulary::builder().all_bytes(), |builder, (word, id)| builder.token(TokenId::new(id), word));
    let builder = builder.special(CALL, "<|call|>").special(DONE, "<|done|>");
    builder.end_of_text(TokenId::new(256)).build().unwrap()
}

/// Free text, optionally with a call after it.
const TAGS: &str = r#"{"type": "structural_tag", "format": {"type": "sequence", "elements": [
    {"type": "any_text"},
    {"type": "optional", "content": {"type": "tag", "begin": {"type": "token", "token": "<|call|>"},
        "content": {"type": "const_string", "value": "{}"},
        "end": {"type": "token", "token": "<|done|>"}}}]}}"#;

fn tags() -> Grammar {
    Grammar::parse(Syntax::StructuralTag, TAGS, &Limits::default()).unwrap()
}

#[test]
fn a_special_token_stands_for_itself() {
    let grammar = tags();
    assert_eq!(grammar.specials(), ["<|call|>", "<|done|>"]);
    let compiled = Compiler::new(vocabulary()).compile(&grammar).unwrap();
    assert_eq!(compiled.vocabulary(), &vocabulary());
    let mut constraint = compiled.constraint();
    let token = |raw: u32| TokenId::new(raw);
    let mask = constraint.mask().unwrap().clone();
    assert!(mask.contains(CALL) && mask.contains(token(257)) && !mask.contains(DONE));
    // The byte 0xFF is in no text, so it begins none.
    assert!(!mask.contains(token(0xFF)));
    // Its name is text.
    for raw in [257, 258, 259] {
        constraint.advance(token(raw)).unwrap();
    }
    assert!(constraint.is_complete() && constraint.allows(CALL).unwrap());
    constraint.advance(CALL).unwrap();
    assert_eq!(constraint.text_of(CALL), b"<|call|>");
    let allowed: Vec<_> = constraint.mask().unwrap().iter().collect();
    assert_eq!(allowed, [token(u32::from(b'{')), token(260), token(261)]);
    let completion = constraint.shortest_completion().unwrap();
    assert_eq!(completion.tokens, Some(vec![token(260), DONE]));
    constraint.advance(token(260)).unwrap();
    assert_eq!(constraint.forced().unwrap(), Some(DONE));
    constraint.advance(DONE).unwrap();
    assert!(constraint.is_complete() && !constraint.allows(token(u32::from(b'x'))).unwrap());
    constraint.rollback(2).unwrap();
    assert!(constraint.allows(token(260)).unwrap() && !constraint.allows(CALL).unwrap());
}

#[test]
fn texts_name_special_tokens() {
    let compiled = Compiler::new(vocabulary()).compile(&tags()).unwrap();
    let in_language = |text: &str| {
        let mut constraint = compiled.constraint();
        constraint.advance_text(text.as_bytes()).unwrap() && constraint.is_complete()
    };
    assert!(in_language("hello") && in_language("hello<|call|>{}<|done|>"));
    assert!(!in_language("<|call|>{}") && !in_language("<|call|>") && !in_language("<|done|>"));
    assert!(!in_language("<|call|>{}<|done|>more"));
    assert_eq!(*tags().spell(b"a<|done|>"), *b"a\xFF<|done|>\xFF");
}

#[test]
fn special_tokens_that_the_vocabulary_lacks_are_errors() {
    let error = |grammar: &Grammar| Compiler::new(vocabulary()).compile(grammar).unwrap_err();
    let asking = |name: &str, beside: Pattern| {
        let mut builder = GrammarBuilder::new(&Limits::default());
        let at = Span::default();
        let parts = vec![builder.special(name, at).unwrap(), builder.pattern(beside, at).unwrap()];
        let body = builder.sequence(parts, at).unwrap();
        builder.define("root", body, at).unwrap();
        builder.finish("root").unwrap()
    };
    let missing = asking("<|cal|>", Pattern::literal(b"x"));
    let kind = CompileErrorKind::NoSpecialToken("<|cal|>".into(), Some("<|call|>".into()));
    assert_eq!(error(&missing).kind(), &kind);
    assert!(error(&missing).to_string().contains("did you mean `<|call|>`?"));
    assert!(Compiler::new(vocabulary()).any_special().compile(&missing).is_ok());
    let name = vocabulary().name(TokenId::new(256)).unwrap().to_owned();
    let ending = asking(&name, Pattern::literal(b"x"));
    assert_eq!(error(&ending).kind(), &CompileErrorKind::EndsText(name));
    let bytes = asking("<|call|>", Pattern::literal(b"x\xFF"));
    assert_eq!(error(&bytes).kind(), &CompileErrorKind::SpecialsAmongBytes);
}

/// Special tokens in Lark, in llguidance's notation.
#[test]
fn lark_names_special_tokens() {
    let text = "start: <|call|> /[a-z]+/ <|done|>?\n";
    let grammar = Grammar::parse(Syntax::Lark, text, &Limits::default()).unwrap();
    let compiled = Compiler::new(vocabulary()).compile(&grammar).unwrap();
    let mut constraint = compiled.constraint();
    assert_eq!(constraint.forced().unwrap(), Some(CALL));
    constraint.advance(CALL).unwrap();
    constraint.advance(TokenId::new(258)).unwrap();
    assert!(
        constraint.is_complete() && constraint.allows(DONE).unwrap() && !constraint.allows(CALL).unwrap()
    );
}

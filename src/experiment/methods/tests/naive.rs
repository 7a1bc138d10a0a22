//! Naive constraining, against its description.

use proptest::prelude::*;

use super::*;

/// Naive constraining as it is described (paper, 2; arXiv 2407.08103, appendix A): the text is cut into
/// terminals by a lexer, and a token may go on with the terminal it is in, or begin the next one, but do no
/// more. Over terminals that nothing can be read in two ways, so that the cut is plain to see.
fn naive(text: &[u8], token: &[u8]) -> bool {
    /// Are these bytes a whole terminal, the beginning of one, or neither?
    type Terminal<'a> = &'a dyn Fn(&[u8]) -> Option<bool>;
    // An object of one string: {"word"}.
    let terminals: [Terminal<'_>; 3] = [
        &|bytes| b"{".starts_with(bytes).then(|| bytes == b"{"),
        &|bytes| {
            let inner = bytes.strip_prefix(b"\"").or(bytes.is_empty().then_some(bytes))?;
            let letters = inner.iter().take_while(|byte| byte.is_ascii_lowercase()).count();
            match &inner[letters..] {
                [] => Some(false),
                [b'"'] if letters > 0 => Some(true),
                _ => None,
            }
        },
        &|bytes| b"}".starts_with(bytes).then(|| bytes == b"}"),
    ];
    let (mut at, mut start) = (0, 0);
    for end in 1..=text.len() {
        match terminals.get(at).and_then(|terminal| terminal(&text[start..end])) {
            Some(true) => (at, start) = (at + 1, end),
            Some(false) => {}
            None => return false,
        }
    }
    let whole = [&text[start..], token].concat();
    terminals.get(at).is_some_and(|terminal| terminal(&whole).is_some())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn naive_is_no_lookahead_over_written_terminals(
        tokens in prop::collection::hash_set("[{}\"ab]{1,4}", 1..60),
        choices in prop::collection::vec(any::<prop::sample::Index>(), 12),
    ) {
        let mut builder = Vocabulary::builder().all_bytes();
        let tokens: Vec<String> = tokens.into_iter().filter(|token| token.len() > 1).collect();
        for (id, token) in (256..).zip(&tokens) {
            builder = builder.token(TokenId::new(id), token.as_str());
        }
        let end = TokenId::new(256 + u32::try_from(tokens.len()).unwrap());
        let vocabulary = builder.end_of_text(end).build().unwrap();
        let text = "root ::= \"{\" string \"}\"\nstring ::= \"\\\"\" [a-z]+ \"\\\"\"";
        let grammar = Grammar::parse(Syntax::Gbnf, text, &crate::Limits::default()).unwrap();
        let k = Some(K::Terminals(0));
        let method = MethodName::Naive;
        let variant = Variant { method, k, s: None, threshold: None, warm_ups: None, think: None };
        let compiler = Compiler::new(vocabulary.clone()).lookahead(Lookahead::from(K::Terminals(0)));
        let compiled = compiler.terminals(variant.terminals()).compile(&grammar).unwrap();
        let mut constraint = compiled.constraint();
        let mut text = Vec::new();
        for choice in choices {
            let mask = constraint.mask().unwrap().clone();
            for (token, bytes) in vocabulary.text_tokens() {
                let (ours, plain) = (mask.contains(token), naive(&text, bytes));
                prop_assert_eq!(ours, plain, "{:?} after {:?}", bytes.escape_ascii(), text.escape_ascii());
            }
            let next: Vec<TokenId> = mask.iter().filter(|token| *token != end).collect();
            if next.is_empty() {
                break;
            }
            let token = next[choice.index(next.len())];
            constraint.advance(token).unwrap();
            text.extend_from_slice(vocabulary.bytes(token).unwrap());
        }
    }
}

//! Strings with a pattern and a bound on their length mean the same whether characters are counted beside the
//! pattern's automaton or by its states, to the oracle and to the engine.

use domino::{
    Compiler, Grammar, Limits, Lookahead, Syntax, TokenId, Vocabulary,
    grammar::{Expr, Pattern, PatternKind},
    oracle::Oracle,
};
use proptest::prelude::*;

use super::leaves::with_leaves;
use crate::promises::generate::config;

const PATTERNS: [&str; 5] = ["^[ab]+(-[ab]+)*$", "^(aa)*b?$", "a.*b", "^(é|ab)*$", "^b+a?$"];

/// An array of strings of a pattern, with further keywords.
fn schema(pattern: &str, more: &str) -> Option<Grammar> {
    let schema =
        format!(r#"{{"type": "array", "items": {{"type": "string", "pattern": "{pattern}"{more}}}}}"#);
    Grammar::parse(Syntax::JsonSchema, &schema, &Limits::default()).ok()
}

/// The variant of a grammar of such strings in which their characters are counted.
fn bounded(grammar: &Grammar, min: u32, max: u32) -> Option<Grammar> {
    let made = |leaf: &Pattern| match leaf.kind() {
        PatternKind::Automaton(automaton) => Pattern::length_bounded(automaton, min, max),
        _ => None,
    };
    let leaves = grammar.exprs().filter_map(|(_, expr)| match expr {
        Expr::Pattern(leaf) => Some(leaf),
        _ => None,
    });
    leaves.into_iter().find_map(made)?;
    Some(with_leaves(grammar, |_, leaf| made(leaf).unwrap_or_else(|| leaf.clone())))
}

proptest! {
    #![proptest_config(config(150))]

    #[test]
    fn strings_counted_beside_states_mean_the_same(
        tokens in prop::collection::vec(
            r#"[ab]{1,5}|[ab-]{2,4}|"[ab]{0,4}|[ab]{0,3}",( ?")?|é[ab]|\\u00(61|e9|6)|\\|-a|"\]"#,
            1..30,
        ),
        pattern in prop::sample::select(&PATTERNS[..]),
        min in 0..6_u32,
        more in 0..8_u32,
        choices in prop::collection::vec(any::<u16>(), 12),
        lookahead in prop::option::of(0..3_u32),
        grown: bool,
    ) {
        let max = min + more;
        let by_states = schema(pattern, &format!(r#", "minLength": {min}, "maxLength": {max}"#));
        let beside = bounded(&schema(pattern, "").unwrap(), min, max);
        // If no string is possible, there is only the empty array, and nothing to count.
        let (Some(by_states), Some(beside)) = (by_states, beside) else { return Ok(()) };
        let ids = tokens.iter().zip(257..);
        let builder = Vocabulary::builder().all_bytes().end_of_text(TokenId::new(256));
        let builder =
            ids.fold(builder, |builder, (token, id)| builder.token(TokenId::new(id), token.as_str()));
        let vocabulary = builder.build().unwrap();
        let lookahead = lookahead.map_or(Lookahead::Unbounded, Lookahead::Terminals);
        let compile = |grammar: &Grammar| {
            Compiler::new(vocabulary.clone()).lookahead(lookahead).compile(grammar).unwrap()
        };
        let (oracle, one, other) = (Oracle::new(&beside).unwrap(), compile(&beside), compile(&by_states));
        if grown {
            one.grow_trees();
        }
        let (mut session, mut same) = (one.constraint(), other.constraint());
        let mut text = Vec::new();
        for choice in choices {
            let mask = session.mask().unwrap().clone();
            prop_assert_eq!(&mask, same.mask().unwrap(), "after {:?}", String::from_utf8_lossy(&text));
            if lookahead == Lookahead::Unbounded {
                prop_assert_eq!(&mask, &oracle.mask(&text, &vocabulary));
            }
            prop_assert_eq!(session.is_complete(), same.is_complete());
            let completion = session.shortest_completion().unwrap();
            prop_assert_eq!(completion.bytes.len(), same.shortest_completion().unwrap().bytes.len());
            // Long tokens rather than bytes.
            let allowed: Vec<TokenId> = mask.iter().filter(|token| token.raw() != 256).collect();
            let long = allowed.iter().rposition(|token| token.raw() < 257).map_or(0, |last| last + 1);
            let long = if long < allowed.len() && choice % 4 > 0 { &allowed[long..] } else { &allowed[..] };
            let Some(&token) = long.get(usize::from(choice) % long.len().max(1)) else { break };
            session.advance(token).unwrap();
            same.advance(token).unwrap();
            text.extend_from_slice(vocabulary.bytes(token).unwrap_or_default());
        }
        // Keys of contexts do not depend on history, so those of a fresh session are equal.
        let mut fresh = compile(&beside).constraint();
        prop_assert_eq!(fresh.advance_bytes(&text).unwrap(), text.len());
        prop_assert_eq!(fresh.context(), session.context());
    }
}

//! Terminals with bounded counts, in every notation: the states in the middle of a count share rows and
//! trees, and tokens that cross a bound are refused all the same, by lazy trees, grown ones and those from a
//! file.

use domino::{CompiledGrammar, Compiler, Grammar, Limits, Syntax, TokenId, Vocabulary, oracle::Oracle};
use proptest::prelude::*;

use crate::promises::generate::config;

/// A part that is counted, as a regular expression and in GBNF.
const UNITS: [(&str, &str); 8] = [
    ("[ab]", "[ab]"),
    ("a", r#""a""#),
    ("(a|bb)", r#"("a" | "bb")"#),
    ("[^b\"]", r#"[^b"]"#),
    ("(ab?)", r#"("a" "b"?)"#),
    ("[aé漢]", "[aé漢]"),
    ("([ab]{1,12}-)", r#"([ab]{1,12} "-")"#),
    ("(a-{0,14})", r#"("a" "-"{0,14})"#),
];

/// Parts with counts, by unit and least and greatest count, each followed by a mark or by nothing.
type Parts = Vec<(usize, u32, u32, bool)>;

/// Writes the parts in a notation, given the parts of its grammar.
fn written(parts: &Parts, syntax: Syntax) -> String {
    let is_gbnf = matches!(syntax, Syntax::Gbnf | Syntax::Ebnf);
    let part = |&(unit, min, more, marked): &(usize, u32, u32, bool)| {
        let (regex, gbnf) = UNITS[unit];
        let max = min + more;
        match (is_gbnf, marked) {
            (true, true) => format!(r#"{gbnf}{{{min},{max}}} ";" "#),
            (true, false) => format!("{gbnf}{{{min},{max}}} "),
            (false, true) => format!("{regex}{{{min},{max}}};"),
            (false, false) => format!("{regex}{{{min},{max}}}"),
        }
    };
    let all: String = parts.iter().map(part).collect();
    match syntax {
        // Not regular, so that there are a parser and a terminal that follows itself.
        Syntax::Gbnf => format!("root ::= item | \"(\" root \")\"\nitem ::= {all}\n"),
        Syntax::Ebnf => format!("root ::= ({all})\n"),
        Syntax::Lark => format!("start: PART (\"=\" PART)?\nPART: /{all}/\n"),
        _ => all,
    }
}

/// Compiles a grammar with trees from every source.
fn every_way(vocabulary: &Vocabulary, grammar: &Grammar) -> Vec<CompiledGrammar> {
    let compile = || Compiler::new(vocabulary.clone()).compile(grammar).unwrap();
    let (lazy, grown, read) = (compile(), compile(), compile());
    grown.grow_trees();
    read.load_artefact(&grown.artefact()).unwrap();
    vec![lazy, grown, read]
}

proptest! {
    #![proptest_config(config(150))]

    #[test]
    fn tokens_that_cross_the_bounds_of_counts_are_refused(
        tokens in prop::collection::vec(
            "a{1,24}|[ab]{1,14}|[ab]{0,9}[-;(=)][ab]{0,9}|-{1,16}a?|[aé漢]{1,6}",
            1..40,
        ),
        parts in prop::collection::vec(
            (0..UNITS.len(), prop_oneof![4 => 0..3_u32, 1 => 3..12_u32], 0..36_u32, any::<bool>()), 1..4
        ),
        syntax in prop::sample::select(vec![Syntax::Gbnf, Syntax::Ebnf, Syntax::Lark, Syntax::Regex]),
        choices in prop::collection::vec(any::<u16>(), 14),
    ) {
        let text = written(&parts, syntax);
        // A terminal of Lark is not empty.
        let Ok(grammar) = Grammar::parse(syntax, &text, &Limits::default()) else {
            prop_assert!(syntax == Syntax::Lark, "{}", text);
            return Ok(());
        };
        let builder = Vocabulary::builder().all_bytes().end_of_text(TokenId::new(256));
        let ids = tokens.iter().zip(257..);
        let builder =
            ids.fold(builder, |builder, (token, id)| builder.token(TokenId::new(id), token.as_str()));
        let vocabulary = builder.build().unwrap();
        let oracle = Oracle::new(&grammar).unwrap();
        let ways = every_way(&vocabulary, &grammar);
        let mut constraints: Vec<_> = ways.iter().map(CompiledGrammar::constraint).collect();
        let mut text = Vec::new();
        for choice in choices {
            let mask = oracle.mask(&text, &vocabulary);
            for (way, constraint) in constraints.iter_mut().enumerate() {
                let so_far = String::from_utf8_lossy(&text);
                prop_assert_eq!(constraint.mask().unwrap(), &mask, "way {} after {:?}", way, so_far);
            }
            // Long tokens rather than bytes.
            let allowed: Vec<TokenId> = mask.iter().filter(|token| token.raw() != 256).collect();
            let bytes = allowed.partition_point(|token| token.raw() < 256);
            let long = if bytes < allowed.len() && choice % 4 > 0 { &allowed[bytes..] } else { &allowed[..] };
            let Some(&token) = long.get(usize::from(choice / 4) % long.len().max(1)) else { break };
            for constraint in &mut constraints {
                constraint.advance(token).unwrap();
            }
            text.extend_from_slice(vocabulary.bytes(token).unwrap_or_default());
        }
    }
}

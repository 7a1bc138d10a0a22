//! Tests `Constraint::only_space_follows` against the oracle, which tries the bytes that may follow one by
//! one.

use domino::{
    Compiler, Grammar, Limits, Syntax, Terminals,
    oracle::{Oracle, Session},
};
use proptest::{collection::vec, prelude::*};

use crate::support::decider::byte_vocabulary;

/// Bytes of white space that the random grammars have, and others.
const SPACES: [u8; 2] = [b' ', b'\n'];
const OTHERS: [u8; 3] = *b"abx";

/// Most bytes of white space behind which the oracle looks for another byte.
const DEPTH: usize = 7;
/// Most bytes of white space for a second look, if the engine says that another byte follows and the first
/// look found none.
const FAR: usize = 13;

/// True if another byte than white space can follow, after at most `depth` bytes of white space.
fn other_follows(session: &mut Session<'_>, depth: usize) -> bool {
    let mut follows = |byte: u8, then: &dyn Fn(&mut Session<'_>) -> bool| {
        let pushed = session.push(byte);
        let found = pushed && then(session);
        if pushed {
            session.pop();
        }
        found
    };
    OTHERS.into_iter().any(|byte| follows(byte, &|_| true))
        || depth > 0
            && SPACES.into_iter().any(|byte| follows(byte, &|session| other_follows(session, depth - 1)))
}

/// Parts of rules, in GBNF.
const ATOMS: [&str; 18] = [
    "\"a\"",
    "\"b\"",
    "\"x\"",
    "\" \"",
    "\"\\n\"",
    "\" \"?",
    "[ \\n]*",
    "[ab]*",
    "[ \\n]+",
    "[ a]?",
    "\" \"{0,2}",
    "root",
    "one",
    "two",
    "two",
    "ws",
    "ws",
    "ws",
];

/// Rules of white space.
const WHITE: [&str; 5] =
    ["([ \\n] ws)?", "\" \"*", "(ws \" \")?", "(\" \" ws \" \")? ", "\"\\n\"? \" \"{0,2}"];

/// A part of a rule.
fn expression() -> impl Strategy<Value = String> {
    let atom = prop::sample::select(&ATOMS[..]).prop_map(str::to_owned);
    atom.prop_recursive(2, 12, 3, |inner| {
        prop_oneof![
            4 => vec(inner.clone(), 2..4).prop_map(|parts| parts.join(" ")),
            2 => vec(inner.clone(), 2..3).prop_map(|parts| format!("({})", parts.join(" | "))),
            1 => inner.clone().prop_map(|part| format!("({part})?")),
            1 => inner.prop_map(|part| format!("({part})*")),
        ]
    })
}

/// A grammar of three rules, and one of white space, which recurses in a random way.
fn grammar() -> impl Strategy<Value = String> {
    (expression(), expression(), expression(), prop::sample::select(&WHITE[..])).prop_map(
        |(root, one, two, ws)| {
            format!(
                "root ::= \"a\" {root} | \"b\" ws\none ::= {one} | \"x\"\ntwo ::= {two} | \"\"\nws ::= {ws}\n"
            )
        },
    )
}

/// Walks through a text of the grammar and compares at each byte. `None`: the grammar has no texts.
fn compare(text: &str, steps: &[u8]) -> Option<usize> {
    let grammar = Grammar::parse(Syntax::Gbnf, text, &Limits::default()).unwrap();
    let oracle = Oracle::new(&grammar).unwrap();
    if !oracle.has_sentence() {
        return None;
    }
    let compiled = [Terminals::Folded, Terminals::Written]
        .map(|terminals| Compiler::new(byte_vocabulary()).terminals(terminals).compile(&grammar).unwrap());
    let mut constraints = compiled.map(|compiled| compiled.constraint());
    let mut session = oracle.session();
    let (mut met, mut so_far) = (0, Vec::new());
    for step in steps {
        let complete = session.is_complete();
        let other = other_follows(&mut session, DEPTH);
        for constraint in &constraints {
            let found = constraint.only_space_follows();
            let missed = complete && !found && !other && !other_follows(&mut session, FAR);
            assert!(!missed, "only white space can follow {so_far:?} in\n{text}");
            assert!(!found || (complete && !other), "not only white space after {so_far:?} in\n{text}");
        }
        met += usize::from(complete && !other);
        let ways = OTHERS.into_iter().chain(SPACES).filter(|&byte| {
            let pushed = session.push(byte);
            pushed && session.pop()
        });
        let ways: Vec<u8> = ways.collect();
        let Some(&byte) = ways.get(usize::from(*step) % ways.len().max(1)) else { break };
        assert!(session.push(byte));
        so_far.push(char::from(byte));
        for constraint in &mut constraints {
            assert_eq!(constraint.advance_bytes(&[byte]).unwrap(), 1, "{so_far:?} in\n{text}");
        }
    }
    Some(met)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn only_space_follows_agrees_with_trying_all_bytes(text in grammar(), steps in vec(any::<u8>(), 1..9)) {
        let _ = compare(&text, &steps);
    }
}

/// Checks for each text of a grammar whether nothing but white space can follow it.
fn cases(syntax: Syntax, grammar: &str, texts: &[(&str, bool)]) {
    let parsed = Grammar::parse(syntax, grammar, &Limits::default()).unwrap();
    let compiled = Compiler::new(byte_vocabulary()).compile(&parsed).unwrap();
    for (text, expected) in texts {
        let mut constraint = compiled.constraint();
        assert_eq!(constraint.advance_bytes(text.as_bytes()).unwrap(), text.len(), "{text:?} in {grammar}");
        assert_eq!(constraint.only_space_follows(), *expected, "{text:?} in {grammar}");
    }
}

#[test]
fn white_space_is_that_of_unicode() {
    cases(Syntax::Regex, r"yes\s*", &[("ye", false), ("yes", true), ("yes ", true), ("yes\u{3000}", true)]);
    cases(Syntax::Regex, r"yes[\s\x{200b}]*", &[("yes", false), ("yes ", false)]);
    cases(Syntax::Gbnf, "root ::= \"a\" [\\u00A0\\u2003 ]*", &[("a", true), ("a\u{2003}", true)]);
    // The character has its first byte in common with white space.
    cases(Syntax::Gbnf, "root ::= \"a\" [\\u00A1 ]*", &[("a", false)]);
    cases(Syntax::Gbnf, "root ::= \"a\" [\\u2003\\u2013]*", &[("a", false)]);
    cases(Syntax::Regex, r"a[\t\v\f\r\n ]*", &[("a", true), ("a\x0b\x0c", true)]);
}

#[test]
fn the_text_must_be_complete_and_nothing_else_may_follow() {
    cases(Syntax::Gbnf, "root ::= \"a\" \" \"{2,5}", &[("a", false), ("a ", false), ("a  ", true)]);
    cases(Syntax::Gbnf, "root ::= [0-9]+ \" \"*", &[("1", false), ("1 ", true)]);
    cases(Syntax::Gbnf, "root ::= (\"a\" \" \"*)+", &[("a", false), ("a ", false)]);
    cases(Syntax::Gbnf, "root ::= \"a\" (\" \"* \"b\")?", &[("a", false), ("a ", false), ("ab", true)]);
    cases(
        Syntax::Gbnf,
        "root ::= \"a\" (\" \" | \"\\n\" \"b\"?)",
        &[("a", false), ("a ", true), ("a\n", false)],
    );
    cases(
        Syntax::Gbnf,
        "root ::= \"a\" x   x ::= (\" \" x \" \")?",
        &[("a", true), ("a ", false), ("a  ", true)],
    );
    cases(
        Syntax::Lark,
        "start: \"{\" \"}\"\n%ignore /[ \\t\\n]+/",
        &[("{", false), ("{}", true), ("{}\n", true)],
    );
    cases(
        Syntax::Ebnf,
        "root ::= \"(\" root? \")\" [ \\n]*",
        &[("(()", false), ("(())", true), ("()\n", true)],
    );
    // A language of white space alone is complete before it begins.
    cases(Syntax::Regex, " *", &[("", true)]);
}

#[test]
fn json_ends_with_its_last_bracket() {
    let grammar = std::fs::read_to_string(concat!(env!("DOMINO_ROOT"), "/grammars/rfc8259.gbnf"));
    let texts = [("{\"a\": 1}", true), ("[1, 2]\n", true), ("[{}", false), ("1", false), ("1 ", true)];
    cases(Syntax::Gbnf, &grammar.unwrap(), &[&texts[..], &[("true", true), ("\"a\"", true)]].concat());
}

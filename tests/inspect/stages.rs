//! Rules, productions, terminals and automata, through the library.

use domino::{
    grammar::Span,
    ids::TerminalId,
    inspect::{Became, Inspection, NonterminalView, RuleView, SymbolView, TerminalView},
};

use super::inspect;

/// A grammar with a rule for each way that lowering can take.
const ALL: &str = r#"root ::= deep list deep | deep
list ::= word sep list | word
word ::= [a-z]+
sep ::= ws "," ws
ws ::= ([ ] ws)?
deep ::= "[" deep "]" | sum | "."
sum ::= sum "+" deep | deep "-" sum | "<" long ">"
long ::= [0-9]{3,200} deep
inner ::= "x" | "y"
outer ::= inner inner
never ::= "n" never
lost ::= outer never"#;

fn rule(inspection: &Inspection, name: &str) -> RuleView {
    inspection.rules().find(|rule| rule.name == name).unwrap()
}

fn nonterminal(inspection: &Inspection, name: &str) -> NonterminalView {
    inspection.nonterminals().find(|nonterminal| nonterminal.name == name).unwrap()
}

fn terminal(inspection: &Inspection, name: &str) -> TerminalView {
    inspection.terminals().find(|terminal| terminal.name == name).unwrap()
}

#[test]
fn each_rule_shows_what_it_has_become() {
    let inspection = inspect(ALL);
    let became = |name| rule(&inspection, name).became;
    assert!(matches!(became("root"), Became::Productions { regular: false, .. }));
    assert!(matches!(became("list"), Became::Terminal { or_empty: false, .. }), "{:?}", became("list"));
    for absorbed in ["word", "sep", "ws"] {
        assert_eq!(became(absorbed), Became::Absorbed, "{absorbed}");
        let inside = rule(&inspection, absorbed).inside;
        let Became::Terminal { terminal, .. } = became("list") else { unreachable!() };
        assert_eq!(inside, [terminal], "{absorbed}");
    }
    for unreachable in ["inner", "outer", "never", "lost"] {
        assert_eq!(became(unreachable), Became::Unreachable, "{unreachable}");
    }
    // Recursion at the ends of a rule is gone, and said so.
    let ends = |name| (rule(&inspection, name).left_recursion, rule(&inspection, name).right_recursion);
    assert_eq!([ends("list"), ends("sum"), ends("ws")], [(false, true), (true, true), (false, true)]);
    assert_eq!(ends("root"), (false, false));

    let inspection = inspect(
        r#"root ::= "(" root ")" | ws | nothing | loop   ws ::= [ ]*   nothing ::= ""   loop ::= "l" loop"#,
    );
    assert!(matches!(rule(&inspection, "ws").became, Became::Terminal { or_empty: true, .. }));
    assert_eq!(rule(&inspection, "nothing").became, Became::Empty);
    assert_eq!(rule(&inspection, "loop").became, Became::Useless);
}

#[test]
fn rules_that_are_too_large_for_a_terminal_are_marked() {
    let inspection = inspect(r#"root ::= "(" root ")" | large   large ::= [a-f]{3,400} [0-9]"#);
    assert!(matches!(rule(&inspection, "large").became, Became::Productions { regular: true, .. }));
    assert!(matches!(rule(&inspection, "root").became, Became::Productions { regular: false, .. }));
}

#[test]
fn parts_are_traced_to_their_rule_and_place() {
    let text = r#"root ::= "(" root ")" ("," root ";")* | "a""#;
    let inspection = inspect(text);
    let root = rule(&inspection, "root");
    assert_eq!(&text[root.span.range()], "root");
    let parts: Vec<NonterminalView> = inspection.nonterminals().filter(|part| part.is_part).collect();
    assert!(!parts.is_empty());
    for part in &parts {
        assert_eq!(part.rule, root.rule);
        assert!(part.name.starts_with("root#"), "{}", part.name);
        assert!(part.span.range().start >= text.find("(\",").unwrap() && part.span != Span::default());
    }
    // Repetition is left recursion, and nothing else is.
    assert!(parts.iter().any(|part| part.left_recursive && part.nullable));
    assert!(parts.iter().all(|part| !part.right_recursive && !part.cyclic));
    assert!(!nonterminal(&inspection, "root").left_recursive);
}

#[test]
fn rules_of_a_recursive_cycle_share_their_marks() {
    // Through another rule, and over what may be empty.
    let inspection = inspect(
        r#"root ::= a | b | c | e   a ::= ws d "x" | "1"   d ::= a   b ::= "y" g   g ::= b ws | "2"
        c ::= ws c2 ws   c2 ::= c | "(" c ")" | "3"   e ::= "<" e ">" | "4"   ws ::= [ ]*"#,
    );
    for (name, expected) in [
        ("a", (true, false, false)),
        ("d", (true, false, false)),
        ("b", (false, true, false)),
        ("g", (false, true, false)),
        ("c", (true, true, true)),
        ("e", (false, false, false)),
        ("root", (false, false, false)),
    ] {
        let view = nonterminal(&inspection, name);
        assert_eq!((view.left_recursive, view.right_recursive, view.cyclic), expected, "{name}");
    }
}

#[test]
fn productions_and_names_agree() {
    let inspection = inspect(ALL);
    let mut symbols = 0;
    for view in inspection.nonterminals() {
        assert_eq!(inspection.productions(view.number).count(), view.productions);
        assert_eq!(inspection.symbol_name(SymbolView::Nonterminal(view.number)), Some(view.name));
        for row in inspection.productions(view.number) {
            symbols += row.len();
            for symbol in row {
                assert!(inspection.symbol_name(symbol).is_some());
                if let SymbolView::Terminal(used) = symbol {
                    let users = inspection.terminals().nth(used.index()).unwrap().users;
                    assert!(users.contains(&view.rule));
                }
            }
        }
    }
    let sizes = inspection.sizes();
    assert_eq!(sizes.symbols, symbols);
    assert_eq!((sizes.rules, sizes.rewritten_rules), (12, 3));
    assert_eq!(sizes.terminals, inspection.terminals().len());
    assert_eq!(sizes.scanner_states, inspection.terminals().map(|terminal| terminal.states).sum::<usize>());
    assert!(inspection.productions(9_999).next().is_none());
    assert_eq!(inspection.symbol_name(SymbolView::Nonterminal(9_999)), None);
    assert_eq!(inspection.symbol_name(SymbolView::Terminal(TerminalId::new(9_999))), None);
    assert!(inspection.pass_times().len() > 2);
}

#[test]
fn terminals_have_their_minimal_automata() {
    let inspection = inspect(r#"root ::= "(" root ")" | word | "if"   word ::= [a-c_] [a-c0-9]*"#);
    let word = terminal(&inspection, "word");
    assert!(!word.finite && terminal(&inspection, r#""if""#).finite);
    let automaton = inspection.automaton(word.terminal).unwrap();
    assert_eq!((word.states, automaton.states.len()), (2, 2));
    assert!(!automaton.states[0].accepting && automaton.states[1].accepting);
    let [first] = &automaton.states[0].transitions[..] else { panic!("{automaton:?}") };
    assert_eq!((&first.bytes[..], first.to), (&[b'_'..=b'_', b'a'..=b'c'][..], 1));
    let [again] = &automaton.states[1].transitions[..] else { panic!("{automaton:?}") };
    assert_eq!((&again.bytes[..], again.to), (&[b'0'..=b'9', b'a'..=b'c'][..], 1));
    assert!(inspection.automaton(TerminalId::new(99)).is_none());

    // "ab" lies inside, "a(" does not.
    let tokens = inspection.tokens_inside(word.terminal).unwrap();
    let expected: Vec<u32> =
        (b'0'..=b'9').chain([b'_']).chain(b'a'..=b'c').map(u32::from).chain([256]).collect();
    assert_eq!(tokens.iter().map(|token| token.raw()).collect::<Vec<_>>(), expected);
    assert!(inspection.tokens_inside(TerminalId::new(99)).is_none());
}

#[test]
fn any_grammar_can_be_looked_at() {
    // Huge counts, long chains of rules, many alternatives.
    let chain: String = (0..2_000).map(|n| format!("r{n} ::= \"(\" r{} \")\"\n", n + 1)).collect();
    for text in [
        r#"root ::= ("a" root "b"){0,90000}"#.to_owned(),
        format!("root ::= r0\n{chain}r2000 ::= root | \"x\""),
        r#"root ::= root root root | root root | "a" | "" | "(" root ")""#.to_owned(),
    ] {
        let inspection = inspect(&text);
        let names = inspection.nonterminals().map(|nonterminal| nonterminal.name.len()).sum::<usize>();
        assert!(names > 0 && inspection.sizes().productions > 0);
    }
}

//! Warnings are true where they are given, and absent where nothing costs.

use domino::{
    Grammar, Limits, Syntax,
    inspect::{Warning, WarningKind},
};

use super::compiled;
use crate::support::shared_data::shared;

/// Grammars whose cost grows with every repetition: kind of warning, a rule to blame, and the grammar.
const GRAVE: [(WarningKind, &str, &str); 9] = [
    (WarningKind::Ambiguous, "S", r#"root ::= S   S ::= x x x | x x | "a"   x ::= S | "(" S ")""#),
    (WarningKind::Ambiguous, "s", r#"root ::= e   e ::= s | n | "(" e ")"   s ::= e "+" e   n ::= [0-9]+"#),
    (
        WarningKind::RightRecursion,
        "rest",
        r#"root ::= list   list ::= item rest   rest ::= "," list | ""   item ::= [a-z] | "(" list ")""#,
    ),
    (
        WarningKind::RightRecursion,
        "power",
        r#"root ::= signed   signed ::= power | "-" signed   power ::= atom | atom "^" signed
        atom ::= [0-9]+ | "(" root ")""#,
    ),
    (WarningKind::Undecided, "x", r#"root ::= x   x ::= [a-z]+ x "!" | ".""#),
    (WarningKind::Undecided, "p", r#"root ::= p   p ::= "a" p "a" | "b" p "b" | """#),
    (WarningKind::Undecided, "stmt", r#"root ::= stmt   stmt ::= "if" stmt | "if" stmt "else" stmt | "x""#),
    (
        WarningKind::Undecided,
        "words",
        r#"root ::= words   words ::= ([a-z]+ opt){0,500} "."   opt ::= "" | "(" root ")""#,
    ),
    (
        WarningKind::Ambiguous,
        "t",
        r#"root ::= "[" t "]"   t ::= u | [a-z] | "<" t ">"   u ::= t ws t   ws ::= " "*"#,
    ),
];

/// Grammars that are ambiguous or recursive, but without a cost that grows.
const GOOD: [&str; 18] = [
    r#"root ::= c+ ([ \t\n] c+)*   c ::= [a-z]"#,
    r#"root ::= ([^<] | "<" [^|])*"#,
    // Regular parts of a repetition are one run.
    r#"root ::= S   S ::= S S S | S S | "a" | "(" S ")""#,
    r#"root ::= word+ "."   word ::= [a-z]+ | "(" root ")""#,
    r#"root ::= "<" list ">"   list ::= item (word)+   item ::= "(" root ")" | "."   word ::= [a-z]+ | item"#,
    r#"root ::= (element | text | ws)*   element ::= "<" root ">"   text ::= [^<>]+   ws ::= [ \n]*"#,
    // Cycles, and parts that may be empty.
    r#"root ::= (a? b?)*   a ::= "a" | "(" root ")"   b ::= "b" | "[" root "]""#,
    r#"root ::= a   a ::= c | "x" | "(" a ")"   c ::= a"#,
    r#"root ::= a a a   a ::= "" | "(" root ")""#,
    // Recursion at the ends of one rule becomes repetition.
    r#"root ::= e   e ::= e op e | n | "(" e ")"   op ::= [-+]   n ::= [0-9]+"#,
    r#"root ::= item "," root | item   item ::= [a-z]+ | "(" root ")""#,
    r#"root ::= "-" root | [a-z]+ | "(" root ")" "!""#,
    // Left recursion through another rule.
    r#"root ::= list   list ::= item | more item   more ::= list ","   item ::= [a-z]+ | "(" list ")""#,
    // Nesting.
    r#"root ::= "(" root ")" | "[" root "]" | "x""#,
    r#"root ::= "<" name ">" root* "</" name ">" | "."   name ::= [a-z]+"#,
    // Blanks written once.
    r#"root ::= "{" ws (pair ("," ws pair)*)? "}" ws   pair ::= key ":" ws root
    key ::= "\"" [^"]* "\"" ws   ws ::= [ \n]*"#,
    r#"root ::= "{" ws (pair ("," ws pair)*)? "}" ws   pair ::= key ":" ws root
    key ::= "\"" [^"]* "\"" ws   ws ::= ([ \n] ws)?"#,
    // Keywords and names: two threads, but not for long.
    r#"root ::= ("if" " " root | name)   name ::= [a-z]+ ("(" root ")")?"#,
];

/// Grammars with neighbours that share a text: a rule that has them, and the most threads.
const OVERLAPS: [(&str, usize, &str); 4] = [
    ("root", 2, r#"root ::= "(" ws root ws ")" ws | "x" ws   ws ::= [ ]*"#),
    ("root", 3, r#"root ::= word word "."   word ::= [a-z]+ | "(" root ")""#),
    (
        "pair",
        2,
        r#"root ::= "{" pair "}"   pair ::= key ws ws value   key ::= root | [a-z]+ ws
        value ::= "=" root | "="   ws ::= [ ]*"#,
    ),
    (
        "call",
        2,
        r#"root ::= call | [a-z]+   call ::= "(" ws args? ws ")"   args ::= root ("," root)*   ws ::= [ ]*"#,
    ),
];

fn warnings(grammar: &str) -> Vec<Warning> {
    compiled(grammar).warnings()
}

#[test]
fn rules_of_growing_cost_are_warned_of() {
    for (kind, rule, grammar) in GRAVE {
        let found = warnings(grammar);
        let grave: Vec<&Warning> = found.iter().filter(|warning| warning.kind.is_grave()).collect();
        let [warning] = grave[..] else { panic!("{grammar}: {found:#?}") };
        let involved = warning.rule_name == rule || warning.others.iter().any(|other| other == rule);
        assert!(warning.kind == kind && involved, "{grammar}: {warning:#?}");
        assert!(!warning.repeated.is_empty() && warning.late_cost > warning.early_cost);
        let text = warning.to_string();
        assert!(
            text.starts_with(&format!("rule {}: ", warning.rule_name)) && text.contains("\nhint: "),
            "{text}"
        );
        assert_eq!(found[0].kind, kind, "grave ones come first");
    }
}

#[test]
fn grammars_of_steady_cost_give_no_warning() {
    for grammar in GOOD {
        assert_eq!(warnings(grammar), [], "{grammar}");
    }
}

#[test]
fn overlapping_neighbours_are_notes() {
    for (rule, threads, grammar) in OVERLAPS {
        let found = warnings(grammar);
        assert!(found.iter().all(|warning| warning.kind == WarningKind::Overlap), "{grammar}: {found:#?}");
        let most =
            found.iter().filter(|warning| warning.rule_name == rule).map(|warning| warning.threads).max();
        assert_eq!(most, Some(threads), "{grammar}: {found:#?}");
    }
}

#[test]
fn the_place_is_that_of_the_rule_or_its_part() {
    let text = r#"root ::= "<" list ">"   list ::= item (word){2,4}
        item ::= "(" root ")" | "."   word ::= [a-z]+ | item"#;
    let found = warnings(text);
    assert!(!found.is_empty());
    for warning in &found {
        let at = &text[warning.span.range()];
        assert!(warning.rule_name == "list" && at.starts_with("(word){2,4}"), "{at}: {warning:#?}");
    }
}

/// Threads and costs that a warning claims are there along its text.
#[test]
fn texts_of_warnings_have_the_claimed_cost() {
    let grammars =
        GRAVE.iter().map(|(.., grammar)| grammar).chain(OVERLAPS.iter().map(|(.., grammar)| grammar));
    for grammar in grammars {
        let compiled = compiled(grammar);
        for warning in compiled.warnings() {
            // A grammar of its own, so that nothing is known yet.
            let mut constraint = super::compiled(grammar).constraint();
            let mut go = |text: &[u8]| {
                assert_eq!(constraint.advance_bytes(text).unwrap(), text.len(), "{grammar}: {warning:#?}");
                constraint.state_sizes()
            };
            let mut sizes = vec![go(&warning.before)];
            sizes.extend((0..64).map(|_| go(&warning.repeated)));
            let work = |from: usize, to: usize| sizes[to].work - sizes[from].work;
            if warning.kind.is_grave() {
                let threads = sizes[64].threads > sizes[32].threads;
                assert!(work(48, 64) > work(32, 48) || threads, "{grammar}: {warning:#?}");
            } else {
                assert!(sizes[8..].iter().all(|sizes| sizes.threads > 1), "{grammar}: {warning:#?}");
                assert_eq!(work(32, 64), 0, "{grammar}: {warning:#?}");
            }
        }
    }
}

/// Published grammars with rules whose neighbours share blanks: those of the program, and shared ones.
const NOTES: [(&str, &[&str]); 4] = [
    ("grammars/paper/c.gbnf", &["declaration"]),
    ("grammars/paper/gsm8k.gbnf", &["object"]),
    ("peers/grammars/c_simple.gbnf", &["declaration"]),
    ("peers/grammars/gsm8k_listing.gbnf", &["object"]),
];

#[test]
fn grammars_in_use_get_no_false_warnings() {
    let own = std::path::Path::new(env!("DOMINO_ROOT")).join("grammars");
    let mut folders = vec![("grammars/paper", own.join("paper")), ("grammars", own)];
    folders.extend(shared("peers/grammars").map(|folder| ("peers/grammars", folder)));
    let mut seen = 0;
    for (folder, path) in folders {
        for file in std::fs::read_dir(path).unwrap().map(|file| file.unwrap()) {
            let name = format!("{folder}/{}", file.file_name().into_string().unwrap());
            if !name.ends_with(".gbnf") {
                continue;
            }
            seen += 1;
            let found = warnings(&std::fs::read_to_string(file.path()).unwrap());
            assert!(found.iter().all(|warning| !warning.kind.is_grave()), "{name}: {found:#?}");
            let expected = NOTES.iter().find(|(noted, _)| *noted == name).map_or(&[][..], |(_, rules)| rules);
            let mut rules: Vec<&str> = found.iter().map(|warning| warning.rule_name.as_str()).collect();
            rules.sort_unstable();
            rules.dedup();
            assert_eq!(rules, expected, "{name}");
        }
    }
    assert!(seen >= 17, "{seen}");
}

#[test]
fn any_grammar_is_searched_within_bounds() {
    let chain: String =
        (0..5_000).map(|n| format!("r{n} ::= \"(\" r{} \")\" | \"{n}\" r{n} [a-z]+\n", n + 1)).collect();
    let wide: String = (0..3_000).map(|n| format!(" | [a-z]+ root \"{n}\"")).collect();
    for text in [
        format!("root ::= r0\n{chain}r5000 ::= root | \"x\""),
        format!("root ::= \"x\"{wide}"),
        r#"root ::= (("a" root "b"){0,90000} [a-z]*){3,7000} | "." "#.to_owned(),
        r#"root ::= root root root | root root | "a" | "" | "(" root ")""#.to_owned(),
        r#"root ::= x x x | x x | "a" | ""   x ::= root | "(" root ")""#.to_owned(),
        format!("root ::= \"{}\" root | \"x\" root \"y\" | \"z\"", "a".repeat(1_000_000)),
        format!("root ::= {}\"x\"{}", "( [a-z]* ".repeat(500), " root?)*".repeat(500)),
    ] {
        let grammar = Grammar::parse(Syntax::Gbnf, &text, &Limits::default()).unwrap();
        let compiled = domino::Compiler::new(super::bytes()).compile(&grammar).unwrap();
        for warning in compiled.warnings() {
            assert!(warning.to_string().len() < 2_000, "{warning}");
            let text = [&warning.before[..], &warning.repeated].concat();
            assert_eq!(compiled.constraint().advance_bytes(&text).unwrap(), text.len());
        }
    }
}

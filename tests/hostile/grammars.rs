//! Grammars made to be costly, each with a text that goes deep into it: for the tests of `engine` and for the
//! benchmark that holds them all against the bounds.

use std::fmt::Write as _;

use domino::Syntax;

/// A grammar and a text that follows it, at least for a while.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) syntax: Syntax,
    pub(crate) grammar: String,
    pub(crate) text: Vec<u8>,
}

/// Repeatable random bits, for texts that never return to an earlier state.
pub(crate) fn bits(count: usize) -> impl Iterator<Item = bool> {
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    (0..count).map(move |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 40 & 1 == 1
    })
}

fn letters(count: usize) -> Vec<u8> {
    bits(count).map(|bit| if bit { b'a' } else { b'b' }).collect()
}

/// One numbered line for each of `0..count`.
fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).map(|number| line(number) + "\n").collect()
}

/// Texts that can be read in very many ways.
fn ambiguous() -> Vec<Case> {
    let gbnf = |name, grammar: &str, text: Vec<u8>| Case {
        name,
        syntax: Syntax::Gbnf,
        grammar: grammar.to_owned(),
        text,
    };
    let many = vec![b'a'; 3_000];
    let stars =
        |count: usize| format!("root ::= {} \"b\"\na ::= \"a\"* | \"(\" root \")\"", "a ".repeat(count));
    vec![
        gbnf("every split", r#"root ::= root root root | root root | "a""#, many.clone()),
        gbnf(
            "every split in brackets",
            r#"root ::= x x x | x x | "a"  x ::= root | "(" root ")""#,
            many.clone(),
        ),
        gbnf("two tails", r#"root ::= "a" root root | "a" | "b" root "c""#, many.clone()),
        gbnf("palindromes", r#"root ::= "a" root "a" | "b" root "b" | [ab] | """#, letters(3_000)),
        gbnf("words of a palindrome", r#"root ::= w root w | w | "x" root "y"  w ::= [ab]+"#, letters(3_000)),
        gbnf("ambiguous counts", r#"root ::= (("a"|"aa"){1,2}){0,250}"#, many.clone()),
        gbnf("ambiguous counts, nested", r#"root ::= (("a"|"aa"|"aaa"){1,20}){0,2000} "b""#, many.clone()),
        gbnf(
            "counts of counts",
            r#"root ::= ((("a"{0,9} "a"?){0,9} "a"?){0,9} "a"?){0,9} root? "b""#,
            many.clone(),
        ),
        gbnf(
            "counted rules",
            r#"root ::= x{0,1000} "b"  x ::= ("a" | "aa" | "(" x ")"){0,1000}"#,
            many.clone(),
        ),
        gbnf("1,000 stars", &stars(1_000), many.clone()),
        gbnf("10,000 stars", &stars(10_000), many.clone()),
        gbnf(
            "nested nullables",
            &format!(
                "root ::= r0 \"b\"\n{}",
                lines(60, |number| {
                    let next = |step: usize| (number + step) % 60;
                    format!(
                        "r{number} ::= r{}? r{}? r{}? | \"a\" | r{}*",
                        next(1),
                        next(7),
                        next(31),
                        next(2)
                    )
                })
            ),
            many.clone(),
        ),
        gbnf(
            "doubling rules",
            &format!(
                "{}r60 ::= \"a\"? | \"(\" root \")\"",
                lines(60, |number| {
                    let name = if number == 0 { "root".to_owned() } else { format!("r{number}") };
                    format!("{name} ::= r{next} r{next}", next = number + 1)
                })
            ),
            many.clone(),
        ),
        gbnf(
            "optional parts",
            &format!(
                "root ::= {}root? \"b\"\n{}",
                (0..500).map(|number| format!("r{number}? ")).collect::<String>(),
                lines(500, |number| format!("r{number} ::= \"a\" | \"(\" r{} \")\"", (number + 1) % 500))
            ),
            many.clone(),
        ),
        gbnf(
            "subsets",
            r#"root ::= x* "a" x{18} y  x ::= [ab]  y ::= "(" y ")" | "c" | x y"#,
            letters(3_000),
        ),
        gbnf(
            "any word twice",
            r#"root ::= (w " "?)* "(" root ")"? | w  w ::= [ab] | [ab] w | w [ab] w"#,
            letters(3_000),
        ),
    ]
}

/// Large grammars, by number of rules, alternatives or characters.
fn large() -> Vec<Case> {
    let gbnf = |name, grammar: String, text: Vec<u8>| Case { name, syntax: Syntax::Gbnf, grammar, text };
    let words =
        |count: usize| (0..count).map(|word| format!("\"w{word:x}\"")).collect::<Vec<_>>().join(" | ");
    let rules = |count: usize| (0..count).map(|rule| format!("r{rule}")).collect::<Vec<_>>().join(" | ");
    vec![
        gbnf(
            "10,000 rules",
            format!(
                "root ::= ({})*\n{}",
                rules(10_000),
                lines(10_000, |number| format!(
                    "r{number} ::= \"a{number}\" (\"(\" r{} \")\")?",
                    (number * 7) % 10_000
                ))
            ),
            b"a1(a7)a2a3(a21)".repeat(100),
        ),
        gbnf(
            "10,000 rules in a chain",
            lines(10_000, |number| {
                let name = if number == 0 { "root".to_owned() } else { format!("r{number}") };
                let next = if number == 9_999 { "\"a\"".to_owned() } else { format!("r{}", number + 1) };
                format!("{name} ::= {next} | \"(\" {name} \")\" | \"b\" {next} \"b\"")
            }),
            b"(((((b".repeat(300),
        ),
        gbnf(
            "10,000 rules, each its own terminal",
            format!(
                "root ::= ({})* (\"(\" root \")\")?\n{}",
                rules(10_000),
                lines(10_000, |number| format!("r{number} ::= [ab]{{{},}} \"c\"", number % 400 + 1))
            ),
            letters(3_000),
        ),
        gbnf(
            "1,000 rules of large automata",
            format!(
                "root ::= ({})* (\"(\" root \")\")?\n{}",
                rules(1_000),
                lines(1_000, |number| format!("r{number} ::= [ab]* \"a\" [ab]{{30}} \"{number}\""))
            ),
            letters(3_000),
        ),
        gbnf(
            "100,000 words",
            format!("root ::= ({}) (\" \" root)?", words(100_000)),
            b"w1 w2 wff ".repeat(100),
        ),
        gbnf(
            "100,000 words in brackets",
            format!("root ::= \"(\" root \")\" | ({}) root?", words(100_000)),
            b"(w1w2".repeat(100),
        ),
        gbnf("1 MB literal", format!("root ::= \"{}\"", "ab".repeat(500_000)), b"ab".repeat(1_500)),
        gbnf(
            "1 MB literal in brackets",
            format!("root ::= \"(\" root? \")\" | \"{}\"", "ab".repeat(500_000)),
            b"((((abab".to_vec(),
        ),
        gbnf(
            "1 MB class",
            format!(
                "root ::= [{}]* \"\\\"\"",
                (0..250_000_u32).filter_map(|at| char::from_u32(0x1_0000 + at * 2)).collect::<String>()
            ),
            "\u{10000}\u{10002}".repeat(200).into_bytes(),
        ),
    ]
}

/// Deep grammars, and short ones that stand for long ones.
fn deep_and_counted() -> Vec<Case> {
    let gbnf = |name, grammar: String, text: Vec<u8>| Case { name, syntax: Syntax::Gbnf, grammar, text };
    vec![
        gbnf(
            "10,000 levels",
            format!("root ::= {}\"a\"{}", "(\"b\" ".repeat(10_000), ")?".repeat(10_000)),
            b"bbbb".repeat(100),
        ),
        gbnf(
            "deep rules",
            format!(
                "root ::= {}\n{}",
                "\"(\" r0 \")\"",
                lines(2_000, |number| format!(
                    "r{number} ::= \"[\" r{} \"]\" | \"a\" r{}?",
                    (number + 1) % 2_000,
                    (number * 31) % 2_000
                ))
            ),
            b"([[[[[[".repeat(300),
        ),
        gbnf(
            "huge counts",
            "root ::= [a-z]{100000} (\"(\" root \")\"){0,100000}".to_owned(),
            vec![b'a'; 3_000],
        ),
        gbnf(
            "huge counts of rules",
            "root ::= x{50000,100000} \"b\"  x ::= \"a\" | \"(\" x ([a-z]{1,100000} x){2,100000} \")\""
                .to_owned(),
            vec![b'a'; 3_000],
        ),
        gbnf(
            "hugest counts",
            format!(
                "root ::= {}",
                "x{100000} y{0,99999} ".repeat(50) + "\nx ::= [a-z]\ny ::= [0-9] | \"(\" y \")\""
            ),
            vec![b'a'; 3_000],
        ),
        gbnf(
            "different counts",
            format!(
                "root ::= {} root?",
                (0..3_000).map(|count| format!("x{{{count},{}}} ", count * 2 + 1)).collect::<String>()
            ) + "\nx ::= \"a\" | \"(\" x \")\"",
            vec![b'a'; 3_000],
        ),
        gbnf(
            "many terminals at once",
            format!(
                "root ::= ({})* (\"(\" root \")\")?",
                (1..600).map(|length| format!("[ab]{{{length},}}")).collect::<Vec<_>>().join("|")
            ),
            letters(600),
        ),
    ]
}

/// Regular expressions, and vocabularies that are long where the grammar repeats.
fn regular() -> Vec<Case> {
    let regex = |name, grammar: &str, text: Vec<u8>| Case {
        name,
        syntax: Syntax::Regex,
        grammar: grammar.to_owned(),
        text,
    };
    let spaces = vec![b' '; 20_000];
    let spaced = |name, grammar: &str| Case {
        name,
        syntax: Syntax::Gbnf,
        grammar: grammar.to_owned(),
        text: spaces.clone(),
    };
    let mut cases = vec![
        regex("exponential automaton", "(?:a|b)*a(?:a|b){24}", letters(3_000)),
        regex("exponential automata", &"(?:a|b)*a(?:a|b){24}c?".repeat(50), letters(3_000)),
        regex("large classes", r"(?:\w{100}\s{0,100}){0,100}", vec![b'a'; 3_000]),
        regex("large classes, many", &r"(?:\w+\pL*\d?){20}".repeat(20), vec![b'a'; 3_000]),
        regex("counted anything", "(?:.{0,500}){0,500}x", letters(3_000)),
        regex("optional letters", "(?:a?){3000}a{3000}", vec![b'a'; 6_000]),
        regex("stars of stars", "(?:(?:a|b|ab)*(?:a|ba)*)*b{50}", letters(3_000)),
        regex(
            "any of everywhere",
            &(0..300).map(|word| format!(".*w{word}.*|")).collect::<String>(),
            letters(3_000),
        ),
        spaced("spaces everywhere", "root ::= (ws \"a\"? ws)* (\"(\" root \")\")?\nws ::= [ ]*"),
        spaced(
            "spaces one by one",
            "root ::= \" \" root | \"(\" root \")\" | \"a\" | sp sp root sp\nsp ::= \" \" | \"  \"",
        ),
        spaced("spaces in any number", "root ::= (\" \"{1,3} x?)* \"b\"\nx ::= \" \" | \"(\" root \")\""),
        spaced(
            "spaces of many kinds",
            "root ::= (a | b | c | d)* (\"(\" root \")\")?\na ::= \" \"+ \"a\"?\nb ::= \" \"{2,}\n\
             c ::= [ ]{3} c?\nd ::= \" \" d \"d\"?",
        ),
    ];
    let mut nested = String::new();
    for level in 0..200 {
        // Cannot fail: it is a string.
        let _ = write!(nested, "(?:a{level}|");
    }
    cases.push(regex("200 levels", &(nested + "a" + &")*".repeat(200)), vec![b'a'; 3_000]));
    cases
}

/// All cases.
pub(crate) fn cases() -> Vec<Case> {
    let all = [ambiguous(), large(), deep_and_counted(), regular()];
    all.into_iter().flatten().collect()
}

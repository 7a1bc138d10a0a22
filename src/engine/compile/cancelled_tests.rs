//! Work that is cancelled at any of its looks ends in that error, and leaves a compiler as it was.

use std::{fmt::Write as _, time::Duration};

use super::*;
use crate::grammar::json_schema::{SchemaError, SchemaErrorKind, SchemaOptions};
use crate::{Budget, CompiledGrammar, Grammar, Limits, Syntax, TokenId, Vocabulary};

/// Masks of a text that are compared.
const STEPS: usize = 12;

/// The error of a grammar, in words, and whether it was cancelled.
type Tried<T> = Result<T, (bool, String)>;

fn vocabulary() -> Vocabulary {
    let words = ["{\"", "\":", "ab", "true", "[1", "0.", "\"}", "aaaa"];
    let mut builder = Vocabulary::builder().all_bytes().end_of_text(TokenId::new(256));
    for (number, word) in (257..).zip(words) {
        builder = builder.token(TokenId::new(number), word);
    }
    builder.build().unwrap()
}

/// A compiler that makes nothing ahead, since a job on another core would look at a handle too.
fn compiler() -> Compiler {
    Compiler::new(vocabulary()).limits(Limits { ahead: 0, ..Limits::default() })
}

/// Reads and compiles a grammar.
fn compiled(compiler: &Compiler, syntax: Syntax, text: &str) -> Tried<CompiledGrammar> {
    let grammar = compiler.parse(syntax, text).map_err(|error| (error.is_cancelled(), error.to_string()))?;
    compiler.compile(&grammar).map_err(|error| (error.is_cancelled(), error.to_string()))
}

/// The masks along the text of the least tokens, but for the end.
fn masks(grammar: &CompiledGrammar) -> Vec<Vec<TokenId>> {
    let mut constraint = grammar.constraint();
    let mut masks = Vec::new();
    for _ in 0..STEPS {
        let mask: Vec<TokenId> = constraint.mask().unwrap().iter().collect();
        let next = mask.iter().copied().find(|token| token.raw() != 256);
        masks.push(mask);
        let Some(next) = next else { break };
        constraint.advance(next).unwrap();
    }
    masks
}

fn listed(count: usize, separator: &str, one: impl Fn(usize) -> String) -> String {
    (0..count).map(one).collect::<Vec<_>>().join(separator)
}

/// A schema with this many divisors.
fn divisors(count: usize) -> String {
    let property = |number| format!(r#""p{number}": {{"type": "number", "multipleOf": {}}}"#, number + 2);
    format!(r#"{{"properties": {{{}}}}}"#, listed(count, ", ", property))
}

/// Schemas that are costly in different ways, each in a size that takes little.
fn schemas() -> Vec<String> {
    let property = |number: usize, schema: &str| format!(r#""p{number}": {schema}"#);
    let of = |count, schema: fn(usize) -> String| {
        format!(
            r#"{{"properties": {{{}}}}}"#,
            listed(count, ", ", |number| property(number, &schema(number)))
        )
    };
    let reference = |number: usize| {
        format!(r##""d{number}": {{"items": {{"$ref": "#/$defs/d{}"}}, "maxItems": 3}}"##, (number + 1) % 20)
    };
    let tagged = |number: usize| {
        let members = format!(r#""k": {{"const": "t{number}"}}, "v": {{"minimum": {number}}}"#);
        format!(r#"{{"properties": {{{members}}}, "required": ["k"]}}"#)
    };
    let forbidden = |number: usize| format!(r#"{{"not": {{"required": ["r{number}"]}}}}"#);
    let numbers = r#"{"type": "integer", "minimum": 3, "maximum": 123456789}"#;
    let mut deep = "{}".to_owned();
    for level in 0..20 {
        deep = format!(r#"{{"properties": {{"l{level}": {deep}}}, "required": ["l{level}"]}}"#);
    }
    vec![
        divisors(12),
        of(8, |number| format!(r#"{{"type": "string", "pattern": "^(?=.*a)[a-z]{{{number},40}}b$"}}"#)),
        of(4, |number| format!(r#"{{"type": "string", "minLength": {number}, "maxLength": 4000}}"#)),
        format!(r#"{{"enum": [{}]}}"#, listed(300, ", ", |number| format!(r#""w{number:x}""#))),
        format!(r##"{{"$ref": "#/$defs/d0", "$defs": {{{}}}}}"##, listed(20, ", ", reference)),
        format!(r#"{{"oneOf": [{}]}}"#, listed(8, ", ", tagged)),
        format!(r#"{{"allOf": [{}]}}"#, listed(6, ", ", forbidden)),
        format!(r#"{{"type": "array", "items": {numbers}, "maxItems": 500}}"#),
        deep,
    ]
}

/// Grammars of the other notations, likewise.
fn others() -> Vec<(Syntax, String)> {
    let rule = |number: usize| {
        format!("r{number} ::= \"a{number}\" (\"(\" r{} \")\")? | [ab]{{{number}}} \"c\"", (number * 7) % 40)
    };
    let rules =
        format!("root ::= ({})*\n{}", listed(40, " | ", |at| format!("r{at}")), listed(40, "\n", rule));
    let mut lark = "start: (a | B | C)+\na: \"(\" start \")\" | D\nB: /[ab]+c/ & ~/.*bb.*/\n".to_owned();
    let words = listed(20, " | ", |at| format!("\"k{at}\""));
    let _ = write!(lark, "C: /x{{1,30}}/ | {words}\nD: /.*q/ & /w.*/\n");
    let tag = format!(
        r#"{{"type": "structural_tag", "format": {{"type": "json_schema", "json_schema": {}}}}}"#,
        divisors(4)
    );
    vec![
        (Syntax::Gbnf, rules.clone()),
        (Syntax::Ebnf, rules),
        (Syntax::Gbnf, r#"root ::= x{50,100} "b"  x ::= "a" | "(" x ([a-z]{1,90} x){2,90} ")""#.to_owned()),
        (Syntax::Gbnf, r#"root ::= "a" (root | "b" root)* | ((("x"{0,9}){0,9})? "y" root)*"#.to_owned()),
        (Syntax::Lark, lark.clone()),
        (Syntax::LarkGreedy, lark),
        (Syntax::Lark, "start: \"<\" t\nt[lazy]: /(.|\\n)*/ \"end\"\n".to_owned()),
        (Syntax::Regex, r"(?:a|b)*a(?:a|b){6}c?\d{2,40}".to_owned()),
        (Syntax::Regex, "(?P<SUBSTRING_OF>a text that is quoted)(?:[a-z]{3}-){1,20}".to_owned()),
        (Syntax::Regex, r"(?P<TEXT_UNTIL>e[no]d)(?P<DELIMITED_LIST>a|b\d+|(?P<DELIMITER>, ))".to_owned()),
        (Syntax::StructuralTag, tag),
    ]
}

fn grammars() -> Vec<(Syntax, String)> {
    schemas().into_iter().map(|text| (Syntax::JsonSchema, text)).chain(others()).collect()
}

/// Some of the looks `0..all`: the first ones, ever fewer, and the last.
fn some(all: usize) -> Vec<usize> {
    let next = |look: &usize| Some(2 * look + 1);
    let mut looks: Vec<usize> = std::iter::successors(Some(0), next).take_while(|&look| look < all).collect();
    looks.extend(all.checked_sub(1));
    looks.dedup();
    looks
}

/// The oracle is a compiler of its own that nobody has cancelled.
#[test]
fn cancelled_work_leaves_the_compiler_as_it_was() {
    for (syntax, text) in grammars() {
        let counted = Cancel::new();
        let whole = compiled(&compiler().cancelled_by(&counted), syntax, &text);
        let whole = whole.unwrap_or_else(|(_, error)| panic!("{text}\n{error}"));
        let (all, expected) = (counted.looks(), masks(&whole));
        assert!(all > 2, "{all} looks: {text}");
        for look in some(all) {
            let compiler = compiler();
            let ended = compiled(&compiler.cancelled_by(&Cancel::at_look(look)), syntax, &text);
            let (cancelled, error) = ended.expect_err("it was cancelled");
            assert!(cancelled, "look {look} of {all}: {error}\n{text}");
            assert!(error.contains("was cancelled") && error.contains("hint: "), "{error}");
            let again = compiled(&compiler, syntax, &text).unwrap_or_else(|(_, error)| panic!("{error}"));
            assert_eq!(masks(&again), expected, "after look {look} of {all}: {text}");
        }
        let never = Cancel::at_look(all);
        assert!(compiled(&compiler().cancelled_by(&never), syntax, &text).is_ok(), "{text}");
        // It is of no consequence for what was compiled that the handle is cancelled now.
        counted.cancel();
        assert_eq!(masks(&whole), expected);
    }
}

/// More allowed than the schema says is an answer to budgets, not to being cancelled.
#[test]
fn cancelling_does_not_relax_lenient_schemas() {
    let options = SchemaOptions::default().with_lenient(true);
    type Work = fn(&SchemaOptions, &str, &Limits) -> Result<(), SchemaError>;
    let works: [Work; 3] = [
        |options, text, limits| options.parse(text, limits).map(drop),
        |options, text, limits| options.report(text, limits).map(drop),
        |options, text, limits| options.outline(text, limits, 5).map(drop),
    ];
    for (text, work) in schemas().iter().flat_map(|text| works.map(|work| (text, work))) {
        let counted = Cancel::new();
        work(&options, text, &Limits::default().cancelled_by(&counted)).unwrap();
        for look in some(counted.looks()) {
            let limits = Limits::default().cancelled_by(&Cancel::at_look(look));
            let error = work(&options, text, &limits).expect_err("it was cancelled");
            assert_eq!((error.kind(), error.pointer()), (&SchemaErrorKind::Cancelled, "#"), "{error}");
        }
    }
}

/// A schema of many seconds, of which another thread sees the first looks.
#[test]
fn another_thread_can_cancel_a_compilation() {
    let compiler = compiler();
    let hundreds = listed(400, " | ", |at| format!("r{at}")) + "\n";
    let rules = listed(400, "\n", |at| format!("r{at} ::= [ab]* \"a\" [ab]{{30}} \"{at}\" ([cd] r{at})?"));
    for (syntax, text) in [
        (Syntax::JsonSchema, divisors(1_000)),
        (Syntax::Gbnf, format!("root ::= {hundreds}{rules}")),
        (Syntax::JsonSchema, format!(r#"{{"allOf": [{}, {}]}}"#, divisors(500), divisors(600))),
    ] {
        let cancel = Cancel::new();
        let ended = std::thread::scope(|scope| {
            let work = scope.spawn(|| compiled(&compiler.cancelled_by(&cancel), syntax, &text).map(drop));
            while cancel.looks() < 20 && !work.is_finished() {
                std::thread::yield_now();
            }
            cancel.cancel();
            work.join().unwrap()
        });
        assert!(ended.is_err_and(|(cancelled, _)| cancelled), "{} bytes of {syntax:?}", text.len());
    }
    compiled(&compiler.cancelled_by(&Cancel::new()), Syntax::Regex, "a+").unwrap();
}

#[test]
fn an_expired_time_limit_is_reported_as_such() {
    let grammar = Grammar::parse(Syntax::Regex, "a+", &Limits::default()).unwrap();
    for (time, said) in [(Duration::ZERO, "0 milliseconds"), (Duration::from_millis(1), "1 milliseconds")] {
        let cancel = Cancel::after(time);
        // A millisecond later.
        while !cancel.is_cancelled() {}
        let error = compiler().cancelled_by(&cancel).compile(&grammar).unwrap_err();
        assert!(error.is_cancelled() && error.to_string().contains(said), "{error}");
        let limits = Limits::default().cancelled_by(&cancel);
        let error = Grammar::parse(Syntax::Gbnf, "root ::= \"a\"", &limits).unwrap_err();
        assert!(error.is_cancelled() && error.hint().unwrap().contains("more time"), "{error}");
        // By hand, it is no matter of time any more.
        cancel.cancel();
        let error = cancel.look().unwrap_err();
        assert_eq!((error.budget(), error.budget().field()), (Budget::Cancelled, None));
    }
    let hour = Cancel::after(Duration::from_secs(3_600));
    compiler().cancelled_by(&hour).compile(&grammar).unwrap();
    assert!(!hour.is_cancelled() && hour == hour.clone() && hour != Cancel::new());
}

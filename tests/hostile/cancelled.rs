//! Hostile grammars are ended from another thread, wherever their work is, and leave a compiler as it was.
//! Each of these takes seconds or minutes if nobody ends it.

use std::{sync::mpsc, thread, time::Duration};

use domino::{
    Cancel, Compiler, Grammar, Limits, Syntax, TokenId, Vocabulary,
    grammar::tools::{Calling, Spelling, Tools},
};

use super::grammars::{Case, cases};

/// Time after which work that was cancelled has not ended. It is no measure of how soon it does.
const NEVER: Duration = Duration::from_secs(120);

/// Times after which work is cancelled: in different stages of it.
const MOMENTS: [Duration; 3] =
    [Duration::from_millis(1), Duration::from_millis(40), Duration::from_millis(400)];

fn compiler() -> Compiler {
    Compiler::new(Vocabulary::builder().all_bytes().end_of_text(TokenId::new(256)).build().unwrap())
}

/// Outcome of work: none, or whether it was cancelled, with the error.
type Outcome = Result<(), (bool, String)>;

fn compiled(compiler: &Compiler, syntax: Syntax, text: &str) -> Outcome {
    let grammar = compiler.parse(syntax, text);
    let grammar = grammar.map_err(|error| (error.is_cancelled(), error.to_string()))?;
    let compiled = compiler.compile(&grammar);
    compiled.map(drop).map_err(|error| (error.is_cancelled(), error.to_string()))
}

/// The way in which work on a thread of its own came to its end.
enum End {
    /// The work ended before it was cancelled.
    Before,
    /// The work was cancelled.
    Cancelled,
    /// The work had a result of its own: it was past its last look at the handle, or it never looks.
    InItsOwn(String),
}

/// Does `work` on a thread of its own, and cancels it after `moment`. Fails if it does not end.
fn cancelled(
    name: &str,
    moment: Duration,
    cancel: &Cancel,
    work: impl FnOnce() -> Outcome + Send + 'static,
) -> End {
    let (done, wait) = mpsc::channel();
    let worker = thread::spawn(move || done.send(work()));
    if wait.recv_timeout(moment).is_ok() {
        return End::Before;
    }
    cancel.cancel();
    let outcome = wait.recv_timeout(NEVER).unwrap_or_else(|error| panic!("{name}: {error}"));
    let _ = worker.join();
    match outcome {
        Ok(()) => End::InItsOwn("no error".to_owned()),
        Err((false, error)) => End::InItsOwn(error),
        Err((true, _)) => End::Cancelled,
    }
}

/// True if the work that `start` makes for a handle is cancelled after `moment`; false if it ends before.
///
/// Work may come to its own end just as it is cancelled. That is luck, and with less time for each try it
/// does not last: work that ends in a result of its own at every try does not look at the handle.
fn is_cancelled<W>(name: &str, mut moment: Duration, start: impl Fn(&Cancel) -> W) -> bool
where
    W: FnOnce() -> Outcome + Send + 'static,
{
    let mut own = String::new();
    for _ in 0..8 {
        let cancel = Cancel::new();
        match cancelled(name, moment, &cancel, start(&cancel)) {
            End::Before => return false,
            End::Cancelled => return true,
            End::InItsOwn(end) => own = end,
        }
        moment /= 2;
    }
    panic!("{name}: cancelled at eight moments, the last at {moment:?}, it ended in {own}")
}

fn listed(count: usize, one: impl Fn(usize) -> String) -> String {
    (0..count).map(one).collect::<Vec<_>>().join(", ")
}

fn properties(count: usize, schema: impl Fn(usize) -> String) -> String {
    format!(r#"{{"properties": {{{}}}}}"#, listed(count, |at| format!(r#""p{at}": {}"#, schema(at))))
}

/// Schemas, each costly in another way.
fn schemas() -> Vec<(&'static str, String)> {
    let divisor = |at: usize| format!(r#"{{"type": "number", "multipleOf": {}}}"#, at + 2);
    let looks = |at: usize| format!(r#"{{"pattern": "^(?=.*{at}a)(?=.*b.{{{at}}}c)[a-z0-9]{{9,900}}$"}}"#);
    let key = |at: usize| format!(r#""^.*{at}.*(a|b){{3,99}}$": {{"type": "integer"}}"#);
    let alternative = |at: usize| {
        format!(r#"{{"properties": {{"k{}": {{"minimum": {at}}}}}, "required": ["k{}"]}}"#, at % 7, at % 5)
    };
    let choice = |at: usize| format!(r#"{{"anyOf": [{}]}}"#, listed(9, |other| alternative(9 * at + other)));
    let reference = |at: usize| {
        let next = |step: usize| format!(r##"{{"$ref": "#/$defs/d{}"}}"##, (at * 3 + step) % 2_000);
        let pair = format!(r#"{{"prefixItems": [{}, {}]}}"#, next(1), next(7));
        format!(r#""d{at}": {{"oneOf": [{{"type": "integer"}}, {pair}]}}"#)
    };
    vec![
        ("1,000 divisors", properties(1_000, divisor)),
        ("divisors of one number", format!(r#"{{"allOf": [{}]}}"#, listed(300, divisor))),
        ("patterns with look-ahead", properties(300, looks)),
        ("patterns of keys", format!(r#"{{"patternProperties": {{{}}}}}"#, listed(300, key))),
        ("products of alternatives", format!(r#"{{"allOf": [{}]}}"#, listed(20, choice))),
        ("exactly one of many", format!(r#"{{"oneOf": [{}]}}"#, listed(600, alternative))),
        ("an enum of 100,000", format!(r#"{{"enum": [{}]}}"#, listed(100_000, |at| format!(r#""{at:x}""#)))),
        (
            "references to references",
            format!(r##"{{"$ref": "#/$defs/d0", "$defs": {{{}}}}}"##, listed(2_000, reference)),
        ),
        (
            "counts of counts",
            properties(200, |at| {
                let items = format!(r#"{{"type": "string", "maxLength": {}}}"#, at * 500 + 1);
                format!(r#"{{"type": "array", "items": {items}, "maxItems": {}}}"#, at * 90 + 1)
            }),
        ),
    ]
}

/// Grammars in other notations, beside those that are hostile to the engine.
fn others() -> Vec<Case> {
    let lines = |count: usize, line: fn(usize) -> String| (0..count).map(line).collect::<String>();
    let lark = format!(
        "start: ({})*\n{}",
        (0..300).map(|at| format!("T{at}")).collect::<Vec<_>>().join(" | "),
        lines(300, |at| format!("T{at}: /(a|b)*a(a|b){{{}}}/ & ~/.*{at}.*/\n", at % 13))
    );
    let tag = |schema: &str| {
        let format = format!(r#"{{"type": "json_schema", "json_schema": {schema}}}"#);
        format!(r#"{{"type": "structural_tag", "format": {format}}}"#)
    };
    let rule = |at| format!("r{at}: \"a{at}\" r{}?\n", (at + 1) % 20_000);
    let case = |name, syntax, grammar| Case { name, syntax, grammar, text: Vec::new() };
    vec![
        case("Lark of Boolean operations", Syntax::Lark, lark.clone()),
        case("greedy Lark of Boolean operations", Syntax::LarkGreedy, lark),
        case("a schema in tags", Syntax::StructuralTag, tag(&schemas()[0].1)),
        case("a lark of 20,000 rules", Syntax::Lark, "start: r0\n".to_owned() + &lines(20_000, rule)),
        case("a regex of classes", Syntax::Regex, r"(?:\w+\pL*\d?[^\s\d]){20}".repeat(200)),
        case("until one of many", Syntax::Regex, "(?P<TEXT_UNTIL>(?:a|b)*a(?:a|b){12})x".repeat(40)),
    ]
}

#[test]
fn work_cancelled_before_it_begins_never_begins() {
    let cancel = Cancel::new();
    cancel.cancel();
    let compiler = compiler().cancelled_by(&cancel);
    let all = cases().into_iter().chain(others());
    let all = all.map(|Case { name, syntax, grammar, .. }| (name, syntax, grammar));
    let schemas = schemas().into_iter().map(|(name, text)| (name, Syntax::JsonSchema, text));
    for (name, syntax, text) in all.chain(schemas) {
        let (cancelled, error) = compiled(&compiler, syntax, &text).expect_err(name);
        assert!(cancelled && error.len() < 300, "{name}: {error}");
    }
    let grammar = Grammar::parse(Syntax::Gbnf, "root ::= \"a\"", &Limits::default()).unwrap();
    assert!(compiler.compile(&grammar).unwrap_err().is_cancelled());
    assert!(compiler.prepare(&grammar).unwrap_err().is_cancelled());
}

#[test]
fn schemas_end_when_cancelled() {
    let (compiler, schemas) = (compiler(), schemas());
    let mut ended = 0;
    for (name, text) in &schemas {
        for moment in MOMENTS {
            ended += usize::from(is_cancelled(name, moment, |cancel| {
                let (own, text) = (compiler.cancelled_by(cancel), text.clone());
                move || compiled(&own, Syntax::JsonSchema, &text)
            }));
            compiled(&compiler, Syntax::JsonSchema, r#"{"type": "integer"}"#).expect(name);
        }
    }
    assert!(ended > schemas.len(), "{ended} of {} were slow enough to tell", schemas.len() * MOMENTS.len());
}

#[test]
fn grammars_end_when_cancelled() {
    let (compiler, small) = (compiler(), r#"root ::= "(" root ")" | [\x00-\U0010FFFF]*"#);
    let mut ended = 0;
    for Case { name, syntax, grammar, text } in others().into_iter().chain(cases()) {
        ended += usize::from(is_cancelled(name, MOMENTS[1], |cancel| {
            let (own, grammar) = (compiler.cancelled_by(cancel), grammar.clone());
            move || compiled(&own, syntax, &grammar)
        }));
        // The compiler goes on with others, whatever stands in their texts.
        let grammar = compiler.parse(Syntax::Gbnf, small).expect(name);
        let mut constraint = compiler.compile(&grammar).expect(name).constraint();
        constraint.advance_bytes(&text[..text.len().min(50)]).expect(name);
    }
    assert!(ended > 5, "only {ended} were slow enough to tell");
}

#[test]
fn functions_end_when_cancelled() {
    let function = |at: usize| {
        let parameters = properties(60, |other| format!(r#"{{"multipleOf": {}}}"#, at * 60 + other + 2));
        format!(r#"{{"type": "function", "function": {{"name": "f{at}", "parameters": {parameters}}}}}"#)
    };
    let list = format!("[{}]", listed(40, function));
    for moment in MOMENTS {
        is_cancelled("functions", moment, |cancel| {
            let (list, limits) = (list.clone(), Limits::default().cancelled_by(cancel));
            move || {
                let tools = Tools::parse(&list).expect("a list");
                let grammar = tools.grammar(&Calling::new(Spelling::Hermes), &limits);
                grammar.map(drop).map_err(|error| (error.is_cancelled(), error.to_string()))
            }
        });
    }
}

/// A time counts from when the handle was made, so that several calls share it.
#[test]
fn a_time_limit_ends_slow_work_and_nothing_else() {
    let (compiler, text) = (compiler(), properties(1_000, |at| format!(r#"{{"multipleOf": {}}}"#, at + 2)));
    let own = compiler.cancelled_by(&Cancel::after(Duration::from_millis(200)));
    let (cancelled, error) = compiled(&own, Syntax::JsonSchema, &text).unwrap_err();
    assert!(cancelled && error.contains("budget of 200 milliseconds"), "{error}");
    let hour = compiler.cancelled_by(&Cancel::after(Duration::from_secs(3_600)));
    compiled(&hour, Syntax::JsonSchema, r#"{"type": "number", "multipleOf": 3}"#).unwrap();
}

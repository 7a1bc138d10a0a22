//! Grammars and texts made to hurt the engine. Each must end in an answer or in a limit's error, in
//! bounded time, and on a thread with an ordinary stack.

use std::{sync::mpsc, thread, time::Duration};

use domino::{
    Budget, CompileErrorKind, Compiler, Constraint, Grammar, LimitExceeded, Limits, StepError, StepErrorKind,
    TokenId, Vocabulary,
    grammar::{GrammarBuilder, Pattern, Span},
    ids::ExprId,
};

/// Runs `test` on a thread of its own and fails if it takes longer than any of these cases may.
fn in_time(test: impl FnOnce() + Send + 'static) {
    let (done, wait) = mpsc::channel();
    let worker = thread::spawn(move || {
        test();
        let _ = done.send(());
    });
    match wait.recv_timeout(Duration::from_secs(60)) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("still running after a minute"),
        // Done, or panicked: say what with.
        _ => worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
    }
}

const END: TokenId = TokenId::new(256);

/// A vocabulary of all bytes, some short strings, and end of text.
fn vocabulary() -> Vocabulary {
    let mut builder = Vocabulary::builder().end_of_text(END);
    for byte in 0..=255_u8 {
        builder = builder.token(TokenId::new(u32::from(byte)), vec![byte]);
    }
    for (number, text) in ["aa", "ab", "aaaaaaaa", "((", "))", "()", "a)", "[[[["].into_iter().enumerate() {
        builder = builder.token(TokenId::from_index(300 + number).unwrap(), text);
    }
    builder.build().unwrap()
}

/// A builder of grammars in few words; spans and budgets do not matter here.
struct Build(GrammarBuilder);

impl Build {
    fn new() -> Self {
        Self(GrammarBuilder::new(&Limits::default()))
    }

    fn text(&mut self, text: &str) -> ExprId {
        self.0.pattern(Pattern::literal(text.as_bytes()), Span::default()).unwrap()
    }

    fn regex(&mut self, regex: &str) -> ExprId {
        let hir = regex_syntax::parse(regex).unwrap();
        self.0.pattern(Pattern::from_hir(hir).unwrap(), Span::default()).unwrap()
    }

    fn rule(&mut self, name: &str) -> ExprId {
        self.0.rule_ref(name, Span::default()).unwrap()
    }

    fn all(&mut self, parts: &[ExprId]) -> ExprId {
        self.0.sequence(parts.to_vec(), Span::default()).unwrap()
    }

    fn any(&mut self, parts: &[ExprId]) -> ExprId {
        self.0.alternatives(parts.to_vec(), Span::default()).unwrap()
    }

    fn repeat(&mut self, part: ExprId, min: u32, max: Option<u32>) -> ExprId {
        self.0.repeat(part, min, max, Span::default()).unwrap()
    }

    fn define(&mut self, name: &str, body: ExprId) {
        self.0.define(name, body, Span::default()).unwrap();
    }

    fn finish(mut self, body: ExprId) -> Grammar {
        self.define("root", body);
        self.0.finish("root").unwrap()
    }
}

/// Compiles a grammar; the error is the limit that was reached.
fn compile_with(grammar: &Grammar, limits: Limits) -> Result<Constraint, LimitExceeded> {
    match Compiler::new(vocabulary()).limits(limits).compile(grammar) {
        Ok(compiled) => Ok(compiled.constraint()),
        Err(error) => match error.kind() {
            CompileErrorKind::Limit(limit) => Err(limit.clone()),
            kind => panic!("{kind:?}: {error}"),
        },
    }
}

fn compile(grammar: &Grammar) -> Result<Constraint, LimitExceeded> {
    compile_with(grammar, Limits::default())
}

/// Turns an error into the limit that was reached.
fn or_limit<T>(answer: Result<T, StepError>) -> Result<T, LimitExceeded> {
    answer.map_err(|error| match error.kind() {
        StepErrorKind::Limit(limit) => limit.clone(),
        kind => panic!("{kind:?}: {error}"),
    })
}

/// Pieces of one step, of `Limits::step_work` each, after which these tests take the error for the answer.
const MOST_PIECES: usize = 4;

/// Calls `step` until it is done, as long as it says that it can go on.
fn go_on<T>(mut step: impl FnMut() -> Result<T, StepError>) -> Result<T, LimitExceeded> {
    let mut pieces = 1;
    loop {
        match step() {
            Err(error) if error.can_go_on() && pieces < MOST_PIECES => pieces += 1,
            answer => return or_limit(answer),
        }
    }
}

/// Compiles a grammar and reads `text` byte by byte with some masks; only answers or limits may come.
fn drive(grammar: &Grammar, text: &[u8]) -> Result<(), LimitExceeded> {
    let mut constraint = compile(grammar)?;
    for (at, &byte) in text.iter().enumerate() {
        let token = TokenId::new(u32::from(byte));
        if at % (text.len() / 10 + 1) == 0 {
            let mask = go_on(|| constraint.mask().cloned())?;
            assert!(mask.contains(token), "byte {at} is not in the mask");
        }
        go_on(|| constraint.advance(token))?;
    }
    go_on(|| constraint.mask().cloned()).map(|_| ())
}

/// Compiles a grammar and reads `text` byte by byte, without masks.
fn read(grammar: &Grammar, text: &[u8]) -> Result<(), LimitExceeded> {
    let mut constraint = compile(grammar).expect("it compiles");
    text.iter().try_for_each(|&byte| go_on(|| constraint.advance(TokenId::new(u32::from(byte)))))
}

/// Checks that all went well, or took more work than a step may.
#[track_caller]
fn well_or_too_much_work(outcome: Result<(), LimitExceeded>) {
    if let Err(limit) = outcome {
        assert_eq!(limit.budget(), Budget::StepWork, "{limit}");
    }
}

#[test]
fn ambiguous_lists_end_in_time() {
    in_time(|| {
        let mut build = Build::new();
        let (item, list) = (build.text("a"), build.rule("root"));
        let three = build.all(&[list, list, list]);
        let two = build.all(&[list, list]);
        let body = build.any(&[three, two, item]);
        assert_eq!(after_letters(&build.finish(body)), [u32::from(b'a'), END.raw(), 300, 302]);
        // Brackets around parts of parts keep the list from being one run.
        let mut build = Build::new();
        let (item, list, part) = (build.text("a"), build.rule("root"), build.rule("part"));
        let (open, close) = (build.text("("), build.text(")"));
        let nested = build.all(&[open, list, close]);
        let either = build.any(&[list, nested]);
        build.define("part", either);
        let three = build.all(&[part, part, part]);
        let two = build.all(&[part, part]);
        let body = build.any(&[three, two, item]);
        let [open, letter] = [b'(', b'a'].map(u32::from);
        assert_eq!(after_letters(&build.finish(body)), [open, letter, END.raw(), 300, 302, 303]);
    });
}

/// Ids of the tokens that may follow 200 letters.
fn after_letters(grammar: &Grammar) -> Vec<u32> {
    let mut constraint = compile(grammar).unwrap();
    for _ in 0..200 {
        go_on(|| constraint.advance(TokenId::new(u32::from(b'a')))).unwrap();
    }
    let mask = go_on(|| constraint.mask().cloned()).unwrap();
    mask.iter().map(TokenId::raw).collect()
}

#[test]
fn nullable_cyclic_rules_end_in_time() {
    in_time(|| {
        let mut build = Build::new();
        let (maybe, list, nothing) = (build.rule("maybe"), build.rule("root"), build.text(""));
        let parts = [maybe; 40];
        let many = build.all(&parts);
        let cycle = build.all(&[list, list, list]);
        let body = build.any(&[many, cycle, list, nothing]);
        let (a, again) = (build.text("a"), build.rule("maybe"));
        let maybe = build.any(&[a, nothing, again]);
        build.define("maybe", maybe);
        drive(&build.finish(body), &[b'a'; 100]).unwrap();
    });
}

#[test]
fn deep_expressions_end_in_time() {
    fn nested(depth: usize) -> Grammar {
        let mut build = Build::new();
        let (mut body, end) = (build.text("a"), build.text(")"));
        for _ in 0..depth {
            let more = build.all(&[body, end]);
            body = build.repeat(more, 0, Some(1));
        }
        build.finish(body)
    }
    in_time(|| {
        drive(&nested(1_000), b"a))))").unwrap();
        well_or_too_much_work(drive(&nested(100_000), b"a))))"));
    });
}

#[test]
fn deep_patterns_end_in_time() {
    fn nested(depth: usize) -> regex_syntax::hir::Hir {
        let mut hir = regex_syntax::hir::Hir::literal(*b"a");
        for _ in 0..depth {
            hir = regex_syntax::hir::Hir::concat(vec![regex_syntax::hir::Hir::literal(*b"("), hir]);
            hir = regex_syntax::hir::Hir::repetition(regex_syntax::hir::Repetition {
                min: 0,
                max: Some(1),
                greedy: true,
                sub: Box::new(hir),
            });
        }
        hir
    }
    in_time(|| {
        // Each level is a sequence and a repetition. What is too deep is refused at the door.
        let most = domino::limits::PATTERN_NESTING;
        for depth in [most, 50_000] {
            let error = Pattern::from_hir(nested(depth)).unwrap_err();
            assert!(error.to_string().contains(&format!("more than {most} levels")), "{error}");
        }
        let mut build = Build::new();
        let pattern = Pattern::from_hir(nested(most / 2 - 1)).unwrap();
        let body = build.0.pattern(pattern, Span::default()).unwrap();
        drive(&build.finish(body), b"((((").unwrap();
    });
}

#[test]
fn long_chains_of_rules_end_in_time() {
    in_time(|| {
        let mut build = Build::new();
        for number in 0..100_000 {
            let next = build.rule(&format!("r{}", number + 1));
            build.define(&format!("r{number}"), next);
        }
        let end = build.text("a");
        build.define("r100000", end);
        let first = build.rule("r0");
        drive(&build.finish(first), b"a").unwrap();
    });
}

#[test]
fn long_chains_of_recursive_rules_end_in_time() {
    in_time(|| {
        let mut build = Build::new();
        let (open, close) = (build.text("("), build.text(")"));
        for number in 0..10_000 {
            let next = build.rule(&format!("r{}", number + 1));
            let this = build.rule(&format!("r{number}"));
            let nested = build.all(&[open, this, close]);
            let body = build.any(&[nested, next]);
            build.define(&format!("r{number}"), body);
        }
        let end = build.text("a");
        build.define("r10000", end);
        let first = build.rule("r0");
        drive(&build.finish(first), b"(((a)").unwrap();
    });
}

#[test]
fn ten_thousand_alternatives_end_in_time() {
    in_time(|| {
        let mut build = Build::new();
        let root = build.rule("root");
        let mut names = Vec::new();
        for number in 0..10_000 {
            let name = format!("r{number}");
            let word = build.text(&format!("a{number}"));
            let nested = build.all(&[word, root]);
            let body = build.any(&[nested, word]);
            build.define(&name, body);
            names.push(build.rule(&name));
        }
        let body = build.any(&names);
        drive(&build.finish(body), b"a123a4567a0").unwrap();
    });
}

#[test]
fn deeply_nested_texts_end_in_time() {
    in_time(|| {
        let mut build = Build::new();
        let (open, root, close, none) =
            (build.text("("), build.rule("root"), build.text(")"), build.text(""));
        let nested = build.all(&[open, root, close]);
        let body = build.any(&[nested, none]);
        let mut text = vec![b'('; 20_000];
        text.resize(40_000, b')');
        drive(&build.finish(body), &text).unwrap();
    });
}

#[test]
fn long_texts_end_in_time() {
    in_time(|| {
        let mut build = Build::new();
        let (item, tail) = (build.regex("[a-z]+"), build.rule("root"));
        let more = build.all(&[item, tail]);
        let body = build.any(&[more, item]);
        drive(&build.finish(body), &[b'a'; 30_000]).unwrap();
    });
}

#[test]
fn huge_counts_end_in_time() {
    for (inner, outer) in [(100_000, 1), (1_000, 1_000), (50_000, 50_000), (4_000_000_000, 4_000_000_000)] {
        for exactly in [false, true] {
            in_time(move || {
                let mut build = Build::new();
                let letter = build.regex("[ab]");
                let min = |count| if exactly { count } else { 0 };
                let some = build.repeat(letter, min(inner), Some(inner));
                let body = build.repeat(some, min(outer), Some(outer));
                let grammar = build.finish(body);
                let outcome = read(&grammar, &[b'a'; 200]);
                if inner <= 100_000 {
                    outcome.unwrap();
                } else {
                    well_or_too_much_work(outcome);
                }
                well_or_too_much_work(drive(&grammar, &[b'a'; 200]));
            });
        }
    }
}

#[test]
fn huge_counts_of_recursive_rules_end_in_time() {
    for count in [1_000, 100_000, u32::MAX] {
        in_time(move || {
            let mut build = Build::new();
            let (open, close, nested) = (build.text("("), build.text(")"), build.rule("nested"));
            let inner = build.repeat(nested, 0, Some(count));
            let body = build.all(&[open, inner, close]);
            build.define("nested", body);
            let body = build.repeat(nested, 2, Some(count));
            drive(&build.finish(body), b"(()()(()))()").unwrap();
        });
    }
}

#[test]
fn rules_that_double_each_other_end_in_time() {
    in_time(|| {
        let mut build = Build::new();
        for number in 0..60 {
            let next = build.rule(&format!("r{}", number + 1));
            let twice = build.all(&[next, next]);
            build.define(&format!("r{number}"), twice);
        }
        let letter = build.text("a");
        let end = build.repeat(letter, 0, Some(1));
        build.define("r60", end);
        let first = build.rule("r0");
        // Masks take the square of what was read, and end in the budget of a step in the end.
        drive(&build.finish(first), &[b'a'; 30]).unwrap();
    });
}

#[test]
fn long_literals_end_in_time() {
    in_time(|| {
        let mut build = Build::new();
        let text = "ab".repeat(500_000);
        let (one, other) = (build.text(&text), build.text(&text[1..]));
        let body = build.any(&[one, other]);
        drive(&build.finish(body), &text.as_bytes()[..2_000]).unwrap();
    });
}

#[test]
fn expressions_with_many_states_end_in_time() {
    for (regex, text) in [
        ("(?:a|b)*a(?:a|b){24}", "aabaabbbaab"),
        ("(?:.{0,500}){0,500}", "aabaabbbaab"),
        (r"\w{3000}", "aabaabbbaab"),
        (r"(?:\w+\s?){0,200}x", "aab aabx"),
        ("(?:a?){3000}a{3000}", "aaaaaaaa"),
        ("(?:(?:a|b|ab)*(?:a|ba)*)*b{50}", "aabaabbbaab"),
    ] {
        in_time(move || {
            let mut build = Build::new();
            let body = build.regex(regex);
            drive(&build.finish(body), text.as_bytes()).unwrap();
        });
    }
}

#[test]
fn many_overlapping_terminals_end_in_time() {
    in_time(|| {
        let mut build = Build::new();
        let words: Vec<_> = (1..=300).map(|length| build.regex(&format!("[ab]{{{length},}}"))).collect();
        let (root, close) = (build.rule("root"), build.text(")"));
        let word = build.any(&words);
        let nested = build.all(&[root, close]);
        let list = build.all(&[word, root]);
        let body = build.any(&[nested, list, word]);
        drive(&build.finish(body), &[b'a'; 60]).unwrap();
    });
}

/// Picks one budget.
type Field = fn(&mut Limits) -> &mut usize;

/// Nested brackets around numbers: nothing in it is regular as a whole.
fn brackets() -> Grammar {
    let mut build = Build::new();
    let (open, root, close) = (build.text("(("), build.rule("root"), build.text("))"));
    let number = build.regex("[0-9]+(?:[.][0-9]{1,3})?");
    let nested = build.all(&[open, root, close]);
    let list = build.repeat(nested, 1, Some(4));
    let body = build.any(&[list, number]);
    build.finish(body)
}

/// Name of the limit that is reached on the way through `((1.5))((7`.
fn reached(limits: Limits) -> Option<LimitExceeded> {
    let mut constraint = match compile_with(&brackets(), limits) {
        Ok(constraint) => constraint,
        Err(limit) => return Some(limit),
    };
    let mut limited = None;
    let mut keep = |error: StepError| match error.kind() {
        StepErrorKind::Limit(limit) => limited = Some(limit.clone()),
        kind => panic!("{kind:?}"),
    };
    for byte in b"((1.5))((7" {
        if let Err(error) = constraint.mask() {
            keep(error);
        }
        if let Err(error) = constraint.advance(TokenId::new(u32::from(*byte))) {
            keep(error);
            break;
        }
    }
    limited
}

#[test]
fn every_budget_can_be_used_up() {
    assert_eq!(reached(Limits::default()), None);
    let cases: [(&str, Field); 6] = [
        ("dfa_states", |limits| &mut limits.dfa_states),
        ("nfa_bytes", |limits| &mut limits.nfa_bytes),
        ("symbols", |limits| &mut limits.symbols),
        ("parser_bytes", |limits| &mut limits.parser_bytes),
        ("state_bytes", |limits| &mut limits.state_bytes),
        ("step_work", |limits| &mut limits.step_work),
    ];
    for (name, field) in cases {
        for size in 0..3 {
            let mut limits = Limits::default();
            *field(&mut limits) = size;
            let limit = reached(limits);
            assert!(limit.is_some() || size > 0, "{name} = 0 is not noticed");
            if let Some(limit) = limit {
                assert_eq!(limit.limit(), u64::try_from(size).unwrap(), "{name}: {limit}");
                assert_eq!(limit.budget().field(), Some(name));
                assert!(limit.hint().contains(name), "{}", limit.hint());
            }
        }
    }
    // Budgets that are only for speed cause no error.
    let mut limits = Limits::default();
    (limits.tree_bytes, limits.mask_bytes, limits.fold_states) = (0, 0, 0);
    assert_eq!(reached(limits), None);
}

/// Budgets are per session: one that used its own up takes nothing from the next.
#[test]
fn budgets_are_for_a_session() {
    let mut limits = Limits::default();
    (limits.state_bytes, limits.parser_bytes) = (30_000, 30_000);
    let compiled = Compiler::new(vocabulary()).limits(limits).compile(&brackets()).unwrap();
    for session in 0..100_u32 {
        let mut constraint = compiled.constraint();
        // Another nesting every time, in at most a hundred steps.
        for bit in 0..7 {
            let text: &[u8] = if session >> bit & 1 == 1 { b"((((" } else { b"((1))((" };
            assert_eq!(
                constraint.advance_bytes(text).unwrap_or_else(|e| panic!("{session}: {e}")),
                text.len()
            );
            constraint.mask().unwrap_or_else(|error| panic!("{session}: {error}"));
        }
    }
    // A session that needs more than its budget ends in the error, as often as it is tried.
    let mut constraint = compiled.constraint();
    let mut read = 0;
    let limit = loop {
        match constraint.advance_bytes(b"((") {
            Ok(_) => read += 1,
            Err(error) => break error,
        }
        assert!(read < 1_000);
    };
    assert!(matches!(limit.kind(), StepErrorKind::Limit(_)));
    assert!(read >= 100, "{read}");
    assert!(constraint.advance_bytes(b"((").is_err());
    // A move to new memory keeps as much of the history as fits.
    let far = constraint.rollback(read).unwrap_err();
    let StepErrorKind::HistoryForgotten(known) = *far.kind() else { panic!("{far}") };
    assert!(known > 0, "{far}");
    constraint.rollback(known).unwrap();
    assert_eq!(constraint.steps(), read - known);
    assert!(constraint.mask().unwrap().contains(TokenId::new(u32::from(b'('))));
    assert!(compiled.constraint().mask().is_ok());
}

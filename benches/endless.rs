//! Memory along a session of a million tokens: `cargo measure endless -- [TOKENS]`.
//!
//! 1. Text that comes back to where it was: a record of JSON, over and over.
//! 2. Text that never does: brackets of two kinds, opened and closed at random, so that what is open is new
//!    every time.
//! 3. Text that nests ever deeper, until the budget for memory ends it.
//!
//! A mask and a step for each token, on the shipped tokenizer and one session. What counts is that the
//! resident memory of the process comes to rest; what the grammar's sessions share, and its part of it, are
//! beside it.

use std::{env, fs, time::Instant};

use domino::{CompiledGrammar, Compiler, Grammar, Limits, Syntax, TokenId, Vocabulary};

/// Numbers of tokens after which memory is measured.
const STAGES: [usize; 4] = [1_000, 10_000, 100_000, 1_000_000];
/// Most brackets open in the second text.
const DEPTH: usize = 300;

fn main() {
    let most = env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(STAGES[3]);
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/domino-small");
    let vocabulary = Vocabulary::from_tokenizer_file(folder).expect("the shipped tokenizer");
    let token = |text: &str| {
        let found = vocabulary.text_tokens().find(|(_, bytes)| *bytes == text.as_bytes());
        found.expect("every byte is a token").0
    };
    println!(
        "tokens: resident MB of the process | MB shared by sessions: parser sets, states, trees, masks \
         | us a token"
    );

    let json = Grammar::parse(Syntax::Gbnf, include_str!("../grammars/paper/json.gbnf"), &Limits::default());
    let compiled = compile(&vocabulary, &json.expect("a grammar"));
    let start: Vec<TokenId> = "{\"a\":[".chars().map(|letter| token(&letter.to_string())).collect();
    let record = "{\"name\": \"Ada\", \"born\": 1815, \"notes\": [\"A\", \"G\"], \"alive\": false},\n";
    let record: Vec<TokenId> = record.chars().map(|letter| token(&letter.to_string())).collect();
    println!("text that comes back");
    let mut text = start.iter().chain(record.iter().cycle());
    follow(&compiled, most, || text.next().copied());

    let brackets = r#"root ::= ("(" root ")" | "[" root "]")*"#;
    let brackets = Grammar::parse(Syntax::Gbnf, brackets, &Limits::default()).expect("a grammar");
    let pairs = [[token("("), token(")")], [token("["), token("]")]];
    let mut random = 0x2545_F491_4F6C_DD1D_u64;
    let mut bits = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random >> 32
    };
    let mut open: Vec<usize> = Vec::new();
    println!("text that never comes back");
    follow(&compile(&vocabulary, &brackets), most, || {
        let bits = bits();
        let opens = open.is_empty() || open.len() < DEPTH && bits & 3 != 0;
        if opens {
            open.push(usize::from(bits & 4 != 0));
            return Some(pairs[open[open.len() - 1]][0]);
        }
        open.pop().map(|kind| pairs[kind][1])
    });

    println!("text that nests ever deeper");
    let mut opened = 0_usize;
    follow(&compile(&vocabulary, &brackets), most, || {
        opened += 1;
        Some(pairs[opened.count_ones() as usize & 1][0])
    });
}

fn compile(vocabulary: &Vocabulary, grammar: &Grammar) -> CompiledGrammar {
    Compiler::new(vocabulary.clone()).compile(grammar).expect("a grammar that compiles")
}

/// Follows up to `most` tokens, or until a budget ends it, and prints memory and time at each stage.
fn follow(compiled: &CompiledGrammar, most: usize, mut next: impl FnMut() -> Option<TokenId>) {
    let mut constraint = compiled.constraint();
    let (mut begun, mut since) = (Instant::now(), 0);
    for done in 1..=most {
        let token = next().expect("a text without end");
        let step = constraint.mask().map(|mask| assert!(mask.contains(token)));
        if let Err(error) = step.and_then(|()| constraint.advance(token)) {
            report(compiled, done, since, begun);
            println!("          ends: {error}");
            return;
        }
        if STAGES.contains(&done) || done == most {
            report(compiled, done, since, begun);
            (begun, since) = (Instant::now(), done);
        }
    }
}

fn report(compiled: &CompiledGrammar, done: usize, since: usize, begun: Instant) {
    let mb = |bytes: usize| bytes as f64 / f64::from(1 << 20);
    let memory = compiled.memory();
    println!(
        "{done:>9}: {:6.1} | {:6.1}: {:.1}, {:.1}, {:.1}, {:.1} | {:.2}",
        resident_mb(),
        mb(memory.total()),
        mb(memory.parser_sets),
        mb(memory.states),
        mb(memory.trees),
        mb(memory.masks),
        begun.elapsed().as_secs_f64() * 1e6 / (done - since).max(1) as f64
    );
}

/// Resident memory of this process; 0 where the system does not tell it.
fn resident_mb() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kb = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u32>().ok());
    f64::from(kb.unwrap_or(0)) / 1024.0
}

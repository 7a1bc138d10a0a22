//! Many hostile schemas one after the other, cached as a server caches them.

use domino::{CompiledGrammar, Compiler, Limits, Memory, Syntax};

use serde_json::json;

use crate::{
    allocator::{live, peak_over},
    alone, hostile_schemas, schemas, vocabulary, walk,
};

/// Budgets as of `serve --grammar-cache 16 --max-memory 64`, in bytes.
const GRAMMARS: usize = 16 << 20;
const GRAMMAR: usize = 64 << 20;

/// The memory for grammars of a server that is told nothing, and the bytes by which requests may make it
/// larger.
const BY_DEFAULT: usize = 128 << 20;
const LEFT_BEHIND: usize = 250 << 20;

/// Bytes that may be allocated besides.
const BESIDES: usize = 200 << 20;

/// The cached grammars of a server, least recently used first, and the memory for them.
struct Kept(Vec<CompiledGrammar>, usize);

impl Kept {
    /// Evicts grammars that there is no room for, as the server does.
    fn trim(&mut self, compiler: &Compiler) {
        let most = self.1.saturating_sub(compiler.memory().shared);
        let sum = |kept: &[CompiledGrammar]| {
            kept.iter().map(|grammar| grammar.memory()).map(|memory: Memory| memory.total()).sum::<usize>()
        };
        while self.0.len() > 1 && sum(&self.0) > most {
            self.0.remove(0);
        }
        compiler.trim(most.saturating_sub(sum(&self.0)).max(self.1 / 8));
    }
}

/// Serves the schemas with so much memory for grammars; returns how many of them were compiled, and what is
/// kept.
fn serve(compiler: &Compiler, grammars: usize, schemas: impl Iterator<Item = String>) -> (usize, Kept) {
    let (mut kept, mut taken) = (Kept(Vec::new(), grammars), 0);
    for schema in schemas {
        if let Ok(grammar) = compiler.parse(Syntax::JsonSchema, &schema)
            && let Ok(compiled) = compiler.compile(&grammar)
        {
            drop(grammar);
            walk(&compiled, r#"{"p0":"ax123456"#);
            kept.0.push(compiled);
            taken += 1;
        }
        kept.trim(compiler);
    }
    (taken, kept)
}

/// Memory stays in the budget, though the automata of half of the schemas would need more than a grammar may
/// if each were listed, and none share an automaton.
#[test]
fn a_hundred_hostile_schemas_keep_to_the_budget() {
    let _alone = alone();
    let compiler = Compiler::new(vocabulary()).limits(Limits::default().memory(GRAMMAR));
    let before = live();
    let schemas =
        (0..100).map(|number| schemas::counted_patterns(number, if number % 2 == 0 { 450 } else { 12 }));
    let ((taken, _), peak) = peak_over(|| serve(&compiler, GRAMMARS, schemas));
    let (peak_mb, now_mb) = (peak >> 20, live().saturating_sub(before) >> 20);
    println!("{taken} taken; {peak_mb} MB at the most, {now_mb} MB at the end; {:?}", compiler.memory());
    assert_eq!(taken, 100, "also those of 450 patterns, most of which are spelled lazily");
    assert!(peak <= GRAMMARS + GRAMMAR + BESIDES, "{peak_mb} MB");
}

/// Requests of many kinds, each hostile in its own way, leave little behind with the budgets of a server that
/// is told nothing, though what they made would be several times as much.
#[test]
fn seventy_hostile_requests_leave_little_behind() {
    let _alone = alone();
    let compiler = Compiler::new(vocabulary()).limits(Limits::default());
    let before = live();
    let patterns = (0..16).map(|number| schemas::counted_patterns(number, 40 + 10 * number));
    let counted = (0..20).map(|number| {
        json!({ "pattern": format!("^arn:.{{{},{}}}$", 16 + number, 1_000 + 100 * number) }).to_string()
    });
    let lists = (0..12).map(|number| {
        let values: Vec<String> = (0..2_000).map(|value| format!("value {value} of {number}")).collect();
        json!({ "enum": values }).to_string()
    });
    let others = hostile_schemas::counts().into_iter().chain(hostile_schemas::references());
    let all: Vec<String> =
        patterns.chain(counted).chain(lists).chain(others.map(|(_, schema)| schema)).collect();
    assert!(all.len() >= 70, "{} requests", all.len());
    let (taken, kept) = serve(&compiler, BY_DEFAULT, all.into_iter());
    let left = live().saturating_sub(before);
    println!("{taken} taken, {} kept; {} MB; {:?}", kept.0.len(), left >> 20, compiler.memory());
    assert!(taken >= 50, "{taken} taken");
    assert!(kept.0.len() < taken, "all are kept: they show nothing");
    assert!(left <= LEFT_BEHIND, "{} MB", left >> 20);
}

//! Many hostile schemas one after the other, cached as a server caches them.

use domino::{CompiledGrammar, Compiler, Limits, Memory, Syntax};

use crate::{
    allocator::{live, peak_over},
    alone, schemas, vocabulary, walk,
};

/// Budgets as of `serve --grammar-cache 16 --max-memory 64`, in bytes.
const GRAMMARS: usize = 16 << 20;
const GRAMMAR: usize = 64 << 20;

/// Bytes that may be allocated besides.
const BESIDES: usize = 200 << 20;

/// The cached grammars of a server, least recently used first.
struct Kept(Vec<CompiledGrammar>);

impl Kept {
    /// Evicts grammars that there is no room for, as the server does.
    fn trim(&mut self, compiler: &Compiler) {
        let most = GRAMMARS.saturating_sub(compiler.memory().shared);
        let sum = |kept: &[CompiledGrammar]| {
            kept.iter().map(|grammar| grammar.memory()).map(|memory: Memory| memory.total()).sum::<usize>()
        };
        while self.0.len() > 1 && sum(&self.0) > most {
            self.0.remove(0);
        }
        compiler.trim(most.saturating_sub(sum(&self.0)).max(GRAMMARS / 8));
    }
}

/// Serves the schemas; returns how many of them were compiled.
fn serve(compiler: &Compiler, schemas: impl Iterator<Item = String>) -> usize {
    let (mut kept, mut taken) = (Kept(Vec::new()), 0);
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
    taken
}

/// Memory stays in the budget, though half of the schemas need more than a grammar may and none share an
/// automaton.
#[test]
fn a_hundred_hostile_schemas_keep_to_the_budget() {
    let _alone = alone();
    let compiler = Compiler::new(vocabulary()).limits(Limits::default().memory(GRAMMAR));
    let before = live();
    let schemas =
        (0..100).map(|number| schemas::counted_patterns(number, if number % 2 == 0 { 450 } else { 12 }));
    let (taken, peak) = peak_over(|| serve(&compiler, schemas));
    let (peak_mb, now_mb) = (peak >> 20, live().saturating_sub(before) >> 20);
    println!("{taken} taken; {peak_mb} MB at the most, {now_mb} MB at the end; {:?}", compiler.memory());
    assert_eq!(taken, 50, "those of 12 patterns");
    assert!(peak <= GRAMMARS + GRAMMAR + BESIDES, "{peak_mb} MB");
}

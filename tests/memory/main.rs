//! Memory counts of the library against what the allocator hands out. A program of its own, since it counts
//! all that is allocated; its tests take turns.

mod allocator;
mod ceiling;
// Costly grammars and schemas, which other tests hold against bounds on time.
#[path = "../hostile/grammars.rs"]
mod grammars;
#[path = "../schema/hostile/schemas.rs"]
mod hostile_schemas;
mod schemas;
mod server;

use std::{
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use domino::{CompiledGrammar, Compiler, Grammar, Limits, Memory, Syntax, Vocabulary};

use allocator::live;
use schemas::Case;

static TURN: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The shipped model's vocabulary, with all lazy tables for JSON made.
fn vocabulary() -> Vocabulary {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/domino-small");
    let vocabulary = Vocabulary::from_tokenizer_file(model).expect("the tokenizer of the shipped model");
    let compiler = Compiler::new(vocabulary.clone());
    let schema = r#"{"items": {"uniqueItems": true, "items": {"enum": ["a", 1, {"b": null}]}}}"#;
    let grammar = Grammar::parse(Syntax::JsonSchema, schema, &Limits::default()).expect("a schema");
    compiler.prepare(&grammar).expect("a grammar");
    walk(&compiler.compile(&grammar).expect("a grammar"), r#"[["a",{"b": null}]]"#);
    vocabulary
}

/// Limits without work on other threads.
fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.ahead = 0;
    limits
}

/// Makes masks along a text, as far as it is of the grammar.
fn walk(compiled: &CompiledGrammar, text: &str) {
    let mut constraint = compiled.constraint();
    for piece in text.as_bytes().chunks(3).take(60) {
        let masked = constraint.mask().is_ok();
        if !masked || !constraint.advance_bytes(piece).is_ok_and(|taken| taken == piece.len()) {
            return;
        }
    }
}

/// Allocated bytes once other threads are done with their tasks.
fn settled() -> usize {
    let mut last = live();
    loop {
        thread::sleep(Duration::from_millis(100));
        let now = live();
        if now == last {
            return now;
        }
        last = now;
    }
}

/// Memory of all that is kept, by the library's count.
fn counted(compiler: &Compiler, grammars: &[CompiledGrammar]) -> usize {
    compiler.memory().total() + grammars.iter().map(|grammar| grammar.memory().own()).sum::<usize>()
}

/// Compiles the grammars, writes their texts, and holds the count against the allocator. Returns each
/// grammar's memory.
fn held(cases: &[Case]) -> Vec<Memory> {
    let compiler = Compiler::new(vocabulary()).limits(limits());
    let mut grammars = Vec::with_capacity(cases.len());
    let (before, count_before) = (settled(), counted(&compiler, &grammars));
    for case in cases {
        let Ok(grammar) = compiler.parse(case.syntax, &case.text) else { continue };
        let Ok(compiled) = compiler.compile(&grammar) else { continue };
        drop(grammar);
        case.instances.iter().for_each(|instance| walk(&compiled, instance));
        grammars.push(compiled);
    }
    let memory: Vec<Memory> = grammars.iter().map(CompiledGrammar::memory).collect();
    let (handed_out, count) = (settled() - before, counted(&compiler, &grammars) - count_before);
    let off = (count as f64 / handed_out as f64 - 1.0).abs();
    let all = format!("{} of {}: {count} counted, {handed_out} handed out", grammars.len(), cases.len());
    println!("{all}; {:?}; {:?}", compiler.memory(), memory.iter().copied().max_by_key(Memory::total));
    assert!(grammars.len() * 4 >= cases.len() * 3, "{all}");
    assert!(off <= 0.2, "{all}");
    drop((grammars, compiler));
    memory
}

#[test]
fn schemas_of_the_world_are_counted() {
    let _alone = alone();
    let Some(cases) = schemas::mask_bench(200) else { return };
    held(&cases);
}

#[test]
fn hostile_grammars_are_counted() {
    let _alone = alone();
    held(&schemas::hostile());
}

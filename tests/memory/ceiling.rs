//! Hostile grammars under a ceiling: no allocation goes beyond the memory budget and some room besides,
//! whatever the grammar asks for.

use std::{fmt, time::Duration};

use domino::{
    Cancel, CompiledGrammar, Compiler, Grammar, Limits, Syntax, Vocabulary,
    grammar::json_schema::{Order, SchemaOptions},
};
use serde_json::json;

use crate::{
    allocator::under_ceiling,
    alone, grammars, hostile_schemas, limits,
    schemas::{self, Case},
    vocabulary, walk,
};

/// The memory budget of a grammar, in bytes.
const BUDGET: usize = 64 << 20;
/// Bytes that may be allocated besides.
const BESIDES: usize = 300 << 20;
/// Time after which the reading and compiling of a grammar is given up. Memory is what counts here.
const PATIENCE: Duration = Duration::from_secs(10);

/// Reads and compiles a grammar under the ceiling, in a compiler of its own, and uses it.
fn keeps<E: fmt::Display>(
    vocabulary: &Vocabulary,
    name: &str,
    read: impl Fn(&Limits) -> Result<Grammar, E>,
    using: impl Fn(&CompiledGrammar),
) {
    let (made, breach) = under_ceiling(BUDGET + BESIDES, || {
        let limits = limits().memory(BUDGET).cancelled_by(&Cancel::after(PATIENCE));
        let grammar = read(&limits).map_err(|error| error.to_string())?;
        let compiler = Compiler::new(vocabulary.clone()).limits(limits);
        using(&compiler.compile(&grammar).map_err(|error| error.to_string())?);
        Ok::<(), String>(())
    });
    let name: String = name.chars().take(200).collect();
    assert_eq!(breach, None, "{name}: an allocation of these bytes goes over the ceiling ({made:?})");
}

/// True if the text is in the language.
fn accepts(grammar: &CompiledGrammar, text: &str) -> bool {
    let mut constraint = grammar.constraint();
    constraint.advance_bytes(text.as_bytes()).is_ok_and(|read| read == text.len()) && constraint.is_complete()
}

#[test]
fn an_allocation_over_the_ceiling_is_seen() {
    let _alone = alone();
    let under = |ceiling: usize| under_ceiling(ceiling, || vec![1_u8; 2 << 20].len());
    assert_eq!(under(1 << 20), (2 << 20, Some(2 << 20)));
    assert_eq!(under(4 << 20), (2 << 20, None));
}

/// A literal, then a class with large counts, with and without a bound on the length beside it: each pattern
/// within the ceiling, and exact around its bounds.
#[test]
fn counted_classes_keep_to_the_ceiling() {
    let _alone = alone();
    let vocabulary = vocabulary();
    for literal in ["arn:", "# ", "é"] {
        for (class, member) in
            [(".", 'é'), (r"\S", 'a'), ("[^x]", 'b'), (r"[\s\S]", '\u{1f600}'), (r"\w", 'c')]
        {
            for (min, max) in [(10, 600), (14, 1_000), (16, 2_000), (20, 20_000), (500, 700), (999, 1_000)] {
                for most in [None, Some(256), Some(2_048), Some(100_000)] {
                    let pattern = format!("^{literal}{class}{{{min},{max}}}$");
                    let mut schema = json!({ "type": "string", "pattern": pattern });
                    most.into_iter().for_each(|most| schema["maxLength"] = json!(most));
                    let before = literal.chars().count();
                    let longest = most.map_or(max, |most| (most - before).min(max));
                    if longest < min {
                        continue;
                    }
                    let schema = schema.to_string();
                    let read = |limits: &Limits| Grammar::parse(Syntax::JsonSchema, &schema, limits);
                    keeps(&vocabulary, &schema, read, |compiled| {
                        for (length, is_in) in
                            [(min - 1, false), (min, true), (longest, true), (longest + 1, false)]
                        {
                            let text = format!("\"{literal}{}\"", member.to_string().repeat(length));
                            assert_eq!(accepts(compiled, &text), is_in, "{schema}: {length} characters");
                        }
                    });
                }
            }
        }
    }
}

#[test]
fn hostile_schemas_keep_to_the_ceiling() {
    let _alone = alone();
    let vocabulary = vocabulary();
    let kinds = [
        hostile_schemas::towers(),
        hostile_schemas::products(),
        hostile_schemas::references(),
        hostile_schemas::counts(),
        hostile_schemas::large(),
    ];
    for (name, schema) in kinds.into_iter().flatten() {
        let using = |compiled: &CompiledGrammar| {
            [r#"{"a1":["x",1]}"#, r#"[[1,null]]"#, r#""xaaab""#].iter().for_each(|text| walk(compiled, text));
        };
        for order in [Order::Schema, Order::Any] {
            let options = SchemaOptions::default().with_order(order);
            keeps(
                &vocabulary,
                &name,
                |limits| options.parse(&schema, limits).map(|read| read.grammar),
                using,
            );
        }
    }
}

#[test]
fn hostile_grammars_keep_to_the_ceiling() {
    let _alone = alone();
    let vocabulary = vocabulary();
    for Case { syntax, text, instances } in schemas::hostile() {
        let using = |compiled: &CompiledGrammar| instances.iter().for_each(|text| walk(compiled, text));
        keeps(&vocabulary, &text, |limits| Grammar::parse(syntax, &text, limits), using);
    }
    for grammars::Case { name, syntax, grammar, text } in grammars::cases() {
        let text = String::from_utf8_lossy(&text);
        let read = |limits: &Limits| Grammar::parse(syntax, &grammar, limits);
        keeps(&vocabulary, name, read, |compiled| walk(compiled, &text));
    }
}

//! Parser sets and sizes along a text, through the library.

use std::collections::BTreeSet;

use domino::{
    Constraint,
    inspect::{ItemOrigin, SetView, StateSizes},
};

use super::compiled;

fn after(grammar: &str, text: &str) -> Constraint {
    let mut constraint = compiled(grammar).constraint();
    assert_eq!(constraint.advance_bytes(text.as_bytes()).unwrap(), text.len());
    constraint
}

fn sets(constraint: &Constraint) -> Vec<SetView> {
    constraint.parser_sets(1_000, 1_000).sets
}

#[test]
fn sets_agree_with_threads() {
    let constraint = after(
        r#"root ::= list "." | "(" root ")"   list ::= list "," item | item
            item ::= [a-z]+ | "<" root ">""#,
        "(ab",
    );
    let (sizes, threads) = (constraint.state_sizes(), constraint.threads());
    let sets = sets(&constraint);
    assert_eq!(sizes.threads, threads.iter().filter(|thread| thread.begun).count());
    assert_eq!(sizes.starting, threads.iter().filter(|thread| !thread.begun).count());
    let live: Vec<&SetView> = sets.iter().filter(|set| set.threads > 0 || set.boundary).collect();
    assert_eq!(live.len(), sizes.sets);
    assert_eq!(live.iter().map(|set| set.threads).sum::<usize>(), sizes.threads);
    assert_eq!(live.iter().map(|set| set.kernel_items).sum::<usize>(), sizes.items);
    for set in &live {
        let waiting = threads.iter().filter(|thread| thread.parser_set == set.number);
        let items: BTreeSet<&str> = waiting.flat_map(|thread| &thread.items).map(String::as_str).collect();
        let shown: BTreeSet<&str> = set.items.iter().map(|item| item.dotted.as_str()).collect();
        assert!(items.is_subset(&shown), "{items:?} {shown:?}");
        if set.boundary {
            assert_eq!(set.accepts.len(), sizes.starting);
        }
    }
}

#[test]
fn origins_are_among_the_sets_and_lead_to_the_start() {
    let constraint = after(r#"root ::= "(" root ")" | "x""#, "(((");
    let sets = sets(&constraint);
    let find = |number| sets.iter().find(|set| set.number == number).unwrap();
    let mut open: Vec<u32> = sets.iter().filter(|set| set.boundary).map(|set| set.number).collect();
    let (mut depth, mut started) = (0, false);
    while let Some(number) = open.pop() {
        depth += 1;
        for item in &find(number).items {
            match item.origin {
                ItemOrigin::Set(origin) => open.push(origin),
                ItemOrigin::Start => started = true,
                _ => {}
            }
        }
    }
    assert!(started && depth >= 4, "{depth}");
    // Shifts that were followed are known.
    let opens = |set: &&SetView| set.accepts.iter().any(|(_, to)| to.is_some());
    assert!(sets.iter().filter(opens).count() >= 3);
}

#[test]
fn views_of_sets_are_cut_to_the_size_asked_for() {
    let constraint = after(r#"root ::= "(" root ")" | "x""#, "((((");
    let view = constraint.parser_sets(2, 1);
    assert_eq!(view.sets.len(), 2);
    assert!(view.known_sets >= 5);
    assert!(view.sets.iter().all(|set| set.items.len() == 1 && set.item_count > 1));
    assert!(view.sets.iter().any(|set| set.boundary), "the present state comes first");
}

#[test]
fn doubled_threads_are_counted() {
    let doubled = |grammar, text| after(grammar, text).state_sizes().doubled;
    // `item item` can be split anywhere; brackets keep them from being one terminal.
    let pairs = r#"root ::= (item item)+ "."   item ::= [a-z]+ | "(" root ")""#;
    assert!(doubled(pairs, "aaa") >= 2);
    // Any number of them is one run.
    assert_eq!(doubled(r#"root ::= item+ "."   item ::= [a-z]+ | "(" root ")""#, "aaa"), 0);
    assert_eq!(doubled(r#"root ::= item ("," item)* "."   item ::= [a-z]+ | "(" root ")""#, "aaa"), 0);
}

#[test]
fn a_text_that_has_ended_has_no_sets_of_its_own() {
    let mut constraint = after(r#"root ::= "a" | "(" root ")""#, "a");
    constraint.advance(domino::TokenId::new(300)).unwrap();
    let sizes = constraint.state_sizes();
    assert_eq!((sizes.threads, sizes.sets, sizes.items), (0, 0, 0));
    assert!(sizes.known_sets > 0 && sizes.work > 0);
    assert!(sets(&constraint).iter().all(|set| set.threads == 0 && !set.boundary));
}

/// Sizes become steady on grammars whose parser sets stay small.
#[test]
fn sizes_of_sets_become_steady() {
    let mut constraint = compiled(r#"root ::= x ("," x)*   x ::= "(" root ")" | [a-z]+"#).constraint();
    let mut sizes: Vec<StateSizes> = Vec::new();
    for _ in 0..20 {
        assert_eq!(constraint.advance_bytes(b"ab,(c),").unwrap(), 7);
        sizes.push(constraint.state_sizes());
    }
    assert_eq!(sizes[5], sizes[19]);
}

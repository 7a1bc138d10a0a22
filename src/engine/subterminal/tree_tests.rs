//! Bounds of trees, and the check of files with trees.

use super::rows::TokenRow;
use super::tree::{Children, Forest, Grow, TreeInputs, TreeNodeId};
use crate::ids::{ScanStateId, TerminalId};
use crate::store::{PayloadReader, PayloadWriter};
use crate::{CompiledGrammar, Compiler, Grammar, Limits, Syntax, TokenId, Vocabulary, limits::Work};

/// Compiles a grammar; returns it with the roots of two of its trees.
fn roots() -> (CompiledGrammar, Forest) {
    let limits = Limits::default();
    let grammar = Grammar::parse(Syntax::Gbnf, r#"root ::= "(" root ")" | "x""#, &limits).unwrap();
    let vocabulary =
        Vocabulary::builder().all_bytes().token(TokenId::new(256), "((").end_of_text(TokenId::new(257));
    let compiled = Compiler::new(vocabulary.build().unwrap()).compile(&grammar).unwrap();
    let mut forest = Forest::new(limits.tree_bytes);
    let inputs = compiled.program().inputs();
    for state in (0..2).map(ScanStateId::new) {
        forest.root(inputs, state, &mut Work::unlimited()).unwrap();
    }
    (compiled, forest)
}

/// Children come before their parent, so that no walk over a tree is endless.
#[test]
fn a_file_with_a_tree_node_below_itself_is_refused() {
    let (compiled, mut forest) = roots();
    for (children, is_tree) in [(0..1, true), (0..0, true), (1..2, false), (0..2, false), (1..3, false)] {
        forest.nodes[1].children = Children::Made(children.clone());
        let mut writer = PayloadWriter::default();
        forest.write(&mut writer);
        let bytes = writer.finish();
        let read =
            Forest::read(&mut PayloadReader::new(&bytes), compiled.program().inputs(), forest.max_bytes);
        assert_eq!(read.ok().as_ref(), Some(&forest).filter(|_| is_tree), "{children:?}");
    }
}

#[test]
fn no_tree_grows_once_memory_is_used_up() {
    let (compiled, forest) = roots();
    let inputs = compiled.program().inputs();
    // The one in which tokens go on.
    let roots = forest.roots.values().copied();
    let root = roots.into_iter().find(|&root| !forest.reach(root).exits().is_empty()).unwrap();
    for (room, grows) in [(0, false), (1, true)] {
        let mut forest = forest.clone();
        forest.max_bytes = forest.bytes() + room;
        let children = forest.children(inputs, root, Grow::Yes, &mut Work::unlimited()).unwrap();
        assert_eq!(children.is_some(), grows, "room for {room} bytes");
    }
}

/// A tree, taken apart.
#[derive(Debug, PartialEq)]
struct GrownTree(TerminalId, TokenRow, Vec<GrownTree>);

/// Grows all of a tree.
fn shape(forest: &mut Forest, inputs: TreeInputs<'_>, node: TreeNodeId) -> GrownTree {
    let children = forest.children(inputs, node, Grow::Yes, &mut Work::unlimited()).unwrap().unwrap();
    let children = children.map(|child| {
        let (_, child) = forest.child(child);
        shape(forest, inputs, child)
    });
    let children = children.collect();
    GrownTree(forest.terminal(node), forest.reach(node).clone(), children)
}

/// Trees that are put together are those that were grown apart, and equal parts are there once.
#[test]
fn adopted_trees_are_those_that_were_grown() {
    let limits = Limits::default();
    let text = "root ::= (name gap \";\")+\nname ::= [a-c]{1,9}\ngap ::= \" \"{0,12} | \"\\n\"";
    let grammar = Grammar::parse(Syntax::Gbnf, text, &limits).unwrap();
    let tokens = ["  ", "    ", " ;", "  ;", " ;a", "ab", "abc;", ";a", "; a", "\n;", ";b "];
    let vocabulary = Vocabulary::builder().all_bytes().end_of_text(TokenId::new(256));
    let ids = (257..).map(TokenId::new).zip(tokens);
    let vocabulary = ids.fold(vocabulary, |builder, (id, token)| builder.token(id, token));
    let compiled = Compiler::new(vocabulary.build().unwrap()).compile(&grammar).unwrap();
    let inputs = compiled.program().inputs();
    let mut grown = Forest::grown(inputs, limits.tree_bytes, &|_, _| {});
    let (together, mut apart) = (grown.len(), 0);
    for (state, root) in grown.trees() {
        let mut own = Forest::new(limits.tree_bytes);
        let of_state = own.root(inputs, state, &mut Work::unlimited()).unwrap();
        assert_eq!(shape(&mut grown, inputs, root), shape(&mut own, inputs, of_state), "{state:?}");
        apart += own.len();
    }
    assert!(2 * together < apart, "{together} nodes, and {apart} without sharing");
}

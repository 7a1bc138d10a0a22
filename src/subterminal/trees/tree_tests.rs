//! Bounds of trees, and the check of files with trees.

use super::tree::{Children, Forest, Grow};
use crate::{
    CompiledGrammar, Compiler, Grammar, Limits, Syntax, TokenId, Vocabulary,
    ids::ScanStateId,
    limits::Work,
    store::{PayloadReader, PayloadWriter},
};

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

/// Children come after their parent, so that no walk over a tree is endless.
#[test]
fn a_file_with_a_tree_node_below_itself_is_refused() {
    let (compiled, mut forest) = roots();
    for (children, is_tree) in [(1..2, true), (0..0, true), (0..1, false), (0..2, false), (1..3, false)] {
        forest.nodes[0].children = Children::Made(children.clone());
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

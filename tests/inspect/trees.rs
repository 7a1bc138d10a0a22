//! Subterminal trees, through the library.

use domino::{
    CompiledGrammar, Compiler, Grammar, Limits, Syntax, TokenId, Vocabulary,
    ids::TerminalId,
    inspect::{Inspection, TreeView},
};

fn compiled(grammar: &str, limits: &Limits) -> CompiledGrammar {
    let tokens = ["a", "b", "ab", "(", ")", "a)", "a),", ",(", ",((b", "),(a),("];
    let vocabulary = (0..)
        .zip(tokens)
        .fold(Vocabulary::builder(), |builder, (id, text)| builder.token(TokenId::new(id), text));
    let vocabulary = vocabulary.end_of_text(TokenId::new(99)).build().unwrap();
    let grammar = Grammar::parse(Syntax::Gbnf, grammar, limits).unwrap();
    Compiler::new(vocabulary).limits(limits.clone()).compile(&grammar).unwrap()
}

const LIST: &str = r#"root ::= item ("," item)*   item ::= "(" root ")" | [ab]+"#;

/// The tree of the start of the terminal that takes a byte first.
fn start(inspection: &Inspection, byte: u8) -> TreeView {
    let takes = |terminal: TerminalId| {
        let first = &inspection.automaton(terminal).unwrap().states[0];
        first.transitions.iter().any(|transition| transition.bytes.iter().any(|range| range.contains(&byte)))
    };
    let mut terminals = inspection.terminals().map(|terminal| terminal.terminal);
    let number = terminals.find(|&terminal| takes(terminal)).unwrap();
    inspection.trees().into_iter().find(|tree| tree.terminal == number && tree.scanner_state == 0).unwrap()
}

#[test]
fn trees_hold_what_tokens_spell() {
    let inspection = compiled(LIST, &Limits::default()).inspect();
    // The tree of `[ab]+`: a, b, ab stay; "a)" and "a)," cross into one and two more terminals.
    let word = start(&inspection, b'a');
    assert_eq!((word.nodes, word.depth, word.tokens, word.open), (3, 3, 5, 0));
    let nodes = inspection.tree(word.terminal, 0, 100).unwrap();
    assert_eq!(nodes.iter().map(|node| node.tokens).collect::<Vec<_>>(), [3, 1, 1]);
    assert_eq!(nodes.iter().map(|node| node.parent).collect::<Vec<_>>(), [None, Some(0), Some(1)]);
    assert_eq!(nodes[2].examples, [TokenId::new(6)]);
    // The tree of `)`: "),(a),(" is seven terminals.
    assert_eq!(start(&inspection, b')').depth, 7);
    assert_eq!(inspection.trees().len(), inspection.sizes().scanner_states);
    assert!(inspection.memory().iter().any(|part| part.part.contains("trees") && part.bytes > 0));
}

#[test]
fn a_tree_is_cut_to_the_nodes_asked_for() {
    let inspection = compiled(LIST, &Limits::default()).inspect();
    let tree = start(&inspection, b')');
    let all = inspection.tree(tree.terminal, 0, usize::MAX).unwrap();
    assert_eq!(all.len(), tree.nodes);
    assert_eq!(inspection.tree(tree.terminal, 0, 2).unwrap()[..], all[..2]);
    assert_eq!(inspection.tree(tree.terminal, 0, 0), Some(Vec::new()));
    assert_eq!(inspection.tree(tree.terminal, 99, 2), None);
    assert_eq!(inspection.tree(TerminalId::new(99), 0, 2), None);
    let children: usize = all.iter().map(|node| node.children.unwrap()).sum();
    assert_eq!(children + 1, all.len());
}

#[test]
fn nodes_that_memory_did_not_reach_are_open() {
    let mut limits = Limits::default();
    limits.tree_bytes = 0;
    let inspection = compiled(LIST, &limits).inspect();
    let trees = inspection.trees();
    assert!(trees.iter().all(|tree| tree.nodes == 1), "{trees:?}");
    let open = trees.iter().find(|tree| tree.open == 1).unwrap();
    assert_eq!(inspection.tree(open.terminal, open.scanner_state, 9).unwrap()[0].children, None);
}

//! The stage of the subterminal trees, the largest first, and of the nodes of one.

use std::io::{self, Write};

use domino::inspect::{TreeNodeView, TreeView};
use serde_json::{Value, json};

use super::args::OutputForm;
use super::subject::{Graph, Subject, print_rest};
use crate::terminal::failure::BadInput;
use crate::terminal::{count, describe, progress};

/// Shows all trees, or one.
pub(super) fn show(subject: &Subject<'_>, out: &mut impl Write) -> anyhow::Result<()> {
    let mut trees = progress::during("growing trees", || subject.inspection.trees());
    trees.retain(|tree| {
        subject.terminal.is_none_or(|wanted| wanted == tree.terminal)
            && subject.command.state.is_none_or(|wanted| wanted == tree.scanner_state)
    });
    if let Some(rule) = subject.rule {
        let of_rule: Vec<bool> = subject
            .inspection
            .terminals()
            .map(|terminal| terminal.rule == rule || terminal.users.contains(&rule))
            .collect();
        trees.retain(|tree| of_rule.get(tree.terminal.index()).copied().unwrap_or(false));
    }
    trees.sort_by_key(|tree| std::cmp::Reverse((tree.bytes, tree.nodes)));
    // A graph has one tree: the largest of several.
    let one =
        subject.form == OutputForm::Dot || (subject.terminal.is_some() && subject.command.state.is_some());
    let Some(largest) = trees.first() else {
        return Err(BadInput::new("no such tree").hint("`domino inspect trees` lists them").into());
    };
    let nodes = if one {
        subject.inspection.tree(largest.terminal, largest.scanner_state, subject.limit()).unwrap_or_default()
    } else {
        Vec::new()
    };
    match subject.form {
        OutputForm::Dot => out.write_all(graph(subject, largest, &nodes).as_bytes())?,
        OutputForm::Json => {
            let list = trees.iter().take(subject.limit()).map(|tree| tree_json(subject, tree));
            let nodes = nodes.iter().map(|node| node_json(subject, node)).collect::<Value>();
            let list = list.collect::<Value>();
            let fields = json!({ "totals": totals_json(&trees), "trees": list, "nodes": nodes });
            subject.print_json(out, "trees", fields)?;
        }
        OutputForm::Text => {
            table(subject, &trees, out)?;
            node_lines(subject, &nodes, out)?;
            if one {
                print_rest(out, 2, nodes.len(), largest.nodes)?;
            }
        }
    }
    Ok(())
}

fn table(subject: &Subject<'_>, trees: &[TreeView], out: &mut impl Write) -> io::Result<()> {
    let total = |count: fn(&TreeView) -> usize| trees.iter().map(count).sum::<usize>();
    writeln!(
        out,
        "{}: {}, {} and {} in them, {}; {} left open",
        count(trees.len(), "tree"),
        count(total(|tree| tree.nodes), "node"),
        count(total(|tree| tree.tokens), "token"),
        count(total(|tree| tree.exits), "exit"),
        count(total(|tree| tree.bytes), "byte"),
        count(total(|tree| tree.open), "node")
    )?;
    writeln!(out, "  terminal  state   nodes  depth    tokens     exits     bytes   open")?;
    for tree in trees.iter().take(subject.limit()) {
        writeln!(
            out,
            "  {:>8}  {:>5}  {:>6}  {:>5}  {:>8}  {:>8}  {:>8}  {:>5}  {}",
            tree.terminal,
            tree.scanner_state,
            tree.nodes,
            tree.depth,
            tree.tokens,
            tree.exits,
            tree.bytes,
            tree.open,
            subject.terminal_name(tree.terminal)
        )?;
    }
    print_rest(out, 2, subject.limit(), trees.len())
}

/// Writes the nodes of one tree, indented by depth.
fn node_lines(subject: &Subject<'_>, nodes: &[TreeNodeView], out: &mut impl Write) -> io::Result<()> {
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    for (at, node) in nodes.iter().enumerate() {
        if let Some(parent) = node.parent {
            children[parent].push(at);
        }
    }
    let mut open: Vec<(usize, usize)> = if nodes.is_empty() { Vec::new() } else { vec![(0, 0)] };
    while let Some((at, depth)) = open.pop() {
        let node = &nodes[at];
        writeln!(out, "  {:2$}{}", "", describe_node(subject, node), depth * 2)?;
        open.extend(children[at].iter().rev().map(|&child| (child, depth + 1)));
    }
    Ok(())
}

/// The tokens and exits of a node, in words.
fn counts(node: &TreeNodeView) -> String {
    format!("{}, {}", count(node.tokens, "token"), count(node.exits, "exit"))
}

fn describe_node(subject: &Subject<'_>, node: &TreeNodeView) -> String {
    let mut text = format!("{}: {}", subject.terminal_name(node.terminal), counts(node));
    let examples = examples(subject, node);
    if !examples.is_empty() {
        text += &format!(", such as {}", examples.join(" "));
    }
    if node.children.is_none() {
        text += " (left open)";
    }
    text
}

fn examples(subject: &Subject<'_>, node: &TreeNodeView) -> Vec<String> {
    node.examples.iter().map(|&token| describe::token(&subject.vocabulary, token)).collect()
}

fn totals_json(trees: &[TreeView]) -> Value {
    let total = |count: fn(&TreeView) -> usize| trees.iter().map(count).sum::<usize>();
    json!({
        "trees": trees.len(), "nodes": total(|tree| tree.nodes), "tokens": total(|tree| tree.tokens),
        "exits": total(|tree| tree.exits), "bytes": total(|tree| tree.bytes), "open": total(|tree| tree.open),
        "depth": trees.iter().map(|tree| tree.depth).max(),
    })
}

fn tree_json(subject: &Subject<'_>, tree: &TreeView) -> Value {
    json!({
        "terminal": tree.terminal.raw(), "name": subject.terminal_name(tree.terminal),
        "state": tree.scanner_state, "nodes": tree.nodes, "depth": tree.depth, "tokens": tree.tokens,
        "exits": tree.exits, "bytes": tree.bytes, "open": tree.open,
    })
}

fn node_json(subject: &Subject<'_>, node: &TreeNodeView) -> Value {
    json!({
        "parent": node.parent, "terminal": node.terminal.raw(),
        "name": subject.terminal_name(node.terminal), "tokens": node.tokens, "exits": node.exits,
        "children": node.children, "examples": examples(subject, node),
    })
}

fn graph(subject: &Subject<'_>, tree: &TreeView, nodes: &[TreeNodeView]) -> String {
    let mut graph =
        Graph::new(&format!("tree of terminal {} in state {}", tree.terminal, tree.scanner_state));
    let id = |at: usize| format!("n{at}");
    for (at, node) in nodes.iter().enumerate() {
        let label = format!("{}\n{}", counts(node), examples(subject, node).join(" "));
        graph.node(&id(at), &label, if node.children.is_none() { "octagon" } else { "box" });
    }
    for (at, node) in nodes.iter().enumerate() {
        if let Some(parent) = node.parent {
            graph.edge(&id(parent), &id(at), &subject.terminal_name(node.terminal));
        }
    }
    graph.finish()
}

//! A reader of that part of Graphviz's DOT language in which graphs are written.

/// The nodes and edges of a graph.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) nodes: Vec<(String, String)>,
    pub(super) edges: Vec<(String, String)>,
    pub(super) clusters: usize,
}

#[derive(Debug, Clone, PartialEq)]
enum Word {
    Id(String),
    Sign(&'static str),
}

/// Splits into words; panics where there is something else.
fn words(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let sign = ["->", "{", "}", "[", "]", "=", ",", ";"].into_iter().find(|sign| rest.starts_with(sign));
        if let Some(sign) = sign {
            words.push(Word::Sign(sign));
            rest = &rest[sign.len()..];
        } else if first == '"' {
            let (mut value, mut escaped) = (String::new(), false);
            let end = rest[1..].char_indices().find(|&(_, c)| {
                let ends = c == '"' && !escaped;
                if !ends && (escaped || c != '\\') {
                    value.push(c);
                }
                escaped = c == '\\' && !escaped;
                assert!(!c.is_control(), "a control character in a string");
                ends
            });
            rest = &rest[1 + end.expect("the end of a string").0 + 1..];
            words.push(Word::Id(value));
        } else {
            let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            assert!(length > 0, "{first:?} begins no word");
            words.push(Word::Id(rest[..length].to_owned()));
            rest = &rest[length..];
        }
        rest = rest.trim_start();
    }
    words
}

/// Reads a whole text; panics if it is not of the language, or if an edge leads to a node that was not made.
pub(super) fn read(text: &str) -> Graph {
    let words = words(text);
    let [Word::Id(kind), Word::Id(_), Word::Sign("{"), body @ .., Word::Sign("}")] = &words[..] else {
        panic!("no graph: {text}")
    };
    assert_eq!(kind, "digraph");
    let mut graph = Graph::default();
    let mut depth = 1;
    let mut body = body;
    while !body.is_empty() {
        body = match body {
            [Word::Id(word), Word::Id(_), Word::Sign("{"), rest @ ..] if word == "subgraph" => {
                depth += 1;
                graph.clusters += 1;
                rest
            }
            [Word::Sign("}"), rest @ ..] => {
                depth -= 1;
                assert!(depth > 0, "a brace too many");
                rest
            }
            [Word::Id(_), Word::Sign("="), Word::Id(_), Word::Sign(";"), rest @ ..] => rest,
            [Word::Id(from), Word::Sign("->"), Word::Id(to), rest @ ..] => {
                graph.edges.push((from.clone(), to.clone()));
                attributes(rest).1
            }
            [Word::Id(id), rest @ ..] => {
                let (label, rest) = attributes(rest);
                if id != "node" && id != "edge" {
                    graph.nodes.push((id.clone(), label.expect("a label")));
                }
                rest
            }
            _ => panic!("no statement: {body:?}"),
        };
    }
    assert_eq!(depth, 1, "a brace is missing");
    for id in graph.edges.iter().flat_map(|(from, to)| [from, to]) {
        assert!(graph.nodes.iter().any(|(node, _)| node == id), "no node {id}");
    }
    graph
}

/// Reads `[name=value, ...];` or `;`; returns the label and the remaining words.
fn attributes(words: &[Word]) -> (Option<String>, &[Word]) {
    let mut words = words;
    let mut label = None;
    if let [Word::Sign("["), rest @ ..] = words {
        words = rest;
        while let [Word::Id(name), Word::Sign("="), Word::Id(value), Word::Sign(sign), rest @ ..] = words {
            if name == "label" {
                label = Some(value.clone());
            }
            words = rest;
            if *sign == "]" {
                break;
            }
            assert_eq!(*sign, ",");
        }
    }
    let [Word::Sign(";"), rest @ ..] = words else { panic!("no end of a statement: {words:?}") };
    (label, rest)
}

#[test]
fn the_reader_of_graphs_refuses_wrong_ones() {
    let graph =
        read("digraph \"g\\\"\" { a=b; \"x\" [label=\"\\\\\", shape=box]; \"x\" -> \"x\" [label=\"l\"]; }");
    assert_eq!((graph.nodes.len(), graph.edges.len(), &*graph.nodes[0].1), (1, 1, "\\"));
    for wrong in [
        "digraph g { \"x\" [label=\"a\"b\"]; }",
        "digraph g { \"x\" [label=\"a\"] }",
        "digraph g { \"x\" -> \"y\"; }",
        "digraph g { subgraph \"s\" { }",
        "digraph g { } }",
        "digraph g { \"x\" [label=\"a\\\"]; }",
    ] {
        assert!(std::panic::catch_unwind(|| read(wrong)).is_err(), "{wrong}");
    }
}

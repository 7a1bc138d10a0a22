//! Graphs in Graphviz's language.

use std::fmt::Write;

/// Limit on the characters of a line of a label; longer lines are cut.
const LABEL_CHARS: usize = 100;

/// A directed graph that is being written.
#[derive(Debug)]
pub(super) struct Graph {
    text: String,
    depth: usize,
}

impl Graph {
    /// Begins an empty graph, drawn from left to right.
    pub(super) fn new(name: &str) -> Self {
        let mut graph = Self { text: String::new(), depth: 1 };
        let _ = writeln!(graph.text, "digraph {} {{", quoted(name));
        graph.line("rankdir=LR; node [fontname=\"monospace\"]; edge [fontname=\"monospace\"];");
        graph
    }

    fn line(&mut self, text: &str) {
        let _ = writeln!(self.text, "{:1$}{text}", "", self.depth * 2);
    }

    /// Adds a node; line feeds in the label begin new lines.
    pub(super) fn node(&mut self, id: &str, label: &str, shape: &str) {
        self.line(&format!("{} [label={}, shape={shape}];", quoted(id), quoted(label)));
    }

    /// Adds an edge.
    pub(super) fn edge(&mut self, from: &str, to: &str, label: &str) {
        let label = if label.is_empty() { String::new() } else { format!(" [label={}]", quoted(label)) };
        self.line(&format!("{} -> {}{label};", quoted(from), quoted(to)));
    }

    /// Draws a box around the nodes and edges that `inside` adds.
    pub(super) fn cluster(&mut self, id: &str, label: &str, inside: impl FnOnce(&mut Self)) {
        self.line(&format!("subgraph {} {{", quoted(&format!("cluster {id}"))));
        self.depth += 1;
        self.line(&format!("label={};", quoted(label)));
        inside(self);
        self.depth -= 1;
        self.line("}");
    }

    /// Ends the graph and returns its text.
    pub(super) fn finish(mut self) -> String {
        self.text.push_str("}\n");
        self.text
    }
}

/// Quotes a string of the language. A backslash is doubled, so that it never begins an escape of Graphviz's.
/// Line feeds become its line breaks, other control characters are escaped visibly; long lines are cut.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for (at, line) in text.split('\n').enumerate() {
        if at > 0 {
            quoted.push_str("\\n");
        }
        for character in line.chars().take(LABEL_CHARS) {
            match character {
                '"' | '\\' => quoted.extend(['\\', character]),
                _ if character.is_control() => {
                    quoted.push_str(&format!("\\\\u{{{:x}}}", u32::from(character)))
                }
                _ => quoted.push(character),
            }
        }
        if line.chars().nth(LABEL_CHARS).is_some() {
            quoted.push_str("...");
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn quoted_strings_escape_quotes_and_have_a_length_limit() {
        assert_eq!(quoted("a\"b\\\"c\\"), r#""a\"b\\\"c\\""#);
        assert_eq!(quoted("a\nb\t\u{e9}"), "\"a\\nb\\\\u{9}\u{e9}\"");
        assert_eq!(quoted(&"\\".repeat(200)).len(), 2 + 2 * 100 + 3);
    }
}

//! The stage of the terminals' automata, shown by ranges of bytes.

use std::io::{self, Write};

use domino::inspect::{AutomatonView, TerminalView};
use serde_json::{Value, json};

use super::subject::{Subject, head, print_json, print_rest};
use super::{args::OutputForm, dot::Graph};
use crate::terminal::{count, describe};

/// Shows the automata.
pub(super) fn show(subject: &Subject<'_>, out: &mut impl Write) -> io::Result<()> {
    let wanted: Vec<TerminalView> = subject
        .inspection
        .terminals()
        .filter(|terminal| {
            let rules: Vec<_> = terminal.users.iter().copied().chain([terminal.rule]).collect();
            subject.wants(terminal.terminal, &rules)
        })
        .collect();
    let shown = wanted.iter().take(subject.limit()).filter_map(|terminal| {
        subject.inspection.automaton(terminal.terminal).map(|automaton| (terminal, automaton))
    });
    match subject.command.form {
        OutputForm::Text => {
            for (terminal, automaton) in shown {
                text(subject, terminal, &automaton, out)?;
            }
            print_rest(out, 0, subject.limit(), wanted.len())
        }
        OutputForm::Json => {
            let list: Vec<Value> =
                shown.map(|(terminal, automaton)| automaton_json(subject, terminal, &automaton)).collect();
            let mut object = head(subject, "dfas");
            object.insert("total".to_owned(), json!(wanted.len()));
            object.insert("dfas".to_owned(), json!(list));
            print_json(out, &Value::Object(object))
        }
        OutputForm::Dot => {
            let mut graph = Graph::new("dfas");
            for (terminal, automaton) in shown {
                draw(subject, terminal, &automaton, &mut graph);
            }
            out.write_all(graph.finish().as_bytes())
        }
    }
}

fn text(
    subject: &Subject<'_>,
    terminal: &TerminalView,
    automaton: &AutomatonView,
    out: &mut impl Write,
) -> io::Result<()> {
    writeln!(
        out,
        "terminal {}: {}  ({}; may end where there is a *)",
        terminal.terminal,
        describe::one_line(&terminal.name),
        count(automaton.states.len(), "state")
    )?;
    for (number, state) in automaton.states.iter().enumerate().take(subject.limit()) {
        let mark = if state.accepting { '*' } else { ' ' };
        let to = |transition: &domino::inspect::TransitionView| {
            format!("{} -> {}", describe::class(&transition.bytes), transition.to)
        };
        let all: Vec<String> = state.transitions.iter().take(subject.limit()).map(to).collect();
        writeln!(out, "  {number:>5}{mark} {}", all.join("   "))?;
        print_rest(out, 8, subject.limit(), state.transitions.len())?;
    }
    print_rest(out, 4, subject.limit(), automaton.states.len())
}

fn automaton_json(subject: &Subject<'_>, terminal: &TerminalView, automaton: &AutomatonView) -> Value {
    let states: Vec<Value> = automaton
        .states
        .iter()
        .take(subject.limit())
        .map(|state| {
            let transitions: Vec<Value> = state
                .transitions
                .iter()
                .map(|transition| {
                    let bytes: Vec<[u8; 2]> =
                        transition.bytes.iter().map(|range| [*range.start(), *range.end()]).collect();
                    json!({ "bytes": bytes, "to": transition.to })
                })
                .collect();
            json!({ "accepting": state.accepting, "transitions": transitions })
        })
        .collect();
    json!({
        "terminal": terminal.terminal.raw(), "name": terminal.name, "state_count": automaton.states.len(),
        "states": states,
    })
}

fn draw(subject: &Subject<'_>, terminal: &TerminalView, automaton: &AutomatonView, graph: &mut Graph) {
    let id = |state: usize| format!("t{} s{state}", terminal.terminal);
    let shown = automaton.states.len().min(subject.limit());
    let label = format!("terminal {}: {}", terminal.terminal, describe::one_line(&terminal.name));
    graph.cluster(&format!("t{}", terminal.terminal), &label, |graph| {
        for (number, state) in automaton.states.iter().enumerate().take(shown) {
            let shape = if state.accepting { "doublecircle" } else { "circle" };
            graph.node(&id(number), &number.to_string(), shape);
        }
        for (number, state) in automaton.states.iter().enumerate().take(shown) {
            for transition in &state.transitions {
                let to = transition.to as usize;
                if to < shown {
                    graph.edge(&id(number), &id(to), &describe::class(&transition.bytes));
                }
            }
        }
    });
}

//! The stage of the terminals, as a table, and that of their automata, shown by ranges of bytes.

use std::io::{self, Write};

use domino::inspect::{AutomatonView, StateView, TerminalView, TransitionView};
use serde_json::{Value, json};

use super::args::OutputForm;
use super::subject::{Graph, Subject, print_rest};
use crate::terminal::{count, describe, extend, progress};

/// Limit on the tokens shown as examples.
const MOST_TOKENS: usize = 5;

/// A terminal with the tokens of the vocabulary that lie inside.
struct TerminalTokens {
    terminal: TerminalView,
    /// Number of those tokens; `None` without a tokenizer, or if counting takes too long.
    tokens: Option<usize>,
    examples: Vec<String>,
}

/// The terminals that were asked for.
fn wanted(subject: &Subject<'_>) -> Vec<TerminalView> {
    let terminals = subject.inspection.terminals();
    let wants = |terminal: &TerminalView| {
        let rules: Vec<_> = terminal.users.iter().copied().chain([terminal.rule]).collect();
        subject.wants(terminal.terminal, &rules)
    };
    terminals.filter(wants).collect()
}

/// Shows the terminals.
pub(super) fn show(subject: &Subject<'_>, out: &mut impl Write) -> io::Result<()> {
    let wanted = wanted(subject);
    let total = wanted.len();
    let rows: Vec<TerminalTokens> = progress::during("counting tokens inside terminals", || {
        wanted.into_iter().take(subject.limit()).map(|terminal| row(subject, terminal)).collect()
    });
    if subject.form == OutputForm::Json {
        let rows = rows.iter().map(|row| row_json(subject, row)).collect::<Value>();
        return subject.print_json(out, "terminals", json!({ "total": total, "terminals": rows }));
    }
    let tokens = if subject.with_tokens { "tokens inside  " } else { "" };
    writeln!(out, "  number  states  classes  {tokens}rules that use it; terminal")?;
    for row in &rows {
        let terminal = &row.terminal;
        let tokens = match (subject.with_tokens, row.tokens) {
            (false, _) => String::new(),
            (true, Some(tokens)) => format!("{tokens:>13}  "),
            (true, None) => format!("{:>13}  ", "too many"),
        };
        writeln!(
            out,
            "  {:>6}  {:>6}  {:>7}  {tokens}{}; {}{}{}",
            terminal.terminal,
            terminal.states,
            terminal.byte_classes,
            subject.rule_names(&terminal.users).join(", "),
            describe::one_line(&terminal.name),
            if row.examples.is_empty() {
                String::new()
            } else {
                format!("  such as {}", row.examples.join(" "))
            },
            subject.origin(terminal).map_or_else(String::new, |origin| format!("  from {}", origin.words)),
        )?;
    }
    print_rest(out, 2, rows.len(), total)
}

fn row(subject: &Subject<'_>, terminal: TerminalView) -> TerminalTokens {
    let inside = || subject.inspection.tokens_inside(terminal.terminal);
    let tokens = if subject.with_tokens { inside() } else { None };
    // The longest tokens say most about the terminal.
    let mut longest: Vec<_> = tokens.iter().flat_map(|tokens| tokens.iter()).collect();
    longest.sort_by_key(|&token| std::cmp::Reverse(subject.vocabulary.bytes(token).map_or(0, <[u8]>::len)));
    let examples =
        longest.iter().take(MOST_TOKENS).map(|&token| describe::token(&subject.vocabulary, token)).collect();
    TerminalTokens { terminal, tokens: tokens.map(|tokens| tokens.len()), examples }
}

fn row_json(subject: &Subject<'_>, row: &TerminalTokens) -> Value {
    let terminal = &row.terminal;
    let mut object = json!({
        "terminal": terminal.terminal.raw(), "name": terminal.name, "rule": subject.rule_name(terminal.rule),
        "place": subject.places.show(terminal.span), "states": terminal.states,
        "byte_classes": terminal.byte_classes, "finite": terminal.finite,
        "users": subject.rule_names(&terminal.users),
        "tokens_inside": row.tokens, "examples": row.examples,
    });
    extend(&mut object, subject.origin(terminal).map(|origin| origin.fields));
    object
}

/// Shows the automata.
pub(super) fn show_automata(subject: &Subject<'_>, out: &mut impl Write) -> io::Result<()> {
    let wanted = wanted(subject);
    let shown = wanted.iter().take(subject.limit()).filter_map(|terminal| {
        subject.inspection.automaton(terminal.terminal).map(|automaton| (terminal, automaton))
    });
    match subject.form {
        OutputForm::Text => {
            for (terminal, automaton) in shown {
                text(subject, terminal, &automaton, out)?;
            }
            print_rest(out, 0, subject.limit(), wanted.len())
        }
        OutputForm::Json => {
            let list = shown.map(|(terminal, automaton)| automaton_json(subject, terminal, &automaton));
            let list = list.collect::<Value>();
            subject.print_json(out, "dfas", json!({ "total": wanted.len(), "dfas": list }))
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
        let to = |transition: &TransitionView| {
            format!("{} -> {}", describe::class(&transition.bytes), transition.to)
        };
        let all: Vec<String> = state.transitions.iter().take(subject.limit()).map(to).collect();
        writeln!(out, "  {number:>5}{mark} {}", all.join("   "))?;
        print_rest(out, 8, subject.limit(), state.transitions.len())?;
    }
    print_rest(out, 4, subject.limit(), automaton.states.len())
}

fn automaton_json(subject: &Subject<'_>, terminal: &TerminalView, automaton: &AutomatonView) -> Value {
    let transition = |transition: &TransitionView| {
        let bytes = transition.bytes.iter().map(|range| [*range.start(), *range.end()]);
        json!({ "bytes": bytes.collect::<Vec<_>>(), "to": transition.to })
    };
    let state = |state: &StateView| {
        let transitions = state.transitions.iter().map(transition).collect::<Value>();
        json!({ "accepting": state.accepting, "transitions": transitions })
    };
    let states = automaton.states.iter().take(subject.limit()).map(state).collect::<Value>();
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

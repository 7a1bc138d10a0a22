//! The stage of the terminals, as a table.

use std::io::{self, Write};

use domino::inspect::TerminalView;
use serde_json::{Value, json};

use super::args::OutputForm;
use super::subject::{Subject, head, print_json, print_rest};
use crate::terminal::{describe, progress};

/// Limit on the tokens shown as examples.
const MOST_TOKENS: usize = 5;

/// A terminal with the tokens of the vocabulary that lie inside.
struct TerminalTokens {
    terminal: TerminalView,
    /// Number of those tokens; `None` without a tokenizer, or if counting takes too long.
    tokens: Option<usize>,
    examples: Vec<String>,
}

/// Shows the terminals.
pub(super) fn show(subject: &Subject<'_>, out: &mut impl Write) -> io::Result<()> {
    let wanted: Vec<TerminalView> = subject
        .inspection
        .terminals()
        .filter(|terminal| {
            let rules: Vec<_> = terminal.users.iter().copied().chain([terminal.rule]).collect();
            subject.wants(terminal.terminal, &rules)
        })
        .collect();
    let total = wanted.len();
    let rows: Vec<TerminalTokens> = progress::during("counting tokens inside terminals", || {
        wanted.into_iter().take(subject.limit()).map(|terminal| row(subject, terminal)).collect()
    });
    if subject.command.form == OutputForm::Json {
        let list: Vec<Value> = rows.iter().map(|row| row_json(subject, row)).collect();
        let mut object = head(subject, "terminals");
        object.insert("total".to_owned(), json!(total));
        object.insert("terminals".to_owned(), json!(list));
        return print_json(out, &Value::Object(object));
    }
    writeln!(out, "  number  states  classes  {}rules that use it; terminal", tokens_head(subject))?;
    for row in &rows {
        let terminal = &row.terminal;
        let tokens = match (subject.command.tokens.is_some(), row.tokens) {
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
            subject.origin(terminal).map_or_else(String::new, |origin| format!("  from {}", origin.words())),
        )?;
    }
    print_rest(out, 2, rows.len(), total)
}

fn tokens_head(subject: &Subject<'_>) -> &'static str {
    if subject.command.tokens.is_some() { "tokens inside  " } else { "" }
}

fn row(subject: &Subject<'_>, terminal: TerminalView) -> TerminalTokens {
    let tokens =
        subject.command.tokens.as_ref().and_then(|_| subject.inspection.tokens_inside(terminal.terminal));
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
    if let (Some(origin), Some(object)) = (subject.origin(terminal), object.as_object_mut()) {
        origin.into(object);
    }
    object
}

//! The stage of the parser sets that a text leads to.

use std::io::{self, Write};

use domino::Constraint;
use domino::inspect::{ItemOrigin, ItemView, SetView, SetsView};
use serde_json::{Value, json};

use super::subject::{Subject, head, print_json, print_rest};
use super::{along, args::OutputForm, dot::Graph};
use crate::{terminal::count, terminal::describe::one_line};

/// Limit on the items of a set that are searched for those of a rule.
const MOST_SEARCHED: usize = 10_000;

/// Shows the sets after `--text`.
pub(super) fn show(subject: &Subject<'_>, constraint: &Constraint, out: &mut impl Write) -> io::Result<()> {
    let most_items =
        if subject.rule.is_some() { subject.limit().max(MOST_SEARCHED) } else { subject.limit() };
    let view = constraint.parser_sets(subject.limit(), most_items);
    match subject.command.form {
        OutputForm::Text => text(subject, constraint, &view, out),
        OutputForm::Json => {
            let list: Vec<Value> = view.sets.iter().map(|set| set_json(subject, set)).collect();
            let mut object = head(subject, "sets");
            object.insert("sizes".to_owned(), along::sizes_json(&constraint.state_sizes()));
            object.insert("known_sets".to_owned(), json!(view.known_sets));
            object.insert("sets".to_owned(), json!(list));
            print_json(out, &Value::Object(object))
        }
        OutputForm::Dot => out.write_all(graph(subject, &view).as_bytes()),
    }
}

fn text(
    subject: &Subject<'_>,
    constraint: &Constraint,
    view: &SetsView,
    out: &mut impl Write,
) -> io::Result<()> {
    let sizes = constraint.state_sizes();
    writeln!(
        out,
        "{} ({} doubled), {} may begin; {} with {} from earlier sets",
        count(sizes.threads, "thread"),
        sizes.doubled,
        count(sizes.starting, "terminal"),
        count(sizes.sets, "parser set"),
        count(sizes.items, "item")
    )?;
    for set in &view.sets {
        let mut notes = Vec::new();
        if set.threads > 0 {
            notes.push(format!("{} began here", count(set.threads, "thread")));
        }
        if set.boundary {
            notes.push("the next terminal begins here".to_owned());
        }
        if set.complete {
            notes.push("a text may end here".to_owned());
        }
        let notes = if notes.is_empty() { String::new() } else { format!(": {}", notes.join(", ")) };
        writeln!(out, "set {}{notes}", set.number)?;
        let wanted: Vec<&ItemView> = items(subject, set).collect();
        for item in wanted.iter().take(subject.limit()) {
            writeln!(out, "    {:<60}  {}", one_line(&item.dotted), origin(item.origin))?;
        }
        let total = if subject.rule.is_some() { wanted.len() } else { set.item_count };
        print_rest(out, 4, subject.limit(), total)?;
        for (terminal, to) in set.accepts.iter().take(subject.limit()) {
            let to = to.map_or(String::new(), |to| format!(" -> set {to}"));
            writeln!(out, "    accepts {}{to}", terminal_name(subject, *terminal))?;
        }
        print_rest(out, 4, subject.limit(), set.accepts.len())?;
    }
    print_rest(out, 0, view.sets.len(), view.known_sets)
}

/// The items of the wanted rule, or all items.
fn items<'v>(subject: &'v Subject<'_>, set: &'v SetView) -> impl Iterator<Item = &'v ItemView> {
    let wanted = subject.rule.map(|rule| subject.rule_name(rule));
    set.items.iter().filter(move |item| {
        wanted.is_none_or(|rule| {
            let lhs = item.dotted.split(" ::=").next().unwrap_or_default();
            lhs == rule || lhs.strip_prefix(rule).is_some_and(|part| part.starts_with('#'))
        })
    })
}

fn origin(origin: ItemOrigin) -> String {
    match origin {
        ItemOrigin::Start => "from the start".to_owned(),
        ItemOrigin::Set(set) => format!("from set {set}"),
        _ => "predicted here".to_owned(),
    }
}

fn terminal_name(subject: &Subject<'_>, terminal: domino::ids::TerminalId) -> String {
    let name = subject.inspection.symbol_name(domino::inspect::SymbolView::Terminal(terminal));
    one_line(&name.unwrap_or_default())
}

fn set_json(subject: &Subject<'_>, set: &SetView) -> Value {
    let item = |item: &ItemView| {
        let origin = match item.origin {
            ItemOrigin::Start => json!("start"),
            ItemOrigin::Set(set) => json!(set),
            _ => json!("here"),
        };
        json!({ "item": item.dotted, "origin": origin })
    };
    let accepts: Vec<Value> = set
        .accepts
        .iter()
        .take(subject.limit())
        .map(|(terminal, to)| {
            json!({ "terminal": terminal.raw(), "name": terminal_name(subject, *terminal), "to": to })
        })
        .collect();
    json!({
        "set": set.number, "threads": set.threads, "boundary": set.boundary, "complete": set.complete,
        "item_count": set.item_count, "kernel_items": set.kernel_items,
        "items": items(subject, set).take(subject.limit()).map(item).collect::<Vec<_>>(),
        "accept_count": set.accepts.len(), "accepts": accepts,
    })
}

/// Limit on the items named in a node of the graph.
const MOST_ITEMS: usize = 6;

/// Draws a box for each set, in a double frame if the present state is in it, with the known shifts between
/// sets.
fn graph(subject: &Subject<'_>, view: &SetsView) -> String {
    let mut graph = Graph::new("sets");
    let id = |set: u32| format!("s{set}");
    let shown = |number: u32| view.sets.iter().any(|set| set.number == number);
    for set in &view.sets {
        let mut lines = vec![format!("set {}", set.number)];
        let wanted: Vec<&ItemView> =
            items(subject, set).filter(|item| item.origin != ItemOrigin::Here).collect();
        lines.extend(wanted.iter().take(MOST_ITEMS).map(|item| one_line(&item.dotted)));
        if wanted.len() > MOST_ITEMS {
            lines.push(format!("and {} more", wanted.len() - MOST_ITEMS));
        }
        let here = set.threads > 0 || set.boundary;
        graph.node(&id(set.number), &lines.join("\n"), if here { "doubleoctagon" } else { "box" });
    }
    for set in &view.sets {
        for (terminal, to) in &set.accepts {
            if let Some(to) = to.filter(|to| shown(*to)) {
                graph.edge(&id(set.number), &id(to), &terminal_name(subject, *terminal));
            }
        }
    }
    graph.finish()
}

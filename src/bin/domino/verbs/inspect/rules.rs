//! The stage of the rules, and of the productions that they became.

use std::collections::HashMap;
use std::io::{self, Write};

use domino::ids::RuleId;
use domino::inspect::{Became, NonterminalView, RuleView, SymbolView};
use serde_json::{Value, json};

use super::args::OutputForm;
use super::subject::{Graph, Subject, print_rest};
use crate::terminal::describe::one_line;

/// Limit on the symbols shown of one production.
const MOST_SYMBOLS: usize = 40;

/// Shows the rules.
pub(super) fn show(subject: &Subject<'_>, out: &mut impl Write) -> io::Result<()> {
    let rules: Vec<RuleView> = subject
        .inspection
        .rules()
        .filter(|rule| {
            subject.rule.is_none_or(|wanted| rule.rule == wanted)
                && subject.terminal.is_none_or(|wanted| touches(rule, wanted))
        })
        .collect();
    let mut parts: HashMap<RuleId, Vec<NonterminalView>> = HashMap::new();
    for nonterminal in subject.inspection.nonterminals().skip(1) {
        parts.entry(nonterminal.rule).or_default().push(nonterminal);
    }
    match subject.form {
        OutputForm::Text => text(subject, &rules, &parts, out),
        OutputForm::Json => {
            let parts = |rule: &RuleView| parts.get(&rule.rule).map_or(&[][..], Vec::as_slice);
            let list = rules.iter().take(subject.limit());
            let list = list.map(|rule| rule_json(subject, rule, parts(rule))).collect::<Value>();
            subject.print_json(out, "rules", json!({ "total": rules.len(), "rules": list }))
        }
        OutputForm::Dot => out.write_all(graph(subject, &rules, &parts).as_bytes()),
    }
}

/// True if the terminal is the rule's own, or the rule is a part of it.
fn touches(rule: &RuleView, wanted: domino::ids::TerminalId) -> bool {
    rule.inside.contains(&wanted)
        || matches!(rule.became, Became::Terminal { terminal, .. } if terminal == wanted)
}

fn text(
    subject: &Subject<'_>,
    rules: &[RuleView],
    parts: &HashMap<RuleId, Vec<NonterminalView>>,
    out: &mut impl Write,
) -> io::Result<()> {
    for rule in rules.iter().take(subject.limit()) {
        writeln!(
            out,
            "{}  ({})  {}",
            one_line(&rule.name),
            subject.places.show(rule.span),
            became(subject, rule)
        )?;
        let parts = parts.get(&rule.rule).map_or(&[][..], Vec::as_slice);
        let shown = parts.iter().filter(|part| !is_folded(rule, part));
        let total = shown.clone().count();
        for part in shown.take(subject.limit()) {
            production_lines(subject, part, out)?;
        }
        print_rest(out, 4, subject.limit(), total)?;
    }
    print_rest(out, 0, subject.limit(), rules.len())
}

/// True for the nonterminal of a rule that is a terminal or empty, which the line of the rule has said.
fn is_folded(rule: &RuleView, part: &NonterminalView) -> bool {
    !part.is_part && matches!(rule.became, Became::Terminal { .. } | Became::Empty)
}

fn production_lines(subject: &Subject<'_>, part: &NonterminalView, out: &mut impl Write) -> io::Result<()> {
    let mut notes = marks(part);
    if part.is_part {
        notes.push(format!("stands at {}", subject.places.show(part.span)));
    }
    let notes = if notes.is_empty() { String::new() } else { format!("    # {}", notes.join(", ")) };
    let name = one_line(&part.name);
    let indent = name.chars().count();
    for (at, symbols) in subject.inspection.productions(part.number).take(subject.limit()).enumerate() {
        let row = production(subject, &symbols);
        match at {
            0 => writeln!(out, "    {name} ::= {row}{notes}")?,
            _ => writeln!(out, "    {:indent$}   | {row}", "")?,
        }
    }
    print_rest(out, indent + 9, subject.limit(), part.productions)
}

fn production(subject: &Subject<'_>, symbols: &[SymbolView]) -> String {
    if symbols.is_empty() {
        return "(empty)".to_owned();
    }
    let names = symbols.iter().take(MOST_SYMBOLS).map(|&symbol| subject.symbol_name(symbol));
    let mut row = names.collect::<Vec<_>>().join(" ");
    if symbols.len() > MOST_SYMBOLS {
        row += &format!(" ... ({} symbols)", symbols.len());
    }
    row
}

fn marks(part: &NonterminalView) -> Vec<String> {
    let all = [
        (part.nullable, "may be empty"),
        (part.left_recursive, "left-recursive"),
        (part.right_recursive, "right-recursive"),
        (part.cyclic, "cyclic"),
    ];
    all.iter().filter(|(is, _)| *is).map(|(_, mark)| (*mark).to_owned()).collect()
}

/// Describes what a rule became.
fn became(subject: &Subject<'_>, rule: &RuleView) -> String {
    let mut words = match rule.became {
        Became::Unreachable => "not used: the start rule does not lead to it".to_owned(),
        Became::Useless => "not used: no sentence has it".to_owned(),
        Became::Absorbed => "part of larger terminals only".to_owned(),
        Became::Empty => "always empty".to_owned(),
        Became::Terminal { terminal, or_empty } => {
            format!("terminal {terminal}{}", if or_empty { ", or empty" } else { "" })
        }
        Became::Productions { regular: true, .. } => {
            "productions: it is regular, but too large for one terminal".to_owned()
        }
        Became::Productions { .. } => "productions".to_owned(),
        _ => String::new(),
    };
    if !rule.inside.is_empty() {
        let terminals: Vec<String> =
            rule.inside.iter().take(subject.limit()).map(ToString::to_string).collect();
        words += &format!("; inside terminal {}", terminals.join(", "));
    }
    words += match (rule.left_recursion, rule.right_recursion) {
        (true, true) => "; its recursion at both ends became repetition",
        (true, false) => "; its left recursion became repetition",
        (false, true) => "; its right recursion became repetition",
        (false, false) => "",
    };
    words
}

fn rule_json(subject: &Subject<'_>, rule: &RuleView, parts: &[NonterminalView]) -> Value {
    let (kind, terminal, regular) = match rule.became {
        Became::Unreachable => ("unreachable", None, None),
        Became::Useless => ("useless", None, None),
        Became::Absorbed => ("absorbed", None, Some(true)),
        Became::Empty => ("empty", None, Some(true)),
        Became::Terminal { terminal, or_empty: false } => ("terminal", Some(terminal.raw()), Some(true)),
        Became::Terminal { terminal, .. } => ("terminal or empty", Some(terminal.raw()), Some(true)),
        Became::Productions { regular, .. } => ("productions", None, Some(regular)),
        _ => ("", None, None),
    };
    let symbol = |symbol: &SymbolView| match *symbol {
        SymbolView::Terminal(terminal) => {
            json!({ "terminal": terminal.raw(), "name": subject.terminal_name(terminal) })
        }
        _ => json!({ "name": subject.symbol_name(*symbol) }),
    };
    let row = |symbols: Vec<SymbolView>| symbols.iter().take(subject.limit()).map(symbol).collect::<Value>();
    let nonterminal = |part: &NonterminalView| {
        let productions = subject.inspection.productions(part.number).take(subject.limit());
        json!({
            "name": part.name, "part": part.is_part, "place": subject.places.show(part.span),
            "nullable": part.nullable, "left_recursive": part.left_recursive,
            "right_recursive": part.right_recursive, "cyclic": part.cyclic,
            "production_count": part.productions, "productions": productions.map(row).collect::<Value>(),
        })
    };
    let nonterminals = parts.iter().take(subject.limit()).map(nonterminal).collect::<Value>();
    json!({
        "name": rule.name, "place": subject.places.show(rule.span), "became": kind, "terminal": terminal,
        "regular": regular, "inside": rule.inside.iter().map(|terminal| terminal.raw()).collect::<Vec<_>>(),
        "left_recursion_became_repetition": rule.left_recursion,
        "right_recursion_became_repetition": rule.right_recursion,
        "nonterminals": nonterminals,
    })
}

/// Draws nonterminals as ovals and terminals as boxes, with an edge to each symbol that a production uses.
fn graph(subject: &Subject<'_>, rules: &[RuleView], parts: &HashMap<RuleId, Vec<NonterminalView>>) -> String {
    let mut graph = Graph::new("rules");
    let mut named: Vec<SymbolView> = Vec::new();
    let mut edges: Vec<(SymbolView, SymbolView)> = Vec::new();
    let nonterminals = rules.iter().filter_map(|rule| parts.get(&rule.rule)).flatten();
    for part in nonterminals.take(subject.limit()) {
        let from = SymbolView::Nonterminal(part.number);
        named.push(from);
        for symbols in subject.inspection.productions(part.number).take(subject.limit()) {
            edges.extend(symbols.into_iter().take(subject.limit()).map(|to| (from, to)));
        }
    }
    edges.sort_unstable();
    edges.dedup();
    named.extend(edges.iter().map(|(_, to)| *to));
    named.sort_unstable();
    named.dedup();
    let id = |symbol: SymbolView| match symbol {
        SymbolView::Terminal(terminal) => format!("t{terminal}"),
        SymbolView::Nonterminal(number) => format!("n{number}"),
        _ => String::new(),
    };
    for symbol in named {
        let shape = if matches!(symbol, SymbolView::Terminal(_)) { "box" } else { "ellipse" };
        graph.node(&id(symbol), &subject.symbol_name(symbol), shape);
    }
    for (from, to) in edges {
        graph.edge(&id(from), &id(to), "");
    }
    graph.finish()
}

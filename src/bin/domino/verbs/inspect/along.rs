//! Views along a text: the parser sets that it leads to, the sizes of the parser's state byte by byte, and
//! the times of the masks with the parts of the grammar that make the slow ones.

use std::collections::{BTreeSet, HashMap};
use std::io::{self, Write};
use std::time::{Duration, Instant};

use domino::inspect::{ItemOrigin, ItemView, SetView, SetsView, StateSizes, TerminalView};
use domino::{Constraint, StepError, TokenId, Vocabulary, ids::TerminalId};
use serde_json::{Value, json};

use super::args::OutputForm;
use super::subject::{Graph, Origin, Subject, left_language, milliseconds, print_rest};
use crate::grammar::reading::Reading;
use crate::terminal::describe::{self, one_line};
use crate::terminal::{self, count, failure};

/// Number of parts of the text that are compared, to show growth.
const PARTS: usize = 4;

/// The sizes after a byte.
struct ByteSizes {
    offset: usize,
    byte: u8,
    sizes: StateSizes,
    /// Work for this byte alone.
    work: u64,
}

/// Advances byte by byte and shows the sizes.
pub(super) fn show(
    subject: &Subject<'_>,
    constraint: &mut Constraint,
    text: &[u8],
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let (rows, error) = walk(constraint, text);
    if subject.form == OutputForm::Json {
        let list = sample(&rows, subject.limit()).map(row_json).collect::<Value>();
        let error = error.as_ref().map(|error| failure::told(error).sentence);
        let part = |part: &[ByteSizes]| {
            let (threads, items, work) = digest(part);
            json!({ "bytes": part.len(), "threads": threads, "items": items, "work": work })
        };
        let parts = parts(&rows).map(part).collect::<Value>();
        let fields = json!({ "bytes": rows.len(), "error": error, "parts": parts, "rows": list });
        subject.print_json(out, "sets", fields)?;
    } else {
        table(subject, &rows, out)?;
    }
    error.map_or(Ok(()), |error| Err(error.into()))
}

fn walk(constraint: &mut Constraint, text: &[u8]) -> (Vec<ByteSizes>, Option<StepError>) {
    let mut rows = Vec::new();
    let mut work = constraint.state_sizes().work;
    let text = constraint.spell(text).into_owned();
    for (offset, &byte) in text.iter().enumerate() {
        match constraint.advance_bytes(&[byte]) {
            Ok(1) => {}
            Ok(_) => break,
            Err(error) => return (rows, Some(error)),
        }
        let sizes = constraint.state_sizes();
        rows.push(ByteSizes { offset, byte, sizes, work: sizes.work - work });
        work = sizes.work;
    }
    (rows, None)
}

/// Chooses at most `most` rows, evenly from all of them.
fn sample(rows: &[ByteSizes], most: usize) -> impl Iterator<Item = &ByteSizes> {
    rows.iter().step_by(rows.len().div_ceil(most.max(1)).max(1))
}

fn parts(rows: &[ByteSizes]) -> impl Iterator<Item = &[ByteSizes]> {
    rows.chunks(rows.len().div_ceil(PARTS).max(1))
}

/// The most threads and the most items in a part of the text, and its work.
fn digest(part: &[ByteSizes]) -> (usize, usize, u64) {
    let most = |size: fn(&StateSizes) -> usize| part.iter().map(|row| size(&row.sizes)).max().unwrap_or(0);
    (most(|sizes| sizes.threads), most(|sizes| sizes.items), part.iter().map(|row| row.work).sum())
}

fn table(subject: &Subject<'_>, rows: &[ByteSizes], out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "   after  byte   threads  doubled    sets   items      work  known sets  known states")?;
    for row in sample(rows, subject.limit()) {
        let sizes = &row.sizes;
        writeln!(
            out,
            "  {:>6}  {:<5}  {:>7}  {:>7}  {:>6}  {:>6}  {:>8}  {:>10}  {:>12}",
            row.offset + 1,
            describe::byte(row.byte),
            sizes.threads,
            sizes.doubled,
            sizes.sets,
            sizes.items,
            row.work,
            sizes.known_sets,
            sizes.known_states
        )?;
    }
    if rows.len() > subject.limit() {
        writeln!(out, "  {} of {} bytes shown (--limit 0 shows all)", subject.limit(), rows.len())?;
    }
    writeln!(out, "by quarters of the text: most threads, most items, work")?;
    for part in parts(rows) {
        let (threads, items, work) = digest(part);
        writeln!(out, "  {threads:>9}  {items:>9}  {work:>9}")?;
    }
    Ok(())
}

fn row_json(row: &ByteSizes) -> Value {
    let mut object = json!(row.sizes);
    object["after"] = json!(row.offset + 1);
    object["byte"] = json!(row.byte);
    object["byte_work"] = json!(row.work);
    object
}

/// Limit on the items of a set that are searched for those of a rule.
const MOST_SEARCHED: usize = 10_000;

/// Shows the sets after `--text`.
pub(super) fn show_sets(
    subject: &Subject<'_>,
    constraint: &Constraint,
    out: &mut impl Write,
) -> io::Result<()> {
    let most_items =
        if subject.rule.is_some() { subject.limit().max(MOST_SEARCHED) } else { subject.limit() };
    let view = constraint.parser_sets(subject.limit(), most_items);
    match subject.form {
        OutputForm::Text => text(subject, constraint, &view, out),
        OutputForm::Json => {
            let (sizes, known) = (constraint.state_sizes(), view.known_sets);
            let sets = view.sets.iter().map(|set| set_json(subject, set)).collect::<Value>();
            subject.print_json(out, "sets", json!({ "sizes": sizes, "known_sets": known, "sets": sets }))
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
            writeln!(out, "    accepts {}{to}", subject.terminal_name(*terminal))?;
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

fn set_json(subject: &Subject<'_>, set: &SetView) -> Value {
    let item = |item: &ItemView| {
        let origin = match item.origin {
            ItemOrigin::Start => json!("start"),
            ItemOrigin::Set(set) => json!(set),
            _ => json!("here"),
        };
        json!({ "item": item.dotted, "origin": origin })
    };
    let accept = |(terminal, to): &(TerminalId, Option<u32>)| {
        let name = subject.terminal_name(*terminal);
        json!({ "terminal": terminal.raw(), "name": name, "to": to })
    };
    let accepts = set.accepts.iter().take(subject.limit()).map(accept).collect::<Value>();
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
                graph.edge(&id(set.number), &id(to), &subject.terminal_name(*terminal));
            }
        }
    }
    graph.finish()
}

/// Limit on the terminals that are named for each mask; most masks have one or two.
const MOST_TERMINALS: usize = 4;

/// A mask along the text.
struct MaskAlong {
    /// Number of bytes of the text before it.
    after: usize,
    time: Duration,
    tokens: usize,
    terminals: BTreeSet<TerminalId>,
}

/// Walks along the text and shows its masks, the slowest first.
pub(super) fn show_masks(subject: &Subject<'_>, out: &mut impl Write) -> anyhow::Result<()> {
    let mut rows = time_masks(subject, &subject.command.text()?)?;
    let masks = rows.len();
    let all: Duration = rows.iter().map(|row| row.time).sum();
    rows.sort_by_key(|row| std::cmp::Reverse(row.time));
    rows.truncate(subject.limit());
    if subject.form == OutputForm::Json {
        let rows = rows.iter().map(|row| mask_row_json(subject, row)).collect::<Value>();
        let fields = json!({ "masks": masks, "ms": milliseconds(all), "rows": rows });
        return Ok(subject.print_json(out, "masks", fields)?);
    }
    let (counted, time) = (terminal::count(masks, "mask"), milliseconds(all));
    writeln!(out, "{counted} in {time:.3} ms, the slowest first")?;
    writeln!(out, "   after         ms    tokens  made of")?;
    for row in &rows {
        let parts: Vec<String> = places(subject, row).into_iter().map(|place| place.words).collect();
        let more = if row.terminals.len() > MOST_TERMINALS { ", ..." } else { "" };
        let (time, parts) = (milliseconds(row.time), parts.join("; "));
        writeln!(out, "  {:>6}  {time:>9.3}  {:>8}  {parts}{more}", row.after, row.tokens)?;
    }
    Ok(print_rest(out, 2, rows.len(), masks)?)
}

/// Makes the masks along a text that is cut into the longest tokens (maximal munch).
fn time_masks(subject: &Subject<'_>, text: &[u8]) -> anyhow::Result<Vec<MaskAlong>> {
    let mut constraint = subject.compiled.constraint();
    let (named, text) = (text, &*constraint.spell(text));
    let longest = longest_tokens(&subject.vocabulary, &constraint, named);
    let (mut rows, mut after) = (Vec::new(), 0);
    for piece in longest.into_iter().chain([0]) {
        let start = Instant::now();
        let tokens = constraint.mask()?.len();
        let time = start.elapsed();
        let terminals = constraint.threads().into_iter().map(|thread| thread.number).collect();
        rows.push(MaskAlong { after, time, tokens, terminals });
        let taken = constraint.advance_bytes(&text[after..after + piece])?;
        let rest = &text[after + taken..];
        if taken < piece {
            // A file may end with a line break that is no part of the text.
            let moved = constraint.advance_bytes(&text[after..after + taken])?;
            if moved == taken && constraint.is_complete() && matches!(rest, b"\n" | b"\r\n") {
                break;
            }
            let mut reading = Reading::new(subject.compiled.constraint());
            let left = reading.push(named).ok().flatten();
            let unknown = || anyhow::anyhow!("the text leaves the language");
            return Err(left.map_or_else(unknown, |left| left_language(&left)));
        }
        after += taken;
    }
    Ok(rows)
}

/// Lengths of the tokens of a text as it is spelt: special tokens by their names, the longest fitting tokens
/// between them, and single bytes where none fits.
fn longest_tokens(vocabulary: &Vocabulary, constraint: &Constraint, text: &[u8]) -> Vec<usize> {
    let known: HashMap<&[u8], TokenId> =
        vocabulary.text_tokens().map(|(token, bytes)| (bytes, token)).collect();
    let most = known.keys().map(|bytes| bytes.len()).max().unwrap_or(1);
    let (mut rest, mut lengths) = (text, Vec::new());
    while !rest.is_empty() {
        let special = constraint.first_special(rest);
        if let Some((0, name)) = special {
            lengths.push(constraint.spell(name.as_bytes()).len());
            rest = &rest[name.len()..];
            continue;
        }
        let end = special.map_or(rest.len(), |(start, _)| start);
        let fits = (1..=end.min(most)).rev().find(|&length| known.contains_key(&rest[..length]));
        let length = fits.unwrap_or(1);
        lengths.push(length);
        rest = &rest[length..];
    }
    lengths
}

/// The origins of the terminals of a mask: in the schema, or else the rules.
fn places(subject: &Subject<'_>, row: &MaskAlong) -> Vec<Origin> {
    let views = subject.inspection.terminals().filter(|view| row.terminals.contains(&view.terminal));
    let rule = |TerminalView { name, span, .. }: &TerminalView| {
        let place = subject.places.show(*span);
        let words = format!("{} ({place})", one_line(name));
        Origin { words, fields: json!({ "rule": name, "place": place }) }
    };
    let place = |view: TerminalView| subject.origin(&view).unwrap_or_else(|| rule(&view));
    views.take(MOST_TERMINALS).map(place).collect()
}

fn mask_row_json(subject: &Subject<'_>, row: &MaskAlong) -> Value {
    let parts: Vec<Value> = places(subject, row).into_iter().map(|place| place.fields).collect();
    json!({
        "after": row.after, "ms": milliseconds(row.time), "tokens": row.tokens,
        "terminals": row.terminals.len(), "made_of": parts,
    })
}

//! Sizes of the parser's state, byte by byte along a text.

use std::io::{self, Write};

use domino::{Constraint, StepError, inspect::StateSizes};
use serde_json::{Value, json};

use super::args::OutputForm;
use super::subject::{Subject, head, print_json};
use crate::terminal::{describe, failure};

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

/// The largest sizes of a part of the text.
struct LargestSizes {
    threads: usize,
    items: usize,
    work: u64,
}

/// Advances byte by byte and shows the sizes. Returns the number of bytes that were taken.
pub(super) fn show(
    subject: &Subject<'_>,
    constraint: &mut Constraint,
    text: &[u8],
    out: &mut impl Write,
) -> anyhow::Result<usize> {
    let (rows, error) = walk(constraint, text);
    if subject.command.form == OutputForm::Json {
        let list: Vec<Value> = sample(&rows, subject.limit()).map(row_json).collect();
        let mut object = head(subject, "sets");
        object.insert("bytes".to_owned(), json!(rows.len()));
        object.insert("error".to_owned(), json!(error.as_ref().map(|error| failure::told(error).sentence)));
        let parts: Vec<Value> = parts(&rows)
            .map(|part| {
                let digest = digest(part);
                json!({
                    "bytes": part.len(), "threads": digest.threads, "items": digest.items,
                    "work": digest.work,
                })
            })
            .collect();
        object.insert("parts".to_owned(), json!(parts));
        object.insert("rows".to_owned(), json!(list));
        print_json(out, &Value::Object(object))?;
    } else {
        table(subject, &rows, out)?;
    }
    match error {
        Some(error) => Err(error.into()),
        None => Ok(rows.len()),
    }
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

fn digest(part: &[ByteSizes]) -> LargestSizes {
    LargestSizes {
        threads: part.iter().map(|row| row.sizes.threads).max().unwrap_or(0),
        items: part.iter().map(|row| row.sizes.items).max().unwrap_or(0),
        work: part.iter().map(|row| row.work).sum(),
    }
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
        let digest = digest(part);
        writeln!(out, "  {:>9}  {:>9}  {:>9}", digest.threads, digest.items, digest.work)?;
    }
    Ok(())
}

fn row_json(row: &ByteSizes) -> Value {
    let mut object = sizes_json(&row.sizes);
    object["after"] = json!(row.offset + 1);
    object["byte"] = json!(row.byte);
    object["byte_work"] = json!(row.work);
    object
}

/// Writes sizes as JSON.
pub(super) fn sizes_json(sizes: &StateSizes) -> Value {
    json!({
        "threads": sizes.threads, "doubled": sizes.doubled, "starting": sizes.starting, "sets": sizes.sets,
        "items": sizes.items, "known_sets": sizes.known_sets, "known_states": sizes.known_states,
        "work": sizes.work,
    })
}

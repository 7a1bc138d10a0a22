//! Times of the masks along a text, and the parts of the grammar that make the slow ones.

use std::collections::{BTreeSet, HashMap};
use std::io::Write;
use std::time::{Duration, Instant};

use domino::{Constraint, TokenId, Vocabulary, ids::TerminalId};
use serde_json::{Map, Value, json};

use super::args::{OutputForm, SetsText};
use super::origins::Origin;
use super::subject::{Subject, head, left_language, milliseconds, print_json, print_rest};
use crate::grammar::reading::Reading;
use crate::terminal::{self, describe};

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
pub(super) fn show(subject: &Subject<'_>, out: &mut impl Write) -> anyhow::Result<()> {
    let text = match &subject.command.text {
        SetsText::Along(input) => input.read()?,
        SetsText::After(text) => text.as_bytes().to_vec(),
    };
    let mut rows = walk(subject, &text)?;
    let masks = rows.len();
    let all: Duration = rows.iter().map(|row| row.time).sum();
    rows.sort_by_key(|row| std::cmp::Reverse(row.time));
    rows.truncate(subject.limit());
    if subject.command.form == OutputForm::Json {
        let mut object = head(subject, "masks");
        object.insert("masks".to_owned(), masks.into());
        object.insert("ms".to_owned(), milliseconds(all).into());
        object.insert("rows".to_owned(), rows.iter().map(|row| row_json(subject, row)).collect());
        return Ok(print_json(out, &Value::Object(object))?);
    }
    let (counted, time) = (terminal::count(masks, "mask"), milliseconds(all));
    writeln!(out, "{counted} in {time:.3} ms, the slowest first")?;
    writeln!(out, "   after         ms    tokens  made of")?;
    for row in &rows {
        let parts: Vec<String> = places(subject, row).into_iter().map(|place| place.words()).collect();
        let more = if row.terminals.len() > MOST_TERMINALS { ", ..." } else { "" };
        let (time, parts) = (milliseconds(row.time), parts.join("; "));
        writeln!(out, "  {:>6}  {time:>9.3}  {:>8}  {parts}{more}", row.after, row.tokens)?;
    }
    Ok(print_rest(out, 2, rows.len(), masks)?)
}

/// Makes the masks along a text that is cut into the longest tokens (maximal munch).
fn walk(subject: &Subject<'_>, text: &[u8]) -> anyhow::Result<Vec<MaskAlong>> {
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

/// The origin of a terminal of a mask.
enum TerminalSource {
    Schema(Origin),
    Rule { name: String, place: String },
}

impl TerminalSource {
    fn words(&self) -> String {
        match self {
            Self::Schema(origin) => origin.words(),
            Self::Rule { name, place } => format!("{} ({place})", describe::one_line(name)),
        }
    }

    fn json(self) -> Value {
        let mut object = Map::new();
        match self {
            Self::Schema(origin) => origin.into(&mut object),
            Self::Rule { name, place } => {
                object.insert("rule".to_owned(), name.into());
                object.insert("place".to_owned(), place.into());
            }
        }
        Value::Object(object)
    }
}

fn places(subject: &Subject<'_>, row: &MaskAlong) -> Vec<TerminalSource> {
    let views = subject.inspection.terminals().filter(|view| row.terminals.contains(&view.terminal));
    let place = |view| match subject.origin(&view) {
        Some(origin) => TerminalSource::Schema(origin),
        None => TerminalSource::Rule { place: subject.places.show(view.span), name: view.name },
    };
    views.take(MOST_TERMINALS).map(place).collect()
}

fn row_json(subject: &Subject<'_>, row: &MaskAlong) -> Value {
    let parts: Vec<Value> = places(subject, row).into_iter().map(TerminalSource::json).collect();
    json!({
        "after": row.after, "ms": milliseconds(row.time), "tokens": row.tokens,
        "terminals": row.terminals.len(), "made_of": parts,
    })
}

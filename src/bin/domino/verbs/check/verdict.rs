//! Verdicts of a grammar on a text, and what is wrong by a schema.

use domino::{CompiledGrammar, grammar::json_schema::SchemaOptions};
use serde_json::{Map, Value};

use super::{faults, faults::finding::SchemaFault};
use crate::flags::schema;
use crate::grammar::compiler::{self, byte_vocabulary};
use crate::grammar::reading::{Leaving, ReadEnd, Reading, Unanswered};

/// A verdict of a grammar on a text.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// The text is in the language.
    Complete,
    /// The whole text may be written, and more must follow.
    Incomplete(Box<Leaving>),
    /// The text leaves the language.
    Left(Box<Leaving>),
}

impl Verdict {
    /// True if the text is in the language, or, with `prefix`, the beginning of a text that is.
    pub(crate) fn accepted(&self, prefix: bool) -> bool {
        match self {
            Self::Complete => true,
            Self::Incomplete(_) => prefix,
            Self::Left(_) => false,
        }
    }

    /// The place where the text leaves the language or ends too early.
    pub(crate) fn leaving(&self) -> Option<&Leaving> {
        match self {
            Self::Complete => None,
            Self::Incomplete(leaving) | Self::Left(leaving) => Some(leaving),
        }
    }
}

/// Explains in the words of a schema what is wrong with a text that was refused, as far as that can be told.
/// `schema` is its text with its options, if the grammar is a schema.
pub(crate) fn explained(
    schema: Option<(&str, &SchemaOptions)>,
    verdict: &Verdict,
    text: &[u8],
) -> Vec<SchemaFault> {
    let Some((schema, options)) = schema else { return Vec::new() };
    let ended = match verdict {
        Verdict::Complete => return Vec::new(),
        Verdict::Incomplete(_) => true,
        Verdict::Left(_) => false,
    };
    let text = text.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let engine = |schema: &str, instance: &str| {
        let options = schema::for_checking().with_format(options.format);
        let parsed = options.parse_with(schema, &compiler::limits(), compiler::automata()).ok()?;
        let compiled = compiler::compiler(byte_vocabulary().ok()?).compile(&parsed.grammar).ok()?;
        judge(&compiled, instance.as_bytes()).ok().map(|verdict| verdict.accepted(false))
    };
    faults::explain(schema, options, text, ended, &engine)
}

/// Makes the field of JSON about what is wrong by a schema; no field where nothing was found.
pub(crate) fn explained_field(faults: &[SchemaFault]) -> Map<String, Value> {
    let list = (!faults.is_empty()).then(|| ("schema_errors".to_owned(), faults::list(faults)));
    Map::from_iter(list)
}

/// Judges `text` by a grammar compiled for [`byte_vocabulary`].
pub(crate) fn judge(grammar: &CompiledGrammar, text: &[u8]) -> Result<Verdict, Box<Unanswered>> {
    let mut reading = Reading::new(grammar.constraint());
    if let Some(left) = reading.push(text)? {
        return Ok(Verdict::Left(left));
    }
    finish(reading)
}

/// Gives the verdict on a text that was read to its end.
pub(super) fn finish(mut reading: Reading) -> Result<Verdict, Box<Unanswered>> {
    if let Some(left) = reading.finish()? {
        return Ok(Verdict::Left(left));
    }
    Ok(match reading.end() {
        ReadEnd::Complete => Verdict::Complete,
        ReadEnd::Incomplete(leaving) => Verdict::Incomplete(leaving),
    })
}

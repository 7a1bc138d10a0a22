//! Flags of `domino check`.

use std::path::PathBuf;

use clap::Args;

use super::{batch::RowCheck, texts::TextCheck};
use crate::flags::grammar::{LowCapture, LowGrammar};
use crate::{files::Input, flags::schema, terminal::failure::BadInput};

/// Limit on the bytes that `check` reads of a text, unless a flag says otherwise.
const DEFAULT_MAX_BYTES: u64 = 1 << 30;

/// Tell whether texts are in the language of a grammar, and where they leave it.
///
/// For each text outside of the language, the place of its first mistake is printed (line and column, in
/// characters from 1), with what could have come there instead. Every byte counts, a line feed at the end
/// too. Texts are read only as far as needed: one that never ends is refused as soon as it leaves the
/// language.
///
/// Exit code 0 says that all texts are in the language, 1 that some are not, 4 that for some there is no
/// answer (a budget of work or memory was used up, or --max-bytes), 2 that some could not be read.
///
/// With --json one object is printed for each text: file, accepted (null where there is no answer), complete
/// and error. Where the text is accepted, and the grammar has named groups or marks rules, or --capture names
/// some, it has captures: a list of name, start, end (in bytes) and text, sorted by start, outer ones first
/// (of a --prefix what is decided so far; null with captures_error where a budget ended). Where the text
/// leaves the language it has offset (in bytes), line and column (in characters), character, expected,
/// more_expected (how many more there are) and terminals; where a budget ends line, column, rules and
/// terminals.
///
/// With --batch the one input is lines of JSON (docs/batch.md), {"id": .., "text": "..", "prefix": false},
/// such as `generate --batch` writes. A line may have schema, grammar and syntax, regex or tools where its
/// grammar is not that of the flags, and flags for JSON Schemas as further keys ("order": "schema",
/// "max_depth": 3). For each a line {"id": .., "accepted": true|false|null, "error": ..} comes at once.
/// accepted is null, with an error, where there is no answer, such as for a wrong grammar; where it is false,
/// the line also has message, offset, line, column and so on, as with --json. Equal grammars are compiled
/// once. The exit code is then 0 if all rows had an answer, whatever it is, and 1 if some had none.
#[derive(Debug, Args)]
pub(crate) struct LowCheck {
    #[command(flatten)]
    grammar: LowGrammar,
    /// Ask whether the text can still be completed, not whether it is complete.
    #[arg(long)]
    prefix: bool,
    #[command(flatten)]
    capture: LowCapture,
    /// Before the texts, list every keyword of the JSON Schema and what becomes of it.
    ///
    /// A keyword is enforced, annotation, unknown (it restricts nothing, and no draft knows it), relaxed
    /// (--lenient) or refused, with the reason; schemas of --tools are listed too. No text need be given
    /// then. With --json one object: grammar, counts, keywords (pointer, keyword, status, note) and error, or
    /// functions with these. With --batch the answers have it as schema_report.
    #[arg(long)]
    report: bool,
    /// Read lines of JSON with a text each, and a grammar where it is not that of the flags.
    #[arg(long, conflicts_with = "rules")]
    pub(crate) batch: bool,
    /// Copy columns of rows that are not known to the answers, with --batch; otherwise they are refused.
    #[arg(long, requires = "batch")]
    keep_fields: bool,
    /// Read no more than this of a text, or of a line with --batch.
    ///
    /// A longer text that has not left the language by then has no answer (exit code 4).
    #[arg(long, value_name = "BYTES", default_value_t = DEFAULT_MAX_BYTES)]
    max_bytes: u64,
    /// The texts; - is standard input. With --batch at most one, and standard input if none.
    #[arg(value_name = "FILE", required_unless_present_any = ["batch", "report"])]
    files: Vec<PathBuf>,
}

/// The resolved command `domino check`.
#[derive(Debug)]
pub(crate) enum Check {
    /// Judge texts by one grammar.
    Texts(TextCheck),
    /// Judge the text of each row of a file.
    Rows(RowCheck),
}

impl LowCheck {
    /// Reads the flags as the command.
    pub(crate) fn resolve(self, json: bool) -> Result<Check, BadInput> {
        let mut inputs: Vec<Input> = self.files.into_iter().map(Input::new).collect();
        if !self.batch {
            let grammar = self.grammar.required_beside(schema::for_checking())?;
            let captured = self.capture.resolve(json)?;
            let Self { prefix, report, max_bytes, .. } = self;
            return Ok(Check::Texts(TextCheck {
                grammar,
                prefix,
                inputs,
                captured,
                report,
                max_bytes,
                json,
            }));
        }
        match (inputs.pop().unwrap_or(Input::Stdin), inputs.is_empty()) {
            (input, true) => {
                let usual = self.grammar.resolve_beside(schema::for_checking(), true)?;
                let Self { max_bytes, keep_fields: keep, prefix, report, .. } = self;
                Ok(Check::Rows(RowCheck { input, max_bytes, usual, keep, prefix, report }))
            }
            _ => Err(BadInput::new("--batch takes one file of JSON lines, or - for standard input")),
        }
    }
}

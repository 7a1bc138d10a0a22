//! Rows of a batch as traces: the texts of lines of JSON, such as `domino generate --batch` writes.

use std::{io::BufRead, path::Path};

use domino::{TokenId, Vocabulary, VocabularyError, vocab::Tokenizer};
use serde_json::json;

use super::args::Trace;
use crate::rows::{RowReader, RowReading};
use crate::{files::lines, terminal::failure::BadInput};

/// Limit on the length in bytes of a token that is looked for.
const LONGEST: usize = 64;

/// Reads the traces of all rows, as a file of traces has them. The tokens of a text are those of the row if
/// they spell it, or else those that the tokenizer makes of it.
pub(super) fn read(command: &Trace, tokenizer: &Path) -> Result<Vec<u8>, BadInput> {
    let vocab = tokenizer.display().to_string();
    let bad = |error: VocabularyError| BadInput::new(error.to_string());
    let vocabulary = Vocabulary::from_tokenizer_file(tokenizer).map_err(bad)?;
    let tokenizer = Tokenizer::from_tokenizer_file(tokenizer).map_err(bad)?;
    let reading = RowReading { reader: RowReader::Trace, keep: true };
    let (name, mut reader) = (command.traces.name(), command.traces.open()?);
    let (mut line, mut traces) = (Vec::new(), Vec::new());
    for number in 1.. {
        line.clear();
        let length = reader
            .read_until(b'\n', &mut line)
            .map_err(|error| BadInput::new(format!("cannot read {name}: {error}")))?;
        if length == 0 {
            break;
        }
        if lines::content(&line).is_empty() {
            continue;
        }
        let place = |error: BadInput| error.about(&name);
        let in_line = |error: BadInput| error.about(&format!("{name}: line {number}"));
        let row = reading.row(&line, number).1.map_err(place)?;
        if row.grammar.is_own() {
            let error = BadInput::new("the row has a grammar of its own");
            return Err(in_line(error.hint("trace measures one grammar, that of the command line")));
        }
        let text = row.text().map_err(in_line)?;
        let own = row.token_ids.as_ref().map(|ids| ids.iter().copied().map(TokenId::new).collect());
        let encoded = || tokenizer.encode(text, false).ok();
        let tokens = own
            .and_then(|tokens| spelling(tokens, text, &vocabulary))
            .or_else(|| spelling(encoded()?, text, &vocabulary))
            .or_else(|| longest(text.as_bytes(), &vocabulary))
            .ok_or_else(|| in_line(BadInput::new("the vocabulary cannot spell the text")))?;
        let tokens: Vec<u32> = tokens.iter().map(|token| token.raw()).collect();
        traces.push(json!({ "text": text, "tokens": tokens }));
    }
    Ok(json!({ "grammar": command.grammar.name(), "vocab": vocab, "traces": traces })
        .to_string()
        .into_bytes())
}

/// These tokens, if they spell the text.
fn spelling(tokens: Vec<TokenId>, text: &str, vocabulary: &Vocabulary) -> Option<Vec<TokenId>> {
    let known = tokens.iter().all(|token| vocabulary.bytes(*token).is_some());
    (known && vocabulary.concat(&tokens) == text.as_bytes()).then_some(tokens)
}

/// Cuts a text into the longest token at each place (maximal munch), for tokenizers that put a blank before a
/// text.
fn longest(mut rest: &[u8], vocabulary: &Vocabulary) -> Option<Vec<TokenId>> {
    let mut tokens = Vec::new();
    while !rest.is_empty() {
        let mut lengths = (1..=rest.len().min(LONGEST)).rev();
        let found = lengths.find_map(|length| Some((length, vocabulary.token_of(&rest[..length])?)));
        let (length, token) = found?;
        tokens.push(token);
        rest = &rest[length..];
    }
    Some(tokens)
}

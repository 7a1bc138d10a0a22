//! The keys of rows, and the commands that read or write them.

use domino::grammar::suggest;

use super::members::ObjectMembers;
use crate::{flags::schema::RowOptions, terminal::failure::BadInput};

/// A command that reads rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowReader {
    /// `domino generate --batch`.
    Generate,
    /// `domino check --batch`.
    Check,
    /// `domino trace --batch`.
    Trace,
}

/// Keys of any row, without the options of schemas.
const ANY: [&str; 11] = [
    "id",
    "meta",
    "grammar",
    "syntax",
    "regex",
    "schema",
    "tools",
    "tool_choice",
    "tool_spelling",
    "one_tool_call",
    "reasoning",
];

/// Keys that `generate` reads.
const OF_GENERATE: [&str; 18] = [
    "prompt",
    "messages",
    "n",
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "repeat_penalty",
    "repeat_last_n",
    "presence_penalty",
    "frequency_penalty",
    "seed",
    "mask",
    "max_tokens",
    "stop",
    "trailing_space",
    "finish",
    "logprobs",
];

/// Keys that `check` and `trace` read.
const OF_TEXTS: [&str; 4] = ["text", "token_ids", "prefix", "report"];

/// Keys of the lines that `generate` writes, and does not read.
const BY_GENERATE: [&str; 37] = [
    "index",
    "tokens",
    "value",
    "content",
    "tool_calls",
    "reasoning_content",
    "tokens_per_second",
    "interventions",
    "mask_seconds",
    "seconds",
    "complete",
    "finished_by",
    "prompt_tokens",
    "masks",
    "passes",
    "model_seconds",
    "error",
    "hint",
    "drafted",
    "accepted",
    "acceptance",
    "tokens_per_pass",
    "draft_seconds",
    "draft_model",
    "prior",
    "compare",
    "forced_bytes",
    "forced_share",
    "captures",
    "captures_error",
    "appended",
    "appended_bytes",
    "appended_token_ids",
    "grammar_warnings",
    "relaxed",
    "canonical",
    "redraws",
];

/// Further keys of the lines that `check` writes.
const BY_CHECK: [&str; 13] = [
    "accepted",
    "message",
    "offset",
    "line",
    "column",
    "character",
    "expected",
    "more_expected",
    "terminals",
    "rules",
    "pointer",
    "schema_errors",
    "schema_report",
];

impl RowReader {
    /// The command's name.
    fn name(self) -> &'static str {
        match self {
            Self::Generate => "generate",
            Self::Check => "check",
            Self::Trace => "trace",
        }
    }

    /// True for a key that the command writes itself, so that a row cannot have it copied.
    fn writes(self, key: &str) -> bool {
        match self {
            Self::Generate => BY_GENERATE.contains(&key),
            Self::Check => BY_CHECK.contains(&key),
            Self::Trace => false,
        }
    }

    /// True for a key that the command reads, or ignores since it is another command's.
    fn knows(self, key: &str) -> bool {
        let written = self != Self::Generate && BY_GENERATE.contains(&key);
        written || asked(key)
    }

    /// Chooses the columns to copy from what is left of a row; with `keep`, all unknown ones but those that
    /// are nearly known, which are mistakes.
    pub(super) fn columns(
        self,
        members: ObjectMembers<'_>,
        keep: bool,
    ) -> Result<Vec<(String, &str)>, BadInput> {
        let mut columns = Vec::new();
        for (key, text) in members.rest() {
            // `accepted` is a count of drafted tokens in what `generate` writes, which `check` reads.
            if self.knows(&key) {
                continue;
            }
            if self.writes(&key) {
                let error = format!("`{key}` is a column that {} writes itself", self.name());
                return Err(BadInput::new(error).hint("give it another name, or put it in `meta`"));
            }
            if let Some(near) = suggest::did_you_mean(&key, requests()) {
                return Err(unknown(&key).hint(format!("{near} A column of that name can be put in `meta`")));
            }
            if !keep {
                let hint = "--keep-fields copies columns that are not known, and `meta` holds anything";
                return Err(unknown(&key).hint(hint));
            }
            columns.push((key, text));
        }
        Ok(columns)
    }
}

/// True for a key that some command reads.
fn asked(key: &str) -> bool {
    requests().any(|known| known == key)
}

fn requests() -> impl Iterator<Item = &'static str> {
    let own = ANY.into_iter().chain(OF_GENERATE).chain(OF_TEXTS);
    own.chain(RowOptions::NAMES)
}

fn unknown(key: &str) -> BadInput {
    BadInput::new(format!("unknown key `{key}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(reader: RowReader, line: &str, keep: bool) -> Result<Vec<String>, BadInput> {
        let columns = reader.columns(ObjectMembers::read(line).unwrap(), keep)?;
        Ok(columns.into_iter().map(|(key, _)| key).collect())
    }

    #[test]
    fn every_key_stands_in_one_list() {
        let mut all: Vec<&str> = requests().chain(BY_GENERATE).collect();
        all.sort_unstable();
        let count = all.len();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn unknown_keys_are_kept_on_request_and_mistakes_refused_with_the_nearest() {
        use crate::terminal::failure::told;
        for (key, near) in [
            ("promt", "`prompt`"),
            ("Temperature", "`temperature`"),
            ("max-tokens", "`max_tokens`"),
            ("sead", "`seed`"),
            ("tool_choise", "`tool_choice`"),
            ("shema", "`schema`"),
            ("whitspace", "`whitespace`"),
            ("colour", "--keep-fields"),
        ] {
            let line = format!("{{\"{key}\": 1}}");
            let is_mistake = key != "colour";
            for keep in [false, true] {
                if keep && !is_mistake {
                    assert_eq!(columns(RowReader::Check, &line, true).unwrap(), [key]);
                    continue;
                }
                let error = columns(RowReader::Generate, &line, keep).unwrap_err();
                let told = told(&error).line();
                assert!(told.contains(key) && told.contains(near), "{told}");
            }
        }
    }

    #[test]
    fn keys_that_a_command_writes_itself_cannot_be_carried() {
        for keep in [false, true] {
            assert!(columns(RowReader::Generate, r#"{"tokens": 1}"#, keep).is_err());
            assert!(columns(RowReader::Check, r#"{"expected": 1}"#, keep).is_err());
            // Keys that `generate` wrote, and keys of other commands, are ignored.
            let line = r#"{"tokens": 1, "accepted": 3, "prompt": 7, "finish": "stop"}"#;
            assert!(columns(RowReader::Check, line, keep).unwrap().is_empty());
            assert!(columns(RowReader::Generate, r#"{"text": "a", "prefix": 7}"#, keep).unwrap().is_empty());
        }
    }
}

//! `--capture`.

use clap::Args;

use crate::terminal::failure::BadInput;

/// Flags that name rules to capture, besides those that the grammar itself marks.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct LowCapture {
    /// List which bytes of the text the rule of this name has matched. Needs --json.
    ///
    /// They are in the field captures. Can be given more than once. Named groups of regular expressions and
    /// rules that the grammar marks (`rule[capture]` in Lark) are listed without it.
    #[arg(long = "capture", value_name = "RULE")]
    rules: Vec<String>,
}

impl LowCapture {
    /// Takes the names of the rules; refuses them without `--json`.
    pub(crate) fn resolve(self, json: bool) -> Result<Vec<String>, BadInput> {
        match self.rules.is_empty() || json {
            true => Ok(self.rules),
            false => Err(BadInput::new("--capture needs --json")),
        }
    }
}

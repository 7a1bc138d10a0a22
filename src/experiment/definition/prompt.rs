//! Prompts and their answers, and the prompts set apart for warm-ups.

use serde_json::Value;

use super::called::Functions;

/// A prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Prompt {
    /// Text that a model continues.
    pub text: String,
    /// The right answer, if there is one.
    pub answer: Option<String>,
}

/// Place of the answer in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerPlace {
    /// The value at a JSON pointer.
    Pointer(String),
    /// The last number in the text.
    LastNumber,
    /// All of the text: a call of one of these functions.
    Call(Functions),
}

/// Prompts that warm-ups continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WarmUpPrompts {
    /// Prompts of their own, which are never measured.
    Apart,
    /// The measured prompts, with other seeds: the paper's way, and that of records that do not say.
    #[default]
    Measured,
}

/// Sets the last prompts of a list apart for `warm_ups` warm-ups: one of five, and no more than there are
/// warm-ups. A single prompt is never set apart.
pub(super) fn set_apart(prompts: &mut Vec<Prompt>, warm_ups: usize) -> Vec<String> {
    /// One prompt of this many is set apart.
    const OF: usize = 5;
    let most = prompts.len().saturating_sub(1);
    let apart = prompts.len().div_ceil(OF).min(warm_ups).min(most);
    prompts.drain(prompts.len() - apart..).map(|prompt| prompt.text).collect()
}

impl Prompt {
    /// Is the answer of `text` at `place` right? `None` if there is no right answer. Numbers are compared by
    /// value.
    #[must_use]
    pub fn is_answered(&self, place: &AnswerPlace, text: &str) -> Option<bool> {
        let right = self.answer.as_ref()?.trim();
        let found = match place {
            AnswerPlace::Pointer(pointer) => {
                let value: Option<Value> = serde_json::from_str(text).ok();
                value.as_ref().and_then(|value| value.pointer(pointer)).map(|value| match value {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                })
            }
            AnswerPlace::LastNumber => last_number(text),
            AnswerPlace::Call(functions) => return Some(functions.are_called(text, right)),
        };
        let number = |text: &str| text.trim().parse::<f64>().ok();
        Some(found.is_some_and(|found| match (number(&found), number(right)) {
            (Some(found), Some(right)) => (found - right).abs() <= 1e-9 * right.abs().max(1.0),
            _ => found.trim() == right,
        }))
    }
}

/// Returns the last number in a text, without thousands' commas.
fn last_number(text: &str) -> Option<String> {
    let mut found = None;
    let mut number = String::new();
    for c in text.chars().chain([' ']) {
        match c {
            '0'..='9' => number.push(c),
            '.' if !number.is_empty() && !number.contains('.') => number.push(c),
            ',' if number.ends_with(|c: char| c.is_ascii_digit()) => {}
            _ => {
                if number.ends_with(|c: char| c.is_ascii_digit() || c == '.') {
                    found = Some(number.trim_end_matches('.').to_owned());
                }
                number.clear();
                if c == '-' {
                    number.push(c);
                }
            }
        }
    }
    found
}

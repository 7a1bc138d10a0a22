//! The prompts that the model was trained for, as experiments use them.

use std::path::Path;

use anyhow::{Context, ensure};
use domino::{TokenId, vocab::Tokenizer};

/// The prompts of a task in `experiments/train/prompts.jsonl`, as tokens. `root` is the repository's folder.
pub(crate) fn prompts(root: &Path, task: &str, tokenizer: &Tokenizer) -> anyhow::Result<Vec<Vec<TokenId>>> {
    let file = root.join("experiments/train/prompts.jsonl");
    let mut prompts = Vec::new();
    let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    for line in text.lines() {
        let line: serde_json::Value = serde_json::from_str(line)?;
        if line["task"] == task {
            prompts.push(tokenizer.encode(line["prompt"].as_str().context("a prompt")?, true)?);
        }
    }
    ensure!(!prompts.is_empty(), "no prompts for {task} in {}", file.display());
    Ok(prompts)
}

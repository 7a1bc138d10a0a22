//! Facts about a text that was generated, for its report.

use domino::decode::{DecodeStats, Generation};
use domino::{CompiledGrammar, TokenId, Vocabulary, proposer::ForcedText, vocab::Tokenizer};

/// Counts the bytes of a text that its grammar forced, but for their spelling. It is only for machines, since
/// it reads the text once more.
pub(super) fn forced_bytes(grammar: Option<&CompiledGrammar>, generation: &Generation) -> Option<usize> {
    ForcedText::count(&grammar?.constraint(), &generation.text)
}

/// The tokens that the tokenizer makes of the completion by itself, if there is one and they spell it.
pub(super) fn usual_tokens(
    tokenizer: &Tokenizer,
    vocabulary: &Vocabulary,
    generation: &Generation,
) -> Option<Vec<TokenId>> {
    let bytes = &generation.completion.as_ref()?.bytes;
    let tokens = tokenizer.encode(str::from_utf8(bytes).ok()?, false).ok()?;
    (vocabulary.concat(&tokens) == *bytes).then_some(tokens)
}

/// Tokens per pass of the model, the pass over the prompt included.
pub(super) fn tokens_per_pass(stats: &DecodeStats) -> f64 {
    ratio(stats.tokens, stats.passes)
}

/// The share of the drafted tokens that were drawn as well.
pub(super) fn acceptance(stats: &DecodeStats) -> f64 {
    ratio(stats.accepted, stats.drafted)
}

pub(super) fn ratio(part: usize, whole: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "counts of tokens are far below 2^52")]
    let ratio = part as f64 / whole.max(1) as f64;
    ratio
}

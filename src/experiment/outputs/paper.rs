//! Figures that the paper prints (arXiv 2403.06988), as far as they are shown beside ours.

/// Throughput of Domino with drafts relative to unconstrained, Mistral 7B (the paper's table 3), by the name
/// of the grammar here.
const THROUGHPUT: [(&str, f64); 5] =
    [("json", 0.96), ("gsm8k", 1.77), ("xml_person", 1.52), ("rpg", 1.30), ("c", 0.78)];

/// What differs between the paper's figures and ours.
pub(super) const DIFFERS: &str = "Paper: its figures are of Mistral 7B on a GPU, ours of the model and \
    machine above: neither ratios nor absolute numbers are comparable in hardware, and a small model's \
    passes gain more from masks that are known before.";

/// The paper's throughput for a grammar.
pub(super) fn throughput(grammar: &str) -> Option<f64> {
    THROUGHPUT.iter().find(|(name, _)| *name == grammar).map(|(_, throughput)| *throughput)
}

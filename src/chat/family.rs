//! Families of prompts, recognised by the marks of their templates.

/// The families, with the marks that all their templates have, the most specific first.
const FAMILIES: [(&str, &[&str]); 13] = [
    ("Harmony", &["<|channel|>", "<|start|>"]),
    ("Llama 4", &["<|header_start|>"]),
    ("Llama 3", &["<|start_header_id|>"]),
    ("DeepSeek", &["<\u{ff5c}User\u{ff5c}>"]),
    ("Gemma", &["<start_of_turn>"]),
    ("Command R", &["<|START_OF_TURN_TOKEN|>"]),
    ("Granite", &["<|start_of_role|>"]),
    ("ChatML", &["<|im_start|>"]),
    ("Phi", &["<|end|>", "<|assistant|>"]),
    ("Zephyr", &["<|assistant|>"]),
    ("Llama 2", &["[INST]", "<<SYS>>"]),
    ("Mistral", &["[INST]"]),
    ("Alpaca", &["### Instruction"]),
];

/// The family of a template; `None` if its marks are unknown. Linear.
pub(super) fn of(template: &str) -> Option<&'static str> {
    let has_all = |marks: &[&str]| marks.iter().all(|mark| template.contains(mark));
    FAMILIES.iter().find(|(_, marks)| has_all(marks)).map(|(name, _)| *name)
}

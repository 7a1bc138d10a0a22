//! The ways in which families of models write calls of functions.

use std::fmt;

/// A way to write calls: the one that the chat template of a family of models shows the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Spelling {
    /// `<tool_call>` with JSON inside: Hermes 2 Pro and later, Qwen 2.5 and 3 (as of 2025-04).
    Hermes,
    /// `<tool_call>` with `<function=...>` and `<parameter=...>` inside: Qwen3-Coder (2025-07).
    QwenCoder,
    /// JSON with `name` and `parameters`, perhaps after `<|python_tag|>`: Llama 3.1 to 3.3 (2024-12).
    Llama,
    /// `[TOOL_CALLS]` and a list in JSON: Mistral's tokenizers v3 and v7 (2024-05).
    Mistral,
    /// `[TOOL_CALLS]`, a name, `[ARGS]` and JSON: Mistral's tokenizers v11 and v13 (2025-05).
    MistralArgs,
    /// `<｜tool▁call▁begin｜>function` and JSON in a fence: DeepSeek V3 and R1 (2025-01).
    DeepSeek,
    /// `<｜tool▁call▁begin｜>` and JSON: DeepSeek V3.1 (2025-08).
    DeepSeekV31,
    /// Channels with recipients, in OpenAI's Harmony format: gpt-oss (2025-08).
    Harmony,
}

/// All spellings, with their names in flags and requests.
const NAMES: [(Spelling, &str); 8] = [
    (Spelling::Hermes, "hermes"),
    (Spelling::QwenCoder, "qwen3-coder"),
    (Spelling::Llama, "llama3"),
    (Spelling::Mistral, "mistral"),
    (Spelling::MistralArgs, "mistral-v11"),
    (Spelling::DeepSeek, "deepseek"),
    (Spelling::DeepSeekV31, "deepseek-v3.1"),
    (Spelling::Harmony, "harmony"),
];

impl Spelling {
    /// All spellings.
    pub fn all() -> impl Iterator<Item = Self> {
        NAMES.into_iter().map(|(spelling, _)| spelling)
    }

    /// The spelling of this name, as [`Display`](fmt::Display) writes it.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        NAMES.into_iter().find(|&(_, known)| known == name).map(|(spelling, _)| spelling)
    }

    /// The spelling that a chat template shows its model, recognised by its marks; `None` if the template
    /// shows none. Linear.
    #[must_use]
    pub fn of_chat_template(template: &str) -> Option<Self> {
        let shows = |mark: &str| template.contains(mark);
        if shows("<|channel|>") && shows("functions.") {
            Some(Self::Harmony)
        } else if shows("<｜tool▁call▁begin｜>") {
            Some(if shows("```json") { Self::DeepSeek } else { Self::DeepSeekV31 })
        } else if shows("[TOOL_CALLS]") {
            Some(if shows("[ARGS]") { Self::MistralArgs } else { Self::Mistral })
        } else if shows("<tool_call>") {
            Some(if shows("<function=") { Self::QwenCoder } else { Self::Hermes })
        } else if shows("\"parameters\"") && (shows("<|python_tag|>") || shows("<|eot_id|>")) {
            Some(Self::Llama)
        } else {
            None
        }
    }
}

impl fmt::Display for Spelling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.iter().find(|(spelling, _)| spelling == self).map_or("", |(_, name)| name);
        f.write_str(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_spellings_are_read_back() {
        for spelling in Spelling::all() {
            assert_eq!(Spelling::named(&spelling.to_string()), Some(spelling));
        }
        assert_eq!(Spelling::named("nothing"), None);
    }

    #[test]
    fn templates_show_their_spelling() {
        for (template, spelling) in [
            ("{% if tools %}<tool_call>\n{\"name\": <function-name>}", Spelling::Hermes),
            ("<tool_call>\n<function=example>\n<parameter=x>", Spelling::QwenCoder),
            ("Respond in the format {\"name\": n, \"parameters\": p}.<|eot_id|>", Spelling::Llama),
            ("{{ '[TOOL_CALLS] [' }}", Spelling::Mistral),
            ("{{ '[TOOL_CALLS]' + name + '[ARGS]' }}", Spelling::MistralArgs),
            ("<｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{}", Spelling::DeepSeek),
            ("<｜tool▁call▁begin｜>f<｜tool▁sep｜>{}", Spelling::DeepSeekV31),
            ("<|start|>assistant to=functions.f<|channel|>commentary", Spelling::Harmony),
        ] {
            assert_eq!(Spelling::of_chat_template(template), Some(spelling), "{template}");
        }
        assert_eq!(Spelling::of_chat_template("{{ message.content }}<|eot_id|>"), None);
    }
}

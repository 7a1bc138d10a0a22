//! The ways to write calls, as data: the texts around names and arguments.

use std::fmt;

use crate::grammar::json_schema::arguments::ArgumentMarks;

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
    /// `<｜DSML｜function_calls>` with `<｜DSML｜invoke ...>` inside: DeepSeek V3.2 (2025-12).
    DeepSeekV32,
    /// `<｜DSML｜tool_calls>` with `<｜DSML｜invoke ...>` inside: DeepSeek V4 (2026-04).
    DeepSeekV4,
    /// `<tool_call>` with a name, `<arg_key>` and `<arg_value>` inside: GLM 4.5 to 5 (2025-07).
    Glm,
    /// `<minimax:tool_call>` with `<invoke ...>` inside: MiniMax M2 (2025-10).
    MiniMax,
    /// `<|tool_call_begin|>`, a name with a number, and JSON: Kimi K2 (2025-07).
    Kimi,
    /// `<|tool_call>call:` and arguments with bare keys: Gemma 4 (2026-04).
    Gemma,
    /// `<start_function_call>call:` and arguments with bare keys: FunctionGemma (2025-12).
    FunctionGemma,
    /// `<|tool_call_start|>` and a list of calls in Python: LFM2 and LFM2.5 (2025-07).
    Lfm2,
    /// Channels with recipients, in OpenAI's Harmony format: gpt-oss (2025-08).
    Harmony,
}

/// A text of a layout.
type LayoutText = &'static str;

/// The texts of a spelling. Special tokens stand in them by their names, and `#` for a number.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallLayout {
    spelling: Spelling,
    /// The name in flags and requests.
    name: LayoutText,
    /// Texts that are all in a chat template of the spelling.
    shown: &'static [LayoutText],
    /// Texts that free text may not hold, so that it cannot be taken for a call.
    pub(super) marks: &'static [LayoutText],
    /// The texts before a function's name, between name and arguments, and behind the arguments.
    pub(super) call: [LayoutText; 3],
    /// Texts of which one begins the list of calls; without any, calls begin by themselves.
    pub(super) open: &'static [LayoutText],
    /// The text behind the list of calls.
    pub(super) close: LayoutText,
    /// The text between calls.
    pub(super) separator: LayoutText,
    /// A text between content and calls that belongs to neither.
    pub(super) lead: LayoutText,
    /// The style of arguments that are not plain JSON.
    pub(super) style: LayoutText,
}

/// The text between a function's name and its arguments in JSON.
const ARGUMENTS: &str = "\", \"arguments\": ";
/// The beginning and the end of a call within free text.
const TAGS: &[LayoutText] = &["<tool_call>", "</tool_call>"];
const DEEP_SEEK: &[LayoutText] = &["<｜tool▁calls▁begin｜>"];
const LLAMA: &[LayoutText] = &["<|python_tag|>", "{\"name\":"];
const DSML: &[LayoutText] = &["<｜DSML｜"];
const KIMI: &[LayoutText] = &["<|tool_calls_section_begin|>"];
const FUNCTION_GEMMA: &[LayoutText] = &["<start_function_call>"];

/// The special tokens in texts of layouts.
const TOKENS: &str = "<|python_tag|> [TOOL_CALLS] [ARGS] <｜tool▁calls▁begin｜> <｜tool▁call▁begin｜> \
                      <｜tool▁sep｜> <｜tool▁call▁end｜> <｜tool▁calls▁end｜> <|tool_calls_section_begin|> \
                      <|tool_call_begin|> <|tool_call_argument_begin|> <|tool_call_end|> \
                      <|tool_calls_section_end|> <|tool_call> <tool_call|> <start_function_call> \
                      <end_function_call> <|tool_call_start|>";

/// All spellings.
const LAYOUTS: [CallLayout; 16] = [
    CallLayout::new(Spelling::Hermes, "hermes", &["<tool_call>"], TAGS)
        .call("<tool_call>\n{\"name\": \"", ARGUMENTS, "}\n</tool_call>")
        .apart("\n", "\n"),
    CallLayout::new(Spelling::QwenCoder, "qwen3-coder", &["<tool_call>", "<function="], TAGS)
        .call("<tool_call>\n<function=", ">\n", "</function>\n</tool_call>")
        .apart("\n", "\n")
        .style("qwen_xml"),
    CallLayout::new(Spelling::Llama, "llama3", &["\"parameters\"", "<|eot_id|>"], LLAMA)
        .call("{\"name\": \"", "\", \"parameters\": ", "}")
        .list(&["<|python_tag|>", ""], "")
        .apart("; ", ""),
    CallLayout::new(Spelling::Mistral, "mistral", &["[TOOL_CALLS]"], &["[TOOL_CALLS]"])
        .call("{\"name\": \"", ARGUMENTS, "}")
        .list(&["[TOOL_CALLS] [", "[TOOL_CALLS]["], "]")
        .apart(", ", ""),
    CallLayout::new(Spelling::MistralArgs, "mistral-v11", &["[TOOL_CALLS]", "[ARGS]"], &["[TOOL_CALLS]"])
        .call("[TOOL_CALLS]", "[ARGS]", ""),
    CallLayout::new(Spelling::DeepSeek, "deepseek", &["<｜tool▁call▁begin｜>", "```json"], DEEP_SEEK)
        .call("<｜tool▁call▁begin｜>function<｜tool▁sep｜>", "\n```json\n", "\n```<｜tool▁call▁end｜>")
        .list(DEEP_SEEK, "<｜tool▁calls▁end｜>")
        .apart("\n", ""),
    CallLayout::new(Spelling::DeepSeekV31, "deepseek-v3.1", &["<｜tool▁call▁begin｜>"], DEEP_SEEK)
        .call("<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>")
        .list(DEEP_SEEK, "<｜tool▁calls▁end｜>"),
    CallLayout::new(Spelling::DeepSeekV32, "deepseek-v3.2", &["｜DSML｜", "function_calls>"], DSML)
        .dsml(&["<｜DSML｜function_calls>\n"], "</｜DSML｜function_calls>"),
    CallLayout::new(Spelling::DeepSeekV4, "deepseek-v4", &["｜DSML｜"], DSML)
        .dsml(&["<｜DSML｜tool_calls>\n"], "</｜DSML｜tool_calls>"),
    CallLayout::new(Spelling::Glm, "glm", &["<tool_call>", "<arg_key>"], TAGS)
        .call("<tool_call>", "", "</tool_call>")
        .apart("", "\n")
        .style("glm_xml"),
    CallLayout::new(Spelling::MiniMax, "minimax", &["<minimax:tool_call>"], &["<minimax:tool_call>"])
        .call("<invoke name=\"", "\">\n", "</invoke>\n")
        .list(&["<minimax:tool_call>\n"], "</minimax:tool_call>")
        .apart("", "\n")
        .style("minimax_xml"),
    CallLayout::new(Spelling::Kimi, "kimi", KIMI, KIMI)
        .call("<|tool_call_begin|>functions.", ":#<|tool_call_argument_begin|>", "<|tool_call_end|>")
        .list(KIMI, "<|tool_calls_section_end|>"),
    CallLayout::new(Spelling::Gemma, "gemma4", &["<|tool_call>call:"], &["<|tool_call>"])
        .call("<|tool_call>call:", "", "<tool_call|>")
        .style("gemma_4"),
    CallLayout::new(Spelling::FunctionGemma, "functiongemma", FUNCTION_GEMMA, FUNCTION_GEMMA)
        .call("<start_function_call>call:", "", "<end_function_call>")
        .style("function_gemma"),
    CallLayout::new(Spelling::Lfm2, "lfm2", &["List of tools: ", "<|im_start|>"], &["<|tool_call_start|>"])
        .list(&["<|tool_call_start|>["], "]<|tool_call_end|>")
        .apart(", ", "")
        .style("python"),
    CallLayout::new(Spelling::Harmony, "harmony", &["<|channel|>", "functions."], &[]),
];

impl CallLayout {
    const fn new(
        spelling: Spelling,
        name: LayoutText,
        shown: &'static [LayoutText],
        marks: &'static [LayoutText],
    ) -> Self {
        let (call, open) = ([""; 3], &[]);
        Self { spelling, name, shown, marks, call, open, close: "", separator: "", lead: "", style: "" }
    }

    const fn call(self, begin: LayoutText, then: LayoutText, end: LayoutText) -> Self {
        Self { call: [begin, then, end], ..self }
    }

    const fn list(self, open: &'static [LayoutText], close: LayoutText) -> Self {
        Self { open, close, ..self }
    }

    const fn apart(self, separator: LayoutText, lead: LayoutText) -> Self {
        Self { separator, lead, ..self }
    }

    const fn style(self, style: LayoutText) -> Self {
        Self { style, ..self }
    }

    const fn dsml(self, open: &'static [LayoutText], close: LayoutText) -> Self {
        self.call("<｜DSML｜invoke name=\"", "\">\n", "</｜DSML｜invoke>\n")
            .list(open, close)
            .apart("", "\n\n")
            .style("deepseek_xml")
    }

    /// The layout of a spelling.
    pub(super) fn of(spelling: Spelling) -> &'static Self {
        LAYOUTS.iter().find(|layout| layout.spelling == spelling).unwrap_or(&LAYOUTS[0])
    }

    /// The names of the special tokens in texts of layouts.
    pub(super) fn tokens() -> impl Iterator<Item = &'static str> {
        TOKENS.split(' ')
    }

    /// The marks of arguments between tags; `None` if they are JSON.
    pub(super) fn arguments(&self) -> Option<&'static ArgumentMarks> {
        ArgumentMarks::named(self.style)
    }
}

impl Spelling {
    /// All spellings.
    pub fn all() -> impl Iterator<Item = Self> {
        LAYOUTS.iter().map(|layout| layout.spelling)
    }

    /// The spelling of this name, as [`Display`](fmt::Display) writes it.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        LAYOUTS.iter().find(|layout| layout.name == name).map(|layout| layout.spelling)
    }

    /// The spelling that a chat template shows its model, recognised by its marks; `None` if the template
    /// shows none. Linear.
    #[must_use]
    pub fn of_chat_template(template: &str) -> Option<Self> {
        let shown = LAYOUTS.iter().filter(|layout| layout.shown.iter().all(|mark| template.contains(mark)));
        // Some have the marks of another and more.
        shown.max_by_key(|layout| layout.shown.len()).map(|layout| layout.spelling)
    }
}

impl fmt::Display for Spelling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(CallLayout::of(*self).name)
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
            (
                "{% set dsml = '｜DSML｜' %}<{{ dsml }}function_calls>{{ message.tool_calls }}",
                Spelling::DeepSeekV32,
            ),
            ("{% set dsml = '｜DSML｜' %}<{{ dsml }}tool_calls>", Spelling::DeepSeekV4),
            ("{{ '\\n<tool_call>' + tc.name }}<arg_key>{{ k }}</arg_key>", Spelling::Glm),
            ("{% set begin = '<minimax:tool_call>' %}<invoke name=", Spelling::MiniMax),
            ("<|tool_calls_section_begin|><|tool_call_begin|>{{ id }}", Spelling::Kimi),
            ("{{- '<|tool_call>call:' + function['name'] + '{' -}}", Spelling::Gemma),
            ("{{ '<start_function_call>call:' + f.name }}", Spelling::FunctionGemma),
            (
                "{{ 'List of tools: <|tool_list_start|>[' }}{{ '<|im_start|>' + message['role'] }}",
                Spelling::Lfm2,
            ),
            ("<|start|>assistant to=functions.f<|channel|>commentary", Spelling::Harmony),
        ] {
            assert_eq!(Spelling::of_chat_template(template), Some(spelling), "{template}");
        }
        assert_eq!(Spelling::of_chat_template("{{ message.content }}<|eot_id|>"), None);
    }
}

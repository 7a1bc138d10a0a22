//! The shipped model thinks between the marks of the models that do, and writes a value of a schema behind.

use std::path::Path;

use domino::{
    Compiler, Limits, Vocabulary,
    decode::{Decoder, Finish, Generation, Sampling},
    grammar::{
        Reasoning, Thought, ThoughtMarks,
        json_schema::{SchemaOptions, WhiteSpace},
    },
    model::candle::{CandleModel, LoadOptions},
    proposer::{CountProposer, DraftLength, DraftRecipe, Learning, Prior},
    vocab::Tokenizer,
};
use serde_json::Value;

/// Shortened chat templates, the ends of their prompts, and the places of thoughts: Qwen3, Qwen3.5 (whose
/// prompt opens the thought), DeepSeek R1, SmolLM3, Magistral, Gemma 4, gpt-oss and Command A.
const TEMPLATES: [(&str, &str, &str); 8] = [
    ("{{ content.split('</think>')[-1] }}", "<|im_start|>assistant\n", "optional"),
    ("{{ '<think>\\n' }}{{ x.split('</think>') }}", "<|im_start|>assistant\n<think>\n", "open"),
    ("{{ content.split('</think>')[-1] }}<｜Assistant｜><think>\n", "<｜Assistant｜><think>\n", "open"),
    ("<think>\n\n</think>\n", "<|im_start|>assistant\n<think>\n\n</think>\n", "off"),
    ("[SYSTEM_PROMPT][THINK]here[/THINK][/SYSTEM_PROMPT]", "[/INST]", "optional"),
    ("<|channel>thought\n<channel|>", "<|turn>model\n", "optional"),
    ("<|start|>assistant<|channel|>analysis<|message|>", "<|start|>assistant", "optional"),
    ("<|START_THINKING|><|END_THINKING|>", "<|CHATBOT_TOKEN|>", "optional"),
];

const SCHEMA: &str = r#"{"type": "object",
    "properties": {"n": {"enum": [1, 2, 3]}, "ok": {"type": "boolean"}},
    "required": ["n", "ok"], "additionalProperties": false}"#;

#[test]
fn values_come_behind_thoughts_of_all_forms() {
    let folder = Path::new(env!("DOMINO_ROOT")).join("models/domino-small");
    let vocabulary = Vocabulary::from_tokenizer_file(&folder).unwrap();
    let tokenizer = Tokenizer::from_tokenizer_file(&folder).unwrap();
    let mut model = Some(CandleModel::load(&folder, &LoadOptions::default()).unwrap());
    let options = SchemaOptions::default().with_white_space(WhiteSpace::Compact);
    let schema = options.parse(SCHEMA, &Limits::default()).unwrap().grammar;
    let compiler = Compiler::new(vocabulary.clone());
    let mut thoughts = 0;
    for (template, prompt, place) in TEMPLATES {
        let marks = ThoughtMarks::of_chat_template(template).unwrap();
        let shown = marks.behind(prompt.as_bytes());
        assert_eq!(shown.name(), place, "{template}");
        // A model of its own would think where it may: this one must be told.
        let reasoning = if shown == Reasoning::Optional { Reasoning::Required } else { shown };
        let specials = vocabulary.special_tokens().map(|(_, name)| name);
        let thought = Thought::new(&marks, reasoning, specials);
        let grammar = compiler.compile(&schema.after_thought(&thought, &Limits::default()).unwrap()).unwrap();
        let prompt = tokenizer.encode(prompt, true).unwrap();
        let mut write = |drafts: bool| -> Generation {
            let mut builder = Decoder::builder(model.take().unwrap())
                .vocabulary(vocabulary.clone())
                .constraint(grammar.constraint())
                .sampling(Sampling::with_temperature(0.8).unwrap())
                .seed(3);
            if drafts {
                let counts = CountProposer::new(Prior::new(&grammar), Learning::PerText);
                let recipe = DraftRecipe::standard(&tokenizer, &vocabulary, false);
                builder = builder.drafter(recipe.drafter(Box::new(counts), None, DraftLength::Auto));
            }
            let mut decoder = builder.build().unwrap();
            decoder.options_mut().max_new_tokens = 140;
            decoder.options_mut().reasoning_tokens = Some(40);
            decoder.options_mut().close = true;
            let made = decoder.generate(&prompt).unwrap();
            model = Some(decoder.into_model());
            made
        };
        let plain = write(false);
        let drafted = write(true);
        assert_eq!((&plain.tokens, &plain.text), (&drafted.tokens, &drafted.text), "{template}");
        let answer: Value = serde_json::from_slice(&plain.text[plain.answer_at..]).unwrap();
        assert!(answer["n"].is_u64() && answer["ok"].is_boolean(), "{answer}");
        let thought = plain.reasoning.unwrap_or_default();
        assert!(thought.is_empty() || reasoning != Reasoning::Off, "{template}");
        thoughts += usize::from(!thought.is_empty());
        assert_ne!(plain.finish, Finish::Thought, "{template}");
        assert_eq!(plain.stats.reasoning_tokens > 0, reasoning != Reasoning::Off, "{template}");
    }
    // The model was not trained for it, and may close a thought at once.
    assert!(thoughts >= 4, "{thoughts} thoughts");
}

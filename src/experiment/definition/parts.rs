//! Parts of a definition: grammars with their prompts, draft models, programs, and the order of turns.

use serde_json::{Value, json};

use super::{
    called::Functions,
    notation::notation,
    prompt::{AnswerPlace, Prompt},
};
use crate::grammar::Syntax;

/// Source of a draft model.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct DraftSource {
    /// The name, as one of [`Definition::models`](super::Definition::models).
    pub model: String,
    /// The format that its weights are quantised to while it is loaded, as `--quantize` names it.
    pub quantize: Option<String>,
    /// The format of its keys and values, as `--kv` names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kv: Option<String>,
}

/// A program that writes texts itself, as a method of its name.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct ExternalProgram {
    /// The method's name.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Does it constrain texts to the grammar? Otherwise it writes without one.
    pub grammar: bool,
}

/// Order in which the methods of a prompt and seed take turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Turns {
    /// Another method is first each time, so that drifts of a machine's speed fall on all alike.
    #[default]
    Rotate,
    /// Turns are in the order of the definition.
    Fixed,
}

/// A grammar and its prompts.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Task {
    /// The grammar's name in rows.
    pub name: String,
    /// The notation.
    pub syntax: Syntax,
    /// The grammar.
    pub grammar: String,
    /// The functions that it is made of, if it is one of calls. Chat templates show them to the model.
    pub functions: Option<Functions>,
    /// The same grammar in other notations, for engines that do not read the first one.
    pub also: Vec<(Syntax, String)>,
    /// Prompts that texts go on from.
    pub prompts: Vec<Prompt>,
    /// Prompts of warm-ups, one after the other; without any, the measured ones.
    pub warm_up_prompts: Vec<String>,
    /// Place of the answer in a text.
    pub answer: Option<AnswerPlace>,
}

impl Task {
    /// Returns the task as JSON, with grammars by their hashes.
    pub(super) fn to_json(&self) -> Value {
        let prompts: Vec<Value> = self
            .prompts
            .iter()
            .map(|Prompt { text, answer }| match answer {
                Some(answer) => json!({ "prompt": text, "answer": answer }),
                None => json!({ "prompt": text }),
            })
            .collect();
        let answer = match &self.answer {
            Some(AnswerPlace::Pointer(pointer)) => Some(pointer.as_str()),
            Some(AnswerPlace::LastNumber) => Some("last_number"),
            Some(AnswerPlace::Call(_)) => Some("call"),
            None => None,
        };
        let hash = |text: &str| blake3::hash(text.as_bytes()).to_hex().to_string();
        let mut value = json!({
            "name": self.name, "syntax": notation(self.syntax), "prompts": prompts, "answer": answer,
            "grammar": hash(&self.grammar),
        });
        if !self.warm_up_prompts.is_empty() {
            value["warm_up_prompts"] = json!(self.warm_up_prompts);
        }
        if let Some(functions) = &self.functions {
            value["functions"] = json!([functions.spelling.to_string(), hash(&functions.list)]);
        }
        if !self.also.is_empty() {
            let also: Vec<Value> =
                self.also.iter().map(|(syntax, text)| json!([notation(*syntax), hash(text)])).collect();
            value["also"] = json!(also);
        }
        value
    }

    /// Iterates over the grammar in all given notations, the one that this library reads first.
    pub fn notations(&self) -> impl Iterator<Item = (Syntax, &str)> {
        let also = self.also.iter().map(|(syntax, text)| (*syntax, text.as_str()));
        std::iter::once((self.syntax, self.grammar.as_str())).chain(also)
    }
}

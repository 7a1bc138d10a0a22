//! What an experiment is: a grid of grammars, models, methods and their settings, and prompts.
//!
//! Invariant: a [`Definition`] can be run: every number is in its range, no setting is without effect, and
//! files that it names were read.

mod check;
mod one_or_more;
mod raw;
mod shipped;

use std::path::Path;

use serde_json::{Value, json};

use self::raw::RawDefinition;
pub use self::shipped::{GrammarTexts, ShippedGrammars};
use super::{error::ExperimentError, methods::MethodName, row::K};
use crate::grammar::Syntax;

/// What definitions call the model that comes with the program.
pub const DEFAULT_MODEL: &str = "domino-small";

/// An experiment.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Definition {
    /// Its name; records lie in a folder of that name.
    pub name: String,
    /// What it asks, in a sentence.
    pub about: String,
    /// Models, as `--model` names them; [`DEFAULT_MODEL`] is the one that comes with the program.
    pub models: Vec<String>,
    /// The second model, for methods that draft by one.
    pub draft_model: Option<DraftSource>,
    /// What mistral.rs loads in place of the models, if it cannot load them: another file of the same one.
    pub mistralrs_model: Option<String>,
    /// Grammars with their prompts.
    pub tasks: Vec<Task>,
    /// Programs that write texts themselves.
    pub programs: Vec<Program>,
    /// What is compared.
    pub methods: Vec<MethodName>,
    /// Lookaheads, for methods that have one.
    pub k: Vec<K>,
    /// Lengths of drafts, for methods of a fixed one.
    pub s: Vec<usize>,
    /// Least acceptances of guesses, for the same.
    pub thresholds: Vec<f64>,
    /// Temperatures.
    pub temperatures: Vec<f64>,
    /// Seeds.
    pub seeds: Vec<u64>,
    /// Most tokens of a text.
    pub max_tokens: usize,
    /// Numbers of texts that counts are learnt from before they are frozen.
    pub warm_ups: Vec<usize>,
    /// Most new tokens of the passes whose cost is measured before all runs, if it is to be.
    pub passes: Option<usize>,
    /// If set, all token sequences of each grammar are [listed with their probabilities](super::enumeration),
    /// behind each prompt. This is the most beginnings of sequences that may take.
    pub enumerate: Option<usize>,
    /// Is every text also cut into the tokens that the model would choose for it (paper, algorithm 3)?
    pub retokenize: bool,
    /// How methods take turns.
    pub turns: Turns,
}

/// Where a draft model is from.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct DraftSource {
    /// Its name, as one of [`Definition::models`].
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
pub struct Program {
    /// The method's name.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Is it to keep texts to the grammar? Otherwise it writes without one.
    pub grammar: bool,
}

/// How the methods of a prompt and seed take turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Turns {
    /// Another one is first each time, so that what a machine does over time falls on all alike.
    #[default]
    Rotate,
    /// In the order of the definition.
    Fixed,
}

/// A grammar and its prompts.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Task {
    /// What rows call it.
    pub name: String,
    /// Its notation.
    pub syntax: Syntax,
    /// The grammar.
    pub grammar: String,
    /// The same grammar in other notations, for engines that do not read the first one.
    pub also: Vec<(Syntax, String)>,
    /// What texts go on from.
    pub prompts: Vec<Prompt>,
    /// Where a text has its answer.
    pub answer: Option<AnswerPlace>,
}

/// A prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Prompt {
    /// What the text goes on from.
    pub text: String,
    /// The right answer, if there is one.
    pub answer: Option<String>,
}

/// Where a text has its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerPlace {
    /// The value at a JSON pointer.
    Pointer(String),
    /// The last number in the text.
    LastNumber,
}

/// A method with its settings: a column of the grid.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Variant {
    /// The method.
    pub method: MethodName,
    /// Its lookahead, if it has one.
    pub k: Option<K>,
    /// The length of its drafts, if that is fixed.
    pub s: Option<usize>,
    /// The least acceptance of its guesses, if that is fixed.
    pub threshold: Option<f64>,
    /// Texts that it learns from before, if it learns and the definition has several numbers of them.
    pub warm_ups: Option<usize>,
}

impl Definition {
    /// Reads a definition from a file in TOML, and what it names: grammars and prompts, by paths from its
    /// folder. `quick`: as its table `[quick]` changes it.
    ///
    /// # Errors
    /// If a file cannot be read, a key is unknown or has no such value (with line and column), or settings
    /// contradict each other.
    pub fn read(path: &Path, quick: bool, shipped: ShippedGrammars<'_>) -> Result<Self, ExperimentError> {
        let text = std::fs::read_to_string(path).map_err(ExperimentError::io("read", path))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(&text);
        Self::parse(text, &path.display().to_string(), folder, quick, shipped)
    }

    /// As [`read`](Self::read), from a text; `name` is what errors call it, and files lie in `folder`.
    ///
    /// # Errors
    /// Those of [`read`](Self::read).
    pub fn parse(
        text: &str,
        name: &str,
        folder: &Path,
        quick: bool,
        shipped: ShippedGrammars<'_>,
    ) -> Result<Self, ExperimentError> {
        let raw = RawDefinition::parse(text, name)?;
        check::resolve(raw, name, folder, quick, shipped)
    }

    /// The columns of the grid, in the order of the definition.
    #[must_use]
    pub fn variants(&self) -> Vec<Variant> {
        let mut variants = Vec::new();
        let several: Vec<Option<usize>> = match &self.warm_ups[..] {
            [_] => vec![None],
            several => several.iter().copied().map(Some).collect(),
        };
        for method in &self.methods {
            let ks: Vec<Option<K>> = match method {
                MethodName::Naive => vec![Some(K::Terminals(0))],
                // Priors that come with models know no lookahead.
                MethodName::Llguidance | MethodName::Shipped => vec![Some(K::Infinite)],
                MethodName::Mistralrs(way) => vec![way.is_constrained().then_some(K::Infinite)],
                MethodName::Program(name) => {
                    let constrained = self.program(name).is_some_and(|program| program.grammar);
                    vec![constrained.then_some(K::Infinite)]
                }
                _ if method.takes_k() => self.k.iter().copied().map(Some).collect(),
                _ => vec![None],
            };
            let warm_ups = if method.warms_up() { &several[..] } else { &[None] };
            for (k, &warm_ups) in ks.iter().flat_map(|k| warm_ups.iter().map(move |n| (*k, n))) {
                let any = Variant { method: method.clone(), k, s: None, threshold: None, warm_ups };
                if !method.takes_s() {
                    variants.push(any);
                    continue;
                }
                for &s in &self.s {
                    let each = self.thresholds.iter();
                    variants.extend(each.map(|&threshold| Variant {
                        s: Some(s),
                        threshold: Some(threshold),
                        ..any.clone()
                    }));
                }
            }
        }
        variants
    }

    /// The names of methods that another engine keeps to the grammar.
    pub(super) fn elsewhere(&self) -> Vec<String> {
        let methods = self.methods.iter().filter(|method| method.is_constrained_elsewhere());
        methods.map(ToString::to_string).collect()
    }

    /// A program by its name.
    pub(super) fn program(&self, name: &str) -> Option<&Program> {
        self.programs.iter().find(|program| program.name == name)
    }

    /// How many runs there are.
    #[must_use]
    pub fn runs(&self) -> usize {
        let prompts: usize = self.tasks.iter().map(|task| task.prompts.len()).sum();
        prompts * self.models.len() * self.temperatures.len() * self.seeds.len() * self.variants().len()
    }

    /// All that decides what is generated and measured, for records: grammars by the hash of their text,
    /// prompts in full.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let tasks: Vec<Value> = self.tasks.iter().map(Task::to_json).collect();
        let methods: Vec<String> = self.methods.iter().map(ToString::to_string).collect();
        // One number stands for itself, as it did before there could be several.
        let warm_ups = match &self.warm_ups[..] {
            [one] => json!(one),
            several => json!(several),
        };
        let mut value = json!({
            "name": self.name, "about": self.about, "models": self.models, "grammars": tasks,
            "methods": methods, "k": self.k, "s": self.s, "threshold": self.thresholds,
            "temperatures": self.temperatures, "seeds": self.seeds, "max_tokens": self.max_tokens,
            "warm_ups": warm_ups, "turns": self.turns,
        });
        if let Some(passes) = self.passes {
            value["passes"] = json!(passes);
        }
        if let Some(most) = self.enumerate {
            value["enumerate"] = json!(most);
        }
        if self.retokenize {
            value["retokenize"] = json!(true);
        }
        if let Some(model) = &self.mistralrs_model {
            value["mistralrs_model"] = json!(model);
        }
        if !self.programs.is_empty() {
            value["programs"] = json!(self.programs);
        }
        // Definitions without one are as they were before there were any.
        if let Some(draft) = &self.draft_model {
            value["draft_model"] = json!(draft);
        }
        value
    }

    /// What decides the runs of a definition [in records](Self::to_json): all but the texts of its grammars,
    /// which are empty. `None` if it is not in that form.
    pub(super) fn outline(value: &Value) -> Option<Self> {
        fn of<T: serde::de::DeserializeOwned>(value: &Value, key: &str) -> Option<T> {
            serde_json::from_value(value.get(key)?.clone()).ok()
        }
        let list = |key: &str| value.get(key)?.as_array();
        let task = |value: &Value| {
            let prompts = value.get("prompts")?.as_array()?;
            let prompt = || Prompt { text: String::new(), answer: None };
            Some(Task {
                name: of(value, "name")?,
                syntax: Syntax::Gbnf,
                grammar: String::new(),
                also: Vec::new(),
                prompts: prompts.iter().map(|_| prompt()).collect(),
                answer: None,
            })
        };
        let programs: Vec<Program> = of(value, "programs").unwrap_or_default();
        Some(Self {
            name: of(value, "name")?,
            about: String::new(),
            models: of(value, "models")?,
            draft_model: None,
            mistralrs_model: None,
            tasks: list("grammars")?.iter().map(task).collect::<Option<_>>()?,
            methods: list("methods")?
                .iter()
                .map(|name| MethodName::of(name.as_str()?, &programs).ok())
                .collect::<Option<_>>()?,
            programs,
            k: of(value, "k")?,
            s: of(value, "s")?,
            thresholds: of(value, "threshold")?,
            temperatures: of(value, "temperatures")?,
            seeds: of(value, "seeds")?,
            max_tokens: 0,
            warm_ups: of(value, "warm_ups").or_else(|| of(value, "warm_ups").map(|one| vec![one]))?,
            passes: of(value, "passes"),
            enumerate: of(value, "enumerate"),
            retokenize: of(value, "retokenize").unwrap_or_default(),
            turns: of(value, "turns")?,
        })
    }

    /// BLAKE3 of [`to_json`](Self::to_json), in hexadecimal.
    #[must_use]
    pub fn hash(&self) -> String {
        blake3::hash(self.to_json().to_string().as_bytes()).to_hex().to_string()
    }
}

impl Task {
    fn to_json(&self) -> Value {
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
            None => None,
        };
        let hash = |text: &str| blake3::hash(text.as_bytes()).to_hex().to_string();
        let mut value = json!({
            "name": self.name, "syntax": notation(self.syntax), "prompts": prompts, "answer": answer,
            "grammar": hash(&self.grammar),
        });
        if !self.also.is_empty() {
            let also: Vec<Value> =
                self.also.iter().map(|(syntax, text)| json!([notation(*syntax), hash(text)])).collect();
            value["also"] = json!(also);
        }
        value
    }

    /// The grammar in all notations that there are, the one that we read first.
    pub fn notations(&self) -> impl Iterator<Item = (Syntax, &str)> {
        let also = self.also.iter().map(|(syntax, text)| (*syntax, text.as_str()));
        std::iter::once((self.syntax, self.grammar.as_str())).chain(also)
    }
}

/// What definitions and records call a notation.
pub(super) fn notation(syntax: Syntax) -> &'static str {
    match syntax {
        Syntax::Gbnf => "gbnf",
        Syntax::Regex => "regex",
        Syntax::Ebnf => "ebnf",
        Syntax::Lark => "lark",
        Syntax::LarkGreedy => "lark_greedy",
        Syntax::JsonSchema => "json_schema",
        Syntax::StructuralTag => "structural_tag",
    }
}

impl Prompt {
    /// Is the answer of `text` at `place` the right one? `None` if there is no right one. Numbers are
    /// compared as such.
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
        };
        let number = |text: &str| text.trim().parse::<f64>().ok();
        Some(found.is_some_and(|found| match (number(&found), number(right)) {
            (Some(found), Some(right)) => (found - right).abs() <= 1e-9 * right.abs().max(1.0),
            _ => found.trim() == right,
        }))
    }
}

/// The last number in a text, thousands' commas left out.
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

#[cfg(test)]
mod tests;

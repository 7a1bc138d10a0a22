//! Definitions of experiments: a grid of grammars, models, methods and their settings, and prompts.
//!
//! Invariant: a [`Definition`] can be run: every number is in its range, no setting is without effect, and
//! the files that it names were read.

mod check;
mod parts;
mod raw;
mod source;
mod tasks;

use std::path::Path;

pub use parts::{
    AnswerPlace, DraftSource, ExternalProgram, Functions, MethodChoice, Prompt, Task, Turns, WarmUpPrompts,
};
use serde_json::{Value, json};
pub use source::{GrammarTexts, ShippedGrammars};

use self::raw::RawDefinition;
use super::{error::ExperimentError, methods::MethodName, row::K};
use crate::grammar::Syntax;

/// The name in definitions of the model that comes with the program.
pub const DEFAULT_MODEL: &str = "domino-small";

/// An experiment.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Definition {
    /// The experiment's name; records lie in a folder of that name.
    pub name: String,
    /// The question, in a sentence.
    pub about: String,
    /// Models, as `--model` names them; [`DEFAULT_MODEL`] is the one that comes with the program.
    pub models: Vec<String>,
    /// The second model, for methods that draft by one.
    pub draft_model: Option<DraftSource>,
    /// The file that mistral.rs loads in place of the models, if it cannot load them: another file of the
    /// same one.
    pub mistralrs_model: Option<String>,
    /// Grammars with their prompts.
    pub tasks: Vec<Task>,
    /// Programs that write texts themselves.
    pub programs: Vec<ExternalProgram>,
    /// The methods that are compared.
    pub methods: Vec<MethodChoice>,
    /// Lookaheads, for methods that have one.
    pub k: Vec<K>,
    /// Lengths of drafts, for methods of a fixed one.
    pub s: Vec<usize>,
    /// Least acceptances of guesses, for methods of a fixed draft length.
    pub thresholds: Vec<f64>,
    /// Temperatures.
    pub temperatures: Vec<f64>,
    /// Seeds.
    pub seeds: Vec<u64>,
    /// Are prompts put into the model's chat template, as what a user says? Otherwise they stay as they are.
    pub chat: bool,
    /// Text that the system says there, before the user.
    pub system: Option<String>,
    /// Most tokens of a text.
    pub max_tokens: usize,
    /// Numbers of texts that counts are learnt from before they are frozen.
    pub warm_ups: Vec<usize>,
    /// Prompts of these texts.
    pub warm_up_prompts: WarmUpPrompts,
    /// Strings that end a text at their first occurrence. The text is cut, and judged, before it.
    pub stop: Vec<String>,
    /// Is the first complete text of the language judged, white space before it left out, and what comes
    /// behind it not? Otherwise the whole text is.
    pub first_value: bool,
    /// Is what the cache still holds of a prompt not read again? The times of prompts then mean nothing.
    pub prompts_once: bool,
    /// Most new tokens of the passes whose cost is measured before all runs, if it is to be.
    pub passes: Option<usize>,
    /// If set, all token sequences of each grammar are [listed with their probabilities](super::enumeration),
    /// behind each prompt. This is the greatest number of prefixes that the listing may visit.
    pub enumerate: Option<usize>,
    /// Is every text also cut into the tokens that the model would choose for it (paper, algorithm 3)?
    pub retokenize: bool,
    /// The order in which methods take turns.
    pub turns: Turns,
}

/// A method with its settings: a column of the grid.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Variant {
    /// The method.
    pub method: MethodName,
    /// The method's lookahead, if it has one.
    pub k: Option<K>,
    /// The length of its drafts, if that is fixed.
    pub s: Option<usize>,
    /// The least acceptance of its guesses, if that is fixed.
    pub threshold: Option<f64>,
    /// Number of texts that it learns from first, if it learns and the definition has several numbers of
    /// them.
    pub warm_ups: Option<usize>,
    /// Most tokens of the thought before its texts, if one comes first.
    pub think: Option<usize>,
}

impl Definition {
    /// Reads a definition from a file in TOML, with the grammars and prompts that it names by paths from its
    /// folder. With `quick` its table `[quick]` applies.
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

    /// Reads a definition like [`read`](Self::read), from a text; `name` is its name in errors, and files lie
    /// in `folder`.
    ///
    /// # Errors
    /// All of [`read`](Self::read).
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
        for MethodChoice { name: method, think } in &self.methods {
            let think = *think;
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
                let any = Variant { method: method.clone(), k, s: None, threshold: None, warm_ups, think };
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

    /// Lists the names of methods that another engine constrains.
    pub(super) fn elsewhere(&self) -> Vec<String> {
        let methods = self.method_names().filter(|method| method.is_constrained_elsewhere());
        methods.map(ToString::to_string).collect()
    }

    /// The methods without their settings.
    pub(super) fn method_names(&self) -> impl Iterator<Item = &MethodName> {
        self.methods.iter().map(|method| &method.name)
    }

    /// Does a thought come before the texts of a method?
    #[must_use]
    pub fn thinks(&self) -> bool {
        self.methods.iter().any(|method| method.think.is_some())
    }

    /// A program by its name.
    pub(super) fn program(&self, name: &str) -> Option<&ExternalProgram> {
        self.programs.iter().find(|program| program.name == name)
    }

    /// Number of runs.
    #[must_use]
    pub fn runs(&self) -> usize {
        let prompts: usize = self.tasks.iter().map(|task| task.prompts.len()).sum();
        prompts * self.models.len() * self.temperatures.len() * self.seeds.len() * self.variants().len()
    }

    /// Serialises all that decides what is generated and measured, for records: grammars by the hash of their
    /// text, prompts in full.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let tasks: Vec<Value> = self.tasks.iter().map(Task::to_json).collect();
        let methods: Vec<Value> = self.methods.iter().map(MethodChoice::to_json).collect();
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
        if self.method_names().any(MethodName::warms_up) {
            value["warm_up_prompts"] = json!(self.warm_up_prompts);
        }
        if self.chat {
            value["chat"] = json!(true);
        }
        if let Some(system) = &self.system {
            value["system"] = json!(system);
        }
        if !self.stop.is_empty() {
            value["stop"] = json!(self.stop);
        }
        if self.first_value {
            value["first_value"] = json!(true);
        }
        if self.prompts_once {
            value["prompts_once"] = json!(true);
        }
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

    /// Reads back the runs of a definition [in records](Self::to_json): everything except the texts of its
    /// grammars, which are empty. `None` if it is not in that form.
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
                functions: None,
                also: Vec::new(),
                prompts: prompts.iter().map(|_| prompt()).collect(),
                warm_up_prompts: Vec::new(),
                answer: None,
            })
        };
        let programs: Vec<ExternalProgram> = of(value, "programs").unwrap_or_default();
        Some(Self {
            name: of(value, "name")?,
            about: String::new(),
            models: of(value, "models")?,
            draft_model: None,
            mistralrs_model: None,
            tasks: list("grammars")?.iter().map(task).collect::<Option<_>>()?,
            methods: list("methods")?
                .iter()
                .map(|method| MethodChoice::of_record(method, &programs))
                .collect::<Option<_>>()?,
            programs,
            k: of(value, "k")?,
            s: of(value, "s")?,
            thresholds: of(value, "threshold")?,
            temperatures: of(value, "temperatures")?,
            seeds: of(value, "seeds")?,
            chat: of(value, "chat").unwrap_or_default(),
            system: of(value, "system"),
            max_tokens: 0,
            warm_ups: of(value, "warm_ups").or_else(|| of(value, "warm_ups").map(|one| vec![one]))?,
            warm_up_prompts: of(value, "warm_up_prompts").unwrap_or_default(),
            stop: of(value, "stop").unwrap_or_default(),
            first_value: of(value, "first_value").unwrap_or_default(),
            prompts_once: of(value, "prompts_once").unwrap_or_default(),
            passes: of(value, "passes"),
            enumerate: of(value, "enumerate"),
            retokenize: of(value, "retokenize").unwrap_or_default(),
            turns: of(value, "turns")?,
        })
    }

    /// Returns the BLAKE3 of [`to_json`](Self::to_json), in hexadecimal.
    #[must_use]
    pub fn hash(&self) -> String {
        blake3::hash(self.to_json().to_string().as_bytes()).to_hex().to_string()
    }
}

#[cfg(test)]
mod tests;

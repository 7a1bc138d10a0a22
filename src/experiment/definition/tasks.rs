//! Reads the grammars and prompts that a definition names.

use std::path::Path;

use super::{
    notation::of_ending,
    parts::Task,
    prompt::{AnswerPlace, Prompt, WarmUpPrompts, set_apart},
    raw::{RawPromptFile, RawPrompts, RawSyntax, RawTask, RawWarmUps},
    shipped,
    source::Source,
};
use crate::{experiment::error::ExperimentError, grammar::Syntax};

/// Number and prompts of warm-ups, as far as a definition has them.
#[derive(Clone, Copy)]
pub(super) struct WarmUpSource<'a> {
    /// Greatest number of texts that a method learns from; 0 if none learns.
    pub(super) warm_ups: usize,
    /// Prompts that the definition has for all grammars.
    pub(super) prompts: Option<&'a RawWarmUps>,
}

impl WarmUpSource<'_> {
    pub(super) fn way(self) -> WarmUpPrompts {
        match self.prompts {
            Some(RawWarmUps::Way(way)) => *way,
            _ => WarmUpPrompts::Apart,
        }
    }

    /// Returns the prompts for warm-ups of a grammar, which may be taken from the measured ones.
    fn of(
        self,
        source: Source<'_>,
        own: Option<&RawWarmUps>,
        prompts: &mut Vec<Prompt>,
        name: &str,
    ) -> Result<Vec<String>, ExperimentError> {
        if self.warm_ups == 0 {
            return Ok(Vec::new());
        }
        if let Some(RawWarmUps::Way(_)) = own {
            return Err(source
                .wrong(format!("`warm_up_prompts` of grammar {name:?} is a word"))
                .with_hint("say it for the whole definition; a grammar can have prompts"));
        }
        let found = match own.or(self.prompts) {
            Some(RawWarmUps::Own(raw)) => prompts_of(source, raw, name)?,
            Some(RawWarmUps::Way(WarmUpPrompts::Measured)) => return Ok(Vec::new()),
            _ => return Ok(set_apart(prompts, self.warm_ups)),
        };
        match &found[..] {
            [] => Err(source.wrong(format!("`warm_up_prompts` of grammar {name:?} is empty"))),
            some => Ok(some.iter().map(|prompt| prompt.text.clone()).collect()),
        }
    }
}

pub(super) fn tasks(
    source: Source<'_>,
    raw: Vec<RawTask>,
    prompts: Option<&RawPrompts>,
    apart: WarmUpSource<'_>,
) -> Result<Vec<Task>, ExperimentError> {
    raw.into_iter().map(|raw| task(source, raw, prompts, apart)).collect()
}

fn prompts_of(source: Source<'_>, raw: &RawPrompts, name: &str) -> Result<Vec<Prompt>, ExperimentError> {
    match raw {
        RawPrompts::Inline(texts) => {
            Ok(texts.iter().map(|text| Prompt { text: text.clone(), answer: None }).collect())
        }
        RawPrompts::File(file) => prompts_of_file(source, file, name),
    }
}

/// Builds a task of a definition: its grammar, prompts and answers.
fn task(
    source: Source<'_>,
    raw: RawTask,
    prompts: Option<&RawPrompts>,
    apart: WarmUpSource<'_>,
) -> Result<Task, ExperimentError> {
    let RawTask { name, file, syntax, also, prompts: own, warm_up_prompts, answer } = raw;
    let (syntax, grammar) = match (file, syntax) {
        (Some(file), syntax) => {
            let path = source.folder.join(&file);
            let syntax = syntax.map_or_else(|| of_ending(&path), notation);
            (syntax, text_of_grammar(syntax, &path)?)
        }
        (None, None) => {
            let unknown = || source.wrong(format!("there is no grammar {name:?}"));
            let text = source.shipped.text(&name);
            let text = text.ok_or_else(|| unknown().with_hint(shipped::advice(source.shipped, &name)))?;
            (Syntax::Gbnf, text.to_owned())
        }
        (None, Some(_)) => {
            return Err(source.wrong(format!("grammar {name:?} has a `syntax`, and no `file` that is in it")));
        }
    };
    let answer = match answer.as_deref() {
        None => None,
        Some("last_number") => Some(AnswerPlace::LastNumber),
        Some(pointer) if pointer.starts_with('/') => Some(AnswerPlace::Pointer(pointer.to_owned())),
        Some(other) => {
            return Err(source
                .wrong(format!("`answer` of grammar {name:?} is {other:?}"))
                .with_hint("use a JSON pointer such as \"/answer\", or \"last_number\""));
        }
    };
    let mut prompts = match own.as_ref().or(prompts) {
        Some(prompts) => prompts_of(source, prompts, &name)?,
        None => {
            return Err(source
                .wrong(format!("grammar {name:?} has no prompts"))
                .with_hint("give it `prompts`, or the definition, for all grammars"));
        }
    };
    if answer.is_some() && prompts.iter().all(|prompt| prompt.answer.is_none()) {
        return Err(source
            .wrong(format!("grammar {name:?} says where answers are, and its prompts have none"))
            .with_hint("prompts in a file can have an \"answer\""));
    }
    let also = also.iter().map(|file| {
        let path = source.folder.join(file);
        Ok::<_, ExperimentError>((of_ending(&path), text_of_grammar(of_ending(&path), &path)?))
    });
    let also = also.collect::<Result<_, _>>()?;
    let warm_up_prompts = apart.of(source, warm_up_prompts.as_ref(), &mut prompts, &name)?;
    Ok(Task { name, syntax, grammar, also, prompts, warm_up_prompts, answer })
}

/// Reads the text of a grammar from a file.
fn text_of_grammar(syntax: Syntax, path: &Path) -> Result<String, ExperimentError> {
    let content = std::fs::read_to_string(path).map_err(ExperimentError::io("read", path))?;
    Ok(syntax.text_of_file(&content).into_owned())
}

fn notation(syntax: RawSyntax) -> Syntax {
    match syntax {
        RawSyntax::Gbnf => Syntax::Gbnf,
        RawSyntax::Regex => Syntax::Regex,
        RawSyntax::Ebnf => Syntax::Ebnf,
        RawSyntax::Lark => Syntax::Lark,
        RawSyntax::LarkGreedy => Syntax::LarkGreedy,
        RawSyntax::JsonSchema => Syntax::JsonSchema,
        RawSyntax::StructuralTag => Syntax::StructuralTag,
    }
}

/// Reads the prompts for this grammar from a file of JSON lines.
fn prompts_of_file(
    source: Source<'_>,
    file: &RawPromptFile,
    grammar: &str,
) -> Result<Vec<Prompt>, ExperimentError> {
    #[derive(serde::Deserialize)]
    struct Line {
        #[serde(default)]
        task: Option<String>,
        prompt: String,
        #[serde(default)]
        answer: Option<serde_json::Value>,
    }
    let path = source.folder.join(&file.file);
    let text = std::fs::read_to_string(&path).map_err(ExperimentError::io("read", &path))?;
    let form = file.form.as_deref().unwrap_or(grammar);
    let mut prompts = Vec::new();
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(&text);
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let Line { task, prompt, answer } = serde_json::from_str(line).map_err(|error| {
            ExperimentError::definition(format!("{}:{number}", path.display()), error.to_string())
        })?;
        if task.is_none_or(|task| task == form) {
            let answer = answer.map(|answer| match answer {
                serde_json::Value::String(text) => text,
                other => other.to_string(),
            });
            prompts.push(Prompt { text: prompt, answer });
        }
    }
    prompts.truncate(file.most.unwrap_or(usize::MAX));
    if prompts.is_empty() {
        return Err(source.wrong(format!("{} has no prompts of the form {form:?}", path.display())));
    }
    Ok(prompts)
}

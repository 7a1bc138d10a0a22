//! Reads the grammars and prompts that a definition names.

use std::path::Path;

use super::parts::{AnswerPlace, Functions, Prompt, Task, WarmUpPrompts, set_apart};
use super::raw::{RawPromptFile, RawPrompts, RawSyntax, RawTask, RawWarmUps};
use super::source::{self, DefinitionSource, of_ending};
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
        source: DefinitionSource<'_>,
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
    source: DefinitionSource<'_>,
    raw: Vec<RawTask>,
    prompts: Option<&RawPrompts>,
    apart: WarmUpSource<'_>,
) -> Result<Vec<Task>, ExperimentError> {
    raw.into_iter().map(|raw| task(source, raw, prompts, apart)).collect()
}

fn prompts_of(
    source: DefinitionSource<'_>,
    raw: &RawPrompts,
    name: &str,
) -> Result<Vec<Prompt>, ExperimentError> {
    match raw {
        RawPrompts::Inline(texts) => {
            Ok(texts.iter().map(|text| Prompt { text: text.clone(), answer: None }).collect())
        }
        RawPrompts::File(file) => prompts_of_file(source, file, name),
    }
}

/// Shortens the name of a shipped grammar of the paper: prompts, rows and tables call `paper/json` just
/// `json`.
pub(super) fn short_name(name: String) -> String {
    match name.strip_prefix("paper/") {
        Some(short) => short.to_owned(),
        None => name,
    }
}

/// Builds a task of a definition: its grammar, prompts and answers.
fn task(
    source: DefinitionSource<'_>,
    raw: RawTask,
    prompts: Option<&RawPrompts>,
    apart: WarmUpSource<'_>,
) -> Result<Task, ExperimentError> {
    let (syntax, grammar, functions) = grammar_of(source, &raw)?;
    let is_shipped = raw.file.is_none() && raw.tools.is_none();
    let RawTask { name, also, prompts: own, warm_up_prompts, answer, .. } = raw;
    let name = if is_shipped { short_name(name) } else { name };
    let answer = answer_place(source, answer.as_deref(), functions.as_ref(), &name)?;
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
    Ok(Task { name, syntax, grammar, functions, also, prompts, warm_up_prompts, answer })
}

/// A grammar with its notation: of a file, of a list of functions, or one that needs no file.
fn grammar_of(
    source: DefinitionSource<'_>,
    raw: &RawTask,
) -> Result<(Syntax, String, Option<Functions>), ExperimentError> {
    let RawTask { name, file, syntax, tools, spelling, .. } = raw;
    if let Some(tools) = tools {
        if file.is_some() || syntax.is_some() {
            return Err(source
                .wrong(format!("grammar {name:?} has `tools`, and a `file` or `syntax` beside"))
                .with_hint("the grammar of calls is made of the functions: leave one of them out"));
        }
        let functions = Functions::read(source, &source.folder.join(tools), spelling.as_deref(), name)?;
        return Ok((Syntax::StructuralTag, functions.tag(name)?, Some(functions)));
    }
    if spelling.is_some() {
        return Err(source
            .wrong(format!("grammar {name:?} has a `spelling` of calls, and no `tools`"))
            .with_hint("leave it out, or name a file of functions: tools = \"FILE.json\""));
    }
    match (file, syntax) {
        (Some(file), syntax) => {
            let path = source.folder.join(file);
            let syntax = syntax.map_or_else(|| of_ending(&path), notation);
            Ok((syntax, text_of_grammar(syntax, &path)?, None))
        }
        (None, None) => {
            let unknown = || source.wrong(format!("there is no grammar {name:?}"));
            let text = source.shipped.text(name);
            let text = text.ok_or_else(|| unknown().with_hint(source::advice(source.shipped, name)))?;
            Ok((Syntax::Gbnf, text.to_owned(), None))
        }
        (None, Some(_)) => {
            Err(source.wrong(format!("grammar {name:?} has a `syntax`, and no `file` that is in it")))
        }
    }
}

/// Place of the answer in texts of a grammar, as the definition says it.
fn answer_place(
    source: DefinitionSource<'_>,
    said: Option<&str>,
    functions: Option<&Functions>,
    grammar: &str,
) -> Result<Option<AnswerPlace>, ExperimentError> {
    let wrong = |what: String, hint: &str| Err(source.wrong(what).with_hint(hint));
    match (said, functions) {
        (None, _) => Ok(None),
        (Some("last_number"), _) => Ok(Some(AnswerPlace::LastNumber)),
        (Some("call"), Some(functions)) => Ok(Some(AnswerPlace::Call(functions.clone()))),
        (Some("call"), None) => wrong(
            format!("`answer` of grammar {grammar:?} is \"call\", and it has no `tools`"),
            "name a file of functions: tools = \"FILE.json\"",
        ),
        (Some(pointer), _) if pointer.starts_with('/') => Ok(Some(AnswerPlace::Pointer(pointer.to_owned()))),
        (Some(other), _) => wrong(
            format!("`answer` of grammar {grammar:?} is {other:?}"),
            "use a JSON pointer such as \"/answer\", \"last_number\", or \"call\" with `tools`",
        ),
    }
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
    source: DefinitionSource<'_>,
    file: &RawPromptFile,
    grammar: &str,
) -> Result<Vec<Prompt>, ExperimentError> {
    #[derive(serde::Deserialize)]
    struct PromptLine {
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
        let PromptLine { task, prompt, answer } = serde_json::from_str(line).map_err(|error| {
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

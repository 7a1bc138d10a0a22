//! What a definition means, and what contradicts itself in it.

use std::{collections::HashSet, hash::Hash, path::Path};

use super::{
    AnswerPlace, DEFAULT_MODEL, Definition, DraftSource, ExperimentError, K, MethodName, Program, Prompt,
    ShippedGrammars, Syntax, Task,
    raw::{RawDefinition, RawDraft, RawProgram, RawPromptFile, RawPrompts, RawQuick, RawSyntax, RawTask},
    shipped,
};
use crate::{decode::Sampling, experiment::methods::Refinement, proposer::DraftLength};

/// Tokens of a text, if the definition says nothing: the paper's.
const MAX_TOKENS: usize = 128;
/// Warm-ups, if the definition says nothing: the paper's.
const WARM_UPS: usize = 10;
/// Length of drafts, if the definition says nothing: the paper's.
const DRAFT: usize = 10;
/// Least acceptance of a guess, if the definition says nothing.
const THRESHOLD: f64 = 0.5;

/// Where a definition and its files lie.
#[derive(Clone, Copy)]
struct Source<'a> {
    name: &'a str,
    folder: &'a Path,
    shipped: ShippedGrammars<'a>,
}

impl Source<'_> {
    fn wrong(&self, message: impl Into<String>) -> ExperimentError {
        ExperimentError::definition(self.name, message)
    }

    /// Refuses an empty list, and one with the same thing twice.
    fn list<T: std::fmt::Debug, I: Eq + Hash>(
        &self,
        key: &str,
        list: &[T],
        identity: impl Fn(&T) -> I,
    ) -> Result<(), ExperimentError> {
        if list.is_empty() {
            return Err(self
                .wrong(format!("`{key}` is empty"))
                .with_hint(format!("leave `{key}` out, or fill it")));
        }
        let mut seen = HashSet::new();
        match list.iter().find(|item| !seen.insert(identity(item))) {
            Some(twice) => Err(self.wrong(format!("`{key}` has {twice:?} twice"))),
            None => Ok(()),
        }
    }
}

/// What a definition means.
pub(super) fn resolve(
    raw: RawDefinition,
    name: &str,
    folder: &Path,
    quick: bool,
    shipped: ShippedGrammars<'_>,
) -> Result<Definition, ExperimentError> {
    let source = Source { name, folder, shipped };
    let given = (raw.k.is_some(), raw.s.is_some() || raw.threshold.is_some(), raw.warm_ups.is_some());
    // The whole is checked even where a part of it is to be run.
    let quicker = match (quick, &raw.quick) {
        (true, None) => {
            return Err(source
                .wrong("there is no table [quick]")
                .with_hint("leave --quick out, or say in [quick] what a quick run has less of"));
        }
        (true, Some(_)) => true,
        (false, _) => false,
    };
    let programs = raw.programs.into_iter();
    let programs: Vec<Program> =
        programs.map(|(name, RawProgram { command, grammar })| Program { name, command, grammar }).collect();
    check_programs(source, &programs, &raw.methods)?;
    let mut definition = Definition {
        name: raw.name,
        about: raw.about,
        models: raw.models.unwrap_or_else(|| vec![DEFAULT_MODEL.to_owned()]),
        mistralrs_model: raw.mistralrs_model,
        draft_model: raw.draft_model.map(|RawDraft { model, quantize, kv }| DraftSource {
            model,
            quantize,
            kv,
        }),
        tasks: tasks(source, raw.grammars, raw.prompts.as_ref())?,
        methods: methods(source, &raw.methods, &programs)?,
        programs,
        k: raw.k.unwrap_or_else(|| vec![K::Infinite]),
        s: raw.s.unwrap_or_else(|| vec![DRAFT]),
        thresholds: raw.threshold.unwrap_or_else(|| vec![THRESHOLD]),
        temperatures: raw.temperatures.unwrap_or_else(|| vec![1.0]),
        seeds: raw.seeds.map_or_else(|| vec![0], |seeds| seeds.0),
        max_tokens: raw.max_tokens.unwrap_or(MAX_TOKENS),
        warm_ups: raw.warm_ups.unwrap_or_else(|| vec![WARM_UPS]),
        passes: raw.passes,
        enumerate: raw.enumerate,
        retokenize: raw.retokenize,
        turns: raw.turns,
    };
    check(source, &definition)?;
    without_effect(source, &definition, given)?;
    if let Some(quick) = raw.quick {
        let whole = definition.clone();
        lessen(source, &mut definition, quick)?;
        check(source, &definition)?;
        if !quicker {
            definition = whole;
        }
    }
    Ok(definition)
}

/// Refuses programs that cannot be methods, or are none.
fn check_programs(
    source: Source<'_>,
    programs: &[Program],
    methods: &[String],
) -> Result<(), ExperimentError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
    for Program { name, command, .. } in programs {
        let wrong = |what: &str| source.wrong(format!("program {name:?} {what}"));
        if name.is_empty() || !name.chars().all(plain) {
            return Err(wrong("cannot name a method").with_hint("use letters, digits, `-`, `_`, `.` and `+`"));
        }
        if name.parse::<MethodName>().is_ok() {
            return Err(wrong("has the name of a method").with_hint("give it another name"));
        }
        if command.first().is_none_or(String::is_empty) {
            return Err(
                wrong("has no command").with_hint("for example command = [\"python3\", \"./mine.py\"]")
            );
        }
        if !methods.contains(name) {
            return Err(wrong("is not among `methods`").with_hint("name it there, or leave it out"));
        }
    }
    Ok(())
}

fn methods(
    source: Source<'_>,
    names: &[String],
    programs: &[Program],
) -> Result<Vec<MethodName>, ExperimentError> {
    let parse = |name: &String| {
        MethodName::of(name, programs)
            .map_err(|error| source.wrong(error.to_string()).with_hint(error.hint()))
    };
    names.iter().map(parse).collect()
}

/// Applies the table `[quick]`.
fn lessen(source: Source<'_>, definition: &mut Definition, quick: RawQuick) -> Result<(), ExperimentError> {
    fn set<T>(to: &mut T, value: Option<T>) {
        if let Some(value) = value {
            *to = value;
        }
    }
    if let Some(names) = quick.grammars {
        source.list("quick.grammars", &names, Clone::clone)?;
        for name in &names {
            if !definition.tasks.iter().any(|task| task.name == *name) {
                return Err(
                    source.wrong(format!("`quick.grammars` names {name:?}, which is not in `grammars`"))
                );
            }
        }
        definition.tasks.retain(|task| names.contains(&task.name));
    }
    if let Some(names) = quick.methods {
        definition.methods = methods(source, &names, &definition.programs)?;
    }
    if let Some(most) = quick.prompts {
        definition.tasks.iter_mut().for_each(|task| task.prompts.truncate(most));
    }
    set(&mut definition.models, quick.models);
    set(&mut definition.k, quick.k);
    set(&mut definition.s, quick.s);
    set(&mut definition.thresholds, quick.threshold);
    set(&mut definition.temperatures, quick.temperatures);
    set(&mut definition.seeds, quick.seeds.map(|seeds| seeds.0));
    set(&mut definition.max_tokens, quick.max_tokens);
    set(&mut definition.warm_ups, quick.warm_ups);
    Ok(())
}

/// Refuses what cannot be run.
fn check(source: Source<'_>, definition: &Definition) -> Result<(), ExperimentError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let Definition { name, models, tasks, methods, k, s, thresholds, temperatures, seeds, .. } = definition;
    if name.is_empty() || name.starts_with('.') || !name.chars().all(plain) {
        return Err(source
            .wrong(format!("`name` is {name:?}, which cannot name a folder"))
            .with_hint("use letters, digits, `-`, `_` and `.`"));
    }
    source.list("models", models, Clone::clone)?;
    source.list("grammars", tasks, |task| task.name.clone()).map_err(|error| match error {
        // Not the whole grammar in a message.
        ExperimentError::Definition { place, .. } if !tasks.is_empty() => {
            ExperimentError::definition(place, "`grammars` has two of the same name")
        }
        other => other,
    })?;
    source.list("methods", methods, MethodName::clone)?;
    source.list("k", k, |k| *k)?;
    source.list("s", s, |s| *s)?;
    source.list("threshold", thresholds, |threshold| threshold.to_bits())?;
    source.list("temperatures", temperatures, |temperature| temperature.to_bits())?;
    source.list("seeds", seeds, |seed| *seed)?;
    source.list("warm_ups", &definition.warm_ups, |texts| *texts)?;
    for &temperature in temperatures {
        Sampling::with_temperature(temperature)
            .map_err(|error| source.wrong(format!("`temperatures`: {error}")))?;
    }
    for (&s, &threshold) in s.iter().flat_map(|s| thresholds.iter().map(move |threshold| (s, threshold))) {
        DraftLength::up_to(s, threshold)
            .map_err(|error| source.wrong(format!("`s` and `threshold`: {error}")))?;
    }
    if definition.passes == Some(0) {
        return Err(source.wrong("`passes` is 0: there is nothing to measure"));
    }
    if definition.enumerate == Some(0) {
        return Err(source.wrong("`enumerate` is 0: no text can be listed"));
    }
    if definition.max_tokens == 0 {
        return Err(source.wrong("`max_tokens` is 0: there is nothing to generate"));
    }
    for task in tasks {
        if task.prompts.is_empty() {
            return Err(source.wrong(format!("grammar {:?} has no prompts", task.name)));
        }
    }
    contradictions(source, definition)
}

/// Refuses settings that exclude each other.
fn contradictions(source: Source<'_>, definition: &Definition) -> Result<(), ExperimentError> {
    let paper = definition.methods.iter().find(|method| matches!(method, MethodName::Paper(_)));
    if let Some(paper) = paper.filter(|_| definition.warm_ups.contains(&0)) {
        return Err(source
            .wrong(format!("`warm_ups` is 0, and {paper} has nothing but what it learnt before"))
            .with_hint("give it some warm-ups, or leave it out"));
    }
    let weighs = |method: &&MethodName| matches!(method, MethodName::Conditional { .. });
    if let Some(method) = definition.methods.iter().find(weighs)
        && definition.temperatures.contains(&0.0)
    {
        return Err(source
            .wrong(format!("{method} with temperature 0: greedy draws have no weights"))
            .with_hint("leave 0 out of `temperatures`, or the method"));
    }
    if definition.enumerate.is_some() && definition.temperatures.contains(&0.0) {
        return Err(source
            .wrong("`enumerate` with temperature 0: greedy draws have no distribution")
            .with_hint("leave 0 out of `temperatures`, or `enumerate`"));
    }
    let second = definition.methods.iter().find(|method| method.second().is_some());
    if let Some(second) = second.filter(|_| definition.draft_model.is_none()) {
        return Err(source
            .wrong(format!("{second} has no model to draft with"))
            .with_hint("name one of the same tokenizer: draft_model = \"FOLDER\""));
    }
    let folds = definition.methods.iter().find(|method| match method {
        MethodName::Paper(refinements) => refinements.has(Refinement::Folded),
        _ => false,
    });
    if let Some(folds) = folds
        && definition.k.iter().any(|k| *k != K::Infinite)
    {
        return Err(source
            .wrong(format!("{folds} with a finite `k`, which counts written terminals, not folded ones"))
            .with_hint("use k = [\"infinite\"] with it, or leave `folded` out"));
    }
    Ok(())
}

/// Refuses settings that no method heeds.
fn without_effect(
    source: Source<'_>,
    definition: &Definition,
    (k, s, warm_ups): (bool, bool, bool),
) -> Result<(), ExperimentError> {
    let any = |heeds: fn(&MethodName) -> bool| definition.methods.iter().any(heeds);
    for (given, heeded, key, example) in [
        (k, any(MethodName::takes_k), "k", "masks"),
        (s, any(MethodName::takes_s), "s` or `threshold", "paper"),
        (warm_ups, any(MethodName::warms_up), "warm_ups", "paper"),
        (
            definition.draft_model.is_some(),
            any(|method| method.second().is_some()),
            "draft_model",
            "draft_model",
        ),
        (
            definition.mistralrs_model.is_some(),
            any(|method| matches!(method, MethodName::Mistralrs(_))),
            "mistralrs_model",
            "mistralrs",
        ),
    ] {
        if given && !heeded {
            return Err(source
                .wrong(format!("no method heeds `{key}`"))
                .with_hint(format!("leave it out, or add a method that it is for, such as {example}")));
        }
    }
    Ok(())
}

fn tasks(
    source: Source<'_>,
    raw: Vec<RawTask>,
    prompts: Option<&RawPrompts>,
) -> Result<Vec<Task>, ExperimentError> {
    raw.into_iter().map(|raw| task(source, raw, prompts)).collect()
}

fn task(source: Source<'_>, raw: RawTask, prompts: Option<&RawPrompts>) -> Result<Task, ExperimentError> {
    let RawTask { name, file, syntax, also, prompts: own, answer } = raw;
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
    let prompts = match own.as_ref().or(prompts) {
        Some(RawPrompts::Inline(texts)) => {
            texts.iter().map(|text| Prompt { text: text.clone(), answer: None }).collect()
        }
        Some(RawPrompts::File(file)) => prompts_of_file(source, file, &name)?,
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
    Ok(Task { name, syntax, grammar, also: also.collect::<Result<_, _>>()?, prompts, answer })
}

/// The text of a grammar in a file.
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

/// The notation of a file by its ending, as the program's flags take it.
fn of_ending(path: &Path) -> Syntax {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("regex" | "re") => Syntax::Regex,
        Some("ebnf") => Syntax::Ebnf,
        Some("lark") => Syntax::Lark,
        Some("json") if path.to_str().is_some_and(|path| path.ends_with(".tags.json")) => {
            Syntax::StructuralTag
        }
        Some("json") => Syntax::JsonSchema,
        _ => Syntax::Gbnf,
    }
}

/// The prompts of a file of JSON lines, for this grammar.
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

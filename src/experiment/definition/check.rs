//! Resolves a definition, and finds contradictions in it.

use std::{collections::BTreeMap, path::Path};

use super::parts::{DraftSource, ExternalProgram, MethodChoice, WarmUpPrompts};
use super::raw::{RawDefinition, RawDraft, RawMethod, RawProgram, RawQuick};
use super::source::{DefinitionSource, ShippedGrammars};
use super::tasks::{WarmUpSource, short_name, tasks};
use super::{DEFAULT_MODEL, Definition, Task};
use crate::decode::{Sampling, StopStrings};
use crate::experiment::methods::{MethodName, Refinement};
use crate::experiment::{error::ExperimentError, row::K};
use crate::grammar::tools::Spelling;
use crate::proposer::DraftLength;

/// Default number of tokens of a text: the paper's.
const MAX_TOKENS: usize = 128;
/// Default number of warm-ups: the paper's.
const WARM_UPS: usize = 10;
/// Default length of drafts: the paper's.
const DRAFT: usize = 10;
/// Default least acceptance of a guess.
const THRESHOLD: f64 = 0.5;

/// Resolves a definition. If a single prompt leaves none to set apart for warm-ups, it says so.
pub(super) fn resolve(
    raw: RawDefinition,
    name: &str,
    folder: &Path,
    quick: bool,
    shipped: ShippedGrammars<'_>,
) -> Result<Definition, ExperimentError> {
    let source = DefinitionSource { name, folder, shipped };
    let given = given(&raw);
    // The whole is checked even where a part of it is to be run.
    if quick && raw.quick.is_none() {
        return Err(without_quick(source));
    }
    let programs = programs(source, raw.programs, &raw.methods)?;
    let methods = methods(source, &raw.methods, &programs)?;
    let warm_ups = raw.warm_ups.unwrap_or_else(|| vec![WARM_UPS]);
    let learnt = warm_ups.iter().max().filter(|_| methods.iter().any(|method| method.name.warms_up()));
    let apart =
        WarmUpSource { warm_ups: learnt.copied().unwrap_or(0), prompts: raw.warm_up_prompts.as_ref() };
    let mut definition = Definition {
        name: raw.name,
        about: raw.about,
        models: raw.models.unwrap_or_else(|| vec![DEFAULT_MODEL.to_owned()]),
        mistralrs_model: raw.mistralrs_model,
        draft_model: raw.draft_model.map(draft),
        tasks: tasks(source, raw.grammars, raw.prompts.as_ref(), apart)?,
        methods,
        programs,
        k: raw.k.unwrap_or_else(|| vec![K::Infinite]),
        s: raw.s.unwrap_or_else(|| vec![DRAFT]),
        thresholds: raw.threshold.unwrap_or_else(|| vec![THRESHOLD]),
        temperatures: raw.temperatures.unwrap_or_else(|| vec![1.0]),
        seeds: raw.seeds.map_or_else(|| vec![0], |seeds| seeds.0),
        chat: raw.chat,
        system: raw.system,
        max_tokens: raw.max_tokens.unwrap_or(MAX_TOKENS),
        warm_ups,
        warm_up_prompts: apart.way(),
        stop: raw.stop,
        first_value: raw.first_value,
        prompts_once: raw.prompts_once,
        passes: raw.passes,
        enumerate: raw.enumerate,
        retokenize: raw.retokenize,
        turns: raw.turns,
    };
    check(source, &definition)?;
    without_effect(source, &definition, given)?;
    if let Some(changes) = raw.quick {
        let whole = definition.clone();
        lessen(source, &mut definition, changes)?;
        check(source, &definition)?;
        definition = if quick { definition } else { whole };
    }
    if apart.warm_ups > 0 && definition.tasks.iter().any(|task| task.warm_up_prompts.is_empty()) {
        definition.warm_up_prompts = WarmUpPrompts::Measured;
    }
    Ok(definition)
}

/// Returns whether a definition has `k`, whether `s` or `threshold`, whether `warm_ups`, and whether their
/// prompts.
fn given(raw: &RawDefinition) -> (bool, bool, (bool, bool)) {
    let own = raw.grammars.iter().any(|task| task.warm_up_prompts.is_some());
    let warm_ups = (raw.warm_ups.is_some(), raw.warm_up_prompts.is_some() || own);
    (raw.k.is_some(), raw.s.is_some() || raw.threshold.is_some(), warm_ups)
}

fn without_quick(source: DefinitionSource<'_>) -> ExperimentError {
    source
        .wrong("there is no table [quick]")
        .with_hint("leave --quick out, or say in [quick] what a quick run has less of")
}

fn draft(RawDraft { model, quantize, kv }: RawDraft) -> DraftSource {
    DraftSource { model, quantize, kv }
}

/// Reads the programs, and refuses those that cannot be methods.
fn programs(
    source: DefinitionSource<'_>,
    raw: BTreeMap<String, RawProgram>,
    methods: &[RawMethod],
) -> Result<Vec<ExternalProgram>, ExperimentError> {
    let program = |(name, RawProgram { command, grammar })| ExternalProgram { name, command, grammar };
    let programs: Vec<ExternalProgram> = raw.into_iter().map(program).collect();
    check_programs(source, &programs, methods)?;
    Ok(programs)
}

/// Refuses programs that cannot be methods, or are none.
fn check_programs(
    source: DefinitionSource<'_>,
    programs: &[ExternalProgram],
    methods: &[RawMethod],
) -> Result<(), ExperimentError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
    for ExternalProgram { name, command, .. } in programs {
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
        if !methods.iter().any(|method| method.name == *name) {
            return Err(wrong("is not among `methods`").with_hint("name it there, or leave it out"));
        }
    }
    Ok(())
}

fn methods(
    source: DefinitionSource<'_>,
    raw: &[RawMethod],
    programs: &[ExternalProgram],
) -> Result<Vec<MethodChoice>, ExperimentError> {
    let parse = |&RawMethod { ref name, think }: &RawMethod| {
        let name = MethodName::of(name, programs);
        name.map(|name| MethodChoice { name, think })
            .map_err(|error| source.wrong(error.to_string()).with_hint(error.hint()))
    };
    raw.iter().map(parse).collect()
}

/// Applies the table `[quick]`.
fn lessen(
    source: DefinitionSource<'_>,
    definition: &mut Definition,
    quick: RawQuick,
) -> Result<(), ExperimentError> {
    fn set<T>(to: &mut T, value: Option<T>) {
        if let Some(value) = value {
            *to = value;
        }
    }
    if let Some(names) = quick.grammars {
        let names: Vec<String> = names.into_iter().map(short_name).collect();
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
    if let Some(raw) = quick.methods {
        definition.methods = methods(source, &raw, &definition.programs)?;
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
fn check(source: DefinitionSource<'_>, definition: &Definition) -> Result<(), ExperimentError> {
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
    let methods: Vec<String> = methods.iter().map(ToString::to_string).collect();
    source.list("methods", &methods, Clone::clone)?;
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
    if definition.prompts_once && definition.passes.is_some() {
        return Err(source.wrong("`passes` are measured, and `prompts_once` would skip some: leave one out"));
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
fn contradictions(source: DefinitionSource<'_>, definition: &Definition) -> Result<(), ExperimentError> {
    thoughts(source, definition)?;
    let paper = definition.method_names().find(|method| matches!(method, MethodName::Paper(_)));
    if let Some(paper) = paper.filter(|_| definition.warm_ups.contains(&0)) {
        return Err(source
            .wrong(format!("`warm_ups` is 0, and {paper} has nothing but what it learnt before"))
            .with_hint("give it some warm-ups, or leave it out"));
    }
    greedy_warm_ups(source, definition)?;
    idle_system(source, definition)?;
    if StopStrings::new(definition.stop.iter().map(String::as_str)).is_err() {
        return Err(
            source.wrong("`stop` has an empty text, which would end every text before its first token")
        );
    }
    let weighs = |method: &&MethodName| matches!(method, MethodName::Conditional { .. });
    if let Some(method) = definition.method_names().find(weighs)
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
    let second = definition.method_names().find(|method| method.second().is_some());
    if let Some(second) = second.filter(|_| definition.draft_model.is_none()) {
        return Err(source
            .wrong(format!("{second} has no model to draft with"))
            .with_hint("name one of the same tokenizer: draft_model = \"FOLDER\""));
    }
    let folds = definition.method_names().find(|method| match method {
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

/// Refuses thoughts where there can be none, or where what is measured is of texts without one.
fn thoughts(source: DefinitionSource<'_>, definition: &Definition) -> Result<(), ExperimentError> {
    for MethodChoice { name, think } in &definition.methods {
        let Some(think) = *think else { continue };
        if let Some(reason) = name.never_thinks() {
            return Err(source
                .wrong(format!("{name} with `think`: {reason}"))
                .with_hint("leave `think` out, or give it to a method such as masks or ours"));
        }
        if think == 0 {
            return Err(source
                .wrong(format!("`think` of {name} is 0, and a thought has at least one token"))
                .with_hint("leave `think` out, and the answer comes at once"));
        }
        if think >= definition.max_tokens {
            let most = definition.max_tokens;
            return Err(source
                .wrong(format!(
                    "`think` of {name} is {think}, and `max_tokens` of {most} leave nothing for the answer"
                ))
                .with_hint("`max_tokens` counts thought and answer together: raise it, or lower `think`"));
        }
    }
    if !definition.thinks() {
        return Ok(());
    }
    for (is_set, key, what) in [
        (definition.enumerate.is_some(), "enumerate", "lists all texts, and thoughts are too many"),
        (
            definition.retokenize,
            "retokenize",
            "cuts whole texts again, and a thought is no part of an answer",
        ),
    ] {
        if is_set {
            return Err(source
                .wrong(format!("`{key}` with `think`: it {what}"))
                .with_hint("leave one out, or make two definitions of it"));
        }
    }
    let harmony = |task: &&Task| {
        task.functions.as_ref().is_some_and(|functions| functions.spelling == Spelling::Harmony)
    };
    match definition.tasks.iter().find(harmony) {
        Some(task) => Err(source
            .wrong(format!(
                "`think` with grammar {:?}: calls in this spelling have their own thoughts",
                task.name
            ))
            .with_hint("leave `think` out, or use another `spelling`")),
        None => Ok(()),
    }
}

/// Refuses greedy texts that warm-ups would be, where nobody has said that they may.
fn greedy_warm_ups(source: DefinitionSource<'_>, definition: &Definition) -> Result<(), ExperimentError> {
    let asked = definition.warm_up_prompts == WarmUpPrompts::Measured;
    let learns = definition.method_names().any(MethodName::warms_up) && definition.warm_ups != [0];
    if asked || !learns || !definition.temperatures.contains(&0.0) {
        return Ok(());
    }
    match definition.tasks.iter().find(|task| task.warm_up_prompts.is_empty()) {
        Some(task) => Err(source
            .wrong(format!(
                "grammar {:?} has one prompt, and at temperature 0 warm-ups on it are the measured text",
                task.name
            ))
            .with_hint(
                "give it more prompts, or warm_up_prompts = [\"..\"]; \"measured\" measures it, with a mark",
            )),
        None => Ok(()),
    }
}

/// Refuses a text of the system that no template takes.
fn idle_system(source: DefinitionSource<'_>, definition: &Definition) -> Result<(), ExperimentError> {
    if definition.system.is_some() && !definition.chat {
        return Err(source
            .wrong("`system` is for chat templates, and prompts are not put into one")
            .with_hint("add chat = true, or leave `system` out"));
    }
    Ok(())
}

/// Refuses settings that no method uses.
fn without_effect(
    source: DefinitionSource<'_>,
    definition: &Definition,
    (k, s, warm_ups): (bool, bool, (bool, bool)),
) -> Result<(), ExperimentError> {
    let any = |heeds: fn(&MethodName) -> bool| definition.method_names().any(heeds);
    for (given, heeded, key, example) in [
        (k, any(MethodName::takes_k), "k", "masks"),
        (s, any(MethodName::takes_s), "s` or `threshold", "paper"),
        (warm_ups.0, any(MethodName::warms_up), "warm_ups", "paper"),
        (warm_ups.1, any(MethodName::warms_up), "warm_up_prompts", "paper"),
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

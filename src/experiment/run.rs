//! Makes the runs of a plan, one after the other.
//!
//! Invariant: a row depends on its run alone, except for times and the length of drafts. Whether a process
//! made all rows or continued after another one, the tokens are the same.

use std::{collections::HashMap, fmt, path::PathBuf};

use super::bench::{Bench, MethodGrammars, PromptWriter};
use super::methods::{ExternalEngine, MethodName, Peer, Programs};
use super::plan::{Plan, PlanRound};
use super::{error::ExperimentError, passes, records::Records, row::Row};
use crate::chat::ChatTemplate;
use crate::decode::{DecodeError, Decoder};
use crate::model::{KnownPrompts, Model};
use crate::vocab::{Tokenizer, Vocabulary};

/// A model with its vocabulary, tokenizer and priors.
#[derive(Debug)]
pub struct Loaded<M> {
    /// The model.
    pub model: M,
    /// The model's vocabulary.
    pub vocabulary: Vocabulary,
    /// The model's tokenizer.
    pub tokenizer: Tokenizer,
    /// The folder of priors that come with the model.
    pub priors: Option<PathBuf>,
    /// The model's chat template, if it has one; needed where prompts are put into it, and asked for the
    /// marks of thoughts.
    pub template: Option<ChatTemplate>,
}

/// The model of a definition that is to be loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelPart {
    /// The model with this index in the definition.
    Model(usize),
    /// The draft model.
    Draft,
}

/// Observer of an experiment, which can also stop it.
pub trait Watch {
    /// Called when the experiment begins: `runs` runs in all, `there` of which are recorded already.
    fn begun(&mut self, _runs: usize, _there: usize) {}

    /// Called when a row was made, and is on the disk.
    fn made(&mut self, _row: &Row) {}

    /// Called when work between runs begins, such as warm-ups; `what` names it.
    fn doing(&mut self, _what: &str) {}

    /// Should it stop before the next run?
    fn stops(&self) -> bool {
        false
    }
}

/// Loads models.
pub(super) type Load<'a, M> = &'a mut dyn FnMut(ModelPart) -> Result<Loaded<M>, ExperimentError>;

/// The extent to which an experiment ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// All rows are there.
    Complete,
    /// The experiment was stopped. The same plan continues where it was.
    Stopped,
}

/// Other engines that a program has, for methods that need them.
#[derive(Clone, Copy, Default)]
pub struct Others<'a> {
    /// Masks of another engine, for the method `llguidance`.
    pub peer: Option<&'a dyn Peer>,
    /// An engine that runs models itself, for the methods that begin with `mistralrs`.
    pub host: Option<&'a dyn ExternalEngine>,
    /// The programs of the definition, for methods that are such programs.
    pub programs: Option<&'a Programs>,
}

impl Others<'_> {
    /// Refuses methods of engines that are missing.
    fn check<'m>(self, methods: impl Iterator<Item = &'m MethodName>) -> Result<(), ExperimentError> {
        for method in methods {
            match method {
                MethodName::Llguidance if self.peer.is_none() => return Err(ExperimentError::NoPeer),
                MethodName::Mistralrs(_) if self.host.is_none() => {
                    return Err(ExperimentError::NoHost(method.to_string()));
                }
                MethodName::Program(_) if self.programs.is_none() => {
                    return Err(ExperimentError::NoPrograms(method.to_string()));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Others<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (peer, host) = (self.peer.is_some(), self.host.is_some());
        let mut shown = f.debug_struct("Others");
        shown.field("peer", &peer).field("host", &host).field("programs", &self.programs).finish()
    }
}

/// Makes all runs like [`run_with`], without other engines.
///
/// # Errors
/// All of [`run_with`], and if a method needs another engine.
pub fn run<M: Model + 'static>(
    plan: &Plan,
    records: &mut Records,
    load: Load<'_, M>,
    watch: &mut dyn Watch,
) -> Result<Ended, ExperimentError> {
    run_with(plan, records, load, watch, Others::default())
}

/// Makes all runs of a plan that are not in the records yet. `load` loads a model of the definition; each
/// method that drafts by one has a draft model of its own. `others` are the engines that some methods need.
///
/// # Errors
/// If a grammar, a model or a prior cannot be used, a run fails, or a row cannot be written. The rows before
/// stay.
pub fn run_with<M: Model + 'static>(
    plan: &Plan,
    records: &mut Records,
    load: Load<'_, M>,
    watch: &mut dyn Watch,
    others: Others<'_>,
) -> Result<Ended, ExperimentError> {
    others.check(plan.definition().method_names())?;
    let once = plan.definition().prompts_once;
    let load: Load<'_, KnownPrompts<M>> = &mut |part| {
        let Loaded { model, vocabulary, tokenizer, priors, template } = load(part)?;
        let model = KnownPrompts::new(model, once && matches!(part, ModelPart::Model(_)));
        Ok(Loaded { model, vocabulary, tokenizer, priors, template })
    };
    run_left(plan, records, load, watch, others)
}

/// Makes the runs that are not in the records yet.
fn run_left<M: Model + 'static>(
    plan: &Plan,
    records: &mut Records,
    load: Load<'_, M>,
    watch: &mut dyn Watch,
    others: Others<'_>,
) -> Result<Ended, ExperimentError> {
    let there = plan.keys().iter().filter(|key| records.has(key)).count();
    watch.begun(plan.runs(), there);
    let mut turn = there;
    let mut left: Vec<&PlanRound> = plan.rounds().iter().collect();
    left.retain(|round| plan.turns(round).any(|at| !records.has(&plan.id(round, at).key())));
    for of_model in left.chunk_by(|one, other| one.model == other.model) {
        let Loaded { mut model, vocabulary, tokenizer, priors, template } =
            load(ModelPart::Model(of_model[0].model))?;
        let name = &plan.definition().models[of_model[0].model];
        measure_passes(plan, records, name, &mut model, watch)?;
        let (definition, template) = (plan.definition(), template.as_ref());
        let (tokenizer, vocabulary) = (&tokenizer, &vocabulary);
        let writer = PromptWriter { definition, model: name, template, tokenizer, vocabulary };
        let mut decoder = Decoder::builder(model).vocabulary(vocabulary.clone()).build()?;
        for of_task in of_model.chunk_by(|one, other| one.task == other.task) {
            let task = &plan.definition().tasks[of_task[0].task];
            let (prompts, warm_up_prompts) = writer.of_task(task)?;
            let thought = writer.thought(task)?;
            let mut bench = Bench {
                plan,
                model: of_task[0].model,
                task,
                warm_up_prompts: if warm_up_prompts.is_empty() { prompts.clone() } else { warm_up_prompts },
                prompts,
                tokenizer,
                grammars: MethodGrammars::new(task, vocabulary, thought)?,
                priors: HashMap::new(),
                shipped: priors.clone(),
                others,
                methods: HashMap::new(),
                load: &mut *load,
                decoder: &mut decoder,
            };
            bench.enumerate(records, of_task, watch)?;
            for round in of_task {
                for variant in plan.turns(round) {
                    let id = plan.id(round, variant);
                    if records.has(&id.key()) {
                        continue;
                    }
                    if watch.stops() {
                        return Ok(Ended::Stopped);
                    }
                    let row = bench.row(round, variant, id, turn, watch)?;
                    records.append(&row)?;
                    watch.made(&row);
                    turn += 1;
                }
            }
        }
    }
    Ok(Ended::Complete)
}

/// Measures the cost of a model's passes, if the definition asks for it and the records do not have it.
fn measure_passes<M: Model>(
    plan: &Plan,
    records: &Records,
    name: &str,
    model: &mut M,
    watch: &mut dyn Watch,
) -> Result<(), ExperimentError> {
    let Some(most) = plan.definition().passes else { return Ok(()) };
    let mut curves = passes::read_passes(records.folder())?;
    if curves.iter().any(|curve| curve.model == name) {
        return Ok(());
    }
    watch.doing(&format!("{name}: passes over 1 to {most} tokens"));
    let run = format!("{name}, a pass whose cost is measured");
    let measured = passes::measure(model, name, most).map_err(DecodeError::model);
    curves.push(measured.map_err(|source| ExperimentError::Run { run, source })?);
    passes::write_passes(records.folder(), &curves)
}

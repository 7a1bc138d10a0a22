//! mistral.rs as one of the methods of an experiment.
//!
//! A model is loaded when its first text is to be written: once for texts without drafts and once for
//! speculation, with 32-bit numbers if it is not quantised.

use std::{
    cell::RefCell,
    collections::HashMap,
    path::{Path, PathBuf},
    rc::Rc,
    time::{Duration, Instant},
};

use domino::{
    Constraint, TokenId,
    decode::{DecodeOptions, Generation},
    experiment::{
        Definition, ExperimentError, Task,
        methods::{ExternalEngine, ExternalJob, ExternalWay, ExternalWriter, PeerError},
    },
    grammar::Syntax,
    proposer::{Learning, Prior},
};
use domino_mistralrs::{EngineDrafts, EngineRunner, GoOn, Guesses};
use mistralrs_core::Constraint as EngineConstraint;

/// The engines of a definition's models.
pub(super) struct Engines {
    /// Names and paths of the models.
    models: Vec<(String, PathBuf)>,
    /// The loaded engines, by model and whether they speculate.
    loaded: RefCell<HashMap<(usize, bool), Rc<EngineRunner>>>,
}

impl Engines {
    /// Makes the engines, of which none is loaded yet. `other` is loaded in place of the models, if the
    /// definition names such a file.
    pub(super) fn new(definition: &Definition, paths: &[PathBuf], other: Option<&Path>) -> Self {
        let paths = paths.iter().map(|path| other.unwrap_or(path).to_owned());
        let models = definition.models.iter().cloned().zip(paths).collect();
        Self { models, loaded: RefCell::default() }
    }

    /// Loads an engine with a model, unless it is loaded.
    fn engine(&self, model: usize, drafts: bool) -> Result<Rc<EngineRunner>, ExperimentError> {
        if let Some(engine) = self.loaded.borrow().get(&(model, drafts)) {
            return Ok(Rc::clone(engine));
        }
        let (name, path) = &self.models[model];
        let rows = if drafts { EngineDrafts::Auto } else { EngineDrafts::None };
        let engine = EngineRunner::load(path, rows)
            .map_err(|error| ExperimentError::Model { name: name.clone(), message: error.to_string() })?;
        let engine = Rc::new(engine);
        self.loaded.borrow_mut().insert((model, drafts), Rc::clone(&engine));
        Ok(engine)
    }
}

impl ExternalEngine for Engines {
    fn writer(&self, job: ExternalJob<'_>) -> Result<Box<dyn ExternalWriter>, ExperimentError> {
        let engine = self.engine(job.model, job.way == ExternalWay::Drafts)?;
        if engine.vocabulary() != job.vocabulary {
            return Err(ExperimentError::Model {
                name: self.models[job.model].0.clone(),
                message: "mistral.rs reads other tokens from it than domino does".to_owned(),
            });
        }
        let under = match (job.way, job.grammar) {
            (ExternalWay::Own, _) => {
                let own = own_constraint(job.task);
                Under::Engine(
                    own.map_err(|source| ExperimentError::Peer { name: job.task.name.clone(), source })?,
                )
            }
            (ExternalWay::Masks, Some(grammar)) => Under::Ours(Box::new(grammar.constraint())),
            (ExternalWay::Drafts, Some(grammar)) => {
                let prior = job.prior.unwrap_or_else(|| Prior::new(grammar));
                let guesses = Guesses::new(grammar, engine.tokenizer(), prior, Learning::PerText);
                Under::Guessed(Box::new(grammar.constraint()), Box::new(guesses))
            }
            _ => Under::Nothing,
        };
        Ok(Box::new(Writer { engine, under }))
    }
}

/// The constraint of a writer's texts.
enum Under {
    Nothing,
    Ours(Box<Constraint>),
    Guessed(Box<Constraint>, Box<Guesses>),
    Engine(EngineConstraint),
}

/// A writer of texts of one model and grammar.
struct Writer {
    engine: Rc<EngineRunner>,
    under: Under,
}

impl ExternalWriter for Writer {
    fn write(
        &mut self,
        prompt: &[TokenId],
        options: &DecodeOptions,
    ) -> Result<(Generation, Duration), PeerError> {
        let begun = Instant::now();
        let mut first = None;
        let watch = |tokens: &[TokenId]| {
            if !tokens.is_empty() {
                first.get_or_insert_with(|| begun.elapsed());
            }
            GoOn::Yes
        };
        let engine = &self.engine;
        let written = match &self.under {
            Under::Nothing => engine.generate(prompt, None, options, watch),
            Under::Ours(constraint) => engine.generate(prompt, Some(&**constraint), options, watch),
            Under::Guessed(constraint, guesses) => {
                engine.generate_with_guesses(prompt, constraint, guesses, options, watch)
            }
            Under::Engine(constraint) => engine.generate_by_engine(prompt, constraint, options, watch),
        };
        let generation = written.map_err(|error| PeerError(error.to_string()))?;
        let first = first.unwrap_or(generation.stats.total_time);
        Ok((generation, first))
    }
}

/// Makes mistral.rs's own constraint of the first of the task's notations that it knows.
fn own_constraint(task: &Task) -> Result<EngineConstraint, PeerError> {
    let read = task.notations().find_map(|(syntax, text)| match syntax {
        Syntax::Lark | Syntax::LarkGreedy => Some(Ok(EngineConstraint::Lark(text.to_owned()))),
        Syntax::Regex => Some(Ok(EngineConstraint::Regex(text.to_owned()))),
        Syntax::JsonSchema => Some(serde_json::from_str(text).map(EngineConstraint::JsonSchema)),
        _ => None,
    });
    match read {
        Some(read) => read.map_err(|error| PeerError(error.to_string())),
        None => Err(PeerError(format!("mistral.rs does not read {:?}", task.syntax))),
    }
}

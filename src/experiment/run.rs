//! The runs of a plan, one after the other.
//!
//! Invariant: a row depends on its run alone, but for times and what decides how long drafts are. Whether a
//! process made all rows or went on after another one, the tokens are the same.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use super::{
    coupling::Coupled,
    definition::{Definition, Task, Variant},
    enumeration::{self, Distribution},
    error::ExperimentError,
    measures::{Measures, Meter},
    methods::{
        ByPeer, Lessons, Method, MethodError, MethodName, Outcome, Peer, Refinements, Stage, shipped_prior,
    },
    passes,
    plan::{Plan, Round},
    records::Records,
    row::{K, Row, RunId},
    tokens::prompt_tokens,
};
use crate::{
    compile::{CompiledGrammar, Compiler},
    decode::{DecodeError, Decoder, DraftModel, Masking, Sampler, Sampling},
    grammar::Grammar,
    ids::TokenId,
    limits::Limits,
    lower::Terminals,
    model::Model,
    proposer::{CountProposer, DraftLength, Drafter, Learning, Prior},
    subterminal::Lookahead,
    vocab::{Tokenizer, Vocabulary},
};

/// A model with what belongs to it.
#[derive(Debug)]
pub struct Loaded<M> {
    /// The model.
    pub model: M,
    /// Its vocabulary.
    pub vocabulary: Vocabulary,
    /// Its tokenizer.
    pub tokenizer: Tokenizer,
    /// The folder of priors that come with it.
    pub priors: Option<PathBuf>,
}

/// Which model of a definition is to be loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// That of an index in its models.
    Model(usize),
    /// The draft model.
    Draft,
}

/// Observer of an experiment, which can also stop it.
pub trait Watch {
    /// The experiment begins: `runs` runs in all, `there` of which are recorded already.
    fn begun(&mut self, _runs: usize, _there: usize) {}

    /// A row was made, and is on the disk.
    fn made(&mut self, _row: &Row) {}

    /// Work between runs begins, such as warm-ups; `what` names it.
    fn doing(&mut self, _what: &str) {}

    /// Should it stop before the next run?
    fn stops(&self) -> bool {
        false
    }
}

/// Loads models.
type Load<'a, M> = &'a mut dyn FnMut(Part) -> Result<Loaded<M>, ExperimentError>;

/// How far an experiment came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// All rows are there.
    Complete,
    /// It was stopped. The same plan goes on where it was.
    Stopped,
}

/// Seeds of warm-ups, and of the run that is not counted, far from those of definitions.
const WARM_UP_SEED: u64 = 1_000_000;
const UNCOUNTED_SEED: u64 = 2_000_000;
/// Tokens of the run that is not counted.
const UNCOUNTED_TOKENS: usize = 24;

/// As [`run_with`], without another engine.
///
/// # Errors
/// Those of [`run_with`], and if a method needs another engine.
pub fn run<M: Model + 'static>(
    plan: &Plan,
    records: &mut Records,
    load: Load<'_, M>,
    watch: &mut dyn Watch,
) -> Result<Ended, ExperimentError> {
    run_with(plan, records, load, watch, None)
}

/// Makes all runs of a plan that are not in the records yet. `load` loads a model of the definition; each
/// method that drafts by one has a draft model of its own. `peer` is the engine of the method `llguidance`.
///
/// # Errors
/// If a grammar, a model or a prior cannot be used, a run fails, or a row cannot be written. The rows before
/// stay.
pub fn run_with<M: Model + 'static>(
    plan: &Plan,
    records: &mut Records,
    load: Load<'_, M>,
    watch: &mut dyn Watch,
    peer: Option<&dyn Peer>,
) -> Result<Ended, ExperimentError> {
    if peer.is_none() && plan.definition().methods.contains(&MethodName::Llguidance) {
        return Err(ExperimentError::NoPeer);
    }
    let there = plan.keys().iter().filter(|key| records.has(key)).count();
    watch.begun(plan.runs(), there);
    let mut turn = there;
    let mut left: Vec<&Round> = plan.rounds().iter().collect();
    left.retain(|round| plan.turns(round).any(|at| !records.has(&plan.id(round, at).key())));
    for of_model in left.chunk_by(|one, other| one.model == other.model) {
        let Loaded { mut model, vocabulary, tokenizer, priors } = load(Part::Model(of_model[0].model))?;
        measure_passes(plan, records, &plan.definition().models[of_model[0].model], &mut model, watch)?;
        let mut decoder = Decoder::builder(model).vocabulary(vocabulary.clone()).build()?;
        for of_task in of_model.chunk_by(|one, other| one.task == other.task) {
            let task = &plan.definition().tasks[of_task[0].task];
            let prompts =
                task.prompts.iter().map(|prompt| prompt_tokens(&tokenizer, &vocabulary, &prompt.text));
            let mut bench = Bench {
                plan,
                task,
                prompts: prompts.collect::<Result<_, _>>()?,
                tokenizer: &tokenizer,
                grammars: Grammars::new(task, &vocabulary)?,
                priors: HashMap::new(),
                shipped: priors.clone(),
                peer,
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

/// Measures what passes of a model cost, if the definition asks for it and the records do not have it.
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

/// One grammar, compiled as methods need it.
struct Grammars {
    grammar: Grammar,
    name: String,
    vocabulary: Vocabulary,
    compiled: HashMap<(K, Terminals), (CompiledGrammar, f64)>,
}

impl Grammars {
    fn new(task: &Task, vocabulary: &Vocabulary) -> Result<Self, ExperimentError> {
        let read = Grammar::parse(task.syntax, &task.grammar, &Limits::default());
        let grammar = read.map_err(|source| ExperimentError::Grammar { name: task.name.clone(), source })?;
        let (name, vocabulary) = (task.name.clone(), vocabulary.clone());
        Ok(Self { grammar, name, vocabulary, compiled: HashMap::new() })
    }

    /// The grammar for a lookahead and terminals, and the seconds that compiling and growing trees took.
    fn get(&mut self, k: K, terminals: Terminals) -> Result<(CompiledGrammar, f64), ExperimentError> {
        if let Some(found) = self.compiled.get(&(k, terminals)) {
            return Ok(found.clone());
        }
        let start = Instant::now();
        let compiler =
            Compiler::new(self.vocabulary.clone()).lookahead(Lookahead::from(k)).terminals(terminals);
        let compiled = compiler
            .compile(&self.grammar)
            .map_err(|source| ExperimentError::Compile { name: self.name.clone(), source })?;
        compiled.grow_trees();
        let found = (compiled, start.elapsed().as_secs_f64());
        self.compiled.insert((k, terminals), found.clone());
        Ok(found)
    }
}

/// Where the runs of one model and grammar are made.
struct Bench<'a, M: Model> {
    plan: &'a Plan,
    task: &'a Task,
    prompts: Vec<Vec<TokenId>>,
    tokenizer: &'a Tokenizer,
    grammars: Grammars,
    /// What was learnt, by what decides it: lookahead, refinements, temperature and number of texts.
    priors: HashMap<(K, Refinements, u64, usize), Prior>,
    shipped: Option<PathBuf>,
    /// Another engine.
    peer: Option<&'a dyn Peer>,
    /// Methods that are ready, by variant and temperature.
    methods: HashMap<(usize, u64), Ready<M>>,
    load: Load<'a, M>,
    decoder: &'a mut Decoder<M>,
}

/// A method that is ready, and the counts that it drafts by.
struct Ready<M: Model> {
    method: Box<dyn Method<M>>,
    counts: Option<CountProposer>,
    /// Seconds that another engine took to compile the grammar, if it is one's method.
    compile_seconds: Option<f64>,
}

/// An error of a run.
fn failed(run: impl Into<String>) -> impl FnOnce(MethodError) -> ExperimentError {
    let run = run.into();
    move |error| match error {
        MethodError::Decode(source) => ExperimentError::Run { run, source },
        MethodError::Build(source) => source.into(),
    }
}

impl<M: Model + 'static> Bench<'_, M> {
    /// Makes a run, measures it, and says it all in a row.
    fn row(
        &mut self,
        round: &Round,
        index: usize,
        id: RunId,
        turn: usize,
        watch: &mut dyn Watch,
    ) -> Result<Row, ExperimentError> {
        let variant = self.plan.variants()[index];
        let grammar = match variant.k {
            Some(k) => Some(self.grammars.get(k, variant.terminals())?),
            None => None,
        };
        let (grammar, compile_seconds) = grammar.unzip();
        let mut ready = match self.methods.remove(&(index, round.temperature.to_bits())) {
            Some(ready) => ready,
            None => self.ready(variant, grammar.as_ref(), round.temperature, watch)?,
        };
        self.options(round.temperature, round.seed, self.definition().max_tokens);
        let prompt = &self.prompts[round.prompt];
        let tokenizer = self.tokenizer;
        let mut stage = Stage { decoder: &mut *self.decoder, grammar: grammar.as_ref(), tokenizer };
        let outcome = ready.method.generate(&mut stage, prompt).map_err(failed(id.key()))?;
        let compile_seconds = ready.compile_seconds.or(compile_seconds);
        let options = self.decoder.options_mut();
        let sampler = Sampler::new(options.sampling, options.seed);
        let coupled = ready.counts.as_ref().map(|counts| Coupled::new(counts.another(), sampler, prompt));
        self.methods.insert((index, round.temperature.to_bits()), ready);
        let (exact, _) = self.grammars.get(K::Infinite, Terminals::Folded)?;
        let meter = Meter::new(tokenizer, &exact);
        let constraint = grammar.as_ref().map(CompiledGrammar::constraint);
        let model = self.decoder.model_mut();
        let measures = meter
            .measure(model, &self.prompts[round.prompt], &outcome, round.temperature, constraint, coupled)
            .map_err(failed(id.key()))?;
        let text = String::from_utf8_lossy(&outcome.text).into_owned();
        let prompt = &self.task.prompts[round.prompt];
        let correct = self.task.answer.as_ref().and_then(|place| prompt.is_answered(place, &text));
        let definition = self.definition().name.clone();
        Ok(Row { correct, compile_seconds, turn, definition, ..row(id, text, &outcome, measures) })
    }

    /// Lists all texts behind the prompts of these rounds, with their probabilities, if the definition asks
    /// for it and the records do not have them.
    fn enumerate(
        &mut self,
        records: &Records,
        rounds: &[&Round],
        watch: &mut dyn Watch,
    ) -> Result<(), ExperimentError> {
        let Some(most) = self.definition().enumerate else { return Ok(()) };
        let (longest, grammar) = (self.definition().max_tokens, self.task.name.clone());
        let mut all = enumeration::read_distributions(records.folder())?;
        let known = all.len();
        for &&Round { model, prompt, temperature, .. } in rounds {
            let model = self.definition().models[model].clone();
            let is_it = |other: &Distribution| other.is_of(&model, &grammar, prompt, temperature);
            if all.iter().any(is_it) {
                continue;
            }
            watch.doing(&format!("{grammar}: all texts behind prompt {prompt}"));
            let (exact, _) = self.grammars.get(K::Infinite, Terminals::Folded)?;
            let (start, bounds) = (exact.constraint(), (longest, most));
            let tokens = &self.prompts[prompt];
            let listed =
                enumeration::enumerate(self.decoder.model_mut(), tokens, &start, temperature, bounds);
            let run = format!("{grammar} {prompt}, where all texts are listed");
            let listed = listed.map_err(|source| ExperimentError::Run { run, source })?;
            let sequences = listed.ok_or_else(|| {
                let message = format!("grammar {grammar:?} has more than {most} beginnings of texts");
                ExperimentError::definition(self.definition().name.clone(), message)
                    .with_hint("raise `enumerate`, or lower `max_tokens`, or give the grammar fewer texts")
            })?;
            all.push(Distribution { model, grammar: grammar.clone(), prompt, temperature, sequences });
        }
        if all.len() > known { enumeration::write_distributions(records.folder(), &all) } else { Ok(()) }
    }

    fn definition(&self) -> &Definition {
        self.plan.definition()
    }

    /// Sets how the next run draws. What the definition says of temperatures was checked.
    fn options(&mut self, temperature: f64, seed: u64, max_tokens: usize) {
        let options = self.decoder.options_mut();
        options.sampling = Sampling::with_temperature(temperature).unwrap_or_default();
        options.seed = seed;
        options.max_new_tokens = max_tokens;
    }

    /// A method that has learnt what it learns, and made a run that is not counted: it fills caches.
    fn ready(
        &mut self,
        variant: Variant,
        grammar: Option<&CompiledGrammar>,
        temperature: f64,
        watch: &mut dyn Watch,
    ) -> Result<Ready<M>, ExperimentError> {
        let prior = match (grammar, variant.k, variant.lessons()) {
            (Some(grammar), Some(k), Lessons::WarmUps(refinements)) => {
                let texts = variant.warm_ups.or(self.definition().warm_ups.first().copied()).unwrap_or(0);
                let key = (k, refinements, temperature.to_bits(), texts);
                if !self.priors.contains_key(&key) {
                    watch.doing(&format!("{}: warm-ups for {}", self.task.name, variant.method));
                    let prior = self.warm_up(grammar, refinements, temperature, texts)?;
                    self.priors.insert(key, prior);
                }
                self.priors.get(&key).cloned()
            }
            (Some(grammar), _, Lessons::Shipped) => {
                shipped_prior(self.shipped.as_deref(), &self.task.name, grammar)?
            }
            _ => None,
        };
        watch.doing(&format!("{}: {}", self.task.name, variant.method));
        let tokenizer = self.tokenizer;
        let mut ready = self.unused(variant, grammar, prior)?;
        self.options(temperature, UNCOUNTED_SEED, self.definition().max_tokens.min(UNCOUNTED_TOKENS));
        let mut stage = Stage { decoder: &mut *self.decoder, grammar, tokenizer };
        let run = format!("{} {}, a run that is not counted", self.task.name, variant.method);
        ready.method.prepare(&mut stage).map_err(failed(&*run))?;
        ready.method.generate(&mut stage, &self.prompts[0]).map_err(failed(run))?;
        Ok(ready)
    }

    /// A method that has made no run yet.
    fn unused(
        &mut self,
        variant: Variant,
        grammar: Option<&CompiledGrammar>,
        prior: Option<Prior>,
    ) -> Result<Ready<M>, ExperimentError> {
        let counts = grammar.and_then(|grammar| variant.counts(grammar, prior.as_ref()));
        if let (MethodName::Llguidance, Some(peer), Some(grammar)) = (variant.method, self.peer, grammar) {
            let start = Instant::now();
            let name = self.task.name.clone();
            let compiled = peer
                .compile(self.task, grammar.vocabulary())
                .map_err(|source| ExperimentError::Peer { name, source })?;
            let compile_seconds = Some(start.elapsed().as_secs_f64());
            return Ok(Ready { method: Box::new(ByPeer::new(compiled)), counts, compile_seconds });
        }
        let draft = variant.method.second().map(|_| self.draft()).transpose()?;
        let made = variant.method::<M>(grammar, self.tokenizer, prior, draft);
        let method = made.map_err(|error| {
            ExperimentError::definition(self.definition().name.clone(), error.to_string())
        })?;
        Ok(Ready { method, counts, compile_seconds: None })
    }

    /// Another draft model.
    fn draft(&mut self) -> Result<DraftModel<M>, ExperimentError> {
        let Loaded { model, vocabulary, tokenizer, .. } = (self.load)(Part::Draft)?;
        let draft = DraftModel::new(model, &vocabulary, self.decoder.vocabulary());
        draft.and_then(|draft| draft.splitting(&tokenizer, self.tokenizer)).map_err(|source| {
            let name = self.definition().draft_model.as_ref().map(|draft| draft.model.clone());
            ExperimentError::DraftModel { name: name.unwrap_or_default(), source }
        })
    }

    /// What is learnt from warm-ups: texts with seeds of their own, as the paper does (section 4).
    fn warm_up(
        &mut self,
        grammar: &CompiledGrammar,
        refinements: Refinements,
        temperature: f64,
        texts: usize,
    ) -> Result<Prior, ExperimentError> {
        let learner = CountProposer::new(Prior::new(grammar), Learning::Online);
        let learner = Arc::new(Mutex::new(learner.counting(refinements.counting())));
        let length = DraftLength::up_to(8, 0.5).unwrap_or_default();
        self.options(temperature, WARM_UP_SEED, self.definition().max_tokens);
        self.decoder.options_mut().masking = Masking::Ahead;
        self.decoder.set_constraint(Some(grammar.constraint()))?;
        self.decoder.set_drafter(Some(Drafter::new(Box::new(Arc::clone(&learner)), length)));
        let mut made = Ok(());
        for (seed, prompt) in (WARM_UP_SEED..).zip(self.prompts.iter().cycle()).take(texts) {
            self.decoder.options_mut().seed = seed;
            made = made.and_then(|()| self.decoder.generate(prompt).map(drop));
        }
        self.decoder.set_drafter(None);
        let run = format!("{}, a warm-up", self.task.name);
        made.map_err(|source: DecodeError| ExperimentError::Run { run, source })?;
        let learner = learner.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(learner.prior().clone())
    }
}

/// What was generated and measured, but for what hangs on the definition.
fn row(run: RunId, text: String, outcome: &Outcome, measures: Measures) -> Row {
    let Outcome { tokens, stats, .. } = outcome;
    Row {
        definition: String::new(),
        run,
        turn: 0,
        text,
        tokens: tokens.iter().map(|token| token.raw()).collect(),
        finish: outcome.finish.into(),
        complete: outcome.complete,
        well_formed: measures.well_formed,
        prefix: measures.prefix,
        prompt_tokens: stats.prompt_tokens,
        passes: stats.passes,
        drafted: stats.drafted,
        accepted: stats.accepted,
        masks: stats.masks,
        interventions: (stats.own_draws == stats.draws).then_some(stats.interventions),
        redraws: outcome.redraws,
        inserted: outcome.inserted,
        forced_tokens: measures.forced_tokens,
        forced_bytes: measures.forced_bytes,
        seconds: stats.total_time.as_secs_f64(),
        first_seconds: outcome.first.as_secs_f64(),
        model_seconds: stats.model_time.as_secs_f64(),
        mask_seconds: stats.mask_time.as_secs_f64(),
        draft_seconds: stats.draft_time.as_secs_f64(),
        compile_seconds: None,
        log_kept: measures.log_kept,
        nll: Some(measures.nll),
        positions: measures.coupling.map(|coupling| coupling.positions),
        overlap: measures.coupling.map(|coupling| coupling.overlap),
        guessed: measures.coupling.map(|coupling| coupling.guessed),
        canonical: measures.canonical.as_ref().map(|canonical| canonical == tokens),
        canonical_tokens: measures.canonical.map(|canonical| canonical.len()),
        correct: None,
        reproduced: None,
    }
}

//! The bench on which the runs of one model and grammar are made: compiled grammars, ready methods, prompts
//! as tokens (as they are, or in a model's chat template), and rows.

use std::sync::{Arc, Mutex, PoisonError};
use std::{borrow::Cow, collections::HashMap, path::PathBuf, time::Instant};

use super::definition::{Definition, Task, Variant};
use super::enumeration::{self, Distribution};
use super::measures::{Coupled, Cuts, Judging, Measures, Meter, ThoughtAnswer};
use super::methods::{
    ByExternalEngine, ByPeer, ExternalJob, ExternalWay, Lessons, Method, MethodError, MethodName, Outcome,
    Refinements, Stage, shipped_prior,
};
use super::plan::{Plan, PlanRound};
use super::row::{End, K, Row, RunId};
use super::run::{Load, Loaded, ModelPart, Others, Watch};
use super::{error::ExperimentError, records::Records};
use crate::chat::{ChatTemplate, Conversation};
use crate::decode::{DecodeError, Decoder, DraftModel, Masking, Sampler, Sampling, StopStrings};
use crate::grammar::json_schema::{Escapes, Format, SchemaOptions};
use crate::grammar::{AutomataCache, Grammar, Reasoning, Thought, ThoughtMarks};
use crate::proposer::{CountProposer, DraftLength, Drafter, Learning, Prior};
use crate::vocab::{Tokenizer, Vocabulary};
use crate::{CompiledGrammar, Compiler, Constraint, LimitExceeded, Limits, Lookahead, Patience, Terminals};
use crate::{TrailingSpace, ids::TokenId, model::Model};

/// Seeds of warm-ups and of the uncounted run, far from those of definitions.
const WARM_UP_SEED: u64 = 1_000_000;
const UNCOUNTED_SEED: u64 = 2_000_000;
/// Number of tokens of the uncounted run.
const UNCOUNTED_TOKENS: usize = 24;

/// One grammar, compiled as methods need it.
pub(super) struct MethodGrammars {
    grammar: Grammar,
    /// The thought that comes before the texts of some methods, and the grammar of both.
    thinking: Option<(Thought, Grammar)>,
    name: String,
    vocabulary: Vocabulary,
    /// By lookahead, terminals, and whether a thought comes first.
    compiled: HashMap<(K, Terminals, bool), (CompiledGrammar, f64)>,
}

impl MethodGrammars {
    /// Reads the grammar of a task. `thought` comes before the texts of methods that think.
    pub(super) fn new(
        task: &Task,
        vocabulary: &Vocabulary,
        thought: Option<Thought>,
    ) -> Result<Self, ExperimentError> {
        // Other engines take any character of a schema's strings as `\uXXXX` too; all methods write the same
        // language.
        let schemas = SchemaOptions::default().with_escapes(Escapes::All).with_format(Format::Assert);
        let (limits, automata) = (Limits::default(), AutomataCache::new());
        let read = Grammar::parse_by(task.syntax, &task.grammar, &schemas, &limits, &automata);
        let grammar = read.map_err(|source| ExperimentError::Grammar { name: task.name.clone(), source })?;
        let (name, vocabulary) = (task.name.clone(), vocabulary.clone());
        let behind = |thought: Thought| Ok((thought.clone(), grammar.after_thought(&thought, &limits)?));
        let thinking = thought.map(behind).transpose().map_err(|limit: LimitExceeded| {
            ExperimentError::Compile { name: name.clone(), source: limit.into() }
        })?;
        Ok(Self { grammar, thinking, name, vocabulary, compiled: HashMap::new() })
    }

    /// Returns the grammar of a method, and the seconds that compiling and growing trees took.
    fn of(&mut self, variant: &Variant) -> Result<Option<(CompiledGrammar, f64)>, ExperimentError> {
        let (terminals, thinks) = (variant.terminals(), variant.think.is_some());
        variant.k.map(|k| self.get(k, terminals, thinks)).transpose()
    }

    /// Returns the grammar of answers alone.
    fn exact(&mut self) -> Result<CompiledGrammar, ExperimentError> {
        Ok(self.get(K::Infinite, Terminals::Folded, false)?.0)
    }

    /// Returns the grammar for a lookahead and terminals, behind a thought if the text `thinks`, and the
    /// seconds that compiling and growing trees took.
    fn get(
        &mut self,
        k: K,
        terminals: Terminals,
        thinks: bool,
    ) -> Result<(CompiledGrammar, f64), ExperimentError> {
        if let Some(found) = self.compiled.get(&(k, terminals, thinks)) {
            return Ok(found.clone());
        }
        let behind = self.thinking.as_ref().filter(|_| thinks).map(|(_, behind)| behind);
        let start = Instant::now();
        let compiler =
            Compiler::new(self.vocabulary.clone()).lookahead(Lookahead::from(k)).terminals(terminals);
        let compiled = compiler
            .compile(behind.unwrap_or(&self.grammar))
            .map_err(|source| ExperimentError::Compile { name: self.name.clone(), source })?;
        compiled.grow_trees();
        let found = (compiled, start.elapsed().as_secs_f64());
        self.compiled.insert((k, terminals, thinks), found.clone());
        Ok(found)
    }
}

/// The bench for the runs of one model and grammar.
pub(super) struct Bench<'a, M: Model> {
    pub(super) plan: &'a Plan,
    pub(super) task: &'a Task,
    pub(super) prompts: Vec<Vec<TokenId>>,
    /// Prompts of warm-ups: their own, or the measured ones.
    pub(super) warm_up_prompts: Vec<Vec<TokenId>>,
    pub(super) tokenizer: &'a Tokenizer,
    pub(super) grammars: MethodGrammars,
    /// Learnt priors, by what decides them.
    pub(super) priors: HashMap<PriorKey, Prior>,
    pub(super) shipped: Option<PathBuf>,
    pub(super) model: usize,
    pub(super) others: Others<'a>,
    /// Methods that are ready, by variant and temperature.
    pub(super) methods: HashMap<(usize, u64), ReadyMethod<M>>,
    pub(super) load: Load<'a, M>,
    pub(super) decoder: &'a mut Decoder<M>,
}

/// The settings that decide a learnt prior: lookahead, refinements, temperature, number of texts, and the
/// length of their thoughts.
type PriorKey = (K, Refinements, u64, usize, Option<usize>);

/// A method ready to run, and the counts that it drafts by.
pub(super) struct ReadyMethod<M: Model> {
    method: Box<dyn Method<M>>,
    counts: Option<CountProposer>,
    /// Seconds that another engine took to compile the grammar, if it is one's method.
    compile_seconds: Option<f64>,
}

/// Creates the error of a run.
fn failed(run: impl Into<String>) -> impl FnOnce(MethodError) -> ExperimentError {
    let run = run.into();
    move |error| match error {
        MethodError::Decode(source) => ExperimentError::Run { run, source },
        MethodError::Build(source) => source.into(),
    }
}

impl<M: Model + 'static> Bench<'_, M> {
    /// Makes a run, measures it, and records it in a row.
    pub(super) fn row(
        &mut self,
        round: &PlanRound,
        index: usize,
        id: RunId,
        turn: usize,
        watch: &mut dyn Watch,
    ) -> Result<Row, ExperimentError> {
        let variant = &self.plan.variants()[index];
        let (grammar, compile_seconds) = self.grammars.of(variant)?.unzip();
        let mut ready = match self.methods.remove(&(index, round.temperature.to_bits())) {
            Some(ready) => ready,
            None => self.ready(variant, grammar.as_ref(), round.temperature, watch)?,
        };
        self.options(round.temperature, round.seed, self.definition().max_tokens, variant.think);
        let prompt = &self.prompts[round.prompt];
        let tokenizer = self.tokenizer;
        let mut stage = Stage { decoder: &mut *self.decoder, grammar: grammar.as_ref(), tokenizer };
        let outcome = ready.method.generate(&mut stage, prompt).map_err(failed(id.key()))?;
        // That engine compiles the grammar anew for each text, which is a part of the text's time.
        let anew = variant.method == MethodName::Mistralrs(ExternalWay::Own);
        let compile_seconds = ready.compile_seconds.or(compile_seconds).filter(|_| !anew);
        let counts = ready.counts.as_ref().map(CountProposer::another);
        self.methods.insert((index, round.temperature.to_bits()), ready);
        let row = self.measured(round, variant, grammar.as_ref(), counts, &outcome, id)?;
        let (seen, definition) = (self.seen(variant, round), self.definition().name.clone());
        Ok(Row { seen, compile_seconds, turn, definition, ..row })
    }

    /// Measures what a method generated, and makes a row of it, without what is known before the run. Of a
    /// text with a thought the answer is measured, behind prompt and thought.
    fn measured(
        &mut self,
        round: &PlanRound,
        variant: &Variant,
        grammar: Option<&CompiledGrammar>,
        counts: Option<CountProposer>,
        outcome: &Outcome,
        id: RunId,
    ) -> Result<Row, ExperimentError> {
        let exact = self.grammars.exact()?;
        let prompt = &self.prompts[round.prompt];
        let thinking = self.grammars.thinking.as_ref().filter(|_| variant.think.is_some()).zip(grammar);
        let answer =
            thinking.map(|((thought, _), grammar)| ThoughtAnswer::new(thought, grammar, prompt, outcome));
        let (prompt, text) =
            answer.as_ref().map_or((prompt, outcome), |answer| (&answer.prompt, &answer.outcome));
        let begun = answer.as_ref().is_none_or(|answer| answer.begun);
        let before = answer.as_ref().map_or(0, |answer| answer.thought_tokens);
        let constraint = grammar.filter(|_| begun).map(|grammar| {
            let start = grammar.constraint().reasoning_tokens(variant.think);
            behind(start, &outcome.tokens[..before])
        });
        let constraint = constraint.transpose().map_err(failed(id.key()))?;
        let options = self.decoder.options_mut();
        let sampler = Sampler::new(options.sampling, options.seed);
        let coupled = counts.map(|counts| Coupled::new(counts, sampler, prompt));
        let meter = Meter::new(self.tokenizer, &exact, self.judging())
            .before(answer.as_ref().map_or(0, |answer| answer.before));
        let model = self.decoder.model_mut();
        let mut measures = meter
            .measure(model, prompt, text, round.temperature, constraint, coupled)
            .map_err(failed(id.key()))?;
        measures.judged.well_formed &= begun;
        let mut cuts = Cuts::default();
        if self.definition().retokenize {
            let cut = Cuts::new(self.decoder, &meter, prompt, text, measures.canonical.as_deref());
            cuts = cut.map_err(failed(id.key()))?;
        }
        let (judged, correct) = self.answer(round, text, &measures);
        let is_part = answer.is_some() || self.judging().is_partial();
        let shown = |answer: &ThoughtAnswer| String::from_utf8_lossy(&outcome.text[..answer.at]).len();
        Ok(Row {
            thought_tokens: answer.as_ref().map(|answer| answer.thought_tokens),
            answer_at: answer.as_ref().map(shown),
            judged: Some(judged).filter(|_| is_part),
            canonical: measures.canonical.as_ref().map(|canonical| *canonical == text.tokens),
            canonical_nll: cuts.canonical_nll,
            preferred: cuts.preferred,
            preferred_tokens: cuts.preferred_tokens,
            preferred_nll: cuts.preferred_nll,
            correct,
            ..row(id, outcome, measures)
        })
    }

    /// Returns the part of a text that is judged, and whether the answer is right.
    fn answer(&self, round: &PlanRound, outcome: &Outcome, measures: &Measures) -> (String, Option<bool>) {
        let judged = outcome.text.get(measures.judged.part.clone()).unwrap_or_default();
        let judged = String::from_utf8_lossy(judged).into_owned();
        let prompt = &self.task.prompts[round.prompt];
        let correct = self.task.answer.as_ref().and_then(|place| prompt.is_answered(place, &judged));
        (judged, correct)
    }

    /// Lists all texts behind the prompts of these rounds, with their probabilities, if the definition asks
    /// for it and the records do not have them.
    pub(super) fn enumerate(
        &mut self,
        records: &Records,
        rounds: &[&PlanRound],
        watch: &mut dyn Watch,
    ) -> Result<(), ExperimentError> {
        let Some(most) = self.definition().enumerate else { return Ok(()) };
        let (longest, grammar) = (self.definition().max_tokens, self.task.name.clone());
        let mut all = enumeration::read_distributions(records.folder())?;
        let known = all.len();
        for &&PlanRound { model, prompt, temperature, .. } in rounds {
            let model = self.definition().models[model].clone();
            let is_it = |other: &Distribution| other.is_of(&model, &grammar, prompt, temperature);
            if all.iter().any(is_it) {
                continue;
            }
            watch.doing(&format!("{grammar}: all texts behind prompt {prompt}"));
            let exact = self.grammars.exact()?;
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

    /// Returns how texts are judged. The stop strings of the definition have been checked.
    fn judging(&self) -> Judging {
        let Definition { stop, first_value, .. } = self.definition();
        let stop = StopStrings::new(stop.iter().map(String::as_str)).unwrap_or_default();
        Judging { stop, first_value: *first_value }
    }

    /// Returns the number of texts that a method learns from before it is measured, if it learns from any.
    fn texts_learnt(&self, variant: &Variant) -> Option<usize> {
        let texts = variant.warm_ups.or(self.definition().warm_ups.first().copied()).unwrap_or(0);
        Some(texts).filter(|_| matches!(variant.lessons(), Lessons::WarmUps(_)))
    }

    /// Had the method learnt from warm-ups on the prompt of a round?
    fn seen(&self, variant: &Variant, round: &PlanRound) -> Option<bool> {
        let texts = self.texts_learnt(variant)?;
        let prompt = &self.prompts[round.prompt];
        Some(self.warm_up_prompts.iter().take(texts).any(|warm_up| warm_up == prompt))
    }

    /// Sets how the next run draws, and where it stops. The temperatures of the definition have been checked.
    fn options(&mut self, temperature: f64, seed: u64, max_tokens: usize, think: Option<usize>) {
        let stop = self.judging().stop;
        self.decoder.options_mut().stop = stop;
        let options = self.decoder.options_mut();
        options.sampling = Sampling::with_temperature(temperature).unwrap_or_default();
        options.seed = seed;
        options.max_new_tokens = max_tokens;
        options.reasoning_tokens = think;
        // As in the paper, and as other engines do it: the model ends a text.
        options.trailing_space = TrailingSpace::Keep;
    }

    /// Returns a method that has learnt, and made one uncounted run, which fills caches.
    fn ready(
        &mut self,
        variant: &Variant,
        grammar: Option<&CompiledGrammar>,
        temperature: f64,
        watch: &mut dyn Watch,
    ) -> Result<ReadyMethod<M>, ExperimentError> {
        let prior = match (grammar, variant.k, variant.lessons()) {
            (Some(grammar), Some(k), Lessons::WarmUps(refinements)) => {
                let texts = self.texts_learnt(variant).unwrap_or(0);
                let key = (k, refinements, temperature.to_bits(), texts, variant.think);
                if !self.priors.contains_key(&key) {
                    watch.doing(&format!("{}: warm-ups for {}", self.task.name, variant.method));
                    let prior = self.warm_up(grammar, refinements, temperature, (texts, variant.think))?;
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
        // As far behind the thought as other texts go.
        let uncounted = UNCOUNTED_TOKENS + variant.think.unwrap_or(0);
        let most = self.definition().max_tokens.min(uncounted);
        self.options(temperature, UNCOUNTED_SEED, most, variant.think);
        let mut stage = Stage { decoder: &mut *self.decoder, grammar, tokenizer };
        let run = format!("{} {}, a run that is not counted", self.task.name, variant.method);
        ready.method.prepare(&mut stage).map_err(failed(&*run))?;
        ready.method.generate(&mut stage, &self.warm_up_prompts[0]).map_err(failed(run))?;
        Ok(ready)
    }

    /// Returns a method that has made no run yet.
    fn unused(
        &mut self,
        variant: &Variant,
        grammar: Option<&CompiledGrammar>,
        prior: Option<Prior>,
    ) -> Result<ReadyMethod<M>, ExperimentError> {
        let counts = grammar.and_then(|grammar| variant.counts(grammar, prior.as_ref()));
        if let (MethodName::Llguidance, Some(peer), Some(grammar)) =
            (&variant.method, self.others.peer, grammar)
        {
            let start = Instant::now();
            let name = self.task.name.clone();
            let compiled = peer
                .compile(self.task, grammar.vocabulary())
                .map_err(|source| ExperimentError::Peer { name, source })?;
            let compile_seconds = Some(start.elapsed().as_secs_f64());
            return Ok(ReadyMethod { method: Box::new(ByPeer::new(compiled)), counts, compile_seconds });
        }
        if let (&MethodName::Mistralrs(way), Some(host)) = (&variant.method, self.others.host) {
            let (task, vocabulary) = (self.task, self.decoder.vocabulary());
            let job = ExternalJob { model: self.model, way, task, grammar, vocabulary, prior };
            let method = Box::new(ByExternalEngine::new(host.writer(job)?));
            return Ok(ReadyMethod { method, counts, compile_seconds: None });
        }
        if let (MethodName::Program(name), Some(programs)) = (&variant.method, self.others.programs)
            && let Some(program) = self.definition().program(name)
        {
            let (writer, compile_seconds) =
                programs.start(program, self.model, self.task, self.decoder.vocabulary())?;
            return Ok(ReadyMethod {
                method: Box::new(ByExternalEngine::new(writer)),
                counts,
                compile_seconds,
            });
        }
        let draft = variant.method.second().map(|_| self.draft()).transpose()?;
        let made = variant.method::<M>(grammar, self.tokenizer, prior, draft);
        let method = made.map_err(|error| {
            ExperimentError::definition(self.definition().name.clone(), error.to_string())
        })?;
        Ok(ReadyMethod { method, counts, compile_seconds: None })
    }

    /// Loads another draft model.
    fn draft(&mut self) -> Result<DraftModel<M>, ExperimentError> {
        let Loaded { model, vocabulary, tokenizer, .. } = (self.load)(ModelPart::Draft)?;
        let draft = DraftModel::new(model, &vocabulary, self.decoder.vocabulary());
        draft.and_then(|draft| draft.splitting(&tokenizer, self.tokenizer)).map_err(|source| {
            let name = self.definition().draft_model.as_ref().map(|draft| draft.model.clone());
            ExperimentError::DraftModel { name: name.unwrap_or_default(), source }
        })
    }

    /// Learns from warm-ups, as the paper does (section 4): texts with seeds of their own, on prompts of
    /// their own unless the definition asks for the paper's, which are the measured ones.
    fn warm_up(
        &mut self,
        grammar: &CompiledGrammar,
        refinements: Refinements,
        temperature: f64,
        (texts, think): (usize, Option<usize>),
    ) -> Result<Prior, ExperimentError> {
        let learner = CountProposer::new(Prior::new(grammar), Learning::Online);
        let learner = Arc::new(Mutex::new(learner.counting(refinements.counting())));
        let length = DraftLength::up_to(8, 0.5).unwrap_or_default();
        self.options(temperature, WARM_UP_SEED, self.definition().max_tokens, think);
        self.decoder.options_mut().masking = Masking::Ahead;
        self.decoder.set_constraint(Some(grammar.constraint()))?;
        self.decoder.set_drafter(Some(Drafter::new(Box::new(Arc::clone(&learner)), length)));
        let mut made = Ok(());
        for (seed, prompt) in (WARM_UP_SEED..).zip(self.warm_up_prompts.iter().cycle()).take(texts) {
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

/// Moves a constraint behind these tokens.
fn behind(start: Constraint, tokens: &[TokenId]) -> Result<Constraint, MethodError> {
    let mut constraint = start.patient(Patience::whole());
    for &token in tokens {
        constraint.advance(token).map_err(DecodeError::from)?;
    }
    Ok(constraint)
}

/// Creates a row from what was generated and measured, without what depends on the definition.
fn row(run: RunId, outcome: &Outcome, measures: Measures) -> Row {
    let Outcome { tokens, stats, .. } = outcome;
    Row {
        thought_tokens: None,
        answer_at: None,
        definition: String::new(),
        run,
        turn: 0,
        text: String::from_utf8_lossy(&outcome.text).into_owned(),
        tokens: tokens.iter().map(|token| token.raw()).collect(),
        // A stop string ends a text also where its method, another engine's, does not know of it.
        finish: if measures.judged.stopped { End::Stop } else { outcome.finish.into() },
        complete: outcome.complete,
        well_formed: measures.judged.well_formed,
        judged: None,
        prefix: measures.prefix,
        seen: None,
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
        cpu_seconds: outcome.processor.map(|time| time.as_secs_f64()),
        model_seconds: stats.model_time.as_secs_f64(),
        mask_seconds: stats.mask_time.as_secs_f64(),
        draft_seconds: stats.draft_time.as_secs_f64(),
        compile_seconds: None,
        log_kept: measures.log_kept,
        nll: Some(measures.nll),
        positions: measures.coupling.map(|coupling| coupling.positions),
        overlap: measures.coupling.map(|coupling| coupling.overlap),
        guessed: measures.coupling.map(|coupling| coupling.guessed),
        canonical: None,
        canonical_tokens: measures.canonical.map(|canonical| canonical.len()),
        canonical_nll: None,
        preferred: None,
        preferred_tokens: None,
        preferred_nll: None,
        correct: None,
        reproduced: None,
    }
}

/// Maker of the tokens of a definition's prompts, for one model.
pub(super) struct PromptWriter<'a> {
    pub(super) definition: &'a Definition,
    /// Name of the model in the definition.
    pub(super) model: &'a str,
    pub(super) template: Option<&'a ChatTemplate>,
    pub(super) tokenizer: &'a Tokenizer,
    pub(super) vocabulary: &'a Vocabulary,
}

/// Tokens of several prompts.
type PromptTokens = Vec<Vec<TokenId>>;

impl PromptWriter<'_> {
    /// The tokens of a grammar's prompts, and of those that its warm-ups go on from.
    pub(super) fn of_task(&self, task: &Task) -> Result<(PromptTokens, PromptTokens), ExperimentError> {
        let tokens = |texts: Vec<&str>| -> Result<PromptTokens, ExperimentError> {
            texts.into_iter().map(|text| self.tokens(text, task)).collect()
        };
        let measured = tokens(task.prompts.iter().map(|prompt| prompt.text.as_str()).collect())?;
        Ok((measured, tokens(task.warm_up_prompts.iter().map(String::as_str).collect())?))
    }

    /// The tokens of a prompt; at least one, as a model has to go on from something.
    fn tokens(&self, text: &str, task: &Task) -> Result<Vec<TokenId>, ExperimentError> {
        let written = self.written(text, task)?;
        let mut tokens = match self.definition.chat {
            true => self.tokenizer.encode_written(&written)?,
            false => self.tokenizer.encode(&written, true)?,
        };
        if tokens.is_empty() {
            tokens.extend(self.vocabulary.end_of_text().first());
        }
        Ok(tokens)
    }

    /// The thought before the texts of methods that think, if some do. It must come, as what is asked is
    /// what a thought brings; prompts that end in its opening mark, as some templates write them, have opened
    /// it.
    pub(super) fn thought(&self, task: &Task) -> Result<Option<Thought>, ExperimentError> {
        if !self.definition.thinks() {
            return Ok(None);
        }
        let shown = self.template.and_then(|template| ThoughtMarks::of_chat_template(template.source()));
        let marks = shown.unwrap_or_default();
        let prompts = task.prompts.iter().map(|prompt| &prompt.text).chain(&task.warm_up_prompts);
        let opens = |text: &String| -> Result<bool, ExperimentError> {
            Ok(marks.behind(self.written(text, task)?.as_bytes()) == Reasoning::Open)
        };
        let opened = prompts.map(opens).collect::<Result<Vec<bool>, _>>()?;
        let reasoning = match (opened.contains(&true), opened.contains(&false)) {
            (true, true) => {
                let message = format!(
                    "some prompts of grammar {:?} end in {:?}, which opens a thought, and others do not",
                    task.name,
                    marks.open()
                );
                let error = ExperimentError::definition(self.definition.name.clone(), message);
                return Err(error.with_hint("end all of them so, or none, or leave `think` out"));
            }
            (true, false) => Reasoning::Open,
            (false, _) => Reasoning::Required,
        };
        let specials = self.vocabulary.special_tokens().map(|(_, name)| name);
        Ok(Some(Thought::new(&marks, reasoning, specials)))
    }

    /// The text of a prompt as the model gets it, but for special tokens that the tokenizer puts before it.
    fn written<'t>(&self, text: &'t str, task: &Task) -> Result<Cow<'t, str>, ExperimentError> {
        Ok(match self.definition.chat {
            true => Cow::Owned(self.in_template(text, task)?),
            false => Cow::Borrowed(text),
        })
    }

    /// The prompt as what a user says, in the model's template. Templates get no date, so that the same
    /// definition gives the same prompts on another day.
    fn in_template(&self, text: &str, task: &Task) -> Result<String, ExperimentError> {
        let wrong = |source| ExperimentError::Template { model: self.model.to_owned(), source };
        let template =
            self.template.ok_or_else(|| ExperimentError::NoTemplate { model: self.model.to_owned() })?;
        let mut conversation = Conversation::of_prompt(self.definition.system.as_deref(), text);
        if let Some(functions) = &task.functions {
            conversation = conversation.with_tools(&functions.values());
        }
        template.render(&conversation).map_err(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTE_LEVEL: &str = include_str!("../../tests/fixtures/byte_level.json");
    const TEMPLATE: &str = "{% for tool in tools %}[{{ tool.function.name }}]{% endfor %}\
        {% for message in messages %}<{{ message.role }}>{{ message.content }}{% endfor %}\
        {% if add_generation_prompt %}<assistant>{% endif %}{% if strftime_now is defined %}today{% endif %}";
    const FUNCTIONS: &str = r#"[{"name": "find", "parameters": {"type": "object"}}]"#;

    /// The texts of the prompts, and those of warm-ups, that a model gets by a definition with these lines.
    fn texts(lines: &str, template: Option<&str>) -> Result<(Vec<String>, Vec<String>), ExperimentError> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("tools.json"), FUNCTIONS).unwrap();
        let text = format!(
            "name = \"c\"\nmethods = [\"ours\"]\nprompts = [\"A?\", \"B?\"]\n\
             warm_up_prompts = [\"W?\"]\n{lines}"
        );
        let shipped = |name: &str| (name == "digits").then_some("root ::= [0-9]+");
        let definition = Definition::parse(&text, "", folder.path(), false, &shipped).unwrap();
        let template = template.map(|source| ChatTemplate::parse(source).unwrap());
        let vocabulary = Vocabulary::from_tokenizer_json(BYTE_LEVEL).unwrap();
        let tokenizer = Tokenizer::from_tokenizer_json(BYTE_LEVEL).unwrap();
        let writer = PromptWriter {
            definition: &definition,
            model: "m",
            template: template.as_ref(),
            tokenizer: &tokenizer,
            vocabulary: &vocabulary,
        };
        let (prompts, warm_ups) = writer.of_task(&definition.tasks[0])?;
        let text = |tokens: Vec<TokenId>| String::from_utf8(vocabulary.concat(&tokens)).unwrap();
        Ok((prompts.into_iter().map(text).collect(), warm_ups.into_iter().map(text).collect()))
    }

    #[test]
    fn prompts_are_what_the_definition_says() {
        let digits = "grammars = [\"digits\"]\n";
        let tools = "[[grammars]]\nname = \"calls\"\ntools = \"tools.json\"\nspelling = \"hermes\"\n";
        for (lines, first, warm_up) in [
            (digits.to_owned(), "A?", "W?"),
            (format!("chat = true\n{digits}"), "<user>A?<assistant>", "<user>W?<assistant>"),
            (
                format!("chat = true\nsystem = \"Brief.\"\n{digits}"),
                "<system>Brief.<user>A?<assistant>",
                "<system>Brief.<user>W?<assistant>",
            ),
            (tools.to_owned(), "A?", "W?"),
            (format!("chat = true\n{tools}"), "[find]<user>A?<assistant>", "[find]<user>W?<assistant>"),
        ] {
            let (prompts, warm_ups) = texts(&lines, Some(TEMPLATE)).unwrap();
            assert_eq!((&*prompts[0], &*warm_ups[0]), (first, warm_up), "{lines}");
            assert_eq!(prompts[1], first.replace('A', "B"));
        }
    }

    /// The marks are those of the template, and a prompt that opens a thought has opened it.
    #[test]
    fn thoughts_are_as_the_template_has_them() {
        let thought = |lines: &str, template: Option<&str>| {
            let text = format!(
                "name = \"t\"\ngrammars = [\"digits\"]\n\
                 methods = [{{ name = \"masks\", think = 4 }}]\n{lines}"
            );
            let shipped = |_: &str| Some("root ::= [0-9]+");
            let definition = Definition::parse(&text, "", std::path::Path::new(""), false, &shipped).unwrap();
            let template = template.map(|source| ChatTemplate::parse(source).unwrap());
            let vocabulary = Vocabulary::from_tokenizer_json(BYTE_LEVEL).unwrap();
            let tokenizer = Tokenizer::from_tokenizer_json(BYTE_LEVEL).unwrap();
            let writer = PromptWriter {
                definition: &definition,
                model: "m",
                template: template.as_ref(),
                tokenizer: &tokenizer,
                vocabulary: &vocabulary,
            };
            let thought = writer.thought(&definition.tasks[0])?;
            Ok::<_, ExperimentError>(
                thought.map(|found| (found.marks().open().to_owned(), found.reasoning())),
            )
        };
        let of = |lines: &str, template: Option<&str>| thought(lines, template).unwrap().unwrap();
        let (one, two) = ("prompts = [\"A\"]", "prompts = [\"A<think>\\n\", \"B<think>\"]");
        assert_eq!(of(one, None), ("<think>".to_owned(), Reasoning::Required));
        assert_eq!(of(two, None), ("<think>".to_owned(), Reasoning::Open));
        assert_eq!(of(one, Some("{{ x }}[/THINK]")), ("[THINK]".to_owned(), Reasoning::Required));
        let opening = "{{ messages[0].content }}{% if false %}</think>{% endif %}<think>\n";
        assert_eq!(of(&format!("chat = true\n{one}"), Some(opening)).1, Reasoning::Open);
        assert_eq!(of(one, Some(opening)).1, Reasoning::Required);
        let mixed = thought("prompts = [\"A\", \"B<think>\"]", None).unwrap_err();
        assert!(mixed.to_string().contains("opens a thought, and others do not"), "{mixed}");
    }

    #[test]
    fn missing_and_refusing_chat_templates_are_errors() {
        let chat = "chat = true\ngrammars = [\"digits\"]\n";
        let none = texts(chat, None).unwrap_err();
        assert!(matches!(&none, ExperimentError::NoTemplate { model } if model == "m"), "{none}");
        assert!(none.is_bad_input() && none.hint().unwrap().contains("chat"));
        let strict = "{{ raise_exception('no system here') }}";
        let refused = texts(chat, Some(strict)).unwrap_err();
        assert!(refused.to_string().contains("no system here"), "{refused}");
        // Raw prompts need none.
        assert_eq!(texts("grammars = [\"digits\"]\n", None).unwrap().0, ["A?", "B?"]);
    }
}

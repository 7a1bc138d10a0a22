//! One text in progress, apart from the model: rows of logits come in, in memory or still where the model
//! computes them, and tokens come out.
//!
//! Invariants: every token has been advanced through the constraint; the tokens are a function of the rows,
//! whatever passes they came from, and a choice from a row is the same wherever the row is. The driver of a
//! run calls [`TextRun::end`] before a row is made or taken.

use std::{borrow::Cow, fmt, sync::Arc};

use super::sampling::choice::{Chooser, KeptRow};
use super::sampling::logprobs::{Logprobs, likely};
use super::stats::{DecodeStats, timed};
use super::{error::DecodeError, options::DecodeOptions, stop::StopSearch};
use crate::model::{Kept, KeptRows, Logits, RowAnswer, RowChoice};
use crate::vocab::{TokenSet, Vocabulary};
use crate::{Completion, ids::TokenId};
use crate::{Constraint, Patience, StepError, TextEnd, grammar::ThoughtPlace};

/// The reason for the end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Finish {
    /// The text is complete: the model ended it, or nothing can follow.
    Stop,
    /// The text is complete, and nothing but white space could follow; the model was not asked. See
    /// [`DecodeOptions::trailing_space`].
    OnlySpace,
    /// A stop string was generated, and the text cut before it. Under a constraint it need not be complete.
    StopString,
    /// The limit of new tokens or the model's context was reached.
    Length,
    /// A stop string was generated, or the limit of new tokens or the model's context was reached, inside of
    /// a thought: without [`DecodeOptions::close`] there is no answer.
    Thought,
    /// The caller had the text completed before it ended.
    Closed,
}

impl Finish {
    /// Tells why a run ends whose text is where `constraint` is, if it does so whatever the model makes of
    /// it.
    pub(super) fn of_text(constraint: &Constraint) -> Option<Self> {
        Some(match constraint.end()? {
            TextEnd::Nothing => Self::Stop,
            TextEnd::OnlySpace => Self::OnlySpace,
        })
    }
}

/// The output of a run.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Generation {
    /// The tokens, without prompt and end of text; those that spell a stop string included.
    pub tokens: Vec<TokenId>,
    /// The bytes of the tokens, cut before a stop string, and of the completion.
    pub text: Vec<u8>,
    /// Is the text in the language? Without a constraint: has it ended other than by length?
    pub complete: bool,
    /// The thought before the answer, without its marks, if the constraint's grammar has
    /// [one](crate::Grammar::after_thought).
    pub reasoning: Option<Vec<u8>>,
    /// Offset in the text at which the answer begins, behind the thought.
    pub answer_at: usize,
    /// The reason for the end.
    pub finish: Finish,
    /// The end-of-text token that was drawn, if one was: texts also end where nothing can follow.
    pub end_of_text: Option<TokenId>,
    /// The completion appended to the text, if it was cut and [`DecodeOptions::close`] is set.
    pub completion: Option<Completion>,
    /// Log-probabilities of each token, if [`DecodeOptions::logprobs`] is set, otherwise empty.
    pub logprobs: Vec<Logprobs>,
    /// Counts and times of the run.
    pub stats: DecodeStats,
}

impl Generation {
    /// A text that another engine wrote, of one piece, with nothing that only our own decoders know.
    #[doc(hidden)]
    #[must_use]
    pub fn of_engine(
        tokens: Vec<TokenId>,
        text: Vec<u8>,
        finish: Finish,
        complete: bool,
        stats: DecodeStats,
    ) -> Self {
        Self {
            tokens,
            text,
            complete,
            reasoning: None,
            answer_at: 0,
            finish,
            end_of_text: None,
            completion: None,
            logprobs: Vec::new(),
            stats,
        }
    }

    /// A text that one of our simpler decoders wrote up to where `constraint` is.
    pub(super) fn of_constraint(
        constraint: &Constraint,
        (tokens, text): (Vec<TokenId>, Vec<u8>),
        finish: Finish,
        end_of_text: Option<TokenId>,
        stats: DecodeStats,
    ) -> Self {
        let (reasoning, answer_at) = thought_of(constraint, &text);
        let plain = Self::of_engine(tokens, text, finish, constraint.is_complete(), stats);
        Self { reasoning, answer_at, end_of_text, ..plain }
    }
}

/// One token generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// The token.
    pub token: TokenId,
    /// Was the model's own choice not allowed, and this token taken in its place?
    pub intervened: bool,
}

/// A text in progress.
pub(super) struct TextRun {
    pub(super) chooser: Chooser,
    vocabulary: Vocabulary,
    /// The constraint before the text.
    start: Option<Constraint>,
    constraint: Option<Constraint>,
    /// The prompt, then the tokens.
    sequence: Vec<TokenId>,
    text: Vec<u8>,
    stop: StopSearch,
    /// Number of alternatives wanted with each token.
    alternatives: Option<usize>,
    pub(super) logprobs: Vec<Logprobs>,
    max_new_tokens: usize,
    pub(super) stats: DecodeStats,
    finish: Option<Finish>,
    end_of_text: Option<TokenId>,
    close: bool,
    pub(super) completion: Option<Completion>,
}

/// Prepares a constraint for a run: it stays with its steps, and heeds the options about white space.
pub(super) fn patient(constraint: Constraint, options: &DecodeOptions) -> Constraint {
    let constraint = constraint.patient_unless_told(Patience::whole()).trailing_space(options.trailing_space);
    match options.reasoning_tokens {
        None => constraint,
        most => constraint.reasoning_tokens(most),
    }
}

/// Returns the thought in a text after which `constraint` stands, and where the answer behind it begins.
fn thought_of(constraint: &Constraint, text: &[u8]) -> (Option<Vec<u8>>, usize) {
    let (thought, answer) = constraint.split_thought(text);
    (constraint.thought().map(|_| thought.to_vec()), text.len() - answer.len())
}

impl TextRun {
    /// Creates a run that continues `prompt`, where `constraint` stands at the beginning of the text.
    pub(super) fn new(
        prompt: &[TokenId],
        vocabulary: Vocabulary,
        possible: Arc<TokenSet>,
        constraint: Option<Constraint>,
        options: &DecodeOptions,
    ) -> Self {
        let constraint = constraint.map(|constraint| patient(constraint, options));
        let possible = match constraint.as_ref().filter(|constraint| constraint.asks_for_specials()) {
            Some(constraint) => Arc::new(constraint.with_specials(&possible)),
            None => possible,
        };
        Self {
            chooser: Chooser::new(options, possible),
            vocabulary,
            start: constraint.clone(),
            constraint,
            sequence: prompt.to_vec(),
            text: Vec::new(),
            stop: options.stop.search(),
            alternatives: options.logprobs,
            logprobs: Vec::new(),
            max_new_tokens: options.max_new_tokens,
            stats: DecodeStats { prompt_tokens: prompt.len(), ..DecodeStats::default() },
            finish: None,
            end_of_text: None,
            close: options.close,
            completion: None,
        }
    }

    /// Refuses a prompt that a model with a context of this many tokens cannot continue.
    pub(super) fn check_prompt(&self, context: usize) -> Result<(), DecodeError> {
        DecodeError::check_prompt(self.stats.prompt_tokens, context)
    }

    /// Tokens that it may have at the end, its prompt included, where a model holds `context`.
    pub(super) fn most_tokens(&self, context: usize) -> usize {
        self.stats.prompt_tokens.saturating_add(self.max_new_tokens).min(context)
    }

    /// Records, before the first pass, that `tokens` tokens of the prompt come from the prefix cache.
    pub(super) fn note_cached(&mut self, tokens: usize) {
        if self.stats.passes == 0 {
            self.stats.cached_tokens = tokens;
        }
    }

    /// Has the run ended, or does it end here, before there is another row? `context` is the number of tokens
    /// that the model can hold, all of which must have been seen for the next row.
    ///
    /// # Errors
    /// If the text is to be completed and a budget runs out.
    pub(super) fn end(&mut self, context: usize) -> Result<Option<Finish>, DecodeError> {
        if self.finish.is_none()
            && let Some(finish) = self.ending(context)
        {
            self.finish_by(finish)?;
        }
        Ok(self.finish)
    }

    /// Ends the text, and completes it if that is wanted and something is missing.
    fn finish_by(&mut self, finish: Finish) -> Result<(), DecodeError> {
        let cut = matches!(finish, Finish::Length | Finish::StopString) && self.is_inside();
        self.finish = Some(if cut { Finish::Thought } else { finish });
        if self.close { self.complete() } else { Ok(()) }
    }

    /// Ends the text here by the shortest completion, unless it has ended already.
    pub(super) fn close(&mut self) -> Result<(), DecodeError> {
        if self.finish.is_none() {
            self.finish = Some(Finish::Closed);
        }
        self.complete()
    }

    /// Completes the text by its shortest completion, unless it is complete.
    fn complete(&mut self) -> Result<(), DecodeError> {
        let Some(constraint) = self.constraint.as_mut().filter(|constraint| !constraint.is_complete()) else {
            return Ok(());
        };
        let completion = timed(&mut self.stats.mask_time, || {
            let completion = constraint.shortest_completion()?;
            constraint.advance_bytes(&completion.bytes)?;
            Ok::<_, StepError>(completion)
        })?;
        self.text.extend_from_slice(&constraint.shown(&completion.bytes));
        self.completion = Some(completion);
        Ok(())
    }

    fn ending(&mut self, context: usize) -> Option<Finish> {
        if let Some(constraint) = &self.constraint
            && let Some(finish) = timed(&mut self.stats.mask_time, || Finish::of_text(constraint))
        {
            return Some(finish);
        }
        let full = self.sequence.len() > context || self.stats.tokens >= self.max_new_tokens;
        full.then_some(Finish::Length)
    }

    /// Takes the token that follows the sequence, given its row of logits; `None` if it ends the text. On
    /// error nothing was taken, or the completion after a stop string failed.
    pub(super) fn take(&mut self, row: &[f32]) -> Result<Option<Step>, DecodeError> {
        let interventions = self.stats.interventions;
        let token = self.chooser.choose(row, &self.sequence, self.constraint.as_mut(), &mut self.stats)?;
        let ends = self.vocabulary.is_end_of_text(token);
        let logprobs = match self.alternatives.filter(|_| !ends) {
            Some(count) => Some(self.logprobs_of(row, token, count)?),
            None => None,
        };
        self.go_on(token, logprobs, self.stats.interventions > interventions)
    }

    /// Takes a token like [`take`](Self::take), from a row that may still be in progress, if
    /// [`takes_kept`](Self::takes_kept) allows it: the mask is made before the row is read.
    pub(super) fn take_kept(&mut self, row: KeptRow<'_>) -> Result<Option<Step>, DecodeError> {
        let (constraint, position) = (self.constraint.as_mut(), self.sequence.len());
        let token = self.chooser.choose_kept(row, position, constraint, &mut self.stats)?;
        self.go_on(token, None, false)
    }

    /// Can rows stay on a device, or are their numbers needed?
    pub(super) fn takes_kept(&self) -> bool {
        self.alternatives.is_none() && self.chooser.takes_kept(self.constraint.is_some())
    }

    /// Appends the chosen token; `None` if it ends the text.
    fn go_on(
        &mut self,
        token: TokenId,
        logprobs: Option<Logprobs>,
        intervened: bool,
    ) -> Result<Option<Step>, DecodeError> {
        let inside = self.is_inside();
        if let Some(constraint) = &mut self.constraint {
            timed(&mut self.stats.mask_time, || constraint.advance(token))?;
        }
        self.stats.reasoning_tokens += usize::from(inside || self.is_thinking());
        if self.vocabulary.is_end_of_text(token) {
            self.finish = Some(Finish::Stop);
            self.end_of_text = Some(token);
            return Ok(None);
        }
        self.logprobs.extend(logprobs);
        self.sequence.push(token);
        self.stats.tokens += 1;
        self.append(token)?;
        Ok(Some(Step { token, intervened }))
    }

    /// Tells where the answer begins in the text; `None` while the text may be in its thought.
    pub(super) fn answer_at(&self) -> Option<usize> {
        let behind = |constraint: &Constraint| self.text.len() - constraint.split_thought(&self.text).1.len();
        (!self.is_thinking()).then(|| self.constraint.as_ref().map_or(0, behind))
    }

    fn is_inside(&self) -> bool {
        let place = self.constraint.as_ref().and_then(Constraint::thought);
        place == Some(ThoughtPlace::Inside)
    }

    /// May the text still be in its thought?
    fn is_thinking(&self) -> bool {
        let place = self.constraint.as_ref().and_then(Constraint::thought);
        place.is_some_and(|place| place != ThoughtPlace::Behind)
    }

    /// Returns the tokens that may follow, and those that may after each of `draft`'s: the needed logits of a
    /// pass. `None` if all are needed, and if a budget is used up, which the next token taken reports again.
    pub(super) fn ahead(&mut self, draft: &[TokenId]) -> Option<Vec<TokenSet>> {
        if !self.chooser.is_ahead() {
            return None;
        }
        let constraint = self.constraint.as_mut()?;
        timed(&mut self.stats.mask_time, || {
            let mut sets = vec![constraint.mask().ok()?.clone()];
            if !draft.is_empty() {
                let mut constraint = constraint.fork();
                for &token in draft {
                    constraint.advance(token).ok()?;
                    sets.push(constraint.mask().ok()?.clone());
                }
            }
            Some(sets)
        })
    }

    /// Are masks known before passes?
    pub(super) fn is_ahead(&self) -> bool {
        self.chooser.is_ahead() && self.constraint.is_some()
    }

    /// Returns the likelier tokens that may follow, with their probabilities at temperature 1, given the row
    /// of logits.
    pub(super) fn likely(&mut self, row: &[f32]) -> Result<Vec<(TokenId, f32)>, DecodeError> {
        match &mut self.constraint {
            Some(constraint) => Ok(likely(row, timed(&mut self.stats.mask_time, || constraint.mask())?)),
            None => Ok(likely(row, self.chooser.possible())),
        }
    }

    /// Number of tokens that it may still take.
    pub(super) fn room(&self) -> usize {
        self.max_new_tokens.saturating_sub(self.stats.tokens)
    }

    /// Returns a token that ends a text.
    pub(super) fn end_of_text(&self) -> Option<TokenId> {
        self.vocabulary.end_of_text().first().copied()
    }

    fn logprobs_of(&mut self, row: &[f32], token: TokenId, count: usize) -> Result<Logprobs, DecodeError> {
        let mut allowed = None;
        if let Some(constraint) = &mut self.constraint {
            allowed = Some(timed(&mut self.stats.mask_time, || constraint.mask())?);
        }
        Ok(Logprobs::new(row, token, allowed, count))
    }

    /// Appends a token's bytes, up to the end of the first stop string.
    fn append(&mut self, token: TokenId) -> Result<(), DecodeError> {
        let bytes = match &self.constraint {
            Some(constraint) => constraint.text_of(token),
            None => self.vocabulary.bytes(token).unwrap_or_default(),
        };
        if !self.stop.append(&mut self.text, bytes) {
            return Ok(());
        }
        if let Some(mut cut) = self.start.take() {
            timed(&mut self.stats.mask_time, || cut.advance_text(&self.text))?;
            self.constraint = Some(cut);
        }
        self.finish_by(Finish::StopString)
    }

    /// The tokens of prompt and text.
    pub(super) fn sequence(&self) -> &[TokenId] {
        &self.sequence
    }

    /// The tokens of the text, without prompt and end of text.
    pub(super) fn tokens(&self) -> &[TokenId] {
        &self.sequence[self.stats.prompt_tokens..]
    }

    /// The text so far, cut before a stop string, and its completion.
    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    /// The part of the text that no stop string can take back any more.
    pub(super) fn settled_text(&self) -> &[u8] {
        let held = if self.finish.is_some() { 0 } else { self.stop.held() };
        &self.text[..self.text.len() - held]
    }

    pub(super) fn constraint(&self) -> Option<&Constraint> {
        self.constraint.as_ref()
    }

    pub(super) fn finish(&self) -> Option<Finish> {
        self.finish
    }

    /// Is the text in the language? Without a constraint: has it ended other than by length?
    pub(super) fn is_complete(&self) -> bool {
        let stopped = matches!(self.finish, Some(Finish::Stop | Finish::StopString | Finish::Closed));
        self.constraint.as_ref().map_or(stopped, Constraint::is_complete)
    }

    /// Ends the run and returns its output.
    pub(super) fn into_generation(self, finish: Finish) -> Generation {
        let (reasoning, answer_at) =
            self.constraint.as_ref().map_or((None, 0), |constraint| thought_of(constraint, &self.text));
        Generation {
            reasoning,
            answer_at,
            tokens: self.tokens().to_vec(),
            complete: self.is_complete(),
            finish,
            end_of_text: self.end_of_text,
            completion: self.completion,
            text: self.text,
            logprobs: self.logprobs,
            stats: self.stats,
        }
    }
}

impl fmt::Debug for TextRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextRun")
            .field("tokens", &self.tokens().len())
            .field("finish", &self.finish)
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}

/// The rows of a pass.
pub(super) enum PassRows {
    /// Rows in memory.
    Here(Logits),
    /// Rows where the model computes them, and their answers, if they were asked.
    There(Kept<DecodeError>, Vec<RowAnswer>),
}

/// A row of a pass.
pub(super) enum PassRow<'a> {
    /// The needed part of a row, in memory.
    Here(Cow<'a, [f32]>),
    /// A row where the model computes it.
    There(KeptRow<'a>),
}

impl PassRows {
    /// Waits for rows where the model computes them. Where these can, the run's next token and those after
    /// the draft's are chosen there, from all rows at once; `sets` are the tokens that may follow, if the run
    /// has a constraint. Lists the tokens that are `near` the likeliest ones, if that is asked.
    pub(super) fn there(
        rows: Kept<DecodeError>,
        sets: Option<&[TokenSet]>,
        run: &TextRun,
        near: Option<f32>,
    ) -> Result<Self, DecodeError> {
        // Without masks, as where a budget is used up, there is nothing to choose among.
        let answers = match sets.is_some() || run.constraint().is_none() {
            true => run.chooser.choose_rows(&rows, sets, run.sequence().len(), near)?,
            false => None,
        };
        if answers.is_none() {
            rows.wait()?;
        }
        Ok(Self::There(rows, answers.unwrap_or_default()))
    }

    /// Returns the row with this index; an empty one if there is none in memory.
    pub(super) fn row(&self, index: usize) -> PassRow<'_> {
        match self {
            Self::Here(logits) => PassRow::Here(logits.row(index).unwrap_or_default().into()),
            Self::There(rows, answers) => PassRow::There(KeptRow { rows, index, answer: answers.get(index) }),
        }
    }
}

impl<'a> PassRow<'a> {
    /// The tokens that the row has listed, with their logits, if it was asked and could.
    pub(super) fn listed(&self) -> Option<&'a [(TokenId, f32)]> {
        match self {
            Self::Here(_) => None,
            Self::There(row) => row.answer?.near.as_deref(),
        }
    }

    /// Takes the next token of `run` from the row, wherever it is; `None` if it ends the text.
    pub(super) fn take(&self, run: &mut TextRun) -> Result<Option<Step>, DecodeError> {
        match self {
            Self::Here(row) => run.take(row),
            Self::There(row) => run.take_kept(*row),
        }
    }

    /// Brings the row to memory.
    pub(super) fn bring(self, run: &mut TextRun) -> Result<PassRow<'a>, DecodeError> {
        match self {
            Self::Here(row) => Ok(Self::Here(row)),
            Self::There(KeptRow { rows, index, .. }) => {
                Ok(Self::Here(timed(&mut run.stats.model_time, || rows.row(index))?.into()))
            }
        }
    }
}

/// Wraps kept rows, so that their errors are the run's.
pub(super) fn kept<E: std::error::Error + Send + Sync + 'static>(rows: Kept<E>) -> Kept<DecodeError> {
    Box::new(RowsOnDevice(rows))
}

struct RowsOnDevice<E>(Kept<E>);

impl<E: std::error::Error + Send + Sync + 'static> KeptRows for RowsOnDevice<E> {
    type Error = DecodeError;

    fn rows(&self) -> usize {
        self.0.rows()
    }

    fn choose(&self, first: usize, choices: &[RowChoice<'_>]) -> Result<Option<Vec<RowAnswer>>, DecodeError> {
        self.0.choose(first, choices).map_err(DecodeError::model)
    }

    fn row(&self, index: usize) -> Result<Vec<f32>, DecodeError> {
        self.0.row(index).map_err(DecodeError::model)
    }

    fn wait(&self) -> Result<(), DecodeError> {
        self.0.wait().map_err(DecodeError::model)
    }
}

//! The decode loop: a pass of the model, a choice, a step of the constraint, until the text ends.
//!
//! Invariant: the run sees a row for each sequence once, whatever passes they come from.

use std::{fmt, iter::FusedIterator};

use super::run::{Finish, Generation, Step, TextRun, kept};
use super::sampling::{choice::KeptRow, logprobs::Logprobs};
use super::stats::{DecodeStats, timed};
use super::{error::DecodeError, speculation::RunSpeculation};
use crate::model::{Model, Rows};
use crate::{Completion, Constraint, ids::TokenId, proposer::Drafter};

/// One run, token by token; see [`Decoder::steps`](super::Decoder::steps). After an error or the end there
/// are no more items.
pub struct Steps<'a, M: Model> {
    model: &'a mut M,
    run: TextRun,
    speculation: Option<RunSpeculation<'a>>,
    progress: Progress,
}

/// The progress of a run that has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    NotStarted,
    Running,
    Failed,
}

impl<'a, M: Model> Steps<'a, M> {
    pub(super) fn new(model: &'a mut M, run: TextRun, drafter: Option<&'a mut Drafter>) -> Self {
        let at_once = model.tokens_at_once();
        let speculation = drafter.map(|drafter| RunSpeculation::new(drafter, at_once));
        Self { model, run, speculation, progress: Progress::NotStarted }
    }
}

impl<M: Model> Steps<'_, M> {
    /// The tokens so far, without prompt and end of text; those that spell a stop string included.
    #[must_use]
    pub fn tokens(&self) -> &[TokenId] {
        self.run.tokens()
    }

    /// The text so far: the bytes of the tokens, cut before a stop string, and of the completion.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        self.run.text()
    }

    /// The text so far, without a possible beginning of a stop string at its end: what can be shown.
    #[must_use]
    pub fn settled_text(&self) -> &[u8] {
        self.run.settled_text()
    }

    /// Tells where the answer begins in the text, behind a thought; `None` while the text is in one.
    #[must_use]
    pub fn answer_at(&self) -> Option<usize> {
        self.run.answer_at()
    }

    /// The reason for the end of the run, if it has ended, and not by an error.
    #[must_use]
    pub fn finish(&self) -> Option<Finish> {
        self.run.finish().filter(|_| self.progress != Progress::Failed)
    }

    /// Counts and times of the run so far.
    #[must_use]
    pub fn stats(&self) -> &DecodeStats {
        &self.run.stats
    }

    /// The constraint after the text so far.
    #[must_use]
    pub fn constraint(&self) -> Option<&Constraint> {
        self.run.constraint()
    }

    /// Is the text so far in the language? Without a constraint: has it ended other than by length?
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.run.is_complete()
    }

    /// The tokens that were drafted for the last pass, whether they were drawn as well or not; none without a
    /// drafter. The pass was made for the first of the steps since [`DecodeStats::passes`] last grew.
    #[must_use]
    pub fn drafted(&self) -> &[TokenId] {
        self.speculation.as_ref().map(RunSpeculation::drafted).unwrap_or_default()
    }

    /// Log-probabilities of each token so far, if [`DecodeOptions::logprobs`](super::DecodeOptions::logprobs)
    /// is set, otherwise empty.
    #[must_use]
    pub fn logprobs(&self) -> &[Logprobs] {
        &self.run.logprobs
    }

    /// Ends the text here and completes it by the shortest text of the constraint's language, unless it is
    /// complete; see [`Constraint::shortest_completion`]. For requests of users; see
    /// [`DecodeOptions::close`](super::DecodeOptions::close) for texts that are cut.
    ///
    /// # Errors
    /// If a budget is used up; the text has ended then, incomplete.
    pub fn close(&mut self) -> Result<(), DecodeError> {
        self.run.close()
    }

    /// The completion that was appended to the text.
    #[must_use]
    pub fn completion(&self) -> Option<&Completion> {
        self.run.completion.as_ref()
    }

    /// Returns the output so far; as if cut here by length, if it has not ended.
    #[must_use]
    pub fn into_generation(self) -> Generation {
        let finish = self.finish().unwrap_or(Finish::Length);
        self.run.into_generation(finish)
    }

    /// Makes the next token; `None` at the end.
    fn step(&mut self) -> Result<Option<Step>, DecodeError> {
        if self.progress == Progress::NotStarted {
            self.run.check_prompt(self.model.context())?;
            self.model.truncate(0).map_err(DecodeError::model)?;
            self.progress = Progress::Running;
        }
        if self.run.end(self.model.context())?.is_some() {
            return Ok(None);
        }
        if let Some(speculation) = &mut self.speculation {
            return speculation.step(self.model, &mut self.run);
        }
        let mut time = self.run.stats.model_time;
        if self.run.takes_kept() {
            let pending = &self.run.sequence()[self.model.position()..];
            let begun = timed(&mut time, || self.model.begin(pending, Rows::Last));
            if let Some(rows) = begun.map_err(DecodeError::model)? {
                self.run.stats.model_time = time;
                self.run.stats.passes += 1;
                return self.run.take_kept(KeptRow { rows: &kept(rows), index: 0, answer: None });
            }
        }
        let sets = self.run.ahead(&[]);
        let pending = &self.run.sequence()[self.model.position()..];
        let rows = sets.as_deref().map_or(Rows::Last, Rows::Among);
        let logits = timed(&mut time, || self.model.forward(pending, rows)).map_err(DecodeError::model)?;
        self.run.stats.model_time = time;
        self.run.stats.passes += 1;
        self.run.take(logits.last().unwrap_or_default())
    }
}

impl<M: Model> Iterator for Steps<'_, M> {
    type Item = Result<Step, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.progress == Progress::Failed || self.run.finish().is_some() {
            return None;
        }
        let mut time = self.run.stats.total_time;
        let result = timed(&mut time, || self.step());
        self.run.stats.total_time = time;
        if result.is_err() {
            self.progress = Progress::Failed;
        }
        result.transpose()
    }
}

impl<M: Model> FusedIterator for Steps<'_, M> {}

impl<M: Model> fmt::Debug for Steps<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Steps")
            .field("run", &self.run)
            .field("progress", &self.progress)
            .finish_non_exhaustive()
    }
}

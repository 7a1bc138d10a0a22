//! Bounds on the work and time of a step and of a text: pieces of work, up to totals.
//!
//! Work is counted in units, so that a text gets the same answer on every machine. Time is a second bound,
//! for callers with others waiting.

use std::time::Duration;

use crate::{
    clock::Instant,
    ids::as_u64,
    limits::{Budget, LimitExceeded, Limits},
};

/// The bounds of one step (`mask`, `allows`, `advance`, ...) and of a whole text.
///
/// A step is done in pieces of [`Limits::step_work`]. The results of a piece are kept, so a step that ended
/// in the error of that budget continues where it stopped when it is called again. After a piece that brought
/// it no further the next one is twice as large, up to the bound of a whole step. A session [of one
/// piece](Self::one_piece) leaves that to its caller; a [patient](Self::whole) one does it itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    whole: bool,
    step_time: Option<Duration>,
    text_time: Option<Duration>,
}

impl Patience {
    /// A call does one piece: some milliseconds, unless a part of the step takes more. The default of
    /// [`CompiledGrammar::constraint`].
    ///
    /// [`CompiledGrammar::constraint`]: crate::CompiledGrammar::constraint
    #[must_use]
    pub const fn one_piece() -> Self {
        Self { whole: false, step_time: None, text_time: None }
    }

    /// A call continues until the step is done: up to [`Limits::step_units`] a step and
    /// [`Limits::text_units`] a text, both times the number of trie nodes.
    #[must_use]
    pub const fn whole() -> Self {
        Self { whole: true, step_time: None, text_time: None }
    }

    /// Also ends a step after this time. The clock is read between pieces.
    #[must_use]
    pub const fn step_time(mut self, time: Duration) -> Self {
        self.step_time = Some(time);
        self
    }

    /// Also ends a text whose long steps have taken this time together. Steps of one piece do not count.
    #[must_use]
    pub const fn text_time(mut self, time: Duration) -> Self {
        self.text_time = Some(time);
        self
    }
}

/// Work and time that a text has cost so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SpentWork {
    work: u64,
    time: Duration,
}

/// A step in progress.
#[derive(Debug)]
pub(super) struct StepMeter {
    patience: Patience,
    /// Bound on a step in all its pieces, and so on a piece too.
    most: usize,
    /// Bound on this call.
    total: usize,
    spent: usize,
    /// Is the piece as large as any may be, after one that brought the step no further?
    is_last: bool,
    /// Time at the end of the first piece: most steps need no clock.
    since: Option<Instant>,
}

impl StepMeter {
    /// Starts a step over a vocabulary whose trie has `nodes` nodes. Its total is that of `steps` steps.
    pub(super) fn new(patience: Patience, limits: &Limits, nodes: usize, steps: usize) -> Self {
        let most = limits.step_total(nodes).saturating_mul(steps.max(1));
        let total = if patience.whole { most } else { limits.step_work };
        Self { patience, most, total, spent: 0, is_last: false, since: None }
    }

    /// Units of the next piece, after `stuck` in a row that brought the step no further. Zero only once the
    /// total is reached: nothing compiles with pieces of no work.
    pub(super) fn next(&mut self, limits: &Limits, stuck: u32) -> usize {
        let piece = limits.step_work.saturating_mul(2_usize.saturating_pow(stuck)).min(self.most);
        self.is_last = stuck > 0 && piece == self.most;
        if !self.patience.whole {
            self.total = piece;
        }
        piece.min(self.total - self.spent)
    }

    /// Charges the work of a piece to the step and the text.
    pub(super) fn note(&mut self, units: usize, text: &mut SpentWork) {
        self.spent += units.min(self.total - self.spent);
        text.work = text.work.saturating_add(as_u64(units));
    }

    /// May there be another piece, after one that ended in `limit`?
    ///
    /// # Errors
    /// If not: `limit`, or the bound that was reached.
    pub(super) fn go_on(
        &mut self,
        limit: LimitExceeded,
        text: &mut SpentWork,
        limits: &Limits,
        nodes: usize,
    ) -> Result<(), LimitExceeded> {
        if self.spent >= self.total && (self.patience.whole || self.is_last) {
            return Err(LimitExceeded::new(Budget::StepTotal, "units of work of one step", self.most));
        }
        if !self.patience.whole {
            return Err(limit);
        }
        let most = limits.text_total(nodes);
        if text.work >= as_u64(most) {
            return Err(LimitExceeded::new(Budget::TextTotal, "units of work of one text", most));
        }
        if self.patience.step_time.is_none() && self.patience.text_time.is_none() {
            return Ok(());
        }
        let now = Instant::now();
        let elapsed = self.since.map_or(Duration::ZERO, |since| now.duration_since(since));
        let of_step = self.patience.step_time.filter(|&most| elapsed >= most);
        let of_text = self.patience.text_time.filter(|&most| text.time.saturating_add(elapsed) >= most);
        let over = |budget, what, most: Duration| Err(LimitExceeded::of_time(budget, what, most));
        if let Some(most) = of_step {
            return over(Budget::StepTime, "milliseconds of one step", most);
        }
        if let Some(most) = of_text {
            return over(Budget::TextTime, "milliseconds of one text's long steps", most);
        }
        self.since.get_or_insert(now);
        Ok(())
    }

    /// Adds the time of a long step to the text's.
    pub(super) fn finish(&self, text: &mut SpentWork) {
        if let Some(since) = self.since {
            text.time = text.time.saturating_add(since.elapsed());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CompiledGrammar, Compiler, Constraint, Grammar, Syntax, TokenId, Vocabulary};

    /// A grammar in which one byte ends many terminals, whose parser sets are united in one go.
    fn many_at_once() -> Grammar {
        let names: Vec<String> = ('b'..='z').map(String::from).collect();
        let rule = |name: &String| format!("{name} ::= [a-{name}] {name} \"!\" | [a-{name}]\n");
        let rules: String = names.iter().map(rule).collect();
        let text = format!("root ::= {}\n{rules}", names.join(" | "));
        Grammar::parse(Syntax::Gbnf, &text, &Limits::default()).unwrap()
    }

    fn within(limits: Limits) -> Option<CompiledGrammar> {
        let vocabulary = Vocabulary::builder().all_bytes().end_of_text(TokenId::new(256)).build().unwrap();
        Compiler::new(vocabulary).limits(limits).compile(&many_at_once()).ok()
    }

    fn compiled(step_work: usize) -> Option<CompiledGrammar> {
        within(Limits { step_work, ..Limits::default() })
    }

    /// Does a step in as many pieces as it takes, and returns their number.
    fn pieces<T>(
        constraint: &mut Constraint,
        mut step: impl FnMut(&mut Constraint) -> Result<T, crate::StepError>,
    ) -> usize {
        for count in 1..1_000 {
            match step(constraint) {
                Ok(_) => return count,
                Err(error) => assert!(error.can_go_on(), "{error}"),
            }
        }
        panic!("a piece comes no further than the one before it");
    }

    #[test]
    fn a_part_of_a_step_that_is_larger_than_a_piece_is_done_in_larger_pieces() {
        let small = (1..).find_map(compiled).unwrap();
        let whole = compiled(Limits::default().step_work).unwrap();
        let mut expected = whole.constraint();
        let mut constraint = small.constraint();
        let mut patient = small.constraint().patient(Patience::whole());
        let mut most = 0;
        for byte in [b'a', b'a', b'!'] {
            let token = TokenId::new(u32::from(byte));
            most = most.max(pieces(&mut constraint, |constraint| constraint.advance(token)));
            patient.advance(token).unwrap();
            expected.advance(token).unwrap();
            most = most.max(pieces(&mut constraint, |constraint| constraint.mask().map(|_| ())));
            assert_eq!(constraint.mask().unwrap(), expected.mask().unwrap());
            assert_eq!(patient.mask().unwrap(), expected.mask().unwrap());
        }
        assert!(most > 1);
    }

    /// Pieces grow up to the bound of a whole step; a caller who goes on while it can comes to an end.
    #[test]
    fn a_part_that_is_larger_than_a_whole_step_is_an_error_that_ends_the_loop() {
        let small = |step_work| within(Limits { step_work, step_units: 0, ..Limits::default() });
        let mut constraint = (1..).find_map(small).unwrap().constraint();
        let token = TokenId::new(u32::from(b'a'));
        let errors = (0..1_000).map_while(|_| constraint.advance(token).err());
        let last = errors.take_while(crate::StepError::can_go_on).count();
        assert!(last < 1_000);
        let error = constraint.advance(token).unwrap_err();
        let of_step = |limit: &LimitExceeded| limit.budget() == Budget::StepTotal;
        assert!(matches!(error.kind(), crate::StepErrorKind::Limit(limit) if of_step(limit)), "{error}");
    }
}

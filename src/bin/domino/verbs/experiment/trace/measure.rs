//! The passes of a measurement: each text on a fresh grammar, then all of them repeatedly on a warm one. Many
//! times of one kind are summarised in a few numbers ([`Spread`]).
//!
//! Pass 1 compiles the grammar anew before every text, so that no text profits from an earlier one. It can be
//! done several times, so that the noise of the machine can be told from the cost of the engine. Passes 2 and
//! later share one compiled grammar that has met all texts.
//!
//! To look at a mask is to read all of it, which would leave the next step with cold caches. So masks are
//! looked at in walks of their own: one on a grammar as fresh as in pass 1, and one before and one after the
//! warm passes.

use serde_json::{Value, json};

use super::input::Trace;
use super::walk::{Checks, Digest, Engine, Stuck, Walk, check, timed, walk};

/// Numbers of passes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Passes {
    /// Number of times that pass 1 is done, at least one.
    pub(crate) fresh: usize,
    /// Number of passes in all, at least one.
    pub(crate) all: usize,
}

impl Passes {
    /// Number of walks along each text, including those that look at masks.
    pub(crate) fn walks(self) -> usize {
        1 + self.fresh + if self.all > 1 { self.all + 1 } else { 0 }
    }
}

/// A text on a grammar that was compiled for it alone.
#[derive(Debug, Clone)]
pub(crate) struct Fresh {
    /// Time from the grammar's text to a compiled grammar, in nanoseconds.
    pub(crate) compile: u64,
    pub(crate) walk: Walk,
}

/// All measurements of one text.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    /// The masks on a fresh grammar.
    pub(crate) digests: Vec<Digest>,
    /// The walks of pass 1.
    pub(crate) fresh: Vec<Fresh>,
    /// The walks of passes 2 and later.
    pub(crate) warm: Vec<Walk>,
    /// The walks of these passes without masks.
    pub(crate) checks: Vec<Checks>,
}

/// All measurements.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    /// The record of each text that was begun, in order; not all texts if an interrupt came in pass 1.
    pub(crate) records: Vec<Record>,
    /// Time of the first compilation in this process, in nanoseconds.
    pub(crate) first_compile: Option<u64>,
    /// Number of passes that every text has finished.
    pub(crate) passes: usize,
    pub(crate) interrupted: bool,
}

/// A step that failed, or whose mask is wrong.
#[derive(Debug)]
pub(crate) struct Wrong {
    pub(crate) trace: usize,
    pub(crate) step: usize,
    pub(crate) what: String,
}

impl Wrong {
    fn stuck(trace: usize) -> impl FnOnce(Stuck) -> Self {
        move |stuck| Self { trace, step: stuck.step, what: stuck.what }
    }
}

/// A reason why there is no result.
#[derive(Debug)]
pub(crate) enum Trouble {
    Step(Wrong),
    Other(anyhow::Error),
}

impl From<Wrong> for Trouble {
    fn from(wrong: Wrong) -> Self {
        Self::Step(wrong)
    }
}

/// An event that a caller may want to see as it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// A grammar was compiled.
    Compiled,
    /// A walk along a text ended.
    Walked,
}

/// Measures `passes` over `traces`. `compile` makes a cold engine, `compare` judges the masks of a text, and
/// `stop` ends the measurement early with the results so far; where that is the reason why `compile` fails,
/// too.
pub(crate) fn run<E: Engine>(
    traces: &[Trace],
    passes: Passes,
    compile: impl FnMut() -> anyhow::Result<E>,
    compare: impl Fn(usize, &[Digest]) -> Result<(), (usize, String)>,
    notify: impl FnMut(Moment),
    stop: impl Fn() -> bool,
) -> Result<Measured, Trouble> {
    let mut measured = Measured { passes: 1, ..Measured::default() };
    match measure_all(&mut measured, traces, passes, compile, compare, notify, &stop) {
        Err(Trouble::Other(_)) if stop() => {
            measured.interrupted = true;
            // A text that was only looked at has no times.
            measured.records.retain(|record| !record.fresh.is_empty());
        }
        done => done?,
    }
    Ok(measured)
}

/// Measures like [`run`]; the results so far are in `measured` also after an error.
fn measure_all<E: Engine>(
    measured: &mut Measured,
    traces: &[Trace],
    passes: Passes,
    mut compile: impl FnMut() -> anyhow::Result<E>,
    compare: impl Fn(usize, &[Digest]) -> Result<(), (usize, String)>,
    mut notify: impl FnMut(Moment),
    stop: &impl Fn() -> bool,
) -> Result<(), Trouble> {
    let mut fresh = || {
        let (engine, time) = timed(&mut compile);
        engine.map(|engine| (engine, time)).map_err(Trouble::Other)
    };
    for _ in 0..passes.fresh {
        for (number, trace) in traces.iter().enumerate() {
            if stop() {
                measured.interrupted = true;
                return Ok(());
            }
            // The masks of a text are looked at once, on an engine whose steps are not timed.
            if measured.records.len() == number {
                let (engine, time) = fresh()?;
                notify(Moment::Compiled);
                measured.first_compile.get_or_insert(time);
                let record = Record::look(&engine, number, trace)?;
                let compared = compare(number, &record.digests);
                compared.map_err(|(step, what)| Wrong { trace: number, step, what })?;
                measured.records.push(record);
                notify(Moment::Walked);
            }
            let (engine, time) = fresh()?;
            measured.records[number].fresh(&engine, number, trace, time)?;
            notify(Moment::Walked);
        }
    }
    if passes.all < 2 {
        return Ok(());
    }
    // The look at all masks also warms up the engine for the later passes.
    let (engine, _) = fresh()?;
    check_masks(&engine, traces, &measured.records, &mut notify, stop)?;
    for _ in 2..=passes.all {
        for (number, (record, trace)) in measured.records.iter_mut().zip(traces).enumerate() {
            if stop() {
                measured.interrupted = true;
                return Ok(());
            }
            record.warm(&engine, number, trace)?;
            notify(Moment::Walked);
        }
        measured.passes += 1;
    }
    check_masks(&engine, traces, &measured.records, &mut notify, stop)?;
    measured.interrupted = stop();
    Ok(())
}

/// Compares the masks of all texts with their records, outside the measurement, until `stop`.
fn check_masks<E: Engine>(
    engine: &E,
    traces: &[Trace],
    records: &[Record],
    notify: &mut impl FnMut(Moment),
    stop: &impl Fn() -> bool,
) -> Result<(), Wrong> {
    for (number, (record, trace)) in records.iter().zip(traces).enumerate() {
        if stop() {
            break;
        }
        record.look_again(engine, number, trace)?;
        notify(Moment::Walked);
    }
    Ok(())
}

impl Record {
    /// Looks at the masks of a text, on an engine that has met no text.
    pub(crate) fn look<E: Engine>(engine: &E, number: usize, trace: &Trace) -> Result<Self, Wrong> {
        let digests = look(engine, number, trace)?;
        Ok(Self { digests, fresh: Vec::new(), warm: Vec::new(), checks: Vec::new() })
    }

    /// Looks at the masks again and refuses any difference.
    pub(crate) fn look_again<E: Engine>(
        &self,
        engine: &E,
        number: usize,
        trace: &Trace,
    ) -> Result<(), Wrong> {
        let digests = look(engine, number, trace)?;
        if digests == self.digests {
            return Ok(());
        }
        let pairs = digests.iter().zip(&self.digests);
        let step = pairs.take_while(|(now, first)| now == first).count();
        Err(Wrong { trace: number, step, what: "the mask is not the one of the first time".to_owned() })
    }

    /// Runs pass 1, on an engine that has met no text and took `compile` nanoseconds to make.
    pub(crate) fn fresh<E: Engine>(
        &mut self,
        engine: &E,
        number: usize,
        trace: &Trace,
        compile: u64,
    ) -> Result<(), Wrong> {
        let walk = walk(engine, &trace.tokens, None).map_err(Wrong::stuck(number))?;
        self.agrees(number, walk.commits.len())?;
        self.fresh.push(Fresh { compile, walk });
        Ok(())
    }

    /// Runs a pass on an engine that has met all texts, with masks and without.
    pub(crate) fn warm<E: Engine>(&mut self, engine: &E, number: usize, trace: &Trace) -> Result<(), Wrong> {
        let walked = walk(engine, &trace.tokens, None).map_err(Wrong::stuck(number))?;
        let checked = check(engine, &trace.tokens).map_err(Wrong::stuck(number))?;
        self.agrees(number, walked.commits.len())?;
        self.agrees(number, checked.allows.len())?;
        self.warm.push(walked);
        self.checks.push(checked);
        Ok(())
    }

    /// Refuses a walk that did not come as far as the first one.
    fn agrees(&self, trace: usize, taken: usize) -> Result<(), Wrong> {
        if taken + 1 == self.digests.len() {
            return Ok(());
        }
        let what = "asking for the token does not give what the first mask says".to_owned();
        Err(Wrong { trace, step: taken.min(self.digests.len() - 1), what })
    }

    /// The step of the first token that the mask does not hold.
    pub(crate) fn rejected_at(&self) -> Option<usize> {
        self.fresh.first().and_then(|fresh| fresh.walk.rejected_at)
    }

    /// The medians over pass 1 of the times that `of` takes from each walk, step by step.
    pub(crate) fn fresh_medians(&self, of: impl Fn(&Walk) -> &[u64]) -> Vec<u64> {
        medians(&self.fresh.iter().map(|fresh| of(&fresh.walk)).collect::<Vec<_>>())
    }

    /// The medians over the warm walks, step by step; empty if there are none.
    pub(crate) fn warm_medians(&self, of: impl Fn(&Walk) -> &[u64]) -> Vec<u64> {
        medians(&self.warm.iter().map(of).collect::<Vec<_>>())
    }

    /// The medians over the walks without masks, step by step; empty if there are none.
    pub(crate) fn check_medians(&self, of: impl Fn(&Checks) -> &[u64]) -> Vec<u64> {
        medians(&self.checks.iter().map(of).collect::<Vec<_>>())
    }

    /// The median time of making a request on a fresh grammar.
    pub(crate) fn fresh_start(&self) -> u64 {
        median(self.fresh.iter().map(|fresh| fresh.walk.start).collect()).unwrap_or_default()
    }

    /// The median time of making a request on a warm grammar, or else on a fresh one.
    pub(crate) fn warm_start(&self) -> u64 {
        median(self.warm.iter().map(|walk| walk.start).collect()).unwrap_or_else(|| self.fresh_start())
    }
}

fn look<E: Engine>(engine: &E, number: usize, trace: &Trace) -> Result<Vec<Digest>, Wrong> {
    let mut digests = Vec::with_capacity(trace.tokens.len() + 1);
    walk(engine, &trace.tokens, Some(&mut digests)).map_err(Wrong::stuck(number))?;
    Ok(digests)
}

/// The median of each column.
fn medians(rows: &[&[u64]]) -> Vec<u64> {
    let columns = rows.iter().map(|row| row.len()).min().unwrap_or(0);
    (0..columns).filter_map(|column| median(rows.iter().map(|row| row[column]).collect())).collect()
}

/// The middle value, or the mean of the two in the middle.
fn median(mut values: Vec<u64>) -> Option<u64> {
    values.sort_unstable();
    let high = *values.get(values.len() / 2)?;
    let low = values[(values.len() - 1) / 2];
    Some(low + (high - low) / 2)
}

/// The distribution of one kind of time, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    pub(crate) mean: f64,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// Summarises times in nanoseconds; `None` if there are none. A quantile is a measured time, the smallest
    /// that at least that share of the times does not exceed (nearest rank).
    pub(crate) fn new(times: impl IntoIterator<Item = u64>) -> Option<Self> {
        let mut times: Vec<u64> = times.into_iter().collect();
        times.sort_unstable();
        let last = *times.last()?;
        let us = |time: u64| microseconds(u128::from(time));
        let quantile = |hundredths: usize| us(times[(times.len() * hundredths).div_ceil(100).max(1) - 1]);
        let sum: u128 = times.iter().map(|&time| u128::from(time)).sum();
        #[expect(clippy::cast_precision_loss, reason = "times of a run are far fewer than 2^53")]
        let count = times.len() as f64;
        Some(Self { mean: microseconds(sum) / count, p50: quantile(50), p99: quantile(99), max: us(last) })
    }

    /// Makes an object of JSON.
    pub(crate) fn to_json(self) -> Value {
        json!({ "mean": self.mean, "p50": self.p50, "p99": self.p99, "max": self.max })
    }
}

/// Converts nanoseconds to microseconds, with a fraction, for people.
#[expect(clippy::cast_precision_loss, reason = "nanoseconds of a run are far below 2^53")]
pub(crate) fn microseconds(nanoseconds: u128) -> f64 {
    nanoseconds as f64 / 1e3
}

#[cfg(test)]
mod spread_tests {
    use super::Spread;

    #[test]
    fn quantiles_are_the_values_of_nearest_rank() {
        let spread = Spread::new((1..=200).map(|time| time * 1000)).unwrap();
        assert_eq!(spread, Spread { mean: 100.5, p50: 100.0, p99: 198.0, max: 200.0 });
        let one = Spread::new([1500]).unwrap();
        assert_eq!((one.mean, one.p50, one.p99, one.max), (1.5, 1.5, 1.5, 1.5));
        assert_eq!(Spread::new([]), None);
    }
}

#[cfg(test)]
mod tests;

//! The passes of a measurement: each text on a fresh grammar, then all of them repeatedly on a warm one.
//!
//! Pass 1 compiles the grammar anew before every text, so that no text profits from an earlier one. It can be
//! done several times, so that the noise of the machine can be told from the cost of the engine. Passes 2 and
//! later share one compiled grammar that has met all texts.
//!
//! To look at a mask is to read all of it, which would leave the next step with cold caches. So masks are
//! looked at in walks of their own: one on a grammar as fresh as in pass 1, and one before and one after the
//! warm passes.

use super::{
    input::Trace,
    walk::{Checks, Digest, Engine, Stuck, Walk, check, timed, walk},
};

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

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use domino::TokenId;

    use super::*;

    /// An engine that allows every token but 9. If it is `fickle`, its masks count its requests.
    #[derive(Default)]
    struct Toy {
        fickle: bool,
        requests: Cell<u64>,
    }

    impl Engine for Toy {
        type Request = u64;
        type Error = &'static str;

        fn start(&self) -> Result<u64, &'static str> {
            self.requests.set(self.requests.get() + 1);
            Ok(0)
        }
        fn mask(&self, _: &mut u64) -> Result<(), &'static str> {
            Ok(())
        }
        fn holds(&self, _: &mut u64, token: TokenId) -> Result<bool, &'static str> {
            Ok(token.raw() != 9)
        }
        fn digest(&self, at: &mut u64) -> Result<Digest, &'static str> {
            let hash = if self.fickle { self.requests.get() } else { 0 };
            Ok(Digest { pop: *at, hash, eos: false })
        }
        fn allows(&self, request: &mut u64, token: TokenId) -> Result<bool, &'static str> {
            self.holds(request, token)
        }
        fn commit(&self, at: &mut u64, token: TokenId) -> Result<(), &'static str> {
            *at += 1;
            if token.raw() == 8 { Err("8 breaks it") } else { Ok(()) }
        }
    }

    fn traces(tokens: &[&[u32]]) -> Vec<Trace> {
        let rows: Vec<_> =
            tokens.iter().map(|tokens| serde_json::json!({ "text": "", "tokens": tokens })).collect();
        let json = serde_json::json!({ "grammar": "g", "vocab": "v", "traces": rows });
        crate::trace::input::Traces::parse(json.to_string().as_bytes(), "file").unwrap().list
    }

    fn measure(
        toy: bool,
        traces: &[Trace],
        passes: usize,
        stop: impl Fn() -> bool,
    ) -> (Result<Measured, Trouble>, usize, usize) {
        let (mut compiled, mut walked) = (0, 0);
        let measured = run(
            traces,
            Passes { fresh: 2, all: passes },
            || Ok(Toy { fickle: toy, ..Toy::default() }),
            |_, digests| if digests.len() > 4 { Err((4, "too long".to_owned())) } else { Ok(()) },
            |moment| match moment {
                Moment::Compiled => compiled += 1,
                Moment::Walked => walked += 1,
            },
            stop,
        );
        (measured, compiled, walked)
    }

    #[test]
    fn every_text_gets_every_pass() {
        let traces = traces(&[&[1, 2, 3], &[1, 9, 3]]);
        let (measured, compiled, walked) = measure(false, &traces, 4, || false);
        let measured = measured.unwrap();
        assert_eq!((measured.passes, measured.interrupted), (4, false));
        assert_eq!((compiled, walked), (2, 2 * Passes { fresh: 2, all: 4 }.walks()));
        let [whole, cut] = &measured.records[..] else { panic!("two texts") };
        let shape = |record: &Record| {
            let walk = &record.fresh[0].walk;
            (walk.masks.len(), walk.commits.len(), record.rejected_at())
        };
        assert_eq!((shape(whole), shape(cut)), ((4, 3, None), (2, 1, Some(1))));
        for record in [whole, cut] {
            let (masks, commits, _) = shape(record);
            assert_eq!((record.fresh.len(), record.warm.len(), record.checks.len()), (2, 3, 3));
            assert_eq!(record.digests.len(), masks);
            assert_eq!(record.fresh_medians(|walk| &walk.masks).len(), masks);
            assert_eq!(record.warm_medians(|walk| &walk.masks).len(), masks);
            assert_eq!(record.check_medians(|checks| &checks.allows).len(), commits);
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let wrong = |toy, tokens: &[&[u32]], passes| match measure(toy, &traces(tokens), passes, || false).0 {
            Err(Trouble::Step(wrong)) => (wrong.trace, wrong.step, wrong.what),
            other => panic!("{other:?}"),
        };
        assert_eq!(wrong(false, &[&[1], &[1, 8]], 1), (1, 1, "8 breaks it".to_owned()));
        assert_eq!(wrong(false, &[&[1], &[1, 1, 1, 1]], 1), (1, 4, "too long".to_owned()));
        let (trace, step, what) = wrong(true, &[&[1], &[1]], 2);
        assert_eq!((trace, step), (1, 0), "{what}");
    }

    #[test]
    fn an_interrupted_run_has_what_was_done() {
        let traces = traces(&[&[1], &[2], &[3]]);
        for end in 0..18 {
            let asked = Cell::new(0);
            let stop = || {
                asked.set(asked.get() + 1);
                asked.get() > end
            };
            let (measured, _, _) = measure(false, &traces, 3, stop);
            let measured = measured.unwrap();
            assert!(measured.interrupted, "{end}");
            assert_eq!(measured.records.len(), end.min(3));
            let passes = measured.records.iter().map(|record| record.warm.len() + 1);
            assert_eq!(passes.min().unwrap_or(1), measured.passes, "{end}");
        }
    }

    #[test]
    fn a_compile_that_is_cancelled_is_an_interruption() {
        let traces = traces(&[&[1], &[2], &[3]]);
        let passes = Passes { fresh: 1, all: 2 };
        for end in 0..7 {
            let made = Cell::new(0);
            let compile = || {
                made.set(made.get() + 1);
                anyhow::ensure!(made.get() <= end, "cancelled");
                Ok(Toy::default())
            };
            let measured = run(&traces, passes, compile, |_, _| Ok(()), |_| (), || made.get() > end).unwrap();
            assert!(measured.interrupted, "{end}");
            assert_eq!(measured.records.len(), end / 2, "{end}");
        }
        let wrong = || anyhow::Result::<Toy>::Err(anyhow::anyhow!("wrong"));
        let other = run(&traces, passes, wrong, |_, _| Ok(()), |_| (), || false);
        assert!(matches!(other, Err(Trouble::Other(_))), "{other:?}");
    }

    #[test]
    fn medians_are_of_columns() {
        assert_eq!(medians(&[&[1, 9], &[3, 7], &[2, 8]]), [2, 8]);
        assert_eq!(medians(&[&[1], &[4]]), [2]);
        assert!(medians(&[]).is_empty());
    }
}

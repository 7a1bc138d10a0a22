//! Tests of passes, with an engine of toys.

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
    super::super::input::Traces::parse(json.to_string().as_bytes(), "file").unwrap().list
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
fn each_text_is_walked_in_each_pass() {
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
fn an_error_names_its_text_and_step() {
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
fn an_interrupted_run_keeps_the_passes_that_were_done() {
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
fn medians_are_taken_by_column() {
    assert_eq!(medians(&[&[1, 9], &[3, 7], &[2, 8]]), [2, 8]);
    assert_eq!(medians(&[&[1], &[4]]), [2]);
    assert!(medians(&[]).is_empty());
}

//! One engine on one grammar: its records, and the errors of its masks.

use serde_json::{Value, json};

use crate::trace::{
    input::{Expected, Trace},
    measure::{Record, Spread, Wrong},
    walk::{Engine, Walk, timed},
};

/// An engine that is measured side by side with others.
pub(crate) struct Lane<'a, E> {
    name: &'static str,
    compile: Box<dyn Fn() -> Result<E, String> + 'a>,
    /// The grammar that all texts share, once warm.
    warm: Option<E>,
    /// Records by trace; `None` if the engine got stuck.
    records: Vec<Option<Record>>,
    stuck: Vec<Wrong>,
}

/// Results of a lane, in the numbers that are compared.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) name: &'static str,
    pub(crate) warm: Option<Spread>,
    pub(crate) first: Option<Spread>,
    pub(crate) commit: Option<Spread>,
    pub(crate) allows: Option<Spread>,
    pub(crate) compile: Option<Spread>,
    /// Time from the grammar's text to a first mask.
    pub(crate) text_to_mask: Option<Spread>,
    /// Masks made.
    pub(crate) masks: usize,
    /// Masks that are not the expected ones.
    pub(crate) wrong: usize,
    /// Texts of the language that the engine refuses.
    pub(crate) rejected: usize,
    /// The first wrong mask or step, in words.
    pub(crate) complaint: Option<String>,
}

impl<'a, E: Engine> Lane<'a, E> {
    pub(crate) fn new(name: &'static str, compile: impl Fn() -> Result<E, String> + 'a) -> Self {
        Self { name, compile: Box::new(compile), warm: None, records: Vec::new(), stuck: Vec::new() }
    }

    fn compiled(&self) -> Result<E, String> {
        (self.compile)().map_err(|error| format!("{}: {error}", self.name))
    }
}

/// The interface of a lane, whatever its engine.
pub(crate) trait Contestant {
    /// Makes pass 1 of a text, on a grammar compiled for it.
    fn fresh(&mut self, number: usize, trace: &Trace) -> Result<(), String>;
    /// Makes a pass of a text on the grammar that all texts share: one that counts, or one that warms.
    fn warm(&mut self, number: usize, trace: &Trace, counts: bool) -> Result<(), String>;
    /// Computes the results, wrong masks included.
    fn outcome(&self, expected: &Expected) -> Outcome;
}

impl<E: Engine> Contestant for Lane<'_, E> {
    fn fresh(&mut self, number: usize, trace: &Trace) -> Result<(), String> {
        if self.records.len() == number {
            let engine = self.compiled()?;
            let looked = Record::look(&engine, number, trace);
            self.records.push(looked.map_err(|wrong| self.stuck.push(wrong)).ok());
        }
        let (engine, time) = timed(|| self.compiled());
        let engine = engine?;
        if let Some(record) = self.records.get_mut(number) {
            self.stuck.extend(go_on(record, |record| record.fresh(&engine, number, trace, time)));
        }
        Ok(())
    }

    fn warm(&mut self, number: usize, trace: &Trace, counts: bool) -> Result<(), String> {
        let engine = match self.warm.take() {
            Some(engine) => engine,
            None => self.compiled()?,
        };
        if let Some(record) = self.records.get_mut(number) {
            self.stuck.extend(go_on(record, |record| {
                if counts {
                    record.warm(&engine, number, trace)
                } else {
                    record.look_again(&engine, number, trace)
                }
            }));
        }
        self.warm = Some(engine);
        Ok(())
    }

    fn outcome(&self, expected: &Expected) -> Outcome {
        let records = || self.records.iter().flatten();
        let all = |of: &dyn Fn(&Record) -> Vec<u64>| Spread::new(records().flat_map(of));
        let fresh = || records().flat_map(|record| &record.fresh);
        let first_mask = |walk: &Walk| walk.start + walk.masks.first().copied().unwrap_or_default();
        let mut outcome = Outcome {
            name: self.name,
            warm: all(&|record| record.warm_medians(|walk: &Walk| &walk.masks)),
            first: all(&|record| record.fresh_medians(|walk: &Walk| &walk.masks)),
            commit: all(&|record| record.warm_medians(|walk: &Walk| &walk.commits)),
            allows: all(&|record| record.check_medians(|checks| &checks.allows)),
            compile: Spread::new(fresh().map(|fresh| fresh.compile)),
            text_to_mask: Spread::new(fresh().map(|fresh| fresh.compile + first_mask(&fresh.walk))),
            masks: records().map(|record| record.digests.len()).sum(),
            wrong: 0,
            rejected: records().filter(|record| record.rejected_at().is_some()).count() + self.stuck.len(),
            complaint: self.stuck.first().map(|wrong| complaint(wrong.trace, wrong.step, &wrong.what)),
        };
        for (number, record) in self.records.iter().enumerate() {
            let Some(record) = record else { continue };
            let pairs = expected.of(number).iter().zip(&record.digests);
            outcome.wrong += pairs.filter(|(expected, found)| expected != found).count();
            if let (None, Err((step, what))) = (&outcome.complaint, expected.compare(number, &record.digests))
            {
                outcome.complaint = Some(complaint(number, step, &what));
            }
        }
        outcome
    }
}

fn complaint(trace: usize, step: usize, what: &str) -> String {
    format!("trace {trace}, step {step}: {what}")
}

/// Runs a step on a record, if there is one, and drops the record if the engine gets stuck.
fn go_on(record: &mut Option<Record>, step: impl FnOnce(&mut Record) -> Result<(), Wrong>) -> Option<Wrong> {
    let wrong = step(record.as_mut()?).err()?;
    *record = None;
    Some(wrong)
}

impl Outcome {
    /// True if every mask of every text is the expected one.
    pub(crate) fn is_exact(&self) -> bool {
        self.complaint.is_none()
    }

    /// The results as a JSON object.
    pub(crate) fn to_json(&self) -> Value {
        let spread = |spread: Option<Spread>| spread.map_or(Value::Null, Spread::to_json);
        json!({
            "engine": self.name, "masks": self.masks, "wrong_masks": self.wrong,
            "rejected_texts": self.rejected,
            "complaint": self.complaint, "mask_us": spread(self.warm), "mask_first_us": spread(self.first),
            "commit_us": spread(self.commit), "allows_us": spread(self.allows),
            "compile_us": spread(self.compile),
            "text_to_mask_us": spread(self.text_to_mask),
        })
    }
}

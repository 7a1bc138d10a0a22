//! An engine that runs the model itself: our own decoder behind the interface for such engines.

use std::{cell::RefCell, path::Path, rc::Rc, time::Duration};

use super::{
    tests::{loaded, made_with},
    *,
};
use crate::{
    decode::DecodeOptions,
    experiment::{Others, Row},
    model::ScriptedModel,
};

const DEFINITION: &str = "name = \"h\"\ngrammars = [\"small\"]\nprompts = [\"A: \", \"B\"]\nmax_tokens = 24\n\
    seeds = [0, 1, 2]\nwarm_ups = 2\nwarm_up_prompts = [\"W: \"]\n\
    methods = [\"unconstrained\", \"masks\", \"mistralrs\", \
    \"mistralrs-llguidance\", \"mistralrs-masks\", \"mistralrs-drafts\"]";

/// Our decoder as another engine, which records what it was asked.
#[derive(Default)]
struct Own {
    /// Constraint, model, and number of tokens learnt from, of each request.
    asked: Rc<RefCell<Vec<(ExternalWay, usize, u64)>>>,
    refuses: bool,
}

struct Writer(Decoder<ScriptedModel>);

impl ExternalEngine for Own {
    fn writer(&self, job: ExternalJob<'_>) -> Result<Box<dyn ExternalWriter>, ExperimentError> {
        if self.refuses {
            let source = PeerError("not read".to_owned());
            return Err(ExperimentError::Peer { name: job.task.name.clone(), source });
        }
        let observed = job.prior.map_or(0, |prior| prior.summary().observed);
        self.asked.borrow_mut().push((job.way, job.model, observed));
        let mut decoder = Decoder::builder(loaded().model).vocabulary(job.vocabulary.clone()).build()?;
        decoder.set_constraint(job.grammar.map(CompiledGrammar::constraint))?;
        Ok(Box::new(Writer(decoder)))
    }
}

impl ExternalWriter for Writer {
    fn write(
        &mut self,
        prompt: &[TokenId],
        options: &DecodeOptions,
    ) -> Result<(Generation, Duration), PeerError> {
        *self.0.options_mut() = options.clone();
        let generation = self.0.generate(prompt).map_err(|error| PeerError(error.to_string()))?;
        Ok((generation, Duration::from_nanos(1)))
    }
}

fn made(folder: &Path, host: Option<&dyn ExternalEngine>) -> Result<Vec<Row>, ExperimentError> {
    made_with(DEFINITION, folder, Others { host, ..Others::default() })
}

#[test]
fn an_engine_with_our_model_writes_our_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let host = Own::default();
    let rows = made(folder.path(), Some(&host)).unwrap();
    let of = |method: &'static str| rows.iter().filter(move |row| row.run.method == method);
    for (ours, theirs) in [
        ("unconstrained", "mistralrs"),
        ("masks", "mistralrs-llguidance"),
        ("masks", "mistralrs-masks"),
        ("masks", "mistralrs-drafts"),
    ] {
        assert_eq!((of(ours).count(), of(theirs).count()), (6, 6));
        for (ours, theirs) in of(ours).zip(of(theirs)) {
            assert_eq!(
                (&ours.tokens, ours.finish, ours.run.k),
                (&theirs.tokens, theirs.finish, theirs.run.k)
            );
            assert_eq!(
                (ours.complete, ours.nll, ours.log_kept),
                (theirs.complete, theirs.nll, theirs.log_kept)
            );
            assert!((theirs.first_seconds - 1e-9).abs() < 1e-12);
        }
    }
    assert!(of("mistralrs-masks").all(|row| row.compile_seconds.is_some()));
    assert!(of("mistralrs-llguidance").all(|row| row.compile_seconds.is_none()));
    let asked = host.asked.borrow();
    let ways: Vec<ExternalWay> = asked.iter().map(|(way, _, _)| *way).collect();
    assert_eq!(ways, [ExternalWay::Free, ExternalWay::Own, ExternalWay::Masks, ExternalWay::Drafts]);
    assert!(
        asked
            .iter()
            .all(|(way, model, observed)| *model == 0 && (*observed > 0) == (*way == ExternalWay::Drafts))
    );
}

#[test]
fn missing_or_refusing_engines_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let error = made(&folder.path().join("none"), None).unwrap_err();
    assert!(matches!(error, ExperimentError::NoHost(_)) && error.is_bad_input(), "{error}");
    assert!(
        error.hint().unwrap().contains("-p domino-mistralrs --features experiments")
            && error.to_string().contains("method mistralrs")
    );
    let refuses = Own { refuses: true, ..Own::default() };
    let error = made(&folder.path().join("no"), Some(&refuses)).unwrap_err();
    assert!(matches!(error, ExperimentError::Peer { .. }), "{error}");
}
